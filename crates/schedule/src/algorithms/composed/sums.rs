//! Composed sums: an allreduce of the whole vector whose steps are spelled out, in the language of [composed](super).
//!
//! Every rank has one value, the reduction over some ranks, and in each step adds what it is given: `near1`, `far1`, several at once. In a `fan` the
//! ranks of a region, who all have the same value, take those of other regions in its place, each of another one; the rank on the last seat
//! keeps the region's own, too; and who is given none has nothing until he is given something again. `share` adds up what the ranks of a region
//! have, through memory. Whom all has been given already asks nobody; what would be added twice is refused.
//!
//! ```text
//! 4x4   near1,near2,fan1x3,near1,near2            NAP
//! 8x4   near1,near2,fan1x3,near1,near2,far4       two far rounds, and nothing near after the second
//!       near1,near2,fan1x7,near1,near2            NAP with two ports
//! 6     far1x2,far3
//! ```
//!
//! a round for each step · a vector a message · regions of one size · sums are taken in another order on every rank: for operations that do not round

use std::sync::Arc;

use super::knowledge::Seats;
use super::steps::{Grid, Kind, Move, Step, written};
use super::{OTHERS, asked_for, grid, rank_at, through_memory};
use crate::algorithms::allreduce::whole::{Running, home};
use crate::algorithms::node::{LOCAL, Region, last};
use crate::algorithms::seats::LEVEL;
use crate::math::prime_factors;
use crate::registry::{Cost, Parameter, Parameters, Recipe};
use crate::{Combine, Problem, Result, Round, Space, Topology};

pub(crate) const PARAMETERS: &[Parameter] = &[
    Parameter {
        default: "NAP's for all but a factor of the regions; those everybody asks for himself",
        ..super::PARAMETERS[0]
    },
    LEVEL,
    LOCAL,
];

/// What the rank on a seat does in a step.
#[derive(Clone, Debug, Default)]
pub(crate) struct Addition {
    /// Whether its own value is among those added.
    pub(crate) own: bool,
    /// Whose values it is given: how many regions on, and on which seat.
    pub(crate) given: Vec<(usize, usize)>,
}

/// What a step does, for the rank on each seat.
#[derive(Clone, Debug)]
pub(crate) enum Added {
    Talk(Vec<Addition>),
    /// Which seats have a value.
    Share(Vec<bool>),
}

/// Over which ranks the value of each seat is the reduction, by how many regions on they are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Sums {
    grid: Grid,
    of: Vec<Vec<Seats>>,
}

/// What a step does, or why it cannot be done.
pub(crate) type Possible<T> = std::result::Result<T, &'static str>;

const TWICE: &str = "adds something twice";

impl Sums {
    pub(crate) fn new(grid: Grid) -> Sums {
        let own = |seat: usize| {
            let mut own = vec![0; grid.regions];
            own[0] = 1 << seat;
            own
        };
        Sums { grid, of: (0..grid.seats).map(own).collect() }
    }

    pub(crate) fn step(&mut self, step: &Step) -> Possible<Added> {
        match step {
            Step::Share => self.share(),
            Step::Talk(moves) if moves.iter().any(|one| one.kind == Kind::Lane) => {
                Err("asks for the blocks of a lane, where there are whole vectors")
            }
            Step::Talk(moves) if moves.iter().any(|one| one.kind == Kind::Fan) => match moves[..] {
                [fan] => self.fan(fan),
                _ => Err("does something else beside a fan"),
            },
            Step::Talk(moves) => self.add(moves),
        }
    }

    fn add(&mut self, moves: &[Move]) -> Possible<Added> {
        let mut next = self.of.clone();
        let mut additions = Vec::new();
        for (seat, value) in next.iter_mut().enumerate() {
            let mut addition = Addition { own: !is_nothing(value), given: Vec::new() };
            for from in moves.iter().flat_map(|one| one.sources(self.grid, seat)) {
                if united(value, &self.seen(from))? {
                    addition.given.push(from);
                }
            }
            additions.push(addition);
        }
        self.of = next;
        Ok(Added::Talk(additions))
    }

    fn fan(&mut self, fan: Move) -> Possible<Added> {
        if self.of.iter().any(|value| *value != self.of[0]) {
            return Err("has a fan where the ranks of a region have different values");
        }
        let mut all = self.of[0].clone();
        let mut next = vec![vec![0; self.grid.regions]; self.grid.seats];
        next[self.grid.seats - 1] = all.clone();
        let mut additions = Vec::new();
        for (seat, value) in next.iter_mut().enumerate() {
            let mut addition = Addition { own: seat + 1 == self.grid.seats, given: Vec::new() };
            for from in fan.sources(self.grid, seat) {
                let given = self.seen(from);
                if united(&mut all, &given)? {
                    united(value, &given)?;
                    addition.given.push(from);
                }
            }
            additions.push(addition);
        }
        self.of = next;
        Ok(Added::Talk(additions))
    }

