//! Candidates in the order of their estimated times, and the search for the best of all: what a choice starts from.

use std::collections::HashSet;

use allhands_schedule::{Algorithm, Choice, Collective, Counts, Prepared, Problem, Promise, Reduction, algorithms};

use crate::quick_estimate::QuickEstimate;
use crate::simulate::Simulator;
use crate::{Amount, Machine, Mode, Result, memory};

/// A candidate that can serve, with its estimate.
#[derive(Clone, Debug)]
pub struct Ranked {
    /// The candidate.
    pub choice: Choice,
    /// How long it takes.
    pub seconds: f64,
    /// Whether it was simulated; otherwise the time is a quick estimate from a few ranks' rounds, with an allowance for what that does not see.
    pub simulated: bool,
}

/// What a choice may use besides messages.
///
/// ```
/// use allhands_model::{Allowance, Amount};
/// use allhands_schedule::{Choice, Collective, Problem, Topology};
/// let problem = Problem::new(Collective::Allreduce, Topology::flat(8)?);
/// let chain = Choice::parse(Collective::Allreduce, "addition-chain")?.prepare(&problem)?;
/// let frugal = Allowance { memory: Some(1000), ..Allowance::default() };
/// assert!(frugal.permits(&chain, Amount::bytes(500)) && frugal.check(&chain, Amount::bytes(501)).is_err());
/// # Ok::<(), allhands_schedule::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Allowance {
    /// Whether the ranks of a node can share memory.
    pub shares: bool,
    /// Bytes that a rank may take beside the caller's buffers, as [`memory`] counts them; none: as many as it needs.
    pub memory: Option<u64>,
}

impl Default for Allowance {
    /// Everything.
    fn default() -> Allowance {
        Allowance { shares: true, memory: None }
    }
}

impl Allowance {
    /// Whether a choice that has been found able to serve keeps to it.
    pub fn permits(&self, prepared: &Prepared, amount: Amount) -> bool {
        (self.shares || !prepared.shares()) && self.check(prepared, amount).is_ok()
    }

    /// Refuses a choice that was asked for if it takes more memory than it may, saying how much each is.
    pub fn check(&self, prepared: &Prepared, amount: Amount) -> allhands_schedule::Result<()> {
        let Some(limit) = self.memory else { return Ok(()) };
        let needed = memory(prepared, amount);
        if needed <= limit {
            return Ok(());
        }
        let (algorithm, remedy) = (prepared.name(), ", or leave the choice to the library");
        Err(allhands_schedule::Error::Memory { algorithm, needed, limit, remedy })
    }
}

/// More messages than this are not simulated for an estimate: a candidate that sends so many takes seconds to judge, and others
/// send fewer.
const MOST_MESSAGES: usize = 1 << 22;

/// Estimates all candidates that can serve a problem, best first; among equals as they were given.
///
/// One node stands for all after a comparison of a few, and vectors are cut as if evenly: rougher than
/// [`simulate`](crate::simulate()), and much quicker for most. Candidates that cannot serve, or whose simulation would take
/// seconds, are left out.
///
/// ```
/// use allhands_model::{Amount, Machine, rank_choices};
/// use allhands_schedule::{Choice, Collective, Problem, Topology};
/// let problem = Problem::new(Collective::Allgather, Topology::regular(64, 16)?);
/// let candidates = ["ring", "bruck", "loc-bruck"].map(|name| Choice::parse(Collective::Allgather, name).unwrap());
/// let ranked = rank_choices(&problem, Amount::bytes(8), &Machine::shipped("lassen")?, &candidates)?;
/// assert_eq!(ranked[0].choice.to_string(), "loc-bruck");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn rank_choices(
    problem: &Problem,
    amount: Amount,
    machine: &Machine,
    candidates: &[Choice],
) -> Result<Vec<Ranked>> {
    machine.check()?;
    let mut ranked = Vec::with_capacity(candidates.len());
    for choice in candidates {
        let Ok(prepared) = choice.prepare(problem) else { continue };
        if prepared.messages() > MOST_MESSAGES {
            continue;
        }
        if let Ok(estimate) = Simulator::new(&prepared).roughly().run(machine, amount) {
            ranked.push(Ranked { choice: choice.clone(), seconds: estimate.seconds, simulated: true });
        }
    }
    sort_by(&mut ranked, |ranked| ranked.seconds);
    Ok(ranked)
}

