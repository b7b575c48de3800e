//! Alltoalls. Block (s, d), what rank s has for rank d, is number s·p + d; it moves as a whole, from the input of s, over
//! the scratch of ranks between, to the output of d. Where it is on any rank follows from that rank alone.

pub(crate) mod bruck;
pub(crate) mod direct;
pub(crate) mod leaders;
pub(crate) mod node_aware;

use crate::schedule::push_span;
use crate::{Span, Topology};

/// A rank among `p`, and where blocks are in its memory.
#[derive(Clone, Copy)]
pub(crate) struct Post {
    pub(crate) p: usize,
    pub(crate) me: usize,
}

impl Post {
    /// Where block (s, d) is while this rank has it.
    pub(crate) fn block(self, s: usize, d: usize) -> Span {
        match () {
            _ if s == self.me => Span::input(d, 1),
            _ if d == self.me => Span::output(s, 1),
            _ => Span::scratch(s * self.p + d, 1),
        }
    }

    /// Where some blocks are.
    pub(crate) fn blocks(self, pairs: impl IntoIterator<Item = (usize, usize)>) -> Vec<Span> {
        let mut spans = Vec::new();
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
