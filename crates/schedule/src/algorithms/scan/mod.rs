//! Scans: rank r gets the reduction of the vectors of all ranks up to it (scan), or before it (exscan).
//!
//! - `linear`: along the ranks, one after the other; with `segments` a long vector is in several hands at a time.
//! - `recursive-doubling`: what a rank has so far goes to the rank 1, 2, 4, ... above. (Kogge and Stone.) An exscan first moves everything
//!   up by one.
//! - `123-doubling` (exscan): distances 1, 2, 3, 6, 12, ...: the second message carries the sender's own vector, too, so that nothing is
//!   lost by the move. (Träff.) Never more rounds than `recursive-doubling`, often one less.
//! - `hierarchical`, in its own file: node by node.
//!
//! ```text
//! p = 7, what rank 6 has of an exscan   recursive-doubling: 5 | 4-5 | 2-5 | 0-5      123-doubling: 5 | 3-5 | 0-5
//! ```
//!
//! Operands always stand in the order of the ranks.

pub(crate) mod hierarchical;

use crate::algorithms::allreduce::whole::Group;
use crate::math::ceil_log;
use crate::registry::{Cost, Parameter, Parameters, Recipe};
use crate::{Collective, Combine, Problem, Result, Round, Span};

pub(crate) const LINEAR: &[Parameter] =
    &[Parameter { name: "segments", values: "1..=4096: pieces that a vector travels in", default: "1" }];
const MOST_SEGMENTS: usize = 4096;

fn segments(parameters: &Parameters) -> Result<usize> {
    Ok(parameters.number("segments", 1..=MOST_SEGMENTS)?.unwrap_or(1))
}

pub(crate) fn linear(problem: &Problem, parameters: &Parameters) -> Result<Recipe> {
    let (p, segments, exclusive) = (problem.ranks(), segments(parameters)?, problem.collective == Collective::Exscan);
    let make = move |rank: usize| {
        // Where a piece is that goes on: the input of the first, the output, or what an exscan makes of it.
        let passed = |piece: usize| match rank {
            0 => Span::input(piece, 1),
            _ if exclusive => Span::scratch(piece, 1),
            _ => Span::output(piece, 1),
        };
        // The first rank has a piece at once, others when it has come.
        let delay = usize::from(rank > 0);
        let mut rounds = vec![Round::default(); segments + delay];
        for piece in 0..segments {
            if rank + 1 < p {
                rounds[piece + delay].send(rank + 1, [passed(piece)]);
            }
            let (round, own, result) = (&mut rounds[piece], Span::input(piece, 1), Span::output(piece, 1));
            if rank > 0 {
                round.recv(rank - 1, [result], None);
            }
            match (rank, exclusive) {
                (0, false) => round.copy(own, result),
                (0, true) => {}
                (_, false) => round.combine(own, result, Combine::After),
                (_, true) if rank + 1 < p => {
                    round.copy(result, passed(piece));
                    round.combine(own, passed(piece), Combine::After);
                }
                (_, true) => {}
            }
        }
        rounds.retain(|round| !round.is_empty());
        rounds
    };
    Ok(Recipe { blocks: segments, make: Box::new(make) })
}

pub(crate) fn linear_cost(problem: &Problem, parameters: &Parameters) -> Cost {
    let segments = segments(parameters).unwrap_or(1);
    Cost::exact(problem.ranks() + segments - 2, segments, segments)
}

pub(crate) fn linear_variants(_: &Problem) -> Vec<String> {
    ["", "segments=2", "segments=4", "segments=16", "segments=64"].map(String::from).into()
}

/// Where a member of a group has its vector, and where what it gets goes.
#[derive(Clone, Copy)]
pub(crate) struct Places {
    pub(crate) value: Span,
    pub(crate) result: Span,
    /// Of an exclusive scan: where the result meets the member's own vector.
    pub(crate) both: Span,
}

/// Of all members up to this one. Every member has a result.
pub(crate) fn inclusive(group: &Group<'_>, at: Places) -> Vec<Round> {
    let mut rounds = Vec::new();
    let mut distance = 1;
    while distance < group.size {
        let mut round = Round::default();
        let first = distance == 1;
        if group.me + distance < group.size {
            round.send((group.rank_of)(group.me + distance), [if first { at.value } else { at.result }]);
        }
        if group.me >= distance {
            let from = (group.rank_of)(group.me - distance);
            round.recv(from, [at.result], if first { None } else { Some(Combine::Before) });
            if first {
                round.combine(at.value, at.result, Combine::After);
            }
        } else if first {
            round.copy(at.value, at.result);
        }
        rounds.push(round);
        distance *= 2;
    }
    if rounds.is_empty() {
        rounds.push(Round::default());
        rounds[0].copy(at.value, at.result);
    }
    rounds
}

