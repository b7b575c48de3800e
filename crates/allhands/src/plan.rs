//! Plans: a collective chosen, compiled and connected once, and run as often as one likes.

use std::cell::{RefCell, RefMut};
use std::fmt::Write as _;
use std::marker::PhantomData;
use std::rc::Rc;

use allhands_schedule::{Choice, Counts, Prepared, Schedule};

use crate::buffer::Buffer;
use crate::comm::RankState;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::kernels::Element;
use crate::layout::Amount;
use crate::program::{Buffers, Program, compile};

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
}

impl Default for Options {
    fn default() -> Options {
        Options { algorithm: None, identical: true }
    }
}

impl Options {
    /// The library chooses, and every rank gets the same bits.
    pub fn new() -> Options {
        Options::default()
    }

    /// Forces an algorithm, with parameters, as `allhands list` names them. If it cannot serve, that is an error.
    pub fn algorithm(self, name: &str) -> Options {
        Options { algorithm: Some(name.into()), ..self }
    }

    /// Whether every rank must get the same bits, also where rounding depends on the order of operands. Without, a few more
    /// algorithms can serve.
    pub fn identical(self, identical: bool) -> Options {
        Options { identical, ..self }
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
    core: Rc<RefCell<Core>>,
    rank: Rc<RankState>,
    elements: PhantomData<T>,
}

/// The part of a plan that does not know the element type.
pub(crate) struct Core {
    prepared: Prepared,
    schedule: Schedule,
    amount: Amount,
    element: usize,
    why: String,
    /// What it is, for error messages.
    signature: Rc<str>,
    engine: Engine,
    apart: Program,
    in_place: Option<Program>,
    /// The run under way that is not blocking, on buffers of the plan's own: input and output.
    under_way: Option<Buffers>,
    own: Option<(Buffer, Buffer)>,
    finished: bool,
}

impl Core {
    #[allow(clippy::too_many_arguments)] // what a plan is made of
    pub(crate) fn new(
        prepared: Prepared,
        schedule: Schedule,
        amount: Amount,
        element: usize,
        why: String,
        signature: String,
        engine: Engine,
        apart: Program,
    ) -> Core {
        Core {
            prepared,
            schedule,
            amount,
            element,
            why,
            signature: signature.into(),
            engine,
            apart,
            in_place: None,
            under_way: None,
            own: None,
            finished: false,
        }
    }

    fn ready(&mut self, buffers: Buffers) {
        if buffers == Buffers::InPlace && self.in_place.is_none() {
            let program = compile(
                self.prepared.problem(),
                &self.schedule,
                self.prepared.blocks(),
                self.element,
                &self.amount,
                buffers,
            );
            self.engine.grow_scratch(program.scratch);
            self.in_place = Some(program);
        }
    }

    fn program(&self, buffers: Buffers) -> &Program {
        match buffers {
            Buffers::Apart => &self.apart,
            Buffers::InPlace => self.in_place.as_ref().expect("compiled before it is run"),
        }
    }

    fn step(&mut self, buffers: Buffers) -> Result<bool> {
        match buffers {
            Buffers::Apart => self.engine.step(&self.apart),
            Buffers::InPlace => self.engine.step(self.in_place.as_ref().expect("compiled before it is run")),
        }
    }

    /// Moves the run under way on; `true` when there is none or it is through. An error stays with the run's owner.
    pub(crate) fn progress(&mut self) -> Result<bool> {
        let Some(buffers) = self.under_way else { return Ok(true) };
        if !self.finished {
            self.finished = self.step(buffers)?;
        }
        Ok(self.finished)
    }

    fn check(&self, which: &'static str, given: usize, needed: usize) -> Result<()> {
        if given == needed {
            return Ok(());
        }
        let collective = self.prepared.problem().collective.name();
        Err(Error::Length { which, collective, given, needed })
    }

    /// How many elements the caller's buffers have: input, output, and one buffer for both.
    fn lengths(&self) -> (usize, usize, usize) {
        (self.apart.input, self.apart.output, self.apart.input.max(self.apart.output))
    }
}

/// Gives the memory of a blocking run back when it ends, also by a panic in a user's operation.
struct Running<'a>(&'a mut Core);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.engine.abandon();
    }
}

