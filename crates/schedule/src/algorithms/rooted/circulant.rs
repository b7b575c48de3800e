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

use std::ops::Range;

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

/// A block that passes between two members, as one of them sees it.
pub(super) struct Message {
    pub(super) round: usize,
    /// Whether it is sent.
    pub(super) sends: bool,
    pub(super) other: usize,
    pub(super) block: usize,
}

/// Who sends what to whom in which round, members counted from the root on.
pub(crate) struct Circulant {
    /// From 1 up to p.
    skips: Vec<usize>,
    blocks: usize,
}

impl Circulant {
    pub(crate) fn new(p: usize, blocks: usize) -> Circulant {
        Circulant { skips: halving(p), blocks }
    }

    /// How many rounds go through all skips.
    pub(crate) fn phase(&self) -> usize {
        self.skips.len() - 1
    }

    /// The rounds that there are, counted from one of the smallest skip. Some are left out before them, so that the last is one of the largest.
    pub(crate) fn rounds(&self) -> Range<usize> {
        match self.phase() {
            0 => 0..0,
            phase => self.idle()..self.idle() + self.blocks - 1 + phase,
        }
    }

    fn idle(&self) -> usize {
        (self.phase() - (self.blocks - 1) % self.phase()) % self.phase()
    }

    /// How far up everybody sends.
    pub(crate) fn skip(&self, round: usize) -> usize {
        self.skips[round % self.phase()]
    }

    /// What a member gets in the rounds of each skip, as if the root sent block k in that of skip k: its own, and others from before.
    pub(crate) fn received(&self, member: usize) -> Vec<isize> {
        let (rounds, own) = (self.phase(), self.own(member));
        let open = ((1 << (rounds + 1)) - 1) & !(1 << own);
        let member = member + self.skips[rounds];
        let mut search = Search { skips: &self.skips, member, open, below: usize::MAX, taken: Vec::new() };
        search.descend(0, rounds + 1);
        let block = |skip: usize| if skip == rounds { own as isize } else { skip as isize - rounds as isize };
        search.taken.into_iter().map(block).collect()
    }

    /// The block that comes to a member straight from the root, among any q: the smallest skip of its sum.
    fn own(&self, member: usize) -> usize {
        let mut rest = member;
        for skip in (0..self.skips.len()).rev() {
            if self.skips[skip] == rest {
                return skip;
            }
            rest -= if self.skips[skip] < rest { self.skips[skip] } else { 0 };
        }
        self.phase()
    }

    /// The block that comes in a round to who has `received` in general; none before the first.
    pub(crate) fn block(&self, received: &[isize], round: usize) -> Option<usize> {
        let phase = self.phase();
        let block = received[round % phase] + (round / phase * phase) as isize - self.idle() as isize;
        usize::try_from(block).ok().map(|block| block.min(self.blocks - 1))
    }

    /// What a member gets and sends, round after round.
    pub(super) fn messages(&self, member: usize) -> Vec<Message> {
        let p = self.skips[self.phase()];
        let received = |member: usize| (member != 0).then(|| self.received(member));
        let above = (0..self.phase()).map(|round| (member + self.skip(round)) % p);
        let (own, above): (_, Vec<_>) = (received(member), above.map(|member| (member, received(member))).collect());
        let mut messages = Vec::new();
        for (round, of_graph) in self.rounds().enumerate() {
            let block = |received: &Option<Vec<isize>>| self.block(received.as_ref()?, of_graph);
            let (up, theirs) = &above[of_graph % above.len()];
            let below = (member + p - self.skip(of_graph)) % p;
            messages.extend(block(theirs).map(|block| Message { round, sends: true, other: *up, block }));
            messages.extend(block(&own).map(|block| Message { round, sends: false, other: below, block }));
        }
        messages
    }
}

/// The rounds of member `me` of `p`; member 0 has all `blocks` in `Output`.
fn rounds(p: usize, me: usize, blocks: usize) -> Vec<Round> {
    let graph = Circulant::new(p, blocks);
    let mut rounds = vec![Round::default(); graph.rounds().len()];
    for Message { round, sends, other, block } in graph.messages(me) {
        let piece = [Span::output(block, 1)];
        match sends {
            true => rounds[round].send(other, piece),
            false => rounds[round].recv(other, piece, None),
        }
    }
    rounds
}

pub(crate) fn circulant(problem: &Problem, parameters: &Parameters) -> Result<Recipe> {
    let (p, root, blocks) = (problem.ranks(), problem.root, blocks(parameters)?);
    Ok(Recipe { blocks, make: Box::new(move |rank| super::from_root(p, root, rank, |me| rounds(p, me, blocks))) })
}

/// The root sends in every round; in a reduce everybody sends each block once.
pub(crate) fn cost(problem: &Problem, parameters: &Parameters) -> Cost {
    let blocks = blocks(parameters).unwrap_or(1);
    let steps = Circulant::new(problem.ranks(), blocks).rounds().len();
    let sent = if problem.collective.reduces() { blocks } else { steps };
    Cost::exact(steps, sent, sent)
}

/// How many blocks pay depends on the vector, which the model knows.
pub(crate) fn variants(_: &Problem) -> Vec<String> {
    [4, 1, 7].map(|blocks| format!("blocks={blocks}")).into()
}
