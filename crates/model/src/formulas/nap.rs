//! The allreduce models of the NAP paper (Bienz, Olson and Gropp 2019).
//!
//! All three split steps into near ones, among the ranks of a node, and far ones, which all ranks of a node (recursive doubling,
//! NAP) or one (SMP) send.

use super::{Postal, ceil_log};

/// What the models need to know.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setting {
    /// Nodes.
    pub nodes: usize,
    /// Ranks of a node.
    pub per_node: usize,
    /// Bytes of the vector.
    pub bytes: f64,
    /// Messages inside a node.
    pub near: Postal,
    /// Messages between nodes when one rank of the node sends.
    pub alone: Postal,
    /// Messages between nodes when all ranks of the node send.
    pub crowded: Postal,
    /// Seconds to combine a byte.
    pub combine: f64,
}

impl Setting {
    fn near_step(&self) -> f64 {
        self.near.time(1.0, self.bytes)
    }

    fn combines(&self, times: f64) -> f64 {
        self.combine * self.bytes * times
    }

    fn logs(&self) -> [f64; 3] {
        [self.per_node, self.nodes, self.per_node * self.nodes].map(|count| (count as f64).log2())
    }

    fn ceil_logs(&self) -> [f64; 2] {
        [self.per_node, self.nodes].map(|count| ceil_log(2, count) as f64)
    }
}

/// Eq. 4, recursive doubling.
pub fn recursive_doubling_printed(setting: &Setting) -> f64 {
    let [near, far, all] = setting.logs();
    setting.near_step() * near + setting.crowded.time(1.0, setting.bytes) * far + setting.combines(all)
}

/// Eq. 4 with whole rounds.
pub fn recursive_doubling(setting: &Setting) -> f64 {
    let [near, far] = setting.ceil_logs();
    setting.near_step() * near + setting.crowded.time(1.0, setting.bytes) * far + setting.combines(near + far)
}

/// Eq. 5, SMP: the broadcast back inside the node is left out.
pub fn smp_printed(setting: &Setting) -> f64 {
    let [near, far, all] = setting.logs();
    setting.near_step() * near + setting.alone.time(1.0, setting.bytes) * far + setting.combines(all)
}

/// Eq. 5 with the broadcast, which combines nothing, as the authors' own script has it.
pub fn smp(setting: &Setting) -> f64 {
    let [near, far] = setting.ceil_logs();
    setting.near_step() * 2.0 * near + setting.alone.time(1.0, setting.bytes) * far + setting.combines(near + far)
}

/// Eq. 6, NAP: logarithms to the base of the ranks of a node, and an own partial combined again in every far round.
pub fn nap_printed(setting: &Setting) -> f64 {
    let [_, far, all] = setting.logs();
    let rounds = far / (setting.per_node as f64).log2();
    setting.near_step() * all + setting.crowded.time(1.0, setting.bytes) * rounds + setting.combines(all + rounds)
}

/// Eq. 6 with whole rounds; nothing is combined twice.
pub fn nap(setting: &Setting) -> f64 {
    let [near, _] = setting.ceil_logs();
    let rounds = ceil_log(setting.per_node, setting.nodes) as f64;
    // The last far round may have fewer subgroups than ranks, and then needs fewer near steps.
    let groups = setting.nodes.div_ceil(setting.per_node.pow((rounds as u32).saturating_sub(1)));
    let last = ceil_log(2, groups.min(setting.per_node)) as f64;
    let near_steps = if rounds > 0.0 { near * rounds + last } else { near };
    setting.near_step() * near_steps + setting.crowded.time(1.0, setting.bytes) * rounds + setting.combines(near_steps)
}
