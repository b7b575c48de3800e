//! What a message costs, looked up by its level, the crowd of its node, and its size.

use crate::flat::{Flat, Load, Message, Step};
use crate::machine::{Machine, Protocol};

/// A machine has at most three: short, eager, rendezvous.
const PROTOCOLS: usize = 3;

/// What a message of some level, crowd and size costs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    pub(super) bytes: f64,
    pub(super) latency: f64,
    /// Seconds for its bytes.
    pub(super) transfer: f64,
    /// How long it keeps a port; where messages are flows, that is before its latency.
    pub(super) keeps: f64,
    /// How long it keeps its node from injecting.
    pub(super) injection: f64,
    /// Which share of its node's injection it can take alone, where messages are flows.
    pub(super) share: f64,
    /// Whether its node's injection is limited, however many bytes it has.
    pub(super) injects: bool,
    pub(super) rendezvous: bool,
    pub(super) far: bool,
}

impl Cost {
    fn of(protocols: &[Protocol; PROTOCOLS], load: Load, unit: u64, flows: bool) -> Cost {
        let bytes = load.weight() * unit;
        let which = (0..PROTOCOLS - 1).find(|&at| bytes <= protocols[at].up_to).unwrap_or(PROTOCOLS - 1);
        let (protocol, bytes) = (&protocols[which], bytes as f64);
        Cost {
            bytes,
            latency: protocol.latency - if flows { protocol.overhead } else { 0.0 },
            transfer: protocol.per_byte * bytes,
            keeps: protocol.overhead + if flows { 0.0 } else { protocol.per_byte * bytes },
            injection: protocol.injection * bytes,
            share: protocol.injection / protocol.per_byte,
            injects: protocol.injection > 0.0,
            rendezvous: protocol.rendezvous,
            far: load.level() == 0,
        }
    }
}

/// What each load costs, and each work.
pub(super) struct Lanes {
    /// Of each level, in the first crowd.
    protocols: Vec<[Protocol; PROTOCOLS]>,
    costs: Vec<Cost>,
    works: Vec<f64>,
}

impl Lanes {
    pub(super) fn new(flat: &Flat, machine: &Machine) -> Lanes {
        let of_crowd = |crowd: usize| -> Vec<[Protocol; PROTOCOLS]> {
            (0..flat.region_sizes.len()).map(|level| protocols(flat, machine, level, crowd)).collect()
        };
        let lanes: Vec<_> = (0..flat.crowds.len().max(1)).map(of_crowd).collect();
        let cost = |load: &Load| Cost::of(&lanes[load.crowd()][load.level()], *load, flat.unit, machine.flows);
        Lanes {
            costs: flat.loads.iter().map(cost).collect(),
            works: flat.works.iter().map(|work| work.seconds(machine, flat.unit)).collect(),
            protocols: lanes[0].clone(),
        }
    }

    /// What a message costs.
    #[inline]
    pub(super) fn of(&self, message: &Message) -> &Cost {
        &self.costs[message.load as usize]
    }

    /// Seconds for what a step copies and combines.
    #[inline]
    pub(super) fn work(&self, step: &Step) -> f64 {
        self.works[step.work as usize]
    }

    /// Whether a message can be so large that it travels in such a way.
    pub(super) fn reached(&self, flat: &Flat, way: fn(&Protocol) -> bool) -> bool {
        (0..flat.heaviest.len()).any(|level| {
            let most = flat.heaviest[level] * flat.unit;
            let protocols = &self.protocols[level];
            let last = protocols.iter().position(|protocol| most <= protocol.up_to).unwrap_or(PROTOCOLS - 1);
            protocols[..=last].iter().any(way)
        })
    }

    /// Whether what is shared can make a message wait for one of another rank, or a port choose between two.
    pub(super) fn order_matters(&self, flat: &Flat, machine: &Machine) -> bool {
        let far = || flat.loads.iter().any(|load| load.level() == 0);
        machine.flows
            || self.reached(flat, |protocol| protocol.injection > 0.0)
            || (machine.links.is_some() && far())
            || (machine.ports.is_some_and(|ports| ports < flat.widest)
                && self.reached(flat, |protocol| protocol.rendezvous))
    }
}

/// The protocols of a level, the last one repeated, as ranks of a crowd meet them.
fn protocols(flat: &Flat, machine: &Machine, level: usize, crowd: usize) -> [Protocol; PROTOCOLS] {
    let senders = if level == 0 { flat.crowds.get(crowd).copied().unwrap_or(1) } else { 1 };
    let deepest = flat.region_sizes.len() - 1;
    let all = &machine.levels[machine.level(level, deepest, flat.region_sizes[level])].protocols;
    std::array::from_fn(|at| all[at.min(all.len() - 1)].among(senders))
}
