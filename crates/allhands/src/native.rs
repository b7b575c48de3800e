//! The MPI library's own collectives, to compare with and to call where they are faster: `Server::Library`.

use std::ffi::c_void;
use std::sync::Arc;

use allhands_mpi::{Constants, Handle, Mpi};
use allhands_schedule::{Collective, Problem, Space};

use crate::error::{Error, Result};
use crate::kernels::{Operation, Type};
use crate::layout::{Amount, Layout};
use crate::mpi_transport::Communicator;
use crate::program::Buffers;

/// A collective that MPI performs.
pub(crate) struct Native {
    mpi: &'static Mpi,
    /// None where the plan only says that MPI would do best.
    communicator: Option<Arc<Communicator>>,
    collective: Collective,
    count: usize,
    /// What each rank gives and gets, with offsets, where that differs.
    send: Parts,
    receive: Parts,
    /// Whether all ranks' counts and offsets are within what MPI's functions count; the same on every rank.
    counted: bool,
    datatype: Handle,
    op: Handle,
    root: usize,
    me: usize,
    /// Elements of the caller's buffers, and bytes of one.
    pub(crate) input: usize,
    pub(crate) output: usize,
    element: usize,
    request: Option<Handle>,
    /// The input, where MPI cannot take it in place.
    aside: Vec<u128>,
}

#[derive(Default)]
struct Parts {
    counts: Vec<i32>,
    offsets: Vec<i32>,
}

impl Parts {
    /// None of which is longer than all of them together, which are [counted](counted).
    fn of(sizes: impl Iterator<Item = usize>) -> Parts {
        let mut parts = Parts::default();
        let mut offset = 0usize;
        for size in sizes {
            parts.counts.push(size as i32);
            parts.offsets.push(offset as i32);
            offset += size;
        }
        parts
    }
}

/// Whether MPI's functions count as many elements, and their places.
fn counted(mut sizes: impl Iterator<Item = usize>) -> bool {
    let sum = sizes.try_fold(0usize, |sum, size| sum.checked_add(size));
    sum.is_some_and(|sum| i32::try_from(sum).is_ok())
}

impl Native {
    /// Bytes of an element.
    pub(crate) fn element(&self) -> usize {
        self.element
    }

    /// Whether MPI has the type and the operation.
    pub(crate) fn serves(collective: Collective, element: Type, operation: Option<Operation>) -> bool {
        let known = !matches!(element, Type::F16 | Type::BF16) && (operation.is_some() || !collective.reduces());
        known && !collective.has_graph()
    }

    /// Without a communicator it cannot run.
    pub(crate) fn new(
        mpi: Option<&'static Mpi>,
        communicator: Option<Arc<Communicator>>,
        problem: &Problem,
        me: usize,
        amount: &Amount,
        element: Type,
        operation: Option<Operation>,
    ) -> Result<Native> {
        let needs = |what: &str| Error::Operation(format!("the MPI library's own collective needs {what}"));
        let mpi = mpi.ok_or_else(|| needs("MPI ranks; run under mpirun, or name another algorithm"))?;
        let constants = mpi.constants();
        let collective = problem.collective;
        let datatype = datatype(constants, element).ok_or_else(|| {
            needs(&format!("an element type that MPI has, which {} is not; name another algorithm", element.name()))
        })?;
        let op = match operation {
            Some(operation) => op(constants, operation),
            None if collective.reduces() => return Err(needs("a predefined operation; name another algorithm")),
            None => 0,
        };
        if collective.has_graph() {
            return Err(needs("a communicator that has the graph; call it there, or name another algorithm"));
        }
        let p = problem.ranks();
        let blocks = problem.blocks().unwrap_or(1);
        let layout = Layout::new(problem, me, blocks, element.size(), amount);
        let (mut send, mut receive, mut fits) = (Parts::default(), Parts::default(), true);
        match collective {
            Collective::Allgatherv | Collective::ReduceScatter | Collective::Gatherv => {
                let all = (0..p).map(|rank| layout.elements(rank));
                (receive, fits) = (Parts::of(all.clone()), counted(all));
            }
            Collective::Scatterv => {
                let all = (0..p).map(|rank| layout.elements(rank));
                (send, fits) = (Parts::of(all.clone()), counted(all));
            }
            Collective::Alltoallv => {
                let from = |source: usize| (0..p).map(move |rank| (source, rank));
                let to = |target: usize| (0..p).map(move |rank| (rank, target));
                let elements = |(source, target): (usize, usize)| layout.elements(source * p + target);
                (send, receive) = (Parts::of(from(me).map(elements)), Parts::of(to(me).map(elements)));
                fits = (0..p).all(|rank| counted(from(rank).map(elements)) && counted(to(rank).map(elements)));
            }
            _ => {}
        }
        let count = match amount {
            Amount::Each(count) => *count,
            Amount::Listed(_) | Amount::Own { .. } => layout.extent(Space::Input),
        };
        Ok(Native {
            mpi,
            collective,
            count,
            send,
            receive,
            counted: fits,
            datatype,
            op,
            root: problem.root,
            me,
            input: layout.extent(Space::Input),
            output: layout.extent(Space::Output),
            element: element.size(),
            request: None,
            aside: Vec::new(),
            communicator,
        })
    }

