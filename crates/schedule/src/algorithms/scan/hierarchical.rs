//! Scans in two levels: inside each region, then of the regions' sums among their last ranks, then what came before a region to all in it.
//!
//! With `local=shared` everybody lays its vector out, all meet, and each rank combines those that it needs; the sum of the regions before comes
//! the same way.
//!
//! ```text
//! scan, 2x3   1-2 has 0-2, 4-5 has 3-5    2->5: what 0-2 have    5->3 5->4
//! ```
//!
//! The far part is an exclusive scan by 123-doubling: one far message at a time · ranks in the order of their seats, without which no region
//! has ranks that follow each other

use super::{Places, exclusive_123, exclusive_123_rounds, inclusive};
use crate::algorithms::allreduce::whole::{Group, home};
use crate::algorithms::binomial;
use crate::algorithms::node::{LOCAL, Region, either_way, last, shared, uses_memory};
use crate::algorithms::seats::{LEVEL, levels};
use crate::math::ceil_log;
use crate::registry::{Cost, Parameter, Parameters, Recipe};
use crate::{Collective, Combine, Problem, Result, Round, Span, Topology};

pub(crate) const PARAMETERS: &[Parameter] = &[LEVEL, LOCAL];
pub(crate) const NEEDS: &str = "ranks in the order of their seats";

/// Of the regions before.
const BEFORE: Span = Span { space: crate::Space::Scratch, first: 0, count: 1 };
/// Of these and the own one.
const BEFORE_AND_OWN: Span = Span { space: crate::Space::Scratch, first: 1, count: 1 };
/// Of the own region, where the last rank's result is not that.
const OWN: Span = Span { space: crate::Space::Scratch, first: 2, count: 1 };
const INPUT: Span = Span { space: crate::Space::Input, first: 0, count: 1 };
const OUTPUT: Span = Span { space: crate::Space::Output, first: 0, count: 1 };

pub(crate) fn hierarchical(problem: &Problem, parameters: &Parameters) -> Result<Recipe> {
    let (level, shared) = (parameters.level(problem)?, shared(parameters)?);
    let topology = problem.topology.clone();
    if !topology.is_sequential() {
        let fact = "ranks are placed in another order".into();
        return Err(parameters.unservable(NEEDS, fact, "recursive-doubling serves any order"));
    }
    let exclusive = problem.collective == Collective::Exscan;
    let make = move |rank| rounds(&topology, level, exclusive, shared, rank);
    Ok(Recipe { blocks: 1, make: Box::new(make) })
}

fn rounds(topology: &Topology, level: usize, exclusive: bool, shared: bool, rank: usize) -> Vec<Round> {
    let (index, seats, me) = home(topology, level, rank);
    let near = Group { size: seats.len(), me, rank_of: &|member| topology.rank_at(seats.start + member) };
    let memory = Region::new(topology, level, rank);
    let (is_last, regions) = (me + 1 == near.size, topology.regions(level));
    let last_of = |region: usize| topology.rank_at(topology.region(level, region).end - 1);
    // What the region has in all, as its last rank knows it.
    let whole = match (exclusive, near.size) {
        (false, _) => OUTPUT,
        (true, 1) => INPUT,
        (true, _) => OWN,
    };
    let mut rounds = match shared && near.size > 1 {
        true => near_through_memory(&memory, exclusive),
        false => near_by_messages(&near, exclusive),
    };
    if regions > 1 && is_last {
        if whole == OWN {
            last(&mut rounds).copy(OUTPUT, OWN);
            last(&mut rounds).combine(INPUT, OWN, Combine::After);
        }
        let far = Group { size: regions, me: index, rank_of: &last_of };
        rounds.extend(exclusive_123(&far, Places { value: whole, result: BEFORE, both: BEFORE_AND_OWN }));
    }
    if index > 0 {
        let mut before = BEFORE;
        if shared && near.size > 1 {
            let line = memory.spare_line(1);
            if is_last {
                last(&mut rounds).copy(BEFORE, line);
            } else {
                before = line;
            }
            memory.meet(&mut rounds);
        } else {
            rounds.extend(hand_down(&near));
        }
        match exclusive && me == 0 {
            true => last(&mut rounds).copy(before, OUTPUT),
            false => last(&mut rounds).combine(before, OUTPUT, Combine::Before),
        }
    }
    rounds.retain(|round| !round.is_empty());
    rounds
}

fn near_by_messages(near: &Group<'_>, exclusive: bool) -> Vec<Round> {
    let at = Places { value: INPUT, result: OUTPUT, both: BEFORE_AND_OWN };
    if exclusive { exclusive_123(near, at) } else { inclusive(near, at) }
}

/// Everybody's vector on its line; each combines those before it.
fn near_through_memory(memory: &Region, exclusive: bool) -> Vec<Round> {
    let mut rounds = vec![Round::default()];
    last(&mut rounds).copy(INPUT, memory.whole_line(memory.me, 1));
    memory.meet(&mut rounds);
    for member in 0..memory.me + usize::from(!exclusive) {
        let operand = if member == memory.me { INPUT } else { memory.whole_line(member, 1) };
        match member {
            0 => last(&mut rounds).copy(operand, OUTPUT),
            _ => last(&mut rounds).combine(operand, OUTPUT, Combine::After),
        }
    }
    rounds
}

/// From the last member to all, down a tree of which it is the root.
fn hand_down(near: &Group<'_>) -> Vec<Round> {
    let (size, me) = (near.size, near.size - 1 - near.me);
    let rank_of = |member: usize| (near.rank_of)(size - 1 - member);
    let edges = (0..ceil_log(2, size)).rev().filter_map(|bit| binomial::edge(size, me, bit));
    let one = |edge: binomial::Edge| {
        let mut round = Round::default();
        match me == edge.child {
            true => round.recv(rank_of(edge.parent), [BEFORE], None),
            false => round.send(rank_of(edge.child), [BEFORE]),
        }
        round
    };
    edges.map(one).collect()
}

/// Every level; either way inside, but on one node, where a meeting of all was never faster than messages.
pub(crate) fn variants(problem: &Problem) -> Vec<String> {
    let variants = levels(problem);
    if problem.topology.regions(1) > 1 { either_way(variants) } else { variants }
}

pub(crate) fn cost(problem: &Problem, parameters: &Parameters) -> Cost {
    let level = parameters.level(problem).unwrap_or(1);
    let (regions, (_, largest)) = (problem.topology.regions(level), problem.topology.region_sizes(level));
    let far = exclusive_123_rounds(regions);
    if uses_memory(parameters) {
        return Cost::at_most(far, far, far);
    }
    let near =
        if problem.collective == Collective::Exscan { exclusive_123_rounds(largest) } else { ceil_log(2, largest) };
    let down = if regions > 1 { ceil_log(2, largest) } else { 0 };
    let all = near + far + down;
    Cost::at_most(all, all, all)
}
