//! What a message costs, looked up by its level, the crowd of its node, and its size.

use crate::flat::{self, Flat, Message};
use crate::machine::{Machine, Protocol};

/// A machine has at most three: short, eager, rendezvous.
const PROTOCOLS: usize = 3;

/// What a message of some level, crowd and size costs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cost {
    up_to: u64,
    pub(super) latency: f64,
    pub(super) per_byte: f64,
    pub(super) overhead: f64,
    pub(super) injection: f64,
    pub(super) rendezvous: bool,
}

impl Cost {
    fn of(protocol: &Protocol) -> Cost {
        let Protocol { up_to, rendezvous, latency, per_byte, overhead, injection, .. } = *protocol;
        Cost { up_to, latency, per_byte, overhead, injection, rendezvous }
    }

    /// How long a message keeps a port.
    pub(super) fn keeps(&self, bytes: f64) -> f64 {
        self.overhead + self.per_byte * bytes
    }
}

/// The costs of each level and crowd, by lane.
pub(super) struct Lanes {
    costs: Vec<[Cost; PROTOCOLS]>,
    unit: u64,
}

impl Lanes {
    pub(super) fn new(flat: &Flat, machine: &Machine) -> Lanes {
        let depths = flat.region_sizes.len() - 1;
        let crowds = flat.crowds.len().max(1);
        let mut costs = vec![[Cost::default(); PROTOCOLS]; flat::lanes(crowds)];
        for crowd in 0..crowds {
            for level in 0..=depths {
                let senders = if level == 0 { flat.crowds.get(crowd).copied().unwrap_or(1) } else { 1 };
                let protocols = &machine.levels[machine.level(level, depths, flat.region_sizes[level])].protocols;
                let cost = |at: usize| Cost::of(&protocols[at.min(protocols.len() - 1)].among(senders));
                costs[flat::lane(level, crowd)] = std::array::from_fn(cost);
            }
        }
        Lanes { costs, unit: flat.unit }
    }

    /// What a message costs, and its bytes.
    pub(super) fn of(&self, message: &Message) -> (&Cost, f64) {
        let bytes = message.weight() * self.unit;
        let costs = &self.costs[message.lane()];
        let cost = if bytes <= costs[0].up_to {
            &costs[0]
        } else if bytes <= costs[1].up_to {
            &costs[1]
        } else {
            &costs[2]
        };
        (cost, bytes as f64)
    }

    /// Whether a message can be so large that it travels in such a way.
    pub(super) fn reached(&self, flat: &Flat, way: fn(&Cost) -> bool) -> bool {
        (0..flat.heaviest.len()).any(|level| {
            let most = flat.heaviest[level] * flat.unit;
            let costs = &self.costs[flat::lane(level, 0)];
            let last = costs.iter().position(|cost| most <= cost.up_to).unwrap_or(PROTOCOLS - 1);
            costs[..=last].iter().any(way)
        })
    }

    /// Whether what is shared can make a message wait for one of another rank, or a port choose between two.
    pub(super) fn order_matters(&self, flat: &Flat, machine: &Machine) -> bool {
        let far = || flat.messages.iter().any(|message| message.level() == 0);
        self.reached(flat, |cost| cost.injection > 0.0)
            || (machine.links.is_some() && far())
            || (machine.ports.is_some_and(|ports| ports < flat.widest) && self.reached(flat, |cost| cost.rendezvous))
    }
}
