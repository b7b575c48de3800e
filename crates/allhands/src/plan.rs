//! Plans: a collective chosen, compiled and connected once, and run as often as one likes.

mod options;
mod pending;
mod running;
mod state;

use std::cell::{RefCell, RefMut};
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::rc::Rc;
use std::sync::Arc;

pub use self::options::Options;
use self::pending::Ending;
pub use self::pending::{Pending, UnderWay};
use self::running::{call_library, finish, run};
pub(crate) use self::state::{Means, PlanState};
use crate::error::{Error, Result};
use crate::kernels::Element;
use crate::program::Buffers;
use crate::rank::RankState;
use crate::reproducible::Reproducible;
use crate::server::Server;

/// A persistent collective. Made by the methods of [`Comm`](crate::Comm) that end in `_plan`.
///
/// ```
/// use allhands::{Op, Topology};
/// allhands::threads(Topology::regular(2, 2)?, |comm| {
///     let mut plan = comm.allreduce_plan::<f64>(3, Op::sum())?;
///     let x = [comm.rank() as f64; 3];
///     let mut y = [0.0; 3];
///     plan.run(&x, &mut y)?; // blocking
///     assert_eq!(y, [6.0; 3]);
///     plan.run_in_place(&mut y)?;
///     assert_eq!(y, [24.0; 3]);
///     let mut pending = plan.start(&x, &mut y)?; // non-blocking
///     while !pending.test()? {}
///     pending.wait()?;
///     assert_eq!(y, [6.0; 3]);
///     Ok(())
/// })?;
/// # Ok::<(), allhands::Error>(())
/// ```
///
/// What cannot be right does not compile. The output of a collective under way cannot be touched:
///
/// ```compile_fail,E0502
/// # use allhands::{Op, Topology};
/// allhands::threads(Topology::flat(2)?, |comm| {
///     let mut plan = comm.allreduce_plan::<f64>(1, Op::sum())?;
///     let mut y = [0.0];
///     let pending = plan.start(&[1.0], &mut y)?;
///     println!("{}", y[0]); // not there yet
///     pending.wait()
/// })?;
/// # Ok::<(), allhands::Error>(())
/// ```
///
/// nor can a plan run twice at once:
///
/// ```compile_fail,E0499
/// # use allhands::{Op, Topology};
/// allhands::threads(Topology::flat(2)?, |comm| {
///     let mut plan = comm.allreduce_plan::<f64>(1, Op::sum())?;
///     let (mut y, mut z) = ([0.0], [0.0]);
///     let first = plan.start(&[1.0], &mut y)?;
///     let second = plan.start(&[1.0], &mut z)?;
///     first.wait()?;
///     second.wait()
/// })?;
/// # Ok::<(), allhands::Error>(())
/// ```
///
/// and a plan stays on the rank that made it:
///
/// ```compile_fail,E0277
/// # use allhands::{Op, Topology};
/// allhands::threads(Topology::flat(2)?, |comm| {
///     let mut plan = comm.allreduce_plan::<f64>(1, Op::sum())?;
///     std::thread::scope(|scope| scope.spawn(|| plan.run(&[1.0], &mut [0.0])).join().unwrap())
/// })?;
/// # Ok::<(), allhands::Error>(())
/// ```
pub struct Plan<T> {
    /// Dropped inside the rank's gate.
    core: ManuallyDrop<Rc<RefCell<PlanState>>>,
    rank: Arc<RankState>,
    elements: PhantomData<T>,
}

impl<T: Element> Plan<T> {
    pub(crate) fn new(core: Rc<RefCell<PlanState>>, rank: Arc<RankState>) -> Plan<T> {
        Plan { core: ManuallyDrop::new(core), rank, elements: PhantomData }
    }

    /// See [`RawPlan::retire`](crate::raw::RawPlan::retire).
    pub(crate) fn retire(&mut self) -> bool {
        let _inside = self.rank.enter();
        Rc::strong_count(&self.core) == 1 && self.core.borrow_mut().disconnect()
    }

    /// What it was made from, and its state.
    pub(crate) fn state(&self) -> &RefCell<PlanState> {
        &self.core
    }

