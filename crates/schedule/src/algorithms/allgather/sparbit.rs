//! Sparbit: like Bruck but the farthest ranks first, so that the most data travels the least far.
//! (Loch and Koslovski 2021, with the corrections of its pseudocode that any p needs.)
//!
//! Distances halve; rank r sends every second block it holds, counted in the current distance, straight to its place.
//! Where p is not a power of two, a bit of p decides whether the oldest block stays behind in a round.
//!
//! ```text
//! p = 5, rank 3   start   round 1 (distance 4)   round 2 (distance 2)   round 3 (distance 1)
//! holds           3       3 4                    3 4 1                  0 1 2 3 4
//! ```
//!
//! ceil(log2 p) rounds, p-1 blocks · any p · packed: one message a round; per block: p-1 messages, as the paper prints it

use crate::math::ceil_log;
use crate::registry::{Cost, Make1, Parameter, Parameters};
use crate::schedule::push_span;
use crate::{InlineVec, Problem, Result, Round, Span};

pub(crate) const PARAMETERS: &[Parameter] =
    &[Parameter { name: "messages", values: "packed: one a round; blocks: one for each block", default: "packed" }];

/// Distance and number of blocks of each round, farthest first.
pub(crate) fn steps(p: usize) -> Vec<(usize, usize)> {
    if p == 1 {
        return vec![];
    }
    let zeros = p.trailing_zeros();
    let stay_behind = (!(p >> zeros) | 1) << zeros;
    let mut held = 1;
    let step = |distance: usize| {
        let stays = usize::from(distance & stay_behind != 0);
        let count = held - stays;
        held = 2 * held - stays;
        (distance, count)
    };
    (0..ceil_log(2, p)).rev().map(|bit| 1 << bit).map(step).collect()
}

pub(crate) fn sparbit(problem: &Problem, parameters: &Parameters) -> Result<Make1> {
    let p = problem.ranks();
    let packed = parameters.word("messages", &["packed", "blocks"])? == "packed";
    Ok(Box::new(move |me| steps(p).into_iter().map(|step| round(p, me, step, packed)).collect()))
}

fn round(p: usize, me: usize, (distance, count): (usize, usize), packed: bool) -> Round {
    let mut round = Round::default();
    let (to, from) = ((me + distance) % p, (me + p - distance) % p);
    let blocks = |first: usize| (0..count).map(move |j| Span::output((first + p - 2 * j * distance) % p, 1));
    if packed {
        let together = |blocks: &mut dyn Iterator<Item = Span>| {
            let mut spans = InlineVec::new();
            blocks.for_each(|block| push_span(&mut spans, block));
            spans
        };
        round.send(to, together(&mut blocks(me)));
        round.recv(from, together(&mut blocks(from)), None);
    } else {
        blocks(me).for_each(|block| round.send(to, [block]));
        blocks(from).for_each(|block| round.recv(from, [block], None));
    }
    round
}

pub(crate) fn cost(problem: &Problem, parameters: &Parameters) -> Cost {
    let p = problem.ranks();
    let rounds = ceil_log(2, p);
    let packed = parameters.get("messages") != Some("blocks");
    Cost::exact(rounds, if packed { rounds } else { p - 1 }, p - 1)
}

pub(crate) fn variants(_: &Problem) -> Vec<String> {
    vec!["messages=packed".into(), "messages=blocks".into()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_21_ranks_distances_and_blocks_are_those_of_the_paper() {
        assert_eq!(steps(21), [(16, 1), (8, 1), (4, 3), (2, 5), (1, 10)]);
    }

    #[test]
    fn every_rank_sends_one_block_less_than_there_are_ranks() {
        assert!((1..=2048).all(|p| steps(p).iter().map(|step| step.1).sum::<usize>() == p - 1));
    }
}
