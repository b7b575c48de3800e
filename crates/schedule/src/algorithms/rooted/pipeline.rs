//! Bcast and reduce as pipelines: the vector is cut into pieces that follow one another down trees.
//!
//! The ranks of a region divide the work: each of `lanes` is served by another one, in every region. A piece goes from the root to who serves its lane
//! in the root's region, from there to those who serve it in other regions, along a tree of `fan`, and in every region on to all others, along a tree
//! of `radix`. In each round every edge carries the piece after the one of the round before, so that all parts of the way are busy at
//! the same time. The root serves no lane where there are others to do so: handing pieces out keeps it busy. In a region with fewer
//! ranks than lanes some serve several.
//!
//! With several `trees` every lane has as many pieces of a block, and regions take another place for each: who forwards in one is a leaf in
//! another. So they do for each of `turns` groups of lanes. Where lanes take the same places their pieces arrive together, and go on inside in the
//! same messages; where each takes others no region forwards more than the next.
//!
//! ```text
//! 3x3, root 0, blocks=1:fan=1:lanes=2   0->1 0->2    1->3 1->2 2->7 2->1    3->6 3->4 3->5 7->4 7->8 7->6    6->7 6->8 4->5 4->3
//! 4 flat, root 0, blocks=2:fan=1        0->1 a    0->1 b 1->2 a    1->2 b 2->3 a    2->3 b
//! ```
//!
//! blocks - 1 + depth rounds: the depth of the far tree, of the tree inside, and 1 if the root hands out · far: a chain of R - 1, a binary tree of
//! floor(log2 R) · inside ceil(log_radix q) at most · any shape · shared: the pieces lie on the region's line, with a meeting after every round that brings
//! some · reduce: reversed

use std::ops::Range;

use super::circulant::Message;
use super::far::Far;
use crate::algorithms::allreduce::whole::home;
use crate::algorithms::binomial::edges;
use crate::algorithms::node::{LOCAL, Region, either_way, last, shared, uses_memory};
use crate::algorithms::seats::LEVEL;
use crate::compose::{embed, placing};
use crate::math::ceil_log;
use crate::registry::{Cost, Parameter, Parameters, Recipe, spread};
use crate::schedule::{blocks_in, push_span};
use crate::{InlineVec, Problem, Result, Round, Space, Span, Topology};

pub(crate) const BLOCKS: Parameter =
    Parameter { name: "blocks", values: "1..=4096: how many follow one another", default: "8" };
pub(crate) const MOST_BLOCKS: usize = 4096;
const MOST_TREES: usize = 8;
const FAN: Parameter =
    Parameter { name: "fan", values: "1..=regions - 1: far sends of a rank for each piece", default: "2" };
const TREES: Parameter = Parameter {
    name: "trees",
    values: "1..=8: far trees of each lane, in which regions take other places, and pieces that a lane has of a block",
    default: "1",
};
pub(super) const TURNS: Parameter = Parameter {
    name: "turns",
    values: "1..=ranks of a region: groups of lanes for which regions take other places",
    default: "one for each lane",
};
pub(super) const LANES: Parameter = Parameter {
    name: "lanes",
    values: "1..=ranks of a region: parts of a block, each served by another rank",
    default: "one less than the ranks of a region",
};
pub(super) const RADIX: Parameter = Parameter {
    name: "radix",
    values: "2..=ranks of a region: of the tree inside, where a rank sends up to radix - 1 messages for each digit",
    default: "the ranks of a region",
};
pub(crate) const SPREAD: &[Parameter] = &[BLOCKS, FAN, TREES, LANES, RADIX, TURNS, LEVEL, LOCAL];
pub(crate) const COLLECT: &[Parameter] = &[BLOCKS, FAN, TREES, LANES, RADIX, TURNS, LEVEL];

/// On a flat machine every rank is a region of its own, unless all share memory.
pub(crate) fn regions_of(problem: &Problem, shares: bool) -> Result<Topology> {
    match problem.topology.depth() {
        0 if !shares => Topology::regular(problem.ranks(), 1),
        _ => Ok(problem.topology.clone()),
    }
}

/// How many blocks follow one another.
pub(crate) fn blocks(parameters: &Parameters) -> Result<usize> {
    Ok(parameters.number("blocks", 1..=MOST_BLOCKS)?.unwrap_or(8))
}

