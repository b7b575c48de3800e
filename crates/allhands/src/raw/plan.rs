//! Plans on plain memory.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::op::Late;
use crate::plan::Plan;
use crate::program::Buffers;
use crate::server::Server;

/// A [`Plan`] on plain memory.
pub struct RawPlan(pub(super) Plan<u8>, Option<Own>);

/// The operation of a plan, if it is the caller's own.
struct Own {
    operation: Arc<Late>,
    /// Whether the plan performs it; else it only says that the MPI does best.
    performed: bool,
}

impl Own {
    /// Whether its plan can run.
    fn check(&self) -> Result<()> {
        let fact = match self.operation.is_set() {
            true if self.performed => return Ok(()),
            true => "the MPI library's own collective is to be called, with the operation that the MPI knows",
            false => "a plan with an operation of the caller's own was not told which; call combine_by",
        };
        Err(Error::Operation(fact.into()))
    }
}

impl RawPlan {
    pub(crate) fn new(plan: Plan<u8>, own: Option<Arc<Late>>) -> RawPlan {
        let performed = !plan.is_library();
        RawPlan(plan, own.map(|operation| Own { operation, performed }))
    }

    /// From now on the plan's [own operation](super::RawOperation::Own) is this one: for so many elements `right = left op right`,
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

    /// Lets go of what it shares with other ranks, when its communicator is gone: to run it is an error until it is
    /// [adopted](super::RawComm::adopt). Whether it has; not if a run is under way or went wrong, nor where MPI carries messages.
    pub fn retire(&mut self) -> bool {
        self.1.is_none() && self.0.retire()
    }

    /// Runs the collective to its end.
    ///
    /// # Safety
    /// The input can be read and the output written for as many elements as the call says for this rank, both aligned for the
    /// element type and not overlapping. An operation of the caller's own touches its operands only.
    #[inline]
    pub unsafe fn run(&mut self, input: *const u8, output: *mut u8) -> Result<()> {
        self.check()?;
        // SAFETY: the caller's promise.
        unsafe { self.0.run_at(Buffers::Apart, input, output) }
    }

    /// Runs it once, with the input in the output's place: in an allgather at this rank's block, else from the start.
    ///
    /// # Safety
    /// As for [`run`](RawPlan::run), for the longer of both.
    #[inline]
    pub unsafe fn run_in_place(&mut self, buffer: *mut u8) -> Result<()> {
        self.check()?;
        // SAFETY: the caller's promise.
        unsafe { self.0.run_at(Buffers::InPlace, buffer, buffer) }
    }

    /// Calls the MPI library's own collective, which the plan must be for, on memory that holds nothing of interest, to see how long it takes: `scratch` grows to
    /// what it needs. At once: unlike [`run`](RawPlan::run) it does not wait for what is under way on the communicator, which the MPI's progress is
    /// to move on meanwhile.
    ///
    /// ```no_run
    /// # fn example(mut plan: allhands::raw::RawPlan) -> Result<(), allhands::Error> {
    /// assert!(plan.is_library());
    /// plan.call_library_on(&mut Vec::new())?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn call_library_on(&mut self, scratch: &mut Vec<u128>) -> Result<()> {
        self.check()?;
        let (input, output) = self.0.on(scratch);
        // SAFETY: as many bytes each as the plan has, apart, and aligned for every element.
        unsafe { self.0.call_library_at(Buffers::Apart, input, output) }
    }

    /// Runs the collective to its end on such memory, whoever serves.
    pub(crate) fn run_on(&mut self, scratch: &mut Vec<u128>) -> Result<()> {
        self.check()?;
        let (input, output) = self.0.on(scratch);
        // SAFETY: as above; it is borrowed until this returns.
        unsafe { self.0.run_at(Buffers::Apart, input, output) }
    }

    /// Begins a run on such memory. `scratch` must stay as it is until the run is through, or the plan dropped. Not for an operation of the caller's own.
    ///
    /// # Safety
    /// So it does.
    pub unsafe fn start_on(&mut self, scratch: &mut Vec<u128>) -> Result<()> {
        self.check()?;
        let (input, output) = self.0.on(scratch);
        // SAFETY: as above, and the caller's promise.
        unsafe { self.0.start_at(Buffers::Apart, input, output) }
    }

    /// Begins the collective on the caller's memory, which it may read and write until [`test`](RawPlan::test) is true or
    /// [`wait`](RawPlan::wait) has returned. It moves on whenever a plan of this communicator is tested, waited for or run. A run
    /// that is still under way is waited for first, as it is when the plan is dropped.
    ///
    /// ```no_run
    /// # use allhands::raw::RawPlan;
    /// # fn example(mut plan: RawPlan) -> Result<(), allhands::Error> {
    /// let (x, mut y) = (vec![1.0_f64; 3], vec![0.0_f64; 3]);
    /// // SAFETY: three aligned elements each, which stay until the wait is over.
    /// unsafe { plan.start(x.as_ptr().cast(), y.as_mut_ptr().cast())? };
    /// while !plan.test()? {
    ///     // Something else.
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Safety
    /// As for [`run`](RawPlan::run), until then. After an error the MPI library, if the plan is its own, may keep the memory.
    pub unsafe fn start(&mut self, input: *const u8, output: *mut u8) -> Result<()> {
        self.check()?;
        // SAFETY: the caller's promise.
        unsafe { self.0.start_at(Buffers::Apart, input, output) }
    }

    /// Begins a run, with the input in the output's place.
    ///
    /// # Safety
    /// As for [`start`](RawPlan::start), for the longer of both.
    pub unsafe fn start_in_place(&mut self, buffer: *mut u8) -> Result<()> {
        self.check()?;
        // SAFETY: the caller's promise.
        unsafe { self.0.start_at(Buffers::InPlace, buffer, buffer) }
    }

    /// Moves on without waiting; whether no run is under way any more. An error ends the run.
    pub fn test(&mut self) -> Result<bool> {
        self.0.test()
    }

    /// Waits for the run under way, if there is one.
    pub fn wait(&mut self) -> Result<()> {
        self.0.wait()
    }

    /// Lets the MPI move on what it has under way, the program's messages and requests above all: for callers that wait by testing, while
    /// other ranks may wait for those first.
    ///
    /// ```no_run
    /// # fn example(mut plan: allhands::raw::RawPlan) -> Result<(), allhands::Error> {
    /// while !plan.test()? {
    ///     plan.drive_mpi();
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn drive_mpi(&self) {
        self.0.drive_mpi();
    }

    /// So many words at the beginning of its scratch: the positions that its schedule uses, in ascending order, if an element is a word.
    pub(super) fn words_in_scratch(&self, many: usize) -> Vec<u64> {
        self.0.state().borrow().words_in_scratch(many)
    }

    /// Whether a plan whose operation is the caller's own can run.
    #[inline]
    fn check(&self) -> Result<()> {
        self.1.as_ref().map_or(Ok(()), Own::check)
    }

    /// The algorithm that runs, with its parameters; `mpi` is the MPI library's own.
    pub fn algorithm(&self) -> String {
        self.0.algorithm()
    }

    /// Who serves: a schedule, or the MPI library.
    pub fn server(&self) -> Server {
        self.0.server()
    }

    /// Whether the MPI library serves.
    pub fn is_library(&self) -> bool {
        self.0.is_library()
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
