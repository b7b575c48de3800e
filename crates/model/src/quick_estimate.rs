//! What a candidate costs at first sight, for those that are too many or too large to be simulated.
//!
//! *By formula*: the closed form of its cost, as if all messages had their mean size: enough to order settings of one algorithm.
//! *By walking*: the rounds of a few ranks, as if nobody ever waited for another: tells near from far, messages from memory.

use allhands_schedule::{Choice, Collective, Cost, Local, Prepared, Problem, Schedule};

use crate::machine::{Level, Protocol};
use crate::sizes::Sizes;
use crate::{Amount, Machine};

/// Schedules of about more operations than this are not made for a quick estimate.
const MOST_WALKED: usize = 1 << 14;

/// So many ranks of the root's node are walked.
const MOST_OF_A_NODE: usize = 16;

/// What a walk has found.
pub(crate) struct Walk {
    pub(crate) seconds: f64,
    /// Runs of memory that the operations of a rank are about, at most: what making and simulating it costs.
    pub(crate) work: usize,
}

/// How many blocks follow one another, if some do.
fn in_turn(prepared: &Prepared) -> Option<usize> {
    prepared.choice()?.blocks_in_turn()
}

/// Whether it treats regions apart.
fn has_levels(prepared: &Prepared) -> bool {
    let named = |choice: &Choice| choice.algorithm.parameters.iter().any(|known| known.name.starts_with("level"));
    prepared.choice().is_some_and(named)
}

/// A problem on a machine, to estimate candidates for it quickly.
pub(crate) struct QuickEstimate<'a> {
    problem: &'a Problem,
    amount: Amount,
    machine: &'a Machine,
    /// What messages cost, by the deepest common region of their ranks.
    levels: Vec<&'a Level>,
}

