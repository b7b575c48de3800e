//! Plans: a collective chosen, compiled and connected once, and run as often as one likes.

use std::cell::{RefCell, RefMut};
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::rc::Rc;
use std::sync::Arc;

use crate::buffer::Buffer;
use crate::choose::Why;
use crate::company::Design;
use crate::engine::Connection;
use crate::error::{Error, Result};
use crate::kernels::Element;
use crate::native::Native;
use crate::program::Buffers;
use crate::rank::RankState;
use crate::reproducible::Reproducible;
use crate::scheduled::Scheduled;
use crate::server::Server;

/// How a plan is made.
///
/// ```
/// let options = allhands::Options::new().algorithm("cyclic-shift:8(1,1,1)").identical(false);
/// # let _ = options;
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Options {
    pub(crate) algorithm: Option<String>,
    pub(crate) identical: bool,
    pub(crate) memory: Option<u64>,
    pub(crate) unshared: bool,
    pub(crate) only_ours: bool,
    pub(crate) reproducible: bool,
    /// Why the algorithm is named, where it is not the caller's wish.
    pub(crate) learned: Option<String>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            algorithm: None,
            identical: true,
            memory: None,
            unshared: false,
            only_ours: false,
            reproducible: false,
            learned: None,
        }
    }
}

impl Options {
    /// The library chooses, and every rank gets the same bits.
    pub fn new() -> Options {
        Options::default()
    }

    /// Forces an algorithm, with parameters, as `allhands list` names them; or, as `@FILE`, the [schedule in a
    /// file](crate::Comm::written), which is proved right before it is run. If it cannot serve, that is an error.
    pub fn algorithm(self, name: &str) -> Options {
        Options { algorithm: Some(name.into()), ..self }
    }

    /// Forces who is to serve by what was [learned](crate::raw::RawComm::learn), which is why.
    ///
    /// ```
    /// let server = allhands::Server::Library;
    /// let options = allhands::Options::new().learned(&server, "what was learned here");
    /// # let _ = options;
    /// ```
    pub fn learned(self, server: &Server, why: &str) -> Options {
        Options { algorithm: Some(server.to_string()), learned: Some(why.into()), ..self }
    }

    /// Whether every rank must get the same bits, also where rounding depends on the order of operands. Without, and
    /// where [nothing is rounded](crate::kernels::Operation::is_exact_on), a few more algorithms can serve.
    pub fn identical(self, identical: bool) -> Options {
        Options { identical, ..self }
    }

    /// How many bytes a rank may take beside the caller's buffers: scratch, and its share of what its node shares, as
    /// [`allhands_model::memory`] counts them. What takes more is not chosen, and an error if it is forced; so is MPI's own
    /// collective, of which nobody can say what it takes. Must be the same on all ranks.
    ///
    /// ```
    /// use allhands::{Op, Options, Topology};
    /// allhands::threads(Topology::flat(4)?, |comm| {
    ///     let frugal = Options::new().memory(0);
    ///     let mut sum = [0.0; 100];
    ///     comm.allreduce_plan_with(100, Op::sum(), &frugal)?.run(&[1.0; 100], &mut sum)?;
    ///     assert_eq!(sum, [4.0; 100]);
    ///     let forced = frugal.algorithm("addition-chain").identical(false);
    ///     let refused = comm.allreduce_plan_with::<f64>(100, Op::sum(), &forced).err().unwrap();
    ///     assert!(refused.to_string().contains("takes 800 bytes a rank beside the caller's buffers, but 0 are allowed"));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), allhands::Error>(())
    /// ```
    pub fn memory(self, bytes: u64) -> Options {
        Options { memory: Some(bytes), ..self }
    }

    /// Whether to choose among algorithms for which the ranks of a node need no memory in common. Ranks wait for each other when
    /// they get such memory, which is when the plan is made; without, making a plan waits for nobody.
    pub fn unshared(self, unshared: bool) -> Options {
        Options { unshared, ..self }
    }

    /// Whether the plan is run only if it is ours: one that finds the MPI library's own collective best then says so, and is not made
    /// ready to call it. That takes a communicator of MPI's, of which there are few thousand.
    ///
    /// ```
    /// let options = allhands::Options::new().only_ours(true);
    /// # let _ = options;
    /// ```
    pub fn only_ours(self, only_ours: bool) -> Options {
        Options { only_ours, ..self }
    }

