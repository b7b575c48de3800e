//! Making plans: a function for each collective, with the arguments of MPI's persistent form.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::{null_mut, without_provenance_mut};
use std::sync::Arc;

use allhands::Options;
use allhands_call::{Caller, Reason, Task, Unserved};
use allhands_mpi::Handle;

use super::arguments::{self, Arguments, array, count, wide};
use super::communicators;
use super::error::{Result, allhands_code::*, fault};
use super::functions::{allhands_plan, guarded};
use super::plan::Plan;
use super::stage;

// Under their names in the header, where they are those of the program's mpi.h.
pub(crate) type MPI_Comm = Handle;
pub(crate) type MPI_Datatype = Handle;
pub(crate) type MPI_Op = Handle;

/// Where a plan is made, how, and where its pointer goes.
pub(super) struct PlanTarget {
    pub(super) comm: MPI_Comm,
    pub(super) options: *const c_char,
    pub(super) plan: *mut *mut allhands_plan,
}

impl PlanTarget {
    /// # Safety
    /// The options are null or a text, the plan's address is null or writable.
    pub(super) unsafe fn make(self, read: impl FnOnce(Arguments<'_>) -> Result<Task>) -> c_int {
        // SAFETY: the caller's promise.
        guarded(|| unsafe {
            if self.plan.is_null() {
                return fault(ALLHANDS_ERR_ARGUMENT, "plan is NULL; pass the address of an allhands_plan pointer");
            }
            *self.plan = null_mut();
            let number = stage::keep(self.planned(read)?);
            *self.plan = without_provenance_mut(number);
            Ok(())
        })
    }

    /// # Safety
    /// As for [`make`](PlanTarget::make).
    unsafe fn planned(&self, read: impl FnOnce(Arguments<'_>) -> Result<Task>) -> Result<Plan> {
        let types = stage::types()?;
        let mpi = types.mpi();
        let comm = mpi.abi().handle(self.comm);
        if comm == mpi.constants().handles.comm_null {
            return fault(ALLHANDS_ERR_COMM, "the communicator is MPI_COMM_NULL; pass one that this process is in");
        }
        // SAFETY: the caller's promise.
        let algorithm = unsafe { arguments::algorithm(self.options)? };
        let member = communicators::member(mpi, comm)?;
        let neighborhood = || Ok(Arc::new(member.lock().neighborhood(mpi, &member.comm)?));
        let caller = Caller { types, comm: &member.comm, said: None, neighborhood: &neighborhood };
        let mut task = read(Arguments { caller })?;
        // Nothing tells that the program frees its operation.
        if task.called.is_some() {
            return Err(Unserved::from(Reason::Outlasting).into());
        }
        if task.aliased() {
            return fault(
                ALLHANDS_ERR_ARGUMENT,
                "no plan serves an input that is the output; pass MPI_IN_PLACE to work in place",
            );
        }
        task.hold(mpi)?;
        let ours = member.lock();
        let plan = match &task.hood {
            Some(hood) => ours.plan_among_neighbors(&task.call, hood, algorithm)?,
            None => {
                ours.agree_on_counts(&mut task, member.comm.rank)?;
                ours.plan(&task.call, &algorithm.map_or_else(Options::new, |name| Options::new().algorithm(name)))?
            }
        };
        drop(ours);
        Ok(Plan::new(mpi, member, plan, task))
    }
}

/// Makes a plan for an allgather: every rank gets the blocks of all, in the order of ranks.
///
/// The arguments are those of `MPI_Allgather_init`, with an algorithm in place of the info; so it is with all functions that end in
/// `_init`. `options` is NULL, and the library chooses, or the name of an algorithm with its parameters, such as
/// "loc-bruck:fan=full" (`allhands list` prints them all; "mpi" is the MPI's own); one that cannot serve is an error. The send
/// buffer may be `MPI_IN_PLACE` where MPI allows it. Buffers must stay until the plan is freed; communicator and datatypes may be
/// freed before.
///
/// Making a plan is collective: all ranks of the communicator make their plans in the same order with matching arguments, and the first
/// one on a communicator takes longer. Runs that are under way do not move on meanwhile. A rank that gets an error here has no plan
/// (`*plan` is NULL), and the others cannot run theirs.
///
/// Limits: a block, or the vector of a reduction, has at most 1 GiB; no intercommunicators; reductions of MPI's own datatypes.
///
/// Errors: `ALLHANDS_ERR_ARGUMENT`, `ALLHANDS_ERR_COMM`, `ALLHANDS_ERR_TYPE`, `ALLHANDS_ERR_OP`, `ALLHANDS_ERR_ALGORITHM`,
/// `ALLHANDS_ERR_UNSUPPORTED`, `ALLHANDS_ERR_NOT_INITIALIZED`, `ALLHANDS_ERR_FINALIZED`, `ALLHANDS_ERR_MISMATCH`, `ALLHANDS_ERR_RANK`,
/// `ALLHANDS_ERR_MPI`, `ALLHANDS_ERR_SYSTEM`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allhands_allgather_init(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: MPI_Datatype,
    comm: MPI_Comm,
    options: *const c_char,
    plan: *mut *mut allhands_plan,
) -> c_int {
    // SAFETY: the program's arguments.
    unsafe {
        PlanTarget { comm, options, plan }.make(|arguments| {
            let send = arguments.send(sendbuf, sendcount, sendtype)?;
            let receive = (recvbuf, count(recvcount)?, arguments.datatype(recvtype)?);
            Ok(arguments.caller.allgather(send, receive)?)
        })
    }
}

/// Makes a plan for an allgather of blocks that differ in size: as `MPI_Allgatherv_init`, with arrays of 64-bit numbers, which are read
/// at once. All ranks pass the same counts. Otherwise as `allhands_allgather_init`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allhands_allgatherv_init(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcounts: *const i64,
    displs: *const i64,
    recvtype: MPI_Datatype,
    comm: MPI_Comm,
    options: *const c_char,
    plan: *mut *mut allhands_plan,
) -> c_int {
    // SAFETY: the program's arguments.
    unsafe {
        PlanTarget { comm, options, plan }.make(|arguments| {
            let send = arguments.send(sendbuf, sendcount, sendtype)?;
            let (counts, places) = (wide(array(recvcounts)?), wide(array(displs)?));
            let datatype = arguments.datatype(recvtype)?;
            Ok(arguments.caller.allgatherv(send, recvbuf, counts, places, datatype)?)
        })
    }
}