    /// The communicator that MPI calls it on.
    fn comm(&self) -> Result<Handle> {
        self.communicator.as_ref().map(|communicator| communicator.handle()).ok_or_else(|| {
            let text = "a plan that runs only if it is ours has found the MPI library's own collective best; call that";
            Error::Operation(text.into())
        })
    }

    /// The buffers, with addresses of their own where there is nothing: memory of no elements may be said to be where the other buffer is, or where
    /// `MPI_IN_PLACE` is, which is 1 in Open MPI.
    fn addresses(&self, buffers: Buffers, input: *const u8, output: *mut u8) -> (*const u8, *mut u8) {
        static NOTHING: [u128; 2] = [0; 2];
        let [given, gotten] = NOTHING.each_ref().map(|nothing| (&raw const *nothing).cast::<u8>());
        let longer = if buffers == Buffers::InPlace { self.input.max(self.output) } else { self.output };
        let input = if self.input == 0 { given } else { input };
        // Nothing is written there.
        (input, if longer == 0 { gotten.cast_mut() } else { output })
    }

    /// Where MPI finds the input: in place, at its own address, or moved aside. A plan that MPI cannot count may be made, if only to find
    /// out that the MPI's own function is to be called as the program calls it, but not run.
    ///
    /// # Safety
    /// As for [`run`](Native::run).
    unsafe fn source(&mut self, buffers: Buffers, input: *const u8, output: *mut u8) -> Result<*const c_void> {
        if !self.counted {
            let text = "MPI's own vector collectives count to 2^31; use another algorithm";
            return Err(Error::Operation(text.into()));
        }
        if buffers == Buffers::Apart {
            return Ok(input.cast());
        }
        Ok(match self.collective {
            // In place, MPI asks an alltoallv for counts that are the same both ways, and leaves a scatter's own block where it is.
            Collective::Alltoallv | Collective::Scatter | Collective::Scatterv => {
                let bytes = self.input * self.element;
                self.aside.resize(bytes.div_ceil(16), 0);
                // SAFETY: the buffer holds the input at its beginning.
                unsafe { std::ptr::copy_nonoverlapping(output, self.aside.as_mut_ptr().cast(), bytes) };
                self.aside.as_ptr().cast()
            }
            Collective::Reduce | Collective::Gather | Collective::Gatherv if self.me != self.root => {
                output.cast_const().cast()
            }
            Collective::Exscan if self.me == 0 => output.cast_const().cast(),
            _ => self.mpi.in_place().cast_const(),
        })
    }

    /// Where MPI puts the output: of an exscan's first rank MPI does not say that it leaves it alone.
    fn target(&mut self, output: *mut u8) -> *mut c_void {
        if self.collective == Collective::Exscan && self.me == 0 {
            self.aside.resize((self.count * self.element).div_ceil(16), 0);
            return self.aside.as_mut_ptr().cast();
        }
        output.cast()
    }