    /// Whether sums of `f32`, `f64` and complex numbers of both give the same bits whatever algorithm serves, wherever ranks sit, and in
    /// whatever order they come: the exact sum, rounded once, of all numbers that are not very much smaller than the largest. Any algorithm may then
    /// serve. In place of 8 bytes of a double 32 travel, of 4 of a float 24: short vectors take hardly longer, long ones as much longer as that.
    /// `ALLHANDS_REPRODUCIBLE=1` asks for it for a whole job. Must be the same on all ranks.
    ///
    /// ```
    /// use allhands::{Op, Options, Topology};
    /// let terms = [1e16, 1.0, -1e16, 1.0];
    /// for algorithm in ["ring", "recursive-doubling", "nap"] {
    ///     allhands::threads(Topology::regular(2, 2)?, |comm| {
    ///         let options = Options::new().reproducible(true).algorithm(algorithm);
    ///         let mut sum = [0.0];
    ///         comm.allreduce_plan_with(1, Op::sum(), &options)?.run(&[terms[comm.rank()]], &mut sum)?;
    ///         assert_eq!(sum, [2.0]); // a plain sum of these is 0, 1 or 2, as their order has it
    ///         Ok(())
    ///     })?;
    /// }
    /// # Ok::<(), allhands::Error>(())
    /// ```
    pub fn reproducible(self, reproducible: bool) -> Options {
        Options { reproducible, ..self }
    }
}

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

/// The part of a plan that does not know the element type.
pub(crate) struct PlanState {
    means: Means,
    /// Whose failure concerns it.
    scope: u64,
    collective: &'static str,
    ranks: usize,
    /// Elements of the caller's input and output.
    input: usize,
    output: usize,
    /// What it is, for error messages.
    signature: Rc<str>,
    /// The run under way that is not blocking.
    under_way: Option<Buffers>,
    /// Input and output of runs that are not on the caller's memory.
    own: Option<(Buffer, Buffer)>,
    /// How the caller's elements become those that travel, which are always in the plan's own memory, and back.
    sums: Option<Reproducible>,
    /// Where the run under way rounds its sums to, when it is through.
    rounds_to: Option<*mut u8>,
    /// How that run ended, if it has.
    outcome: Option<Result<()>>,
    /// It is being moved on, or an operation of the user's panicked while it was.
    moving: bool,
    /// A run was not completed: messages of it may still come, which are not those of another run.
    broken: bool,
    /// It is connected to nobody: see [`RawPlan::retire`](crate::raw::RawPlan::retire).
    retired: bool,
}

/// What performs the collective.
pub(crate) enum Means {
    /// A schedule of ours.
    Schedule(Box<Scheduled>),
    /// The MPI library, and why.
    Library(Box<(Native, Why)>),
}

impl PlanState {
    pub(crate) fn new(
        means: Means,
        sums: Option<Reproducible>,
        scope: u64,
        collective: &'static str,
        ranks: usize,
        signature: &str,
    ) -> PlanState {
        let (input, output) = match &means {
            Means::Schedule(scheduled) => scheduled.lengths(),
            Means::Library(library) => (library.0.input, library.0.output),
        };
        PlanState {
            means,
            scope,
            collective,
            ranks,
            input,
            output,
            signature: signature.into(),
            under_way: None,
            own: None,
            sums,
            rounds_to: None,
            outcome: None,
            moving: false,
            broken: false,
            retired: false,
        }
    }

    /// What it was made from, if it is ours.
    pub(crate) fn design(&self) -> Option<&Arc<Design>> {
        match &self.means {
            Means::Schedule(scheduled) => Some(scheduled.design()),
            Means::Library(_) => None,
        }
    }

    pub(crate) fn scope(&self) -> u64 {
        self.scope
    }

    /// Who serves.
    pub(crate) fn server(&self) -> Server {
        match &self.means {
            Means::Schedule(scheduled) => scheduled.server(),
            Means::Library(_) => Server::Library,
        }
    }

    /// Lets go of what it shares with other ranks; whether it can be [connected anew](PlanState::reconnect).
    fn disconnect(&mut self) -> bool {
        let failed = self.moving || self.broken || matches!(self.outcome, Some(Err(_)));
        let sound = self.under_way.is_none() && !failed;
        self.retired = match &mut self.means {
            Means::Schedule(scheduled) => sound && scheduled.disconnect(),
            Means::Library(_) => false,
        };
        self.retired
    }