impl<'a> QuickEstimate<'a> {
    pub(crate) fn new(problem: &'a Problem, amount: Amount, machine: &'a Machine) -> QuickEstimate<'a> {
        let (topology, depths) = (&problem.topology, problem.topology.depth());
        let level = |depth: usize| &machine.levels[machine.level(depth, depths, topology.region_sizes(depth).1)];
        QuickEstimate { problem, amount, machine, levels: (0..=depths).map(level).collect() }
    }

    /// The outermost level that has messages.
    fn outermost(&self) -> usize {
        usize::from(self.problem.topology.depth() > 0 && self.problem.topology.regions(1) == 1)
    }

    /// Seconds by the closed form, on the outermost level that has messages.
    pub(crate) fn formula(&self, prepared: &Prepared) -> f64 {
        if let Some(blocks) = in_turn(prepared) {
            return self.pipelined(prepared, blocks);
        }
        let Cost { steps, messages, blocks, .. } = prepared.cost();
        let bytes = (blocks as f64 * self.mean_block(prepared)) as u64;
        let protocol = self.levels[self.outermost()].protocol(bytes / messages.max(1) as u64);
        let work = if self.problem.collective.reduces() { self.machine.combine } else { 0.0 };
        let latency = protocol.latency - protocol.overhead;
        let side_by_side = if self.machine.flows { steps as f64 / messages.max(1) as f64 } else { 1.0 };
        let ports = self.through_ports(protocol, messages, (bytes as f64 * side_by_side) as u64);
        let alone = steps as f64 * latency + ports + work * bytes as f64;
        // Where regions play no part, all ranks of a node send as much.
        let two_levels = has_levels(prepared);
        let together = if two_levels { 1.0 } else { self.node_size() };
        alone.max(protocol.injection * bytes as f64 * together)
    }

    /// The same where so many blocks follow one another: the first goes all the way, the others come one after the other, each as
    /// soon as the busiest rank is through with the one before.
    fn pipelined(&self, prepared: &Prepared, in_turn: usize) -> f64 {
        let (Cost { steps, messages, blocks, .. }, in_turn) = (prepared.cost(), in_turn as f64);
        let piece = self.mean_block(prepared);
        let level = |depth: usize| self.levels[depth].protocol(piece as u64);
        let (far, inside) = (level(self.outermost()), level(self.levels.len() - 1));
        // Where regions play no part, all ranks of a node send as much, and most of it far.
        let two_levels = has_levels(prepared);
        let (inside, together) = if two_levels { (inside, 1.0) } else { (far, self.node_size()) };
        let depth = (steps as f64 - in_turn).max(0.0);
        // Where regions divide a block, its pieces leave together, and the last waits for the others.
        let burst = if two_levels { far.injection * self.amount.bytes as f64 / in_turn } else { 0.0 };
        let way = depth * (far.latency + far.per_byte * piece + burst);
        let sent = blocks as f64 / in_turn * piece;
        // Lanes go other ways through the regions, so that in every round each waits for another.
        let of_server = if two_levels { far.overhead + far.per_byte * piece } else { 0.0 };
        let near = messages as f64 / in_turn * inside.overhead + inside.per_byte * sent;
        let port = far.latency + of_server + near;
        way + in_turn * port.max(far.injection * sent * together)
    }

    /// Seconds that the slowest of a few ranks needs for its own rounds, and its node for what it sends far: the root's, where there is one.
    /// None if their schedules are too long to be made.
    pub(crate) fn walk(&self, prepared: &Prepared) -> Option<Walk> {
        let Cost { messages, blocks, .. } = prepared.cost();
        let family = self.problem.collective.family();
        let every_block = matches!(family, Collective::Alltoall | Collective::ReduceScatter | Collective::Reduce);
        if messages > MOST_WALKED || (every_block && blocks > MOST_WALKED) {
            return None;
        }
        let sizes = self.sizes(prepared);
        let mut walk = Walk { seconds: 0.0, work: 1 };
        let ranks = self.sample();
        let mut injected = Vec::with_capacity(ranks.len());
        // The slowest of each round.
        let mut slowest: Vec<f64> = Vec::new();
        for &rank in &ranks {
            let schedule = prepared.rank(rank);
            let (alone, far) = self.rounds(&schedule, &sizes);
            slowest.resize(slowest.len().max(alone.len()), 0.0);
            slowest.iter_mut().zip(&alone).for_each(|(slowest, alone)| *slowest = alone.max(*slowest));
            walk.seconds = walk.seconds.max(alone.iter().sum());
            walk.work = walk.work.max(work(&schedule));
            injected.push(far[0]);
        }
        if in_turn(prepared).is_some() {
            // In a pipeline everybody is in the same round, and waits for the others.
            walk.seconds = slowest.iter().sum();
        }
        let of_node = match self.problem.collective.rooted() {
            true => self.border_of_root(prepared, &sizes),
            false => mean(&injected) * self.node_size(),
        };
        walk.seconds = walk.seconds.max(of_node);
        Some(walk)
    }

    /// Seconds for which the root's node sends to others, or takes in: what everybody gets nobody sends in its place. Of large nodes some ranks
    /// stand for all.
    fn border_of_root(&self, prepared: &Prepared, sizes: &Sizes<'_>) -> f64 {
        let topology = &self.problem.topology;
        let root = topology.seat_of(self.problem.root);
        let seats = match (topology.depth(), topology.regions(1)) {
            (0, _) => root..root + 1,
            (_, 1) => return 0.0,
            _ => topology.region(1, topology.region_of_seat(1, root)),
        };
        let (node, step) = (seats.len(), seats.len().div_ceil(MOST_OF_A_NODE));
        let (mut border, mut walked) = ([0.0; 2], 0.0);
        for seat in seats.step_by(step) {
            let (_, far) = self.rounds(&prepared.rank(topology.rank_at(seat)), sizes);
            border = [border[0] + far[0], border[1] + far[1]];
            walked += 1.0;
        }
        border[0].max(border[1]) * node as f64 / walked
    }

    /// On a flat topology every rank is a node.
    fn node_size(&self) -> f64 {
        let topology = &self.problem.topology;
        if topology.depth() == 0 { 1.0 } else { topology.region_sizes(1).1 as f64 }
    }

    /// The bytes of a block, on average.
    pub(crate) fn mean_block(&self, prepared: &Prepared) -> f64 {
        if self.problem.collective.cuts() {
            return self.sizes(prepared).unit as f64;
        }
        let counts = &self.problem.counts;
        let mean = if counts.is_empty() { 1.0 } else { counts.iter().sum::<usize>() as f64 / counts.len() as f64 };
        self.amount.bytes as f64 * mean / self.problem.pieces(prepared.blocks()) as f64
    }

    fn sizes(&self, prepared: &Prepared) -> Sizes<'a> {
        let mut sizes = Sizes::new(self.problem, prepared.blocks(), self.amount);
        sizes.round();
        sizes
    }

    /// The first seats, one in the middle, the last, and the root's.
    fn sample(&self) -> Vec<usize> {
        let ranks = self.problem.ranks();
        let root = self.problem.topology.seat_of(self.problem.root);
        let mut seats = vec![0, 1 % ranks, ranks / 2, ranks - 1, root];
        seats.sort_unstable();
        seats.dedup();
        seats.into_iter().map(|seat| self.problem.topology.rank_at(seat)).collect()
    }

    /// Seconds of each of a rank's rounds, and those for which it keeps its node from injecting and, where that is limited, from taking in.
    fn rounds(&self, schedule: &Schedule, sizes: &Sizes<'_>) -> (Vec<f64>, [f64; 2]) {
        let (mut each, mut injected) = (Vec::with_capacity(schedule.rounds.len()), [0.0; 2]);
        let rank = schedule.rank;
        for round in &schedule.rounds {
            let mut alone = 0.0;
            let (mut wait, mut copied, mut combined): (f64, u64, u64) = (0.0, 0, 0);
            let mut busy = [0.0f64; 2];
            let sends = round.sends.iter().map(|send| (0, send.to, &send.spans, false));
            let recvs = round.recvs.iter().map(|recv| (1, recv.from, &recv.spans, recv.combine.is_some()));
            for (way, peer, spans, combines) in sends.chain(recvs) {
                let bytes = sizes.weight(rank, spans) * sizes.unit;
                let level = self.problem.topology.shared_level(rank, peer);
                let protocol = self.levels[level].protocol(bytes);
                let (travels, time) = match self.machine.flows {
                    true => flow(protocol, bytes, way == 0),
                    false => (protocol.latency - protocol.overhead, self.through_ports(protocol, 1, bytes)),
                };
                wait = wait.max(travels);
                busy[way] = if self.machine.ports.is_some() { busy[way] + time } else { busy[way].max(time) };
                combined += if combines { bytes } else { 0 };
                copied += if level == 0 && !combines && sizes.scattered(rank, spans) { bytes } else { 0 };
                let limited = level == 0 && (way == 0 || self.machine.flows);
                injected[way] += if limited { protocol.injection * bytes as f64 } else { 0.0 };
            }
            for local in &round.locals {
                match local {
                    Local::Copy { from, .. } => copied += sizes.weight(rank, &[*from]) * sizes.unit,
                    Local::Combine { from, .. } => combined += sizes.weight(rank, &[*from]) * sizes.unit,
                    Local::Meet { level } => alone += self.levels[(*level).min(self.levels.len() - 1)].meeting,
                }
            }
            alone += wait + if self.machine.flows { busy[0] + busy[1] } else { busy[0].max(busy[1]) };
            alone += copied as f64 * self.machine.copy + combined as f64 * self.machine.combine;
            each.push(alone);
        }
        (each, injected)
    }

    /// Seconds that so many messages of so many bytes together keep a rank's ports.
    fn through_ports(&self, protocol: &Protocol, messages: usize, bytes: u64) -> f64 {
        let ports = self.machine.ports.unwrap_or(messages.max(1)) as f64;
        (messages as f64 * protocol.overhead + bytes as f64 * protocol.per_byte) / ports
    }
}

