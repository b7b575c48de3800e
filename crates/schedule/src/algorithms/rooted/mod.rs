//! Collectives with a root: bcast and reduce, and in [`blocks`] gather and scatter.
//!
//! - `binomial`: the tree in which member m's parent is m without its lowest set bit; the farthest first, so that a
//!   reduction combines the nearest first and keeps rank order from rank 0 on.
//! - `scatter-allgather`: the root scatters pieces along that tree, then all allgather. (van de Geijn.) Reversed in
//!   spirit, `reduce-scatter-gather`: reduce_scatter, then a gather. (Rabenseifner.)
//! - `cyclic-shift`: the degenerate allgatherv of Jocksch et al., in which all blocks but the root's are empty; reversed, the
//!   degenerate reduce_scatter. Any number of ports per step.
//! - `bine`, in its own file: a tree whose messages go less far.
//! - `hierarchical`, in its own file: from region to region first.
//! - `circulant`, in its own file: n blocks in n - 1 + ceil(log2 p) rounds.
//! - `pipeline`, in its own file: piece after piece down a chain or trees, in lanes; `circulant-lanes` on circulant graphs of regions.
//!
//! ```text
//! p = 6, root 0, binomial   0->4    0->2 4->(6)    0->1 2->3 4->5
//! ```

pub(crate) mod bine;
pub(crate) mod blocks;
pub(crate) mod circulant;
pub(crate) mod circulant_lanes;
mod far;
pub(crate) mod hierarchical;
pub(crate) mod pipeline;
mod tree;

use std::ops::Range;

use super::allgather::windows::{self, halving, windows};
use super::allgather::{self, ring};
use super::binomial;
use crate::compose::{embed, flip, placing, reverse};
use crate::math::ceil_log;
use crate::registry::{Cost, Make1, Parameter, Parameters, Recipe, collect};
use crate::schedule::push_span;
use crate::{Problem, Result, Round, Space, Span, Topology};

pub(crate) const CYCLIC_SHIFT: &[Parameter] = &[windows::RADIX, windows::PORTS];
pub(crate) const PIECES: &[Parameter] =
    &[Parameter { name: "pieces", values: "circulant, ring or bine: how they are exchanged", default: "circulant" }];
const EXCHANGES: &[&str] = &["circulant", "ring", "bine"];

/// Who acts for a region: the root for its own, the first rank for each other.
fn leader(topology: &Topology, level: usize, root: usize, region: usize) -> usize {
    match region == topology.region_of(level, root) {
        true => root,
        false => topology.rank_at(topology.region(level, region).start),
    }
}

/// The bcast of member 0, whose `blocks` are in place, to all of `size`.
pub(crate) fn binomial_bcast(size: usize, me: usize, blocks: usize) -> Vec<Round> {
    k_nomial(size, me, 2, |_| vec![Span::output(0, blocks)])
}

/// Down the tree of some radix, the farthest first; `carried` says what goes to a child with its subtree.
fn k_nomial(size: usize, me: usize, radix: usize, carried: impl Fn(Range<usize>) -> Vec<Span>) -> Vec<Round> {
    let one = |digit| {
        let mut round = Round::default();
        for edge in binomial::edges(size, me, radix, digit) {
            if me == edge.child {
                round.recv(edge.parent, carried(edge.subtree), None)
            } else {
                round.send(edge.child, carried(edge.subtree))
            }
        }
        round
    };
    (0..ceil_log(radix, size)).rev().map(one).collect()
}

/// The rounds of `rank`, made for its distance from the root.
fn from_root(p: usize, root: usize, rank: usize, rounds: impl Fn(usize) -> Vec<Round>) -> Vec<Round> {
    let relative = (rank + p - root) % p;
    embed(rounds(relative), |member| (member + root) % p, |span, spans| push_span(spans, span))
}

pub(crate) fn bcast_binomial(problem: &Problem, _: &Parameters) -> Result<Recipe> {
    let (p, root) = (problem.ranks(), problem.root);
    Ok(Recipe { blocks: 1, make: Box::new(move |rank| from_root(p, root, rank, |me| binomial_bcast(p, me, 1))) })
}

/// To the root; for an operation that does not commute, to rank 0 and from there to the root.
pub(crate) fn reduce_binomial(problem: &Problem, _: &Parameters) -> Result<Recipe> {
    let (p, root) = (problem.ranks(), problem.root);
    let via_first = !problem.reduction.commutative && root != 0;
    let make = move |rank| {
        if !via_first {
            return collect(from_root(p, root, rank, |me| binomial_bcast(p, me, 1)), rank, rank == root, 1);
        }
        let mut rounds = collect(binomial_bcast(p, rank, 1), rank, false, 1);
        let mut last = Round::default();
        if rank == 0 {
            last.send(root, vec![Span::scratch(0, 1)]);
        } else if rank == root {
            last.recv(0, vec![Span::output(0, 1)], None);
        }
        rounds.push(last);
        rounds
    };
    Ok(Recipe { blocks: 1, make: Box::new(make) })
}

pub(crate) fn binomial_cost(problem: &Problem, _: &Parameters) -> Cost {
    let steps = ceil_log(2, problem.ranks());
    Cost::exact(steps, steps, steps)
}