    /// Runs the collective to its end.
    pub fn run(&mut self, input: &[T], output: &mut [T]) -> Result<()> {
        let _inside = self.rank.enter();
        self.check(Buffers::Apart, input.len(), output.len())?;
        // SAFETY: the slices are as long as the program needs, and borrowed until `run_at` returns.
        unsafe { self.run_at(Buffers::Apart, input.as_ptr().cast(), output.as_mut_ptr().cast()) }
    }

    /// Runs the plan once, with the input in the output's place: in an allgather at this rank's block, else from the start.
    pub fn run_in_place(&mut self, buffer: &mut [T]) -> Result<()> {
        let _inside = self.rank.enter();
        self.check(Buffers::InPlace, 0, buffer.len())?;
        let buffer = buffer.as_mut_ptr().cast::<u8>();
        // SAFETY: as above; a program compiled in place reads and writes the output only.
        unsafe { self.run_at(Buffers::InPlace, buffer, buffer) }
    }

    /// Runs the collective to its end, on memory of whatever type.
    ///
    /// # Safety
    /// The input can be read and the output written for as many elements as the plan has; in place, the output for the longer of
    /// both. Aligned for the plan's elements, and not overlapping.
    #[inline(never)]
    pub(crate) unsafe fn run_at(&self, buffers: Buffers, input: *const u8, output: *mut u8) -> Result<()> {
        let _inside = self.rank.enter();
        let mut core = self.idle()?;
        // SAFETY: the caller's promise; it keeps the memory until this returns.
        unsafe {
            match core.sums {
                None => run(&mut core, &self.rank, buffers, input, output),
                Some(sums) => self.run_sums(core, sums, buffers, input, output),
            }
        }
    }

    /// The same on sums of the plan's own.
    ///
    /// # Safety
    /// As above.
    #[inline(never)]
    unsafe fn run_sums(
        &self,
        mut core: RefMut<'_, PlanState>,
        sums: Reproducible,
        buffers: Buffers,
        input: *const u8,
        output: *mut u8,
    ) -> Result<()> {
        // SAFETY: the caller's promise; the plan keeps its own memory.
        unsafe {
            let (own_input, own_output) = core.sum_up(sums, buffers, input);
            run(&mut core, &self.rank, buffers, own_input, own_output)?;
            core.round_to(output, core.output);
        }
        Ok(())
    }

    /// Calls the MPI library's own collective, if the plan is for that, whatever is under way.
    ///
    /// # Safety
    /// As for [`run_at`](Plan::run_at).
    pub(crate) unsafe fn call_library_at(&self, buffers: Buffers, input: *const u8, output: *mut u8) -> Result<()> {
        let _inside = self.rank.enter();
        let mut core = self.idle()?;
        // SAFETY: the caller's promise.
        unsafe { call_library(&mut core, &self.rank, buffers, input, output) }
    }

    /// Room for the plan's input and output, apart and aligned for every element, in memory that grows to what that takes.
    pub(crate) fn on(&self, scratch: &mut Vec<u128>) -> (*const u8, *mut u8) {
        let core = self.core.borrow();
        let words = |elements: usize| (elements * core.element()).div_ceil(size_of::<u128>()) + 1;
        let (input, output) = (words(core.input), words(core.output));
        if scratch.len() < input + output {
            scratch.resize(input + output, 0);
        }
        let (input, output) = scratch.split_at_mut(input);
        (input.as_ptr().cast(), output.as_mut_ptr().cast())
    }