/// Makes a plan for an alltoall: every rank has a block for each rank. As `MPI_Alltoall_init`; otherwise as `allhands_allgather_init`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allhands_alltoall_init(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: MPI_Datatype,
    comm: MPI_Comm,
    options: *const c_char,
    plan: *mut *mut allhands_plan,
) -> c_int {
    // SAFETY: the program's arguments.
    unsafe {
        PlanTarget { comm, options, plan }.make(|arguments| {
            let send = arguments.send(sendbuf, sendcount, sendtype)?;
            let receive = (recvbuf, count(recvcount)?, arguments.datatype(recvtype)?);
            Ok(arguments.caller.alltoall(send, receive)?)
        })
    }
}

/// Makes a plan for an alltoall of blocks that differ in size: as `MPI_Alltoallv_init`, with arrays of 64-bit numbers, which are read at
/// once. Ranks tell each other their counts here; runs do not. Otherwise as `allhands_allgather_init`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allhands_alltoallv_init(
    sendbuf: *const c_void,
    sendcounts: *const i64,
    sdispls: *const i64,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcounts: *const i64,
    rdispls: *const i64,
    recvtype: MPI_Datatype,
    comm: MPI_Comm,
    options: *const c_char,
    plan: *mut *mut allhands_plan,
) -> c_int {
    // SAFETY: the program's arguments.
    unsafe {
        PlanTarget { comm, options, plan }.make(|arguments| {
            let receive = (recvbuf, wide(array(recvcounts)?), wide(array(rdispls)?), arguments.datatype(recvtype)?);
            let send = match arguments.in_place(sendbuf) {
                true => (sendbuf, receive.1, receive.2, receive.3),
                false => (sendbuf, wide(array(sendcounts)?), wide(array(sdispls)?), arguments.datatype(sendtype)?),
            };
            Ok(arguments.caller.alltoallv(send, receive)?)
        })
    }
}