    /// Performs the collective.
    ///
    /// # Safety
    /// `input` is readable and `output` writable for as many elements as this says; in place, `output` for the longer of both.
    pub(crate) unsafe fn run(&mut self, buffers: Buffers, input: *const u8, output: *mut u8) -> Result<()> {
        let (input, output) = self.addresses(buffers, input, output);
        // SAFETY: the caller's promise.
        let from = unsafe { self.source(buffers, input, output)? };
        let (mpi, comm, to) = (self.mpi, self.comm()?, self.target(output));
        let (count, datatype, op, root) = (self.count, self.datatype, self.op, self.root as i32);
        let Parts { counts, offsets } = &self.receive;
        // SAFETY: buffers of these counts; `in_place` stands for the output where MPI allows it.
        unsafe {
            match self.collective {
                Collective::Allgather => mpi.allgather(from, to, count, datatype, comm),
                Collective::Allgatherv => mpi.allgatherv(from, self.input, to, counts, offsets, datatype, comm),
                Collective::Alltoall => mpi.alltoall(from, to, count, datatype, comm),
                Collective::Alltoallv => {
                    let Parts { counts: sent, offsets: places } = &self.send;
                    mpi.alltoallv(from, sent, places, to, counts, offsets, datatype, comm)
                }
                Collective::Allreduce => mpi.allreduce(from, to, count, datatype, op, comm),
                Collective::ReduceScatter => mpi.reduce_scatter(from, to, counts, datatype, op, comm),
                Collective::ReduceScatterBlock => mpi.reduce_scatter_block(from, to, count, datatype, op, comm),
                Collective::Bcast => {
                    self.own_part(buffers, input, output);
                    mpi.bcast(to, count, datatype, root, comm)
                }
                Collective::Reduce => mpi.reduce(from, to, count, datatype, op, root, comm),
                Collective::Gather => mpi.gather(from, to, count, datatype, root, comm),
                Collective::Gatherv => mpi.gatherv(from, self.input, to, counts, offsets, datatype, root, comm),
                Collective::Scatter => mpi.scatter(from, to, count, datatype, root, comm),
                Collective::Scatterv => {
                    let Parts { counts: sent, offsets: places } = &self.send;
                    mpi.scatterv(from, sent, places, to, self.output, datatype, root, comm)
                }
                Collective::Scan => mpi.scan(from, to, count, datatype, op, comm),
                Collective::Exscan => mpi.exscan(from, to, count, datatype, op, comm),
                Collective::NeighborAllgather
                | Collective::NeighborAllgatherv
                | Collective::NeighborAlltoall
                | Collective::NeighborAlltoallv => unreachable!("refused when it was made"),
                Collective::Barrier => mpi.barrier(comm),
            }?;
        }
        Ok(())
    }