/// Searches the whole registry, with its parameters, for what serves a problem best; best first, every one able to serve. Inside a node that which
/// moves the fewest bytes in no more steps comes first among those that are within 5 % of the fastest; where it is many blocks that follow one another over a network that is
/// [only roughly known](crate::Level::rough) that of the fewest steps among those within 20 %.
///
/// What does not keep to what the reduction asks for, or to the allowance, is left out first, and so are short bcasts inside a node by which the root would wait for everybody. Of every algorithm the settings with the best closed forms are estimated quickly; the best of these are simulated, one after the
/// other, while they are not hopeless; then every number in the settings of the best is changed for as long as that helps: ports step by
/// step, radices, factors, leaders; and what would serve on an estimate is simulated after all, if it can be.
///
/// The search ends by counting what it makes and simulates, never by a clock: whoever asks for the same gets the same. Where even
/// one candidate is too large, the quick estimates decide. It runs on the calling thread, and starts none: every process of a job searches, and some of them
/// have told MPI that they have no other.
///
/// ```
/// use allhands_model::{Allowance, Amount, Machine, best_choices};
/// use allhands_schedule::{Collective, Problem, Topology};
/// let problem = Problem::new(Collective::Allreduce, Topology::regular(64, 16)?);
/// let allowance = Allowance { shares: false, memory: Some(4096) };
/// let best = best_choices(&problem, Amount::bytes(8), &Machine::shipped("blue-waters")?, allowance)?;
/// assert!(best.iter().any(|ranked| ranked.choice.algorithm.name == "nap"));
/// assert!(best[0].seconds <= best[1].seconds);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn best_choices(problem: &Problem, amount: Amount, machine: &Machine, allowance: Allowance) -> Result<Vec<Ranked>> {
    searched(problem, amount, machine, (allowance, Effort::ORDINARY), &mut || true)
}

/// The same for whoever has time: many more settings, and for longer, as long as `go_on` says yes.
///
/// ```
/// use allhands_model::{Allowance, Amount, Machine, best_choices, search_settings};
/// use allhands_schedule::{Collective, Problem, Topology};
/// let problem = Problem::new(Collective::Bcast, Topology::regular(4, 4)?);
/// let (machine, amount) = (Machine::shipped("lassen")?, Amount::bytes(65536));
/// let soon = best_choices(&problem, amount, &machine, Allowance::default())?;
/// let late = search_settings(&problem, amount, &machine, Allowance::default(), &mut || true)?;
/// assert!(late[0].seconds <= soon[0].seconds);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn search_settings(
    problem: &Problem,
    amount: Amount,
    machine: &Machine,
    allowance: Allowance,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Vec<Ranked>> {
    searched(problem, amount, machine, (allowance, Effort::GREAT), go_on)
}