/// The ways of all lanes.
pub(super) struct Pipeline {
    topology: Topology,
    level: usize,
    root: usize,
    blocks: usize,
    lanes: usize,
    /// How many trees each lane has.
    trees: usize,
    /// How many groups of lanes see the regions at other places.
    turns: usize,
    far: Far,
    /// Of the trees inside.
    radix: usize,
}

/// A piece on its way between two ranks, as one of them sees it.
struct Pass {
    block: usize,
    way: usize,
    peer: usize,
    /// Whether this rank sends.
    sends: bool,
    round: usize,
}

/// The ranks of a region to whom the pieces of a lane are given there.
struct Ring {
    seats: Range<usize>,
    /// The place from which on members are counted, round and round.
    first: usize,
    /// 1 where that is the root's, which hands the pieces to somebody else who serves the lane, and needs them no more.
    left_out: usize,
    /// Who serves the lane, counted from there.
    server: usize,
}

impl Ring {
    fn len(&self) -> usize {
        self.seats.len() - self.left_out
    }

    /// The seat of a member; member 0 serves the lane.
    fn seat(&self, member: usize) -> usize {
        let place = self.left_out + (self.server + member) % self.len();
        self.seats.start + (self.first + place) % self.seats.len()
    }

    /// Which member sits there.
    fn member(&self, seat: usize) -> Option<usize> {
        let size = self.seats.len();
        let place = (seat - self.seats.start + size - self.first) % size;
        Some((place.checked_sub(self.left_out)? + self.len() - self.server) % self.len())
    }
}

impl Pipeline {
    fn down_trees(problem: &Problem, parameters: &Parameters) -> Result<Pipeline> {
        let trees = parameters.number("trees", 1..=MOST_TREES)?.unwrap_or(1);
        Pipeline::new(problem, parameters, trees, |regions, blocks| {
            let most = regions.saturating_sub(1).max(1);
            Ok(Far::tree(regions, blocks, parameters.number("fan", 1..=most)?.unwrap_or(2.min(most))))
        })
    }

    /// With a way of each lane's blocks from region to region.
    pub(super) fn new(
        problem: &Problem,
        parameters: &Parameters,
        trees: usize,
        far: impl FnOnce(usize, usize) -> Result<Far>,
    ) -> Result<Pipeline> {
        let (topology, level) = (regions_of(problem, uses_memory(parameters))?, parameters.level(problem)?);
        let (regions, largest) = (topology.regions(level), topology.region_sizes(level).1);
        let lanes = parameters.number("lanes", 1..=largest)?.unwrap_or(largest.saturating_sub(1).max(1));
        let blocks = blocks(parameters)?;
        Ok(Pipeline {
            topology,
            level,
            root: problem.root,
            blocks,
            lanes,
            turns: parameters.number("turns", 1..=largest)?.unwrap_or(lanes).min(lanes),
            far: far(regions, blocks)?,
            trees,
            radix: parameters.number("radix", 2..=largest.max(2))?.unwrap_or(largest.max(2)),
        })
    }

    /// All trees of all lanes; each has a piece of every block.
    fn ways(&self) -> usize {
        self.lanes * self.trees
    }

    fn pieces(&self) -> usize {
        self.blocks * self.ways()
    }

    /// What a way has of a block.
    fn piece(&self, block: usize, way: usize) -> Span {
        Span::output(block * self.ways() + way, 1)
    }

    /// The root of a region of so many serves a lane only where there is one for it, too, or one in all.
    fn root_only_hands_out(&self, size: usize) -> bool {
        self.lanes > 1 && self.lanes < size
    }

    fn ring(&self, way: usize, region: usize) -> Ring {
        let lane = way / self.trees;
        let seats = self.topology.region(self.level, region);
        let size = seats.len();
        if region != self.topology.region_of(self.level, self.root) {
            return Ring { seats, first: 0, left_out: 0, server: lane % size };
        }
        let place = if self.root_only_hands_out(size) { 1 + lane % (size - 1) } else { lane % size };
        let left_out = place.min(1);
        Ring { first: self.topology.seat_of(self.root) - seats.start, seats, left_out, server: place - left_out }
    }

