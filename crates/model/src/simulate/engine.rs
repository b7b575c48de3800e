//! The run itself: clocks of ranks, arrivals of messages, what is shared.
//!
//! Where nothing is shared, a message's arrival depends only on when its two ends come to it, so steps run in any order that
//! respects messages: a plain queue of ranks. Where a limit is shared, the order in time decides who waits: a queue by time.

use std::collections::VecDeque;

use super::Finish;
use super::event::{Event, EventKind};
use super::flows::Flows;
use super::lanes::{Cost, Lanes};
use super::links::Wires;
use super::noise::Noise;
use super::ports::{self, Arrival, Receiving};
use super::queue::Queue;
use crate::flat::{END, Flat, NO_MEETING};
use crate::machine::Machine;
use crate::{Error, Result};

/// No slot has this arrival: nothing has been heard of the message.
const UNHEARD: f64 = f64::INFINITY;

/// A sender waits at this slot for its receiver; that of a flow has been through with it since the time for which the message would keep a port.
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
    lanes: &'a Lanes,
    ranks: Vec<Rank>,
    arrivals: Vec<Arrival>,
    /// When each sending port of each rank is free, with several.
    ports: Vec<f64>,
    receiving: Receiving,
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
    flows: Option<Flows>,
    /// Messages that have ended as flows.
    ended: Vec<u32>,
}

#[derive(Clone, Debug, Default)]
struct Meeting {
    size: u32,
    waiting: Vec<u32>,
    latest: f64,
}

