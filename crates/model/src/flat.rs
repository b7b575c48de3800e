//! Schedules of many ranks as a few flat arrays: what the simulator walks.
//!
//! A *step* is a round, or the part of a round that follows a meeting. A *slot* is a receive; the slots of a step lie side by
//! side. Everybody's first steps come first, then everybody's second ones: ranks that go on side by side read memory in order. A
//! message knows its slot, so nothing is matched while time runs. Weights are in units of bytes, so that equal
//! blocks need no new arrays when their size changes. No schedule is kept: each is made, flattened and dropped.

use allhands_schedule::{Local, Schedule, Space, Span, Topology};
use rayon::prelude::*;

use crate::sizes::Sizes;
use crate::{Error, Result};

/// What a step of no meeting has in place of a level.
pub(crate) const NO_MEETING: u32 = u32::MAX;

/// What follows a rank's last step.
pub(crate) const END: u32 = u32::MAX;

/// In a step with more receives than this, nobody looks for the right one by looking at each.
const FEW: u32 = 32;

/// A far message of more runs is packed before it leaves, and unpacked when it has arrived. A window that wraps has two.
const MOST_RUNS: usize = 2;

/// Ranks flattened at once by one thread.
const CHUNK: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Step {
    pub(crate) first_message: u32,
    pub(crate) first_slot: u32,
    /// The level that meets before anything else happens, or none.
    pub(crate) meeting: u32,
    /// The same rank's next step.
    pub(crate) next: u32,
    /// Copied and combined after the messages.
    pub(crate) copied: u64,
    pub(crate) combined: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Message {
    /// Where it goes; while matching, the displacement by which sender and receiver know it.
    pub(crate) slot: u32,
    pub(crate) from: u32,
    pub(crate) to: u32,
    load: Load,
}

/// A weight with the lane it takes: the level that the two ranks share, and how crowded the sender's node is.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Load(u64);

const WEIGHT_BITS: u32 = 48;
const CROWD_BITS: u32 = 10;

impl Message {
    pub(crate) fn weight(&self) -> u64 {
        self.load.0 & ((1 << WEIGHT_BITS) - 1)
    }

    pub(crate) fn lane(&self) -> usize {
        (self.load.0 >> WEIGHT_BITS) as usize
    }

    pub(crate) fn level(&self) -> usize {
        self.lane() >> CROWD_BITS
    }
}

/// The lane of a level and a crowd.
pub(crate) fn lane(level: usize, crowd: usize) -> usize {
    level << CROWD_BITS | crowd
}

/// What all ranks do.
#[derive(Debug)]
pub(crate) struct Flat {
    /// Bytes of one unit of weight.
    pub(crate) unit: u64,
    /// Where each participant begins.
    pub(crate) first_step: Vec<u32>,
    /// With one more at the end.
    pub(crate) steps: Vec<Step>,
    pub(crate) messages: Vec<Message>,
    /// The message that each slot waits for.
    pub(crate) message_of: Vec<u32>,
    /// The node of each participant.
    pub(crate) node_of: Vec<u32>,
    /// How many ranks of a node send far messages, for each crowd.
    pub(crate) crowds: Vec<usize>,
    /// For each level of the topology, the most ranks that a region has.
    pub(crate) region_sizes: Vec<usize>,
    /// For each level that meets: the region of each participant.
    pub(crate) regions: Vec<Vec<u32>>,
    pub(crate) tally: Tally,
    /// The heaviest message of each level and the most messages of one step.
    pub(crate) heaviest: Vec<u64>,
    pub(crate) widest: usize,
}

/// What was counted on the way.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Tally {
    /// Far messages that the busiest rank sends.
    pub(crate) far_messages: usize,
    /// Whether memory is shared, or ranks meet.
    pub(crate) shares: bool,
}

/// Some ranks, flattened, whose messages have not found their slots.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Part {
    /// Steps of each rank.
    lengths: Vec<u32>,
    waves: Vec<Wave>,
    tally: Tally,
}

/// The n-th steps of some ranks.
#[derive(Debug, Default, PartialEq)]
struct Wave {
    steps: Vec<Step>,
    messages: Vec<Message>,
    awaited: Vec<Awaited>,
}

/// A receive: from whom, over which displacement, how much.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Awaited {
    from: u32,
    via: u32,
    weight: u64,
}

/// Who takes part, by what number, and how ranks name each other.
pub(crate) trait Cast: Sync {
    /// How many take part.
    fn len(&self) -> usize;
    /// The rank that a participant stands for.
    fn rank(&self, participant: usize) -> usize;
    /// The participant that stands for `to`, and the displacement between the two, as `from` sends to `to`.
    fn way(&self, from: usize, to: usize) -> (u32, u32);
    /// The participant that stands for a rank.
    fn participant(&self, rank: usize) -> u32;
    /// The node whose ranks share an injection limit.
    fn node(&self, participant: usize) -> u32;
}