/// Of all members before this one, by distances in their order. The first member has no result. What is sent the second time is the result with
/// the member's own vector, if `own` says so, else the result, of which the first member has none.
fn exclusive(group: &Group<'_>, at: Places, distances: &[usize], own: bool) -> Vec<Round> {
    let Group { size, me, rank_of } = *group;
    let mut rounds = Vec::new();
    for (index, &distance) in distances.iter().enumerate() {
        let mut round = Round::default();
        // Who has something to send: its own, with or without the result, or the result.
        let sent = match index {
            0 => Some(at.value),
            1 if own && me == 0 => Some(at.value),
            1 if own => Some(at.both),
            _ if me == 0 => None,
            _ => Some(at.result),
        };
        if let Some(sent) = sent.filter(|_| me + distance < size) {
            round.send(rank_of(me + distance), [sent]);
        }
        let least = usize::from(index > usize::from(own));
        if me >= distance + least {
            round.recv(rank_of(me - distance), [at.result], (index > 0).then_some(Combine::Before));
        }
        if index == 0 && own && me > 0 && distances.get(1).is_some_and(|next| me + next < size) {
            round.copy(at.result, at.both);
            round.combine(at.value, at.both, Combine::After);
        }
        rounds.push(round);
    }
    rounds
}

/// What is had of the members before grows to 1, 3, 6, 12, ...
fn distances_123(size: usize) -> Vec<usize> {
    let (mut distances, mut known) = (Vec::new(), 0);
    while known + 1 < size {
        distances.push(match known {
            0 => 1,
            1 => 2,
            known => known,
        });
        known = if known == 1 { 3 } else { (2 * known).max(1) };
    }
    distances
}

/// What is had of the members before grows to 1, 2, 4, ...
fn distances_doubling(size: usize) -> Vec<usize> {
    if size < 2 {
        return Vec::new();
    }
    std::iter::once(1).chain((0..ceil_log(2, size - 1)).map(|bit| 1 << bit)).collect()
}

/// The exclusive scan of fewest rounds.
pub(crate) fn exclusive_123(group: &Group<'_>, at: Places) -> Vec<Round> {
    exclusive(group, at, &distances_123(group.size), true)
}

pub(crate) fn exclusive_123_rounds(size: usize) -> usize {
    distances_123(size).len()
}

const WHOLE: Places = Places {
    value: Span { space: crate::Space::Input, first: 0, count: 1 },
    result: Span { space: crate::Space::Output, first: 0, count: 1 },
    both: Span { space: crate::Space::Scratch, first: 0, count: 1 },
};

fn recipe(problem: &Problem, rounds: fn(&Group<'_>) -> Vec<Round>) -> Recipe {
    let size = problem.ranks();
    let make = move |me| rounds(&Group { size, me, rank_of: &|member| member });
    Recipe { blocks: 1, make: Box::new(make) }
}

pub(crate) fn recursive_doubling(problem: &Problem, _: &Parameters) -> Result<Recipe> {
    Ok(match problem.collective {
        Collective::Exscan => recipe(problem, |group| exclusive(group, WHOLE, &distances_doubling(group.size), false)),
        _ => recipe(problem, |group| inclusive(group, WHOLE)),
    })
}

pub(crate) fn recursive_doubling_cost(problem: &Problem, _: &Parameters) -> Cost {
    let rounds = match problem.collective {
        Collective::Exscan => distances_doubling(problem.ranks()).len(),
        _ => ceil_log(2, problem.ranks()),
    };
    Cost::exact(rounds, rounds, rounds)
}

pub(crate) fn doubling_123(problem: &Problem, _: &Parameters) -> Result<Recipe> {
    Ok(recipe(problem, |group| exclusive_123(group, WHOLE)))
}

pub(crate) fn doubling_123_cost(problem: &Problem, _: &Parameters) -> Cost {
    let rounds = exclusive_123_rounds(problem.ranks());
    Cost::exact(rounds, rounds, rounds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_reach_all_before_in_as_few_rounds_as_is_said() {
        assert_eq!(distances_123(20), [1, 2, 3, 6, 12]);
        assert_eq!(distances_doubling(20), [1, 1, 2, 4, 8, 16]);
        for size in 1..500 {
            let rounds = distances_123(size).len();
            // 3 2^(k-2) ranks before are known after k rounds.
            let formula = (0..).find(|&k| size <= [1, 2, 4].get(k).copied().unwrap_or(3 * (1 << k) / 4 + 1)).unwrap();
            assert_eq!(rounds, formula, "{size}");
            assert!(rounds <= distances_doubling(size).len() && rounds >= ceil_log(2, size), "{size}");
        }
    }
}
