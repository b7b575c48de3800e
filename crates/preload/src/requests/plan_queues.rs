//! Runs under way on one communicator: each waits in the line of its plan, and the first of a line is being run.

use allhands::raw::{PlanStore, RawCall, RawComm, RawPlan};
use allhands_call::{Reason, Task, Unserved, neighborhood};
use allhands_mpi::{Handle, Mpi};
use allhands_schedule::Collective;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use super::deferred_free::Lasting;
use super::exchange::Exchange;
use super::run::{Endings, Run};
use crate::groups::{Chosen, MOST_WEIGHT, PlanPreference};

/// The lines of a communicator.
pub(crate) struct PlanQueues {
    queues: BTreeMap<u64, PlanQueue>,
    /// Where calls of a shape find theirs; or why the MPI's own serves them.
    places: PlanStore<RawCall, Result<u64, Reason>>,
    /// Those of calls whose ranks know their own counts only: one for each collective.
    exchanges: Vec<(Collective, u64)>,
    made: u64,
}

/// Runs of one plan, one after the other.
struct PlanQueue {
    means: Means,
    /// What a persistent request asks for.
    asked: Option<Rc<Lasting>>,
    /// Whether there may be more runs.
    wanted: bool,
    runs: VecDeque<Run>,
}

/// What runs them.
enum Means {
    /// There is nothing to move.
    Nothing,
    Plan(RawPlan, Chosen),
    Exchange(Box<Exchange>),
}

impl Default for PlanQueues {
    fn default() -> PlanQueues {
        PlanQueues { queues: BTreeMap::new(), places: PlanStore::new(MOST_WEIGHT), exchanges: Vec::new(), made: 0 }
    }
}

impl PlanQueues {
    /// Whether a run is under way.
    pub(super) fn busy(&self) -> bool {
        self.queues.values().any(|line| !line.runs.is_empty())
    }

    /// Whether a request is that of a run under way.
    pub(super) fn has(&self, request: Handle) -> bool {
        self.queues.values().any(|line| line.runs.iter().any(|run| run.request() == request))
    }

    /// Moves all runs on.
    pub(super) fn step(&mut self, endings: &Endings) {
        self.queues.values_mut().for_each(|line| line.step(endings));
        self.queues.retain(|_, line| line.wanted || !line.runs.is_empty());
    }

