//! The schedules of some ranks, flattened one after the other.

use std::ops::Range;

use allhands_schedule::{Local, Round, Schedule, Space, Span, Topology};

use super::kinds::Kinds;
use super::{Cast, END, Load, Message, NO_MEETING, Step, Work};
use crate::sizes::Sizes;

/// What was counted on the way.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Tally {
    /// Far messages that the busiest rank sends.
    pub(crate) far_messages: usize,
    /// Whether memory is shared, or ranks meet.
    pub(crate) shares: bool,
}

/// Some ranks, flattened, whose messages have not found their slots.
#[derive(Debug, Default)]
pub(crate) struct Part {
    /// Steps of each rank.
    pub(super) lengths: Vec<u32>,
    pub(super) waves: Vec<Wave>,
    pub(super) loads: Kinds<Load>,
    pub(super) works: Kinds<Work>,
    pub(super) tally: Tally,
    /// How much there was to read: rounds, and runs of memory in their messages.
    pub(crate) runs: usize,
    /// The seats of the regions in which the rank sits that is being added, outermost first.
    homes: Vec<Range<usize>>,
}

/// Whether the ranks do the same; how their memory is cut into runs is left out.
impl PartialEq for Part {
    fn eq(&self, other: &Part) -> bool {
        (&self.lengths, &self.waves, &self.loads, &self.works, &self.tally)
            == (&other.lengths, &other.waves, &other.loads, &other.works, &other.tally)
    }
}

/// The n-th steps of some ranks.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Wave {
    pub(super) steps: Vec<Step>,
    pub(super) messages: Vec<Message>,
    pub(super) awaited: Vec<Awaited>,
}

/// A receive: from whom, over which displacement, how much.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Awaited {
    pub(super) from: u32,
    pub(super) via: u32,
    pub(super) load: u32,
}

impl Part {
    /// Appends a rank.
    pub(crate) fn add(&mut self, schedule: &Schedule, sizes: &Sizes, topology: &Topology, cast: &impl Cast) {
        let mut adding = Adding::new(self, schedule.rank, sizes, topology, cast);
        schedule.rounds.iter().filter(|round| !round.is_empty()).for_each(|round| adding.round(round));
        adding.end_step();
        let Adding { steps, far_messages, .. } = adding;
        self.tally.far_messages = self.tally.far_messages.max(far_messages);
        self.lengths.push(steps as u32);
    }

    /// Forgets all ranks, and keeps the memory for as many others.
    pub(crate) fn clear(&mut self) {
        self.lengths.clear();
        self.loads.clear();
        self.works.clear();
        self.runs = 0;
        self.tally = Tally::default();
        for wave in &mut self.waves {
            wave.steps.clear();
            wave.messages.clear();
            wave.awaited.clear();
        }
    }
}

/// A rank on its way into a part.
struct Adding<'a, C> {
    part: &'a mut Part,
    rank: usize,
    /// What the rank is as a participant.
    me: u32,
    sizes: &'a Sizes<'a>,
    topology: &'a Topology,
    cast: &'a C,
    steps: usize,
    /// Of the last step, as far as known.
    work: Work,
    far_messages: usize,
}

impl<'a, C: Cast> Adding<'a, C> {
    fn new(part: &'a mut Part, rank: usize, sizes: &'a Sizes<'a>, topology: &'a Topology, cast: &'a C) -> Self {
        let seat = topology.seat_of(rank);
        let home = |level| topology.region(level, topology.region_of_seat(level, seat));
        part.homes.clear();
        part.homes.extend((1..=topology.depth()).map(home));
        let (me, work) = (cast.participant(rank), Work::none(NO_MEETING));
        Adding { part, rank, me, sizes, topology, cast, steps: 0, work, far_messages: 0 }
    }

    fn round(&mut self, round: &Round) {
        let sent = round.sends.iter().map(|send| send.spans.len()).sum::<usize>();
        self.part.runs += 1 + sent + round.recvs.iter().map(|recv| recv.spans.len()).sum::<usize>();
        self.pack(round);
        self.step(NO_MEETING);
        self.sends(round);
        self.recvs(round);
        self.locals(round);
    }

