//! Gather and scatter: a block for every rank, from or to one of them.
//!
//! Both are one movement, the scatter; a gather is the same with time running backwards.
//!
//! - `linear`: the root sends every rank its block. For unequal blocks nobody carries what is not its own.
//! - `binomial`: down the tree of the bcasts, each child with the blocks of its subtree.
//! - `hierarchical`: one message from the root's region to each other one, or down a tree of regions; inside, the rank that acts for
//!   its region hands out, by messages or through shared memory.
//! - `node-aware`: one message from the root to each other node, where the rank that acts for it hands out; blocks of at least `straight` units of the
//!   counts go to their ranks by themselves, so that nothing long is sent twice. Nobody carries blocks of other nodes.
//!
//! ```text
//! scatter, 2x2, root 0   linear        0->1 0->2 0->3
//!                        binomial      0->2 {2,3}    0->1 2->3
//!                        hierarchical  0->2 {2,3}    0->1 2->3, or a meeting on each node
//! ```
//!
//! linear: one step, p-1 messages of the root · binomial: ceil(log2 p) steps · hierarchical: ceil(log_radix R) far steps and a near one ·
//! any shape · the root sends or gets p-1 blocks in all of them: the least there can be

use std::ops::Range;

use super::{from_root, k_nomial, leader};
use crate::algorithms::allreduce::whole::home;
use crate::algorithms::binomial;
use crate::algorithms::node::{LOCAL, Region, either_way, last, shared, uses_memory};
use crate::algorithms::seats::{LEVEL, STRAIGHT, levels, output_of, straight};
use crate::compose::{embed, flip, placing};
use crate::math::ceil_log;
use crate::registry::{Cost, Make1, Parameter, Parameters, Recipe};
use crate::schedule::push_span;
use crate::{Collective, InlineVec, Problem, Result, Round, Space, Span, Topology};

pub(crate) const HIERARCHICAL: &[Parameter] = &[
    Parameter {
        name: "radix",
        values: "2..=regions: one more than the far messages a rank begins, or gets, together",
        default: "2",
    },
    LEVEL,
    LOCAL,
];

/// A scatter as a movement between `Output` positions, one for each rank's block.
type Movement = Box<dyn Fn(usize) -> Vec<Round> + Send + Sync>;

fn scatters(problem: &Problem) -> bool {
    problem.collective.family() == Collective::Scatter
}

/// The movement, or its reversal, between the places where ranks have their blocks.
fn recipe(problem: &Problem, movement: Movement) -> Recipe {
    let (p, root, scatters) = (problem.ranks(), problem.root, scatters(problem));
    let make: Make1 = Box::new(move |rank| {
        let rounds = if scatters { movement(rank) } else { flip(movement(rank)) };
        let place = placing(move |blocks, spans| place(scatters, rank, rank == root, blocks, spans));
        let mut rounds = embed(rounds, |peer| peer, place);
        if rank == root {
            own_block(&mut rounds, scatters, rank);
        }
        rounds
    });
    Recipe { blocks: p, make }
}

/// Where blocks are: the root's all in what it gives or gets, another's own there, the rest in scratch.
fn place(scatters: bool, rank: usize, is_root: bool, blocks: Range<usize>, spans: &mut InlineVec<Span>) {
    let (all, own) = if scatters { (Space::Input, Space::Output) } else { (Space::Output, Space::Input) };
    if is_root {
        return push_span(spans, Span::new(all, blocks.start, blocks.len()));
    }
    for block in blocks {
        push_span(spans, if block == rank { Span::new(own, 0, 1) } else { Span::scratch(block, 1) });
    }
}

/// What the root has for itself.
fn own_block(rounds: &mut Vec<Round>, scatters: bool, root: usize) {
    match scatters {
        true => last(rounds).copy(Span::input(root, 1), Span::output(0, 1)),
        false => last(rounds).copy(Span::input(0, 1), Span::output(root, 1)),
    }
}

pub(crate) fn linear(problem: &Problem, _: &Parameters) -> Result<Recipe> {
    let (p, root) = (problem.ranks(), problem.root);
    let movement = move |rank: usize| {
        let mut round = Round::default();
        if rank == root {
            (0..p).filter(|&other| other != root).for_each(|other| round.send(other, [Span::output(other, 1)]));
        } else {
            round.recv(root, [Span::output(rank, 1)], None);
        }
        vec![round]
    };
    Ok(recipe(problem, Box::new(movement)))
}

pub(crate) fn linear_cost(problem: &Problem, _: &Parameters) -> Cost {
    let others = problem.ranks() - 1;
    if scatters(problem) { Cost::exact(1, others, others) } else { Cost::exact(1, 1, 1) }
}