fn searched(
    problem: &Problem,
    amount: Amount,
    machine: &Machine,
    within: (Allowance, Effort),
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Vec<Ranked>> {
    machine.check()?;
    let mut search = Search::new(problem, amount, machine, within, go_on);
    search.simulate_promising();
    search.improve();
    search.check_guesses();
    Ok(search.ranked())
}

/// How much a search does.
#[derive(Clone, Copy)]
struct Effort {
    /// Operations that it makes and simulates, all in all.
    work: usize,
    /// Settings of an algorithm that are estimated quickly, with messages and with shared memory each.
    of_each: usize,
    /// How many numbers of blocks are estimated, for each setting.
    blocks_tried: usize,
    /// How many algorithms with numbers to improve have them improved.
    improved: usize,
    /// How many settings are tried for that, for each.
    tried: usize,
}

impl Effort {
    /// A second or less.
    const ORDINARY: Effort = Effort { work: 1 << 21, of_each: 8, blocks_tried: 2, improved: 4, tried: 32 };
    /// A minute or more.
    const GREAT: Effort = Effort { work: 1 << 26, of_each: 64, blocks_tried: 6, improved: 12, tried: 1 << 10 };
}

/// Which share of all work simulating the promising leaves to those who come after: on many ranks it would take everything, and a setting that was never
/// changed is up to a third slower than the best near it.
const KEPT_TO_IMPROVE: f64 = 0.4;
/// Which share of all work changing settings leaves for those that would serve on a guess.
const KEPT_TO_CHECK: f64 = 0.1;

/// A block that follows another has at least so many bytes, or is the only one.
const SHORTEST_BLOCK: u64 = 1024;
/// More blocks than this never follow one another.
const MOST_BLOCKS: u64 = 512;
/// Where a few messages are all that is known of a network, no block is so short that it crosses in less than this part of latency: what a message costs
/// when many are under way was not seen. A bcast of 64 KiB on 4x4 of an emulated cluster took 30 ms in about a hundred blocks, and an MPI's own 4.
const SHORTEST_OF_LATENCY: f64 = 0.05;
/// A bcast of fewer bytes inside one node goes by messages, which let the root go at once: a meeting keeps it until the last has come, which costs
/// more than copies save. On 8 ranks of 2 cores memory took 1.4 times as long for 128 bytes, and as long for 8 KiB.
const SHORTEST_BCAST_THROUGH_MEMORY: u64 = 8192;
/// What takes so much longer than the best, by the quick estimate, is not simulated: its [`Ranked::seconds`] are an estimate.
pub const HOPELESS: f64 = 2.5;

/// Inside a node times that differ by less are alike: the model knows nothing of the rate of memory that all its ranks share. A reduce of 1 and 4 MiB on
/// two ranks took 1.15 to 1.3 times as long by halves that are combined at the same time, which the model puts 3 % before one after the other. More steps
/// are not worth it: whole vectors of an allreduce win up to half a megabyte, though they are combined twice.
const ALIKE: f64 = 1.05;

/// The same between nodes where many blocks follow one another over a network of which a few messages are all that is known: under load each step takes longer than they
/// did. On 4x4 of an emulated cluster bcasts of 4 MiB in 8 blocks took two thirds of what they took in 47, which the model puts 15 % before them.
const ROUGHLY_ALIKE: f64 = 1.2;

/// With no more blocks than these, how far blocks have to go is as much of the steps as how many follow one another.
const BLOCKS_OF_A_SHORT_PIPELINE: usize = 8;

/// So much longer a setting may take by its formula and be tried because it has fewer blocks, where the network is only roughly known.
const FEWER_BLOCKS: f64 = 1.5;

/// What was only estimated serves in place of what was simulated if it promises to be faster by this.
const GUESSED: f64 = 1.25;

struct Search<'a> {
    problem: &'a Problem,
    amount: Amount,
    machine: &'a Machine,
    allowance: Allowance,
    effort: Effort,
    go_on: &'a mut dyn FnMut() -> bool,
    quick_estimate: QuickEstimate<'a>,
    candidates: Vec<Candidate>,
    seen: HashSet<Choice>,
    /// Work that may still be done.
    left: usize,
    /// When so much is left nothing more is begun for now.
    kept: usize,
}

struct Candidate {
    prepared: Prepared,
    quick_estimate: f64,
    /// Of all ranks, if it is known.
    work: Option<usize>,
    simulated: Option<f64>,
}

impl Candidate {
    /// How long it takes, as far as is known; what was not simulated counts for more than it was estimated at.
    fn seconds(&self, slack: f64) -> f64 {
        self.simulated.unwrap_or(self.quick_estimate * slack)
    }
}

