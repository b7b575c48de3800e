//! Collectives on plain memory, for callers that learn at run time what they are asked for: MPI's functions, and C.
//!
//! ```no_run
//! use allhands::Options;
//! use allhands::kernels::{Operation, Type};
//! use allhands::raw::{Amount, RawCall, RawComm};
//! use allhands_schedule::Collective;
//!
//! # let world = 0;
//! // SAFETY: a communicator of the MPI in this process.
//! let comm = unsafe { RawComm::from_mpi(world)? };
//! let call = RawCall {
//!     collective: Collective::Allreduce,
//!     amount: Amount::Each(3),
//!     element: Type::F64,
//!     operation: Some(Operation::Sum.into()),
//!     root: 0,
//! };
//! let mut plan = comm.plan(&call, &Options::new())?;
//! let (x, mut y) = ([1.0_f64; 3], [0.0_f64; 3]);
//! // SAFETY: three aligned elements each.
//! unsafe { plan.run(x.as_ptr().cast(), y.as_mut_ptr().cast())? };
//! # Ok::<(), allhands::Error>(())
//! ```

use std::sync::Arc;

use allhands_schedule::Collective;

use crate::comm::Comm;
use crate::error::{Error, Result};
use crate::kernels::{Operation, Type};
pub use crate::layout::Amount;
use crate::native;
use crate::op::Late;
use crate::plan::{Options, Plan};
use crate::program::Buffers;

/// What is asked for, in values instead of types. Every rank must ask for the same.
///
/// ```
/// use allhands::kernels::Type;
/// use allhands::raw::{Amount, RawCall};
/// use allhands_schedule::Collective;
/// // 40 bytes from rank 2 for all.
/// let call = RawCall {
///     collective: Collective::Bcast,
///     amount: Amount::Each(40),
///     element: Type::U8,
///     operation: None,
///     root: 2,
/// };
/// # let _ = call;
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RawCall {
    /// Which collective.
    pub collective: Collective,
    /// How many elements.
    pub amount: Amount,
    /// Of which type. What is only moved may as well be bytes.
    pub element: Type,
    /// How they are combined, in a reduction.
    pub operation: Option<RawOperation>,
    /// The special rank of bcast and reduce; 0 otherwise.
    pub root: usize,
}

/// How elements are combined.
///
/// ```
/// use allhands::kernels::Operation;
/// use allhands::raw::RawOperation;
/// // Affine maps, of two words each.
/// let own = RawOperation::Own { bytes: 16, commutative: false };
/// assert_ne!(own, Operation::Sum.into());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RawOperation {
    /// One of MPI's, on elements of the call's type.
    Predefined(Operation),
    /// The caller's own, which [`RawPlan::combine_by`] names, on elements of so many bytes, whatever the call's type. An element
    /// may be of any size, and is always combined as a whole. Where the operation does not commute, ranks are combined in order.
    Own {
        /// Of an element.
        bytes: usize,
        /// Whether operands may be combined in any order.
        commutative: bool,
    },
}

impl From<Operation> for RawOperation {
    fn from(operation: Operation) -> RawOperation {
        RawOperation::Predefined(operation)
    }
}

/// The ranks of an MPI communicator, bound to no thread: any thread may use it and its plans, one at a time, if all of them move
/// together. (The compiler is not told, since it could not see that they do.)
pub struct RawComm(Comm);

impl RawComm {
    /// As [`Comm::from_mpi`].
    ///
    /// # Safety
    /// As there.
    pub unsafe fn from_mpi(handle: usize) -> Result<RawComm> {
        // SAFETY: the caller's promise.
        let comm = unsafe { Comm::from_mpi(handle)? };
        comm.leave_thread();
        Ok(RawComm(comm))
    }

    /// A plan for a call.
    pub fn plan(&self, call: &RawCall, options: &Options) -> Result<RawPlan> {
        self.0.raw_plan(call, options)
    }

    /// Which rank this is.
    pub fn rank(&self) -> usize {
        self.0.rank()
    }

    /// How many there are.
    pub fn size(&self) -> usize {
        self.0.size()
    }
}

/// A [`Plan`] on plain memory.
pub struct RawPlan(Plan<u8>, Option<Own>);

/// The operation of a plan, if it is the caller's own.
struct Own {
    operation: Arc<Late>,
    /// Whether the plan performs it; else it only says that the MPI does best.
    performed: bool,
}

impl RawPlan {
    pub(crate) fn new(plan: Plan<u8>, own: Option<Arc<Late>>) -> RawPlan {
        let performed = plan.algorithm() != native::NAME;
        RawPlan(plan, own.map(|operation| Own { operation, performed }))
    }

    /// From now on the plan's [own operation](RawOperation::Own) is this one: for so many elements `right = left op right`,
    /// where `left` can be read and `right` read and written. Each run may have another one, all ranks the same.
    ///
    /// ```no_run
    /// # fn example(mut plan: allhands::raw::RawPlan) {
    /// // Elements of one byte, of which the right one counts.
    /// plan.combine_by(|_left, _right, _count| ());
    /// # }
    /// ```
    pub fn combine_by(&mut self, operation: impl Fn(*const u8, *mut u8, usize) + Send + Sync + 'static) {
        if let Some(own) = &self.1 {
            own.operation.set(Arc::new(operation));
        }
    }

    /// Runs the collective to its end.
    ///
    /// # Safety
    /// The input can be read and the output written for as many elements as the call says for this rank, both aligned for the
    /// element type and not overlapping. An operation of the caller's own touches its operands only.
    pub unsafe fn run(&mut self, input: *const u8, output: *mut u8) -> Result<()> {
        self.check()?;
        // SAFETY: the caller's promise.
        unsafe { self.0.run_at(Buffers::Apart, input, output) }
    }

    /// The same with the input in the output's place: in an allgather at this rank's block, else from the start.
    ///
    /// # Safety
    /// As for [`run`](RawPlan::run), for the longer of both.
    pub unsafe fn run_in_place(&mut self, buffer: *mut u8) -> Result<()> {
        self.check()?;
        // SAFETY: the caller's promise.
        unsafe { self.0.run_at(Buffers::InPlace, buffer, buffer) }
    }

    /// Whether a plan whose operation is the caller's own can run.
    fn check(&self) -> Result<()> {
        let Some(own) = &self.1 else { return Ok(()) };
        let fact = match own.operation.is_set() {
            true if own.performed => return Ok(()),
            true => "the MPI library's own collective is to be called, with the operation that the MPI knows",
            false => "a plan with an operation of the caller's own was not told which; call combine_by",
        };
        Err(Error::Operation(fact.into()))
    }

    /// The algorithm that runs, with its parameters; `mpi` is the MPI library's own.
    pub fn algorithm(&self) -> String {
        self.0.algorithm()
    }

    /// Why that one.
    pub fn why(&self) -> String {
        self.0.why()
    }

    /// Which algorithm runs, why, and what it costs.
    pub fn explain(&self) -> String {
        self.0.explain()
    }
}

#[cfg(all(test, not(loom)))]
mod own;
