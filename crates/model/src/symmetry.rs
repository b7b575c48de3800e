//! Schedules that are the same on every node up to rotation: one node stands for all.
//!
//! If the ranks of node n + 1 do what those of node n do, with every peer one node further, then ranks of the same place have
//! the same clock at every moment, so the ranks of one node suffice: a message to place l of a node d further is one that the
//! own rank of place l receives from d nodes back. On a flat topology every rank is a node, and one rank stands for all.
//!
//! Whether it is so is checked, not believed: rank by rank, message by message, sizes included.

use crate::Result;
use crate::crew::Crew;
use crate::flat::{Cast, Flat, Part};
use crate::sizes::Sizes;
use allhands_schedule::{Schedule, Topology};

/// How much is compared before one node stands for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Check {
    /// Every rank of every node, up to [`MOST_COMPARED`] ranks; beyond, those of [`NODES_COMPARED`] nodes.
    Thorough,
    /// A few nodes: good enough for an estimate that only has to rank.
    Quick,
}

/// Up to so many ranks, every one is compared.
pub(crate) const MOST_COMPARED: usize = 1 << 17;

/// With more, so many nodes are: the first ones, the last ones, and others spread evenly.
pub(crate) const NODES_COMPARED: usize = 512;

/// As many for a quick estimate; so many where the first one took long to read.
const QUICKLY_COMPARED: usize = 5;
const QUICKLY_COMPARED_IF_LONG: usize = 2;
const LONG_RUNS: usize = 1 << 13;

/// So few nodes are simulated sooner than a few of them are compared.
const FEW_NODES: usize = 3;

/// So few ranks are compared sooner than other threads have come to help.
const FEW_RANKS: usize = 256;

/// The ranks of the first node, for all.
pub(crate) struct OneNode<'a> {
    topology: &'a Topology,
    nodes: usize,
    size: usize,
}

impl<'a> OneNode<'a> {
    /// Where all nodes have the same shape, and there are several.
    pub(crate) fn new(topology: &'a Topology) -> Option<OneNode<'a>> {
        let even = |level: usize| {
            let (smallest, largest) = topology.region_sizes(level);
            smallest == largest
        };
        let nodes = if topology.depth() == 0 { topology.ranks() } else { topology.regions(1) };
        let regular = (1..=topology.depth()).all(even) && nodes > 1;
        regular.then(|| OneNode { topology, nodes, size: topology.ranks() / nodes })
    }

    fn place(&self, rank: usize) -> (usize, usize) {
        let seat = self.topology.seat_of(rank);
        (seat / self.size, seat % self.size)
    }

    /// Whether there are so few ranks that simulating all takes no longer than comparing them.
    pub(crate) fn few(&self, check: Check) -> bool {
        check == Check::Quick && self.nodes <= FEW_NODES
    }

    /// The node's ranks flattened, if they stand for all.
    pub(crate) fn flat(
        &self,
        make: &(dyn Fn(usize) -> Schedule + Sync),
        sizes: &Sizes,
        check: Check,
        crew: Crew,
    ) -> Option<Result<Flat>> {
        let fill = |part: &mut Part, node: usize| {
            part.clear();
            for place in 0..self.size {
                part.add(&make(self.topology.rank_at(node * self.size + place)), sizes, self.topology, self);
            }
        };
        let mut first = Part::default();
        fill(&mut first, 0);
        let same = |part: &mut Part, node: usize| {
            fill(part, node);
            *part == first
        };
        let compared = match check {
            Check::Thorough if self.topology.ranks() <= MOST_COMPARED => self.nodes,
            Check::Thorough => NODES_COMPARED,
            Check::Quick if first.runs > LONG_RUNS => QUICKLY_COMPARED_IF_LONG,
            Check::Quick => QUICKLY_COMPARED,
        };
        let nodes = sample(self.nodes, compared);
        let all_same = crew.if_worth(nodes.len() * self.size > FEW_RANKS).all(&nodes, same);
        all_same.then(|| Flat::of(vec![first], sizes, self.topology, self, crew))
    }
}

/// So many of the nodes after the first: all, or from both ends and spread evenly between.
fn sample(nodes: usize, count: usize) -> Vec<usize> {
    if count + 1 >= nodes {
        return (1..nodes).collect();
    }
    let ends = (count / 4).max(1);
    let between = count - 2 * ends;
    let spread = (0..between).map(|index| 1 + ends + index * (nodes - 1 - 2 * ends) / between.max(1));
    (1..=ends).chain(spread).chain(nodes - ends..nodes).collect()
}

impl Cast for OneNode<'_> {
    fn len(&self) -> usize {
        self.size
    }

    fn rank(&self, participant: usize) -> usize {
        self.topology.rank_at(participant)
    }

    fn displacement(&self, from: usize, to: usize) -> u32 {
        let ((from, _), (to, _)) = (self.place(from), self.place(to));
        ((to + self.nodes - from) % self.nodes) as u32
    }

    fn participant(&self, rank: usize) -> u32 {
        self.place(rank).1 as u32
    }

    fn node(&self, _: usize) -> u32 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_both_ends_and_nothing_twice() {
        for (nodes, count) in [(2, 5), (7, 5), (7, 2), (100, 5), (4096, 512), (65_536, 512)] {
            let sample = sample(nodes, count);
            assert_eq!((sample[0], sample[sample.len() - 1]), (1, nodes - 1));
            assert!(sample.is_sorted_by(|a, b| a < b), "{sample:?}");
            assert_eq!(sample.len(), count.min(nodes - 1));
        }
    }
}