impl<'a> Engine<'a> {
    /// `timed`: whether the order in time matters.
    pub(super) fn new(
        flat: &'a Flat,
        machine: &'a Machine,
        lanes: &'a Lanes,
        noise: &'a Noise,
        timed: bool,
    ) -> Engine<'a> {
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
            timed,
            handshakes: flat.widest > 1 && lanes.reached(flat, |protocol| protocol.rendezvous),
            lanes,
            ranks: ranks.collect(),
            arrivals: vec![Arrival { at: UNHEARD, keeps: 0.0 }; flat.message_of.len()],
            ports: vec![0.0; flat.len() * several],
            receiving: Receiving::new(machine, flat.len()),
            meetings: flat.regions.iter().map(|regions| meetings(regions)).collect(),
            ready: VecDeque::with_capacity(flat.len()),
            events: Queue::new(),
            injection: vec![0.0; 2 * nodes],
            links: machine.links.clone().map(|links| Wires::new(links, nodes)),
            flows: machine.flows.then(|| Flows::new(nodes)),
            ended: Vec::new(),
        }
    }

    pub(super) fn run(mut self) -> Result<Finish> {
        for rank in 0..self.flat.len() {
            self.ranks[rank].clock = self.noise.late(rank);
            self.go_on(rank);
        }
        if self.timed {
            while let Some((now, event)) = self.events.pop() {
                match event.kind() {
                    EventKind::Post => self.post(event.of()),
                    EventKind::Start => self.start(event.of()),
                    EventKind::Ready => self.send(event.of(), now),
                    EventKind::Inject => self.inject(event.of(), now),
                    EventKind::Share => self.share(event.of() as u32, now),
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
        Ok(Finish::of(self.ranks.iter().map(|rank| rank.clock), self.timed))
    }

    /// Lets a rank come to its next step, if it has one.
    fn go_on(&mut self, rank: usize) {
        let state = &self.ranks[rank];
        if state.step == END {
            return;
        }
        match self.timed {
            true => self.events.push(state.clock, Event::new(EventKind::Post, rank)),
            false => self.ready.push_back(rank as u32),
        }
    }

    /// A rank comes to its step: everything is posted.
    fn post(&mut self, rank: usize) {
        let flat = self.flat;
        let index = self.ranks[rank].step as usize;
        let (step, next) = (&flat.steps[index], &flat.steps[index + 1]);
        let meeting = flat.works[step.work as usize].meeting;
        if meeting != NO_MEETING {
            return self.meet(rank, meeting as usize);
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
            true => self.events.push(now, Event::new(EventKind::Start, rank)),
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
            let cost = self.lanes.of(message);
            if !cost.rendezvous {
                self.ranks[rank].pending -= 1;
                self.send_by(index as usize, cost, now);
                continue;
            }
            let receiver = &self.ranks[message.to as usize];
            let came = (receiver.first_slot..receiver.end_slot).contains(&message.slot).then_some(receiver.clock);
            // The sender of a flow is through with it before the receiver has come; other messages take a port when they start.
            let posted = self.flows.is_some().then(|| self.take_port(rank, cost, now) + cost.keeps);
            match (came, posted) {
                (Some(came), Some(posted)) => self.leave(index as usize, cost, posted.max(came)),
                (Some(came), None) => self.send_by(index as usize, cost, now.max(came)),
                (None, posted) => {
                    self.arrivals[message.slot as usize] = Arrival { at: WAITING, keeps: posted.unwrap_or(0.0) };
                }
            }
        }
        for slot in step.first_slot..next.first_slot {
            if self.arrivals[slot as usize].at == WAITING {
                let message = flat.message_of[slot as usize] as usize;
                self.arrivals[slot as usize].at = UNHEARD;
                if self.flows.is_some() {
                    let posted = self.arrivals[slot as usize].keeps;
                    self.leave(message, self.lanes.of(&flat.messages[message]), posted.max(now));
                    continue;
                }
                let ready = now.max(self.ranks[flat.messages[message].from as usize].clock);
                match self.timed && self.handshakes {
                    true => self.events.push(ready, Event::new(EventKind::Ready, message)),
                    false => self.send(message, ready),
                }
            }
        }
        self.one_less(rank);
    }

    /// A message is ready to leave: it takes a port of its sender.
    fn send(&mut self, index: usize, ready: f64) {
        self.send_by(index, self.lanes.of(&self.flat.messages[index]), ready);
    }

    /// The same where its cost is known.
    fn send_by(&mut self, index: usize, cost: &Cost, ready: f64) {
        let from = self.flat.messages[index].from as usize;
        let start = self.take_port(from, cost, ready);
        if !cost.rendezvous {
            let state = &mut self.ranks[from];
            state.done = state.done.max(start + cost.keeps);
        }
        self.leave(index, cost, if self.flows.is_some() { start + cost.keeps } else { start });
    }

    /// When a port of a rank takes a message that is ready.
    fn take_port(&mut self, rank: usize, cost: &Cost, ready: f64) -> f64 {
        match self.machine.ports {
            Some(1) => ports::start(std::slice::from_mut(&mut self.ranks[rank].port), ready, cost.keeps),
            _ => {
                let several = self.ports.len() / self.flat.len();
                ports::start(&mut self.ports[rank * several..(rank + 1) * several], ready, cost.keeps)
            }
        }
    }

    /// A message leaves its sender.
    fn leave(&mut self, index: usize, cost: &Cost, start: f64) {
        if self.timed && self.shared(cost) {
            self.events.push(start, Event::new(EventKind::Inject, index));
        } else {
            self.inject_by(index, cost, start);
        }
    }

    /// A message passes what its node shares, and arrives.
    fn inject(&mut self, index: usize, now: f64) {
        self.inject_by(index, self.lanes.of(&self.flat.messages[index]), now);
    }

    /// The same where its cost is known.
    fn inject_by(&mut self, index: usize, cost: &Cost, now: f64) {
        let message = &self.flat.messages[index];
        let mut start = now;
        let mut latency = cost.latency + self.noise.of_message(index, cost.latency);
        if self.timed {
            let node = |participant: u32| self.flat.node_of[participant as usize] as usize;
            if let Some(flows) = self.flows.as_mut().filter(|_| cost.injection > 0.0) {
                let turn = flows.begin(index, node(message.from), node(message.to), now, cost);
                turn.into_iter().for_each(|turn| self.events.push(now, Event::new(EventKind::Share, turn as usize)));
                return;
            }
            if cost.injects {
                let free = &mut self.injection[2 * node(message.from) + usize::from(!cost.far)];
                start = start.max(*free);
                *free = start + cost.injection;
            }
            if let Some(wires) = self.links.as_mut().filter(|_| cost.far) {
                let (begin, further) = wires.pass(node(message.from), node(message.to), start, cost.bytes);
                start = begin;
                latency += further;
            }
        }
        self.arrive(index, cost, start + latency + cost.transfer);
    }

    /// Flows end, and the others are faster or slower from now on.
    fn share(&mut self, turn: u32, now: f64) {
        let mut ended = std::mem::take(&mut self.ended);
        let next = self.flows.as_mut().and_then(|flows| flows.share(turn, now, &mut ended));
        if let Some((time, turn)) = next {
            self.events.push(time, Event::new(EventKind::Share, turn as usize));
        }
        for &index in &ended {
            let cost = self.lanes.of(&self.flat.messages[index as usize]);
            let latency = cost.latency + self.noise.of_message(index as usize, cost.latency);
            self.arrive(index as usize, cost, now + latency);
        }
        self.ended = ended;
    }

    fn arrive(&mut self, index: usize, cost: &Cost, arrival: f64) {
        let message = &self.flat.messages[index];
        let (from, to, slot) = (message.from as usize, message.to as usize, message.slot);
        // Who has waited for a flow need not take it in.
        let lets_go = self.flows.is_some() && cost.rendezvous;
        self.arrivals[slot as usize] = Arrival { at: arrival, keeps: if lets_go { 0.0 } else { cost.keeps } };
        let receiver = &self.ranks[to];
        if (receiver.first_slot..receiver.end_slot).contains(&slot) {
            self.one_less(to);
        }
        if cost.rendezvous {
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
        if self.flows.is_some() {
            // A rank sends before it receives.
            self.receiving.keep(rank, state.port);
        }
        let received = self.receiving.take(rank, &self.arrivals[state.first_slot as usize..state.end_slot as usize]);
        self.work(rank, state.clock.max(state.done).max(received));
    }

    fn work(&mut self, rank: usize, from: f64) {
        let step = &self.flat.steps[self.ranks[rank].step as usize];
        let state = &mut self.ranks[rank];
        state.clock = from + self.lanes.work(step);
        state.step = step.next;
        (state.first_slot, state.end_slot) = (0, 0);
        self.go_on(rank);
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

    fn shared(&self, cost: &Cost) -> bool {
        cost.injects || (self.links.is_some() && cost.far)
    }
}

fn meetings(regions: &[u32]) -> Vec<Meeting> {
    let count = regions.iter().max().map_or(0, |last| *last as usize + 1);
    let mut meetings = vec![Meeting::default(); count];
    for &region in regions {
        meetings[region as usize].size += 1;
    }
    meetings
}