    /// What it was made from, if it is connected to nobody.
    pub(crate) fn retired_design(&self) -> Option<&Arc<Design>> {
        self.design().filter(|_| self.retired)
    }

    /// Connects it to other ranks once more, in a scope, as if it were new.
    pub(crate) fn reconnect(&mut self, scope: u64, connection: Connection<'_>) -> Result<()> {
        let Means::Schedule(scheduled) = &mut self.means else { unreachable!("schedules are disconnected") };
        scheduled.reconnect(connection)?;
        (self.scope, self.outcome, self.retired) = (scope, None, false);
        Ok(())
    }

    /// See [`Engine::words_in_scratch`](crate::engine::Engine::words_in_scratch).
    pub(crate) fn words_in_scratch(&self, many: usize) -> Vec<u64> {
        match &self.means {
            Means::Schedule(scheduled) => scheduled.words_in_scratch(many),
            Means::Library(_) => Vec::new(),
        }
    }

    #[inline]
    fn step(&mut self, buffers: Buffers, patient: bool) -> Result<bool> {
        match &mut self.means {
            Means::Schedule(scheduled) => scheduled.step(buffers, patient),
            Means::Library(library) => library.0.test(),
        }
    }

    fn awaited(&self, buffers: Buffers, gone: &dyn Fn(usize) -> bool) -> Option<usize> {
        match &self.means {
            Means::Schedule(scheduled) => scheduled.awaited(buffers, gone),
            Means::Library(_) => None,
        }
    }

    /// Whether MPI brings what the run waits for.
    fn awaits_far(&self, buffers: Buffers) -> bool {
        match &self.means {
            Means::Schedule(scheduled) => scheduled.awaits_far(buffers),
            Means::Library(_) => true,
        }
    }

    /// Ends a run that cannot be completed.
    fn abandon(&mut self) {
        self.broken = true;
        self.rounds_to = None;
        match &mut self.means {
            Means::Schedule(scheduled) => scheduled.abandon(),
            // MPI cannot take a collective back: it may keep the buffers.
            Means::Library(library) if library.0.active() => std::mem::forget(self.own.take()),
            Means::Library(_) => {}
        }
    }

    /// Moves the run under way on; `true` when there is none or it is through. An error stays with the run's owner.
    pub(crate) fn progress(&mut self) -> Result<bool> {
        let Some(buffers) = self.under_way else { return Ok(true) };
        if self.outcome.is_none() {
            if std::mem::replace(&mut self.moving, true) {
                let text = "an operation panicked in an earlier step, and left a run half done";
                return Err(Error::Operation(text.into()));
            }
            self.outcome = match self.step(buffers, false) {
                Ok(false) => None,
                ended => Some(ended.map(|_| ())),
            };
            self.moving = false;
            if matches!(self.outcome, Some(Ok(())))
                && let Some(output) = self.rounds_to.take()
            {
                // SAFETY: who began the run keeps the output until it is through.
                unsafe { self.round_to(output, self.output) };
            }
        }
        self.outcome.clone().transpose().map(|ended| ended.is_some())
    }

    /// Whether the run under way, if there is one, is through.
    pub(crate) fn ended(&self) -> bool {
        self.under_way.is_none() || self.outcome.is_some() || self.moving
    }

    fn check(&self, which: &'static str, given: usize, needed: usize) -> Result<()> {
        if given == needed {
            return Ok(());
        }
        Err(Error::Length { which, collective: self.collective, given, needed })
    }

    /// Bytes of an element.
    fn element(&self) -> usize {
        match &self.means {
            Means::Schedule(scheduled) => scheduled.design().element,
            Means::Library(library) => library.0.element(),
        }
    }

    /// Elements of one buffer for both.
    fn longer(&self) -> usize {
        self.input.max(self.output)
    }

    /// The plan's own input and output: each has room for either side of the collective.
    fn own_buffers(&mut self) -> (*mut u8, *mut u8) {
        let bytes = self.longer() * self.element();
        let (input, output) = self.own.get_or_insert_with(|| (Buffer::new(bytes), Buffer::new(bytes)));
        (input.as_ptr(), output.as_ptr())
    }

