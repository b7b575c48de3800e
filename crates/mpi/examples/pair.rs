//! Two ranks call most of what the binding offers and check every result; `tests/ranks.rs` runs it under each MPI.
//!
//! `pair launcher` only checks that MPI and the launcher agree on the number of processes. `pair large BYTES` sends that
//! many bytes in one message and in one broadcast.

use std::ffi::{c_int, c_void};

use allhands_mpi::{Class, Comparison, Error, Handle, Handles, Mpi, Status, Statuses, ThreadLevel};

type Result<T = ()> = std::result::Result<T, Error>;

fn main() {
    if let Err(error) = run() {
        // In one write, so that the lines of several ranks stay apart.
        let line = format!("{error}\n");
        eprint!("{line}");
        std::process::exit(1);
    }
}

fn run() -> Result {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mpi = allhands_mpi::load()?;
    assert_eq!(mpi.ensure(ThreadLevel::Single), Err(Error::NotInitialized));
    let provided = mpi.init(ThreadLevel::Multiple)?;
    assert!(mpi.initialized()? && !mpi.finalized()?);
    assert_eq!(mpi.query_thread()?, provided);
    let size = mpi.comm_size(mpi.world())?;
    mpi.check_launcher(size)?;
    match arguments[..] {
        [] => all(mpi, provided)?,
        ["launcher"] => {}
        ["large", bytes] => large(mpi, bytes.parse().expect("a number of bytes"))?,
        _ => panic!("unknown arguments {arguments:?}"),
    }
    mpi.finalize()?;
    assert_eq!(mpi.ensure(ThreadLevel::Single), Err(Error::Finalized));
    assert_eq!(mpi.init(ThreadLevel::Single), Err(Error::Finalized));
    Ok(())
}

fn all(mpi: &Mpi, provided: ThreadLevel) -> Result {
    mpi.ensure(provided)?;
    let (version, subversion) = mpi.version()?;
    assert!(version >= 3 && subversion >= 0);
    assert!(!mpi.library_version()?.is_empty());
    let rank = mpi.comm_rank(mpi.world())?;
    let comm = mpi.comm_dup(mpi.world())?;
    mpi.comm_errors_return(comm)?;
    let pair = Pair { mpi, comm, rank, size: mpi.comm_size(comm)?, other: 1 - rank as i32 };
    assert_eq!(pair.size, 2, "run with two ranks");
    pair.communicators()?;
    pair.messages()?;
    pair.persistent()?;
    pair.errors()?;
    pair.collectives()?;
    pair.user_operation()?;
    pair.datatypes()?;
    mpi.barrier(comm)?;
    mpi.comm_free(comm)?;
    println!("rank {rank} of 2 is right with {}, {provided}, {}", mpi.abi(), mpi.path().display());
    Ok(())
}

struct Pair<'a> {
    mpi: &'a Mpi,
    comm: Handle,
    rank: usize,
    size: usize,
    other: i32,
}