/// Makes a plan for an alltoall of blocks that differ in size and in datatype: as `MPI_Alltoallw_init`, with arrays of 64-bit numbers,
/// which are read at once, as are those of datatypes. Displacements are in bytes. The datatype of a block of nothing is not looked at. Ranks
/// tell each other their counts here; runs do not. Algorithms are those of an alltoallv, whose bytes these blocks are. Otherwise as
/// `allhands_allgather_init`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allhands_alltoallw_init(
    sendbuf: *const c_void,
    sendcounts: *const i64,
    sdispls: *const i64,
    sendtypes: *const MPI_Datatype,
    recvbuf: *mut c_void,
    recvcounts: *const i64,
    rdispls: *const i64,
    recvtypes: *const MPI_Datatype,
    comm: MPI_Comm,
    options: *const c_char,
    plan: *mut *mut allhands_plan,
) -> c_int {
    // SAFETY: the program's arguments.
    unsafe {
        PlanTarget { comm, options, plan }.make(|arguments| {
            let (counts, places, datatypes) = arguments.mixed(recvcounts, rdispls, recvtypes)?;
            let receive = (recvbuf, counts, places, datatypes);
            let (counts, places, datatypes) = match arguments.in_place(sendbuf) {
                true => (counts, places, datatypes),
                false => arguments.mixed(sendcounts, sdispls, sendtypes)?,
            };
            Ok(arguments.caller.alltoallw((sendbuf, counts, places, datatypes), receive)?)
        })
    }
}

/// Makes a plan for a gather: the root gets the blocks of all, in the order of ranks. As `MPI_Gather_init`: on other ranks the receive
/// buffer, its count and its datatype are not looked at, and only the root's send buffer may be `MPI_IN_PLACE`. Otherwise as
/// `allhands_allgather_init`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allhands_gather_init(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: MPI_Datatype,
    root: c_int,
    comm: MPI_Comm,
    options: *const c_char,
    plan: *mut *mut allhands_plan,
) -> c_int {
    // SAFETY: the program's arguments.
    unsafe {
        PlanTarget { comm, options, plan }.make(|arguments| {
            let root = arguments.root(root)?;
            let (sent, send_type) = arguments.own(root, sendbuf, sendcount, sendtype)?;
            let (received, receive_type) = arguments.every(root, recvcount, recvtype)?;
            Ok(arguments.caller.gather((sendbuf, sent, send_type), (recvbuf, received, receive_type), root)?)
        })
    }
}

/// Makes a plan for a gather of blocks that differ in size: as `MPI_Gatherv_init`, with arrays of 64-bit numbers, which are read at once,
/// and only at the root. Ranks tell each other their counts here; runs do not. Otherwise as `allhands_gather_init`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allhands_gatherv_init(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcounts: *const i64,
    displs: *const i64,
    recvtype: MPI_Datatype,
    root: c_int,
    comm: MPI_Comm,
    options: *const c_char,
    plan: *mut *mut allhands_plan,
) -> c_int {
    // SAFETY: the program's arguments.
    unsafe {
        PlanTarget { comm, options, plan }.make(|arguments| {
            let root = arguments.root(root)?;
            let (sent, send_type) = arguments.own(root, sendbuf, sendcount, sendtype)?;
            let (counts, places, datatype) = arguments.listed(root, recvcounts, displs, recvtype)?;
            Ok(arguments.caller.gatherv((sendbuf, sent, send_type), recvbuf, counts, places, datatype, root)?)
        })
    }
}