    /// Copies what has to be packed at the end of the step before.
    fn pack(&mut self, round: &Round) {
        let packed = round.sends.iter().filter(|send| self.scattered(&send.spans) && self.level(send.to) == 0);
        let packed: u64 = packed.map(|send| self.weight(&send.spans)).sum();
        if packed > 0 {
            if self.steps == 0 {
                self.step(NO_MEETING);
            }
            self.work.copied += packed;
        }
    }

    fn sends(&mut self, round: &Round) {
        let from = self.me;
        for send in &round.sends {
            let (to, via) = (self.cast.participant(send.to), self.cast.displacement(self.rank, send.to));
            let level = self.level(send.to);
            self.far_messages += usize::from(level == 0 && self.topology.depth() > 0);
            let load = Load::new(level, self.weight(&send.spans));
            self.part.tally.shares |= shares(&send.spans);
            // Others have sent as much in this wave.
            let guess = self.wave().messages.last().map(|message| message.load);
            let load = self.part.loads.number_like(load, guess);
            self.wave().messages.push(Message { slot: via, from, to, load });
        }
    }

    fn recvs(&mut self, round: &Round) {
        for recv in &round.recvs {
            let via = self.cast.displacement(recv.from, self.rank);
            let (from, weight) = (self.cast.participant(recv.from), self.weight(&recv.spans));
            let level = self.level(recv.from);
            let unpacked = level == 0 && recv.combine.is_none() && self.scattered(&recv.spans);
            self.part.tally.shares |= shares(&recv.spans);
            let guess = self.wave().awaited.last().map(|awaited| awaited.load);
            let load = self.part.loads.number_like(Load::new(level, weight), guess);
            self.wave().awaited.push(Awaited { from, via, load });
            self.work.combined += if recv.combine.is_some() { weight } else { 0 };
            self.work.copied += if unpacked { weight } else { 0 };
        }
    }

    fn locals(&mut self, round: &Round) {
        for local in &round.locals {
            match local {
                Local::Copy { from, to } => {
                    let weight = self.weight(std::slice::from_ref(from));
                    self.work.copied += weight;
                    self.part.tally.shares |= shares(&[*from, *to]);
                }
                Local::Combine { from, into, .. } => {
                    let weight = self.weight(std::slice::from_ref(from));
                    self.work.combined += weight;
                    self.part.tally.shares |= shares(&[*from, *into]);
                }
                Local::Meet { level } => {
                    self.part.tally.shares = true;
                    self.step(*level as u32);
                }
            }
        }
    }

    fn step(&mut self, meeting: u32) {
        if self.part.waves.len() == self.steps {
            self.part.waves.push(Wave::default());
        }
        self.end_step();
        self.work = Work::none(meeting);
        self.steps += 1;
        let wave = self.wave();
        let (first_message, first_slot) = (wave.messages.len() as u32, wave.awaited.len() as u32);
        wave.steps.push(Step { first_message, first_slot, next: END, work: 0 });
    }

    /// All that the last step does is known.
    fn end_step(&mut self) {
        if self.steps > 0 {
            let steps = &mut self.part.waves[self.steps - 1].steps;
            if let [before @ .., last] = &mut steps[..] {
                last.work = self.part.works.number_like(self.work, before.last().map(|step| step.work));
            }
        }
    }

    /// The wave of the rank's last step.
    fn wave(&mut self) -> &mut Wave {
        &mut self.part.waves[self.steps - 1]
    }

    fn level(&self, peer: usize) -> usize {
        let seat = self.topology.seat_of(peer);
        self.part.homes.iter().take_while(|home| home.contains(&seat)).count()
    }

    fn weight(&self, spans: &[Span]) -> u64 {
        self.sizes.weight(self.rank, spans)
    }

    fn scattered(&self, spans: &[Span]) -> bool {
        self.sizes.scattered(self.rank, spans)
    }
}

fn shares(spans: &[Span]) -> bool {
    spans.iter().any(|span| span.space == Space::Shared)
}
