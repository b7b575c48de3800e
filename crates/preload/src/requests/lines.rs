//! Runs under way on one communicator: each waits in the line of its plan, and the first of a line is being run.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use allhands::Server;
use allhands::raw::{PlanStore, RawCall, RawComm, RawPlan};
use allhands_mpi::Handle;

use super::Patience;
use super::exchange::Exchange;
use super::marks::Mark;
use super::{FAILED, Failure, UNDER_WAY, lock};
use crate::comms::{Chosen, MOST_WEIGHT, Wish};
use crate::failure::{Reason, Unserved};
use crate::report::By;
use crate::session::Session;
use crate::task::{Staged, Task};

/// The lines of a communicator.
pub(crate) struct Lines {
    lines: BTreeMap<u64, Line>,
    /// Where calls of a shape find theirs; or why the MPI's own serves them.
    places: PlanStore<RawCall, Result<u64, Reason>>,
    /// That of alltoallvs.
    exchanges: Option<u64>,
    made: u64,
}

/// Runs of one plan, one after the other.
struct Line {
    means: Means,
    /// What a persistent request asks for.
    task: Option<Rc<Task>>,
    /// Whether there may be more runs.
    wanted: bool,
    runs: VecDeque<Run>,
}

/// What runs them.
enum Means {
    /// There is nothing to move.
    Nothing,
    Plan(RawPlan, Arc<Chosen>),
    Exchange(Box<Exchange>),
}

/// A run that was begun by the program.
pub(super) struct Run {
    pub(super) task: Rc<Task>,
    pub(super) staged: Staged,
    pub(super) request: Handle,
    pub(super) mark: Mark,
    pub(super) call: Named,
    /// Whether its plan runs it.
    pub(super) runs: bool,
}

/// The call that a run came with.
#[derive(Clone, Copy)]
pub(crate) struct Named {
    /// MPI's name for it, and that of the report.
    pub(crate) function: &'static str,
    pub(crate) name: &'static str,
    pub(crate) comm: Handle,
    pub(crate) persistent: bool,
    pub(crate) began: Option<Instant>,
}

impl Default for Lines {
    fn default() -> Lines {
        Lines { lines: BTreeMap::new(), places: PlanStore::new(MOST_WEIGHT), exchanges: None, made: 0 }
    }
}

impl Lines {
    /// Whether a run is under way.
    pub(super) fn busy(&self) -> bool {
        self.lines.values().any(|line| !line.runs.is_empty())
    }

    /// Whether a request is that of a run under way.
    pub(super) fn has(&self, request: Handle) -> bool {
        self.lines.values().any(|line| line.runs.iter().any(|run| run.request == request))
    }

    /// Moves all runs on.
    pub(super) fn step(&mut self, session: &Session) {
        self.lines.values_mut().for_each(|line| line.step(session));
        self.lines.retain(|_, line| line.wanted || !line.runs.is_empty());
    }

    /// The line for non-blocking calls of a shape.
    pub(super) fn of_shape(
        &mut self,
        session: &Session,
        comm: &RawComm,
        call: &RawCall,
        wish: Wish<'_>,
    ) -> Result<u64, Unserved> {
        if let Some(known) = self.places.get(call) {
            return known.clone().map_err(Unserved::from);
        }
        let place = match self.make(session, comm, call, wish)? {
            Ok(plan) => Ok(self.add(plan, None)),
            Err(why) => Err(why),
        };
        // Every rank begins the same calls, so all of them drop the same. Runs under way stay in their lines.
        let (_, dropped) = self.places.insert(call.clone(), place.clone(), call.weight(comm.size()));
        dropped.into_iter().filter_map(|(_, line)| line.ok()).for_each(|line| self.forget(line));
        place.map_err(Unserved::from)
    }

    /// A line for a persistent request.
    pub(super) fn of_request(
        &mut self,
        session: &Session,
        comm: &RawComm,
        task: Task,
        wish: Option<Wish<'_>>,
    ) -> Result<u64, Unserved> {
        let means = match wish {
            Some(wish) => self.make(session, comm, &task.call, wish)??,
            None => Means::Nothing,
        };
        Ok(self.add(means, Some(Rc::new(task))))
    }

    /// The line for alltoallvs of any counts.
    pub(super) fn of_exchanges(&mut self, comm: &RawComm, wish: Wish<'_>) -> Result<u64, Unserved> {
        if let Some(line) = self.exchanges {
            return Ok(line);
        }
        let line = self.add(Means::Exchange(Box::new(Exchange::new(comm, wish)?)), None);
        self.exchanges = Some(line);
        Ok(line)
    }

    /// A line for a run that moves nothing.
    pub(super) fn of_nothing(&mut self) -> u64 {
        let line = self.add(Means::Nothing, None);
        self.forget(line);
        line
    }

    fn add(&mut self, means: Means, task: Option<Rc<Task>>) -> u64 {
        self.made += 1;
        self.lines.insert(self.made, Line { means, task, wanted: true, runs: VecDeque::new() });
        self.made
    }

