//! Bcast in two levels: from region to region among one rank of each, then inside.
//!
//! The root acts for its region, the first rank for each other one. Among them the vector goes down a tree whose radix says how
//! many sends a rank begins together: with `radix` = regions the root sends to all of them at once, one far latency in all. Or
//! (`far=pieces`) it is cut into a piece for each other region, which are scattered down that tree and then allgathered with as
//! many ports: up to twice the latencies, but no region sends more than the vector. Inside: a binomial tree, or shared memory.
//! With `segments` a far message is several: short ones need no answer before they travel.
//!
//! ```text
//! 4x2, root 0            far                                          near
//! radix=2                0->4    0->2 4->6                            0->1 2->3 4->5 6->7
//! radix=4                0->2 0->4 0->6                               0->1 2->3 4->5 6->7
//! radix=4, far=pieces    0->2 0->4 0->6, a third each    2<->4<->6<->2
//! ```
//!
//! ceil(log_radix R) far steps, up to twice that with pieces; ceil(log2 q) near ones, or one meeting · any shape

use std::ops::Range;

use super::k_nomial;
use crate::algorithms::allgather::windows::{growing, windows_among};
use crate::algorithms::allreduce::whole::home;
use crate::algorithms::node::{LOCAL, Region, either_way, last, shared, uses_memory};
use crate::algorithms::seats::LEVEL;
use crate::compose::{embed, placing};
use crate::math::ceil_log;
use crate::registry::{Cost, Parameter, Parameters, Recipe};
use crate::schedule::push_span;
use crate::{InlineVec, Problem, Recv, Result, Round, Send, Space, Span, Topology};

pub(crate) const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "radix",
        values: "2..=regions: one more than the far sends a rank begins together",
        default: "2",
    },
    Parameter {
        name: "far",
        values: "whole, or pieces: one for each region but the root's, scattered and then allgathered",
        default: "whole",
    },
    Parameter { name: "segments", values: "1..=64, with far=whole: messages for each far send", default: "1" },
    LEVEL,
    LOCAL,
];
const MOST_SEGMENTS: usize = 64;

struct Spread {
    topology: Topology,
    level: usize,
    root: usize,
    radix: usize,
    /// None: a piece for each region.
    segments: Option<usize>,
    shared: bool,
}

pub(crate) fn hierarchical(problem: &Problem, parameters: &Parameters) -> Result<Recipe> {
    let level = parameters.level(problem)?;
    let spread = Spread {
        topology: problem.topology.clone(),
        level,
        root: problem.root,
        radix: parameters.number("radix", 2..=problem.topology.regions(level).max(2))?.unwrap_or(2),
        segments: segments(parameters)?,
        shared: shared(parameters)?,
    };
    Ok(Recipe { blocks: spread.blocks(), make: Box::new(move |rank| spread.rounds(rank)) })
}

/// How many messages a far send is; none with pieces.
fn segments(parameters: &Parameters) -> Result<Option<usize>> {
    let segments = parameters.number("segments", 1..=MOST_SEGMENTS)?;
    match (parameters.word("far", &["whole", "pieces"])?, segments) {
        ("pieces", None) => Ok(None),
        ("pieces", Some(_)) => Err(parameters.wrong("segments", "is given beside far=pieces", "one of the two")),
        _ => Ok(Some(segments.unwrap_or(1))),
    }
}

impl Spread {
    fn blocks(&self) -> usize {
        self.segments.unwrap_or_else(|| pieces(self.topology.regions(self.level)))
    }

    /// Who acts for a region.
    fn leader(&self, region: usize) -> usize {
        super::leader(&self.topology, self.level, self.root, region)
    }

    fn rounds(&self, rank: usize) -> Vec<Round> {
        let (index, seats, _) = home(&self.topology, self.level, rank);
        let memory = Region::new(&self.topology, self.level, rank);
        let line = (self.shared && memory.size > 1)
            .then(|| Span::new(Space::Shared, memory.base(self.blocks()), self.blocks()));
        let all = Span::output(0, self.blocks());
        let held = if rank == self.root { Span::input(0, self.blocks()) } else { line.unwrap_or(all) };
        let mut rounds = if rank == self.leader(index) { self.far(index, held) } else { Vec::new() };
        match line {
            None => rounds.extend(self.near(index, seats, rank, held)),
            Some(line) if rank == self.root => {
                last(&mut rounds).copy(held, line);
                memory.meet(&mut rounds);
            }
            Some(line) => memory.copy_out(&mut rounds, line),
        }
        if rank == self.root {
            last(&mut rounds).copy(held, all);
        }
        rounds.retain(|round| !round.is_empty());
        rounds
    }

