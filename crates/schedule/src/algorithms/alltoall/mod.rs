//! Alltoalls. Block (s, d), what rank s has for rank d, is number s·p + d; it moves as a whole, from the input of s, over
//! the scratch of ranks between, or memory they share, to the output of d. Where it is on any rank follows from that rank
//! alone.

pub(crate) mod bruck;
pub(crate) mod direct;
pub(crate) mod leaders;
pub(crate) mod node_aware;

use super::node::{Region, copy_all};
use crate::schedule::push_span;
use crate::{InlineVec, Round, Space, Span, Topology};

/// A rank among `p`, and where blocks are in its memory.
#[derive(Clone, Copy)]
pub(crate) struct Post {
    pub(crate) p: usize,
    pub(crate) me: usize,
    /// Where what is neither from nor for this rank is: the space, and where its line begins.
    between: (Space, usize),
}

impl Post {
    /// With what passes through in scratch.
    pub(crate) fn new(p: usize, me: usize) -> Post {
        Post { p, me, between: (Space::Scratch, 0) }
    }

    /// With what passes through in the memory of a region.
    pub(crate) fn shared(p: usize, me: usize, region: &Region) -> Post {
        Post { p, me, between: (Space::Shared, region.base(p * p)) }
    }

    /// Where block (s, d) is on its way.
    fn passing(self, (s, d): (usize, usize)) -> Span {
        Span::new(self.between.0, self.between.1 + s * self.p + d, 1)
    }

    /// Lays out some of its own blocks for others of the region.
    pub(crate) fn copy_in(self, round: &mut Round, blocks: &[(usize, usize)]) {
        copy_all(round, self.blocks(blocks.iter().copied()), self.all_passing(blocks));
    }

    /// Takes blocks that others of the region have laid out for it.
    pub(crate) fn copy_out(self, round: &mut Round, blocks: &[(usize, usize)]) {
        copy_all(round, self.all_passing(blocks), self.blocks(blocks.iter().copied()));
    }

    fn all_passing(self, blocks: &[(usize, usize)]) -> InlineVec<Span> {
        let mut spans = InlineVec::new();
        blocks.iter().for_each(|&block| push_span(&mut spans, self.passing(block)));
        spans
    }

    /// Where block (s, d) is while this rank has it.
    pub(crate) fn block(self, s: usize, d: usize) -> Span {
        match () {
            _ if s == self.me => Span::input(d, 1),
            _ if d == self.me => Span::output(s, 1),
            _ => self.passing((s, d)),
        }
    }

    /// Where some blocks are.
    pub(crate) fn blocks(self, pairs: impl IntoIterator<Item = (usize, usize)>) -> InlineVec<Span> {
        let mut spans = InlineVec::new();
        pairs.into_iter().for_each(|(s, d)| push_span(&mut spans, self.block(s, d)));
        spans
    }
}

/// All pairs of a source and a destination, the sources slower; none to itself.
pub(crate) fn pairs(sources: &[usize], destinations: &[usize]) -> impl Iterator<Item = (usize, usize)> {
    sources.iter().flat_map(move |&s| destinations.iter().map(move |&d| (s, d))).filter(|(s, d)| s != d)
}

/// The ranks on some seats.
pub(crate) fn ranks_on(topology: &Topology, seats: std::ops::Range<usize>) -> Vec<usize> {
    seats.map(|seat| topology.rank_at(seat)).collect()
}
