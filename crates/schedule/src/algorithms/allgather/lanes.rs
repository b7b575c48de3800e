//! Multi-lane: first every lane (the ranks of one place in all regions) allgathers across, then every region inside.
//! (Träff and Hunold 2020.)
//!
//! ```text
//! 3x2   lanes 0 2 4 and 1 3 5    then each pair shares what its two lanes brought
//! ```
//!
//! Regions of different sizes: lane m is served by local rank m mod q, so a small region's ranks serve several lanes and
//! contribute nothing to those they have no rank of their own for.
//!
//! ceil(log2 R) far steps, ceil(log2 q) near ones · a rank sends R-1 blocks far, R(q-1) near · any shape · shared: far
//! steps only, one meeting

use std::ops::Range;

use super::leaders::{Groups, across, across_cost};
use super::windows::{growing, windows};
use crate::algorithms::allreduce::whole::home;
use crate::algorithms::node::{Movement, Region, Step, shared, uses_memory};
use crate::compose::{embed, placing};
use crate::math::ceil_log;
use crate::registry::{Cost, Parameters, Recipe};
use crate::schedule::push_span;
use crate::{Few, Problem, Result, Round, Span, Topology};

pub(crate) fn allgather(problem: &Problem, parameters: &Parameters) -> Result<Recipe> {
    Ok(movement(problem, parameters)?.allgather(problem))
}

pub(crate) fn reduce_scatter(problem: &Problem, parameters: &Parameters) -> Result<Recipe> {
    Ok(movement(problem, parameters)?.reduce_scatter(problem))
}

fn movement(problem: &Problem, parameters: &Parameters) -> Result<Movement> {
    let level = parameters.level(problem)?;
    let lanes = Lanes::new(&problem.topology, level);
    Ok(match shared(parameters)? {
        false => Movement::Messages(Box::new(move |rank| lanes.rounds(rank))),
        true => Movement::Shared(Box::new(move |rank| lanes.steps(rank))),
    })
}

/// Every rank leads a group of its own.
struct Lanes(Groups);

impl Lanes {
    fn new(topology: &Topology, level: usize) -> Lanes {
        Lanes(Groups::new(topology, level, topology.region_sizes(level).1))
    }

    fn rounds(&self, rank: usize) -> Vec<Round> {
        let (_, home, me) = home(&self.0.topology, self.0.level, rank);
        let mut rounds = across(&self.0, rank);
        rounds.resize(ceil_log(2, self.0.topology.regions(self.0.level)), Round::default());
        let place = placing(|members: Range<usize>, spans| {
            members.for_each(|member| self.push_brought(member, home.len(), spans));
        });
        rounds.extend(embed(doubling(home.len(), me), |member| self.0.topology.rank_at(home.start + member), place));
        rounds
    }

    fn steps(&self, rank: usize) -> (Region, Vec<Step>) {
        let region = Region::new(&self.0.topology, self.0.level, rank);
        let mut steps: Vec<Step> = across(&self.0, rank).into_iter().map(Step::Talk).collect();
        let mut mine = Few::new();
        self.push_brought(region.me, region.size, &mut mine);
        steps.push(Step::Share { all: [Span::output(0, self.0.topology.ranks())].into(), mine });
        (region, steps)
    }

    /// The blocks that the lanes of a member bring to a region of so many.
    fn push_brought(&self, member: usize, members: usize, spans: &mut Few<Span>) {
        let Groups { topology, level, leaders: lanes, .. } = &self.0;
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
    spans: &mut Few<Span>,
) {
    for region in regions {
        let seats = topology.region(level, region);
        for lane in lanes.clone().step_by(step).take_while(|&lane| lane < seats.len()) {
            push_span(spans, Span::output(topology.rank_at(seats.start + lane), 1));
        }
    }
}

/// Bruck with one port.
pub(crate) fn doubling(p: usize, me: usize) -> Vec<Round> {
    windows(p, me, &growing(p, std::iter::repeat_n(1, ceil_log(2, p))))
}

pub(crate) fn cost(problem: &Problem, parameters: &Parameters) -> Cost {
    let level = parameters.level(problem).unwrap_or(1);
    let regions = problem.topology.regions(level);
    let (smallest, largest) = problem.topology.region_sizes(level);
    let (far, near) = (ceil_log(2, regions), ceil_log(2, largest));
    if uses_memory(parameters) {
        return across_cost(problem, level, largest);
    }
    if smallest == largest {
        return Cost::exact(far + near, far + near, regions - 1 + regions * (largest - 1));
    }
    // The ranks of the smallest region serve the most lanes, and hold the largest pieces.
    let served = largest.div_ceil(smallest);
    let window = |width: usize| (width * served * regions).min(problem.ranks());
    let sent_near: usize = (0..near).map(|bit| window(1 << bit)).sum();
    Cost::at_most(far + near, far * served + near, (regions - 1) * served + sent_near)
}