impl<'a> Search<'a> {
    fn new(
        problem: &'a Problem,
        amount: Amount,
        machine: &'a Machine,
        (allowance, effort): (Allowance, Effort),
        go_on: &'a mut dyn FnMut() -> bool,
    ) -> Search<'a> {
        let quick_estimate = QuickEstimate::new(problem, amount, machine);
        let (candidates, seen) = (Vec::new(), HashSet::new());
        let (left, kept) = (effort.work, 0);
        let mut search =
            Search { problem, amount, machine, allowance, effort, go_on, quick_estimate, candidates, seen, left, kept };
        let mut able: Vec<(f64, Prepared)> = Vec::new();
        for algorithm in algorithms(problem.collective).filter(|algorithm| !hopeless(algorithm, problem)) {
            let settings = Choice::variants(algorithm, problem);
            let mut settings: Vec<(f64, Prepared)> =
                settings.into_iter().flat_map(|choice| search.in_blocks(choice)).collect();
            sort_by(&mut settings, |setting| setting.0);
            let (shared, sent): (Vec<_>, Vec<_>) = settings.into_iter().partition(|(_, prepared)| prepared.shares());
            for settings in [sent, shared] {
                let able_to =
                    |prepared: &Prepared| allowance.permits(prepared, amount) && !keeps_the_root(prepared, amount);
                let permitted = settings.into_iter().filter(|(_, prepared)| able_to(prepared));
                able.extend(permitted.take(effort.of_each));
            }
        }
        sort_by(&mut able, |able| able.0);
        for (_, prepared) in able {
            search.add(prepared);
        }
        sort_by(&mut search.candidates, |candidate| candidate.quick_estimate);
        search
    }

    /// A setting that can serve, with its time at first sight; where blocks follow one another, with as many of them as suit the amount best.
    fn in_blocks(&self, choice: Choice) -> Vec<(f64, Prepared)> {
        let mut settings = match choice.blocks_in_turn() {
            Some(_) => self.numbers_of_blocks().filter_map(|blocks| choice.with_blocks_in_turn(blocks)).collect(),
            None => Vec::new(),
        };
        if settings.is_empty() {
            settings.push(choice);
        }
        let able = settings.iter().filter_map(|choice| self.prepare(choice));
        let mut timed: Vec<(f64, Prepared)> = able.map(|prepared| (self.at_first_sight(&prepared), prepared)).collect();
        sort_by(&mut timed, |timed| timed.0);
        let few = |(place, (time, prepared)): (usize, &(f64, Prepared))| {
            let blocks = prepared.choice()?.blocks_in_turn()?;
            (*time <= FEWER_BLOCKS * timed[0].0).then_some((blocks, place))
        };
        let long = |(_, prepared): &(f64, Prepared)| prepared.choice().is_some_and(is_long_pipeline);
        let rough = self.machine.levels[0].rough && timed.first().is_some_and(long);
        let fewest = timed.iter().enumerate().filter_map(few).min().filter(|_| rough);
        let tried = self.effort.blocks_tried;
        match fewest {
            Some((_, place)) if place >= tried => timed.swap(tried - 1, place),
            _ => {}
        }
        timed.truncate(tried);
        timed
    }

    /// How many blocks may be worth it: of a vector, or of what a rank has where others have less. Where all have the same they are blocks already.
    fn numbers_of_blocks(&self) -> impl Iterator<Item = usize> + use<> {
        let least = if self.problem.collective.cuts() { 1 } else { 2 };
        let most = self.most_blocks();
        let powers = (0..).map(|power| 1 << power).take_while(move |blocks| *blocks <= most);
        powers.flat_map(|blocks| [blocks, blocks + blocks / 2]).filter(move |blocks| *blocks >= least)
    }

    /// More blocks than this are not worth their messages.
    fn most_blocks(&self) -> usize {
        let longest = match self.problem.counts.iter().max() {
            _ if self.problem.collective.cuts() => self.amount.bytes,
            Some(largest) => self.amount.bytes.saturating_mul(*largest as u64),
            None => 0,
        };
        let outermost = &self.machine.levels[0];
        let shortest = match outermost.protocols.first() {
            Some(short) if outermost.rough => (SHORTEST_OF_LATENCY * short.latency / short.per_byte) as u64,
            _ => 0,
        };
        (longest / shortest.max(SHORTEST_BLOCK)).clamp(1, MOST_BLOCKS) as usize
    }

    /// By formula, which takes blocks for equal; how many pieces suit those that are not is seen by walking.
    fn at_first_sight(&self, prepared: &Prepared) -> f64 {
        let cut = self.problem.pieces(prepared.blocks()) > 1;
        let walk = if cut && !self.problem.counts.is_empty() { self.quick_estimate.walk(prepared) } else { None };
        walk.map_or_else(|| self.quick_estimate.formula(prepared), |walk| walk.seconds)
    }

    /// What the reduction asks for is looked at before the schedule, because a refusal looks for others that would do.
    fn prepare(&self, choice: &Choice) -> Option<Prepared> {
        let reduction = self.problem.reduction;
        let refused = self.problem.collective.reduces()
            && ((!reduction.commutative && !choice.ordered(self.problem))
                || (reduction.identical && !choice.identical(self.problem)));
        let rough = self.machine.levels[0].rough;
        let too_many = rough && choice.blocks_in_turn().is_some_and(|blocks| blocks > self.most_blocks());
        if refused || too_many { None } else { choice.prepare(self.problem).ok() }
    }

    /// Takes up a candidate, unless it is known; its place.
    fn add(&mut self, prepared: Prepared) -> Option<usize> {
        if !self.seen.insert(prepared.choice()?.clone()) {
            return None;
        }
        let walk = if self.left > 0 { self.quick_estimate.walk(&prepared) } else { None };
        let work = walk.as_ref().map(|walk| walk.work);
        self.left = self.left.saturating_sub(work.unwrap_or(0));
        let quick_estimate = walk.map_or_else(|| self.quick_estimate.formula(&prepared), |walk| walk.seconds);
        let work = work.map(|work| work.saturating_mul(self.problem.ranks()));
        self.candidates.push(Candidate { prepared, quick_estimate, work, simulated: None });
        Some(self.candidates.len() - 1)
    }

    /// Keeps a share of all work for later.
    fn keep(&mut self, share: f64) {
        self.kept = (self.effort.work as f64 * share) as usize;
    }

    fn simulate_promising(&mut self) {
        self.keep(KEPT_TO_IMPROVE);
        let mut best = f64::INFINITY;
        for index in 0..self.candidates.len() {
            if self.candidates[index].quick_estimate > HOPELESS * best || !(self.go_on)() {
                break;
            }
            best = best.min(self.simulate(index).unwrap_or(f64::INFINITY));
        }
    }

    /// Simulates a candidate if there is enough left for it, even should no node stand for all.
    fn simulate(&mut self, index: usize) -> Option<f64> {
        let candidate = &mut self.candidates[index];
        let work = candidate.work.filter(|work| *work <= self.left && self.left > self.kept)?;
        let estimate = Simulator::new(&candidate.prepared).roughly().alone().run(self.machine, self.amount).ok()?;
        self.left -= match estimate.mode {
            Mode::Exact => work,
            Mode::Symmetric => work / self.problem.topology.regions(1).max(1),
        };
        candidate.simulated = Some(estimate.seconds);
        candidate.simulated
    }

    /// Changes the settings of the best algorithms, number by number, as long as that helps.
    fn improve(&mut self) {
        self.keep(KEPT_TO_CHECK);
        let mut ranked = self.ranked();
        let mut known = HashSet::new();
        let mut improvable = |choice: &Choice| !choice.numbers().is_empty() && known.insert(choice.algorithm.name);
        ranked.retain(|ranked| ranked.simulated && improvable(&ranked.choice));
        ranked.truncate(self.effort.improved);
        for Ranked { choice, seconds, .. } in ranked {
            self.descend(choice, seconds);
        }
    }

    fn descend(&mut self, mut choice: Choice, mut seconds: f64) {
        let mut tried = 0;
        let mut open = neighbours(&choice).into_iter();
        while let Some(neighbour) = open.next().filter(|_| tried < self.effort.tried && (self.go_on)()) {
            let prepared = self.prepare(&neighbour).filter(|prepared| self.allowance.permits(prepared, self.amount));
            let Some(index) = prepared.and_then(|prepared| self.add(prepared)) else { continue };
            tried += 1;
            if let Some(time) = self.simulate(index).filter(|time| *time < seconds) {
                (choice, seconds) = (neighbour, time);
                open = neighbours(&choice).into_iter();
            }
        }
    }

    /// Simulates what would serve because of a quick estimate, while there is work left for it.
    fn check_guesses(&mut self) {
        self.keep(0.0);
        loop {
            let slack = self.slack();
            let seconds = |index: &usize| self.candidates[*index].seconds(slack);
            let best = (0..self.candidates.len()).min_by(|one, other| seconds(one).total_cmp(&seconds(other)));
            match best.filter(|best| self.candidates[*best].simulated.is_none() && (self.go_on)()) {
                Some(guess) if self.simulate(guess).is_some() => {}
                _ => break,
            }
        }
    }

    /// A quick estimate sees nobody wait: it counts for as much more as it was wrong by, at the worst, where it was checked, and for
    /// [`GUESSED`] at least.
    fn slack(&self) -> f64 {
        let wrong =
            |candidate: &Candidate| candidate.simulated.map_or(1.0, |simulated| simulated / candidate.quick_estimate);
        self.candidates.iter().map(wrong).filter(|wrong| wrong.is_finite()).fold(GUESSED, f64::max)
    }

    /// Best first.
    fn ranked(&self) -> Vec<Ranked> {
        let slack = self.slack();
        let rank = |candidate: &Candidate| {
            Some(Ranked {
                choice: candidate.prepared.choice()?.clone(),
                seconds: candidate.seconds(slack),
                simulated: candidate.simulated.is_some(),
            })
        };
        let mut ranked: Vec<Ranked> = self.candidates.iter().filter_map(rank).collect();
        // Among equals one with a name of its own, and of these the one of the shortest: fewest settings.
        let composed = |choice: &Choice| choice.algorithm.name.starts_with("composed");
        ranked.sort_by_cached_key(|ranked| (composed(&ranked.choice), ranked.choice.to_string().len()));
        sort_by(&mut ranked, |ranked| ranked.seconds);
        if self.is_inside_a_node() {
            self.prefer_little_traffic(&mut ranked);
        } else if self.machine.levels[0].rough {
            self.prefer_short_pipelines(&mut ranked);
        }
        ranked
    }

    /// What moves the fewest bytes comes first among what is [`ALIKE`], in no more steps.
    fn prefer_little_traffic(&self, ranked: &mut [Ranked]) {
        let of_best = ranked.first().and_then(|best| best.choice.prepare(self.problem).ok());
        let most = of_best.map_or(0, |prepared| prepared.cost().steps);
        self.prefer(ranked, ALIKE, |prepared| match prepared.cost().steps <= most {
            true => self.traffic(prepared),
            false => f64::INFINITY,
        });
    }

    /// Where many blocks follow one another that of the fewest steps comes first among what is [`ROUGHLY_ALIKE`].
    fn prefer_short_pipelines(&self, ranked: &mut [Ranked]) {
        let Some(Ranked { choice: best, .. }) = ranked.first().filter(|best| is_long_pipeline(&best.choice)) else {
            return;
        };
        // Meetings in memory are no steps: what has them is not compared with what has none.
        let shares = best.shares();
        self.prefer(ranked, ROUGHLY_ALIKE, |prepared| match prepared.shares() == shares {
            true => prepared.cost().steps as f64,
            false => f64::INFINITY,
        });
    }

    fn is_inside_a_node(&self) -> bool {
        self.problem.topology.depth() > 0 && self.problem.topology.regions(1) == 1
    }

    /// Puts the one with the least of something before others that are as fast by the model, which take so many times as long as the fastest at most.
    fn prefer(&self, ranked: &mut [Ranked], times: f64, least: impl Fn(&Prepared) -> f64) {
        let Some(best) = ranked.first().filter(|best| best.simulated) else { return };
        let within = best.seconds * times;
        let alike = ranked.iter().take_while(|ranked| ranked.seconds <= within).enumerate();
        let measures = alike
            .filter(|(_, ranked)| ranked.simulated)
            .filter_map(|(place, ranked)| Some((place, least(&ranked.choice.prepare(self.problem).ok()?))));
        if let Some((place, _)) = measures.min_by(|one, other| one.1.total_cmp(&other.1)) {
            ranked[..=place].rotate_right(1);
        }
    }

    /// Bytes that all ranks together receive, copy and combine.
    fn traffic(&self, prepared: &Prepared) -> f64 {
        let moved = |rank| {
            let counts = Counts::of(self.problem, &prepared.rank(rank));
            counts.received.blocks + counts.copies + counts.combines
        };
        (0..self.problem.ranks()).map(moved).sum::<usize>() as f64 * self.quick_estimate.mean_block(prepared)
    }
}