    /// How far regions are turned in the far tree of a lane.
    fn turn(&self, way: usize) -> usize {
        let (group, tree) = (way / self.trees % self.turns, way % self.trees);
        (tree * self.turns + group) * (self.topology.regions(self.level) - 1) / (self.trees * self.turns)
    }

    /// The place of a region in the far tree of a lane.
    fn place(&self, way: usize, region: usize) -> usize {
        let (regions, first) = (self.topology.regions(self.level), self.topology.region_of(self.level, self.root));
        match (region + regions - first) % regions {
            0 => 0,
            other => 1 + (other - 1 + regions - 1 - self.turn(way)) % (regions - 1),
        }
    }

    fn region(&self, way: usize, place: usize) -> usize {
        let (regions, first) = (self.topology.regions(self.level), self.topology.region_of(self.level, self.root));
        match place {
            0 => first,
            other => (first + 1 + (other - 1 + self.turn(way)) % (regions - 1)) % regions,
        }
    }

    fn server(&self, way: usize, place: usize) -> usize {
        self.topology.rank_at(self.ring(way, self.region(way, place)).seat(0))
    }

    /// 1 where the root hands the pieces of a lane to somebody else who serves it.
    fn handed(&self, way: usize) -> usize {
        usize::from(self.server(way, 0) != self.root)
    }

    /// The rounds before each piece of a lane is where a region's server can send it.
    fn arrivals(&self, way: usize, place: usize) -> impl Iterator<Item = usize> + use<> {
        let handed = self.handed(way);
        self.far.arrivals(place).into_iter().map(move |arrived| arrived + handed)
    }

    /// The pieces of all lanes between regions.
    fn far_passes(&self, rank: usize) -> Vec<Pass> {
        let (region, ..) = home(&self.topology, self.level, rank);
        let mut passes = Vec::new();
        for way in 0..self.ways() {
            let place = self.place(way, region);
            if self.server(way, place) != rank {
                continue;
            }
            let handed = self.handed(way);
            for Message { round, sends, other, block } in self.far.messages(place) {
                passes.push(Pass { block, way, peer: self.server(way, other), sends, round: round + handed });
            }
        }
        passes
    }

    /// The pieces of all lanes inside a rank's region, and from the root to those who serve in its own.
    fn near_passes(&self, rank: usize) -> Vec<Pass> {
        let (region, _, place) = home(&self.topology, self.level, rank);
        let mut passes = Vec::new();
        for way in 0..self.ways() {
            let ring = self.ring(way, region);
            let of = |member: usize| self.topology.rank_at(ring.seat(member));
            let hand = |peer: usize, sends: bool| {
                (0..self.blocks).map(move |block| Pass { block, way, peer, sends, round: block })
            };
            let Some(me) = ring.member(ring.seats.start + place) else {
                passes.extend(hand(of(0), true));
                continue;
            };
            if ring.left_out > 0 && me == 0 {
                passes.extend(hand(self.root, false));
            }
            let arrivals: Vec<usize> = self.arrivals(way, self.place(way, region)).collect();
            let digits = (0..ceil_log(self.radix, ring.len())).rev();
            for edge in digits.flat_map(|digit| edges(ring.len(), me, self.radix, digit)) {
                let (sends, later) = (edge.parent == me, self.digits(edge.child) - 1);
                let peer = of(if sends { edge.child } else { edge.parent });
                let pass = |(block, arrived)| Pass { block, way, peer, sends, round: arrived + later };
                passes.extend(arrivals.iter().enumerate().map(pass));
            }
        }
        passes
    }

    /// How deep a member is in the tree of a region: digits of its number that are not 0.
    fn digits(&self, member: usize) -> usize {
        let rest = std::iter::successors(Some(member), |rest| Some(rest / self.radix));
        rest.take_while(|rest| *rest > 0).filter(|rest| rest % self.radix > 0).count()
    }