    fn share(&mut self) -> Possible<Added> {
        let have = self.of.iter().map(|value| !is_nothing(value)).collect();
        let mut all = vec![0; self.grid.regions];
        for value in self.of.iter().filter(|value| !is_nothing(value)) {
            if !united(&mut all, value)? {
                return Err(TWICE);
            }
        }
        self.of = vec![all; self.grid.seats];
        Ok(Added::Share(have))
    }

    /// The value of a rank as it is named from here.
    fn seen(&self, (far, from): (usize, usize)) -> Vec<Seats> {
        let mut seen = self.of[from].clone();
        seen.rotate_right(far);
        seen
    }

    /// How many contributions who has the fewest lacks.
    pub(crate) fn lacking(&self) -> usize {
        let Grid { regions, seats } = self.grid;
        let has = |value: &Vec<Seats>| value.iter().map(|seats| seats.count_ones() as usize).sum::<usize>();
        self.of.iter().map(|value| regions * seats - has(value)).max().unwrap_or(0)
    }
}

fn is_nothing(value: &[Seats]) -> bool {
    value.iter().all(|seats| *seats == 0)
}

/// Adds a value that has nothing in common with another; whether there was anything to add.
fn united(value: &mut [Seats], given: &[Seats]) -> Possible<bool> {
    let both = || value.iter().zip(given);
    if both().all(|(has, new)| new & !has == 0) {
        return Ok(false);
    }
    if both().any(|(has, new)| has & new != 0) {
        return Err(TWICE);
    }
    value.iter_mut().zip(given).for_each(|(has, new)| *has |= new);
    Ok(true)
}

/// What every step does, found once for all ranks.
struct ComposedSums {
    topology: Topology,
    level: usize,
    grid: Grid,
    added: Vec<Added>,
}

impl ComposedSums {
    fn new(problem: &Problem, parameters: &Parameters) -> Result<ComposedSums> {
        let (topology, level, grid) = grid(problem, parameters)?;
        let steps = asked_for(grid, parameters, fan_then_far)?;
        let mut sums = Sums::new(grid);
        let wrong =
            |fact: String| parameters.unservable("steps that give everybody every contribution once", fact, OTHERS);
        let mut added = Vec::new();
        for step in &steps {
            added.push(sums.step(step).map_err(|fact| wrong(format!("{step} {fact}")))?);
        }
        match sums.lacking() {
            0 => Ok(ComposedSums { topology, level, grid, added }),
            lacking => {
                let (steps, all) = (written(&steps), problem.ranks());
                Err(wrong(format!("{steps} leave somebody without {lacking} of {all} contributions")))
            }
        }
    }

    fn rounds(&self, rank: usize) -> Vec<Round> {
        let (region, _, seat) = home(&self.topology, self.level, rank);
        let memory = Region::new(&self.topology, self.level, rank);
        let of = |region: usize, seat: usize| rank_at(&self.topology, self.level, region % self.grid.regions, seat);
        let mut running = Running::new();
        for (turn, added) in self.added.iter().enumerate() {
            let additions = match added {
                Added::Talk(additions) => additions,
                Added::Share(have) => {
                    share(&mut running, &memory, turn, have);
                    continue;
                }
            };
            let mut round = Round::default();
            for (to, far) in given_by(additions, seat) {
                running.send(&mut round, of(region + self.grid.regions - far, to));
            }
            let Addition { own, given } = &additions[seat];
            let given: Vec<usize> = given.iter().map(|&(far, from)| of(region + far, from)).collect();
            match given[..] {
                [] => {}
                [from] if *own => running.combine(&mut round, from, Combine::After),
                [from] => running.replace(&mut round, from),
                _ => {
                    let own = own.then_some(None).into_iter();
                    running.gather(&mut round, &own.chain(given.into_iter().map(Some)).collect::<Vec<_>>());
                }
            }
            running.rounds.push(round);
        }
        running.finish()
    }
}

/// Whoever has a value lays it down, all meet, everybody adds up what is there.
fn share(running: &mut Running, memory: &Region, turn: usize, have: &[bool]) {
    if memory.size == 1 {
        return;
    }
    if have[memory.me] {
        last(&mut running.rounds).copy(running.value, memory.slot(1, turn, memory.me));
    }
    memory.meet(&mut running.rounds);
    let values = have.iter().enumerate().filter(|(_, have)| **have).map(|(seat, _)| memory.slot(1, turn, seat));
    running.fold(values, Space::Output);
}

/// To which seats the rank on a seat gives its value, and how many regions on they see it.
fn given_by(additions: &[Addition], seat: usize) -> impl Iterator<Item = (usize, usize)> {
    let all =
        additions.iter().enumerate().flat_map(|(to, addition)| addition.given.iter().map(move |from| (to, *from)));
    all.filter(move |(_, (_, from))| *from == seat).map(|(to, (far, _))| (to, far))
}