/// Whether no setting promises what the reduction asks for.
fn hopeless(algorithm: &Algorithm, problem: &Problem) -> bool {
    let Reduction { commutative, identical } = problem.reduction;
    let never = |promise: &Promise| matches!(promise, Promise::Never);
    problem.collective.reduces()
        && ((!commutative && never(&algorithm.ordered)) || (identical && never(&algorithm.identical)))
}

/// Whether so many blocks follow one another that the steps are theirs rather than those of the way.
fn is_long_pipeline(choice: &Choice) -> bool {
    choice.blocks_in_turn().is_some_and(|blocks| blocks > BLOCKS_OF_A_SHORT_PIPELINE)
}

/// Whether the root of a short bcast would wait for everybody where nobody has to wait for long.
fn keeps_the_root(prepared: &Prepared, amount: Amount) -> bool {
    let problem = prepared.problem();
    let inside = problem.topology.depth() > 0 && problem.topology.regions(1) == 1;
    problem.collective == Collective::Bcast
        && inside
        && prepared.shares()
        && amount.bytes < SHORTEST_BCAST_THROUGH_MEMORY
}

/// Least first; equals stay as they are.
fn sort_by<T>(items: &mut [T], key: impl Fn(&T) -> f64) {
    items.sort_by(|one, other| key(one).total_cmp(&key(other)));
}