    /// In every round the pieces that pass then, in `Output`; those for or from one rank together. The far ones are first, and then the short
    /// ones: whoever forwards gets them the sooner.
    fn movement(&self, rank: usize) -> Vec<Round> {
        let mut rounds = Vec::new();
        self.carry(self.far_passes(rank), &mut rounds);
        let far: Vec<(usize, usize)> = rounds.iter().map(|round| (round.sends.len(), round.recvs.len())).collect();
        self.carry(self.near_passes(rank), &mut rounds);
        for (round, (sends, recvs)) in rounds.iter_mut().zip(far.into_iter().chain(std::iter::repeat((0, 0)))) {
            round.sends[sends..].sort_by_key(|send| blocks_in(&send.spans));
            round.recvs[recvs..].sort_by_key(|recv| blocks_in(&recv.spans));
        }
        rounds
    }

    fn carry(&self, mut passes: Vec<Pass>, rounds: &mut Vec<Round>) {
        passes.sort_by_key(|pass| pass.block);
        let most = passes.iter().map(|pass| pass.round + 1).max().unwrap_or(0);
        rounds.resize_with(rounds.len().max(most), Round::default);
        for Pass { block, way, peer, sends, round } in passes {
            match sends {
                true => rounds[round].send_along(peer, [self.piece(block, way)]),
                false => rounds[round].recv_along(peer, [self.piece(block, way)]),
            }
        }
    }
}

/// Where ranks of a region share memory, the near part of all lanes: the region's line.
impl Pipeline {
    fn on_lines(&self, rank: usize) -> Vec<Round> {
        let memory = Region::new(&self.topology, self.level, rank);
        let (region, pieces) = (self.topology.region_of(self.level, rank), self.pieces());
        let shares = memory.size > 1;
        let held = |first: usize, count: usize| match rank == self.root {
            true => Span::input(first, count),
            false if shares => Span::new(Space::Shared, memory.base(pieces) + first, count),
            false => Span::output(first, count),
        };
        let mut far = Vec::new();
        self.carry(self.far_passes(rank), &mut far);
        let far = embed(far, |peer| peer, placing(|run, spans| push_span(spans, held(run.start, run.len()))));
        // The pieces that come to the line in each round; others see them in the next.
        let of_root = region == self.topology.region_of(self.level, self.root);
        let mut landing: Vec<InlineVec<Span>> = Vec::new();
        let arrivals = (0..self.ways()).map(|way| match of_root {
            true => (0..self.blocks).collect(),
            false => self.arrivals(way, self.place(way, region)).map(|arrived| arrived - 1).collect(),
        });
        let arrivals: Vec<Vec<usize>> = arrivals.collect();
        for (block, way) in (0..self.blocks).flat_map(|block| (0..self.ways()).map(move |way| (block, way))) {
            let round = arrivals[way][block];
            landing.resize_with(landing.len().max(round + 1), InlineVec::new);
            push_span(&mut landing[round], self.piece(block, way));
        }
        let mut rounds = vec![Round::default()];
        let mut messages = far.into_iter();
        let mut landed: InlineVec<Span> = InlineVec::new();
        for landing in landing.into_iter().chain([InlineVec::new()]) {
            let now = last(&mut rounds);
            let Round { sends, recvs, .. } = messages.next().unwrap_or_default();
            (now.sends, now.recvs) = (sends, recvs);
            for out in landed.into_iter().filter(|_| shares && rank != self.root) {
                now.copy(held(out.first, out.count), out);
            }
            for piece in landing.iter().filter(|_| rank == self.root) {
                if shares {
                    now.copy(
                        held(piece.first, piece.count),
                        Span::new(Space::Shared, memory.base(pieces) + piece.first, piece.count),
                    );
                }
                now.copy(held(piece.first, piece.count), *piece);
            }
            match landing.is_empty() {
                false if shares => memory.meet(&mut rounds),
                _ => rounds.push(Round::default()),
            }
            landed = landing;
        }
        rounds.pop();
        rounds.extend(messages);
        rounds
    }
}

pub(crate) fn bcast(problem: &Problem, parameters: &Parameters) -> Result<Recipe> {
    Ok(Pipeline::down_trees(problem, parameters)?.bcast(shared(parameters)?))
}

/// The bcast by messages, to be reversed.
pub(crate) fn reduce(problem: &Problem, parameters: &Parameters) -> Result<Recipe> {
    Ok(Pipeline::down_trees(problem, parameters)?.movements())
}

pub(crate) fn cost(problem: &Problem, parameters: &Parameters) -> Cost {
    let pipeline = Pipeline::down_trees(problem, parameters);
    pipeline.map_or(Cost::NOTHING, |pipeline| pipeline.cost(problem, uses_memory(parameters)))
}