/// Runs a plan, of which no run is under way, from beginning to end.
///
/// # Safety
/// As for [`Engine::begin`], until this returns.
unsafe fn run(core: &mut Core, rank: &RankState, buffers: Buffers, input: *const u8, output: *mut u8) -> Result<()> {
    core.ready(buffers);
    // SAFETY: the caller keeps the buffers until this function returns, and `Running` ends the run before that.
    unsafe { core.engine.begin(input, output) };
    let running = Running(core);
    let mut outcome = running.0.step(buffers);
    if matches!(outcome, Ok(false)) {
        let (signature, far) = (running.0.signature.clone(), running.0.engine.far());
        let core = RefCell::new(&mut *running.0);
        let ready = || {
            rank.progress();
            match core.borrow_mut().step(buffers) {
                Ok(false) => false,
                ended => {
                    outcome = ended;
                    true
                }
            }
        };
        let awaited = |gone: &dyn Fn(usize) -> bool| {
            let core = core.borrow();
            core.engine.awaited(core.program(buffers), core.engine.position(), gone)
        };
        rank.world.wait(&signature, far, ready, awaited).map_err(|error| rank.give_up(error))?;
    }
    outcome.map_err(|error| rank.give_up(error))?;
    std::mem::forget(running);
    Ok(())
}

/// Waits for a run under way, if there is one.
fn finish(core: &Rc<RefCell<Core>>, rank: &Rc<RankState>) -> Result<()> {
    if core.borrow().under_way.is_none() {
        return Ok(());
    }
    let mut outcome = core.borrow_mut().progress();
    if matches!(outcome, Ok(false)) {
        let (signature, far) = (core.borrow().signature.clone(), core.borrow().engine.far());
        let ready = || {
            rank.progress();
            outcome = core.borrow_mut().progress();
            !matches!(outcome, Ok(false))
        };
        let awaited = |gone: &dyn Fn(usize) -> bool| {
            let core = core.borrow();
            let buffers = core.under_way.unwrap_or(Buffers::Apart);
            core.engine.awaited(core.program(buffers), core.engine.position(), gone)
        };
        let waited = rank.world.wait(&signature, far, ready, awaited);
        if waited.is_err() {
            outcome = waited.map(|()| true);
        }
    }
    rank.retire(core);
    let mut core = core.borrow_mut();
    core.under_way = None;
    if outcome.is_err() {
        core.engine.abandon();
    }
    outcome.map(|_| ()).map_err(|error| rank.give_up(error))
}

impl<T: Element> Plan<T> {
    pub(crate) fn new(core: Rc<RefCell<Core>>, rank: Rc<RankState>) -> Plan<T> {
        Plan { core, rank, elements: PhantomData }
    }

    /// Runs the collective to its end.
    pub fn run(&mut self, input: &[T], output: &mut [T]) -> Result<()> {
        let mut core = self.idle()?;
        core.check("input", input.len(), core.apart.input)?;
        core.check("output", output.len(), core.apart.output)?;
        // SAFETY: the slices are as long as the program needs, and borrowed until `run` returns.
        unsafe { run(&mut core, &self.rank, Buffers::Apart, input.as_ptr().cast(), output.as_mut_ptr().cast()) }
    }

    /// The same with the input in the output's place: in an allgather at this rank's block, else from the start.
    pub fn run_in_place(&mut self, buffer: &mut [T]) -> Result<()> {
        let mut core = self.idle()?;
        core.check("in-place", buffer.len(), core.lengths().2)?;
        let buffer = buffer.as_mut_ptr().cast::<u8>();
        // SAFETY: as above; a program compiled in place reads and writes the output only.
        unsafe { run(&mut core, &self.rank, Buffers::InPlace, buffer, buffer) }
    }