    /// Makes sums of the caller's input in the plan's own buffers, which are given back.
    ///
    /// # Safety
    /// As for [`Plan::run_at`].
    unsafe fn sum_up(&mut self, sums: Reproducible, buffers: Buffers, input: *const u8) -> (*mut u8, *mut u8) {
        let (own_input, own_output) = self.own_buffers();
        let to = if buffers == Buffers::Apart { own_input } else { own_output };
        // That of a run that could not be begun.
        self.rounds_to = None;
        // SAFETY: the caller's promise, and buffers that have room for it.
        unsafe { sums.begin(input, to, self.input) };
        (own_input, own_output)
    }

    /// Rounds so many of the plan's own results to the caller's elements.
    ///
    /// # Safety
    /// They can be written.
    unsafe fn round_to(&self, output: *mut u8, count: usize) {
        if let (Some(sums), Some((_, own))) = (self.sums, &self.own) {
            // SAFETY: the caller's promise; there are as many results.
            unsafe { sums.end(own.as_ptr(), output, count) };
        }
    }
}

/// Gives the memory of a blocking run back when it ends, also by a panic in a user's operation.
struct Running<'a>(&'a mut PlanState);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

/// Calls the MPI library's own collective, if the plan is for that.
///
/// # Safety
/// As for [`Engine::begin`], until this returns.
unsafe fn call_library(
    core: &mut PlanState,
    rank: &RankState,
    buffers: Buffers,
    input: *const u8,
    output: *mut u8,
) -> Result<()> {
    let Means::Library(library) = &mut core.means else {
        return Err(Error::Operation("the plan is not for the MPI library's own collective; run it".into()));
    };
    // SAFETY: the caller keeps the buffers until this function returns. MPI waits: others may enter meanwhile.
    let ran = rank.world.gate.away(|| unsafe { library.0.run(buffers, input, output) });
    ran.map_err(|error| rank.give_up(core.scope, error))
}

/// Runs a plan, of which no run is under way, from beginning to end.
///
/// # Safety
/// As for [`Engine::begin`], until this returns.
#[inline(always)]
unsafe fn run(
    core: &mut PlanState,
    rank: &RankState,
    buffers: Buffers,
    input: *const u8,
    output: *mut u8,
) -> Result<()> {
    let Means::Schedule(scheduled) = &mut core.means else {
        // SAFETY: the caller's promise.
        return unsafe { run_library(core, rank, buffers, input, output) };
    };
    // SAFETY: the caller keeps the buffers until this function returns, and `Running` ends the run before that.
    if let Err(error) = unsafe { scheduled.begin(buffers, input, output) } {
        return Err(rank.give_up(core.scope, error));
    }
    let running = Running(core);
    match running.0.step(buffers, true) {
        Ok(true) => {
            std::mem::forget(running);
            Ok(())
        }
        begun => complete(running, rank, buffers, begun),
    }
}

/// Runs to its end what has begun.
#[inline(never)]
fn complete(running: Running<'_>, rank: &RankState, buffers: Buffers, begun: Result<bool>) -> Result<()> {
    let (scope, mut outcome) = (running.0.scope, begun);
    if matches!(outcome, Ok(false)) {
        let signature = running.0.signature.clone();
        let core = RefCell::new(&mut *running.0);
        let far = || core.borrow().awaits_far(buffers);
        let ready = || {
            rank.progress();
            match core.borrow_mut().step(buffers, true) {
                Ok(false) => false,
                ended => {
                    outcome = ended;
                    true
                }
            }
        };
        let awaited = |gone: &dyn Fn(usize) -> bool| core.borrow().awaited(buffers, gone);
        rank.world.wait(scope, &signature, &far, ready, awaited).map_err(|error| rank.give_up(scope, error))?;
    }
    outcome.map_err(|error| rank.give_up(scope, error))?;
    std::mem::forget(running);
    Ok(())
}

/// Calls the MPI library's own collective, which the plan is for, when everything under way is through.
///
/// # Safety
/// As for [`Engine::begin`], until this returns.
#[inline(never)]
unsafe fn run_library(
    core: &mut PlanState,
    rank: &RankState,
    buffers: Buffers,
    input: *const u8,
    output: *mut u8,
) -> Result<()> {
    let scope = core.scope;
    // While MPI blocks it moves nothing of ours on, and the others may wait for that before they come.
    let ready = || {
        rank.progress();
        rank.quiet(scope)
    };
    let waited = rank.world.wait(scope, &core.signature, &|| false, ready, |_| None);
    waited.map_err(|error| rank.give_up(scope, error))?;
    // SAFETY: the caller's promise.
    unsafe { call_library(core, rank, buffers, input, output) }
}