    /// Begins the collective.
    ///
    /// # Safety
    /// As for [`run`](Native::run), until [`test`](Native::test) is true.
    pub(crate) unsafe fn start(&mut self, buffers: Buffers, input: *const u8, output: *mut u8) -> Result<()> {
        let (input, output) = self.addresses(buffers, input, output);
        // SAFETY: the caller's promise.
        let from = unsafe { self.source(buffers, input, output)? };
        let (mpi, comm, to) = (self.mpi, self.comm()?, self.target(output));
        let (count, datatype, op, root) = (self.count, self.datatype, self.op, self.root as i32);
        let Parts { counts, offsets } = &self.receive;
        // SAFETY: buffers of these counts, and arrays that stay, until the request is complete.
        self.request = Some(unsafe {
            match self.collective {
                Collective::Allgather => mpi.iallgather(from, to, count, datatype, comm),
                Collective::Allgatherv => mpi.iallgatherv(from, self.input, to, counts, offsets, datatype, comm),
                Collective::Alltoall => mpi.ialltoall(from, to, count, datatype, comm),
                Collective::Alltoallv => {
                    let Parts { counts: sent, offsets: places } = &self.send;
                    mpi.ialltoallv(from, sent, places, to, counts, offsets, datatype, comm)
                }
                Collective::Allreduce => mpi.iallreduce(from, to, count, datatype, op, comm),
                Collective::ReduceScatter => mpi.ireduce_scatter(from, to, counts, datatype, op, comm),
                Collective::ReduceScatterBlock => mpi.ireduce_scatter_block(from, to, count, datatype, op, comm),
                Collective::Bcast => {
                    self.own_part(buffers, input, output);
                    mpi.ibcast(to, count, datatype, root, comm)
                }
                Collective::Reduce => mpi.ireduce(from, to, count, datatype, op, root, comm),
                Collective::Gather => mpi.igather(from, to, count, datatype, root, comm),
                Collective::Gatherv => mpi.igatherv(from, self.input, to, counts, offsets, datatype, root, comm),
                Collective::Scatter => mpi.iscatter(from, to, count, datatype, root, comm),
                Collective::Scatterv => {
                    let Parts { counts: sent, offsets: places } = &self.send;
                    mpi.iscatterv(from, sent, places, to, self.output, datatype, root, comm)
                }
                Collective::Scan => mpi.iscan(from, to, count, datatype, op, comm),
                Collective::Exscan => mpi.iexscan(from, to, count, datatype, op, comm),
                Collective::NeighborAllgather
                | Collective::NeighborAllgatherv
                | Collective::NeighborAlltoall
                | Collective::NeighborAlltoallv => unreachable!("refused when it was made"),
                Collective::Barrier => mpi.ibarrier(comm),
            }?
        });
        Ok(())
    }

    /// Puts what the root of a bcast gives where MPI takes it.
    ///
    /// # Safety
    /// As for [`run`](Native::run).
    unsafe fn own_part(&self, buffers: Buffers, input: *const u8, output: *mut u8) {
        if self.me == self.root && buffers == Buffers::Apart {
            // SAFETY: as many bytes as the caller says.
            unsafe { std::ptr::copy_nonoverlapping(input, output, self.count * self.element) };
        }
    }

    /// Whether what was begun is complete.
    pub(crate) fn test(&mut self) -> Result<bool> {
        if let Some(request) = &mut self.request
            && !self.mpi.test_done(request)?
        {
            return Ok(false);
        }
        self.request = None;
        Ok(true)
    }

    /// Whether MPI still uses the buffers.
    pub(crate) fn active(&self) -> bool {
        self.request.is_some()
    }
}

fn datatype(constants: &Constants, element: Type) -> Option<Handle> {
    let types = &constants.types;
    Some(match element {
        Type::I8 => types.int8_t,
        Type::I16 => types.int16_t,
        Type::I32 => types.int32_t,
        Type::I64 => types.int64_t,
        Type::U8 => types.uint8_t,
        Type::U16 => types.uint16_t,
        Type::U32 => types.uint32_t,
        Type::U64 => types.uint64_t,
        Type::F32 => types.float,
        Type::F64 => types.double,
        Type::C32 => types.c_float_complex,
        Type::C64 => types.c_double_complex,
        Type::Bool => types.c_bool,
        Type::FloatInt => types.float_int,
        Type::DoubleInt => types.double_int,
        Type::LongInt => types.long_int,
        Type::TwoInt => types.two_int,
        Type::ShortInt => types.short_int,
        Type::F16 | Type::BF16 => return None,
    })
}

fn op(constants: &Constants, operation: Operation) -> Handle {
    let ops = &constants.ops;
    match operation {
        Operation::Sum => ops.sum,
        Operation::Product => ops.prod,
        Operation::Min => ops.min,
        Operation::Max => ops.max,
        Operation::LogicalAnd => ops.land,
        Operation::LogicalOr => ops.lor,
        Operation::LogicalXor => ops.lxor,
        Operation::BitAnd => ops.band,
        Operation::BitOr => ops.bor,
        Operation::BitXor => ops.bxor,
        Operation::MinLoc => ops.minloc,
        Operation::MaxLoc => ops.maxloc,
    }
}
