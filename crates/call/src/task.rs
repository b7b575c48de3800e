//! A call that is to be served, and its run on the program's memory or on copies of it.

use std::ptr::{null, null_mut};
use std::sync::Arc;

use allhands::Error;
use allhands::raw::{Amount, RawCall, RawPlan};
use allhands_mpi::Mpi;
use allhands_schedule::Collective;

use crate::failure::Unserved;
use crate::memory::Region;
use crate::neighborhood::Neighborhood;
use crate::operations::Called;
use crate::spare;

/// A call that is to be served.
pub struct Task {
    /// What is to be done, alike on every rank.
    pub call: RawCall,
    /// `None`: in place.
    pub input: Option<Region>,
    /// Where the result goes.
    pub output: Region,
    /// Whether the output only holds what others get.
    pub gives: bool,
    /// Bytes of a block, or of the vector, or of all blocks together where they differ.
    pub bytes: usize,
    /// What combines elements, where it is no kernel of ours.
    pub called: Option<Arc<Called>>,
    /// What is settled for it, of a collective among neighbours.
    pub hood: Option<Arc<Neighborhood>>,
}

/// The program's own memory, on which a call runs.
#[derive(Clone, Copy)]
pub struct Direct {
    source: *const u8,
    target: *mut u8,
    in_place: bool,
}

impl Direct {
    /// Runs a plan on it.
    ///
    /// # Safety
    /// The program's memory is as it says.
    #[inline]
    pub unsafe fn run(&self, plan: &mut RawPlan) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe {
            match self.in_place {
                false => plan.run(self.source, self.target),
                true => plan.run_in_place(self.target),
            }
        }
    }
}

/// What the arguments of a call come to.
pub type Outcome = Result<Task, Unserved>;

impl Task {
    /// One that combines nothing, or by a kernel of ours.
    #[inline(always)]
    pub fn new(call: RawCall, input: Option<Region>, output: Region, bytes: usize) -> Task {
        Task { call, input, output, gives: false, bytes, called: None, hood: None }
    }

    /// Whether ranks wait for each other. Where there is nothing to move, which all of them know, none does.
    #[inline]
    pub fn moves(&self) -> bool {
        self.bytes > 0 || self.call.collective == Collective::Barrier || self.call.collective.hides_counts()
    }

    /// Whether this rank knows its own counts only, and other ranks theirs. (Among neighbours a rank that has none knows nothing of the others' size.)
    pub fn knows_its_own(&self) -> bool {
        matches!(self.call.amount, Amount::Own { .. }) || self.hood.is_some()
    }

    /// What this rank has to tell all others so that they know all counts: of an alltoallv what it has for each, else its own count.
    pub fn counts(&self) -> Option<&[usize]> {
        match &self.call {
            RawCall { collective: Collective::Scatterv, amount: Amount::Own { gotten, .. }, .. } => Some(gotten),
            RawCall { amount: Amount::Own { given, .. }, .. } => Some(given),
            _ => None,
        }
    }

    /// The call with everybody's counts, if the others have for this rank what it expects, and expect what it has.
    pub fn agreed(&self, me: usize, all: Vec<usize>) -> Result<RawCall, Unserved> {
        let Amount::Own { given, gotten, .. } = &self.call.amount else { return Ok(self.call.clone()) };
        // Of a rank, what it tells about this one.
        let (known, of) = match self.call.collective {
            Collective::Alltoallv => (gotten, Some(gotten.len())),
            Collective::Scatterv => (given, None),
            _ => (gotten, None),
        };
        for (other, &expected) in known.iter().enumerate() {
            let came = all[of.map_or(other, |ranks| other * ranks + me)];
            if came != expected {
                return Err(Error::Size { rank: me, other, expected, came }.into());
            }
        }
        Ok(RawCall { amount: Amount::Listed(all), ..self.call.clone() })
    }

