//! What a communicator learns from its calls: who serves which is asked here, and ranks tell each other how long it took.

use std::time::{Duration, Instant};

use allhands_model::Machine;
use allhands_schedule::{Choice, Collective, Expression, Problem};

use super::{Comm, PlanRequest};
use crate::choose::class;
use crate::error::Error;
use crate::layout::Amount;
use crate::learn::{Learner, Lesson, Rivals, Subject, Turn, WORDS};
use crate::plan::Options;
use crate::raw::{Greatest, RawCall, RawPlan};
use crate::server::Server;

/// What is learned, and what tells times to all.
pub(super) struct Learning {
    learner: Learner,
    exchange: Option<Greatest<WORDS>>,
}

/// The MPI's own is expected to take so many times as long, where nothing is known of it.
const EXPECTED_OF_THE_LIBRARY: f64 = 1.5;
/// A scheduler's slice, in seconds.
const SLICE: f64 = 4e-3;

impl Comm {
    /// Who serves the next call like this one, and what follows; none where nothing is learned. All ranks ask at the same call. Now and then they tell each
    /// other how long calls took: `finish` waits for that. `since`: how many calls like it were served since it was asked for them, if it was. `library`: whether the
    /// MPI's own may be called with what this rank gives it.
    pub(crate) fn learn<E: From<Error>>(
        &self,
        call: &RawCall,
        since: Option<u64>,
        library: bool,
        finish: impl FnOnce(&mut RawPlan) -> std::result::Result<(), E>,
    ) -> std::result::Result<Option<Turn>, E> {
        let origin = self.rank.origin.as_ref();
        let Some((pace, began)) = origin.and_then(|origin| Some((origin.learning.pace()?, origin.began))) else {
            return Ok(None);
        };
        let options = Options::new().only_ours(true);
        let (ask, own) = PlanRequest::raw(call, &options, None, &|| ())?;
        let ask = ask.reproducible(self.rank.sums_reproducibly());
        let subject = Subject {
            collective: ask.collective,
            class: class(ask.bytes()),
            commutative: ask.commutative,
            rounds: (ask.collective.reduces() && !ask.exact).then_some(ask.root),
        };
        let mut learning = self.learning.borrow_mut();
        let Learning { learner, exchange } =
            learning.get_or_insert_with(|| Learning { learner: Learner::new(pace, began), exchange: None });
        learner.refuses_library |= !library;
        let serving = || {
            let problem = self.problem(&ask).ok()?;
            let (evidence, bytes) = (self.evidence.borrow().clone(), ask.bytes());
            let decision = evidence.choose(self.company.seating, &problem, bytes, self.abilities(&ask)).ok()?;
            let remembered = evidence.remembered(&problem, bytes, &decision.server);
            Some((decision.server, remembered))
        };
        let Some(topic) = learner.topic(subject, serving) else { return Ok(None) };
        let told = learner.exchange_is_due(topic);
        if told {
            let began = Instant::now();
            let greatest = match exchange {
                Some(made) => made,
                none => none.insert(Greatest::new(self)?),
            };
            finish(greatest.start(learner.words())?)?;
            for settled in learner.told(greatest.words(), began.elapsed()) {
                self.log_lesson(&learner.lesson(settled));
            }
        }
        if learner.asks_for_rivals(topic) {
            let began = Instant::now();
            let (serving, usual) = learner.serving(topic);
            let rivals = self.rivals(&ask, own.is_some(), serving, usual);
            learner.propose(topic, rivals);
            learner.spent(began.elapsed());
        }
        Ok(Some(Turn { told, ..learner.turn(topic, since) }))
    }

    /// See [`Evidence::fitted_machine`](crate::Evidence::fitted_machine).
    pub(crate) fn fitted(&self) -> Option<Machine> {
        self.evidence.borrow().fitted_machine()
    }

    /// See [`Evidence::unused`](crate::Evidence::unused).
    pub(crate) fn unused(&self) -> Vec<String> {
        self.evidence.borrow().unused().to_vec()
    }

    /// How long the turn took that was given last, on this rank.
    pub(crate) fn took(&self, time: Duration) {
        if let Some(learning) = &mut *self.learning.borrow_mut() {
            learning.learner.took(time);
        }
    }

    /// This rank spent some time beside calls, to learn.
    pub(crate) fn spent_on_learning(&self, time: Duration) {
        if let Some(learning) = &mut *self.learning.borrow_mut() {
            learning.learner.spent(time);
        }
    }

    /// What was learned here, and the seconds that were spent on no call in particular.
    pub(crate) fn lessons(&self) -> (Vec<Lesson>, f64) {
        self.learning.borrow().as_ref().map_or_else(Default::default, |learning| learning.learner.lessons())
    }

    /// Who might serve beside somebody. Where operands are rounded only who evaluates the same expression may take turns.
    fn rivals(&self, ask: &PlanRequest<'_>, own_operation: bool, serving: &Server, usual: f64) -> Rivals {
        let Ok(problem) = self.problem(ask) else { return Rivals::default() };
        let (able, evidence) = (self.abilities(ask), self.evidence.borrow().clone());
        let mut all = evidence.rivals(self.company.seating, &problem, ask.bytes(), able, serving);
        if able.library && *serving != Server::Library && all.iter().all(|(server, _)| *server != Server::Library) {
            // Where ranks outnumber cores it may wait for somebody who has lost the core.
            let slices = if evidence.is_crowded(self.size()) { SLICE / usual.max(1e-9) } else { 0.0 };
            all.push((Server::Library, EXPECTED_OF_THE_LIBRARY + slices));
        }
        if !ask.collective.reduces() || ask.exact {
            return Rivals { open: all, beside: Vec::new() };
        }
        // Calls of other counts belong to the same subject, and might not evaluate the same by the same two algorithms.
        let listed = matches!(ask.amount, Amount::Listed(_));
        let begun = serving.choice().filter(|_| !listed).and_then(|choice| expression(choice, &problem));
        let same = |server: &Server| {
            begun.is_some() && server.choice().and_then(|choice| expression(choice, &problem)) == begun
        };
        let (open, mut beside): (Vec<_>, Vec<_>) = all.into_iter().partition(|(server, _)| same(server));
        // Beside a call it is ours to call the MPI's own, which takes a communicator.
        // Who has left it must know that all others have come, and through what they had begun before.
        let together = matches!(ask.collective.family(), Collective::Allreduce | Collective::ReduceScatter);
        let library = self.library.borrow().is_some() && together;
        beside.retain(|(server, _)| library || *server != Server::Library);
        if own_operation {
            // It may do anything, and is called for the program's calls alone.
            beside.clear();
        }
        Rivals { open, beside }
    }

    /// Says what was learned, if the user wants to know.
    fn log_lesson(&self, lesson: &Lesson) {
        if self.rank() == 0 && crate::log::logs() {
            let times: Vec<String> =
                lesson.tried.iter().map(|time| format!("{} {:.2} us", time.algorithm, time.median_us)).collect();
            let why = format!("learned: {}", times.join(", "));
            crate::log::log(
                lesson.collective.name(),
                Some(lesson.bytes),
                self.size(),
                &lesson.server.to_string(),
                &why,
            );
        }
    }
}

/// What a reduction evaluates, by an algorithm.
fn expression(choice: &Choice, problem: &Problem) -> Option<Expression> {
    choice.prepare(problem).ok()?.expression()
}