/// Factors that make up a number, as exchanges: `near1,near2` of 4, `near1x2,near3` of 6.
fn factors(kind: Kind, of: usize) -> impl Iterator<Item = Step> {
    let mut stride = 1;
    prime_factors(of).into_iter().map(move |factor| {
        let times = (factor > 2).then_some(factor - 1);
        let step = Step::Talk(vec![Move { kind, stride, times }]);
        stride *= factor;
        step
    })
}

fn inside(grid: Grid, shares: bool) -> Vec<Step> {
    if shares { vec![Step::Share] } else { factors(Kind::Near, grid.seats).collect() }
}

/// The steps of NAP without the last near part: as many regions as a fan can unite and that divide those that are left, round after round; in the
/// last, everybody asks for himself.
fn fan_then_far(grid: Grid, shares: bool) -> Vec<Step> {
    let mut steps = inside(grid, shares);
    let last = prime_factors(grid.regions).first().copied().unwrap_or(1);
    let (mut window, mut left) = (1, grid.regions / last);
    while left > 1 {
        let most = (2..=grid.seats + 1).rev().find(|factor| left.is_multiple_of(*factor));
        // A number of regions that no fan divides takes several ports.
        let factor = most.unwrap_or_else(|| prime_factors(left)[0]);
        steps.push(Step::Talk(vec![Move { kind: Kind::Fan, stride: window, times: Some(factor - 1) }]));
        steps.extend(inside(grid, shares));
        (window, left) = (window * factor, left / factor);
    }
    if last > 1 {
        let times = (last > 2).then_some(last - 1);
        steps.push(Step::Talk(vec![Move { kind: Kind::Far, stride: window, times }]));
    }
    steps
}

pub(crate) fn allreduce(problem: &Problem, parameters: &Parameters) -> Result<Recipe> {
    let composed = Arc::new(ComposedSums::new(problem, parameters)?);
    Ok(Recipe { blocks: 1, make: Box::new(move |rank| composed.rounds(rank)) })
}

pub(crate) fn cost(problem: &Problem, parameters: &Parameters) -> Cost {
    let Ok(composed) = ComposedSums::new(problem, parameters) else { return Cost::NOTHING };
    let talks: Vec<&Vec<Addition>> = (composed.added.iter())
        .filter_map(|added| if let Added::Talk(additions) = added { Some(additions) } else { None })
        .filter(|additions| additions.iter().any(|addition| !addition.given.is_empty()))
        .collect();
    let sent = |seat: usize| talks.iter().map(|additions| given_by(additions, seat).count()).sum::<usize>();
    let messages = (0..composed.grid.seats).map(sent).max().unwrap_or(0);
    Cost::at_most(talks.len(), messages, messages)
}

/// Groups of a region first, then all regions at once, then the groups: found to be faster than NAP where a rank's ports are many.
fn around(grid: Grid) -> Vec<Step> {
    let Grid { regions, seats } = grid;
    let root = (2..seats).find(|group| seats.is_multiple_of(*group) && group * group >= seats).unwrap_or(seats);
    let all = |kind: Kind, stride: usize, of: usize| {
        let step = Step::Talk(vec![Move { kind, stride, times: Some(of - 1) }]);
        (of > 1).then_some(step)
    };
    let steps = [all(Kind::Near, 1, root), all(Kind::Far, 1, regions), all(Kind::Near, root, seats / root)];
    steps.into_iter().flatten().collect()
}

/// More regions are not asked at once.
const MOST_AT_ONCE: usize = 64;

/// The default, by messages and through memory, and far between two near parts: other steps are for whoever searches.
pub(crate) fn variants(problem: &Problem) -> Vec<String> {
    let grid = grid(problem, &Parameters::default()).map(|(.., grid)| grid);
    let around = grid.ok().filter(|grid| grid.regions <= MOST_AT_ONCE).map(around).filter(|steps| !steps.is_empty());
    let around = around.map(|steps| format!("steps={}", written(&steps)));
    std::iter::once(String::new()).chain(around).chain(through_memory(problem)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_twice_is_refused_and_what_is_known_is_not_asked_for() {
        let four = Grid { regions: 1, seats: 4 };
        let after = |steps: &str| {
            let mut sums = Sums::new(four);
            super::super::steps::read(steps)
                .unwrap()
                .iter()
                .try_for_each(|step| sums.step(step).map(|_| ()))
                .map(|()| sums.lacking())
        };
        assert_eq!(after("near1"), Ok(2));
        assert_eq!(after("near1,near2"), Ok(0));
        assert_eq!(after("near1x3,near1"), Ok(0));
        assert_eq!(after("near1,near1"), Err(TWICE));
        assert_eq!(after("near1,lane1"), Err("asks for the blocks of a lane, where there are whole vectors"));
    }
}
