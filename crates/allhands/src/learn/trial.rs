//! One subject of learning: who serves it, who is tried beside, and when that is settled.
//!
//! First some calls pass, then a few are timed. Then the MPI's own is tried, where it may serve: that takes no thought, and whoever is slower than the MPI alone has lost. After
//! that it is thought of others. If candidates can be paid for they take turns, in rounds: in a round everybody who is still on serves one
//! call, so that what disturbs the program disturbs all alike, and it is the ratios within rounds that are judged. Who is clearly slower is
//! dropped, the sooner the slower it is. What is settled is looked at again after a thousand calls; if it takes another time than it did, all are tried anew.
//!
//! Nothing here depends on anything but what all ranks know alike: how many calls there were, and times that they have told each other.

mod rounds;

use super::yardstick::Yardstick;
use crate::server::Server;
use crate::stats::median;
use crate::tuning::Time;

/// How soon things are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pace {
    /// So many calls pass before one is timed.
    pub(crate) unseen: u64,
    /// So many are timed to know who serves.
    pub(crate) looks: usize,
    /// So many calls pass at least before it is asked again whether something can be paid for.
    pub(crate) pause: u64,
    /// More rounds settle nothing further.
    pub(crate) most_rounds: usize,
    /// After so many calls what is settled is looked at again.
    pub(crate) again: u64,
    /// Whether it does not matter what is spent.
    pub(crate) at_any_cost: bool,
}

impl Pace {
    /// That of programs.
    pub(crate) const USUAL: Pace =
        Pace { unseen: 8, looks: 3, pause: 16, most_rounds: 16, again: 1000, at_any_cost: false };
    /// For tests: everything is tried as soon as there are calls, and over again.
    pub(crate) const EAGER: Pace = Pace { unseen: 1, looks: 1, pause: 1, most_rounds: 2, again: 4, at_any_cost: true };
}

/// After so many calls it is asked again, whatever follows.
const MOST_REST: u64 = 1 << 20;
/// What takes so many times as long as when it was settled, or as few, is tried anew.
const DRIFT: f64 = 1.5;

/// What somebody does whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TurnKind {
    /// It serves as usual, and is timed.
    Look,
    /// It is tried for the first time, which prepares what is prepared once.
    First,
    /// It takes its turn in a round.
    Round,
}

/// Who serves a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    /// Among the candidates.
    pub(crate) candidate: usize,
    /// Whether its time is wanted, and what for.
    pub(crate) timed: Option<TurnKind>,
    /// So many calls after this one are served alike, without asking.
    pub(crate) rest: u64,
}

/// Who might serve.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) server: Server,
    /// How many times as long as the first one it takes, by what is known before it was tried.
    expected: f64,
    /// The first run, and those of rounds that say something, in seconds.
    first: Option<f64>,
    pub(crate) times: Vec<f64>,
    /// Whether it still takes turns.
    on: bool,
    /// How often it served while its time was taken.
    pub(crate) tried: u64,
}

