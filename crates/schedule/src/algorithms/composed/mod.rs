//! Composed: an allgather whose steps are spelled out, and what follows from it. What the messages carry is found: whatever the receiver lacks.
//!
//! The steps are the movements that two-level algorithms are made of. Every rank asks others for what they have: those on the seats after it
//! (`near1`), those on its seat in the regions after its own (`far1`; `lane1` for the blocks of that seat only), or, each rank of a region another one,
//! as in loc-bruck (`fan1`). The number is the distance, `x3` asks three at once, `+` does two things at the same time, and with
//! `local=shared` the ranks of a region `share` through memory.
//!
//! ```text
//! 4x4   near1,near2,fan1,near1,near2      loc-bruck
//!       far1,far2,near1,near2             multi-lane
//!       near1,near2,far1,far2             recursive doubling, turned
//!       lane1,lane2+near1,near2,near1     the first far blocks are shared while others travel
//! ```
//!
//! `allhands search` looks for the best steps on a machine. Steps after which somebody lacks something are refused.
//!
//! a round for each step · messages and blocks: as found · regions of one size, of at most 128 ranks, and 16384 ranks in all · reversed: a reduce_scatter; both: an allreduce; empty: a barrier

mod composition;
mod knowledge;
mod steps;
pub(crate) mod sums;

use std::sync::Arc;

pub use self::composition::{Composition, Message};
pub use self::steps::{Grid, Kind, Move, Step};

use self::knowledge::{Blocks, Done, Fetch, Knowledge, MOST_SEATS, count};
use self::steps::{read, written};
use super::node::{self, LOCAL, Movement, Region, shared, uses_memory};
use super::seats::{LEVEL, push_output_of};
use crate::registry::{Cost, Parameter, Parameters};
use crate::{InlineVec, Problem, Result, Round, Span, Topology};

pub(crate) const NEEDS: &str = "regions of one size";
/// What ranks know is kept for all of them.
const MOST_RANKS: usize = 1 << 14;
pub(crate) const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "steps",
        values: "near, far, lane or fan with a distance each, as in near1,near2,fan1,near1,near2; x3: three at once; +: at the same time; \
                 share: through memory",
        default: "loc-bruck's until half of all regions are known; the rest everybody fetches by himself",
    },
    LEVEL,
    LOCAL,
];

/// What to do about steps that do not fit.
const OTHERS: &str = "name others, which `allhands search` finds";

pub(crate) fn movement(problem: &Problem, parameters: &Parameters) -> Result<Movement> {
    let composed = Arc::new(Composed::new(problem, parameters)?);
    Ok(match uses_memory(parameters) {
        false => Movement::Messages(Box::new(move |rank| composed.rounds(rank))),
        true => Movement::Shared(Box::new(move |rank| composed.steps(rank))),
    })
}

/// The grid that a problem's ranks are seen as: where there are no nodes, and no memory to share, everybody is a region.
pub(crate) fn grid(problem: &Problem, parameters: &Parameters) -> Result<(Topology, usize, Grid)> {
    let (flat, level) = (problem.topology.depth() == 0 && !uses_memory(parameters), parameters.level(problem)?);
    let topology = if flat { Topology::regular(problem.ranks(), 1)? } else { problem.topology.clone() };
    let (smallest, largest) = topology.region_sizes(level);
    if smallest < largest {
        let fact = format!("its regions have {smallest} to {largest} ranks");
        return Err(parameters.unservable(NEEDS, fact, "name one for any shape, such as loc-bruck or multi-lane"));
    }
    if largest > MOST_SEATS {
        let fact = format!("its regions have {largest} ranks");
        return Err(parameters.unservable(
            "regions of at most 128 ranks",
            fact,
            "name those of a deeper level, with level=2",
        ));
    }
    if problem.ranks() > MOST_RANKS {
        let fact = format!("there are {} ranks", problem.ranks());
        return Err(parameters.unservable("at most 16384 ranks", fact, "name one for any number, such as loc-bruck"));
    }
    let grid = Grid { regions: topology.regions(level), seats: largest };
    Ok((topology, level, grid))
}

