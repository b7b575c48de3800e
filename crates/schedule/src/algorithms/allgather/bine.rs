//! The Bine butterfly as an allgather: the farthest first, so that the most data travels the least far. (De Sensi et al. 2025.)
//!
//! In every round two ranks meet, at the distances of [`bine`](crate::algorithms::bine), and with a power of two of ranks each sends the other
//! all that it holds.
//!
//! ```text
//! p = 8, rank 2   start   round 1 (with 5)   round 2 (with 1)   round 3 (with 3)
//! holds           2       2 5                1 2 5 6            0 1 2 3 4 5 6 7
//! ```
//!
//! *Any p.* After s rounds in which everything were sent, a block would be with the ranks at 2^(s-1) even distances in a row from its
//! owner, and at as many odd ones in a row: so an even p of at most 2^s misses nobody. Of what would come twice, the message of the later round
//! stays, which goes less far; so the last round moves half of the blocks, the one before it half of the rest, or nearly.
//! With an odd p, the last rank takes the parts of two, its own and that of a further rank with an empty block. What either part receives
//! first does not come by the other. In the last round, which moves the most, the two parts would meet each other, so that nothing is sent.
//!
//! ceil(log2 p) rounds, p-1 blocks; with an odd p the last rank sends two messages a round, and some send a block more

use crate::algorithms::bine::{distance, partner};
use crate::math::ceil_log;
use crate::registry::{Cost, Make1, Parameters};
use crate::schedule::push_span;
use crate::{InlineVec, Problem, Result, Round, Span};

pub(crate) fn bine(problem: &Problem, _: &Parameters) -> Result<Make1> {
    let parts = Parts::new(problem.ranks());
    Ok(Box::new(move |rank| parts.rounds(rank)))
}

pub(crate) fn cost(problem: &Problem, _: &Parameters) -> Cost {
    let p = problem.ranks();
    let rounds = ceil_log(2, p);
    match p.is_multiple_of(2) {
        true => Cost::exact(rounds, rounds, p - 1),
        // The last rank sends twice what its parts would, but for the last round, which has half of the blocks, or nearly (a test says how nearly).
        false => Cost::at_most(rounds, rounds.max(2 * (rounds - 1)), p + 2 * rounds),
    }
}

/// An even number of parts, each played by a rank; where blocks get to, as they do from part 0.
struct Parts {
    ranks: usize,
    parts: usize,
    /// The round in which the block of part 0 gets to each part, from 1 on.
    round_of: Vec<u8>,
    /// The parts that it gets to in each round.
    reached: Vec<Vec<usize>>,
}

impl Parts {
    fn new(ranks: usize) -> Parts {
        let parts = ranks.next_multiple_of(2);
        let rounds = ceil_log(2, parts);
        let round_of = rounds_from_first(parts, rounds);
        let mut reached = vec![Vec::new(); rounds];
        for (part, &round) in round_of.iter().enumerate().filter(|(_, round)| **round > 0) {
            reached[usize::from(round) - 1].push(part);
        }
        Parts { ranks, parts, round_of, reached }
    }

    fn rank_of(&self, part: usize) -> usize {
        part.min(self.ranks - 1)
    }

    /// Where a part is, seen from the owner of a block; an odd owner looks the other way.
    fn seen_from(&self, owner: usize, part: usize) -> usize {
        let (behind, ahead) = if owner.is_multiple_of(2) { (owner, part) } else { (part, owner) };
        (ahead + self.parts - behind) % self.parts
    }

    /// The blocks that a part receives in a round, ascending.
    fn arriving(&self, part: usize, round: usize) -> InlineVec<Span> {
        // The inverse of what owners see.
        let owner = |&away: &usize| match (part + away).is_multiple_of(2) {
            true => (part + self.parts - away) % self.parts,
            false => (part + away) % self.parts,
        };
        let mut blocks: Vec<usize> = self.reached[round].iter().map(owner).collect();
        blocks.retain(|&block| block < self.ranks && self.is_new(part, block, round));
        blocks.sort_unstable();
        let mut spans = InlineVec::new();
        blocks.into_iter().for_each(|block| push_span(&mut spans, Span::output(block, 1)));
        spans
    }

