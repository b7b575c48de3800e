//! Allgather and reduce_scatter in pieces on circulant graphs of regions, one for each lane: the two-level form of `circulant`.
//!
//! The block of each rank is cut into `blocks` times `lanes` pieces. In every region another rank serves each lane. The ranks of a region give their
//! pieces to those who serve them, block after block; these broadcast what their region has of a lane to all regions at once, as ranks do in
//! `circulant`, and pass on inside what they got in the round before, from there or here. So what one rank has leaves its node by all ranks of it,
//! however long it is, and comes to every other node once.
//!
//! ```text
//! 2x2, blocks=1:lanes=2, rank r has ra rb   0->1 0b              1->0 1a              2->3 2b              3->2 3a
//!                                           0->2 0a 1a 0->1 0a   1->3 0b 1b 1->0 1b   2->0 2a 3a 2->3 2a   3->1 2b 3b 3->2 3b
//!                                           0->1 2a 3a           1->0 2b 3b           2->3 0a 1a           3->2 0b 1b
//! ```
//!
//! blocks - 1 + ceil(log2 R) rounds, and up to 2 inside · any shape · reduce_scatter: reversed

use crate::algorithms::allreduce::whole::home;
use crate::algorithms::rooted::circulant::Circulant;
use crate::algorithms::rooted::pipeline::{MOST_BLOCKS, regions_of};
use crate::algorithms::seats::LEVEL;
use crate::registry::{Cost, Parameter, Parameters, Recipe, in_pieces};
use crate::{Problem, Result, Round, Span, Topology};

pub(crate) const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "blocks",
        values: "1..=4096, and no more than 131072 pieces of all ranks: pieces of a lane that follow one another",
        default: "1",
    },
    Parameter {
        name: "lanes",
        values: "1..=ranks of a region: parts of a block, each served by another rank",
        default: "the ranks of a region",
    },
    LEVEL,
];
/// What a rank gets are pieces of all ranks, which it names one by one.
const MOST_PIECES: usize = 1 << 17;

/// The broadcasts of all regions, lane by lane.
struct Lanes {
    topology: Topology,
    level: usize,
    blocks: usize,
    lanes: usize,
    graph: Circulant,
    /// What comes to the regions after the one that has it, each counted from there.
    received: Vec<Vec<isize>>,
}

impl Lanes {
    fn new(problem: &Problem, parameters: &Parameters) -> Result<Lanes> {
        let (topology, level) = (regions_of(problem, false)?, parameters.level(problem)?);
        let (regions, largest) = (topology.regions(level), topology.region_sizes(level).1);
        let lanes = parameters.number("lanes", 1..=largest)?.unwrap_or(largest);
        let most = (MOST_PIECES / (problem.ranks() * lanes)).clamp(1, MOST_BLOCKS);
        let blocks = parameters.number("blocks", 1..=most)?.unwrap_or(1);
        let graph = Circulant::new(regions, blocks);
        let received = (1..regions).map(|member| graph.received(member)).collect();
        Ok(Lanes { topology, level, blocks, lanes, graph, received })
    }

    /// Pieces of a rank's block.
    fn pieces(&self) -> usize {
        self.blocks * self.lanes
    }