    /// Among the leaders, numbered from the root's region on; `held`: where this one has the vector, or gets it.
    fn far(&self, index: usize, held: Span) -> Vec<Round> {
        let regions = self.topology.regions(self.level);
        let first = self.topology.region_of(self.level, self.root);
        let me = (index + regions - first) % regions;
        let rounds = match self.segments {
            Some(segments) => cut(k_nomial(regions, me, self.radix, |_| vec![Span::output(0, segments)])),
            None => {
                let piece = |subtree: Range<usize>| vec![Span::output(subtree.start - 1, subtree.len())];
                let mut rounds = k_nomial(regions, me, self.radix, piece);
                rounds.extend(exchange(regions, me, self.radix));
                rounds
            }
        };
        embed(rounds, |member| self.leader((member + first) % regions), on(held))
    }

    /// Inside a region, from its leader on.
    fn near(&self, index: usize, seats: Range<usize>, rank: usize, held: Span) -> Vec<Round> {
        let (size, place) = (seats.len(), |rank: usize| self.topology.seat_of(rank) - seats.start);
        let first = place(self.leader(index));
        let rounds = super::binomial_bcast(size, (place(rank) + size - first) % size, self.blocks());
        embed(rounds, |member| self.topology.rank_at(seats.start + (member + first) % size), on(held))
    }
}

/// A message for each block.
fn cut(mut rounds: Vec<Round>) -> Vec<Round> {
    let blocks =
        |span: Span| (span.first..span.end()).map(move |first| InlineVec::from([Span { first, count: 1, ..span }]));
    for round in &mut rounds {
        let (mut sends, mut recvs) = (InlineVec::new(), InlineVec::new());
        for Send { to, spans } in std::mem::take(&mut round.sends) {
            sends.extend(spans.into_iter().flat_map(blocks).map(|spans| Send { to, spans }));
        }
        for Recv { from, spans, combine } in std::mem::take(&mut round.recvs) {
            recvs.extend(spans.into_iter().flat_map(blocks).map(|spans| Recv { from, spans, combine }));
        }
        (round.sends, round.recvs) = (sends, recvs);
    }
    rounds
}

/// The output of a group, where a rank holds it.
fn on(held: Span) -> impl Fn(Span, &mut InlineVec<Span>) {
    placing(move |blocks, spans| push_span(spans, Span::new(held.space, held.first + blocks.start, blocks.len())))
}

/// Into how many pieces a vector is cut for so many regions.
fn pieces(regions: usize) -> usize {
    regions.saturating_sub(1).max(1)
}

/// The pieces of all members but the root, member 0, to all of them.
fn exchange(members: usize, me: usize, radix: usize) -> Vec<Round> {
    let others = pieces(members);
    let Some(me) = me.checked_sub(1) else { return Vec::new() };
    let widths = growing(others, std::iter::repeat_n(radix - 1, ceil_log(radix, others)));
    windows_among(
        others,
        me,
        &widths,
        |other| other + 1,
        |run, spans| push_span(spans, Span::output(run.start, run.len())),
    )
}

/// The root sends the most to far, and as much near as anybody.
pub(crate) fn cost(problem: &Problem, parameters: &Parameters) -> Cost {
    let level = parameters.level(problem).unwrap_or(1);
    let (regions, (smallest, largest)) = (problem.topology.regions(level), problem.topology.region_sizes(level));
    let radix = parameters.number("radix", 2..=regions.max(2)).ok().flatten().unwrap_or(2);
    let steps = ceil_log(radix, regions);
    let children = |digit: usize| (radix - 1).min((regions - 1) / radix.pow(digit as u32));
    let messages: usize = (0..steps).map(children).sum();
    let near = if uses_memory(parameters) { 0 } else { ceil_log(2, largest) };
    let Some(segments) = segments(parameters).unwrap_or(Some(1)) else {
        let (pieces, exchange) = (pieces(regions), ceil_log(radix, pieces(regions)));
        // A region on the way down sends less there than the root, and then exchanges.
        let sent = messages + exchange * (radix - 1) + near;
        return Cost::at_most(steps + exchange + near, sent, 2 * pieces + near * pieces);
    };
    let cost = Cost::exact(steps + near, messages * segments + near, (messages + near) * segments);
    if smallest == largest { cost } else { cost.roughly() }
}

/// A few radices, whole, in segments and in pieces, and every level; either way inside.
pub(crate) fn variants(problem: &Problem) -> Vec<String> {
    let regions = problem.topology.regions(1);
    let levels = (2..=problem.topology.depth()).map(|level| format!("level={level}"));
    if regions == 1 {
        let variants = std::iter::once(String::new()).chain(levels).collect();
        // For one receiver a message does all that a meeting of two could.
        return if problem.ranks() > 2 { either_way(variants) } else { variants };
    }
    let mut radices: Vec<usize> =
        [3, 4, 8, regions].into_iter().filter(|radix| (3..=regions).contains(radix)).collect();
    radices.sort_unstable();
    radices.dedup();
    let mut variants = vec![String::new()];
    variants.extend(radices.iter().map(|radix| format!("radix={radix}")));
    if regions > 2 {
        variants.push("far=pieces".into());
        variants.extend(radices.iter().map(|radix| format!("radix={radix}:far=pieces")));
    }
    variants.push(radices.last().map_or("segments=4".into(), |all| format!("radix={all}:segments=4")));
    variants.extend(levels);
    either_way(variants)
}
