//! Learning while the program runs: for calls that come often, candidates take turns, and the fastest serves from then on.
//!
//! **Nobody decides alone.** Who serves a call follows from how many calls its communicator has seen and from times that its ranks have told each
//! other: now and then one of its calls begins with an allreduce of a few words, the longest time of any rank for every turn, and what
//! follows from them follows on all ranks at once. (A collective may make ranks wait for each other, whatever else it does.)
//!
//! **What it may cost.** A try costs what it takes longer than who serves, and making plans and telling times cost what they take. Nothing is tried that would bring the
//! sum beyond 1 % of the time in collectives, or 0.5 % of the run. Time in collectives is counted as calls times what one takes, so that calls which are settled need
//! no clock.
//!
//! **Bits.** Where operands are rounded only algorithms that evaluate the same expression take turns; others are tried beside calls, on copies, for the next run.
//!
//! **Which calls teach**: blocking ones, of the preload and of [`Comm`](crate::Comm) without a plan, on MPI ranks. Plans do not: a run may begin without waiting for anybody, so
//! ranks that have come to it know nothing of each other.
//!
//! What is learned is remembered in a file of the form of a tuning file: see [`Memory`].

mod grant;
mod ledger;
mod lessons;
mod memory;
mod trial;
mod yardstick;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use allhands_schedule::Collective;

use crate::server::Server;
use crate::stats::median;
use crate::tuning::Time;
pub use grant::Grant;
pub(crate) use ledger::Ledger;
pub use lessons::{Learned, Lessons};
pub(crate) use memory::LEARN;
pub use memory::{Memory, Setting};
pub(crate) use trial::Pace;
use trial::{Trial, TurnKind};

/// Calls that are learned about together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Subject {
    pub(crate) collective: Collective,
    /// The class of their size; none where each rank knows its own, so that calls of all sizes are learned about together.
    pub(crate) class: Option<usize>,
    pub(crate) commutative: bool,
    /// The root of a reduction that rounds: others have other expressions, perhaps. None where nothing is rounded.
    pub(crate) rounds: Option<usize>,
}

/// Who serves a subject without learning.
#[derive(Clone, Debug)]
pub(crate) struct Unlearned {
    pub(crate) server: Server,
    /// Seconds that this took earlier, if that is known, and that it was chosen for.
    pub(crate) remembered: Option<f64>,
    pub(crate) promised: Option<f64>,
}

/// Who serves a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    /// Who.
    pub server: Server,
    /// Why, in words; none if that one would serve if nothing were learned.
    pub why: Option<String>,
    /// Whether it is tried: how long it takes is to be told.
    pub tried: bool,
    /// Who is tried beside the call, on copies of what it is given, after it; that is to be timed then, not the call.
    pub beside: Option<Server>,
    /// So many calls after this one are served alike, without asking.
    pub rest: u64,
    /// Whether ranks have told each other times before this call, from which something may have been learned.
    pub told: bool,
}

/// What a rank exchanges in a call of which each knows its own counts: how much, by class, and with how many ranks of other nodes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Traffic {
    pub(crate) size: usize,
    pub(crate) partners: usize,
}

/// What ranks have told each other of the calls of a subject: how long they take, in seconds; the size whose calls take most time, and the most partners of any rank,
/// where these are told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) usual: f64,
    pub(crate) size: usize,
    pub(crate) partners: usize,
}

/// Who might serve a subject.
#[derive(Debug, Default)]
pub(crate) struct Rivals {
    /// Who serves such calls from now on without learning, and why: that follows from what was told of them.
    pub(crate) instead: Option<(Server, String)>,
    /// Who may take turns, and how many times as long as who serves they are expected to take.
    pub(crate) open: Vec<(Server, f64)>,
    /// Who may be tried beside calls only.
    pub(crate) beside: Vec<(Server, f64)>,
}

/// What was learned of one kind of calls.
#[derive(Clone, Debug, PartialEq)]
pub struct Lesson {
    /// The collective.
    pub collective: Collective,
    /// The largest size of its class, in bytes of a block or of the vector; none where each rank knows its own sizes.
    pub bytes: Option<usize>,
    /// Where each rank knows its own: the class of the mean block in those calls that take most time. None among neighbours, and where few ranks talk.
    pub usual_bytes: Option<usize>,
    /// Calls so far.
    pub calls: u64,
    /// Who serves.
    pub server: Server,
    /// Who was tried, the fastest first.
    pub tried: Vec<Time>,
    /// Whether it is settled.
    pub settled: bool,
    /// Seconds that calls took less than without learning, and that were spent on learning.
    pub gained: f64,
    /// See [`gained`](Lesson::gained).
    pub spent: f64,
}