impl Pair<'_> {
    fn communicators(&self) -> Result {
        let Pair { mpi, comm, rank, .. } = *self;
        assert_eq!(mpi.comm_compare(comm, comm)?, Comparison::Ident);
        assert_eq!(mpi.comm_compare(comm, mpi.world())?, Comparison::Congruent);
        assert_eq!(mpi.comm_compare(comm, mpi.comm_self())?, Comparison::Unequal);
        assert!(!mpi.comm_test_inter(comm)?);
        assert!(mpi.tag_ub(comm)? >= 32767);

        let shared = mpi.comm_split_shared(comm, rank as i32)?;
        assert_eq!((mpi.comm_size(shared)?, mpi.comm_rank(shared)?), (2, rank));
        mpi.comm_free(shared)?;

        let turned = mpi.comm_split(comm, Some(7), -(rank as i32))?.expect("every rank has a color");
        assert_eq!(mpi.comm_rank(turned)?, 1 - rank);
        assert_eq!(mpi.comm_compare(comm, turned)?, Comparison::Similar);
        assert_eq!(mpi.translate_ranks(comm, &[0, 1, 0], turned)?, Some(vec![1, 0, 1]));
        assert_eq!(mpi.translate_ranks(comm, &[self.other], mpi.comm_self())?, None);
        mpi.comm_free(turned)?;

        let first = mpi.comm_split(comm, (rank == 0).then_some(0), 0)?;
        assert_eq!(first.is_some(), rank == 0);
        if let Some(first) = first {
            assert_eq!(mpi.comm_size(first)?, 1);
            mpi.comm_free(first)?;
        }

        if let Some(fortran) = mpi.comm_c2f(comm) {
            assert_eq!(mpi.comm_f2c(fortran), Some(comm));
        }
        Ok(())
    }

    fn messages(&self) -> Result {
        let Pair { mpi, comm, rank, other, .. } = *self;
        let integers = &mpi.constants().integers;
        let sent = [rank as u8 + 1; 100];
        let mut got = [0_u8; 200];
        // SAFETY: both buffers live until their requests are complete.
        let (mut receive, mut send) = unsafe {
            (
                mpi.irecv(got.as_mut_ptr(), got.len(), integers.any_source, integers.any_tag, comm)?,
                mpi.isend(sent.as_ptr(), sent.len(), other, 5, comm)?,
            )
        };
        let status = loop {
            if let Some(status) = mpi.test(&mut receive)? {
                break status;
            }
        };
        assert_eq!((status.source, status.tag, status.bytes), (other, 5, 100));
        while !mpi.test_done(&mut send)? {}
        assert_eq!((receive, send), (mpi.request_null(), mpi.request_null()));
        assert_eq!((got[99], got[100]), (other as u8 + 1, 0));

        // SAFETY: the buffers do not overlap.
        let status = unsafe {
            mpi.sendrecv(sent.as_ptr(), 7, other, 6, got.as_mut_ptr(), got.len(), other, integers.any_tag, comm)?
        };
        assert_eq!((status.source, status.tag, status.bytes), (other, 6, 7));

        if rank == 0 {
            // SAFETY: the buffer lives.
            unsafe { mpi.send(sent.as_ptr(), 3, other, 8, comm)? };
        } else {
            let seen = loop {
                if let Some(status) = mpi.iprobe(integers.any_source, 8, comm)? {
                    break status;
                }
            };
            assert_eq!((seen.source, seen.tag, seen.bytes), (0, 8, 3));
            // SAFETY: the buffer lives.
            let status = unsafe { mpi.recv(got.as_mut_ptr(), 3, seen.source, seen.tag, comm)? };
            assert_eq!((status.source, status.tag, status.bytes), (0, 8, 3));
        }

        // SAFETY: the buffer lives until the request is complete.
        let mut never = unsafe { mpi.irecv(got.as_mut_ptr(), 1, other, 31, comm)? };
        mpi.cancel(&mut never)?;
        mpi.wait(&mut never)?;
        // SAFETY: a message to nobody.
        let mut nobody = unsafe { mpi.isend(sent.as_ptr(), 1, integers.proc_null, 0, comm)? };
        mpi.wait(&mut nobody)?;
        Ok(())
    }

    fn persistent(&self) -> Result {
        let Pair { mpi, comm, rank, other, .. } = *self;
        let mut sent = [0_u8; 64];
        let mut got = [[0_u8; 64]; 3];
        let mut requests = Handles::new(mpi, 6);
        for (index, buffer) in got.iter_mut().enumerate() {
            // SAFETY: the buffers live until the requests are freed, and are touched only between rounds.
            unsafe {
                requests.set(index, mpi.recv_init(buffer.as_mut_ptr(), 64, other, index as i32, comm)?);
                requests.set(3 + index, mpi.send_init(sent.as_ptr(), 64, other, index as i32, comm)?);
            }
        }
        for round in 0..20_u8 {
            sent.fill(round * 2 + rank as u8);
            std::hint::black_box(&mut sent);
            // SAFETY: as above.
            unsafe { mpi.startall(&mut requests)? };
            match round % 3 {
                0 => mpi.waitall(&mut requests)?,
                1 => while !mpi.testall(&mut requests)? {},
                _ => {
                    let mut statuses = Statuses::new(mpi, 6);
                    mpi.waitall_statuses(&mut requests, &mut statuses)?;
                    let seen: Vec<Status> = (0..3).map(|index| statuses.get(mpi, index)).collect();
                    assert!(seen.iter().enumerate().all(|(index, status)| {
                        (status.source, status.tag, status.bytes) == (other, index as i32, 64)
                    }));
                }
            }
            std::hint::black_box(&mut got);
            assert_eq!(got, [[round * 2 + other as u8; 64]; 3]);
        }
        for index in 0..6 {
            let mut request = requests.get(index);
            if index == 0 || index == 3 {
                // SAFETY: as above; both ranks exchange one more message with tag 0.
                unsafe { mpi.start(&mut request)? };
                requests.set(index, request);
            }
        }
        for index in 0..6 {
            let mut request = requests.get(index);
            if index == 0 || index == 3 {
                mpi.wait(&mut request)?;
            }
            mpi.request_free(&mut request)?;
            assert_eq!(request, mpi.request_null());
        }
        Ok(())
    }

    fn errors(&self) -> Result {
        let Pair { mpi, comm, rank, other, .. } = *self;
        let class = |error: Error| match error {
            Error::Call { function, class, message, code } => {
                assert!(code != 0 && !message.is_empty() && !message.contains('\n'), "{message}");
                (function, class)
            }
            other => panic!("{other}"),
        };
        let mut got = [0_u8; 8];
        if rank == 0 {
            // SAFETY: the buffers live until the calls return.
            unsafe {
                mpi.send([1; 16].as_ptr(), 16, other, 1, comm)?;
                mpi.send([1; 16].as_ptr(), 16, other, 2, comm)?;
                mpi.send([1; 16].as_ptr(), 16, other, 3, comm)?;
            }
        } else {
            // MPICH asks these, and not the requests' communicator, what to do about an error of MPI_Waitall.
            mpi.comm_errors_return(mpi.world())?;
            mpi.comm_errors_return(mpi.comm_self())?;
            // SAFETY: the buffer lives until each request is complete.
            unsafe {
                let error = mpi.recv(got.as_mut_ptr(), 8, other, 1, comm).unwrap_err();
                assert_eq!(class(error), ("MPI_Recv", Class::Truncate));

                let mut request = mpi.irecv(got.as_mut_ptr(), 8, other, 2, comm)?;
                let error = loop {
                    match mpi.test(&mut request) {
                        Ok(None) => {}
                        Ok(Some(status)) => panic!("16 bytes fit into 8: {status:?}"),
                        Err(error) => break error,
                    }
                };
                assert_eq!(class(error), ("MPI_Test", Class::Truncate));

                let mut requests = Handles::new(mpi, 2);
                requests.set(1, mpi.irecv(got.as_mut_ptr(), 8, other, 3, comm)?);
                let error = mpi.waitall_statuses(&mut requests, &mut Statuses::new(mpi, 2)).unwrap_err();
                assert_eq!(class(error), ("MPI_Waitall", Class::Truncate));
            }
        }
        // SAFETY: no message leaves.
        let error = unsafe { mpi.isend(got.as_ptr(), 8, 77, 0, comm) }.unwrap_err();
        assert_eq!(class(error), ("MPI_Isend", Class::Rank));
        // SAFETY: no message leaves.
        let error = unsafe { mpi.isend(got.as_ptr(), 8, other, -77, comm) }.unwrap_err();
        assert_eq!(class(error), ("MPI_Isend", Class::Tag));
        let needs = mpi.type_create_hindexed(&[1], &[], mpi.constants().types.byte).unwrap_err();
        assert_eq!(class(needs), ("MPI_Type_create_hindexed", Class::Arg));
        mpi.barrier(comm)
    }

    fn collectives(&self) -> Result {
        let Pair { mpi, comm, rank, .. } = *self;
        let (types, ops) = (&mpi.constants().types, &mpi.constants().ops);
        let mine = [rank as f64 + 1.0, 10.0];
        let mut all = [0.0_f64; 4];
        let (send, receive) = (mine.as_ptr().cast::<c_void>(), all.as_mut_ptr().cast::<c_void>());
        // SAFETY: the buffers are long enough for every call, and complete before they are looked at.
        unsafe {
            mpi.allreduce(send, receive, 2, types.double, ops.sum, comm)?;
            assert_eq!(read(receive, 2), [3.0, 20.0]);
            mpi.allreduce(mpi.in_place(), receive, 2, types.double, ops.max, comm)?;
            assert_eq!(read(receive, 2), [3.0, 20.0]);
            mpi.reduce(send, receive, 2, types.double, ops.prod, 1, comm)?;
            assert_eq!(read(receive, 2), if rank == 1 { [2.0, 100.0] } else { [3.0, 20.0] });
            mpi.bcast(receive, 2, types.double, 1, comm)?;
            assert_eq!(read(receive, 2), [2.0, 100.0]);
            mpi.allgather(send, receive, 2, types.double, comm)?;
            assert_eq!(read(receive, 4), [1.0, 10.0, 2.0, 10.0]);
            mpi.allgatherv(send, rank + 1, receive, &[1, 2], &[2, 0], types.double, comm)?;
            assert_eq!(read(receive, 3), [2.0, 10.0, 1.0]);
            mpi.alltoall(send, receive, 1, types.double, comm)?;
            assert_eq!(read(receive, 2), if rank == 0 { [1.0, 2.0] } else { [10.0, 10.0] });
            mpi.alltoallv(send, &[1, 1], &[1, 0], receive, &[1, 1], &[1, 0], types.double, comm)?;
            assert_eq!(read(receive, 2), if rank == 0 { [10.0, 10.0] } else { [2.0, 1.0] });
            mpi.reduce_scatter(send, receive, &[1, 1], types.double, ops.sum, comm)?;
            assert_eq!(read(receive, 1), if rank == 0 { [3.0] } else { [20.0] });
            mpi.reduce_scatter_block(send, receive, 1, types.double, ops.min, comm)?;
            assert_eq!(read(receive, 1), if rank == 0 { [1.0] } else { [10.0] });
            mpi.wait(&mut mpi.iallgather(send, receive, 2, types.double, comm)?)?;
            assert_eq!(read(receive, 4), [1.0, 10.0, 2.0, 10.0]);
            mpi.wait(&mut mpi.iallreduce(send, receive, 2, types.double, ops.sum, comm)?)?;
            assert_eq!(read(receive, 2), [3.0, 20.0]);
        }
        Ok(())
    }

    fn user_operation(&self) -> Result {
        let Pair { mpi, comm, rank, .. } = *self;
        let int = mpi.constants().types.int;
        // SAFETY: the function combines as many integers as it is told to.
        let op = unsafe { mpi.op_create(farthest, true)? };
        let mine = [rank as c_int * -5, 3];
        let mut result = [0 as c_int; 2];
        // SAFETY: both buffers have two integers.
        unsafe { mpi.allreduce(mine.as_ptr().cast(), result.as_mut_ptr().cast(), 2, int, op, comm)? };
        assert_eq!(std::hint::black_box(result), [-5, 3]);
        mpi.op_free(op)
    }

    fn datatypes(&self) -> Result {
        let Pair { mpi, comm, other, .. } = *self;
        let types = &mpi.constants().types;
        assert_eq!(mpi.type_size(types.double_int)?, 12);
        assert_eq!(mpi.type_extent(types.double_int)?, (0, 16));
        assert_eq!(mpi.type_size(types.c_double_complex)?, 16);

        let ends = mpi.type_create_hindexed(&[1, 2], &[0, 6], types.byte)?;
        let mixed = mpi.type_create_struct(&[1, 1], &[0, 8], &[ends, types.double_int])?;
        let row = mpi.type_contiguous(3, mixed)?;
        mpi.type_commit(row)?;
        assert_eq!(mpi.type_size(row)?, 45);
        let sent: Vec<u8> = (0..96).collect();
        let mut got = [0_u8; 45];
        // SAFETY: the raw calls get buffers as long as the type says, and the status has room.
        unsafe {
            let mut request = 0;
            let raw = mpi.raw();
            mpi.check("MPI_Isend", (raw.isend)(sent.as_ptr().cast(), 1, row, other, 4, comm, &mut request))?;
            let status = mpi.recv(got.as_mut_ptr(), 45, other, 4, comm)?;
            assert_eq!(status.bytes, 45);
            mpi.wait(&mut request)?;
        }
        assert_eq!(got[..6], [0, 6, 7, 8, 9, 10]);
        [ends, mixed, row].into_iter().try_for_each(|datatype| mpi.type_free(datatype))
    }
}

