//! Allreduces that move the whole vector: tree, recursive doubling, SMP; and the steps they and NAP are made of.
//!
//! - tree: binomial reduce to the first rank, binomial bcast. 2 ceil(log2 p) steps.
//! - recursive doubling: neighbours at distance 1, 2, 4, ... exchange what they have so far. Where p is no power of two,
//!   the first ranks fold in pairs and the spare ones get the result at the end.
//! - smp: reduce to one master a region, recursive doubling among the masters, bcast. The masters' ranks only. With
//!   `local=shared` the first and the last are copies to and from shared memory and meetings; the vector can be cut into
//!   slices, so that all ranks of a region reduce.
//!
//! ```text
//! p = 6, recursive doubling   fold: 0->1 2->3    1<->3 4<->5    1<->4 3<->5    spread: 1->0 3->2
//! ```
//!
//! Operands always meet in the order of the members, and every member evaluates the same expression.

use std::ops::Range;

use crate::algorithms::bine::Butterfly;
use crate::algorithms::binomial;
use crate::algorithms::node::{LOCAL, REDUCTION, Reduction, Region, last, reduction, shared};
use crate::algorithms::seats::{LEVEL, level_variants};
use crate::math::ceil_log;
use crate::registry::{Cost, Parameter, Parameters, Recipe};
use crate::{Combine, Problem, Result, Round, Space, Span, Topology};

pub(crate) const SMP: &[Parameter] = &[
    LEVEL,
    LOCAL,
    Parameter {
        name: "slices",
        values: "1..=4096, with local=shared: pieces that the ranks of a region reduce; 1: the master reduces alone",
        default: "1",
    },
    REDUCTION,
];
const MOST_SLICES: usize = 4096;

/// The value a rank has so far: some blocks, in the input until something is combined with them.
pub(crate) struct Running {
    pub(crate) value: Span,
    /// Where the value before the last replacement still is.
    old: Span,
    pub(crate) rounds: Vec<Round>,
}

impl Running {
    pub(crate) fn new() -> Running {
        Running::at(Span::input(0, 1), Vec::new())
    }

    /// With the value somewhere after some rounds.
    pub(crate) fn at(value: Span, rounds: Vec<Round>) -> Running {
        Running { value, old: value, rounds }
    }

    fn span(&self, space: Space) -> Span {
        Span::new(space, 0, self.value.count)
    }

    pub(crate) fn send(&self, round: &mut Round, to: usize) {
        round.send(to, [self.value]);
    }

    /// Combines with what comes.
    pub(crate) fn combine(&mut self, round: &mut Round, from: usize, how: Combine) {
        if self.value.space != Space::Input {
            return round.recv(from, [self.value], Some(how));
        }
        // What comes lands in the output and meets our own, on its other side.
        let mirrored = if how == Combine::After { Combine::Before } else { Combine::After };
        let landing = self.span(Space::Output);
        round.recv(from, [landing], None);
        round.combine(self.value, landing, mirrored);
        self.value = landing;
    }

    /// Takes what comes instead. The old value may be sent in the same round.
    pub(crate) fn replace(&mut self, round: &mut Round, from: usize) {
        self.old = self.value;
        self.value = self.span(if self.value.space == Space::Output { Space::Scratch } else { Space::Output });
        round.recv(from, [self.value], None);
    }

    /// Takes the reduction of some values, in their order: what comes from others, and our own (`None`).
    pub(crate) fn gather(&mut self, round: &mut Round, sources: &[Option<usize>]) {
        let into = self.span(if self.value.space == Space::Output { Space::Scratch } else { Space::Output });
        for (index, source) in sources.iter().enumerate() {
            let landing = match index {
                0 => into,
                _ => Span::new(Space::Scratch, index * into.count, into.count),
            };
            if let Some(from) = source {
                round.recv(*from, [landing], None);
            }
            let operand = if source.is_some() { landing } else { self.value };
            match index {
                0 if source.is_none() => round.copy(operand, into),
                0 => {}
                _ => round.combine(operand, into, Combine::After),
            }
        }
        (self.old, self.value) = (self.value, into);
    }

    /// Combines with the value that was replaced last.
    pub(crate) fn combine_old(&self, round: &mut Round, how: Combine) {
        round.combine(self.old, self.value, how);
    }

    /// The reduction of some values, in their order, is the value from now on.
    pub(crate) fn fold(&mut self, values: impl IntoIterator<Item = Span>, into: Space) {
        let into = self.span(into);
        let mut round = Round::default();
        for (index, value) in values.into_iter().enumerate() {
            if index == 0 { round.copy(value, into) } else { round.combine(value, into, Combine::After) }
        }
        self.rounds.push(round);
        self.value = into;
    }

    /// The result, in the output.
    pub(crate) fn finish(mut self) -> Vec<Round> {
        if self.value.space != Space::Output {
            if self.rounds.is_empty() {
                self.rounds.push(Round::default());
            }
            let result = self.span(Space::Output);
            let last = self.rounds.last_mut().expect("there is a round");
            last.copy(self.value, result);
        }
        self.rounds
    }
}

