//! Multi-lane: first every lane (the ranks of one place in all regions) allgathers across, then every region inside.
//! Reversed it is a reduce_scatter; both, an allreduce, in which all ranks of a region send a part of the vector.
//! (Träff and Hunold 2020.)
//!
//! ```text
//! 3x2   lanes 0 2 4 and 1 3 5    then each pair shares what its two lanes brought
//! ```
//!
//! Regions of different sizes: lane m is served by local rank m mod q, so a small region's ranks serve several lanes and
//! contribute nothing to those they have no rank of their own for.
//!
//! ceil(log_radix R) far steps, ceil(log2 q) near ones · a rank sends R-1 blocks far, R(q-1) near · any shape · shared: far
//! steps only, one meeting · allreduce: twice as many, never ordered, identical

use std::ops::Range;

use super::leaders::{Groups, across, across_cost};
use super::windows::{multiplying, windows};
use crate::algorithms::allreduce::whole::home;
use crate::algorithms::node::{LOCAL, Movement, Region, Step, either_way, shared, uses_memory};
use crate::algorithms::seats::{LEVEL, level_variants};
use crate::compose::{embed, placing};
use crate::math::{ceil_log, worth_trying};
use crate::registry::{Cost, Parameter, Parameters};
use crate::schedule::push_span;
use crate::{InlineVec, Problem, Result, Round, Span, Topology};

pub(crate) const PARAMETERS: &[Parameter] = &[
    LEVEL,
    LOCAL,
    Parameter { name: "radix", values: "2..=regions: ports + 1 of a rank in every far round", default: "2" },
];

fn radix(problem: &Problem, parameters: &Parameters, level: usize) -> Result<usize> {
    let regions = problem.topology.regions(level);
    Ok(parameters.number("radix", 2..=regions.max(2))?.unwrap_or(2))
}

pub(crate) fn movement(problem: &Problem, parameters: &Parameters) -> Result<Movement> {
    let level = parameters.level(problem)?;
    let lanes = Lanes::new(&problem.topology, level, radix(problem, parameters, level)?);
    Ok(match shared(parameters)? {
        false => Movement::Messages(Box::new(move |rank| lanes.rounds(rank))),
        true => Movement::Shared(Box::new(move |rank| lanes.steps(rank))),
    })
}

/// Every rank leads a group of its own.
struct Lanes {
    groups: Groups,
    radix: usize,
}

impl Lanes {
    fn new(topology: &Topology, level: usize, radix: usize) -> Lanes {
        Lanes { groups: Groups::new(topology, level, topology.region_sizes(level).1), radix }
    }

    fn rounds(&self, rank: usize) -> Vec<Round> {
        let Groups { topology, level, .. } = &self.groups;
        let (_, home, me) = home(topology, *level, rank);
        let mut rounds = across(&self.groups, self.radix, rank);
        rounds.resize(ceil_log(self.radix, topology.regions(*level)), Round::default());
        let place = placing(|members: Range<usize>, spans| {
            members.for_each(|member| self.push_brought(member, home.len(), spans));
        });
        rounds.extend(embed(bruck(2, home.len(), me), |member| topology.rank_at(home.start + member), place));
        rounds
    }

    fn steps(&self, rank: usize) -> (Region, Vec<Step>) {
        let region = Region::new(&self.groups.topology, self.groups.level, rank);
        let mut steps: Vec<Step> = across(&self.groups, self.radix, rank).into_iter().map(Step::Talk).collect();
        let mut mine = InlineVec::new();
        self.push_brought(region.me, region.size, &mut mine);
        steps.push(Step::Share { all: [Span::output(0, self.groups.topology.ranks())].into(), mine });
        (region, steps)
    }

    /// The blocks that the lanes of a member bring to a region of so many.
    fn push_brought(&self, member: usize, members: usize, spans: &mut InlineVec<Span>) {
        let Groups { topology, level, leaders: lanes, .. } = &self.groups;
        push_lanes(topology, *level, 0..topology.regions(*level), member..*lanes, members, spans);
    }
}

/// The blocks that some regions have in every `step`-th of some lanes.
fn push_lanes(
    topology: &Topology,
    level: usize,
    regions: Range<usize>,
    lanes: Range<usize>,
    step: usize,
    spans: &mut InlineVec<Span>,
) {
    for region in regions {
        let seats = topology.region(level, region);
        for lane in lanes.clone().step_by(step).take_while(|&lane| lane < seats.len()) {
            push_span(spans, Span::output(topology.rank_at(seats.start + lane), 1));
        }
    }
}

/// Bruck's allgather of some members.
pub(crate) fn bruck(radix: usize, p: usize, me: usize) -> Vec<Round> {
    windows(p, me, &multiplying(p, radix))
}

pub(crate) fn cost(problem: &Problem, parameters: &Parameters) -> Cost {
    let level = parameters.level(problem).unwrap_or(1);
    let regions = problem.topology.regions(level);
    let (smallest, largest) = problem.topology.region_sizes(level);
    let across = across_cost(problem, level, largest, radix(problem, parameters, level).unwrap_or(2));
    if uses_memory(parameters) {
        return across;
    }
    let near = ceil_log(2, largest);
    if smallest == largest {
        return across.then(Cost::exact(near, near, regions * (largest - 1)));
    }
    // The ranks of the smallest region serve the most lanes, and hold the largest pieces.
    let served = largest.div_ceil(smallest);
    let window = |width: usize| (width * served * regions).min(problem.ranks());
    let sent_near: usize = (0..near).map(|bit| window(1 << bit)).sum();
    Cost { blocks: (regions - 1) * served, ..across }.then(Cost::at_most(near, near, sent_near))
}

pub(crate) fn allreduce_cost(problem: &Problem, parameters: &Parameters) -> Cost {
    let once = cost(problem, parameters);
    once.then(once)
}

/// Every level; on the first also every radix.
pub(crate) fn variants(problem: &Problem) -> Vec<String> {
    let mut variants = level_variants(problem);
    let radices = worth_trying(3..=problem.topology.regions(1));
    variants.extend(either_way(radices.iter().map(|radix| format!("radix={radix}")).collect()));
    variants
}