/// Why somebody serves who is tried.
const TRY: &str = "a try, to learn who is fastest";
/// So many turns are told at once.
const TURNS: usize = 56;
/// The words of an exchange: what was spent beside calls, how long the run is, how long the last exchange took, whether the MPI's own must not be called, how long it took at most to
/// think of others, and the turns: how long they took, then their sizes, then their partners.
pub(crate) const WORDS: usize = BEFORE + 3 * TURNS;
const BEFORE: usize = 5;
/// More subjects than this are not learned about.
const MOST_SUBJECTS: usize = 1024;

/// What a communicator learns.
#[derive(Debug)]
pub(crate) struct Learner {
    pace: Pace,
    began: Instant,
    index: HashMap<Subject, usize>,
    topics: Vec<Topic>,
    untold: Vec<Untold>,
    ledger: Ledger,
    /// Seconds that this rank spent beside calls, and in the last exchange, and has not told.
    aside: f64,
    exchanging: f64,
    /// The most seconds that this rank has thought of who might serve a subject, and whether that has happened since times were told: nobody knows then what is left.
    thinking: f64,
    has_thought: bool,
    /// Whether the MPI's own must not be called with what this rank gives it, and whether some rank has told so.
    pub(crate) refuses_library: bool,
    without_library: bool,
}

#[derive(Debug)]
struct Topic {
    subject: Subject,
    trial: Trial,
    /// Seconds that who serves without learning was chosen for, if it was for that.
    promised: Option<f64>,
    /// The most that any rank has told of the turns that were told last.
    partners: usize,
    /// Who is tried beside calls, once the rest is settled.
    outside: Vec<(Server, f64)>,
    beside: Option<Trial>,
}

impl Topic {
    /// How many times as long as promised its calls take without learning, if both are known.
    fn beyond_promise(&self) -> Option<f64> {
        Some(self.trial.usual_unlearned()? / self.promised?)
    }

    /// What it has cost beyond what it has gained.
    fn net(&self) -> f64 {
        self.trial.net() + self.beside.as_ref().map_or(0.0, Trial::net)
    }
}

/// A turn that this rank has timed, or is about to.
#[derive(Debug)]
struct Untold {
    topic: usize,
    beside: bool,
    candidate: usize,
    kind: TurnKind,
    traffic: Traffic,
    seconds: f64,
}

impl Learner {
    /// `began`: when the run did.
    pub(crate) fn new(pace: Pace, began: Instant) -> Learner {
        Learner {
            pace,
            began,
            index: HashMap::new(),
            topics: Vec::new(),
            untold: Vec::new(),
            ledger: Ledger::default(),
            aside: 0.0,
            exchanging: 0.0,
            thinking: 0.0,
            has_thought: false,
            refuses_library: false,
            without_library: false,
        }
    }

    /// The number of a subject. At its first call `serving` says who serves without learning.
    pub(crate) fn topic(&mut self, subject: Subject, serving: impl FnOnce() -> Option<Unlearned>) -> Option<usize> {
        if let Some(known) = self.index.get(&subject) {
            return Some(*known);
        }
        if self.topics.len() >= MOST_SUBJECTS {
            return None;
        }
        let Unlearned { server, remembered, promised } = serving()?;
        let topic = self.topics.len();
        let trial = match subject.class {
            Some(_) => Trial::new(self.pace, server, remembered),
            None => Trial::of_any_size(self.pace, server),
        };
        let topic_of = |subject| Topic { subject, trial, promised, partners: 0, outside: Vec::new(), beside: None };
        self.topics.push(topic_of(subject.clone()));
        self.index.insert(subject, topic);
        Some(topic)
    }

    /// Whether ranks are to tell each other times before the next call of a subject is served.
    pub(crate) fn exchange_is_due(&self, topic: usize) -> bool {
        let Topic { trial, beside, .. } = &self.topics[topic];
        let waits = trial.waits() || beside.as_ref().is_some_and(Trial::waits) || self.untold.len() == TURNS;
        waits && (self.pace.at_any_cost || self.ledger.exchanges == 0 || self.ledger.exchange <= self.left())
    }

    /// This rank's words for an exchange, of which all ranks get the greatest.
    pub(crate) fn words(&mut self) -> [u64; WORDS] {
        let nanoseconds = |seconds: f64| (seconds * 1e9) as u64;
        let mut words = [0; WORDS];
        words[0] = nanoseconds(std::mem::take(&mut self.aside));
        words[1] = self.began.elapsed().as_nanos() as u64;
        words[2] = nanoseconds(std::mem::take(&mut self.exchanging));
        words[3] = u64::from(self.refuses_library);
        words[4] = nanoseconds(self.thinking);
        for (turn, untold) in self.untold.iter().enumerate() {
            // Something took some time.
            let time = nanoseconds(untold.seconds).max(1);
            let told = [time, untold.traffic.size as u64, untold.traffic.partners as u64];
            (0..).zip(told).for_each(|(part, word)| words[BEFORE + part * TURNS + turn] = word);
        }
        words
    }