/// Ranks that act together, in an order of their own.
pub(crate) struct Group<'a> {
    pub(crate) size: usize,
    pub(crate) me: usize,
    pub(crate) rank_of: &'a dyn Fn(usize) -> usize,
}

impl Group<'_> {
    /// All contributions meet on member 0.
    pub(crate) fn reduce(&self, running: &mut Running) {
        for edge in (0..ceil_log(2, self.size)).filter_map(|bit| binomial::edge(self.size, self.me, bit)) {
            let mut round = Round::default();
            if self.me == edge.child {
                running.send(&mut round, (self.rank_of)(edge.parent));
            } else {
                running.combine(&mut round, (self.rank_of)(edge.child), Combine::After);
            }
            running.rounds.push(round);
        }
    }

    /// Member 0's value goes to all.
    pub(crate) fn bcast(&self, running: &mut Running) {
        for edge in (0..ceil_log(2, self.size)).rev().filter_map(|bit| binomial::edge(self.size, self.me, bit)) {
            let mut round = Round::default();
            if self.me == edge.child {
                running.replace(&mut round, (self.rank_of)(edge.parent));
            } else {
                running.send(&mut round, (self.rank_of)(edge.child));
            }
            running.rounds.push(round);
        }
    }

    /// The first `contributors` members combine their values, and all members get the result.
    pub(crate) fn allreduce(&self, running: &mut Running, contributors: usize) {
        self.allreduce_by(Butterfly::Doubling, running, contributors);
    }

    fn allreduce_by(&self, butterfly: Butterfly, running: &mut Running, contributors: usize) {
        let Halves { pairs, folded } = Halves::new(contributors);
        let me = self.me;
        if me < 2 * folded {
            let mut round = Round::default();
            if me.is_multiple_of(2) {
                running.send(&mut round, (self.rank_of)(me + 1));
            } else {
                running.combine(&mut round, (self.rank_of)(me - 1), Combine::Before);
            }
            running.rounds.push(round);
        }
        // Holders take part in the doubling; the others wait in line behind them for the result.
        let member = |place: usize| match place {
            holder if holder < folded => 2 * holder + 1,
            holder if holder < pairs => holder + folded,
            spare if spare < pairs + folded => 2 * (spare - pairs),
            rest => rest,
        };
        let place = match me {
            _ if me < 2 * folded => {
                if me.is_multiple_of(2) {
                    pairs + me / 2
                } else {
                    me / 2
                }
            }
            _ if me < contributors => me - folded,
            _ => me,
        };
        let doublings = if place < pairs { pairs.ilog2() } else { 0 };
        for index in 0..doublings as usize {
            // The nearest first keeps rank order; Bine's members evaluate the same expression with the farthest first only.
            let step = match butterfly {
                Butterfly::Doubling => index,
                Butterfly::Bine => doublings as usize - 1 - index,
            };
            let peer = (self.rank_of)(member(butterfly.partner(pairs, place, step)));
            let second = butterfly.number(pairs, place) >> step & 1 == 1;
            let mut round = Round::default();
            running.send(&mut round, peer);
            running.combine(&mut round, peer, if second { Combine::Before } else { Combine::After });
            running.rounds.push(round);
        }
        let mut served = pairs;
        while served < self.size {
            let mut round = Round::default();
            if place < served && place + served < self.size {
                running.send(&mut round, (self.rank_of)(member(place + served)));
            } else if (served..2 * served).contains(&place) {
                running.replace(&mut round, (self.rank_of)(member(place - served)));
            }
            if round.communicates() {
                running.rounds.push(round);
            }
            served *= 2;
        }
    }

    /// What [`allreduce`](Group::allreduce) costs at most.
    pub(crate) fn allreduce_cost(size: usize, contributors: usize) -> Cost {
        let Halves { pairs, folded } = Halves::new(contributors);
        let (doubling, spread) = (pairs.ilog2() as usize, ceil_log(2, size.div_ceil(pairs)));
        let messages = doubling + spread + usize::from(folded > 0);
        let all = Cost::at_most(doubling + spread + usize::from(folded > 0), messages, messages);
        if folded == 0 && size == pairs { Cost { exact: true, ..all } } else { all }
    }
}

/// A number of contributors as a power of two and the rest, which folds first.
struct Halves {
    pairs: usize,
    folded: usize,
}

impl Halves {
    fn new(contributors: usize) -> Halves {
        let pairs = 1 << contributors.ilog2();
        Halves { pairs, folded: contributors - pairs }
    }
}

pub(crate) fn tree(problem: &Problem, _: &Parameters) -> Result<Recipe> {
    let size = problem.ranks();
    let make = move |me| {
        let (group, mut running) = (Group { size, me, rank_of: &|member| member }, Running::new());
        group.reduce(&mut running);
        group.bcast(&mut running);
        running.finish()
    };
    Ok(Recipe { blocks: 1, make: Box::new(make) })
}