/// Every rank for itself.
pub(crate) struct Everybody<'a>(pub(crate) &'a Topology);

impl Cast for Everybody<'_> {
    fn len(&self) -> usize {
        self.0.ranks()
    }

    fn rank(&self, participant: usize) -> usize {
        participant
    }

    fn way(&self, _: usize, to: usize) -> (u32, u32) {
        (to as u32, 0)
    }

    fn participant(&self, rank: usize) -> u32 {
        rank as u32
    }

    fn node(&self, participant: usize) -> u32 {
        if self.0.depth() == 0 { participant as u32 } else { self.0.region_of(1, participant) as u32 }
    }
}

impl Part {
    /// Appends a rank.
    pub(crate) fn add(&mut self, schedule: &Schedule, sizes: &Sizes, topology: &Topology, cast: &impl Cast) {
        let (rank, me) = (schedule.rank, cast.participant(schedule.rank));
        let (mut steps, mut far_messages) = (0, 0);
        for round in &schedule.rounds {
            if round.is_empty() {
                continue;
            }
            let far = |peer: usize| topology.shared_level(rank, peer) == 0;
            let packed = round.sends.iter().filter(|send| send.spans.len() > MOST_RUNS && far(send.to));
            let packed: u64 = packed.map(|send| sizes.weight(rank, &send.spans)).sum();
            if packed > 0 {
                if steps == 0 {
                    self.step(&mut steps, NO_MEETING);
                }
                self.waves[steps - 1].last().copied += packed;
            }
            self.step(&mut steps, NO_MEETING);
            let wave = &mut self.waves[steps - 1];
            for send in &round.sends {
                let (to, via) = cast.way(rank, send.to);
                let level = topology.shared_level(rank, send.to);
                far_messages += usize::from(level == 0 && topology.depth() > 0);
                let load = Load((lane(level, 0) as u64) << WEIGHT_BITS | sizes.weight(rank, &send.spans));
                wave.messages.push(Message { slot: via, from: me, to, load });
                self.tally.shares |= shares(&send.spans);
            }
            let (mut copied, mut combined) = (0, 0);
            for recv in &round.recvs {
                let (_, via) = cast.way(recv.from, rank);
                let weight = sizes.weight(rank, &recv.spans);
                wave.awaited.push(Awaited { from: cast.participant(recv.from), via, weight });
                combined += if recv.combine.is_some() { weight } else { 0 };
                let unpacked = recv.spans.len() > MOST_RUNS && recv.combine.is_none() && far(recv.from);
                copied += if unpacked { weight } else { 0 };
                self.tally.shares |= shares(&recv.spans);
            }
            wave.last().copied += copied;
            wave.last().combined += combined;
            for local in &round.locals {
                match local {
                    Local::Copy { from, to } => {
                        self.waves[steps - 1].last().copied += sizes.weight(rank, std::slice::from_ref(from));
                        self.tally.shares |= shares(&[*from, *to]);
                    }
                    Local::Combine { from, into, .. } => {
                        self.waves[steps - 1].last().combined += sizes.weight(rank, std::slice::from_ref(from));
                        self.tally.shares |= shares(&[*from, *into]);
                    }
                    Local::Meet { level } => {
                        self.tally.shares = true;
                        self.step(&mut steps, *level as u32);
                    }
                }
            }
        }
        self.tally.far_messages = self.tally.far_messages.max(far_messages);
        self.lengths.push(steps as u32);
    }

    fn step(&mut self, steps: &mut usize, meeting: u32) {
        if self.waves.len() == *steps {
            self.waves.push(Wave::default());
        }
        let wave = &mut self.waves[*steps];
        let (first_message, first_slot) = (wave.messages.len() as u32, wave.awaited.len() as u32);
        wave.steps.push(Step { first_message, first_slot, meeting, next: END, copied: 0, combined: 0 });
        *steps += 1;
    }
}

impl Wave {
    fn last(&mut self) -> &mut Step {
        let last = self.steps.len() - 1;
        &mut self.steps[last]
    }
}

fn shares(spans: &[Span]) -> bool {
    spans.iter().any(|span| span.space == Space::Shared)
}