impl Candidate {
    fn new(server: Server, expected: f64) -> Candidate {
        Candidate { server, expected: expected.max(1.0), first: None, times: Vec::new(), on: true, tried: 0 }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Stage {
    Unseen,
    /// So many looks are left.
    Look(usize),
    /// It is known how long a call takes, but not who else might serve.
    Seen,
    /// Candidates are known, and wait for the means.
    Ready,
    /// So many have had their turn in the round of this number; that of number 0 is for first runs.
    Round {
        number: usize,
        had: usize,
    },
    Settled,
}

/// Who is tried beside who serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    /// The MPI's own alone.
    Library,
    /// The same is settled, or it cannot serve; it is not thought of others yet.
    Unthought,
    /// All that might serve.
    All,
}

/// What is learned of one kind of calls.
#[derive(Clone, Debug)]
pub(crate) struct Trial {
    pace: Pace,
    /// Whether a try is made beside a call, which somebody else serves, and so costs all of its time.
    beside: bool,
    stage: Stage,
    field: Field,
    pub(crate) candidates: Vec<Candidate>,
    /// What was found of those who have lost before it was thought of others.
    lost: Vec<Time>,
    /// Who serves where nobody is tried.
    pub(crate) serving: usize,
    /// Why the first one serves without learning, where that follows from what was told of the calls.
    because: Option<String>,
    /// Who would serve without learning, and how long that takes: what gains are counted from.
    unlearned: (usize, f64),
    /// How long a call takes, in seconds, once that is known.
    pub(crate) usual: Option<f64>,
    /// Sizes and seconds.
    looks: Vec<(u64, f64)>,
    /// What calls are measured by, where each rank knows its own sizes, so that one candidate's turns may be of longer ones than another's.
    yardstick: Option<Yardstick>,
    /// Turns that are not told yet, and whether the last one is among them.
    untold: usize,
    was_timed: bool,
    /// Calls so far, and how many of them since it was settled.
    pub(crate) calls: u64,
    settled_calls: u64,
    /// How often it was settled.
    pub(crate) settlements: u64,
    pub(crate) gained: f64,
    pub(crate) spent: f64,
    /// What turns are expected to cost that are not told yet.
    pub(crate) promised: f64,
    /// What it takes to tell times, as far as that is known.
    pub(crate) telling: f64,
    /// How many times as long calls take as was promised of who would serve without learning, beside what others take of what was promised of them, if that is more
    /// than once. The MPI's own is expected to take so much less beside that one.
    pub(crate) surprise: f64,
}

impl Trial {
    /// Of calls that somebody serves; with how long that took elsewhere, or earlier, if that is known.
    pub(crate) fn new(pace: Pace, serving: Server, remembered: Option<f64>) -> Trial {
        Trial {
            pace,
            beside: false,
            stage: Stage::Unseen,
            field: Field::Library,
            lost: Vec::new(),
            candidates: vec![Candidate::new(serving, 1.0)],
            serving: 0,
            because: None,
            unlearned: (0, 0.0),
            usual: remembered,
            looks: Vec::new(),
            yardstick: None,
            untold: 0,
            was_timed: false,
            calls: 0,
            settled_calls: 0,
            settlements: u64::from(remembered.is_some()),
            gained: 0.0,
            spent: 0.0,
            promised: 0.0,
            telling: 0.0,
            surprise: 1.0,
        }
    }

    /// Of calls of sizes that are told after them.
    pub(crate) fn of_any_size(pace: Pace, serving: Server) -> Trial {
        // More looks see more sizes.
        let pace = Pace { looks: 4 * pace.looks, ..pace };
        let field = Field::Unthought;
        Trial { field, yardstick: Some(Yardstick::default()), ..Trial::new(pace, serving, None) }
    }

    /// Of tries beside calls that somebody serves in any case.
    pub(crate) fn beside(pace: Pace, serving: Server, usual: f64, others: Vec<(Server, f64)>) -> Trial {
        // Nobody waits for the outcome in this run.
        let pace = Pace { most_rounds: pace.most_rounds.min(8), again: u64::MAX, ..pace };
        let (stage, field) = (Stage::Ready, Field::All);
        let mut trial = Trial { beside: true, stage, field, ..Trial::new(pace, serving, None) };
        trial.usual = Some(usual);
        trial.unlearned = (0, usual);
        trial.candidates.extend(others.into_iter().map(|(server, expected)| Candidate::new(server, expected)));
        trial
    }

    /// Whether times are to be told before it can go on.
    pub(crate) fn waits(&self) -> bool {
        self.untold > 0
            && match self.stage {
                Stage::Look(left) => left == 0,
                Stage::Round { number, had } => {
                    // By what first runs have told another round may cost less than to hear that it were better not to have it.
                    let early =
                        (1..rounds::ROUNDS_OF_MEDIANS).contains(&number) && self.cost(number + 1) < self.telling;
                    had >= self.order(number).len() && rounds::decides(number) && !early
                }
                _ => false,
            }
    }

    /// Whether it is time to say whether the MPI's own might serve.
    pub(crate) fn asks_for_library(&self) -> bool {
        self.stage == Stage::Seen && self.field == Field::Library
    }

