//! What a communicator learns from its calls: who serves which is asked here, and ranks tell each other how long it took.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use allhands_model::{Allowance, Machine};
use allhands_schedule::{Choice, Collective, Expression, Knowledge, Problem};

use super::Comm;
use super::request::PlanRequest;
use crate::choose::{Abilities, class};
use crate::error::Error;
use crate::layout::Amount;
use crate::learn::{Learner, Lesson, Pace, Rivals, Seen, Subject, Traffic, Turn, Unlearned, WORDS};
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
/// One of ours is, where nothing is known of counts.
const EXPECTED_WITHOUT_COUNTS: f64 = 1.5;
/// Of those that the model knows, where counts differ, who is expected to take more than so many times as long is not tried.
const WORTH_A_TRY: f64 = 2.0;
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
        let Some(pace) = self.pace() else { return Ok(None) };
        let options = Options::new().only_ours(true);
        let (ask, own) = PlanRequest::raw(call, &options, None, &|| ())?;
        let ask = ask.reproducible(self.rank.sums_reproducibly());
        let subject = Subject {
            collective: ask.collective,
            class: Some(class(ask.bytes())),
            commutative: ask.commutative,
            rounds: (ask.collective.reduces() && !ask.exact).then_some(ask.root),
        };
        let serving = || {
            let problem = self.problem(&ask).ok()?;
            let (evidence, bytes) = (self.evidence.borrow().clone(), ask.bytes());
            let decision = evidence.choose(self.company.seating, &problem, bytes, self.abilities(&ask)).ok()?;
            let remembered = evidence.remembered(&problem, bytes, &decision.server);
            // In this job it is not known what the MPI is given, so it is tried again.
            let theirs = evidence.remembered_of_library(&problem, bytes, &decision.server);
            let remembered = remembered.filter(|_| theirs.is_none_or(|times| times >= 1.0));
            let promised = decision.promised();
            Some(Unlearned { server: decision.server, remembered, promised })
        };
        let theirs = |serving: &Server, seen: Seen| self.expected_in_turns(&ask, serving, seen.usual);
        let rivals = |serving: &Server, seen: Seen| self.rivals(&ask, own.is_some(), serving, seen.usual);
        self.turn(pace, (subject, since, Traffic::default()), library, serving, (theirs, rivals), finish)
    }

    /// The same of calls of which each rank knows its own counts, whatever they are; `serving` serves them without learning.
    pub(crate) fn learn_of_own_counts<E: From<Error>>(
        &self,
        call: &RawCall,
        serving: &Server,
        since: Option<u64>,
        library: bool,
        finish: impl FnOnce(&mut RawPlan) -> std::result::Result<(), E>,
    ) -> std::result::Result<Option<Turn>, E> {
        let Some(pace) = self.pace() else { return Ok(None) };
        let subject = Subject { collective: call.collective, class: None, commutative: true, rounds: None };
        let traffic = Traffic { size: class(size_of_own(call)), partners: self.partners_of_own(call) };
        let rivals = |serving: &Server, seen: Seen| self.rivals_of_own_counts(call, serving, seen);
        let theirs = |_: &Server, _: Seen| None;
        let serving = || Some(Unlearned { server: serving.clone(), remembered: None, promised: None });
        self.turn(pace, (subject, since, traffic), library, serving, (theirs, rivals), finish)
    }

    /// How soon things are tried, and when the run began; none where nothing is learned.
    fn pace(&self) -> Option<(Pace, Instant)> {
        let origin = self.rank.origin.as_ref()?;
        Some((origin.learning.pace()?, origin.began))
    }

    /// Who serves the next call of a subject. `serving`: who serves without learning; `theirs` and `rivals`: how many times as long as
    /// somebody the MPI's own is expected to take, if it may, and who might serve beside somebody, for calls of which so much is known.
    fn turn<E: From<Error>>(
        &self,
        (pace, began): (Pace, Instant),
        (subject, since, traffic): (Subject, Option<u64>, Traffic),
        library: bool,
        serving: impl FnOnce() -> Option<Unlearned>,
        (theirs, rivals): (impl FnOnce(&Server, Seen) -> Option<f64>, impl FnOnce(&Server, Seen) -> Rivals),
        finish: impl FnOnce(&mut RawPlan) -> std::result::Result<(), E>,
    ) -> std::result::Result<Option<Turn>, E> {
        let mut learning = self.learning.borrow_mut();
        let Learning { learner, exchange } =
            learning.get_or_insert_with(|| Learning { learner: Learner::new(pace, began), exchange: None });
        learner.refuses_library |= !library;
        let Some(topic) = learner.topic(subject, serving) else { return Ok(None) };
        let told = learner.exchange_is_due(topic);
        if told {
            let greatest = match exchange {
                Some(made) => made,
                none => {
                    let began = Instant::now();
                    let made = Greatest::new(self)?;
                    learner.spent(began.elapsed());
                    none.insert(made)
                }
            };
            let began = Instant::now();
            finish(greatest.start(learner.words())?)?;
            for settled in learner.told(greatest.words(), began.elapsed()) {
                self.log_lesson(&learner.lesson(settled));
            }
        }
        if learner.asks_for_library(topic) {
            let (serving, seen) = learner.serving(topic);
            let expected = theirs(serving, seen);
            learner.propose_library(topic, expected);
        }
        if learner.asks_for_rivals(topic) {
            let began = Instant::now();
            let (serving, seen) = learner.serving(topic);
            let rivals = rivals(serving, seen);
            learner.propose(topic, rivals, began.elapsed());
        }
        Ok(Some(Turn { told, ..learner.turn(topic, since, traffic) }))
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
        let learning = self.learning.borrow();
        let Some(Learning { learner, .. }) = &*learning else { return Default::default() };
        let (mut lessons, aside) = learner.lessons();
        for (topic, lesson) in lessons.iter_mut().enumerate().filter(|(_, lesson)| lesson.bytes.is_none()) {
            lesson.usual_bytes = self.usual_bytes(lesson.collective, learner.serving(topic).1);
        }
        (lessons, aside)
    }

    /// The class of the mean block in calls of which each rank knows its own counts, where that says enough of them: not along the edges of a graph, nor where few ranks talk.
    fn usual_bytes(&self, collective: Collective, seen: Seen) -> Option<usize> {
        let says_enough = !collective.has_graph() && !self.is_sparse(collective, seen.partners);
        (says_enough && seen.size > 0).then(|| class(self.mean_block(collective, seen.size)))
    }

    /// Of the bytes that the busiest rank gives and gets.
    fn mean_block(&self, collective: Collective, busiest: usize) -> usize {
        busiest / if collective.rooted() { self.size() } else { 2 * self.size() }
    }

    /// What its one-off calls have taught is kept for the next job, when the world ends. Whose calls are counted elsewhere has none.
    pub(super) fn leave_lessons(&self) {
        if let (Some(origin), false) = (&self.rank.origin, self.one_offs.borrow().never_called()) {
            let mut lessons = origin.lessons.lock().unwrap_or_else(PoisonError::into_inner);
            lessons.add(self.topology(), self.lessons());
        }
    }

    /// How many times as long as somebody the MPI's own is expected to take, where it may take turns with it: not where it may round otherwise.
    fn expected_in_turns(&self, ask: &PlanRequest<'_>, serving: &Server, usual: f64) -> Option<f64> {
        let keeps_bits = !ask.collective.reduces() || ask.exact;
        if !keeps_bits || *serving == Server::Library || !self.abilities(ask).library {
            return None;
        }
        let problem = self.problem(ask).ok()?;
        let known = self.evidence.borrow().remembered_of_library(&problem, ask.bytes(), serving);
        Some(known.unwrap_or_else(|| self.expected_of_the_library(usual)))
    }

    /// Who might serve beside somebody. Where operands are rounded only who evaluates the same expression may take turns.
    fn rivals(&self, ask: &PlanRequest<'_>, own_operation: bool, serving: &Server, usual: f64) -> Rivals {
        let Ok(problem) = self.problem(ask) else { return Rivals::default() };
        let (able, evidence) = (self.abilities(ask), self.evidence.borrow().clone());
        let mut all = evidence.rivals(self.company.seating, &problem, ask.bytes(), able, serving);
        if able.library && *serving != Server::Library && all.iter().all(|(server, _)| *server != Server::Library) {
            all.push((Server::Library, self.expected_of_the_library(usual)));
        }
        if !ask.collective.reduces() || ask.exact {
            return Rivals { open: all, ..Rivals::default() };
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
        Rivals { open, beside, ..Rivals::default() }
    }

    /// The same for calls of which each rank knows its own counts, where the busiest gives and gets so many bytes. Of a graph a rank keeps the edges of its own node, so what
    /// suits it is not thought through again.
    fn rivals_of_own_counts(&self, call: &RawCall, serving: &Server, seen: Seen) -> Rivals {
        let straight = self.straight(call, seen.partners);
        let gathers = serving.choice().is_some_and(|choice| choice.knowledge() == Knowledge::Node);
        let earlier = self.earlier_of_own_counts(call, seen);
        let fastest = earlier.iter().find(|(server, _)| server.choice().is_some());
        let learned =
            fastest.map(|(server, _)| (server.clone(), "the fastest of what was measured earlier".to_owned()));
        let instead = straight.clone().filter(|_| gathers).or(learned).filter(|(server, _)| server != serving);
        let serving = instead.as_ref().map_or(serving, |(server, _)| server);
        let mut all = match self.is_apart() && call.graph.is_none() && straight.is_none() {
            true => self.modelled_of_own_counts(call, serving, seen.size),
            false => Vec::new(),
        };
        let names: &[&str] = match call.collective.family() {
            Collective::NeighborAllgather | Collective::NeighborAlltoall => &["direct", "node-aware"],
            Collective::Alltoall => &["spread-out"],
            _ => &["linear"],
        };
        let ours = names.iter().filter_map(|name| Choice::parse(call.collective, name).ok());
        // Between ranks of one node nothing is gathered for another.
        let ours = ours.filter(|choice| self.is_apart() || choice.knowledge() == Knowledge::Own);
        all.extend(ours.map(|choice| (Server::Schedule(choice), EXPECTED_WITHOUT_COUNTS)));
        let time = |of: &Server| earlier.iter().find(|(server, _)| server == of).map(|(_, time)| *time);
        let theirs = time(&Server::Library).zip(time(serving)).map(|(theirs, ours)| theirs / ours);
        all.push((Server::Library, theirs.unwrap_or_else(|| self.expected_of_the_library(seen.usual))));
        // Other settings of an algorithm promise less than they would cost.
        let name = |server: &Server| server.choice().map(|choice| choice.algorithm.name);
        let mut open: Vec<(Server, f64)> = Vec::new();
        for (server, expected) in all {
            let known = open.iter().map(|(known, _)| known).chain([serving]).any(|known| name(known) == name(&server));
            if !known {
                open.push((server, expected));
            }
        }
        Rivals { instead, open, beside: Vec::new() }
    }

    /// Who may serve such calls, and how long each took in an earlier job, the fastest first.
    fn earlier_of_own_counts(&self, call: &RawCall, seen: Seen) -> Vec<(Server, f64)> {
        let Some(bytes) = self.usual_bytes(call.collective, seen) else { return Vec::new() };
        let Ok(problem) = self.problem_of_own_counts(call) else { return Vec::new() };
        let serves = |server: &Server| match server.choice() {
            Some(choice) => choice.knowledge() != Knowledge::All && choice.prepare(&problem).is_ok(),
            None => true,
        };
        let mut earlier = self.evidence.borrow().earlier(&problem, bytes);
        earlier.retain(|(server, _)| serves(server));
        earlier
    }

    /// One with equal blocks, which stands for all.
    fn problem_of_own_counts(&self, call: &RawCall) -> allhands_schedule::Result<Problem> {
        Problem::new(call.collective, self.company.topology.clone()).with_root(call.root)
    }

    /// Who serves an alltoallv in which so few ranks talk to each other that nobody sends more messages to other nodes straight than one for each node, and why: what
    /// is gathered in nodes first arrives later then.
    fn straight(&self, call: &RawCall, partners: usize) -> Option<(Server, String)> {
        if !self.is_sparse(call.collective, partners) {
            return None;
        }
        let others = self.company.topology.regions(1) - 1;
        let straight = Choice::parse(call.collective, "spread-out").ok()?;
        Some((Server::Schedule(straight), format!("no rank talks to more than {partners} on the {others} other nodes")))
    }

    /// Whether nobody has more partners in an alltoallv than there are other nodes.
    fn is_sparse(&self, collective: Collective, partners: usize) -> bool {
        collective == Collective::Alltoallv && self.is_apart() && partners < self.company.topology.regions(1)
    }

    /// With how many ranks of other nodes this one exchanges something in an alltoallv, of which it knows its own counts.
    fn partners_of_own(&self, call: &RawCall) -> usize {
        let far = |(rank, count): (usize, &usize)| *count > 0 && self.company.topology.far(self.rank(), rank);
        let count = |counts: &[usize]| counts.iter().enumerate().filter(|block| far(*block)).count();
        match (&call.amount, call.collective) {
            (Amount::Own { given, gotten, .. }, Collective::Alltoallv) => count(given).max(count(gotten)),
            // All of them, as far as anybody knows.
            _ => self.size(),
        }
    }

    /// The best by the model for equal blocks, in which no rank needs to know all counts.
    fn modelled_of_own_counts(&self, call: &RawCall, serving: &Server, typical: usize) -> Vec<(Server, f64)> {
        let Ok(problem) = self.problem_of_own_counts(call) else { return Vec::new() };
        let able = Abilities { library: false, allowance: Allowance { shares: false, memory: None } };
        let (evidence, bytes) = (self.evidence.borrow().clone(), self.mean_block(call.collective, typical));
        let best = evidence.rivals(self.company.seating, &problem, bytes, able, serving);
        let of_own = |(server, expected): (Server, f64)| match server.choice()?.knowledge() {
            Knowledge::Own | Knowledge::Node => Some((server, expected)),
            // Sizes travel first, with as many messages.
            Knowledge::Path => Some((server, 2.0 * expected)),
            Knowledge::All => None,
        };
        // Nothing is tried before everybody's try can be paid for.
        best.into_iter().filter_map(of_own).filter(|(_, expected)| *expected < WORTH_A_TRY).collect()
    }

    /// How many times as long the MPI's own may take as somebody who takes so long.
    fn expected_of_the_library(&self, usual: f64) -> f64 {
        // Where ranks outnumber cores it may wait for somebody who has lost the core.
        let crowded = self.evidence.borrow().is_crowded(self.size());
        EXPECTED_OF_THE_LIBRARY + if crowded { SLICE / usual.max(1e-9) } else { 0.0 }
    }

    /// Says what was learned, if the user wants to know.
    fn log_lesson(&self, lesson: &Lesson) {
        if self.rank() == 0 && lesson.tried.len() > 1 && crate::log::logs() {
            let times: Vec<String> =
                lesson.tried.iter().map(|time| format!("{} {:.2} us", time.algorithm, time.median_us)).collect();
            let why = format!("learned: {}", times.join(", "));
            crate::log::log(lesson.collective.name(), lesson.bytes, self.size(), &lesson.server.to_string(), &why);
        }
    }
}

