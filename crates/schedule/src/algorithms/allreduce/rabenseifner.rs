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
//! 2 log2 K steps and 2(K-1)/K of the vector for K = 2^floor(log2 p); the fold adds 2 steps and the whole vector once. With `blocks=n` the vector
//! is cut into n parts, each of which begins a round after the one before: n - 1 steps more, and a part of the result is sent on while the next is
//! being combined, when it is near the core. Two processes of a node, whose messages are copied, gain by that or lose; others are not known to gain.

use crate::algorithms::bine::Butterfly;
use crate::algorithms::rooted::pipeline::{BLOCKS, MOST_BLOCKS};
use crate::blockset::BlockSet;
use crate::compose::{in_turn, reverse_begun};
use crate::registry::{Cost, Parameter, Parameters, Recipe};
use crate::{Combine, Problem, Result, Round, Span};

pub(crate) const PARAMETERS: &[Parameter] = &[Parameter {
    name: BLOCKS.name,
    values: "1..=4096: how many parts of the vector follow one another",
    default: "1",
}];

fn parts(parameters: &Parameters) -> Result<usize> {
    Ok(parameters.number(BLOCKS.name, 1..=MOST_BLOCKS)?.unwrap_or(1))
}

pub(crate) fn rabenseifner(problem: &Problem, parameters: &Parameters) -> Result<Recipe> {
    Ok(by(Butterfly::Doubling, problem, parts(parameters)?))
}

/// The same by any butterfly.
pub(super) fn by(butterfly: Butterfly, problem: &Problem, parts: usize) -> Recipe {
    let p = problem.ranks();
    let blocks = 1 << p.ilog2();
    Recipe { blocks: blocks * parts, make: Box::new(move |rank| rounds(butterfly, p, blocks, parts, rank)) }
}

fn rounds(butterfly: Butterfly, p: usize, k: usize, parts: usize, rank: usize) -> Vec<Round> {
    let folded = p - k;
    let all = k * parts;
    let whole = |span: fn(usize, usize) -> Span| vec![span(0, all)];
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
        first.combine(Span::input(0, all), Span::output(0, all), Combine::After);
        begun.insert(0..k);
    }
    let place = if rank < 2 * folded { rank / 2 } else { rank - folded };
    let rank_of = |place: usize| if place < folded { 2 * place + 1 } else { place + folded };
    let me = butterfly.position(k, place);
    let steps = k.ilog2() as usize;
    // The farthest first: what is held grows as a run.
    let exchange = |index: usize| {
        let (held, peer) = (1 << index, rank_of(butterfly.partner(k, place, steps - 1 - index)));
        let run = |position: usize| [Span::output(position / held * held, held)];
        let mut round = Round::default();
        round.send(peer, run(me));
        round.recv(peer, run(me ^ held), None);
        round
    };
    let movement: Vec<Round> = (0..steps).map(exchange).collect();

    let mut rounds = if first.is_empty() { vec![] } else { vec![first] };
    let mut part = reverse_begun(movement.clone(), rank, &[Span::output(me, 1)], begun);
    part.extend(movement);
    match parts {
        1 => rounds.extend(part),
        _ => rounds.extend(in_turn(&part, k, parts)),
    }
    if rank < 2 * folded {
        let mut last = Round::default();
        last.send(rank - 1, whole(Span::output));
        rounds.push(last);
    }
    rounds
}

pub(crate) fn cost(problem: &Problem, parameters: &Parameters) -> Cost {
    let p = problem.ranks();
    let steps = p.ilog2() as usize;
    let (k, parts) = (1 << steps, parts(parameters).unwrap_or(1));
    // One rank has nothing to wait for.
    let in_turn = if steps > 0 { parts - 1 } else { 0 };
    let core = Cost::exact(2 * steps + in_turn, 2 * steps * parts, 2 * (k - 1) * parts);
    // A folded rank sends the whole vector back; its partner sent it before and nothing else.
    if p == k { core } else { Cost::exact(core.steps + 2, core.messages + 1, core.blocks + k * parts) }
}

/// On one node only: elsewhere a step costs more than is gained.
pub(crate) fn variants(problem: &Problem) -> Vec<String> {
    match problem.topology.regions(1) {
        1 => vec![String::new(), format!("{}=4", BLOCKS.name)],
        _ => vec![String::new()],
    }
}