/// The same with one number of its settings changed, or lowered and one beside it raised for it. Not all can serve.
fn neighbours(choice: &Choice) -> Vec<Choice> {
    let numbers = numbers(choice);
    let mut changed: Vec<Vec<(&Number, usize)>> = Vec::new();
    for one in &numbers {
        let others = [one.value / 2, one.value.saturating_sub(1), one.value + 1, one.value * 2];
        changed.extend(others.map(|value| vec![(one, value)]));
    }
    for pair in numbers.windows(2).filter(|pair| pair[0].list == pair[1].list) {
        for (one, other) in [(&pair[0], &pair[1]), (&pair[1], &pair[0])] {
            for lower in [one.value / 2, one.value - 1].into_iter().filter(|lower| *lower > 0) {
                let ports = ((one.value + 1) * (other.value + 1)).div_ceil(lower + 1) - 1;
                let factor = (one.value * other.value).div_ceil(lower);
                changed.extend([ports, factor].map(|higher| vec![(one, lower), (other, higher)]));
            }
        }
    }
    let set = |changes: Vec<(&Number, usize)>| {
        let change = |place: usize| changes.iter().find(|(number, _)| number.place == place);
        choice.with_numbers(|place, value| Some(change(place).map_or(value, |(_, changed)| *changed)))
    };
    changed.into_iter().filter_map(set).collect()
}

