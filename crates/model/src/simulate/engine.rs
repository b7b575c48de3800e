//! The run itself: clocks of ranks, arrivals of messages, what is shared.
//!
//! Where nothing is shared, a message's arrival depends only on when its two ends come to it, so steps run in any order that
//! respects messages: a plain queue of ranks. Where a limit is shared, the order in time decides who waits: a queue by time.

use std::collections::VecDeque;

use super::noise::Noise;
use super::queue::Queue;
use crate::flat::{END, Flat, Message, NO_MEETING, lane};
use crate::machine::{Links, Machine, Protocol};
use crate::{Error, Result};

/// What happens next; at the same time, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A rank comes to its next step.
    Post(u32),
    /// Everybody who comes to a step at this moment has come: its messages may start.
    Start(u32),
    /// The receiver for which a message has waited has come.
    Ready(u32),
    /// A message comes to what its node shares.
    Inject(u32),
}

/// No slot has this arrival: nothing has been heard of the message.
const UNHEARD: f64 = f64::INFINITY;

/// A sender waits at this slot for its receiver.
const WAITING: f64 = f64::NEG_INFINITY;

#[derive(Clone, Copy, Debug)]
struct Rank {
    /// When it came to its step.
    clock: f64,
    /// When the sends of the step are done, as far as known.
    done: f64,
    /// When its port is free, with one port.
    port: f64,
    step: u32,
    /// What the step still waits for.
    pending: u32,
    /// The slots of the step, while it is under way.
    first_slot: u32,
    end_slot: u32,
}

pub(super) struct Engine<'a> {
    flat: &'a Flat,
    machine: &'a Machine,
    noise: &'a Noise,
    lanes: Vec<[Cost; PROTOCOLS]>,
    ranks: Vec<Rank>,
    arrivals: Vec<Arrival>,
    /// When each sending port of each rank is free, with several.
    ports: Vec<f64>,
    /// When each receiving port of each rank is free, with a limited number.
    receiving: Vec<f64>,
    meetings: Vec<Vec<Meeting>>,
    /// Whether the order in time matters, and the queue that serves.
    timed: bool,
    /// Whether ports choose between messages that wait for their receivers.
    handshakes: bool,
    ready: VecDeque<u32>,
    events: Queue<Event>,
    /// When each node may inject next: to the network, then inside.
    injection: Vec<f64>,
    links: Option<Wires>,
    /// Arrivals of a step, in order.
    queueing: Vec<Arrival>,
}

/// When a message arrives, and how long it keeps the port that takes it.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    at: f64,
    keeps: f64,
}

/// More ports than this are as good as any number.
const MOST_PORTS: usize = 256;

/// A machine has at most three: short, eager, rendezvous.
const PROTOCOLS: usize = 3;

/// What a message of some level, crowd and size costs.
#[derive(Clone, Copy, Debug)]
struct Cost {
    up_to: u64,
    latency: f64,
    per_byte: f64,
    overhead: f64,
    injection: f64,
    rendezvous: bool,
}

impl Cost {
    fn of(protocol: &Protocol) -> Cost {
        let Protocol { up_to, rendezvous, latency, per_byte, overhead, injection, .. } = *protocol;
        Cost { up_to, latency, per_byte, overhead, injection, rendezvous }
    }
}

#[derive(Clone, Debug, Default)]
struct Meeting {
    size: u32,
    waiting: Vec<u32>,
    latest: f64,
}

/// When each link is free.
struct Wires {
    links: Links,
    leaf_of: Vec<u32>,
    from_node: Vec<f64>,
    to_node: Vec<f64>,
    from_leaf: Vec<f64>,
    to_leaf: Vec<f64>,
}

/// When all ranks are through.
pub(super) struct Finish {
    pub(super) last: f64,
    pub(super) mean: f64,
    /// Whether the order in time mattered.
    pub(super) timed: bool,
}