    /// A plan, or why the MPI's own is better.
    fn make(
        &mut self,
        session: &Session,
        comm: &RawComm,
        call: &RawCall,
        wish: Wish<'_>,
    ) -> Result<Result<Means, Reason>, Unserved> {
        let (plan, why) = wish.plan(|options| comm.plan_while(call, options, &self.meanwhile(session)))?;
        Ok(match plan.server() {
            Server::Library => Err(Reason::Preferred(why.into())),
            Server::Schedule(choice) => Ok(Means::Plan(plan, Arc::new(Chosen { algorithm: choice.to_string(), why }))),
        })
    }

    /// What is to be done while others are waited for.
    pub(crate) fn meanwhile<'a>(&'a mut self, session: &'a Session) -> impl Fn() + 'a {
        let lines = RefCell::new(self);
        move || {
            if super::any() {
                lines.borrow_mut().step(session);
                session.requests.progress(session);
            }
        }
    }

    /// There are no more runs to come.
    pub(crate) fn forget(&mut self, line: u64) {
        if let Some(known) = self.lines.get_mut(&line) {
            known.wanted = false;
        }
    }

    /// What a persistent request asks for.
    pub(super) fn task(&self, line: u64) -> Option<Rc<Task>> {
        self.lines.get(&line)?.task.clone()
    }

    /// Puts a run into its line.
    pub(super) fn push(&mut self, line: u64, run: Run) {
        if let Some(line) = self.lines.get_mut(&line) {
            UNDER_WAY.fetch_add(1, Ordering::AcqRel);
            line.runs.push_back(run);
        }
    }

    /// A run that cannot be begun ends at once.
    pub(super) fn refuse(&mut self, session: &Session, run: Run, unserved: Unserved) {
        UNDER_WAY.fetch_add(1, Ordering::AcqRel);
        run.end(session, Err(unserved), None);
    }
}

impl Line {
    fn step(&mut self, session: &Session) {
        while let Some(run) = self.runs.front_mut() {
            let outcome = match self.means.step(session, run) {
                Ok(false) => return,
                Ok(true) => Ok(()),
                Err(unserved) => Err(unserved),
            };
            if let Some(run) = self.runs.pop_front() {
                run.end(session, outcome, self.means.chosen());
            }
        }
    }
}

impl Means {
    /// Moves a run on; whether it is through.
    fn step(&mut self, session: &Session, run: &mut Run) -> Result<bool, Unserved> {
        match self {
            Means::Nothing => Ok(true),
            Means::Plan(plan, _) => run.step(session, plan),
            Means::Exchange(exchange) => exchange.step(session, run),
        }
    }

    fn chosen(&self) -> Option<&Chosen> {
        match self {
            Means::Nothing => None,
            Means::Plan(_, chosen) => Some(chosen),
            Means::Exchange(exchange) => exchange.chosen(),
        }
    }
}

impl Run {
    /// Moves it on by a plan; whether it is through.
    pub(super) fn step(&mut self, session: &Session, plan: &mut RawPlan) -> Result<bool, Unserved> {
        // SAFETY: the program keeps its memory as it said until its request is complete, and the run keeps what is staged.
        unsafe {
            if !std::mem::replace(&mut self.runs, true) {
                self.task.start(&self.staged, plan)?;
            }
            if !plan.test()? {
                return Ok(false);
            }
            self.task.unstage(session.mpi, &self.staged)?;
        }
        Ok(true)
    }

    /// It is through: the program gets to know when it asks.
    pub(super) fn end(self, session: &Session, outcome: Result<(), Unserved>, chosen: Option<&Chosen>) {
        let Run { task, request, mark, call, .. } = self;
        if let (Some(report), Some(began)) = (&session.report, call.began) {
            let by = By::Ours {
                algorithm: chosen.map_or("nothing", |chosen| &chosen.algorithm),
                why: chosen.map_or("there is nothing to move", |chosen| &chosen.why),
            };
            report.note(call.name, Some(task.bytes), &by, began.elapsed());
        }
        if let Err(Unserved::Failed(error)) = outcome {
            let failure = Failure { function: call.function, comm: call.comm, error };
            lock(&session.requests.failed).insert(request, failure);
            FAILED.fetch_add(1, Ordering::AcqRel);
        }
        mark.complete(session.mpi);
        if !call.persistent {
            lock(&session.requests.marks).free(mark);
        }
        UNDER_WAY.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Runs a blocking collective's plan to its end; what is under way moves on.
///
/// # Safety
/// As for [`Task::run`].
pub(crate) unsafe fn beside(
    session: &Session,
    task: &Task,
    plan: &mut RawPlan,
    lines: &mut Lines,
) -> Result<(), Unserved> {
    // SAFETY: the caller's promise; the memory stays until the run is through.
    unsafe {
        let staged = task.stage(session.mpi)?;
        task.start(&staged, plan)?;
        finish(session, plan, lines)?;
        task.unstage(session.mpi, &staged)
    }
}

/// Waits for a plan's run; what is under way moves on.
pub(crate) fn finish(session: &Session, plan: &mut RawPlan, lines: &mut Lines) -> Result<(), Unserved> {
    if !super::any() {
        return Ok(plan.wait()?);
    }
    let (meanwhile, mut patience) = (lines.meanwhile(session), Patience::default());
    while !plan.test()? {
        meanwhile();
        // Others may first wait for a message of the program's, or for a request of the MPI's own.
        plan.drive_mpi();
        patience.pause();
    }
    Ok(())
}