    /// Whether it is time to say who else might serve.
    pub(crate) fn asks_for_candidates(&self) -> bool {
        matches!(self.stage, Stage::Seen | Stage::Settled) && self.field == Field::Unthought
    }

    /// The MPI's own might serve, and is expected to take so many times as long as who serves; or it cannot.
    pub(crate) fn propose_library(&mut self, expected: Option<f64>) {
        match expected {
            None => self.field = Field::Unthought,
            Some(expected) => {
                self.unlearned = (0, self.usual.unwrap_or(0.0));
                self.candidates.truncate(1);
                self.candidates.push(Candidate::new(Server::Library, expected));
                self.stage = Stage::Ready;
            }
        }
    }

    /// Somebody else serves without learning, for a reason that all ranks know. What was seen of calls stands for its own until it is known better.
    pub(crate) fn replace(&mut self, server: Server, why: String) {
        self.candidates = vec![Candidate::new(server, 1.0)];
        (self.serving, self.because) = (0, Some(why));
    }

    /// How many times as long as who would serve without learning the MPI's own has taken, at best.
    pub(crate) fn seen_of_library(&self) -> Option<f64> {
        let library = self.candidates.iter().find(|candidate| candidate.server == Server::Library)?;
        Some(library.best()? / self.unlearned.1)
    }

    /// So many times as long as who serves the MPI's own has taken elsewhere: it is not expected to take less here, as long as nobody knows.
    pub(crate) fn expect_of_library(&mut self, elsewhere: f64) {
        let is_library = |candidate: &&mut Candidate| candidate.server == Server::Library;
        if let Some(library) = self.candidates.iter_mut().find(is_library) {
            library.expected = library.expected.max(elsewhere);
        }
    }

    /// Who else might serve, with how many times as long as the [first one](Trial::unlearned) they are expected to take.
    pub(crate) fn propose(&mut self, others: Vec<(Server, f64)>) {
        if self.stage == Stage::Seen {
            self.unlearned = (0, self.usual.unwrap_or(0.0));
            self.candidates.truncate(1);
        }
        let serving = self.serving;
        self.lost = self.tried().into_iter().skip(1).collect();
        for (index, known) in self.candidates.iter_mut().enumerate() {
            (known.times, known.on) = (Vec::new(), index == serving);
        }
        let known = |server: &Server| self.candidates.iter().any(|candidate| candidate.server == *server);
        let others: Vec<_> = others.into_iter().filter(|(server, _)| !known(server)).collect();
        let faster = self.usual.map_or(1.0, |usual| self.unlearned.1 / usual);
        let new = |(server, expected)| Candidate::new(server, faster * expected);
        let any = !others.is_empty();
        self.candidates.extend(others.into_iter().map(new));
        (self.stage, self.field) = (Stage::Ready, Field::All);
        if !any && self.settlements > 0 {
            self.stage = Stage::Settled;
        } else if !any {
            // There is nothing to learn.
            (self.stage, self.pace.again) = (Stage::Settled, u64::MAX);
        }
    }

    pub(crate) fn is_settled(&self) -> bool {
        self.stage == Stage::Settled
    }

    /// Whether what is settled is to be looked at again, where so many seconds may be spent now.
    pub(crate) fn is_due(&self, left: f64) -> bool {
        self.is_settled() && self.settled_calls >= self.pace.again && (left > 0.0 || self.pace.at_any_cost)
    }

    /// Who would serve without learning.
    pub(crate) fn unlearned(&self) -> &Server {
        &self.candidates[self.unlearned.0].server
    }

    /// Seconds that calls take without learning, as far as that is known.
    pub(crate) fn usual_unlearned(&self) -> Option<f64> {
        Some(self.unlearned.1).filter(|seconds| *seconds > 0.0).or(self.usual)
    }

    /// Who serves where nobody is tried.
    pub(crate) fn server(&self) -> &Server {
        &self.candidates[self.serving].server
    }

    /// So many calls were served since it was asked.
    pub(crate) fn pass(&mut self, calls: u64) {
        self.calls += calls;
        if self.settlements > 0 {
            self.settled_calls += calls;
        }
        // What is tried counts by itself.
        if !self.was_timed {
            self.gained += calls as f64 * self.gain();
        }
    }