impl Flat {
    /// Makes and flattens the schedules of all participants.
    pub(crate) fn new(
        make: &(dyn Fn(usize) -> Schedule + Sync),
        sizes: &Sizes,
        topology: &Topology,
        cast: &impl Cast,
    ) -> Result<Flat> {
        let part = |first: usize| {
            let mut part = Part::default();
            for participant in first..(first + CHUNK).min(cast.len()) {
                part.add(&make(cast.rank(participant)), sizes, topology, cast);
            }
            part
        };
        let starts: Vec<usize> = (0..cast.len()).step_by(CHUNK).collect();
        let parts: Vec<Part> = starts.par_iter().map(|&first| part(first)).collect();
        let mut flat = Flat {
            unit: sizes.unit,
            first_step: vec![END; cast.len()],
            steps: Vec::new(),
            messages: Vec::new(),
            message_of: Vec::new(),
            node_of: (0..cast.len()).map(|participant| cast.node(participant)).collect(),
            crowds: Vec::new(),
            region_sizes: (0..=topology.depth()).map(|level| topology.region_sizes(level).1).collect(),
            regions: Vec::new(),
            tally: Tally::default(),
            heaviest: Vec::new(),
            widest: 0,
        };
        for part in &parts {
            flat.tally.shares |= part.tally.shares;
            flat.tally.far_messages = flat.tally.far_messages.max(part.tally.far_messages);
        }
        if flat.tally.shares && topology.depth() == 0 {
            return Err(Error::NoNodes);
        }
        flat.join(parts)?;
        flat.measure(topology, cast);
        Ok(flat)
    }

    /// How many take part.
    pub(crate) fn len(&self) -> usize {
        self.first_step.len()
    }

    /// Lays the waves of all parts one after the other, and lets messages find their slots.
    fn join(&mut self, mut parts: Vec<Part>) -> Result<()> {
        let total = |count: fn(&Wave) -> usize| parts.iter().flat_map(|part| &part.waves).map(count).sum::<usize>();
        let (steps, messages, slots) =
            (total(|wave| wave.steps.len()), total(|wave| wave.messages.len()), total(|wave| wave.awaited.len()));
        if steps.max(messages).max(slots) >= u32::MAX as usize {
            return Err(Error::TooLarge { messages: messages as u64 });
        }
        self.steps.reserve_exact(steps + 1);
        self.messages.reserve_exact(messages);
        self.message_of = vec![END; slots];
        let lengths: Vec<u32> = parts.iter().flat_map(|part| part.lengths.iter().copied()).collect();
        let waves = lengths.iter().max().map_or(0, |longest| *longest as usize);
        let mut awaited: Vec<Awaited> = Vec::with_capacity(slots);
        // The step at which each participant is, and those who have one more.
        let mut at = vec![END; self.len()];
        let mut going: Vec<u32> = (0..self.len() as u32).collect();
        let mut in_step = true;
        for wave in 0..waves {
            going.retain(|&participant| lengths[participant as usize] as usize > wave);
            let first = self.steps.len();
            let (first_message, first_slot) = (self.messages.len(), awaited.len());
            for part in &mut parts {
                let Some(wave) = part.waves.get_mut(wave).map(std::mem::take) else { continue };
                let (messages, slots) = (self.messages.len() as u32, awaited.len() as u32);
                self.steps.extend(wave.steps.iter().map(|step| Step {
                    first_message: step.first_message + messages,
                    first_slot: step.first_slot + slots,
                    ..*step
                }));
                self.messages.extend(wave.messages);
                awaited.extend(wave.awaited);
            }
            for (step, &participant) in (first as u32..).zip(&going) {
                match std::mem::replace(&mut at[participant as usize], step) {
                    END => self.first_step[participant as usize] = step,
                    last => self.steps[last as usize].next = step,
                }
            }
            let next = self.past_the_end(awaited.len());
            self.steps.push(next);
            in_step = in_step && self.match_wave(first_message, first_slot, &awaited, &at);
            self.steps.pop();
        }
        let next = self.past_the_end(awaited.len());
        self.steps.push(next);
        if !in_step { self.match_all(&awaited) } else { Ok(()) }
    }

    fn past_the_end(&self, slots: usize) -> Step {
        let (first_message, first_slot) = (self.messages.len() as u32, slots as u32);
        Step { first_message, first_slot, meeting: NO_MEETING, next: END, copied: 0, combined: 0 }
    }