    /// What all have told; the subjects that are settled by it.
    pub(crate) fn told(&mut self, words: &[u64; WORDS], took: Duration) -> Vec<usize> {
        let seconds = |word: u64| word as f64 * 1e-9;
        self.exchanging += took.as_secs_f64();
        let in_collectives = self.in_collectives();
        self.ledger.told(seconds(words[0]), seconds(words[1]), seconds(words[2]), in_collectives);
        (self.ledger.thought, self.has_thought) = (seconds(words[4]), false);
        self.untold.iter().for_each(|untold| self.topics[untold.topic].partners = 0);
        for (turn, untold) in self.untold.drain(..).enumerate() {
            let [time, size, most] = [0, 1, 2].map(|part| words[BEFORE + part * TURNS + turn]);
            let Topic { trial, beside, partners, .. } = &mut self.topics[untold.topic];
            let trial = if untold.beside { beside.as_mut().expect("it has had a turn") } else { trial };
            trial.learn(untold.candidate, untold.kind, size, seconds(time));
            *partners = most.max(*partners as u64) as usize;
        }
        if words[3] > 0 {
            self.without_library = true;
            self.topics.iter_mut().for_each(|topic| topic.trial.without_library());
        }
        let seen: Vec<f64> = self.topics.iter().filter_map(|topic| topic.trial.seen_of_library()).collect();
        if !seen.is_empty() {
            let elsewhere = median(&seen);
            self.topics.iter_mut().for_each(|topic| topic.trial.expect_of_library(elsewhere));
        }
        self.compare_with_promises();
        let mut settled = Vec::new();
        for (number, Topic { trial, beside, .. }) in self.topics.iter_mut().enumerate() {
            for trial in std::iter::once(&mut *trial).chain(beside.as_mut()) {
                (trial.promised, trial.telling) = (0.0, self.ledger.exchange);
            }
            let now = trial.judge();
            if beside.as_mut().is_some_and(Trial::judge) | now {
                settled.push(number);
            }
        }
        settled
    }

    /// Where calls take longer than promised by more than others do, something is wrong with who serves them.
    fn compare_with_promises(&mut self) {
        let beyond: Vec<f64> = self.topics.iter().filter_map(Topic::beyond_promise).collect();
        if beyond.is_empty() {
            return;
        }
        let elsewhere = median(&beyond);
        for topic in &mut self.topics {
            topic.trial.surprise = topic.beyond_promise().map_or(1.0, |here| (here / elsewhere).max(1.0));
        }
    }

    /// Seconds that may still be spent: what was gained may, too.
    fn left(&self) -> f64 {
        self.ledger.left(self.topics.iter().map(Topic::net).sum(), self.in_collectives())
    }

    /// Seconds that may be spent on a subject. A try of the MPI's own may take all that is left, other candidates the share of the subject's own calls, so that they do not keep other
    /// subjects from theirs.
    fn left_for(&self, number: usize) -> f64 {
        let (left, topic) = (self.left(), &self.topics[number]);
        if !topic.trial.is_through_with_library() {
            return left;
        }
        let all = self.in_collectives();
        let share = if all > 0.0 { topic.trial.taken() / all } else { 1.0 };
        left.min(share * self.ledger.allowed(all) - topic.net())
    }

    /// Seconds that calls have taken, as far as all ranks know. Where nothing is known of a subject, its calls are taken for as short as the shortest that are
    /// known: else what comes late in a program, when what came before has ended, could never be told of.
    fn in_collectives(&self) -> f64 {
        let known = self.topics.iter().filter_map(|topic| topic.trial.a_call());
        let least = known.fold(f64::INFINITY, f64::min);
        let least = if least.is_finite() { least } else { 0.0 };
        self.topics.iter().map(|Topic { trial, .. }| trial.calls as f64 * trial.a_call().unwrap_or(least)).sum()
    }

    /// Whether it is to be said now whether the MPI's own might serve a subject.
    pub(crate) fn asks_for_library(&self, topic: usize) -> bool {
        self.topics[topic].trial.asks_for_library()
    }

    /// Whether it is to be said now who might serve a subject: to think of that takes long.
    pub(crate) fn asks_for_rivals(&self, topic: usize) -> bool {
        let may_think = || !self.has_thought && self.ledger.thought <= self.left_for(topic);
        self.topics[topic].trial.asks_for_candidates() && (self.pace.at_any_cost || may_think())
    }

    /// Who serves a subject without learning, and what is known of its calls.
    pub(crate) fn serving(&self, topic: usize) -> (&Server, Seen) {
        let Topic { trial, partners, .. } = &self.topics[topic];
        let (usual, size) = (trial.usual.unwrap_or(0.0), trial.typical_size() as usize);
        (trial.unlearned(), Seen { usual, size, partners: *partners })
    }