/// The steps that were asked for, checked against the form of the near part; or the default.
fn asked_for(grid: Grid, parameters: &Parameters, default: fn(Grid, bool) -> Vec<Step>) -> Result<Vec<Step>> {
    let shares = shared(parameters)?;
    let Some(setting) = parameters.setting("steps") else { return Ok(default(grid, shares)) };
    let wrong = |fact: &str, legal: &str| Err(parameters.wrong("steps", fact, legal));
    let steps = match read(&setting.to_string()) {
        Ok(steps) => steps,
        Err(fact) => return wrong(&fact, "steps separated by commas, such as near1,near2,fan1"),
    };
    let near = |step: &Step| matches!(step, Step::Talk(moves) if moves.iter().any(|one| one.kind == Kind::Near));
    if shares && steps.iter().any(near) {
        return wrong("has near messages beside local=shared", "share in their place, or local=messages");
    }
    if !shares && steps.contains(&Step::Share) {
        return wrong("shares memory without local=shared", "local=shared beside it, or near messages");
    }
    Ok(steps)
}

/// Distances 1, 2, 4, ... below a number.
fn doubling(kind: Kind, below: usize) -> impl Iterator<Item = Step> {
    let strides = std::iter::successors(Some(1), |stride| Some(2 * stride)).take_while(move |stride| *stride < below);
    strides.map(move |stride| Step::Talk(vec![Move { kind, stride, times: None }]))
}

/// Whatever lets a region know what one of its ranks does.
fn inside(grid: Grid, shares: bool) -> Vec<Step> {
    if shares { vec![Step::Share] } else { doubling(Kind::Near, grid.seats).collect() }
}

/// The steps of loc-bruck without the last near part: what is left when windows have grown to half of all regions, everybody fetches by himself.
/// Faster than loc-bruck where the last window is small.
fn fan_then_far(grid: Grid, shares: bool) -> Vec<Step> {
    let mut steps = inside(grid, shares);
    let mut window = 1;
    while 2 * window < grid.regions {
        let times = grid.seats.min(grid.regions.div_ceil(2 * window));
        steps.push(Step::Talk(vec![Move { kind: Kind::Fan, stride: window, times: Some(times) }]));
        steps.extend(inside(grid, shares));
        window *= times + 1;
    }
    if window < grid.regions {
        let stride = window.min(grid.regions - window);
        steps.push(Step::Talk(vec![Move { kind: Kind::Far, stride, times: None }]));
        // Through memory one rank brings it for all.
        steps.extend(inside(grid, shares).into_iter().filter(|_| shares));
    }
    steps
}

fn rank_at(topology: &Topology, level: usize, region: usize, seat: usize) -> usize {
    topology.rank_at(topology.region(level, region).start + seat)
}

/// What every step does, found once for all ranks.
struct Composed {
    topology: Topology,
    level: usize,
    grid: Grid,
    done: Vec<Done>,
}

impl Composed {
    fn new(problem: &Problem, parameters: &Parameters) -> Result<Composed> {
        let (topology, level, grid) = grid(problem, parameters)?;
        let steps = asked_for(grid, parameters, fan_then_far)?;
        let mut knowledge = Knowledge::new(grid, uses_memory(parameters));
        let done = steps.iter().map(|step| knowledge.step(step)).collect();
        match knowledge.lacking() {
            0 => Ok(Composed { topology, level, grid, done }),
            lacking => {
                let (steps, all) = (written(&steps), problem.ranks());
                let fact = format!("{steps} leave somebody without {lacking} of {all} blocks");
                Err(parameters.unservable("steps after which everybody has all blocks", fact, OTHERS))
            }
        }
    }

    fn rank(&self, region: usize, seat: usize) -> usize {
        rank_at(&self.topology, self.level, region % self.grid.regions, seat)
    }

    /// The blocks as they are named from a region.
    fn spans(&self, region: usize, blocks: &Blocks) -> InlineVec<Span> {
        let mut spans = InlineVec::new();
        for &(on, mut seats) in blocks {
            let start = self.topology.region(self.level, (region + on) % self.grid.regions).start;
            while seats != 0 {
                let first = seats.trailing_zeros() as usize;
                let run = (seats >> first).trailing_ones() as usize;
                push_output_of(&self.topology, start + first..start + first + run, &mut spans);
                seats = if first + run < MOST_SEATS { seats >> (first + run) << (first + run) } else { 0 };
            }
        }
        spans
    }