    /// Runs it: on the program's memory if the data lie there one after the other, else on copies.
    ///
    /// # Safety
    /// The program's memory is as it says.
    #[inline]
    pub unsafe fn run(&self, mpi: &Mpi, plan: &mut RawPlan) -> Result<(), Unserved> {
        if let Some(direct) = self.direct() {
            // SAFETY: the caller's promise.
            return unsafe { direct.run(plan) }.map_err(Unserved::from);
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

    /// The program's memory, if it runs on that.
    #[inline]
    pub fn direct(&self) -> Option<Direct> {
        let target = self.output.direct().filter(|_| self.called.is_none())?;
        match self.input {
            None => Some(Direct { source: null(), target, in_place: true }),
            Some(_) => self.source().map(|source| Direct { source, target, in_place: false }),
        }
    }

    /// The same call with the program's data elsewhere, as another call says that is like it but for its buffers. In place it stays so. False
    /// where it has to be read anew.
    #[inline]
    pub fn move_to(&mut self, mpi: &Mpi, send: *const u8, receive: *mut u8) -> bool {
        let given = self
            .input
            .as_mut()
            .is_none_or(|input| send != mpi.in_place().cast_const().cast() && input.move_to(send.cast_mut()));
        given && self.output.move_to(receive)
    }

    /// Whether the operation's handle may be used again as it is: see `Called::is_alike`.
    #[inline]
    pub fn is_alike(&self) -> bool {
        self.called.as_ref().is_none_or(|called| called.is_alike())
    }

    /// Where the input lies, if it can be used as it is. Where the output is written while the input is still needed, the two
    /// have no byte in common: MPI forbids it, but some MPIs let programs do it, and only this rank knows.
    #[inline]
    fn source(&self) -> Option<*mut u8> {
        let input = self.input.as_ref()?;
        input.direct().filter(|_| self.output.direct().is_none() || !input.overlaps(&self.output))
    }

    /// Whether input and output are the same memory.
    pub fn aliased(&self) -> bool {
        let direct = |region: &Region| region.direct().is_some();
        let overlaps = |input: &Region| direct(input) && direct(&self.output) && input.overlaps(&self.output);
        self.input.as_ref().is_some_and(overlaps)
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
    pub unsafe fn stage(&self, mpi: &Mpi) -> Result<Staged, Unserved> {
        let Task { input, output, .. } = self;
        let room = |region: &Region, direct: Option<*mut u8>| match direct {
            Some(_) => Vec::new(),
            None => spare::take(region.bytes()),
        };
        let mut staged = Staged::default();
        staged.to = room(output, output.direct());
        staged.target = output.direct().unwrap_or(staged.to.as_mut_ptr().cast());
        // SAFETY: the caller's promise; copies have room for the data.
        unsafe {
            match input {
                None if output.direct().is_none() && self.reads() => output.pack(mpi, staged.target)?,
                None => {}
                Some(input) => {
                    let here = self.source();
                    staged.from = room(input, here);
                    let source = here.unwrap_or(staged.from.as_mut_ptr().cast());
                    staged.source = source;
                    if here.is_none() {
                        input.pack(mpi, source)?;
                    }
                }
            }
        }
        Ok(staged)
    }

    /// Whether an output in place holds an input.
    fn reads(&self) -> bool {
        self.gives || self.call.collective != Collective::Bcast
    }

    /// Begins a run that is through when the plan says so.
    ///
    /// # Safety
    /// The program's memory is as it says, and stays with what is staged until then.
    pub unsafe fn start(&self, staged: &Staged, plan: &mut RawPlan) -> Result<(), Unserved> {
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
    pub unsafe fn unstage(&self, mpi: &Mpi, staged: &Staged) -> Result<(), Unserved> {
        if let Some(called) = &self.called {
            called.outcome()?;
        }
        if self.output.direct().is_none() && !self.gives {
            // SAFETY: the caller's promise.
            unsafe { self.output.unpack(mpi, staged.target)? };
        }
        Ok(())
    }

    /// From now on the program may free the datatypes of its memory.
    pub fn hold(&mut self, mpi: &'static Mpi) -> Result<(), Unserved> {
        self.output.hold(mpi)?;
        self.input.as_mut().map_or(Ok(()), |input| input.hold(mpi))
    }
}

/// The memory that a run works on: the program's, or copies.
pub struct Staged {
    source: *const u8,
    target: *mut u8,
    from: Vec<u128>,
    to: Vec<u128>,
}

impl Drop for Staged {
    fn drop(&mut self) {
        spare::give(std::mem::take(&mut self.from));
        spare::give(std::mem::take(&mut self.to));
    }
}

impl Default for Staged {
    fn default() -> Staged {
        Staged { source: null(), target: null_mut(), from: Vec::new(), to: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use allhands::kernels::Type;

    use super::*;
    use crate::datatype::Datatype;

    /// From so many bytes at `from` to so many at `to`.
    fn task(from: *mut u8, given: usize, to: *mut u8, expected: usize) -> Task {
        let amount = Amount::Each(given);
        let call = RawCall {
            collective: Collective::Allgather,
            amount,
            element: Type::U8,
            operation: None,
            root: 0,
            graph: None,
        };
        let region = |at, count| Region::new(at, count, Datatype::element(0, 1)).unwrap();
        Task::new(call, Some(region(from, given)), region(to, expected), given)
    }

    #[test]
    fn an_input_inside_the_output_is_read_before_anything_is_written() {
        let mut memory = [0u8; 64];
        let at = memory.as_mut_ptr();
        let direct = |from: usize, given, to: usize, expected| {
            let task = task(at.wrapping_add(from), given, at.wrapping_add(to), expected);
            assert_eq!(task.source().is_none(), task.aliased());
            task.source().is_some()
        };
        assert!(direct(0, 8, 8, 32), "side by side");
        assert!(direct(40, 8, 8, 32));
        for from in [8, 9, 39, 1] {
            assert!(!direct(from, 8, 8, 32), "the input begins at {from}");
        }
        assert!(!direct(0, 64, 8, 8), "an output inside the input");
    }

    #[test]
    fn a_copy_of_the_input_is_needed_only_where_the_output_is_written_directly() {
        let mut memory = [0u8; 64];
        let at = memory.as_mut_ptr();
        let mut scattered = task(at, 8, at, 16);
        scattered.output = Region::scattered(at, &[8, 8], &[0, 9], Datatype::element(0, 1)).unwrap();
        assert_eq!(scattered.source(), Some(at), "what comes is put there at the end");
    }
}