/// Makes a plan for a scatter: rank i gets the i-th block of the root. As `MPI_Scatter_init`: on other ranks the send buffer, its count and
/// its datatype are not looked at, and only the root's receive buffer may be `MPI_IN_PLACE`: its own block stays where it is. Otherwise as
/// `allhands_allgather_init`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allhands_scatter_init(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: MPI_Datatype,
    root: c_int,
    comm: MPI_Comm,
    options: *const c_char,
    plan: *mut *mut allhands_plan,
) -> c_int {
    // SAFETY: the program's arguments.
    unsafe {
        PlanTarget { comm, options, plan }.make(|arguments| {
            let root = arguments.root(root)?;
            let (sent, send_type) = arguments.every(root, sendcount, sendtype)?;
            let (received, receive_type) = arguments.own(root, recvbuf, recvcount, recvtype)?;
            Ok(arguments.caller.scatter((sendbuf, sent, send_type), (recvbuf, received, receive_type), root)?)
        })
    }
}

/// Makes a plan for a scatter of blocks that differ in size: as `MPI_Scatterv_init`, with arrays of 64-bit numbers, which are read at once,
/// and only at the root. Ranks tell each other their counts here; runs do not. Otherwise as `allhands_scatter_init`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allhands_scatterv_init(
    sendbuf: *const c_void,
    sendcounts: *const i64,
    displs: *const i64,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: MPI_Datatype,
    root: c_int,
    comm: MPI_Comm,
    options: *const c_char,
    plan: *mut *mut allhands_plan,
) -> c_int {
    // SAFETY: the program's arguments.
    unsafe {
        PlanTarget { comm, options, plan }.make(|arguments| {
            let root = arguments.root(root)?;
            let (counts, places, datatype) = arguments.listed(root, sendcounts, displs, sendtype)?;
            let (received, receive_type) = arguments.own(root, recvbuf, recvcount, recvtype)?;
            let receive = (recvbuf, received, receive_type);
            Ok(arguments.caller.scatterv(sendbuf, counts, places, datatype, receive, root)?)
        })
    }
}

/// Makes a plan for an allreduce: every rank gets the combination of all vectors, the same bits everywhere. As `MPI_Allreduce_init`;
/// otherwise as `allhands_allgather_init`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allhands_allreduce_init(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: i64,
    datatype: MPI_Datatype,
    op: MPI_Op,
    comm: MPI_Comm,
    options: *const c_char,
    plan: *mut *mut allhands_plan,
) -> c_int {
    // SAFETY: the program's arguments.
    unsafe {
        PlanTarget { comm, options, plan }.make(|arguments| {
            let (datatype, op) = arguments.reduction(datatype, op)?;
            Ok(arguments.caller.allreduce(sendbuf, recvbuf, arguments::count(count)?, datatype, op)?)
        })
    }
}

/// Makes a plan for a reduce_scatter: the vectors are combined, and rank i gets the i-th block, of `recvcounts[i]` elements. As
/// `MPI_Reduce_scatter_init`, with an array of 64-bit numbers, which is read at once; otherwise as `allhands_allgather_init`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allhands_reduce_scatter_init(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    recvcounts: *const i64,
    datatype: MPI_Datatype,
    op: MPI_Op,
    comm: MPI_Comm,
    options: *const c_char,
    plan: *mut *mut allhands_plan,
) -> c_int {
    // SAFETY: the program's arguments.
    unsafe {
        PlanTarget { comm, options, plan }.make(|arguments| {
            let (datatype, op) = arguments.reduction(datatype, op)?;
            let counts = wide(array(recvcounts)?);
            Ok(arguments.caller.reduce_scatter(sendbuf, recvbuf, counts, datatype, op)?)
        })
    }
}