impl Pipeline {
    pub(super) fn bcast(self, in_memory: bool) -> Recipe {
        let (blocks, root) = (self.pieces(), self.root);
        let make = move |rank| match in_memory {
            true => self.on_lines(rank),
            false => spread(self.movement(rank), rank == root, blocks),
        };
        Recipe { blocks, make: Box::new(make) }
    }

    /// The bcast by messages, to be reversed.
    pub(super) fn movements(self) -> Recipe {
        Recipe { blocks: self.pieces(), make: Box::new(move |rank| self.movement(rank)) }
    }

    /// A rank is another member of its region's tree in each lane that it does not serve, and so is its parent: with all lanes together it sends no more
    /// than a lane has edges there.
    pub(super) fn cost(&self, problem: &Problem, shares: bool) -> Cost {
        let Pipeline { blocks, lanes, trees, ref far, level, ref topology, .. } = *self;
        let (smallest, largest) = topology.region_sizes(level);
        let inside = if shares { 0 } else { (0..largest).map(|member| self.digits(member)).max().unwrap_or(0) };
        let of_root = topology.region(level, topology.region_of(level, self.root));
        let handed = usize::from(lanes > 1 && of_root.len() > 1);
        let steps = blocks - 1 + handed + far.depth() + inside;
        let pieces = self.pieces();
        if problem.collective.reduces() {
            return Cost::at_most(steps, pieces, pieces);
        }
        let served = trees * lanes.div_ceil(smallest.saturating_sub(1).max(1));
        // Pieces for one rank go together, and in the trees of all lanes the distances are the same.
        let digits = ceil_log(self.radix, largest);
        let distances = if shares { 0 } else { (largest - 1).min((self.radix - 1) * digits) };
        let forwarded = if shares { 0 } else { served * (largest - 1) };
        let handed = if shares { 0 } else { handed * lanes };
        let busiest = |handed: usize, forwarded: usize| match self.root_only_hands_out(of_root.len()) {
            true => handed.max(forwarded),
            false => handed + forwarded,
        };
        // In each round at most one to each distance.
        let near = (blocks * forwarded).min(steps * distances);
        let far = served * far.most_sent();
        let messages = busiest(blocks * handed, far + near);
        let sent = busiest(blocks * handed * trees, far + blocks * forwarded);
        Cost::at_most(steps, messages, sent)
    }
}

/// A chain, a binary tree and a wider one, with few lanes and with many, at the same places and at others; how many blocks pay depends on the vector, which the model knows.
pub(crate) fn variants(problem: &Problem) -> Vec<String> {
    // On one node alone every block would be a meeting: whoever comes late to one would keep all others, where messages keep only
    // those who wait for them.
    match problem.topology.depth() == 0 || problem.topology.regions(1) == 1 {
        true => by_messages(problem),
        false => either_way(by_messages(problem)),
    }
}

pub(crate) fn by_messages(problem: &Problem) -> Vec<String> {
    let Ok(topology) = regions_of(problem, false) else { return vec![String::new()] };
    let (regions, largest) = (topology.regions(1), topology.region_sizes(1).1);
    let (fans, all, radix) = (regions.saturating_sub(1).max(1), largest.saturating_sub(1).max(1), largest.max(2));
    let mut settings: Vec<[usize; 6]> = Vec::new();
    for fan in [2, 1, 4].into_iter().filter(|&fan| fan <= fans) {
        settings.extend([[4, fan, 2, all, 4.min(radix), 1], [1, fan, 1, all, radix, all]]);
    }
    settings.extend([
        [4, 1, 2, all, 4.min(radix), all],
        [6, 1, 1, 1, 2, 1],
        [3, 1, 3, largest, 3.min(radix), 2.min(largest)],
    ]);
    let text = |[blocks, fan, trees, lanes, radix, turns]: &[usize; 6]| {
        format!("blocks={blocks}:fan={fan}:trees={trees}:lanes={lanes}:radix={radix}:turns={turns}")
    };
    let levels = (2..=topology.depth()).map(|level| format!("blocks=3:level={level}"));
    settings.iter().map(text).chain(levels).collect()
}
