//! How the pieces of a pipeline's lane come from region to region: down a tree, or on a circulant graph, where everybody gets and sends one a round.

use super::circulant::{Circulant, Message};
use super::tree::Tree;

/// The way of a lane's blocks to all regions, which are numbered from the root's on.
pub(super) struct Far {
    graph: Graph,
    blocks: usize,
}

enum Graph {
    Tree(Tree),
    Circulant(Circulant),
}

impl Far {
    pub(super) fn tree(regions: usize, blocks: usize, fan: usize) -> Far {
        Far { graph: Graph::Tree(Tree::new(regions, fan)), blocks }
    }

    pub(super) fn circulant(regions: usize, blocks: usize) -> Far {
        Far { graph: Graph::Circulant(Circulant::new(regions, blocks)), blocks }
    }

    /// The rounds that a block takes to the last region.
    pub(super) fn depth(&self) -> usize {
        match &self.graph {
            Graph::Tree(tree) => tree.depth(),
            Graph::Circulant(graph) => graph.phase(),
        }
    }

    /// How many messages one who serves a lane sends at most.
    pub(super) fn most_sent(&self) -> usize {
        match &self.graph {
            Graph::Tree(tree) => self.blocks * tree.widest(),
            Graph::Circulant(graph) => graph.rounds().len(),
        }
    }

    /// How many rounds have passed when each block is at a place.
    pub(super) fn arrivals(&self, place: usize) -> Vec<usize> {
        let one_by_one = |from: usize| (from..from + self.blocks).collect();
        match &self.graph {
            Graph::Tree(tree) => one_by_one(tree.depth_of(place)),
            Graph::Circulant(_) if place == 0 => one_by_one(0),
            Graph::Circulant(graph) => {
                let mut arrivals = vec![0; self.blocks];
                for Message { round, block, .. } in graph.messages(place).into_iter().filter(|message| !message.sends) {
                    arrivals[block] = round + 1;
                }
                arrivals
            }
        }
    }

    /// What a place receives and sends.
    pub(super) fn messages(&self, place: usize) -> Vec<Message> {
        match &self.graph {
            Graph::Tree(tree) => {
                let mut messages = Vec::new();
                for (block, arrived) in self.arrivals(place).into_iter().enumerate() {
                    let message = |round, sends, other| Message { round, sends, other, block };
                    messages.extend(tree.parent(place).map(|parent| message(arrived - 1, false, parent)));
                    messages.extend(tree.children(place).map(|child| message(arrived, true, child)));
                }
                messages
            }
            Graph::Circulant(graph) => graph.messages(place),
        }
    }
}