/// What a rank gives and gets in a call of which it knows its own counts, in bytes; of counts that no memory could hold the greatest number.
fn size_of_own(call: &RawCall) -> usize {
    let sum = |counts: &[usize]| counts.iter().fold(0usize, |sum, count| sum.saturating_add(*count));
    let elements = match &call.amount {
        Amount::Each(count) => *count,
        Amount::Listed(counts) => sum(counts),
        Amount::Own { given, gotten, .. } => sum(given).saturating_add(sum(gotten)),
    };
    elements.saturating_mul(call.element.size())
}

/// What a reduction evaluates, by an algorithm.
fn expression(choice: &Choice, problem: &Problem) -> Option<Expression> {
    choice.prepare(problem).ok()?.expression()
}

#[cfg(test)]
mod tests {
    use allhands_schedule::Topology;

    use super::*;
    use crate::kernels::Type;
    use crate::tuning::Tuning;

    /// Of 8 ranks on 2 nodes.
    const EARLIER: &str = r#"
        schema = 1
        transport = "threads"
        cells = 1
        [[cell]]
        collective = "alltoallv"
        nodes = 2
        ranks_per_node = 4
        bytes = 64
        times = [
            { algorithm = "mpi", median_us = 20.0, p10_us = 20.0, p90_us = 20.0, samples = 16 },
            { algorithm = "node-aware:local=shared", median_us = 30.0, p10_us = 30.0, p90_us = 30.0, samples = 16 },
            { algorithm = "pairwise", median_us = 40.0, p10_us = 40.0, p90_us = 40.0, samples = 16 },
            { algorithm = "node-aware", median_us = 50.0, p10_us = 50.0, p90_us = 50.0, samples = 16 },
        ]"#;

