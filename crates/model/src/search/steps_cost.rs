//! What a step of a composition costs, as if all ranks began it together; and what is still to come, at least.

use allhands_schedule::{Collective, Composition, Grid, Message, Problem, Step};

use crate::machine::{Level, Protocol};
use crate::{Amount, Machine};

pub(super) struct StepCost<'a> {
    machine: &'a Machine,
    far: &'a Level,
    near: &'a Level,
    grid: Grid,
    /// Bytes of a block, or of the whole vector where that is added up.
    block: f64,
    /// How often the steps are done: forwards, and before that backwards.
    ways: f64,
    /// Seconds that a byte that comes is combined for.
    combine: f64,
    /// Whether whole vectors are added up.
    sums: bool,
}

impl<'a> StepCost<'a> {
    pub(super) fn new(problem: &Problem, amount: Amount, machine: &'a Machine, grid: Grid, sums: bool) -> StepCost<'a> {
        let topology = &problem.topology;
        let level =
            |depth: usize| &machine.levels[machine.level(depth, topology.depth(), topology.region_sizes(depth).1)];
        let collective = problem.collective.family();
        let cut = collective == Collective::Allreduce && !sums;
        let block = if cut { amount.bytes as f64 / problem.ranks() as f64 } else { amount.bytes as f64 };
        StepCost {
            machine,
            far: level(0),
            near: level(topology.depth().min(1)),
            grid,
            block,
            ways: if cut { 2.0 } else { 1.0 },
            combine: if collective.reduces() { machine.combine } else { 0.0 },
            sums,
        }
    }

    fn protocol(&self, message: &Message) -> (Protocol, f64) {
        let bytes = message.blocks as f64 * self.block;
        let level = if message.far { self.far } else { self.near };
        (*level.protocol(bytes as u64), bytes)
    }

    /// Until the last rank is through.
    pub(super) fn step(&self, step: &Step, messages: &[Message]) -> f64 {
        if *step == Step::Share {
            return self.ways * self.near.meeting;
        }
        let ports = self.machine.ports.unwrap_or(usize::MAX);
        let mut sending = vec![(0.0f64, 0usize); self.grid.seats];
        let mut receiving = sending.clone();
        let (mut wait, mut injected) = (0.0f64, 0.0);
        let far_senders = {
            let mut far: Vec<usize> =
                messages.iter().filter(|message| message.far).map(|message| message.from).collect();
            far.sort_unstable();
            far.dedup();
            far.len()
        };
        let mut longest = 0.0f64;
        for message in messages {
            let (protocol, bytes) = self.protocol(message);
            let protocol = if message.far { protocol.among(far_senders) } else { protocol };
            let busy = protocol.overhead + protocol.per_byte * bytes;
            wait = wait.max(protocol.latency - protocol.overhead);
            longest = longest.max(busy);
            for (seat, busiest) in [(message.from, &mut sending), (message.to, &mut receiving)] {
                busiest[seat].0 += busy;
                busiest[seat].1 += 1;
            }
            injected += if message.far { protocol.injection * bytes } else { 0.0 };
        }
        let through = |(busy, messages): &(f64, usize)| busy / (*messages).clamp(1, ports) as f64;
        let busiest = sending.iter().chain(&receiving).map(through).fold(longest, f64::max);
        let came = messages.iter().map(|message| message.blocks as f64 * self.block).fold(0.0, f64::max);
        self.ways * (wait + busiest.max(injected)) + came * self.combine
    }

    /// What is lacking comes to somebody at the rate of his ports, and takes a latency.
    pub(super) fn rest(&self, composition: &Composition) -> f64 {
        let lacking = composition.lacking();
        if lacking == 0 {
            return 0.0;
        }
        let Grid { regions, seats } = self.grid;
        let has = regions * seats - lacking;
        let ports = self.machine.ports.unwrap_or(1).max(1);
        // Everybody can learn as much from each of his ports as he knows himself.
        let rounds = ((regions * seats) as f64 / has.max(1) as f64).ln() / ((ports + 1) as f64).ln();
        let least = |of: fn(&Protocol) -> f64| {
            self.near.protocols.iter().chain(&self.far.protocols).map(of).fold(f64::INFINITY, f64::min)
        };
        let bytes = if self.sums { self.block } else { lacking as f64 * self.block };
        let latency = least(|protocol| protocol.latency).min(self.near.meeting.max(f64::MIN_POSITIVE));
        self.ways * (rounds.ceil().max(1.0) * latency).max(bytes * least(|protocol| protocol.per_byte) / ports as f64)
    }
}
