//! What no algorithm can beat on a machine, in seconds.
//!
//! `T >= max(steps · latency, bytes of the busiest rank · time per byte, far bytes of it, bytes of a node · injection, combining)`,
//! each factor the least that the machine has: an argument about growth for the first (a rank that knows something can tell at most so
//! many others within a latency), one about volume for the others. Where ranks of a node share memory, only what is far counts.

use allhands_schedule::{Bounds, Collective, Problem};

use crate::machine::{Level, Protocol};
use crate::{Amount, Machine};

/// The parts of the bound, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// Steps, each of the least latency.
    pub steps: f64,
    /// Far steps.
    pub far_steps: f64,
    /// Bytes that the busiest rank sends or receives, through its ports.
    pub bytes: f64,
    /// Bytes that cross the border of a node, through what its ranks share.
    pub node: f64,
    /// Operands that somebody combines.
    pub combine: f64,
}

impl Bound {
    /// For a problem and an amount; `shares` if ranks of a node share memory.
    ///
    /// ```
    /// use allhands_model::{Amount, Bound, Machine};
    /// use allhands_schedule::{Collective, Problem, Topology};
    /// let problem = Problem::new(Collective::Allgather, Topology::flat(16)?);
    /// let bound = Bound::new(&problem, &Machine::postal(1e-6, 1e-9), Amount::bytes(100), false);
    /// assert_eq!(bound.steps, 4e-6);
    /// assert!((bound.seconds() - 4e-6).abs() < 1e-12); // 15 blocks of 100 bytes take 1.5 us
    /// # Ok::<(), allhands_schedule::Error>(())
    /// ```
    pub fn new(problem: &Problem, machine: &Machine, amount: Amount, shares: bool) -> Bound {
        let topology = &problem.topology;
        let depths = topology.depth();
        let level = |depth: usize| &machine.levels[machine.level(depth, depths, topology.region_sizes(depth).1)];
        let far = level(0);
        let levels: Vec<&Level> = (0..=depths).map(level).collect();
        let ports = |levels: &[&Level]| {
            let per_latency = levels.iter().flat_map(|level| &level.protocols).map(messages_per_latency);
            let at_once = machine.ports.unwrap_or(usize::MAX);
            per_latency.max().unwrap_or(1).saturating_mul(at_once)
        };
        let least = |levels: &[&Level], cost: fn(&Protocol) -> f64| {
            levels.iter().flat_map(|level| &level.protocols).map(cost).fold(f64::INFINITY, f64::min)
        };
        let latency =
            |protocol: &Protocol| protocol.latency.min(protocol.crowd.map_or(f64::INFINITY, |crowd| crowd.latency));
        let per_byte =
            |protocol: &Protocol| protocol.per_byte.min(protocol.crowd.map_or(f64::INFINITY, |crowd| crowd.per_byte));
        // In units of a block of one byte the bounds on blocks are bounds on bytes.
        let cut = problem.collective.cuts();
        let (blocks, block) = if cut { (amount.bytes as usize, 1.0) } else { (problem.ranks(), amount.bytes as f64) };
        let equal = if problem.counts.is_empty() { 1.0 } else { 0.0 };
        let all = Bounds::new(problem, ports(&levels), blocks);
        let across = Bounds::new(problem, ports(&[far]), blocks);
        // Bytes that flow side by side keep no port.
        let ports_of_bytes = machine.ports.filter(|_| !machine.flows);
        let through = ports_of_bytes.map_or(0.0, |ports| 1.0 / ports as f64) * block * equal;
        let near = if shares { 0.0 } else { 1.0 };
        let node_bytes = across.far_blocks as f64 * topology.region_sizes(1).0 as f64 * block * equal;
        let wire = machine.links.as_ref().map_or(0.0, |links| links.node);
        let combined = match problem.collective.family() {
            Collective::Allreduce | Collective::Reduce | Collective::Scan => {
                amount.bytes as f64 * share_of_others(problem)
            }
            Collective::ReduceScatter => amount.bytes as f64 * (problem.ranks() - 1) as f64 * equal,
            _ => 0.0,
        };
        let far_ranks = if depths == 0 { 0.0 } else { 1.0 };
        Bound {
            steps: near * all.steps as f64 * least(&levels, latency),
            far_steps: far_ranks * across.far_steps as f64 * least(&[far], latency),
            bytes: (near * all.blocks as f64 * through * least(&levels, per_byte))
                .max(far_ranks * across.far_blocks as f64 * through * least(&[far], per_byte)),
            node: far_ranks * node_bytes * least(&[far], |protocol| protocol.injection).max(wire),
            combine: combined * machine.combine,
        }
    }

    /// The largest of all.
    pub fn seconds(&self) -> f64 {
        [self.steps, self.far_steps, self.bytes, self.node, self.combine].into_iter().fold(0.0, f64::max)
    }
}

/// A vector of m bytes has m (p - 1) operands to combine, at best by all p ranks equally.
fn share_of_others(problem: &Problem) -> f64 {
    (problem.ranks() - 1) as f64 / problem.ranks() as f64
}

/// How many messages one port can begin within the latency of one.
fn messages_per_latency(protocol: &Protocol) -> usize {
    let latency = protocol.latency.max(protocol.crowd.map_or(0.0, |crowd| crowd.latency));
    match protocol.overhead > 0.0 {
        true => (latency / protocol.overhead - 1e-9).ceil().clamp(1.0, 1e9) as usize,
        false => usize::MAX,
    }
}