    /// The line for non-blocking calls of a shape.
    pub(super) fn of_shape(
        &mut self,
        comm: &RawComm,
        call: &RawCall,
        preference: PlanPreference<'_>,
        on_idle: impl Fn(&mut PlanQueues),
    ) -> Result<u64, Unserved> {
        if let Some(known) = self.places.get(call) {
            return known.clone().map_err(Unserved::from);
        }
        let place = match self.make(comm, call, preference, on_idle)? {
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
        comm: &RawComm,
        asked: Lasting,
        preference: Option<PlanPreference<'_>>,
        on_idle: impl Fn(&mut PlanQueues),
    ) -> Result<u64, Unserved> {
        let means = match preference {
            Some(preference) => self.make(comm, &asked.task.call, preference, on_idle)??,
            None => Means::Nothing,
        };
        Ok(self.add(means, Some(Rc::new(asked))))
    }

    /// A line for a persistent request among neighbours, who tell each other now what they need to know. Who waits calls `finish`.
    pub(super) fn of_neighbors(
        &mut self,
        comm: &RawComm,
        asked: Lasting,
        preference: PlanPreference<'_>,
        finish: impl FnOnce(&mut RawPlan, &mut PlanQueues) -> Result<(), Unserved>,
    ) -> Result<u64, Unserved> {
        let call = &asked.task.call;
        let choice = preference.choice_for_own_counts(comm, call)?;
        let plan = neighborhood::plan(comm, call, &choice, |plan| finish(plan, self))?;
        let settled =
            preference.along.map(|hood| hood.choice(call.collective)).filter(|(settled, _)| **settled == choice);
        let why = settled.map_or_else(|| plan.why(), |(_, why)| why.to_owned());
        let chosen = Chosen { algorithm: choice.to_string(), why };
        Ok(self.add(Means::Plan(plan, chosen), Some(Rc::new(asked))))
    }

    /// The line for calls like this one, of any counts.
    pub(super) fn of_exchanges(
        &mut self,
        comm: &RawComm,
        task: &Task,
        preference: PlanPreference<'_>,
    ) -> Result<u64, Unserved> {
        let collective = task.call.collective;
        let known = self.exchanges.iter().find(|(known, _)| *known == collective).map(|(_, line)| *line);
        let line = match known {
            Some(line) => line,
            None => {
                // What every rank finds alike is found before anything is made.
                preference.choice_for_own_counts(comm, &task.call)?;
                let line = self.add(Means::Exchange(Box::new(Exchange::new(comm, task, preference)?)), None);
                self.exchanges.push((collective, line));
                line
            }
        };
        if let Some(PlanQueue { means: Means::Exchange(exchange), .. }) = self.queues.get_mut(&line) {
            exchange.prepare(comm, &task.call, preference)?;
        }
        Ok(line)
    }

    /// A line for a run that moves nothing.
    pub(super) fn of_nothing(&mut self) -> u64 {
        let line = self.add(Means::Nothing, None);
        self.forget(line);
        line
    }

    fn add(&mut self, means: Means, asked: Option<Rc<Lasting>>) -> u64 {
        self.made += 1;
        self.queues.insert(self.made, PlanQueue { means, asked, wanted: true, runs: VecDeque::new() });
        self.made
    }

    /// A plan, or why the MPI's own is better.
    fn make(
        &mut self,
        comm: &RawComm,
        call: &RawCall,
        preference: PlanPreference<'_>,
        on_idle: impl Fn(&mut PlanQueues),
    ) -> Result<Result<Means, Reason>, Unserved> {
        let queues = RefCell::new(self);
        let made = preference.plan(|options| comm.plan_while(call, options, &|| on_idle(&mut queues.borrow_mut())))?;
        Ok(made.map(|(plan, chosen)| Means::Plan(plan, chosen)))
    }

    /// There are no more runs to come.
    pub(super) fn forget(&mut self, line: u64) {
        if let Some(known) = self.queues.get_mut(&line) {
            known.wanted = false;
        }
    }

    /// What a persistent request asks for.
    pub(super) fn asked(&self, line: u64) -> Option<Rc<Lasting>> {
        self.queues.get(&line)?.asked.clone()
    }

    /// Puts a run into its line.
    pub(super) fn push(&mut self, line: u64, run: Run) {
        if let Some(line) = self.queues.get_mut(&line) {
            line.runs.push_back(run);
        }
    }
}

impl PlanQueue {
    fn step(&mut self, endings: &Endings) {
        while let Some(run) = self.runs.front_mut() {
            let outcome = match self.means.step(endings.mpi(), run) {
                Ok(false) => return,
                Ok(true) => Ok(()),
                Err(unserved) => Err(unserved),
            };
            if let Some(run) = self.runs.pop_front() {
                endings.end(run, outcome, self.means.chosen());
            }
        }
    }
}

impl Means {
    /// Moves a run on; whether it is through.
    fn step(&mut self, mpi: &Mpi, run: &mut Run) -> Result<bool, Unserved> {
        match self {
            Means::Nothing => Ok(true),
            Means::Plan(plan, _) => run.step(mpi, plan),
            Means::Exchange(exchange) => exchange.step(mpi, run),
        }
    }

    fn chosen(&mut self) -> Option<&Chosen> {
        match self {
            Means::Nothing => None,
            Means::Plan(_, chosen) => Some(chosen),
            Means::Exchange(exchange) => exchange.chosen(),
        }
    }
}