    /// Gives every message of a wave its slot in the same wave, as most schedules have it; false if one has none there, or a
    /// slot is left over. Waves that match by themselves match as the whole does.
    fn match_wave(&mut self, first_message: usize, first_slot: usize, awaited: &[Awaited], at: &[u32]) -> bool {
        if self.messages.len() - first_message != awaited.len() - first_slot {
            return false;
        }
        for index in first_message..self.messages.len() {
            let message = &mut self.messages[index];
            let step = at[message.to as usize] as usize;
            let Some(next) = self.steps.get(step.wrapping_add(1)) else { return false };
            let slots = self.steps[step].first_slot..next.first_slot;
            if slots.len() as u32 > FEW {
                return false;
            }
            let fits = |slot: &u32| {
                let wanted = &awaited[*slot as usize];
                (wanted.from, wanted.via) == (message.from, message.slot) && self.message_of[*slot as usize] == END
            };
            let Some(slot) = slots.into_iter().find(fits) else { return false };
            if slot < first_slot as u32 || awaited[slot as usize].weight != message.weight() {
                return false;
            }
            self.message_of[slot as usize] = index as u32;
            message.slot = slot;
        }
        true
    }

    /// Gives every message its slot: the n-th from a to b goes to the n-th receive that b posts for a.
    fn match_all(&mut self, awaited: &[Awaited]) -> Result<()> {
        let mut wanted: Vec<(u32, u64, u32)> = Vec::with_capacity(awaited.len());
        let key = |via: u32, from: u32| u64::from(via) << 32 | u64::from(from);
        for participant in 0..self.len() {
            let mut step = self.first_step[participant];
            while step != END {
                let (this, next) = (&self.steps[step as usize], &self.steps[step as usize + 1]);
                for slot in this.first_slot..next.first_slot {
                    let Awaited { from, via, .. } = awaited[slot as usize];
                    wanted.push((participant as u32, key(via, from), slot));
                }
                step = this.next;
            }
        }
        // A message that has found its slot already knows its displacement from there.
        let via = |message: &Message, index: usize| {
            let found = self.message_of.get(message.slot as usize).is_some_and(|&found| found as usize == index);
            if found { awaited[message.slot as usize].via } else { message.slot }
        };
        let mut sent: Vec<(u32, u64, u32)> = (self.messages.iter().enumerate())
            .map(|(index, message)| (message.to, key(via(message, index), message.from), index as u32))
            .collect();
        wanted.par_sort_unstable();
        sent.par_sort_unstable();
        let unmatched = |receiver: u32| Err(Error::Unmatched { rank: receiver as usize });
        for (&(to, by, index), &(receiver, of, slot)) in sent.iter().zip(&wanted) {
            if (to, by) != (receiver, of) {
                return unmatched(receiver.min(to));
            }
            let message = &mut self.messages[index as usize];
            if message.weight() != awaited[slot as usize].weight {
                return unmatched(receiver);
            }
            message.slot = slot;
            self.message_of[slot as usize] = index;
        }
        match sent.len().cmp(&wanted.len()) {
            std::cmp::Ordering::Equal => Ok(()),
            std::cmp::Ordering::Greater => unmatched(sent[wanted.len()].0),
            std::cmp::Ordering::Less => unmatched(wanted[sent.len()].0),
        }
    }

    /// Crowds, heaviest messages, meeting regions.
    fn measure(&mut self, topology: &Topology, cast: &impl Cast) {
        let nodes = self.node_of.iter().max().map_or(0, |last| *last as usize + 1);
        let mut sends_far = vec![false; self.len()];
        self.heaviest = vec![0; topology.depth() + 1];
        for message in &self.messages {
            sends_far[message.from as usize] |= message.level() == 0;
            let heaviest = &mut self.heaviest[message.level()];
            *heaviest = (*heaviest).max(message.weight());
        }
        let mut senders = vec![0; nodes];
        for (participant, _) in sends_far.iter().enumerate().filter(|(_, far)| **far) {
            senders[self.node_of[participant] as usize] += 1;
        }
        self.crowds = senders.clone();
        self.crowds.sort_unstable();
        self.crowds.dedup();
        self.crowds.truncate(1 << CROWD_BITS);
        if self.crowds.len() > 1 {
            let crowd = |size: &usize| self.crowds.binary_search(size).unwrap_or(self.crowds.len() - 1) as u64;
            let crowds: Vec<u64> = senders.iter().map(crowd).collect();
            for message in &mut self.messages {
                message.load.0 |= crowds[self.node_of[message.from as usize] as usize] << WEIGHT_BITS;
            }
        }
        self.widest =
            self.steps.windows(2).map(|pair| pair[1].first_message - pair[0].first_message).max().unwrap_or(0) as usize;
        let meets = self.steps.iter().filter(|step| step.meeting != NO_MEETING).map(|step| step.meeting).max();
        let levels = meets.map_or(0, |level| level as usize + 1);
        let region = |level: usize, participant| topology.region_of(level, cast.rank(participant)) as u32;
        self.regions = (0..levels).map(|level| (0..self.len()).map(|one| region(level, one)).collect()).collect();
    }
}
