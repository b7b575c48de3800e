//! Every block goes straight to its destination: all at once (spread-out), or one exchange a round (pairwise).
//!
//! ```text
//! p = 4, rank 1   spread-out: sends to 2 3 0 and receives from 0 3 2 in one round; pairwise: in three
//! ```
//!
//! p-1 messages, p-1 blocks: the least there can be · any p

use super::Post;
use crate::registry::{Cost, Parameters, Recipe};
use crate::{Problem, Result, Round, Span};

pub(crate) fn spread_out(problem: &Problem, _: &Parameters) -> Result<Recipe> {
    let p = problem.ranks();
    let make = move |me| {
        let mut round = own_block(me);
        (1..p).for_each(|distance| exchange(&mut round, Post::new(p, me), distance));
        vec![round]
    };
    Ok(Recipe { blocks: p * p, make: Box::new(make) })
}

pub(crate) fn pairwise(problem: &Problem, _: &Parameters) -> Result<Recipe> {
    let p = problem.ranks();
    let make = move |me| {
        let mut rounds = vec![own_block(me)];
        rounds.extend((1..p).map(|distance| {
            let mut round = Round::default();
            exchange(&mut round, Post::new(p, me), distance);
            round
        }));
        rounds
    };
    Ok(Recipe { blocks: p * p, make: Box::new(make) })
}

/// What a rank has for itself.
pub(crate) fn own_block(me: usize) -> Round {
    let mut round = Round::default();
    round.copy(Span::input(me, 1), Span::output(me, 1));
    round
}

fn exchange(round: &mut Round, post: Post, distance: usize) {
    let (to, from) = ((post.me + distance) % post.p, (post.me + post.p - distance) % post.p);
    round.send(to, vec![post.block(post.me, to)]);
    round.recv(from, vec![post.block(from, post.me)], None);
}

pub(crate) fn spread_out_cost(problem: &Problem, _: &Parameters) -> Cost {
    let p = problem.ranks();
    Cost::exact(1, p - 1, p - 1)
}

pub(crate) fn pairwise_cost(problem: &Problem, _: &Parameters) -> Cost {
    let p = problem.ranks();
    Cost::exact(p - 1, p - 1, p - 1)
}
