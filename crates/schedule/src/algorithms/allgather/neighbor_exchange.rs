//! Neighbor exchange: pairs swap what they got last, in turn with the left and with the right neighbour.
//! (Chen, Zhang, Zhang and Yuan 2005; the classic that the Sparbit paper compares with.)
//!
//! ```text
//! p = 6, rank 2   start   round 1 (with 3)   round 2 (with 1)   round 3 (with 3)
//! holds           2       2 3                0 1 2 3            0 1 2 3 4 5
//! ```
//!
//! p/2 rounds, p-1 blocks · p even

use crate::registry::{Cost, Make1, Parameters};
use crate::{Problem, Result, Round, Span};

pub(crate) const NEEDS: &str = "an even number of ranks";

pub(crate) fn neighbor_exchange(problem: &Problem, parameters: &Parameters) -> Result<Make1> {
    let p = problem.ranks();
    if p > 1 && !p.is_multiple_of(2) {
        let remedy = format!("{} or {} ranks would do, and ring and sparbit serve any number", p - 1, p + 1);
        return Err(parameters.unservable(NEEDS, format!("there are {p}"), remedy));
    }
    Ok(Box::new(move |me| if p == 1 { vec![] } else { rounds(p, me) }))
}

fn rounds(p: usize, me: usize) -> Vec<Round> {
    let even = me.is_multiple_of(2);
    let (right, left) = ((me + 1) % p, (me + p - 1) % p);
    let neighbour = if even { [right, left] } else { [left, right] };
    let pair = if even { me } else { me - 1 };
    // The pair of blocks that comes next from either neighbour moves away from us, two blocks a time.
    let mut coming = [pair, pair];
    let away = if even { [2, p - 2] } else { [p - 2, 2] };

    let mut first = Round::default();
    first.send(neighbour[0], vec![Span::output(me, 1)]);
    first.recv(neighbour[0], vec![Span::output(neighbour[0], 1)], None);
    let mut rounds = vec![first];
    let mut last = pair;
    for i in 1..p / 2 {
        let side = i % 2;
        coming[side] = (coming[side] + away[side]) % p;
        let mut round = Round::default();
        round.send(neighbour[side], vec![Span::output(last, 2)]);
        round.recv(neighbour[side], vec![Span::output(coming[side], 2)], None);
        rounds.push(round);
        last = coming[side];
    }
    rounds
}

pub(crate) fn cost(problem: &Problem, _: &Parameters) -> Cost {
    let p = problem.ranks();
    Cost::exact(p / 2, p / 2, p - 1)
}
