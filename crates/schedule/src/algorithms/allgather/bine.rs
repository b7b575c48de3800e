//! The Bine butterfly as an allgather: the farthest first, so that the most data travels the least far. (De Sensi et al. 2025.)
//!
//! In every round two ranks meet, at the distances of [`bine`](crate::algorithms::bine), and each sends the other what it holds and the
//! other lacks. With a power of two of ranks that is everything it holds.
//!
//! ```text
//! p = 8, rank 2   start   round 1 (with 5)   round 2 (with 1)   round 3 (with 3)
//! holds           2       2 5                1 2 5 6            0 1 2 3 4 5 6 7
//! ```
//!
//! *Any p.* After s rounds in which everything were sent, a block would be with the ranks at 2^(s-1) even distances in a row from its
//! owner, and at as many odd ones in a row: so an even p of at most 2^s misses nobody, and what would come twice is left out.
//! With an odd p, the last rank takes the parts of two, its own and that of a further rank with an empty block. What either part receives
//! first is not sent to the other. In the last round, which moves the most, the two parts would meet each other, so that nothing is sent.
//!
//! ceil(log2 p) rounds, p-1 blocks; with an odd p the last rank sends two messages a round, and more blocks

use crate::algorithms::bine::partner;
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
        // Before the last round a part holds no more than half of the next power of two.
        false => Cost::at_most(rounds, rounds.max(2 * (rounds - 1)), p.max((1 << rounds) - 2)),
    }
}

/// An even number of parts, each played by a rank; where blocks get to, as they do from part 0.
struct Parts {
    ranks: usize,
    parts: usize,
    /// The round in which the block of part 0 gets to each part.
    round_of: Vec<u8>,
    /// The parts that it gets to in each round.
    reached: Vec<Vec<usize>>,
}

impl Parts {
    fn new(ranks: usize) -> Parts {
        const NEVER: u8 = u8::MAX;
        let parts = ranks.next_multiple_of(2);
        let rounds = ceil_log(2, ranks);
        let mut round_of = vec![NEVER; parts];
        let (mut holders, mut reached) = (vec![0], Vec::with_capacity(rounds));
        for round in 0..rounds {
            let partners = holders.iter().map(|&part| partner(parts, part, rounds - 1 - round));
            let fresh: Vec<usize> = partners.filter(|&part| part != 0 && round_of[part] == NEVER).collect();
            fresh.iter().for_each(|&part| round_of[part] = round as u8);
            holders.extend_from_slice(&fresh);
            reached.push(fresh);
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
        block != rank && (round < there || round == there && part == rank)
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
