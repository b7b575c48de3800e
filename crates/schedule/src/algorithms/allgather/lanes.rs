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
//! ceil(log2 R) far steps, ceil(log2 q) near ones · a rank sends R-1 blocks far, R(q-1) near · any shape

use std::ops::Range;

use super::windows::{growing, windows};
use crate::compose::{abreast, embed, placing};
use crate::math::ceil_log;
use crate::registry::{Cost, Make1, Parameters};
use crate::schedule::push_span;
use crate::{Problem, Result, Round, Span, Topology};

pub(crate) fn multi_lane(problem: &Problem, parameters: &Parameters) -> Result<Make1> {
    let level = parameters.level(problem)?;
    let topology = problem.topology.clone();
    Ok(Box::new(move |rank| rounds(&topology, level, rank)))
}

fn rounds(topology: &Topology, level: usize, rank: usize) -> Vec<Round> {
    let (regions, lanes) = (topology.regions(level), topology.region_sizes(level).1);
    let seat = topology.seat_of(rank);
    let region = topology.region_of_seat(level, seat);
    let home = topology.region(level, region);
    let me = seat - home.start;

    let across = |lane: usize| {
        let server = |region: usize| {
            let seats = topology.region(level, region);
            topology.rank_at(seats.start + lane % seats.len())
        };
        let place =
            placing(|regions: Range<usize>, spans| push_lanes(topology, level, regions, lane..lane + 1, 1, spans));
        embed(doubling(regions, region), server, place)
    };
    let mut rounds = abreast((me..lanes).step_by(home.len()).map(across));
    rounds.resize(ceil_log(2, regions), Round::default());

    let place = placing(|members: Range<usize>, spans| {
        for member in members {
            push_lanes(topology, level, 0..regions, member..lanes, home.len(), spans);
        }
    });
    rounds.extend(embed(doubling(home.len(), me), |member| topology.rank_at(home.start + member), place));
    rounds
}

/// The blocks that some regions have in every `step`-th of some lanes.
fn push_lanes(
    topology: &Topology,
    level: usize,
    regions: Range<usize>,
    lanes: Range<usize>,
    step: usize,
    spans: &mut Vec<Span>,
) {
    for region in regions {
        let seats = topology.region(level, region);
        for lane in lanes.clone().step_by(step).take_while(|&lane| lane < seats.len()) {
            push_span(spans, Span::output(topology.rank_at(seats.start + lane), 1));
        }
    }
}

fn doubling(p: usize, me: usize) -> Vec<Round> {
    windows(p, me, &growing(p, std::iter::repeat_n(1, ceil_log(2, p))))
}

pub(crate) fn cost(problem: &Problem, parameters: &Parameters) -> Cost {
    let level = parameters.level(problem).unwrap_or(1);
    let regions = problem.topology.regions(level);
    let (smallest, largest) = problem.topology.region_sizes(level);
    let (far, near) = (ceil_log(2, regions), ceil_log(2, largest));
    if smallest == largest {
        return Cost::exact(far + near, far + near, regions - 1 + regions * (largest - 1));
    }
    // The ranks of the smallest region serve the most lanes, and hold the largest pieces.
    let served = largest.div_ceil(smallest);
    let window = |width: usize| (width * served * regions).min(problem.ranks());
    let sent_near: usize = (0..near).map(|bit| window(1 << bit)).sum();
    Cost::at_most(far + near, far * served + near, (regions - 1) * served + sent_near)
}