    /// The plan, when a run that is still under way is through.
    #[inline(always)]
    fn idle(&self) -> Result<RefMut<'_, PlanState>> {
        let core = self.core.borrow_mut();
        match core.under_way.is_some() | core.broken | core.retired {
            false => Ok(core),
            true => {
                drop(core);
                self.made_idle()
            }
        }
    }

    /// The same where there is something to wait for, or to refuse.
    #[cold]
    fn made_idle(&self) -> Result<RefMut<'_, PlanState>> {
        if self.core.borrow().under_way.is_some() {
            finish(&self.core, &self.rank)?;
        }
        let core = self.core.borrow_mut();
        if core.broken {
            let reason = "an earlier run of this plan was not completed; make a new plan".into();
            return Err(Error::Abandoned { rank: self.rank.world.me(), reason });
        }
        if core.retired {
            let reason =
                "a plan that is retired is connected to nobody; let a communicator adopt it, or make a new one";
            return Err(Error::Operation(reason.into()));
        }
        Ok(core)
    }

    /// Begins the collective. It moves on whenever this rank tests or waits for anything; until then the output is borrowed.
    ///
    /// The input is copied into the plan, and the output out of it at the end, so that a forgotten [`Pending`] harms nobody.
    pub fn start<'a>(&'a mut self, input: &[T], output: &'a mut [T]) -> Result<Pending<'a, T>> {
        self.begin(Buffers::Apart, input, output.len())?;
        Ok(Pending { plan: self, output, done: false })
    }

    /// Begins the collective, does `work`, and completes it. Unlike [`start`](Plan::start) it copies nothing, because the buffers are
    /// sure to stay until it is complete. `work` may move it on, and may begin others the same way.
    ///
    /// ```
    /// use allhands::{Op, Topology};
    /// allhands::threads(Topology::flat(2)?, |comm| {
    ///     let mut plan = comm.allreduce_plan::<f64>(1000, Op::sum())?;
    ///     let (x, mut y) = (vec![1.0; 1000], vec![0.0; 1000]);
    ///     let work = plan.during(&x, &mut y, |run| {
    ///         let half: u64 = (0..5000).sum(); // something else
    ///         run.test()?; // once in a while, to move the collective on
    ///         Ok(half + (5000..10_000).sum::<u64>())
    ///     })?;
    ///     assert_eq!((work, y[0]), (49_995_000, 2.0));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), allhands::Error>(())
    /// ```
    pub fn during<R>(
        &mut self,
        input: &[T],
        output: &mut [T],
        work: impl FnOnce(&mut UnderWay<'_>) -> Result<R>,
    ) -> Result<R> {
        let library = {
            let _inside = self.rank.enter();
            matches!(self.core.borrow().means, Means::Library(_))
        };
        if library {
            // MPI cannot be made to let go of buffers if `work` panics: it gets the plan's own.
            let pending = self.start(input, output)?;
            let result = work(&mut UnderWay { core: &pending.plan.core, rank: &pending.plan.rank });
            pending.wait()?;
            return result;
        }
        {
            let _inside = self.rank.enter();
            self.check(Buffers::Apart, input.len(), output.len())?;
            // SAFETY: the slices are as long as the program needs, and borrowed until this function returns; `Ending` ends
            // the run before that, also when `work` panics.
            unsafe { self.start_at(Buffers::Apart, input.as_ptr().cast(), output.as_mut_ptr().cast())? };
        }
        let ending = Ending { core: &self.core, rank: &self.rank };
        let result = work(&mut UnderWay { core: &self.core, rank: &self.rank });
        std::mem::forget(ending);
        let _inside = self.rank.enter();
        finish(&self.core, &self.rank)?;
        result
    }

    /// Begins the collective with the input in the output's place.
    pub fn start_in_place<'a>(&'a mut self, buffer: &'a mut [T]) -> Result<Pending<'a, T>> {
        self.begin(Buffers::InPlace, buffer, buffer.len())?;
        Ok(Pending { plan: self, output: buffer, done: false })
    }

    /// Whether a program's buffers are as long as the plan asks for; in place there is only the second one.
    fn check(&self, buffers: Buffers, input: usize, output: usize) -> Result<()> {
        let core = self.core.borrow();
        match buffers {
            Buffers::Apart => {
                core.check("input", input, core.input).and_then(|()| core.check("output", output, core.output))
            }
            Buffers::InPlace => core.check("in-place", output, core.longer()),
        }
    }

    /// Begins the collective on a copy of the input.
    fn begin(&self, buffers: Buffers, input: &[T], output: usize) -> Result<()> {
        let _inside = self.rank.enter();
        self.check(buffers, input.len(), output)?;
        let mut core = self.idle()?;
        if let Some(sums) = core.sums {
            // SAFETY: the input is as long as the plan asks for. The run is on the plan's own buffers.
            return unsafe {
                let (own_input, own_output) = core.sum_up(sums, buffers, input.as_ptr().cast());
                drop(core);
                self.start_on_own(buffers, own_input, own_output)
            };
        }
        let (own_input, own_output) = core.own_buffers();
        drop(core);
        let to = if buffers == Buffers::Apart { own_input } else { own_output };
        // SAFETY: both buffers have room for either side of the collective; they live as long as the plan, which ends the run
        // before it is dropped.
        unsafe {
            std::ptr::copy_nonoverlapping(input.as_ptr().cast(), to, size_of_val(input));
            self.start_at(buffers, own_input, own_output)
        }
    }

    /// See [`RawPlan::drive_mpi`](crate::raw::RawPlan::drive_mpi).
    pub(crate) fn drive_mpi(&self) {
        if let Some(job) = &self.rank.world.job {
            job.progress();
        }
    }

    /// Begins the collective on memory of whatever type.
    ///
    /// # Safety
    /// As for [`run_at`](Plan::run_at), until the run is through or the plan is dropped.
    pub(crate) unsafe fn start_at(&self, buffers: Buffers, input: *const u8, output: *mut u8) -> Result<()> {
        let _inside = self.rank.enter();
        let mut core = self.idle()?;
        let Some(sums) = core.sums else {
            drop(core);
            // SAFETY: the caller's promise.
            return unsafe { self.start_on_own(buffers, input, output) };
        };
        // SAFETY: the caller's promise; it keeps the output until the run is through.
        unsafe {
            let (own_input, own_output) = core.sum_up(sums, buffers, input);
            core.rounds_to = Some(output);
            drop(core);
            self.start_on_own(buffers, own_input, own_output)
        }
    }

    /// Begins the collective on memory of the elements that travel.
    ///
    /// # Safety
    /// As for [`run_at`](Plan::run_at), for these elements, until the run is through or the plan is dropped.
    unsafe fn start_on_own(&self, buffers: Buffers, input: *const u8, output: *mut u8) -> Result<()> {
        let mut core = self.idle()?;
        let scope = core.scope;
        // SAFETY: the caller's promise.
        unsafe {
            match &mut core.means {
                Means::Schedule(scheduled) => {
                    scheduled.begin(buffers, input, output).map_err(|error| self.rank.give_up(scope, error))?;
                }
                Means::Library(library) => library.0.start(buffers, input, output)?,
            }
        }
        core.under_way = Some(buffers);
        core.outcome = None;
        drop(core);
        self.rank.enlist(&self.core);
        self.rank.progress();
        Ok(())
    }

    /// Moves on without waiting; whether no run is under way any more.
    pub(crate) fn test(&mut self) -> Result<bool> {
        let _inside = self.rank.enter();
        self.rank.progress();
        let progressed = self.core.borrow_mut().progress();
        match progressed {
            // Where a rank has failed, waiting says which one at once: who only tests would go on for ever.
            Ok(false) if !self.rank.world.has_failed(self.core.borrow().scope) => Ok(false),
            _ => finish(&self.core, &self.rank).map(|()| true),
        }
    }

    /// Waits for the run under way, if there is one.
    pub(crate) fn wait(&mut self) -> Result<()> {
        let _inside = self.rank.enter();
        finish(&self.core, &self.rank)
    }

    /// Who serves: a schedule, or the MPI library.
    ///
    /// ```
    /// use allhands::{Op, Options, Server, Topology};
    /// allhands::threads(Topology::flat(4)?, |comm| {
    ///     let ring = Options::new().algorithm("ring");
    ///     let plan = comm.allreduce_plan_with::<f64>(8, Op::sum(), &ring)?;
    ///     assert!(matches!(plan.server(), Server::Schedule(choice) if choice.algorithm.name == "ring"));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), allhands::Error>(())
    /// ```
    pub fn server(&self) -> Server {
        let _inside = self.rank.enter();
        self.core.borrow().server()
    }

    /// The algorithm that runs, with its parameters; `mpi` is the MPI library's own.
    pub fn algorithm(&self) -> String {
        let _inside = self.rank.enter();
        match &self.core.borrow().means {
            Means::Schedule(scheduled) => scheduled.design().algorithm.clone(),
            Means::Library(_) => Server::Library.to_string(),
        }
    }

    /// Why that algorithm was chosen.
    pub(crate) fn why(&self) -> String {
        let _inside = self.rank.enter();
        match &self.core.borrow().means {
            Means::Schedule(scheduled) => scheduled.design().reason.clone(),
            Means::Library(library) => library.1.to_string(),
        }
    }

    /// Whether the MPI library serves.
    pub(crate) fn is_library(&self) -> bool {
        let _inside = self.rank.enter();
        matches!(self.core.borrow().means, Means::Library(_))
    }

    /// Which algorithm runs, why, and what it costs.
    pub fn explain(&self) -> String {
        let _inside = self.rank.enter();
        let core = self.core.borrow();
        let PlanState { collective, ranks, .. } = &*core;
        let mut text = format!("{collective} on {ranks} ranks: {}, because of {}\n", self.algorithm(), self.why());
        match &core.means {
            Means::Schedule(scheduled) => {
                text += &scheduled.cost();
                if let Some(machine) = &scheduled.design().machine {
                    text += &format!("the machine is {machine}\n");
                }
            }
            Means::Library(_) => text += "what the MPI library sends is its own affair\n",
        }
        text
    }

    /// The compiled program of this rank, one instruction a line.
    pub fn program(&self) -> String {
        let _inside = self.rank.enter();
        match &self.core.borrow().means {
            Means::Schedule(scheduled) => scheduled.program(Buffers::Apart).to_string(),
            Means::Library(_) => String::new(),
        }
    }
}

