//! A call that is to be served, and its run on the program's memory or on copies of it.

use std::ptr::{null, null_mut};
use std::sync::Arc;

use allhands::Error;
use allhands::raw::{Amount, RawCall, RawPlan};
use allhands_mpi::Mpi;

use crate::comms::Group;
use crate::failure::{Unserved, passed};
use crate::kept::Kept;
use crate::memory::Region;
use crate::operations::Called;
use crate::session::Session;

/// A call that is to be served.
pub(crate) struct Task {
    pub(crate) call: RawCall,
    /// `None`: in place.
    pub(crate) input: Option<Region>,
    pub(crate) output: Region,
    /// Whether the output only holds what others get.
    pub(crate) gives: bool,
    /// The bytes that come from each rank, where that is not the call's to say.
    pub(crate) expected: Vec<usize>,
    /// Bytes of a block, or of the vector, or of all blocks together where they differ.
    pub(crate) bytes: usize,
    /// What combines elements, where it is no kernel of ours.
    pub(crate) called: Option<Arc<Called>>,
    /// Of an operation that is called, what the program may free before a run is through.
    pub(crate) kept: Vec<Kept>,
}

pub(crate) type Outcome = Result<Task, Unserved>;

impl Task {
    /// One that combines nothing, or by a kernel of ours.
    #[inline(always)]
    pub(crate) fn new(call: RawCall, input: Option<Region>, output: Region, bytes: usize) -> Task {
        Task { call, input, output, gives: false, expected: Vec::new(), bytes, called: None, kept: Vec::new() }
    }

    /// Completes an alltoallv with what the others have for this rank, and it for them. Collective.
    pub(crate) fn agree(&mut self, session: &Session, me: usize, group: &mut Group) -> Result<(), Unserved> {
        let Amount::Listed(given) = &self.call.amount else { return Ok(()) };
        self.call = self.agreed(me, group.counts_of_all(session, given)?)?;
        Ok(())
    }

    /// An alltoallv with everybody's counts, if the others have for this rank what it expects.
    pub(crate) fn agreed(&self, me: usize, all: Vec<usize>) -> Result<RawCall, Unserved> {
        let ranks = self.expected.len();
        for (other, &expected) in self.expected.iter().enumerate() {
            let came = all[other * ranks + me];
            if came != expected {
                return Err(Error::Size { rank: me, other, expected, came }.into());
            }
        }
        Ok(RawCall { amount: Amount::Listed(all), ..self.call })
    }

    /// Runs it: on the program's memory if the data lie there one after the other, else on copies.
    ///
    /// # Safety
    /// The program's memory is as it says.
    #[inline]
    pub(crate) unsafe fn run(&self, mpi: &Mpi, plan: &mut RawPlan) -> Result<(), Unserved> {
        if let (Some(input), None) = (&self.input, &self.called)
            && let (Some(source), Some(target)) = (input.direct(), self.output.direct())
        {
            // SAFETY: the caller's promise.
            return unsafe { plan.run(source, target) }.map_err(Unserved::from);
        }
        // SAFETY: the caller's promise.
        unsafe {
            let staged = self.stage(mpi)?;
            self.combine_by(plan);
            match &self.input {
                None => plan.run_in_place(staged.target)?,
                Some(_) => plan.run(staged.source, staged.target)?,
            }
            self.unstage(mpi, &staged)
        }
    }

    /// Tells the plan what combines elements, if no kernel of ours does.
    fn combine_by(&self, plan: &mut RawPlan) {
        if let Some(called) = &self.called {
            called.serve(plan);
        }
    }

    /// The memory that a run works on, with the input in it.
    ///
    /// # Safety
    /// The program's memory is as it says.
    pub(crate) unsafe fn stage(&self, mpi: &Mpi) -> Result<Staged, Unserved> {
        let Task { input, output, .. } = self;
        let room = |region: &Region| match region.direct() {
            Some(_) => Vec::new(),
            None => vec![0u128; region.bytes().div_ceil(16)],
        };
        let mut staged = Staged { to: room(output), ..Staged::default() };
        staged.target = output.direct().unwrap_or(staged.to.as_mut_ptr().cast());
        // SAFETY: the caller's promise; copies have room for the data.
        unsafe {
            match input {
                None if output.direct().is_none() => output.pack(mpi, staged.target)?,
                None => {}
                Some(input) => {
                    staged.from = room(input);
                    let source = input.direct().unwrap_or(staged.from.as_mut_ptr().cast());
                    staged.source = source;
                    if input.direct().is_none() {
                        input.pack(mpi, source)?;
                    }
                }
            }
        }
        Ok(staged)
    }

    /// Begins a run that is through when the plan says so.
    ///
    /// # Safety
    /// The program's memory is as it says, and stays with what is staged until then.
    pub(crate) unsafe fn start(&self, staged: &Staged, plan: &mut RawPlan) -> Result<(), Unserved> {
        self.combine_by(plan);
        // SAFETY: the caller's promise.
        unsafe {
            match &self.input {
                None => plan.start_in_place(staged.target)?,
                Some(_) => plan.start(staged.source, staged.target)?,
            }
        }
        Ok(())
    }

    /// Brings the result of a run to where the program wants it.
    ///
    /// # Safety
    /// As above.
    pub(crate) unsafe fn unstage(&self, mpi: &Mpi, staged: &Staged) -> Result<(), Unserved> {
        if let Some(called) = &self.called {
            called.outcome()?;
        }
        if self.output.direct().is_none() && !self.gives {
            // SAFETY: the caller's promise.
            unsafe { self.output.unpack(mpi, staged.target)? };
        }
        Ok(())
    }

    /// Keeps what the program may free before the run is through.
    pub(crate) fn hold(&mut self, session: &Session) -> Result<(), Unserved> {
        let mpi = session.mpi;
        self.kept = self.called.as_ref().map_or_else(Vec::new, |called| called.kept(session));
        self.output.hold(mpi)?;
        self.input.as_mut().map_or(Ok(()), |input| input.hold(mpi))
    }
}

/// The memory that a run works on: the program's, or copies.
pub(crate) struct Staged {
    source: *const u8,
    target: *mut u8,
    from: Vec<u128>,
    to: Vec<u128>,
}

impl Default for Staged {
    fn default() -> Staged {
        Staged { source: null(), target: null_mut(), from: Vec::new(), to: Vec::new() }
    }
}

/// Buffers that begin at the same place are not in place, but wrong: some MPIs say so.
#[inline(always)]
pub(crate) fn apart(task: Task) -> Outcome {
    match &task.input {
        Some(input) if input.at() == task.output.at() && input.bytes() > 0 && task.output.bytes() > 0 => {
            Err(passed("an input that is the output"))
        }
        _ => Ok(task),
    }
}