/// Of a tree on which nobody sends to the root by another, and each sends once.
pub(crate) fn reversed_cost(problem: &Problem, _: &Parameters) -> Cost {
    Cost::exact(ceil_log(2, problem.ranks()), 1, 1)
}

pub(crate) fn reduce_binomial_cost(problem: &Problem, _: &Parameters) -> Cost {
    let steps = ceil_log(2, problem.ranks());
    let via_first = !problem.reduction.commutative && problem.root != 0;
    Cost::exact(steps + usize::from(via_first), 1, 1)
}

/// The exchange of the pieces among all, piece m beginning with member m.
fn exchange_pieces(problem: &Problem, parameters: &Parameters) -> Result<Make1> {
    let p = problem.ranks();
    Ok(match parameters.word("pieces", EXCHANGES)? {
        "ring" => Box::new(move |me| ring::rounds(p, me)),
        "bine" => allgather::bine::bine(problem, parameters)?,
        _ => Box::new(move |me| windows(p, me, &halving(p))),
    })
}

fn exchange_cost(problem: &Problem, parameters: &Parameters) -> Cost {
    let (p, rounds) = (problem.ranks(), ceil_log(2, problem.ranks()));
    match parameters.get("pieces") {
        Some("ring") => Cost::exact(p - 1, p - 1, p - 1),
        Some("bine") => allgather::bine::cost(problem, parameters),
        _ => Cost::exact(rounds, rounds, p - 1),
    }
}

fn scatter(p: usize, me: usize) -> Vec<Round> {
    k_nomial(p, me, 2, |subtree| vec![Span::output(subtree.start, subtree.len())])
}

pub(crate) fn scatter_allgather(problem: &Problem, parameters: &Parameters) -> Result<Recipe> {
    let (p, root) = (problem.ranks(), problem.root);
    let exchange = exchange_pieces(problem, parameters)?;
    let rounds = move |me| {
        let mut rounds = scatter(p, me);
        rounds.extend(exchange(me));
        rounds
    };
    Ok(Recipe { blocks: p, make: Box::new(move |rank| from_root(p, root, rank, &rounds)) })
}

pub(crate) fn reduce_scatter_gather(problem: &Problem, parameters: &Parameters) -> Result<Recipe> {
    let (p, root) = (problem.ranks(), problem.root);
    let exchange = exchange_pieces(problem, parameters)?;
    let rounds = move |me: usize| {
        let mut rounds = reverse(exchange(me), me, &[Span::output(me, 1)]);
        rounds.extend(flip(scatter(p, me)));
        if me == 0 {
            return rounds;
        }
        embed(
            rounds,
            |peer| peer,
            |span, spans| {
                let space = if span.space == Space::Output { Space::Scratch } else { span.space };
                push_span(spans, Span { space, ..span });
            },
        )
    };
    Ok(Recipe { blocks: p, make: Box::new(move |rank| from_root(p, root, rank, &rounds)) })
}

/// The root sends the most of the scatter: everything but its own piece.
pub(crate) fn scatter_allgather_cost(problem: &Problem, parameters: &Parameters) -> Cost {
    let (p, tree) = (problem.ranks(), ceil_log(2, problem.ranks()));
    Cost::exact(tree, tree, p - 1).then(exchange_cost(problem, parameters))
}

/// In the gather nobody sends more than half the pieces, and that once.
pub(crate) fn reduce_scatter_gather_cost(problem: &Problem, parameters: &Parameters) -> Cost {
    let (p, tree) = (problem.ranks(), ceil_log(2, problem.ranks()));
    Cost::at_most(tree, 1, p / 2).then(exchange_cost(problem, parameters))
}

pub(crate) fn pieces_variants(_: &Problem) -> Vec<String> {
    EXCHANGES.iter().map(|exchange| format!("pieces={exchange}")).collect()
}

/// An allgatherv of nothing but the root's block.
pub(crate) fn cyclic_shift(problem: &Problem, parameters: &Parameters) -> Result<Recipe> {
    let (p, root) = (problem.ranks(), problem.root);
    let widths = windows::bruck_widths(problem, parameters)?;
    let make = move |rank| {
        let place = placing(|ranks: Range<usize>, spans| {
            if ranks.contains(&root) {
                push_span(spans, Span::output(0, 1));
            }
        });
        embed(windows(p, rank, &widths), |rank| rank, place)
    };
    Ok(Recipe { blocks: 1, make: Box::new(make) })
}

/// As of the allgather; but many messages of one rank after the other never pay.
pub(crate) fn cyclic_shift_variants(problem: &Problem) -> Vec<String> {
    let mut variants = windows::bruck_variants(problem);
    let radix = |setting: &String| setting.strip_prefix("radix=").and_then(|radix| radix.parse().ok()).unwrap_or(0);
    variants.retain(|setting| radix(setting) <= 64usize);
    variants
}

/// The root sends on every port of every round; in a reduce nobody sends twice.
pub(crate) fn cyclic_shift_cost(problem: &Problem, parameters: &Parameters) -> Cost {
    let cost = windows::bruck_cost(problem, parameters);
    if problem.collective.reduces() {
        Cost::exact(cost.steps, 1, 1)
    } else {
        Cost::exact(cost.steps, cost.messages, cost.messages)
    }
}