impl<T> Drop for Plan<T> {
    fn drop(&mut self) {
        let _inside = self.rank.enter();
        // A plan that is still cached or enlisted elsewhere lives on.
        if self.core.try_borrow().is_ok_and(|core| core.under_way.is_some()) {
            if std::thread::panicking() {
                self.rank.retire(&self.core);
                self.core.borrow_mut().abandon();
                self.core.borrow_mut().under_way = None;
            } else {
                let _ = finish(&self.core, &self.rank);
            }
        }
        // SAFETY: dropped here only, and not used afterwards.
        unsafe { ManuallyDrop::drop(&mut self.core) };
    }
}

#[cfg(test)]
mod tests {
    use allhands_schedule::Topology;

    use super::*;
    use crate::Op;
    use crate::company::Design;

    fn design<T: Element>(plan: &Plan<T>) -> *const Design {
        match &plan.core.borrow().means {
            Means::Schedule(scheduled) => Arc::as_ptr(scheduled.design()),
            Means::Library(_) => unreachable!("threads have none"),
        }
    }

    #[test]
    fn plans_for_the_same_call_have_one_design_and_others_their_own() {
        crate::threads(Topology::flat(3).unwrap(), |comm| {
            let plain = Options::new();
            let mut one = comm.allreduce_plan::<f64>(4, Op::sum())?;
            let mut other = comm.allreduce_plan_with::<f64>(4, Op::sum(), &plain)?;
            assert_eq!(design(&one), design(&other));
            let different = [
                design(&comm.allreduce_plan::<f64>(5, Op::sum())?),
                design(&comm.allreduce_plan::<f64>(4, Op::max())?),
                design(&comm.allreduce_plan::<f32>(4, Op::sum())?),
                design(&comm.allreduce_plan_with::<f64>(4, Op::sum(), &plain.clone().identical(false))?),
                design(&comm.allreduce_plan_with::<f64>(4, Op::sum(), &plain.unshared(true))?),
                design(&comm.allgather_plan::<f64>(4)?),
            ];
            assert!(!different.contains(&design(&one)), "what is asked for differs");
            // Both run, also in place, which only one of them is asked first.
            let (x, mut y, mut z) = ([comm.rank() as f64; 4], [0.0; 4], [1.0; 4]);
            other.run_in_place(&mut z)?;
            one.run(&x, &mut y)?;
            one.run_in_place(&mut y)?;
            assert_eq!((y, z), ([9.0; 4], [3.0; 4]));
            Ok(())
        })
        .unwrap();
    }

    #[test]
    fn who_follows_a_tuning_file_goes_by_it_from_then_on() {
        crate::threads(Topology::flat(2).unwrap(), |comm| {
            let before = comm.allreduce_plan::<f64>(4, Op::sum())?;
            comm.follow(crate::tuning::Tuning::new("threads"));
            let after = comm.allreduce_plan::<f64>(4, Op::sum())?;
            assert_ne!(design(&before), design(&after), "it was decided anew");
            Ok(())
        })
        .unwrap();
    }
}
