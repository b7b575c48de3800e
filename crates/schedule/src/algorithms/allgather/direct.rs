//! Every block goes straight from its owner to everybody: all at once (linear), or to one rank a round (pairwise).
//!
//! ```text
//! p = 4, rank 1      linear: one round                 pairwise: three rounds
//! sends its block    to 2 3 0                          to 2, then 3, then 0
//! receives           from 0 3 2                        from 0, then 3, then 2
//! ```
//!
//! p-1 messages, p-1 blocks · any p · the linear reduce_scatter keeps rank order; no other keeps it for every p

use crate::registry::{Cost, Make1, Parameters};
use crate::{Problem, Result, Round, Span};

/// Sends to the rank `distance` above and receives from the one as far below.
fn exchange(round: &mut Round, p: usize, me: usize, distance: usize) {
    round.send((me + distance) % p, vec![Span::output(me, 1)]);
    let from = (me + p - distance) % p;
    round.recv(from, vec![Span::output(from, 1)], None);
}

pub(crate) fn linear(problem: &Problem, _: &Parameters) -> Result<Make1> {
    let p = problem.ranks();
    Ok(Box::new(move |me| {
        let mut round = Round::default();
        (1..p).for_each(|distance| exchange(&mut round, p, me, distance));
        vec![round]
    }))
}

pub(crate) fn pairwise(problem: &Problem, _: &Parameters) -> Result<Make1> {
    let p = problem.ranks();
    let one = move |me, distance| {
        let mut round = Round::default();
        exchange(&mut round, p, me, distance);
        round
    };
    Ok(Box::new(move |me| (1..p).map(|distance| one(me, distance)).collect()))
}

pub(crate) fn linear_cost(problem: &Problem, _: &Parameters) -> Cost {
    let p = problem.ranks();
    Cost::exact(1, p - 1, p - 1)
}

pub(crate) fn pairwise_cost(problem: &Problem, _: &Parameters) -> Cost {
    let p = problem.ranks();
    Cost::exact(p - 1, p - 1, p - 1)
}