    /// Whether the MPI's own might serve a subject, with how many times as long as who serves it is expected to take.
    pub(crate) fn propose_library(&mut self, topic: usize, expected: Option<f64>) {
        let expected = expected.filter(|_| !self.without_library);
        self.topics[topic].trial.propose_library(expected);
    }

    /// Who might serve a subject, which this rank has thought about for so long.
    pub(crate) fn propose(&mut self, topic: usize, rivals: Rivals, thought: Duration) {
        let mut rivals = rivals;
        self.spent(thought);
        (self.thinking, self.has_thought) = (self.thinking.max(thought.as_secs_f64()), true);
        if self.without_library {
            rivals.open.retain(|(server, _)| *server != Server::Library);
        }
        let topic = &mut self.topics[topic];
        if let Some((server, why)) = rivals.instead {
            topic.trial.replace(server, why);
        }
        topic.trial.propose(rivals.open);
        (topic.outside, topic.beside) = (rivals.beside, None);
    }

    /// Who serves the next call of a subject; `since`: how many of its shape were served since it was asked for that shape. The first of a shape is served as
    /// usual: for others there would be a plan to make. `traffic`: that of this rank's call, where it is told.
    pub(crate) fn turn(&mut self, number: usize, since: Option<u64>, traffic: Traffic) -> Turn {
        self.topics[number].trial.pass(since.unwrap_or(0));
        let left = self.left_for(number);
        let Topic { trial, outside, beside, .. } = &mut self.topics[number];
        // There may be no room for another time, and no time yet to tell them.
        let waits = self.untold.len() == TURNS;
        if since.is_none() || waits {
            let rest = if since.is_none() { 0 } else { trial.paused().rest };
            let (server, why) = (trial.server().clone(), trial.why());
            return Turn { server, why, tried: false, beside: None, rest, told: false };
        }
        let mut aside = None;
        if trial.is_settled() && !trial.is_due(left) && !outside.is_empty() {
            let usual = trial.usual.unwrap_or(0.0);
            let beside =
                beside.get_or_insert_with(|| Trial::beside(self.pace, trial.server().clone(), usual, outside.clone()));
            if !beside.is_settled() {
                let tried = beside.next(left, u64::MAX);
                aside = Some((tried, beside.candidates[tried.candidate].server.clone()));
            }
        }
        let turn = trial.next(left, aside.as_ref().map_or(u64::MAX, |(tried, _)| tried.rest));
        let aside = aside.and_then(|(tried, server)| Some((tried.candidate, tried.timed?, server)));
        let server = trial.candidates[turn.candidate].server.clone();
        let why = if server == *trial.server() { trial.why() } else { Some(TRY.into()) };
        let mine = turn.timed.map(|kind| (false, turn.candidate, kind));
        let timed = mine.or(aside.as_ref().map(|(candidate, kind, _)| (true, *candidate, *kind)));
        if let Some((beside, candidate, kind)) = timed {
            self.untold.push(Untold { topic: number, beside, candidate, kind, traffic, seconds: 0.0 });
        }
        Turn {
            server,
            why,
            tried: turn.timed.is_some(),
            beside: aside.map(|(_, _, server)| server),
            rest: turn.rest,
            told: false,
        }
    }

    /// How long the turn took that was given last, on this rank.
    pub(crate) fn took(&mut self, time: Duration) {
        if let Some(untold) = self.untold.last_mut() {
            untold.seconds = time.as_secs_f64();
        }
    }

    /// This rank spent some time beside calls, to learn.
    pub(crate) fn spent(&mut self, time: Duration) {
        self.aside += time.as_secs_f64();
    }

    /// What was learned of a subject, but for the sizes of calls whose ranks know their own.
    pub(crate) fn lesson(&self, topic: usize) -> Lesson {
        let Topic { subject, trial, beside, .. } = &self.topics[topic];
        let outside = beside.iter().flat_map(|beside| beside.tried().into_iter().skip(1));
        let mut tried: Vec<Time> = trial.tried().into_iter().chain(outside).collect();
        tried.sort_by(|one, other| one.median_us.total_cmp(&other.median_us));
        Lesson {
            collective: subject.collective,
            bytes: subject.class,
            usual_bytes: None,
            calls: trial.calls,
            server: trial.server().clone(),
            tried,
            settled: trial.is_settled(),
            gained: trial.gained,
            spent: trial.spent + beside.as_ref().map_or(0.0, |beside| beside.spent),
        }
    }

    /// What was learned at all, and what was spent that belongs to no subject.
    pub(crate) fn lessons(&self) -> (Vec<Lesson>, f64) {
        ((0..self.topics.len()).map(|topic| self.lesson(topic)).collect(), self.ledger.aside)
    }
}

#[cfg(test)]
mod tests;
