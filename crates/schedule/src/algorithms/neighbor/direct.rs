//! Straight to the neighbours: one message to each, all at once. What MPIs do.
//!
//! ```text
//! ring of four, rank 1   sends to 2 and 0, receives from 0 and 2, in one round
//! ```
//!
//! one round · a message for each neighbour, of all blocks for it · any graph

use super::{Traffic, sorted};
use crate::registry::{Cost, Parameters, Recipe};
use crate::{Problem, Result, Round};

pub(crate) fn direct(problem: &Problem, _: &Parameters) -> Result<Recipe> {
    let traffic = Traffic::of(problem);
    let ranks = problem.ranks();
    let among = traffic.clone();
    Ok(traffic.recipe(problem, move |post| {
        let me = post.me;
        let mut round = Round::default();
        for (to, blocks) in by_rank(leaving(&among, me), |other| (other + ranks - me) % ranks) {
            round.send(to, post.spans(blocks));
        }
        let arriving = among.arriving(me).into_iter().map(|(block, from)| (from, block)).collect();
        for (from, blocks) in by_rank(arriving, |other| (me + ranks - other) % ranks) {
            round.recv(from, post.spans(blocks), None);
        }
        vec![round]
    }))
}

/// Whom a rank has a block for, and which.
fn leaving(traffic: &Traffic, rank: usize) -> Vec<(usize, usize)> {
    let blocks = traffic.leaving(rank).into_iter();
    blocks.flat_map(|(block, others)| others.into_iter().map(move |other| (other, block))).collect()
}

/// Blocks by rank, the ranks in an order.
fn by_rank(mut pairs: Vec<(usize, usize)>, order: impl Fn(usize) -> usize) -> Vec<(usize, Vec<usize>)> {
    pairs.sort_unstable_by_key(|&(rank, block)| (order(rank), block));
    let same = pairs.chunk_by(|(one, _), (other, _)| one == other);
    same.map(|pairs| (pairs[0].0, sorted(pairs.iter().map(|(_, block)| *block).collect()))).collect()
}

pub(crate) fn cost(problem: &Problem, _: &Parameters) -> Cost {
    let traffic = Traffic::of(problem);
    let mut cost = Cost::NOTHING;
    for rank in 0..problem.ranks() {
        let leaving = leaving(&traffic, rank);
        let others = sorted(leaving.iter().map(|(other, _)| *other).collect());
        cost.steps |= usize::from(!leaving.is_empty());
        cost.messages = cost.messages.max(others.len());
        cost.blocks = cost.blocks.max(leaving.len());
    }
    cost
}