pub(crate) fn binomial(problem: &Problem, _: &Parameters) -> Result<Recipe> {
    let (p, root) = (problem.ranks(), problem.root);
    // Members are numbered from the root on, and so are their blocks.
    let turned = move |members: Range<usize>, spans: &mut InlineVec<Span>| {
        let first = (members.start + root) % p;
        let before_end = members.len().min(p - first);
        push_span(spans, Span::output(first, before_end));
        push_span(spans, Span::output(0, members.len() - before_end));
    };
    let carried = |subtree: Range<usize>| vec![Span::output(subtree.start, subtree.len())];
    let movement = move |rank| {
        let rounds = from_root(p, root, rank, |me| k_nomial(p, me, 2, carried));
        embed(rounds, |peer| peer, placing(turned))
    };
    Ok(recipe(problem, Box::new(movement)))
}

/// In a gather each rank sends once, what its subtree has.
pub(crate) fn binomial_cost(problem: &Problem, _: &Parameters) -> Cost {
    let p = problem.ranks();
    let steps = ceil_log(2, p);
    if scatters(problem) {
        return Cost::exact(steps, steps, p - 1);
    }
    let largest = (0..steps).filter_map(|bit| binomial::edge(p, 0, bit)).map(|edge| edge.subtree.len()).max();
    Cost::exact(steps, 1, largest.unwrap_or(0))
}

/// Regions, and who acts for each.
struct Regions {
    topology: Topology,
    level: usize,
    root: usize,
    radix: usize,
}

impl Regions {
    fn leader(&self, region: usize) -> usize {
        leader(&self.topology, self.level, self.root, region)
    }

    /// From region to region, as the ranks that act for them see it; regions are numbered from the root's on.
    fn far(&self, index: usize) -> Vec<Round> {
        let regions = self.topology.regions(self.level);
        let first = self.topology.region_of(self.level, self.root);
        let me = (index + regions - first) % regions;
        let carried = |subtree: Range<usize>| {
            let seats = subtree.map(|member| self.topology.region(self.level, (member + first) % regions));
            output_of(&self.topology, &seats.collect::<Vec<_>>()).into_iter().collect()
        };
        let rounds = k_nomial(regions, me, self.radix, carried);
        embed(rounds, |member| self.leader((member + first) % regions), |span, spans| push_span(spans, span))
    }

    /// The whole movement, by messages.
    fn movement(&self, rank: usize) -> Vec<Round> {
        let (index, seats, _) = home(&self.topology, self.level, rank);
        let leader = self.leader(index);
        let mut near = Round::default();
        if rank != leader {
            near.recv(leader, [Span::output(rank, 1)], None);
            return vec![near];
        }
        let members = seats.map(|seat| self.topology.rank_at(seat)).filter(|&member| member != rank);
        members.for_each(|member| near.send(member, [Span::output(member, 1)]));
        let mut rounds = self.far(index);
        rounds.push(near);
        rounds
    }

    /// A scatter: what comes for a region lands in its memory, from which everybody takes its own. A gather: the same backwards.
    fn through_memory(&self, scatters: bool, rank: usize) -> Vec<Round> {
        let blocks = self.topology.ranks();
        let (index, seats, _) = home(&self.topology, self.level, rank);
        let (region, is_root) = (Region::new(&self.topology, self.level, rank), rank == self.root);
        let line = |block: usize, count: usize| Span::new(Space::Shared, region.base(blocks) + block, count);
        let in_memory = move |span: Span, spans: &mut InlineVec<Span>| match (is_root, scatters) {
            (true, true) => push_span(spans, Span::input(span.first, span.count)),
            (true, false) => push_span(spans, span),
            (false, _) => push_span(spans, line(span.first, span.count)),
        };
        let far = if rank == self.leader(index) { self.far(index) } else { Vec::new() };
        let far = embed(if scatters { far } else { flip(far) }, |peer| peer, in_memory);
        let of_members = || {
            let members = seats.clone().map(|seat| self.topology.rank_at(seat));
            members.filter(|&member| member != rank)
        };
        let mut rounds = vec![Round::default()];
        match (scatters, is_root) {
            (true, true) => {
                of_members().for_each(|member| last(&mut rounds).copy(Span::input(member, 1), line(member, 1)));
                region.meet(&mut rounds);
                rounds.extend(far);
            }
            (true, false) => {
                rounds.extend(far);
                region.meet(&mut rounds);
                last(&mut rounds).copy(line(rank, 1), Span::output(0, 1));
            }
            (false, true) => {
                region.meet(&mut rounds);
                of_members().for_each(|member| last(&mut rounds).copy(line(member, 1), Span::output(member, 1)));
                rounds.extend(far);
            }
            (false, false) => {
                last(&mut rounds).copy(Span::input(0, 1), line(rank, 1));
                region.meet(&mut rounds);
                rounds.extend(far);
            }
        }
        if is_root {
            own_block(&mut rounds, scatters, rank);
        }
        rounds.retain(|round| !round.is_empty());
        rounds
    }
}