impl<'a> Engine<'a> {
    pub(super) fn new(flat: &'a Flat, machine: &'a Machine, noise: &'a Noise) -> Engine<'a> {
        let lanes = lanes(flat, machine);
        let ranks = flat.first_step.iter().map(|&step| Rank {
            clock: 0.0,
            done: 0.0,
            port: 0.0,
            step,
            pending: 0,
            first_slot: 0,
            end_slot: 0,
        });
        let nodes = flat.node_of.iter().max().map_or(0, |last| *last as usize + 1);
        let several = machine.ports.filter(|&ports| ports > 1 && ports < flat.widest).unwrap_or(0);
        Engine {
            flat,
            machine,
            noise,
            timed: order_matters(flat, machine, &lanes),
            handshakes: flat.widest > 1 && reached(flat, &lanes, |cost| cost.rendezvous),
            lanes,
            ranks: ranks.collect(),
            arrivals: vec![Arrival { at: UNHEARD, keeps: 0.0 }; flat.message_of.len()],
            ports: vec![0.0; flat.len() * several],
            receiving: vec![
                f64::NEG_INFINITY;
                flat.len() * machine.ports.filter(|&ports| ports <= MOST_PORTS).unwrap_or(0)
            ],
            meetings: flat.regions.iter().map(|regions| meetings(regions)).collect(),
            ready: VecDeque::with_capacity(flat.len()),
            events: Queue::new(),
            injection: vec![0.0; 2 * nodes],
            links: machine.links.clone().map(|links| Wires::new(links, nodes)),
            queueing: Vec::new(),
        }
    }

    pub(super) fn run(mut self) -> Result<Finish> {
        for rank in 0..self.flat.len() {
            self.ranks[rank].clock = self.noise.late(rank);
            self.go_on(rank);
        }
        if self.timed {
            while let Some((now, event)) = self.events.pop() {
                match event {
                    Event::Post(rank) => self.post(rank as usize),
                    Event::Start(rank) => self.start(rank as usize),
                    Event::Ready(message) => self.send(message as usize, now),
                    Event::Inject(message) => self.inject(message as usize, now),
                }
            }
        } else {
            while let Some(rank) = self.ready.pop_front() {
                self.post(rank as usize);
            }
        }
        if let Some(rank) = self.ranks.iter().position(|rank| rank.step != END) {
            return Err(Error::Deadlock { rank });
        }
        let clocks = || self.ranks.iter().map(|rank| rank.clock);
        let (last, sum) = (clocks().fold(0.0, f64::max), clocks().sum::<f64>());
        Ok(Finish { last, mean: sum / self.flat.len().max(1) as f64, timed: self.timed })
    }

    /// Lets a rank come to its next step, if it has one.
    fn go_on(&mut self, rank: usize) {
        let state = &self.ranks[rank];
        if state.step == END {
            return;
        }
        match self.timed {
            true => self.events.push(state.clock, Event::Post(rank as u32)),
            false => self.ready.push_back(rank as u32),
        }
    }

    /// A rank comes to its step: everything is posted.
    fn post(&mut self, rank: usize) {
        let flat = self.flat;
        let index = self.ranks[rank].step as usize;
        let (step, next) = (&flat.steps[index], &flat.steps[index + 1]);
        if step.meeting != NO_MEETING {
            return self.meet(rank, step.meeting as usize);
        }
        // One more than it waits for, so that it is not through before its messages have started.
        let state = &mut self.ranks[rank];
        let now = state.clock;
        (state.first_slot, state.end_slot) = (step.first_slot, next.first_slot);
        (state.done, state.port) = (now, now);
        let slots = &self.arrivals[step.first_slot as usize..next.first_slot as usize];
        let outstanding = slots.iter().filter(|arrival| arrival.at.is_infinite()).count() as u32;
        state.pending = 1 + outstanding + (next.first_message - step.first_message);
        if !self.ports.is_empty() {
            let several = self.ports.len() / flat.len();
            self.ports[rank * several..(rank + 1) * several].fill(now);
        }
        match self.timed && self.handshakes {
            true => self.events.push(now, Event::Start(rank as u32)),
            false => self.start(rank),
        }
    }

    /// The messages of a step start: those it sends, as far as their receivers are there, then those that have waited for it.
    fn start(&mut self, rank: usize) {
        let flat = self.flat;
        let index = self.ranks[rank].step as usize;
        let (step, next) = (&flat.steps[index], &flat.steps[index + 1]);
        let now = self.ranks[rank].clock;
        for index in step.first_message..next.first_message {
            let message = &flat.messages[index as usize];
            if !self.protocol(message).rendezvous {
                self.ranks[rank].pending -= 1;
                self.send(index as usize, now);
                continue;
            }
            let receiver = &self.ranks[message.to as usize];
            if (receiver.first_slot..receiver.end_slot).contains(&message.slot) {
                self.send(index as usize, now.max(receiver.clock));
            } else {
                self.arrivals[message.slot as usize].at = WAITING;
            }
        }
        for slot in step.first_slot..next.first_slot {
            if self.arrivals[slot as usize].at == WAITING {
                let message = flat.message_of[slot as usize] as usize;
                self.arrivals[slot as usize].at = UNHEARD;
                let ready = now.max(self.ranks[flat.messages[message].from as usize].clock);
                match self.timed && self.handshakes {
                    true => self.events.push(ready, Event::Ready(message as u32)),
                    false => self.send(message, ready),
                }
            }
        }
        self.one_less(rank);
    }

    /// A message is ready to leave: it takes a port of its sender.
    fn send(&mut self, index: usize, ready: f64) {
        let message = &self.flat.messages[index];
        let protocol = *self.protocol(message);
        let bytes = self.bytes(message);
        let from = message.from as usize;
        let kept = protocol.overhead + protocol.per_byte * bytes;
        let start = match self.machine.ports {
            Some(1) => {
                let start = ready.max(self.ranks[from].port);
                self.ranks[from].port = start + kept;
                start
            }
            Some(_) if !self.ports.is_empty() => {
                let several = self.ports.len() / self.flat.len();
                let ports = &mut self.ports[from * several..(from + 1) * several];
                let free = (0..several).min_by(|&a, &b| ports[a].total_cmp(&ports[b])).unwrap_or(0);
                let start = ready.max(ports[free]);
                ports[free] = start + kept;
                start
            }
            _ => ready,
        };
        if !protocol.rendezvous {
            let state = &mut self.ranks[from];
            state.done = state.done.max(start + kept);
        }
        if self.timed && self.shared(message, &protocol) {
            self.events.push(start, Event::Inject(index as u32));
        } else {
            self.inject(index, start);
        }
    }

    /// A message passes what its node shares, and arrives.
    fn inject(&mut self, index: usize, now: f64) {
        let message = &self.flat.messages[index];
        let protocol = *self.protocol(message);
        let bytes = self.bytes(message);
        let mut start = now;
        let mut latency = protocol.latency + self.noise.of_message(index, protocol.latency);
        if self.timed {
            let node = |participant: u32| self.flat.node_of[participant as usize] as usize;
            if protocol.injection > 0.0 {
                let free = &mut self.injection[2 * node(message.from) + usize::from(message.level() > 0)];
                start = start.max(*free);
                *free = start + protocol.injection * bytes;
            }
            if let Some(wires) = self.links.as_mut().filter(|_| message.level() == 0) {
                let (begin, further) = wires.pass(node(message.from), node(message.to), start, bytes);
                start = begin;
                latency += further;
            }
        }
        let arrival = start + latency + protocol.per_byte * bytes;
        let (from, to, slot) = (message.from as usize, message.to as usize, message.slot);
        let keeps = protocol.overhead + protocol.per_byte * bytes;
        self.arrivals[slot as usize] = Arrival { at: arrival, keeps };
        let receiver = &self.ranks[to];
        if (receiver.first_slot..receiver.end_slot).contains(&slot) {
            self.one_less(to);
        }
        if protocol.rendezvous {
            let sender = &mut self.ranks[from];
            sender.done = sender.done.max(arrival);
            self.one_less(from);
        }
    }

    fn one_less(&mut self, rank: usize) {
        self.ranks[rank].pending -= 1;
        if self.ranks[rank].pending == 0 {
            self.through(rank);
        }
    }

    /// All messages of a step are through: the work, then the next step.
    fn through(&mut self, rank: usize) {
        let state = self.ranks[rank];
        let received = self.received(rank, state.first_slot as usize..state.end_slot as usize);
        self.work(rank, state.clock.max(state.done).max(received));
    }

    fn work(&mut self, rank: usize, from: f64) {
        let step = &self.flat.steps[self.ranks[rank].step as usize];
        let unit = self.flat.unit;
        let work =
            self.machine.copy * (step.copied * unit) as f64 + self.machine.combine * (step.combined * unit) as f64;
        let state = &mut self.ranks[rank];
        state.clock = from + work;
        state.step = step.next;
        (state.first_slot, state.end_slot) = (0, 0);
        self.go_on(rank);
    }

    /// When the last of a step's messages has passed the receiver's ports.
    fn received(&mut self, rank: usize, slots: std::ops::Range<usize>) -> f64 {
        let ports = self.receiving.len() / self.flat.len();
        if ports == 0 || slots.is_empty() {
            return self.arrivals[slots].iter().map(|arrival| arrival.at).fold(0.0, f64::max);
        }
        let free = &mut self.receiving[rank * ports..(rank + 1) * ports];
        let mut take = |arrival: &Arrival| {
            let port = (0..ports).min_by(|&a, &b| free[a].total_cmp(&free[b])).unwrap_or(0);
            free[port] = arrival.at.max(free[port] + arrival.keeps);
            free[port]
        };
        if slots.len() == 1 {
            return take(&self.arrivals[slots.start]);
        }
        self.queueing.clear();
        self.queueing.extend_from_slice(&self.arrivals[slots]);
        self.queueing.sort_by(|a, b| a.at.total_cmp(&b.at));
        self.queueing.iter().map(take).fold(0.0, f64::max)
    }

    fn meet(&mut self, rank: usize, level: usize) {
        let flat = self.flat;
        let region = flat.regions[level][rank] as usize;
        let clock = self.ranks[rank].clock;
        let meeting = &mut self.meetings[level][region];
        meeting.waiting.push(rank as u32);
        meeting.latest = meeting.latest.max(clock);
        if meeting.waiting.len() < meeting.size as usize {
            return;
        }
        let deepest = flat.region_sizes.len() - 1;
        let cost = self.machine.level(level, deepest, flat.region_sizes[level.min(deepest)]);
        let after = meeting.latest + self.machine.levels[cost].meeting;
        let mut members = std::mem::take(&mut meeting.waiting);
        meeting.latest = 0.0;
        for &member in &members {
            self.work(member as usize, after);
        }
        members.clear();
        self.meetings[level][region].waiting = members;
    }

    fn protocol(&self, message: &Message) -> &Cost {
        let bytes = message.weight() * self.flat.unit;
        let protocols = &self.lanes[message.lane()];
        if bytes <= protocols[0].up_to {
            &protocols[0]
        } else if bytes <= protocols[1].up_to {
            &protocols[1]
        } else {
            &protocols[2]
        }
    }

    fn bytes(&self, message: &Message) -> f64 {
        (message.weight() * self.flat.unit) as f64
    }

    fn shared(&self, message: &Message, protocol: &Cost) -> bool {
        protocol.injection > 0.0 || (self.links.is_some() && message.level() == 0)
    }
}

/// The protocols of each level and crowd, by lane.
fn lanes(flat: &Flat, machine: &Machine) -> Vec<[Cost; PROTOCOLS]> {
    let depths = flat.region_sizes.len() - 1;
    let last = lane(depths, flat.crowds.len().saturating_sub(1));
    let mut lanes = Vec::with_capacity(last + 1);
    for index in 0..=last {
        let (level, crowd) = (index / lane(1, 0), index % lane(1, 0));
        let senders = if level == 0 { flat.crowds.get(crowd).copied().unwrap_or(1) } else { 1 };
        let protocols = &machine.levels[machine.level(level, depths, flat.region_sizes[level])].protocols;
        lanes.push(std::array::from_fn(|at| Cost::of(&protocols[at.min(protocols.len() - 1)].among(senders))));
    }
    lanes
}

/// Whether what is shared can make a message wait for one of another rank, or a port choose between two.
fn order_matters(flat: &Flat, machine: &Machine, lanes: &[[Cost; PROTOCOLS]]) -> bool {
    let far = || flat.messages.iter().any(|message| message.level() == 0);
    reached(flat, lanes, |cost| cost.injection > 0.0)
        || (machine.links.is_some() && far())
        || (machine.ports.is_some_and(|ports| ports < flat.widest) && reached(flat, lanes, |cost| cost.rendezvous))
}

/// Whether a message can be so large that it travels in such a way.
fn reached(flat: &Flat, lanes: &[[Cost; PROTOCOLS]], way: fn(&Cost) -> bool) -> bool {
    (0..flat.heaviest.len()).any(|level| {
        let most = flat.heaviest[level] * flat.unit;
        let costs = &lanes[lane(level, 0)];
        let last = costs.iter().position(|cost| most <= cost.up_to).unwrap_or(PROTOCOLS - 1);
        costs[..=last].iter().any(way)
    })
}

fn meetings(regions: &[u32]) -> Vec<Meeting> {
    let count = regions.iter().max().map_or(0, |last| *last as usize + 1);
    let mut meetings = vec![Meeting::default(); count];
    for &region in regions {
        meetings[region as usize].size += 1;
    }
    meetings
}

impl Wires {
    fn new(links: Links, nodes: usize) -> Wires {
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
    fn pass(&mut self, from: usize, to: usize, now: f64, bytes: f64) -> (f64, f64) {
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
