//! Bcast and reduce of n blocks on a circulant graph, in as few rounds as there can be: n - 1 + ceil(log2 p). (Träff 2024.)
//!
//! Members are counted from the root on. Skips halve p, rounding up, down to 1, and with q of them round i is one of skip i mod q: everybody sends one
//! block that far up, and gets one from as far below. The root sends block after block; a member gets in q consecutive rounds the
//! new block that comes to it straight from the root, down its sum of skips, and q - 1 older ones that are new elsewhere.
//!
//! ```text
//! p = 5, skips 1 2 3, blocks a b   0->3 a    0->1 b 3->4 a    0->2 b 4->1 a    0->3 b 1->4 b 4->2 a
//! ```
//!
//! Which block comes in which of the q rounds each member finds for itself: it walks down the sums of skips below it, the nearest first, and takes
//! in each round the smallest skip of a sum that is in reach and ends in a skip not taken yet. Blocks before the first are not
//! sent, those after the last are the last; rounds begin with the skip that lets the last round be one of the largest.
//!
//! n - 1 + ceil(log2 p) rounds · as many messages of the root, each of a block · any p · reduce: reversed

use super::pipeline::{BLOCKS, blocks};
use crate::algorithms::allgather::windows::halving;
use crate::registry::{Cost, Parameter, Parameters, Recipe};
use crate::{Problem, Result, Round, Span};

pub(crate) const PARAMETERS: &[Parameter] = &[BLOCKS];

/// The search for what a member gets in q consecutive rounds.
struct Search<'a> {
    /// From 1 up to p.
    skips: &'a [usize],
    /// The member, counted once more around.
    member: usize,
    /// Skips that are not taken yet, a bit each.
    open: u64,
    /// The sum at which the last one was taken: the next is below.
    below: usize,
    /// What comes in each round: the smallest skip of a sum.
    taken: Vec<usize>,
}

impl Search<'_> {
    /// Looks at the sums that begin with `from` and go on with skips below `above`.
    fn descend(&mut self, from: usize, mut above: usize) {
        let rounds = self.skips.len() - 1;
        while self.taken.len() < rounds {
            let open = self.open & ((1 << above) - 1);
            let Some(skip) = open.checked_ilog2().map(|bit| bit as usize) else { return };
            above = skip;
            let sum = from + self.skips[skip];
            let in_reach = |search: &Self| sum <= search.reach(0) && sum < search.below;
            if !in_reach(self) {
                continue;
            }
            if sum <= self.reach(1) {
                self.descend(sum, skip);
                if self.taken.len() == rounds {
                    return;
                }
            }
            if from > self.reach(1) {
                return;
            }
            if in_reach(self) {
                self.taken.push(skip);
                self.open &= !(1 << skip);
                self.below = sum;
            }
        }
    }

    /// Who sends to the member in the next round, or in one later.
    fn reach(&self, later: usize) -> usize {
        self.member - self.skips[self.taken.len() + later]
    }
}

/// The block that comes to a member straight from the root, among any q: the smallest skip of its sum.
fn own(skips: &[usize], member: usize) -> usize {
    let mut rest = member;
    for skip in (0..skips.len()).rev() {
        if skips[skip] == rest {
            return skip;
        }
        rest -= if skips[skip] < rest { skips[skip] } else { 0 };
    }
    skips.len() - 1
}

/// What a member gets in the rounds of each skip, as if the root sent block k in that of skip k: its own, and others from before.
fn received(skips: &[usize], member: usize) -> Vec<isize> {
    let (rounds, own) = (skips.len() - 1, own(skips, member));
    let open = ((1 << (rounds + 1)) - 1) & !(1 << own);
    let mut search = Search { skips, member: member + skips[rounds], open, below: usize::MAX, taken: Vec::new() };
    search.descend(0, rounds + 1);
    let block = |skip: usize| if skip == rounds { own as isize } else { skip as isize - rounds as isize };
    search.taken.into_iter().map(block).collect()
}

/// The rounds of member `me` of `p`; member 0 has all `blocks` in `Output`.
fn rounds(p: usize, me: usize, blocks: usize) -> Vec<Round> {
    let skips = halving(p);
    let q = skips.len() - 1;
    if q == 0 {
        return Vec::new();
    }
    let gets = |member: usize| if member == 0 { None } else { Some(received(&skips, member)) };
    let own = gets(me);
    let others: Vec<(usize, Option<isize>)> = (0..q)
        .map(|skip| (me + skips[skip]) % p)
        .enumerate()
        .map(|(skip, to)| (to, gets(to).map(|blocks| blocks[skip])))
        .collect();
    // Rounds that are left out, so that the last is one of the largest skip.
    let idle = (q - (blocks - 1) % q) % q;
    let piece = |block: isize, round: usize| {
        let block = block + (round / q * q) as isize - idle as isize;
        (block >= 0).then(|| [Span::output((block as usize).min(blocks - 1), 1)])
    };
    let one = |round: usize| {
        let skip = round % q;
        let mut now = Round::default();
        let (to, sent) = others[skip];
        if let Some(piece) = sent.and_then(|block| piece(block, round)) {
            now.send(to, piece);
        }
        if let Some(piece) = own.as_ref().and_then(|gets| piece(gets[skip], round)) {
            now.recv((me + p - skips[skip]) % p, piece, None);
        }
        now
    };
    (idle..blocks - 1 + q + idle).map(one).collect()
}

pub(crate) fn circulant(problem: &Problem, parameters: &Parameters) -> Result<Recipe> {
    let (p, root, blocks) = (problem.ranks(), problem.root, blocks(parameters)?);
    Ok(Recipe { blocks, make: Box::new(move |rank| super::from_root(p, root, rank, |me| rounds(p, me, blocks))) })
}

/// The root sends in every round; in a reduce everybody sends each block once.
pub(crate) fn cost(problem: &Problem, parameters: &Parameters) -> Cost {
    let (skips, blocks) = (halving(problem.ranks()), blocks(parameters).unwrap_or(1));
    let steps = blocks - 1 + skips.len() - 1;
    let sent = if problem.collective.reduces() { blocks } else { steps };
    Cost::exact(steps, sent, sent)
}

/// How many blocks pay depends on the vector, which the model knows.
pub(crate) fn variants(_: &Problem) -> Vec<String> {
    [4, 1, 7].map(|blocks| format!("blocks={blocks}")).into()
}
