//! Rabenseifner's allreduce: recursive halving, then recursive doubling; for any p, after folding to a power of two.
//! (Rabenseifner 2004; fold as in Thakur, Rabenseifner and Gropp 2005.)
//!
//! ```text
//! p = 5   fold: 0->1, the whole vector      1 2 3 4 halve, nearest first, then double back      unfold: 1->0
//! ```
//!
//! The nearest ranks combine first, so operands meet in rank order: safe for any operation, identical everywhere. Members
//! own the blocks of their bit-reversed number, which makes all that a member sends at once one run.
//!
//! 2 log2 K steps and 2(K-1)/K of the vector for K = 2^floor(log2 p); the fold adds 2 steps and the whole vector once

use crate::algorithms::allgather::recursive_multiplying::{exchange, nearest_first};
use crate::blockset::BlockSet;
use crate::compose::{embed, reverse_begun};
use crate::registry::{Cost, Parameters, Recipe};
use crate::schedule::push_span;
use crate::{Combine, Problem, Result, Round, Span};

pub(crate) fn rabenseifner(problem: &Problem, _: &Parameters) -> Result<Recipe> {
    let p = problem.ranks();
    let blocks = 1 << p.ilog2();
    Ok(Recipe { blocks, make: Box::new(move |rank| rounds(p, blocks, rank)) })
}

fn rounds(p: usize, k: usize, rank: usize) -> Vec<Round> {
    let folded = p - k;
    let whole = |span: fn(usize, usize) -> Span| vec![span(0, k)];
    let mut first = Round::default();
    let mut begun = BlockSet::default();
    if rank < 2 * folded {
        if rank.is_multiple_of(2) {
            first.send(rank + 1, whole(Span::input));
            let mut last = Round::default();
            last.recv(rank + 1, whole(Span::output), None);
            return vec![first, last];
        }
        first.recv(rank - 1, whole(Span::output), None);
        first.combine(Span::input(0, k), Span::output(0, k), Combine::After);
        begun.insert(0..k);
    }
    let bits = k.ilog2();
    let reversed = |number: usize| if bits == 0 { 0 } else { number.reverse_bits() >> (usize::BITS - bits) };
    let me = reversed(if rank < 2 * folded { rank / 2 } else { rank - folded });
    let rank_of = |member: usize| match reversed(member) {
        pair if pair < folded => 2 * pair + 1,
        single => single + folded,
    };
    let movement = exchange(k, me, &nearest_first(&vec![2; bits as usize]));
    let movement = embed(movement, rank_of, |span, spans| push_span(spans, span));

    let mut rounds = if first.is_empty() { vec![] } else { vec![first] };
    rounds.extend(reverse_begun(movement.clone(), rank, &[Span::output(me, 1)], begun));
    rounds.extend(movement);
    if rank < 2 * folded {
        let mut last = Round::default();
        last.send(rank - 1, whole(Span::output));
        rounds.push(last);
    }
    rounds
}

pub(crate) fn cost(problem: &Problem, _: &Parameters) -> Cost {
    let p = problem.ranks();
    let steps = p.ilog2() as usize;
    let k = 1 << steps;
    let core = Cost::exact(2 * steps, 2 * steps, 2 * (k - 1));
    // A folded rank sends the whole vector back; its partner sent it before and nothing else.
    if p == k { core } else { Cost::exact(core.steps + 2, core.messages + 1, core.blocks + k) }
}