    #[test]
    fn calls_of_any_size_follow_what_an_earlier_job_learned_of_their_usual_one() {
        let topology = Topology::regular(2, 4).unwrap();
        crate::threads(topology, |comm| {
            comm.follow(EARLIER.parse::<Tuning>().unwrap());
            let amount = Amount::Own { given: vec![64; 8], gotten: vec![64; 8], carried: Vec::new() };
            let call = |collective| RawCall {
                collective,
                amount: amount.clone(),
                element: Type::U8,
                operation: None,
                root: 0,
                graph: None,
            };
            let rivals = |collective: Collective, size: usize, partners: usize| {
                let serving = Server::parse(collective, "node-aware").unwrap();
                let rivals =
                    comm.rivals_of_own_counts(&call(collective), &serving, Seen { usual: 1e-4, size, partners });
                let theirs = rivals.open.iter().find(|(server, _)| *server == Server::Library).map(|(_, times)| *times);
                (rivals.instead.map(|(server, _)| server.to_string()), theirs)
            };
            // 64 bytes a block; who needs to know all counts cannot serve.
            for near in [64, 60] {
                let found = rivals(Collective::Alltoallv, 2 * 8 * near, 4);
                assert_eq!(found, (Some("pairwise".to_owned()), Some(0.5)), "{near}");
            }
            // Other sizes, another collective.
            for (collective, size) in [(Collective::Alltoallv, 2 * 8 * 640), (Collective::Gatherv, 8 * 64)] {
                assert_eq!(rivals(collective, size, 4), (None, Some(comm.expected_of_the_library(1e-4))));
            }
            Ok(())
        })
        .unwrap();
    }
}