    /// Whether a block that gets to a part in a round is new to its rank, which may play another part, too.
    fn is_new(&self, part: usize, block: usize, round: usize) -> bool {
        let rank = self.rank_of(part);
        if self.ranks == self.parts || rank + 1 < self.ranks {
            return true;
        }
        let other = if part == rank { part + 1 } else { rank };
        let there = usize::from(self.round_of[self.seen_from(block, other)]);
        block != rank && (round + 1 < there || round + 1 == there && part == rank)
    }

    fn rounds(&self, rank: usize) -> Vec<Round> {
        let played = if rank + 1 < self.ranks { rank..rank + 1 } else { rank..self.parts };
        let one = |index: usize| {
            let mut round = Round::default();
            for part in played.clone() {
                let partner = partner(self.parts, part, self.reached.len() - 1 - index);
                let peer = self.rank_of(partner);
                if peer == rank {
                    continue;
                }
                let (sent, received) = (self.arriving(partner, index), self.arriving(part, index));
                if !sent.is_empty() {
                    round.send(peer, sent);
                }
                if !received.is_empty() {
                    round.recv(peer, received, None);
                }
            }
            round
        };
        (0..self.reached.len()).map(one).collect()
    }
}

/// The round, from 1 on, in which the block of part 0 gets to each part; 0 for part 0.
fn rounds_from_first(parts: usize, rounds: usize) -> Vec<u8> {
    const NEVER: u8 = u8::MAX;
    let (mut earliest, mut holders) = (vec![NEVER; parts], vec![0]);
    earliest[0] = 0;
    for round in 0..rounds {
        for index in 0..holders.len() {
            let to = partner(parts, holders[index], rounds - 1 - round);
            if earliest[to] == NEVER {
                earliest[to] = round as u8 + 1;
                holders.push(to);
            }
        }
    }
    // From the last round on: of two that meet, and need the block by then, one has to have it before.
    let mut round_of = vec![NEVER; parts];
    let mut need: Vec<usize> = (0..parts).collect();
    for round in (0..rounds).rev() {
        let step = rounds - 1 - round;
        // Where the block would be, were there a power of two of parts: 0 and what step + 1 reaches from there, again and again.
        let elsewhere = |part: usize| {
            let (period, offset) = (4 << step, part as i64 - if 2 * part > parts { parts as i64 } else { 0 });
            ![0, distance(step + 1).rem_euclid(period)].contains(&offset.rem_euclid(period))
        };
        let mut before = Vec::with_capacity(need.len() / 2 + 1);
        for &part in &need {
            let peer = partner(parts, part, step);
            let (needed, now) = (|part: usize| round_of[part] == NEVER, round as u8 + 1);
            if peer < part && (needed(peer) || round_of[peer] == now) || round_of[part] == now {
                continue; // seen to, or will be, from the other side
            }
            // Who can have it by then, needs it in any case, and is where it would be, the first of these first.
            let worth = |part: usize| (usize::from(earliest[part]) > round, !needed(part), elsewhere(part));
            let (holder, other) = if worth(part) <= worth(peer) { (part, peer) } else { (peer, part) };
            if needed(other) {
                round_of[other] = now;
            }
            round_of[holder] = NEVER;
            before.push(holder);
        }
        need = before;
    }
    round_of[0] = 0;
    round_of
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_gets_to_all_from_those_who_have_it() {
        for parts in (2..=4098).step_by(2) {
            let rounds = ceil_log(2, parts);
            let round_of = rounds_from_first(parts, rounds);
            for part in 1..parts {
                let round = usize::from(round_of[part]);
                assert!((1..=rounds).contains(&round), "{part} of {parts} in round {round}");
                assert!(usize::from(round_of[partner(parts, part, rounds - round)]) < round, "{part} of {parts}");
            }
            let late = round_of.iter().filter(|round| usize::from(**round) == rounds).count();
            assert!(parts - 2 * late <= 2 * rounds, "half of {parts} in the last round, or nearly: {late}");
        }
    }
}
