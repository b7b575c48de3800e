//! Links between nodes, leaves and the core: who holds them until when.

use crate::machine::Links;

/// When each link is free.
pub(super) struct Wires {
    links: Links,
    leaf_of: Vec<u32>,
    from_node: Vec<f64>,
    to_node: Vec<f64>,
    from_leaf: Vec<f64>,
    to_leaf: Vec<f64>,
}

impl Wires {
    pub(super) fn new(links: Links, nodes: usize) -> Wires {
        let mut leaf_of = Vec::with_capacity(nodes);
        for leaf in 0.. {
            if leaf_of.len() >= nodes {
                break;
            }
            let size = links.leaves.get(leaf).or(links.leaves.last()).copied().unwrap_or(1);
            leaf_of.extend(std::iter::repeat_n(leaf as u32, size.max(1).min(nodes - leaf_of.len())));
        }
        let leaves = leaf_of.last().map_or(0, |last| *last as usize + 1);
        Wires {
            links,
            leaf_of,
            from_node: vec![0.0; nodes],
            to_node: vec![0.0; nodes],
            from_leaf: vec![0.0; leaves],
            to_leaf: vec![0.0; leaves],
        }
    }

    /// When a message has got to its last link, if it comes now, and the latency that its way adds. Switches keep what has
    /// to wait: a message holds each link from when it gets there, and only for the time of its bytes.
    pub(super) fn pass(&mut self, from: usize, to: usize, now: f64, bytes: f64) -> (f64, f64) {
        let (from_leaf, to_leaf) = (self.leaf_of[from] as usize, self.leaf_of[to] as usize);
        let hold = |link: &mut f64, start: f64, per_byte: f64| {
            let start = start.max(*link);
            *link = start + per_byte * bytes;
            start
        };
        let mut start = hold(&mut self.from_node[from], now, self.links.node);
        if from_leaf != to_leaf {
            start = hold(&mut self.from_leaf[from_leaf], start, self.links.core);
            start = hold(&mut self.to_leaf[to_leaf], start, self.links.core);
        }
        start = hold(&mut self.to_node[to], start, self.links.node);
        (start, if from_leaf == to_leaf { 0.0 } else { self.links.core_latency })
    }
}