/// Makes a plan for a reduce_scatter with blocks of one size. As `MPI_Reduce_scatter_block_init`; otherwise as `allhands_allgather_init`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allhands_reduce_scatter_block_init(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    recvcount: i64,
    datatype: MPI_Datatype,
    op: MPI_Op,
    comm: MPI_Comm,
    options: *const c_char,
    plan: *mut *mut allhands_plan,
) -> c_int {
    // SAFETY: the program's arguments.
    unsafe {
        PlanTarget { comm, options, plan }.make(|arguments| {
            let (datatype, op) = arguments.reduction(datatype, op)?;
            Ok(arguments.caller.reduce_scatter_block(sendbuf, recvbuf, count(recvcount)?, datatype, op)?)
        })
    }
}

/// Makes a plan for a broadcast from the root. As `MPI_Bcast_init`; otherwise as `allhands_allgather_init`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allhands_bcast_init(
    buffer: *mut c_void,
    count: i64,
    datatype: MPI_Datatype,
    root: c_int,
    comm: MPI_Comm,
    options: *const c_char,
    plan: *mut *mut allhands_plan,
) -> c_int {
    // SAFETY: the program's arguments.
    unsafe {
        PlanTarget { comm, options, plan }.make(|arguments| {
            let (datatype, root) = (arguments.datatype(datatype)?, arguments.root(root)?);
            Ok(arguments.caller.bcast(buffer, arguments::count(count)?, datatype, root)?)
        })
    }
}

/// Makes a plan for a reduction to the root. As `MPI_Reduce_init`; otherwise as `allhands_allgather_init`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allhands_reduce_init(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: i64,
    datatype: MPI_Datatype,
    op: MPI_Op,
    root: c_int,
    comm: MPI_Comm,
    options: *const c_char,
    plan: *mut *mut allhands_plan,
) -> c_int {
    // SAFETY: the program's arguments.
    unsafe {
        PlanTarget { comm, options, plan }.make(|arguments| {
            let (datatype, op) = arguments.reduction(datatype, op)?;
            let (count, root) = (arguments::count(count)?, arguments.root(root)?);
            Ok(arguments.caller.reduce(sendbuf, recvbuf, count, datatype, op, root)?)
        })
    }
}

/// Makes a plan for a scan: rank i gets the combination of the vectors of ranks 0 to i, in this order. As `MPI_Scan_init`; otherwise as
/// `allhands_allgather_init`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allhands_scan_init(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: i64,
    datatype: MPI_Datatype,
    op: MPI_Op,
    comm: MPI_Comm,
    options: *const c_char,
    plan: *mut *mut allhands_plan,
) -> c_int {
    // SAFETY: the program's arguments.
    unsafe {
        PlanTarget { comm, options, plan }.make(|arguments| {
            let (datatype, op) = arguments.reduction(datatype, op)?;
            Ok(arguments.caller.scan(sendbuf, recvbuf, arguments::count(count)?, datatype, op)?)
        })
    }
}

/// Makes a plan for an exclusive scan: rank i gets the combination of the vectors of ranks 0 to i - 1, in this order. Rank 0, before which
/// there is none, gets nothing: its receive buffer is not looked at, and in place it means nothing afterwards. As `MPI_Exscan_init`;
/// otherwise as `allhands_allgather_init`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allhands_exscan_init(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: i64,
    datatype: MPI_Datatype,
    op: MPI_Op,
    comm: MPI_Comm,
    options: *const c_char,
    plan: *mut *mut allhands_plan,
) -> c_int {
    // SAFETY: the program's arguments.
    unsafe {
        PlanTarget { comm, options, plan }.make(|arguments| {
            let (datatype, op) = arguments.reduction(datatype, op)?;
            Ok(arguments.caller.exscan(sendbuf, recvbuf, arguments::count(count)?, datatype, op)?)
        })
    }
}

/// Makes a plan for a barrier: no rank completes before all have started. Otherwise as `allhands_allgather_init`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allhands_barrier_init(
    comm: MPI_Comm,
    options: *const c_char,
    plan: *mut *mut allhands_plan,
) -> c_int {
    // SAFETY: the program's arguments.
    unsafe { PlanTarget { comm, options, plan }.make(|arguments| Ok(arguments.caller.barrier()?)) }
}