    /// Seconds that all calls took, as far as that is known.
    pub(crate) fn taken(&self) -> f64 {
        self.calls as f64 * self.a_call().unwrap_or(0.0)
    }

    /// What it has cost so far, or will have when everything is told, beyond what it has gained.
    pub(crate) fn net(&self) -> f64 {
        self.spent + self.promised - self.gained
    }

    /// Whether the MPI's own has had its turns, or can have none.
    pub(crate) fn is_through_with_library(&self) -> bool {
        self.field != Field::Library
    }

    /// Who serves the next call, where so many seconds may be spent now; it is asked again after that many further calls at most.
    pub(crate) fn next(&mut self, left: f64, most: u64) -> Turn {
        let turn = self.decide(left);
        let turn = Turn { rest: turn.rest.min(most).min(MOST_REST), ..turn };
        self.was_timed = turn.timed.is_some();
        if turn.timed.is_some() {
            self.untold += 1;
            self.candidates[turn.candidate].tried += 1;
        }
        turn
    }

    fn decide(&mut self, left: f64) -> Turn {
        let left = if self.pace.at_any_cost { f64::INFINITY } else { left };
        loop {
            match self.stage {
                Stage::Unseen => {
                    let left = self.pace.unseen.saturating_sub(self.calls);
                    if left > 0 {
                        return self.as_usual(left - 1);
                    }
                    self.stage = Stage::Look(self.pace.looks);
                }
                Stage::Look(0) => return self.paused(),
                Stage::Look(left) => {
                    self.stage = Stage::Look(left - 1);
                    return self.timed(self.serving, TurnKind::Look);
                }
                Stage::Seen => return self.paused(),
                Stage::Ready => {
                    if self.cost(0) > left {
                        return self.paused();
                    }
                    self.promised += self.cost(0);
                    self.stage = Stage::Round { number: 0, had: 0 };
                }
                Stage::Round { number, had } => {
                    let order = self.order(number);
                    if had < order.len() {
                        self.stage = Stage::Round { number, had: had + 1 };
                        return self.timed(order[had], if number == 0 { TurnKind::First } else { TurnKind::Round });
                    }
                    if self.waits() || self.cost(number + 1) > left {
                        return self.paused();
                    }
                    self.promised += self.cost(number + 1);
                    self.stage = Stage::Round { number: number + 1, had: 0 };
                }
                Stage::Settled => {
                    if self.is_due(left) {
                        self.settled_calls = 0;
                        self.stage = Stage::Look(self.pace.looks);
                        continue;
                    }
                    if self.field == Field::Unthought {
                        return self.paused();
                    }
                    let left = self.pace.again.saturating_sub(self.settled_calls).max(self.pace.pause);
                    return self.as_usual(left - 1);
                }
            }
        }
    }

    /// The longer it has taken, the longer it waits to be asked again: asking takes as long as a few short calls.
    pub(crate) fn paused(&self) -> Turn {
        let calls = if self.pace.at_any_cost { 0 } else { self.calls / 8 };
        self.as_usual((calls.max(self.pace.pause) - 1).min(MOST_REST))
    }

    fn as_usual(&self, rest: u64) -> Turn {
        Turn { candidate: self.serving, timed: None, rest }
    }

    fn timed(&self, candidate: usize, kind: TurnKind) -> Turn {
        Turn { candidate, timed: Some(kind), rest: 0 }
    }

    /// What a call takes less than without learning.
    fn gain(&self) -> f64 {
        match self.usual {
            Some(usual) if self.serving != self.unlearned.0 => self.unlearned.1 - usual,
            _ => 0.0,
        }
    }