    /// The messages of a step, as the rank on a seat of a region sends and receives them.
    fn round(&self, messages: &[Vec<Fetch>], region: usize, seat: usize) -> Round {
        let mut round = Round::default();
        for (to, fetch) in sent_from(messages, seat) {
            let receiver = region + self.grid.regions - fetch.region;
            round.send(self.rank(receiver, to), self.spans(receiver, &fetch.blocks));
        }
        for fetch in &messages[seat] {
            round.recv(self.rank(region + fetch.region, fetch.seat), self.spans(region, &fetch.blocks), None);
        }
        round
    }

    fn rounds(&self, rank: usize) -> Vec<Round> {
        let (region, _, seat) = super::allreduce::whole::home(&self.topology, self.level, rank);
        let round = |done: &Done| match done {
            Done::Talk(messages) => self.round(messages, region, seat),
            Done::Share { .. } => Round::default(),
        };
        self.done.iter().map(round).collect()
    }

    fn steps(&self, rank: usize) -> (Region, Vec<node::Step>) {
        let (region, _, seat) = super::allreduce::whole::home(&self.topology, self.level, rank);
        let step = |done: &Done| match done {
            Done::Talk(messages) => node::Step::Talk(self.round(messages, region, seat)),
            Done::Share { all, mine } => {
                node::Step::Share { all: self.spans(region, all), mine: self.spans(region, &mine[seat]) }
            }
        };
        (Region::new(&self.topology, self.level, rank), self.done.iter().map(step).collect())
    }

    /// Messages and blocks of the busiest, as senders of the movement and as receivers.
    fn busiest(&self) -> [(usize, usize); 2] {
        let seats = 0..self.grid.seats;
        let talks =
            || self.done.iter().filter_map(|done| if let Done::Talk(messages) = done { Some(messages) } else { None });
        let sum = |fetches: &mut dyn Iterator<Item = &Fetch>| {
            fetches.fold((0, 0), |(messages, blocks), fetch| (messages + 1, blocks + count(&fetch.blocks)))
        };
        let sent =
            seats.clone().map(|seat| sum(&mut talks().flat_map(|talk| sent_from(talk, seat)).map(|(_, fetch)| fetch)));
        let received = seats.map(|seat| sum(&mut talks().flat_map(|talk| &talk[seat])));
        let most =
            |of: Vec<(usize, usize)>| of.into_iter().fold((0, 0), |most, one| (most.0.max(one.0), most.1.max(one.1)));
        [most(sent.collect()), most(received.collect())]
    }
}

/// The messages of a step that the rank on a seat sends: to which seat, and what its receiver sees.
fn sent_from(messages: &[Vec<Fetch>], seat: usize) -> impl Iterator<Item = (usize, &Fetch)> {
    let to = messages.iter().enumerate();
    to.flat_map(|(to, fetches)| fetches.iter().map(move |fetch| (to, fetch)))
        .filter(move |(_, fetch)| fetch.seat == seat)
}

/// As found; at most so many steps, since not every message waits for those before it.
pub(crate) fn cost(problem: &Problem, parameters: &Parameters) -> Cost {
    let Ok(composed) = Composed::new(problem, parameters) else { return Cost::NOTHING };
    let talks =
        |done: &&Done| matches!(done, Done::Talk(messages) if messages.iter().any(|fetches| !fetches.is_empty()));
    let steps = composed.done.iter().filter(talks).count();
    let [sent, received] = composed.busiest();
    let (messages, blocks) = match problem.collective.reduces() {
        true => (sent.0.max(received.0), sent.1.max(received.1)),
        false => sent,
    };
    Cost::at_most(steps, messages, blocks)
}

pub(crate) fn allreduce_cost(problem: &Problem, parameters: &Parameters) -> Cost {
    let once = cost(problem, parameters);
    once.then(once)
}

pub(crate) fn barrier_cost(problem: &Problem, parameters: &Parameters) -> Cost {
    Cost { blocks: 0, ..cost(problem, parameters) }
}

/// The default, by messages and through memory: other steps are for whoever searches.
pub(crate) fn variants(problem: &Problem) -> Vec<String> {
    std::iter::once(String::new()).chain(through_memory(problem)).collect()
}

/// The default through memory, where it can serve.
fn through_memory(problem: &Problem) -> Option<String> {
    let (smallest, largest) = problem.topology.region_sizes(1);
    let able = smallest == largest && largest <= MOST_SEATS && problem.ranks() <= MOST_RANKS;
    able.then(|| "local=shared".into())
}