    /// The plan, when a run that is still under way is through.
    fn idle(&self) -> Result<RefMut<'_, Core>> {
        let core = self.core.borrow_mut();
        if core.under_way.is_none() {
            return Ok(core);
        }
        drop(core);
        finish(&self.core, &self.rank)?;
        Ok(self.core.borrow_mut())
    }

    /// Begins the collective. It moves on whenever this rank tests or waits for anything; until then the output is borrowed.
    ///
    /// The input is copied into the plan, and the output out of it at the end, so that a forgotten [`Pending`] harms nobody.
    pub fn start<'a>(&'a mut self, input: &[T], output: &'a mut [T]) -> Result<Pending<'a, T>> {
        let core = self.core.borrow();
        core.check("input", input.len(), core.apart.input)?;
        core.check("output", output.len(), core.apart.output)?;
        drop(core);
        self.begin(Buffers::Apart, input)?;
        Ok(Pending { plan: self, output, done: false })
    }

    /// Begins the collective with the input in the output's place.
    pub fn start_in_place<'a>(&'a mut self, buffer: &'a mut [T]) -> Result<Pending<'a, T>> {
        let core = self.core.borrow();
        core.check("in-place", buffer.len(), core.lengths().2)?;
        drop(core);
        self.begin(Buffers::InPlace, buffer)?;
        Ok(Pending { plan: self, output: buffer, done: false })
    }

    fn begin(&mut self, buffers: Buffers, input: &[T]) -> Result<()> {
        let mut core = self.idle()?;
        core.ready(buffers);
        let bytes = core.lengths().2 * size_of::<T>();
        let (own_input, own_output) = core.own.get_or_insert_with(|| (Buffer::new(bytes), Buffer::new(bytes)));
        let (own_input, own_output) = (own_input.as_ptr(), own_output.as_ptr());
        let to = if buffers == Buffers::Apart { own_input } else { own_output };
        // SAFETY: both buffers have room for either side of the collective; they live as long as the plan, which ends the run
        // before it is dropped.
        unsafe {
            std::ptr::copy_nonoverlapping(input.as_ptr().cast(), to, size_of_val(input));
            core.engine.begin(own_input, own_output);
        }
        core.under_way = Some(buffers);
        core.finished = false;
        drop(core);
        self.rank.enlist(&self.core);
        self.rank.progress();
        Ok(())
    }

    /// The algorithm that runs.
    pub fn algorithm(&self) -> Choice {
        self.core.borrow().prepared.choice().clone()
    }

    /// Which algorithm runs, why, and what it costs.
    pub fn explain(&self) -> String {
        let core = self.core.borrow();
        let (problem, cost) = (core.prepared.problem(), core.prepared.cost());
        let counts = Counts::of(problem, &core.schedule);
        let most = if cost.exact { "" } else { "at most " };
        let mut text = format!(
            "{} on {} ranks: {}, because of {}\n",
            problem.collective,
            problem.ranks(),
            core.prepared.choice(),
            core.why
        );
        let bytes: usize = core.apart.sends.iter().map(|message| message.bytes).sum();
        let far = counts.far_sent.messages;
        let _ = writeln!(
            text,
            "this rank sends {} messages ({far} far), {bytes} bytes, in {} rounds",
            counts.sent.messages, counts.rounds
        );
        let _ = writeln!(text, "critical path: {most}{} messages one after the other", cost.steps);
        text
    }

    /// The compiled program of this rank, one instruction a line.
    pub fn program(&self) -> String {
        self.core.borrow().apart.to_string()
    }
}

impl<T> Drop for Plan<T> {
    fn drop(&mut self) {
        // A plan that is still cached or enlisted elsewhere lives on.
        if self.core.try_borrow().is_ok_and(|core| core.under_way.is_some()) {
            if std::thread::panicking() {
                self.rank.retire(&self.core);
                self.core.borrow_mut().engine.abandon();
                self.core.borrow_mut().under_way = None;
            } else {
                let _ = finish(&self.core, &self.rank);
            }
        }
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
        self.plan.rank.progress();
        let progressed = self.plan.core.borrow_mut().progress();
        match progressed {
            Ok(false) => Ok(false),
            _ => self.complete().map(|()| true),
        }
    }

    /// Waits for the result.
    pub fn wait(mut self) -> Result<()> {
        if self.done { Ok(()) } else { self.complete() }
    }

    fn complete(&mut self) -> Result<()> {
        self.done = true;
        finish(&self.plan.core, &self.plan.rank)?;
        let core = self.plan.core.borrow();
        let (_, own) = core.own.as_ref().expect("a run under way has buffers");
        let output = core.lengths().1.min(self.output.len());
        // SAFETY: the plan's own output holds that many elements, written by the run or zero.
        unsafe { std::ptr::copy_nonoverlapping(own.as_ptr().cast(), self.output.as_mut_ptr(), output) };
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