/// Waits for a run under way, if there is one.
fn finish(core: &Rc<RefCell<PlanState>>, rank: &RankState) -> Result<()> {
    if core.borrow().under_way.is_none() {
        return Ok(());
    }
    let scope = core.borrow().scope;
    let mut outcome = core.borrow_mut().progress();
    if matches!(outcome, Ok(false)) {
        let signature = core.borrow().signature.clone();
        let far = || {
            let core = core.borrow();
            core.awaits_far(core.under_way.unwrap_or(Buffers::Apart))
        };
        let ready = || {
            rank.progress();
            outcome = core.borrow_mut().progress();
            !matches!(outcome, Ok(false))
        };
        let awaited = |gone: &dyn Fn(usize) -> bool| {
            let core = core.borrow();
            let buffers = core.under_way.unwrap_or(Buffers::Apart);
            core.awaited(buffers, gone)
        };
        let waited = rank.world.wait(scope, &signature, &far, ready, awaited);
        if waited.is_err() {
            outcome = waited.map(|()| true);
        }
    }
    rank.retire(core);
    let mut core = core.borrow_mut();
    core.under_way = None;
    if outcome.is_err() {
        core.abandon();
    }
    outcome.map(|_| ()).map_err(|error| rank.give_up(scope, error))
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
    #[inline]
    pub(crate) unsafe fn run_at(&self, buffers: Buffers, input: *const u8, output: *mut u8) -> Result<()> {
        let _inside = self.rank.enter();
        let mut core = self.idle()?;
        // SAFETY: the caller's promise; it keeps the memory until this returns, and the plan its own.
        unsafe {
            let Some(sums) = core.sums else { return run(&mut core, &self.rank, buffers, input, output) };
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

/// A collective that runs while other work is done: see [`Plan::during`].
pub struct UnderWay<'a> {
    core: &'a Rc<RefCell<PlanState>>,
    rank: &'a Arc<RankState>,
}

impl UnderWay<'_> {
    /// Moves on without waiting; whether the collective is complete on this rank.
    pub fn test(&mut self) -> Result<bool> {
        let _inside = self.rank.enter();
        self.rank.progress();
        self.core.borrow_mut().progress()
    }
}

/// Ends a run on the caller's buffers when the work beside it panics.
struct Ending<'a> {
    core: &'a Rc<RefCell<PlanState>>,
    rank: &'a Arc<RankState>,
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        let _inside = self.rank.enter();
        self.rank.retire(self.core);
        let mut core = self.core.borrow_mut();
        core.abandon();
        core.under_way = None;
    }
}

/// A collective under way.
#[must_use = "a collective under way is completed by wait"]
pub struct Pending<'a, T: Element> {
    plan: &'a mut Plan<T>,
    output: &'a mut [T],
    done: bool,
}

impl<T: Element> Pending<'_, T> {
    /// Moves on without waiting; whether the result is in the output.
    pub fn test(&mut self) -> Result<bool> {
        if self.done {
            return Ok(true);
        }
        match self.plan.test() {
            Ok(true) => self.complete().map(|()| true),
            Ok(false) => Ok(false),
            Err(error) => {
                self.done = true;
                Err(error)
            }
        }
    }

    /// Waits for the result.
    pub fn wait(mut self) -> Result<()> {
        if self.done { Ok(()) } else { self.complete() }
    }

    fn complete(&mut self) -> Result<()> {
        let rank = self.plan.rank.clone();
        let _inside = rank.enter();
        self.done = true;
        finish(&self.plan.core, &self.plan.rank)?;
        let core = self.plan.core.borrow();
        let (_, own) = core.own.as_ref().expect("a run under way has buffers");
        let output = core.output.min(self.output.len());
        // SAFETY: the plan's own output holds that many elements, written by the run or zero.
        unsafe {
            match core.sums {
                None => std::ptr::copy_nonoverlapping(own.as_ptr().cast(), self.output.as_mut_ptr(), output),
                Some(_) => core.round_to(self.output.as_mut_ptr().cast(), output),
            }
        }
        Ok(())
    }
}

impl<T: Element> Drop for Pending<'_, T> {
    /// Waits; a result that nobody asked for is still written.
    fn drop(&mut self) {
        if !self.done && !std::thread::panicking() {
            let _ = self.complete();
        }
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