    fn members(&self, region: usize) -> impl Iterator<Item = usize> + '_ {
        self.topology.region(self.level, region).map(|seat| self.topology.rank_at(seat))
    }

    /// Who serves a lane in a region.
    fn server(&self, region: usize, lane: usize) -> usize {
        let seats = self.topology.region(self.level, region);
        self.topology.rank_at(seats.start + lane % seats.len())
    }

    /// What comes to a region in a round of the graph, on the lanes that two ranks serve in theirs: `to` in that one, `from` in another.
    fn arriving(&self, round: usize, (region, to): (usize, usize), (other, from): (usize, usize)) -> Vec<Span> {
        let (regions, pieces) = (self.topology.regions(self.level), self.pieces());
        let serve = |lane: &usize| self.server(region, *lane) == to && self.server(other, *lane) == from;
        let lanes: Vec<usize> = (0..self.lanes).filter(serve).collect();
        let mut positions = Vec::new();
        for (before, received) in self.received.iter().enumerate().filter(|_| !lanes.is_empty()) {
            let Some(block) = self.graph.block(received, round) else { continue };
            for rank in self.members((region + regions - before - 1) % regions) {
                positions.extend(lanes.iter().map(|lane| rank * pieces + block * self.lanes + lane));
            }
        }
        positions.sort_unstable();
        positions.into_iter().map(|position| Span::output(position, 1)).collect()
    }

    /// Rank r begins with its pieces in place.
    fn movement(&self, rank: usize) -> Vec<Round> {
        let (region, regions) = (home(&self.topology, self.level, rank).0, self.topology.regions(self.level));
        let me = (region, rank);
        let others: Vec<usize> = self.members(region).filter(|other| *other != rank).collect();
        let mut rounds = vec![Round::default(); (self.blocks + 1).max(self.graph.rounds().len() + 2)];
        // What is far leaves first.
        for (step, round) in self.graph.rounds().enumerate() {
            let skip = self.graph.skip(round);
            let (up, down) = ((region + skip) % regions, (region + regions - skip) % regions);
            let now = &mut rounds[step + 1];
            for other in self.members(up) {
                now.send_along(other, self.arriving(round, (up, other), me));
            }
            for other in self.members(down) {
                now.recv_along(other, self.arriving(round, me, (down, other)));
            }
        }
        for (block, lane) in (0..self.blocks).flat_map(|block| (0..self.lanes).map(move |lane| (block, lane))) {
            let piece = |rank: usize| Span::output(rank * self.pieces() + block * self.lanes + lane, 1);
            let server = self.server(region, lane);
            if server != rank {
                rounds[block].send_along(server, [piece(rank)]);
                rounds[block + 1].recv_along(server, others.iter().copied().map(piece));
                continue;
            }
            for &other in &others {
                rounds[block].recv_along(other, [piece(other)]);
                let but_its_own = self.members(region).filter(|owner| *owner != other);
                rounds[block + 1].send_along(other, but_its_own.map(piece));
            }
        }
        for (step, round) in self.graph.rounds().enumerate() {
            let next = &mut rounds[step + 2];
            let news = self.arriving(round, me, me);
            for &other in &others {
                next.send_along(other, news.iter().copied());
                next.recv_along(other, self.arriving(round, (region, other), (region, other)));
            }
        }
        rounds
    }
}

pub(crate) fn circulant_lanes(problem: &Problem, parameters: &Parameters) -> Result<Recipe> {
    let lanes = Lanes::new(problem, parameters)?;
    let pieces = lanes.pieces();
    Ok(in_pieces(problem, pieces, move |rank| lanes.movement(rank)))
}

pub(crate) fn cost(problem: &Problem, parameters: &Parameters) -> Cost {
    let Ok(lanes) = Lanes::new(problem, parameters) else { return Cost::NOTHING };
    let Lanes { ref topology, level, blocks, lanes: number, ref graph, .. } = lanes;
    let (regions, (smallest, largest)) = (topology.regions(level), topology.region_sizes(level));
    let (inside, far) = (largest - 1, graph.rounds().len());
    let steps = match (inside > 0, far) {
        (true, 0) => blocks + 1,
        (true, far) => far + 2,
        (false, far) => far,
    };
    let served = number.div_ceil(smallest);
    let carried = served * blocks * (regions - 1) * largest;
    let messages = blocks * number.min(inside) + blocks.max(far + 1) * inside + far * served;
    let passed_on = inside * (served * blocks * largest + carried);
    Cost::at_most(steps, messages, if inside > 0 { lanes.pieces() } else { 0 } + passed_on + carried)
}

/// What it is for is blocks that are longer than others; how many pieces pay depends on that, which the model knows. Where there are no lanes,
/// or too many pieces, the least.
pub(crate) fn variants(problem: &Problem) -> Vec<String> {
    let Ok(topology) = regions_of(problem, false) else { return vec![String::new()] };
    let (regions, largest) = (topology.regions(1), topology.region_sizes(1).1);
    let few = 2 * problem.ranks() * largest <= MOST_PIECES;
    vec![if few && regions > 1 && largest > 1 { "blocks=2".into() } else { "lanes=1".into() }]
}
