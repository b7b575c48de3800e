//! Schedules of many ranks as a few flat arrays: what the simulator walks.
//!
//! A *step* is a round, or the part of a round that follows a meeting. A *slot* is a receive; the slots of a step lie side by
//! side. A message knows its slot, so nothing is matched while time runs. Weights are in units of bytes, so that equal
//! blocks need no new arrays when their size changes. No schedule is kept: each is made, flattened and dropped.

use allhands_schedule::{Local, Schedule, Space, Span, Topology};
use rayon::prelude::*;

use crate::sizes::Sizes;
use crate::{Error, Result};

/// What a step of no meeting has in place of a level.
pub(crate) const NO_MEETING: u32 = u32::MAX;

/// Ranks flattened at once by one thread.
const CHUNK: usize = 2048;

/// Chunks kept before they are joined.
const CHUNKS: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Step {
    pub(crate) first_message: u32,
    pub(crate) first_slot: u32,
    /// The level that meets before anything else happens, or none.
    pub(crate) meeting: u32,
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
    /// The steps of participant i are `first_step[i]..first_step[i + 1]`.
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
    ends: Vec<u32>,
    steps: Vec<Step>,
    messages: Vec<Message>,
    awaited: Vec<Awaited>,
    tally: Tally,
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
        let begin = self.steps.len();
        let mut far = 0;
        for round in &schedule.rounds {
            if round.is_empty() {
                continue;
            }
            // A message of several runs is packed before it leaves, and unpacked when it has arrived.
            let packed = round.sends.iter().filter(|send| send.spans.len() > 1);
            let packed: u64 = packed.map(|send| sizes.weight(rank, &send.spans)).sum();
            if packed > 0 {
                if self.steps.len() == begin {
                    self.step(NO_MEETING);
                }
                let last = self.steps.len() - 1;
                self.steps[last].copied += packed;
            }
            self.step(NO_MEETING);
            for send in &round.sends {
                let (to, via) = cast.way(rank, send.to);
                let level = topology.shared_level(rank, send.to);
                far += usize::from(level == 0 && topology.depth() > 0);
                let load = Load((lane(level, 0) as u64) << WEIGHT_BITS | sizes.weight(rank, &send.spans));
                self.messages.push(Message { slot: via, from: me, to, load });
                self.tally.shares |= shares(&send.spans);
            }
            let mut step = self.steps[self.steps.len() - 1];
            for recv in &round.recvs {
                let (_, via) = cast.way(recv.from, rank);
                let weight = sizes.weight(rank, &recv.spans);
                self.awaited.push(Awaited { from: cast.participant(recv.from), via, weight });
                step.combined += if recv.combine.is_some() { weight } else { 0 };
                step.copied += if recv.spans.len() > 1 && recv.combine.is_none() { weight } else { 0 };
                self.tally.shares |= shares(&recv.spans);
            }
            *self.last() = step;
            for local in &round.locals {
                match local {
                    Local::Copy { from, to } => {
                        self.last().copied += sizes.weight(rank, std::slice::from_ref(from));
                        self.tally.shares |= shares(&[*from, *to]);
                    }
                    Local::Combine { from, into, .. } => {
                        self.last().combined += sizes.weight(rank, std::slice::from_ref(from));
                        self.tally.shares |= shares(&[*from, *into]);
                    }
                    Local::Meet { level } => {
                        self.tally.shares = true;
                        self.step(*level as u32);
                    }
                }
            }
        }
        self.tally.far_messages = self.tally.far_messages.max(far);
        self.ends.push((self.steps.len() - begin) as u32);
    }

    fn step(&mut self, meeting: u32) {
        let (first_message, first_slot) = (self.messages.len() as u32, self.awaited.len() as u32);
        self.steps.push(Step { first_message, first_slot, meeting, copied: 0, combined: 0 });
    }

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
        let mut flat = Flat {
            unit: sizes.unit,
            first_step: vec![0],
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
        let mut awaited = Vec::new();
        let part = |first: usize| {
            let mut part = Part::default();
            for participant in first..(first + CHUNK).min(cast.len()) {
                part.add(&make(cast.rank(participant)), sizes, topology, cast);
            }
            part
        };
        let starts: Vec<usize> = (0..cast.len()).step_by(CHUNK).collect();
        for starts in starts.chunks(CHUNKS) {
            let parts: Vec<Part> = starts.par_iter().map(|&first| part(first)).collect();
            parts.into_iter().try_for_each(|part| flat.join(part, &mut awaited))?;
        }
        flat.step_past_the_end(awaited.len());
        if flat.tally.shares && topology.depth() == 0 {
            return Err(Error::NoNodes);
        }
        flat.match_up(&awaited)?;
        flat.measure(topology, cast);
        Ok(flat)
    }

    /// How many take part.
    pub(crate) fn len(&self) -> usize {
        self.first_step.len() - 1
    }

    fn join(&mut self, part: Part, awaited: &mut Vec<Awaited>) -> Result<()> {
        let (messages, slots) = (self.messages.len(), awaited.len());
        let most = messages + part.messages.len();
        if most >= u32::MAX as usize || self.steps.len() + part.steps.len() >= u32::MAX as usize {
            return Err(Error::TooLarge { messages: most as u64 });
        }
        for steps in part.ends {
            self.first_step.push(self.first_step[self.first_step.len() - 1] + steps);
        }
        self.steps.extend(part.steps.iter().map(|step| Step {
            first_message: step.first_message + messages as u32,
            first_slot: step.first_slot + slots as u32,
            ..*step
        }));
        self.messages.extend(part.messages);
        awaited.extend(part.awaited);
        self.tally.shares |= part.tally.shares;
        self.tally.far_messages = self.tally.far_messages.max(part.tally.far_messages);
        Ok(())
    }

    fn step_past_the_end(&mut self, slots: usize) {
        let (first_message, first_slot) = (self.messages.len() as u32, slots as u32);
        self.steps.push(Step { first_message, first_slot, meeting: NO_MEETING, copied: 0, combined: 0 });
    }

    /// Gives every message its slot: the n-th from a to b goes to the n-th receive that b posts for a.
    fn match_up(&mut self, awaited: &[Awaited]) -> Result<()> {
        // Incoming messages side by side, by receiver.
        let mut next = vec![0u32; self.len() + 1];
        for message in &self.messages {
            next[message.to as usize + 1] += 1;
        }
        for receiver in 0..self.len() {
            next[receiver + 1] += next[receiver];
        }
        let bounds = next.clone();
        let mut incoming = vec![0u32; self.messages.len()];
        for (index, message) in self.messages.iter().enumerate() {
            let place = &mut next[message.to as usize];
            incoming[*place as usize] = index as u32;
            *place += 1;
        }
        self.message_of = vec![0; awaited.len()];
        let key = |via: u32, from: u32| u64::from(via) << 32 | u64::from(from);
        let (mut sent, mut wanted) = (Vec::new(), Vec::new());
        for receiver in 0..self.len() {
            let unmatched = Error::Unmatched { rank: receiver };
            let slots = self.slots_of(receiver);
            let arriving = &incoming[bounds[receiver] as usize..bounds[receiver + 1] as usize];
            if arriving.len() != slots.len() {
                return Err(unmatched);
            }
            sent.clear();
            sent.extend(arriving.iter().map(|&index| {
                let message = &self.messages[index as usize];
                (key(message.slot, message.from), index)
            }));
            wanted.clear();
            wanted.extend(slots.map(|slot| (key(awaited[slot].via, awaited[slot].from), slot as u32)));
            if !sent.is_sorted() {
                sent.sort_unstable();
            }
            if !wanted.is_sorted() {
                wanted.sort_unstable();
            }
            for (&(by, index), &(of, slot)) in sent.iter().zip(&wanted) {
                let message = &mut self.messages[index as usize];
                if by != of || message.weight() != awaited[slot as usize].weight {
                    return Err(unmatched);
                }
                message.slot = slot;
                self.message_of[slot as usize] = index;
            }
        }
        Ok(())
    }

    fn slots_of(&self, participant: usize) -> std::ops::Range<usize> {
        let slot = |participant: usize| self.steps[self.first_step[participant] as usize].first_slot as usize;
        slot(participant)..slot(participant + 1)
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
        self.regions =
            (0..levels).map(|level| (0..self.len()).map(|one| region(level, one)).collect()).collect();
    }
}