    /// The time of a turn, and the size of the call where that is told, which all ranks have told each other. Times come in the order of the turns.
    pub(crate) fn learn(&mut self, candidate: usize, kind: TurnKind, size: u64, seconds: f64) {
        self.untold -= 1;
        let usual = self.usual.unwrap_or(seconds);
        let told = match &mut self.yardstick {
            None => Some(seconds),
            Some(yardstick) => {
                // The first candidate is the one that all are measured by.
                if kind == TurnKind::Round && candidate == 0 {
                    yardstick.add(size, seconds);
                }
                yardstick.measure(size, seconds)
            }
        };
        let (known, measured) = (&mut self.candidates[candidate], told.unwrap_or(usual));
        if kind != TurnKind::Look {
            let longer = seconds * (1.0 - usual / measured);
            // Runs take longer or shorter than usual by chance, too, which is not spent.
            self.spent = (self.spent + if self.beside { seconds } else { longer }).max(0.0);
        }
        match kind {
            TurnKind::Look => self.looks.push((size, seconds)),
            TurnKind::First => known.first = told,
            TurnKind::Round => known.times.extend(told),
        }
    }

    /// The size whose calls take most time, where sizes are told.
    pub(crate) fn typical_size(&self) -> u64 {
        self.yardstick.as_ref().map_or(0, Yardstick::typical_size)
    }

    /// From now on the MPI's own does not serve.
    pub(crate) fn without_library(&mut self) {
        let is_library = |candidate: &Candidate| candidate.server == Server::Library;
        let Some(library) = self.candidates.iter().position(is_library) else { return };
        self.candidates[library].on = false;
        if let Some(other) =
            (self.serving == library).then(|| self.candidates.iter().position(|other| !is_library(other)))
            && let Some(other) = other
        {
            (self.serving, self.candidates[other].on) = (other, true);
        }
    }

    /// Seconds that a call takes, as far as that is known.
    pub(crate) fn a_call(&self) -> Option<f64> {
        self.usual.or(self.looks.first().map(|(_, seconds)| *seconds))
    }

    /// Everything is told: what follows. True if it is settled now.
    pub(crate) fn judge(&mut self) -> bool {
        match self.stage {
            Stage::Look(0) => {
                self.look_again();
                false
            }
            Stage::Round { number, had } if had >= self.order(number).len() => self.judge_rounds(number),
            _ => false,
        }
    }

    fn look_again(&mut self) {
        let looks = std::mem::take(&mut self.looks);
        let all: f64 = looks.iter().map(|(_, seconds)| seconds).sum();
        let now = match &self.yardstick {
            None => median(&looks.iter().map(|(_, seconds)| *seconds).collect::<Vec<f64>>()),
            // Of short ones and long ones.
            Some(_) => all / looks.len() as f64,
        };
        let drifted = self.usual.is_none_or(|usual| {
            let beyond = |now: f64| now > DRIFT * usual || usual > DRIFT * now;
            match &self.yardstick {
                None => beyond(now),
                Some(yardstick) => {
                    let measure = |(size, seconds): &(u64, f64)| Some((yardstick.measure(*size, *seconds)?, *seconds));
                    let (measured, taken): (Vec<f64>, Vec<f64>) = looks.iter().filter_map(measure).unzip();
                    // Where most time goes to other sizes than when it was settled these are other calls.
                    2.0 * taken.iter().sum::<f64>() < all || beyond(median(&measured))
                }
            }
        });
        match drifted {
            false => self.stage = Stage::Settled,
            true => {
                if let Some(yardstick) = &mut self.yardstick {
                    *yardstick = Yardstick::of(&looks, now);
                }
                // What serves now is the one to compare with.
                let serving = self.candidates[self.serving].server.clone();
                self.candidates = vec![Candidate::new(serving, 1.0)];
                (self.serving, self.usual, self.because) = (0, Some(now), None);
                (self.unlearned.0, self.lost) = (0, Vec::new());
                self.field = if self.yardstick.is_some() { Field::Unthought } else { Field::Library };
                self.stage = Stage::Seen;
            }
        }
    }

    /// Why it is served as it is, if that was learned.
    pub(crate) fn why(&self) -> Option<String> {
        if self.serving == self.unlearned.0 {
            return self.because.clone();
        }
        let usual = self.usual?;
        let before = &self.candidates[self.unlearned.0].server;
        Some(format!("learned here: {:.2} us, where {before} took {:.2}", usual * 1e6, self.unlearned.1 * 1e6))
    }
}