/// The number farther from zero; checks that the datatype arrives.
unsafe extern "C" fn farthest(from: *mut c_void, into: *mut c_void, count: *mut c_int, datatype: *mut c_void) {
    let Ok(mpi) = allhands_mpi::load() else { return };
    // SAFETY: MPI passes the address of a datatype handle, of the count, and of as many integers.
    unsafe {
        if mpi.abi().read_handle(datatype) != mpi.constants().types.int {
            return;
        }
        for index in 0..*count as usize {
            let (from, into) = (*from.cast::<c_int>().add(index), &mut *into.cast::<c_int>().add(index));
            if from.abs() > into.abs() {
                *into = from;
            }
        }
    }
}

/// # Safety
/// The address must be that of `count` numbers.
unsafe fn read(address: *const c_void, count: usize) -> Vec<f64> {
    // SAFETY: the caller vouches for it.
    (0..count).map(|index| unsafe { address.cast::<f64>().add(index).read_volatile() }).collect()
}

/// A message of any length from rank 0 to rank 1.
fn large(mpi: &Mpi, bytes: usize) -> Result {
    let comm = mpi.world();
    let mut buffer = vec![0_u8; bytes];
    if mpi.comm_rank(comm)? == 0 {
        buffer[0] = 1;
        buffer[bytes - 1] = 2;
        // SAFETY: the buffer lives until the request is complete.
        mpi.wait(&mut unsafe { mpi.isend(buffer.as_ptr(), bytes, 1, 0, comm)? })?;
    } else {
        // SAFETY: as above.
        let status = mpi.wait(&mut unsafe { mpi.irecv(buffer.as_mut_ptr(), bytes, 0, 0, comm)? })?;
        assert_eq!((status.bytes, buffer[0], buffer[bytes - 1]), (bytes, 1, 2));
        println!("{} bytes arrived", status.bytes);
    }
    buffer[bytes - 1] += mpi.comm_rank(comm)? as u8;
    // SAFETY: every rank's buffer has this many bytes.
    let done = unsafe { mpi.bcast(buffer.as_mut_ptr().cast(), bytes, mpi.constants().types.byte, 1, comm) };
    if bytes > c_int::MAX as usize && mpi.raw().bcast_c.is_none() {
        assert_eq!(done, Err(Error::TooLarge { function: "MPI_Bcast", count: bytes }));
    } else {
        done?;
        assert_eq!(buffer[bytes - 1], 3);
    }
    Ok(())
}
