//! Ring: everybody passes on to the right what came last from the left.
//!
//! ```text
//! p = 4, rank 1   start   round 1   round 2   round 3
//! holds           1       0 1       3 0 1     2 3 0 1
//! ```
//!
//! p-1 rounds of one block · any p · only neighbours talk · reversed, then forwards: the ring allreduce

use crate::registry::{Cost, Make1, Parameters};
use crate::{Problem, Result, Round, Span};

pub(crate) fn ring(problem: &Problem, _: &Parameters) -> Result<Make1> {
    let p = problem.ranks();
    Ok(Box::new(move |me| rounds(p, me)))
}

/// The rounds of member `me` of `p`.
pub(crate) fn rounds(p: usize, me: usize) -> Vec<Round> {
    let pass_on = |i: usize| {
        let mut round = Round::default();
        let block = |age: usize| vec![Span::output((me + p - age) % p, 1)];
        round.send((me + 1) % p, block(i));
        round.recv((me + p - 1) % p, block(i + 1), None);
        round
    };
    (0..p - 1).map(pass_on).collect()
}

pub(crate) fn ring_cost(problem: &Problem, _: &Parameters) -> Cost {
    let p = problem.ranks();
    Cost::exact(p - 1, p - 1, p - 1)
}