pub(crate) fn tree_cost(problem: &Problem, _: &Parameters) -> Cost {
    let levels = ceil_log(2, problem.ranks());
    Cost::exact(2 * levels, levels, levels)
}

pub(crate) fn recursive_doubling(problem: &Problem, _: &Parameters) -> Result<Recipe> {
    Ok(by(Butterfly::Doubling, problem))
}

/// All exchange what they have so far.
pub(super) fn by(butterfly: Butterfly, problem: &Problem) -> Recipe {
    let size = problem.ranks();
    let make = move |me| {
        let (group, mut running) = (Group { size, me, rank_of: &|member| member }, Running::new());
        group.allreduce_by(butterfly, &mut running, size);
        running.finish()
    };
    Recipe { blocks: 1, make: Box::new(make) }
}

pub(crate) fn recursive_doubling_cost(problem: &Problem, _: &Parameters) -> Cost {
    Group::allreduce_cost(problem.ranks(), problem.ranks())
}

pub(crate) fn smp(problem: &Problem, parameters: &Parameters) -> Result<Recipe> {
    let level = parameters.level(problem)?;
    let (slices, reduction) = (slices(parameters)?, reduction(parameters)?);
    let topology = problem.topology.clone();
    let make = move |rank| {
        let (index, seats, me) = home(&topology, level, rank);
        let near = Group { size: seats.len(), me, rank_of: &|member| topology.rank_at(seats.start + member) };
        let master = |region| topology.rank_at(topology.region(level, region).start);
        let far = Group { size: topology.regions(level), me: index, rank_of: &master };
        if let Some(blocks) = slices {
            let region = Region::new(&topology, level, rank);
            return through_memory(&region, blocks, reduction, &far);
        }
        let mut running = Running::new();
        near.reduce(&mut running);
        if me == 0 {
            far.allreduce(&mut running, far.size);
        }
        near.bcast(&mut running);
        running.finish()
    };
    Ok(Recipe { blocks: slices.unwrap_or(1), make: Box::new(make) })
}

/// Into how many slices the vector is cut for a reduction in shared memory; none without.
fn slices(parameters: &Parameters) -> Result<Option<usize>> {
    let slices = parameters.number("slices", 1..=MOST_SLICES)?;
    match (shared(parameters)?, slices) {
        (true, slices) => Ok(Some(slices.unwrap_or(1))),
        (false, None) => Ok(None),
        (false, Some(_)) => Err(parameters.wrong("slices", "is given without local=shared", "local=shared beside it")),
    }
}

/// Local reduction, the masters' part on the first line, copy-out.
fn through_memory(region: &Region, blocks: usize, reduction: Reduction, far: &Group<'_>) -> Vec<Round> {
    if region.size == 1 {
        let mut running = Running::at(Span::input(0, blocks), Vec::new());
        far.allreduce(&mut running, far.size);
        return running.finish();
    }
    let line = region.whole_line(0, blocks);
    let mut running = Running::at(line, region.reduce(blocks, reduction));
    if region.me == 0 {
        far.allreduce(&mut running, far.size);
    }
    let Running { value, mut rounds, .. } = running;
    if value == line {
        region.copy_out(&mut rounds, line);
    } else {
        // A master that folded got the result from another, where it belongs.
        last(&mut rounds).copy(value, line);
        region.meet(&mut rounds);
    }
    rounds.retain(|round| !round.is_empty());
    rounds
}

/// A rank's region, its seats, and the rank's place in it.
pub(crate) fn home(topology: &Topology, level: usize, rank: usize) -> (usize, Range<usize>, usize) {
    let seat = topology.seat_of(rank);
    let region = topology.region_of_seat(level, seat);
    let seats = topology.region(level, region);
    (region, seats.clone(), seat - seats.start)
}

pub(crate) fn smp_cost(problem: &Problem, parameters: &Parameters) -> Cost {
    let level = parameters.level(problem).unwrap_or(1);
    let (regions, (smallest, largest)) = (problem.topology.regions(level), problem.topology.region_sizes(level));
    let far = Group::allreduce_cost(regions, regions);
    if let Ok(Some(slices)) = slices(parameters) {
        return Cost { blocks: far.blocks * slices, ..far };
    }
    let near = ceil_log(2, largest);
    let cost = Cost::exact(2 * near, near, near).then(far);
    if smallest == largest { cost } else { cost.roughly() }
}

/// Every level, either way; with a slice for each rank, and with other numbers.
pub(crate) fn smp_variants(problem: &Problem) -> Vec<String> {
    let mut variants = level_variants(problem);
    let largest = problem.topology.region_sizes(1).1;
    variants.extend(
        [largest, 3].iter().filter(|&&slices| slices > 1).map(|slices| format!("slices={slices}:local=shared")),
    );
    variants.extend([1, 2, 5].map(|slices| format!("slices={slices}:local=shared:reduction=chunks")));
    variants
}