/// Seconds for which a flow is under way, and for which its sender or its receiver is kept by it.
fn flow(protocol: &Protocol, bytes: u64, sends: bool) -> (f64, f64) {
    let taken = if protocol.rendezvous { 0.0 } else { protocol.overhead };
    let travels = (protocol.time(bytes) - protocol.overhead - taken).max(0.0);
    (travels, if sends { protocol.overhead } else { taken })
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn work(schedule: &Schedule) -> usize {
    let of_round = |round: &allhands_schedule::Round| {
        let sent: usize = round.sends.iter().map(|send| 1 + send.spans.len()).sum();
        let received: usize = round.recvs.iter().map(|recv| 1 + recv.spans.len()).sum();
        sent + received + round.locals.len()
    };
    schedule.rounds.iter().map(of_round).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Simulator;
    use allhands_schedule::{Choice, Topology};

    /// Under the postal model, where all ranks do the same, nobody waits: a walk is the whole truth.
    #[test]
    fn a_walk_is_exact_where_nobody_waits() {
        let machine = Machine::postal(1e-6, 1e-9);
        let problem = Problem::new(Collective::Allgather, Topology::flat(12).unwrap());
        for name in ["ring", "bruck", "bruck:radix=3", "circulant", "sparbit"] {
            let prepared = Choice::parse(Collective::Allgather, name).unwrap().prepare(&problem).unwrap();
            let quick_estimate = QuickEstimate::new(&problem, Amount::bytes(1000), &machine);
            let exact = Simulator::new(&prepared).run(&machine, Amount::bytes(1000)).unwrap().seconds;
            assert!((quick_estimate.walk(&prepared).unwrap().seconds / exact - 1.0).abs() < 1e-9, "{name}");
            assert!((quick_estimate.formula(&prepared) / exact - 1.0).abs() < 1e-9, "{name}");
        }
    }

    /// Likewise where messages are flows and a rank has one at a time.
    #[test]
    fn a_walk_is_exact_where_no_flow_waits() {
        let machine = Machine::parse(include_str!("../tests/simgrid/cluster.toml")).unwrap();
        let problem = Problem::new(Collective::Allgather, Topology::regular(12, 1).unwrap());
        for (name, bytes) in [("ring", 1000), ("bruck", 80), ("circulant", 80), ("ring", 100_000), ("sparbit", 100_000)]
        {
            let prepared = Choice::parse(Collective::Allgather, name).unwrap().prepare(&problem).unwrap();
            let quick_estimate = QuickEstimate::new(&problem, Amount::bytes(bytes), &machine);
            let exact = Simulator::new(&prepared).run(&machine, Amount::bytes(bytes)).unwrap().seconds;
            assert!((quick_estimate.walk(&prepared).unwrap().seconds / exact - 1.0).abs() < 1e-9, "{name} {bytes}");
            assert!((quick_estimate.formula(&prepared) / exact - 1.0).abs() < 1e-9, "{name} {bytes}");
        }
    }

    #[test]
    fn a_walk_tells_near_from_far() {
        let machine = Machine::shipped("lassen").unwrap();
        let problem = Problem::new(Collective::Allgather, Topology::regular(1024, 16).unwrap());
        let walk = |name: &str| {
            let prepared = Choice::parse(Collective::Allgather, name).unwrap().prepare(&problem).unwrap();
            QuickEstimate::new(&problem, Amount::bytes(8), &machine).walk(&prepared).unwrap().seconds
        };
        assert!(walk("loc-bruck") < walk("bruck"));
    }
}