pub(crate) fn hierarchical(problem: &Problem, parameters: &Parameters) -> Result<Recipe> {
    let level = parameters.level(problem)?;
    let regions = Regions {
        topology: problem.topology.clone(),
        level,
        root: problem.root,
        radix: parameters.number("radix", 2..=problem.topology.regions(level).max(2))?.unwrap_or(2),
    };
    if !shared(parameters)? {
        return Ok(recipe(problem, Box::new(move |rank| regions.movement(rank))));
    }
    let scatters = scatters(problem);
    Ok(Recipe { blocks: problem.ranks(), make: Box::new(move |rank| regions.through_memory(scatters, rank)) })
}

pub(crate) fn hierarchical_cost(problem: &Problem, parameters: &Parameters) -> Cost {
    let level = parameters.level(problem).unwrap_or(1);
    let (p, regions, (_, largest)) =
        (problem.ranks(), problem.topology.regions(level), problem.topology.region_sizes(level));
    let radix = parameters.number("radix", 2..=regions.max(2)).ok().flatten().unwrap_or(2);
    let far = ceil_log(radix, regions);
    let near = usize::from(largest > 1 && !uses_memory(parameters));
    match scatters(problem) {
        true => Cost::at_most(far + near, far * (radix - 1) + near * (largest - 1), p - 1),
        false => Cost::at_most(far + near, 1, p - 1),
    }
}

pub(crate) const NODE_AWARE: &[Parameter] = &[STRAIGHT];

/// From the root to each node, and inside.
struct Nodes {
    topology: Topology,
    root: usize,
    /// Of each rank, whether its block goes to it by itself.
    straight: Vec<bool>,
}

impl Nodes {
    fn movement(&self, rank: usize) -> Vec<Round> {
        let Nodes { topology, root, straight } = self;
        let (home, seats, _) = home(topology, 1, rank);
        let leader_of = |node| leader(topology, 1, *root, node);
        let leader = leader_of(home);
        let members = |seats: Range<usize>| seats.map(|seat| topology.rank_at(seat));
        let own = |rank: usize| Span::output(rank, 1);
        // What comes for a node in one message: its leader's block, and those that the leader hands out.
        let bundle = |node: usize| -> Vec<Span> {
            let of = |&member: &usize| member == leader_of(node) || !straight[member];
            members(topology.region(1, node)).filter(of).map(own).collect()
        };
        let (mut far, mut near) = (Round::default(), Round::default());
        if rank == *root {
            for node in (0..topology.regions(1)).filter(|&node| node != home) {
                far.send(leader_of(node), bundle(node));
                let alone = members(topology.region(1, node)).filter(|&member| member != leader_of(node));
                alone.filter(|&member| straight[member]).for_each(|member| far.send(member, [own(member)]));
            }
        } else if home != topology.region_of(1, *root) && (rank == leader || straight[rank]) {
            far.recv(*root, if rank == leader { bundle(home) } else { vec![own(rank)] }, None);
        } else {
            near.recv(leader, [own(rank)], None);
        }
        // The root gives its own node everything, and a leader what came with its own.
        let handed = members(seats).filter(|&member| member != rank && (rank == *root || !straight[member]));
        if rank == leader {
            handed.for_each(|member| near.send(member, [own(member)]));
        }
        vec![far, near]
    }
}

pub(crate) fn node_aware(problem: &Problem, parameters: &Parameters) -> Result<Recipe> {
    let least = straight(parameters)?;
    let straight = (0..problem.ranks()).map(|rank| problem.block_size(rank) >= least).collect();
    let nodes = Nodes { topology: problem.topology.clone(), root: problem.root, straight };
    Ok(recipe(problem, Box::new(move |rank| nodes.movement(rank))))
}

pub(crate) fn node_aware_cost(problem: &Problem, _: &Parameters) -> Cost {
    let others = problem.ranks() - 1;
    match scatters(problem) {
        true => Cost::at_most(2, others, others),
        false => Cost::at_most(2, 1, problem.topology.region_sizes(1).1),
    }
}

/// Every level and a few radices; either way inside.
pub(crate) fn hierarchical_variants(problem: &Problem) -> Vec<String> {
    let regions = problem.topology.regions(1);
    let mut variants = levels(problem);
    variants.extend((regions > 2).then(|| format!("radix={regions}")));
    // On one node a meeting of all was never faster than messages, on 2 and 4 ranks of 2 cores.
    if regions > 1 { either_way(variants) } else { variants }
}