/// A number in the settings of a choice: where, and in which list.
struct Number {
    value: usize,
    place: usize,
    list: usize,
}

/// The positive ones.
fn numbers(choice: &Choice) -> Vec<Number> {
    let lists = choice.numbers().into_iter().enumerate();
    let all = lists.flat_map(|(list, values)| values.into_iter().map(move |value| (list, value)));
    let all = all.enumerate().map(|(place, (list, value))| Number { value, place, list });
    all.filter(|number| number.value > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use allhands_schedule::Topology;

    const MESSAGES: Allowance = Allowance { shares: false, memory: None };

    /// Whatever is allowed, nothing that takes more is among the best; with nothing allowed something still serves.
    #[test]
    fn what_takes_too_much_memory_is_left_out_first() {
        let machine = Machine::shipped("lassen").unwrap();
        for (collective, topology) in [
            (Collective::Allreduce, Topology::regular(4, 6).unwrap()),
            (Collective::Alltoall, Topology::regular(3, 4).unwrap()),
            (Collective::ReduceScatter, Topology::flat(23).unwrap()),
        ] {
            let problem = Problem::new(collective, topology);
            let amount = Amount::bytes(960);
            let needs = |ranked: &Ranked| memory(&ranked.choice.prepare(&problem).unwrap(), amount);
            let free = best_choices(&problem, amount, &machine, Allowance::default()).unwrap();
            let most = free.iter().map(needs).max().unwrap();
            assert!(most > 0, "{collective}");
            for limit in [most, most / 2, 960, 0] {
                let allowance = Allowance { memory: Some(limit), ..Allowance::default() };
                let best = best_choices(&problem, amount, &machine, allowance).unwrap();
                assert!(best.iter().all(|ranked| needs(ranked) <= limit), "{collective} within {limit}");
                assert!(limit > 0 || best.len() < free.len(), "{collective} within {limit}");
            }
        }
        let allreduce = Problem::new(Collective::Allreduce, Topology::flat(23).unwrap());
        let nothing = Allowance { memory: Some(0), ..Allowance::default() };
        assert!(!best_choices(&allreduce, Amount::bytes(8), &machine, nothing).unwrap().is_empty());
    }

    #[test]
    fn every_number_of_a_setting_has_neighbours() {
        let around = |collective, text: &str| -> HashSet<String> {
            neighbours(&Choice::parse(collective, text).unwrap()).iter().map(ToString::to_string).collect()
        };
        let ports = around(Collective::Allgather, "bruck:ports=3,3");
        for near in ["bruck:ports=2,3", "bruck:ports=3,6", "bruck:ports=1,7", "bruck:ports=5,2"] {
            assert!(ports.contains(near), "{near} of {ports:?}");
        }
        let phases = around(Collective::Allreduce, "cyclic-shift:phases=16(-3,-3)10(9)16(3,3)");
        for near in ["16(-2,-3)10(9)16(3,3)", "16(-3,-3)10(4)16(3,3)", "16(-3,-3)10(9)16(5,2)"] {
            assert!(phases.contains(&format!("cyclic-shift:phases={near}")), "{near} of {phases:?}");
        }
        assert!(around(Collective::Allgather, "bruck").is_empty());
    }

    #[test]
    fn numbers_are_changed_for_as_long_as_that_helps() {
        let problem = Problem::new(Collective::Allgather, Topology::flat(40).unwrap());
        let machine = Machine::shipped("lassen").unwrap();
        let best = best_choices(&problem, Amount::bytes(64), &machine, MESSAGES).unwrap();
        for neighbour in neighbours(&best[0].choice) {
            let Ok(prepared) = neighbour.prepare(&problem) else { continue };
            let time = Simulator::new(&prepared).roughly().run(&machine, Amount::bytes(64)).unwrap().seconds;
            assert!(time >= best[0].seconds, "{neighbour} beats {}", best[0].choice);
        }
    }

    #[test]
    fn no_block_is_shorter_than_a_few_messages_can_tell_of() {
        let problem = Problem::new(Collective::Bcast, Topology::regular(4, 4).unwrap());
        let most = |rough: bool, bytes: u64| {
            let mut machine = Machine::shipped("generic").unwrap();
            machine.levels[0].rough = rough;
            // As one was fitted by a job that had seen short messages only while nothing else was under way.
            let fitted = [(816e-6, 0.5e-6, 0.0), (817e-6, 0.6e-6, 7.0e-9), (2449e-6, 1.5e-6, 7.07e-9)];
            for (protocol, (latency, overhead, injection)) in machine.levels[0].protocols.iter_mut().zip(fitted) {
                (protocol.latency, protocol.overhead) = (latency, overhead);
                (protocol.per_byte, protocol.injection) = (7.45e-9, injection);
            }
            let best = best_choices(&problem, Amount::bytes(bytes), &machine, MESSAGES).unwrap();
            best.iter().filter_map(|ranked| ranked.choice.blocks_in_turn()).max().unwrap_or(1)
        };
        // A twentieth of latency is about 5000 bytes.
        let found = [most(false, 64 << 10), most(true, 64 << 10), most(true, 4 << 20)];
        assert!(found[0] > 13 && found[1] <= 13 && found[2] > 13, "{found:?}");
    }
}
