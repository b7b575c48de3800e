//! Schedules of many ranks as a few flat arrays: what the simulator walks.
//!
//! A *step* is a round, or the part of a round that follows a meeting. A *slot* is a receive; the slots of a step lie side by
//! side. Everybody's first steps come first, then everybody's second ones: ranks that go on side by side read memory in order. A
//! message knows its slot, so nothing is matched while time runs. What many have in common, a size or some work, is kept once. Weights are in units of bytes, so that equal
//! blocks need no new arrays when their size changes. No schedule is kept: each is made, flattened and dropped.

mod join;
mod kinds;
mod part;
mod waves;

use allhands_schedule::{Schedule, Topology};

pub(crate) use self::part::Part;
pub(crate) use self::waves::Waves;

use self::kinds::Kinds;
use self::part::Tally;
use crate::crew::Crew;
use crate::sizes::Sizes;
use crate::{Error, Machine, Result};

/// What a step of no meeting has in place of a level.
pub(crate) const NO_MEETING: u32 = u32::MAX;

/// What follows a rank's last step.
pub(crate) const END: u32 = u32::MAX;

/// Ranks flattened at once by one thread.
const CHUNK: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Step {
    pub(crate) first_message: u32,
    pub(crate) first_slot: u32,
    /// The same rank's next step.
    pub(crate) next: u32,
    /// What is done besides messages, of [`Flat::works`].
    pub(crate) work: u32,
}

/// What a step does besides messages: many do the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Work {
    /// The level that meets before anything else happens, or none.
    pub(crate) meeting: u32,
    /// Copied and combined after the messages.
    pub(crate) copied: u64,
    pub(crate) combined: u64,
}

impl Work {
    fn none(meeting: u32) -> Work {
        Work { meeting, copied: 0, combined: 0 }
    }

    /// Seconds for what is copied and combined.
    pub(crate) fn seconds(&self, machine: &Machine, unit: u64) -> f64 {
        machine.copy * (self.copied * unit) as f64 + machine.combine * (self.combined * unit) as f64
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Message {
    /// Where it goes; while matching, the displacement by which sender and receiver know it.
    pub(crate) slot: u32,
    pub(crate) from: u32,
    pub(crate) to: u32,
    /// How much it is and on what level, of [`Flat::loads`].
    pub(crate) load: u32,
}

/// A weight, the level that the two ranks share, and how crowded the sender's node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Load(u64);

const WEIGHT_BITS: u32 = 48;

/// A topology has at most 64 levels of regions; the other bits are for crowds.
const LEVEL_BITS: u32 = 7;
const MOST_CROWDS: usize = 1 << (64 - WEIGHT_BITS - LEVEL_BITS);

impl Load {
    fn new(level: usize, weight: u64) -> Load {
        Load((level as u64) << WEIGHT_BITS | weight)
    }

    /// The same from a node of some crowd.
    fn among(self, crowd: usize) -> Load {
        Load(self.0 | (crowd as u64) << (WEIGHT_BITS + LEVEL_BITS))
    }

    pub(crate) fn weight(self) -> u64 {
        self.0 & ((1 << WEIGHT_BITS) - 1)
    }

    pub(crate) fn crowd(self) -> usize {
        (self.0 >> (WEIGHT_BITS + LEVEL_BITS)) as usize
    }

    pub(crate) fn level(self) -> usize {
        (self.0 >> WEIGHT_BITS) as usize % (1 << LEVEL_BITS)
    }
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
    /// Whose each step is.
    pub(crate) who: Vec<u32>,
    /// The steps so that both ends of every message are in the same wave, if that can be.
    pub(crate) waves: Option<Waves>,
    pub(crate) messages: Vec<Message>,
    /// The loads of messages and the works of steps, each once.
    pub(crate) loads: Vec<Load>,
    pub(crate) works: Vec<Work>,
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

/// What messages and steps say together.
struct Measured {
    /// How many ranks of each node send far messages.
    senders: Vec<usize>,
    heaviest: Vec<u64>,
    widest: usize,
    /// One more than the deepest level that meets.
    meeting_levels: usize,
}

/// Who takes part, by what number, and how ranks name each other.
pub(crate) trait Cast: Sync {
    /// How many take part.
    fn len(&self) -> usize;
    /// The rank that a participant stands for.
    fn rank(&self, participant: usize) -> usize;
    /// How far apart two ranks are, where that tells messages between the same two participants apart.
    fn displacement(&self, from: usize, to: usize) -> u32;
    /// The participant that stands for a rank.
    fn participant(&self, rank: usize) -> u32;
    /// The node whose ranks share an injection limit.
    fn node(&self, participant: usize) -> u32;
}

/// Every rank for itself.
///
/// Where all nodes have as many ranks, the first ranks of all nodes come first, then all second ones: nodes often do the same at the
/// same time, and so memory is read in order. Ranks of one node keep their order.
pub(crate) struct Everybody<'a> {
    topology: &'a Topology,
    nodes: usize,
    /// Ranks of a node; none: participants are ranks.
    size: Option<usize>,
}

impl<'a> Everybody<'a> {
    /// `as_ranks`: in the order of ranks in any case.
    pub(crate) fn new(topology: &'a Topology, as_ranks: bool) -> Everybody<'a> {
        let (smallest, largest) = topology.region_sizes(1);
        let by_place = !as_ranks && topology.depth() > 0 && smallest == largest;
        Everybody { topology, nodes: topology.regions(1), size: by_place.then_some(largest) }
    }
}

impl Cast for Everybody<'_> {
    fn len(&self) -> usize {
        self.topology.ranks()
    }

    fn rank(&self, participant: usize) -> usize {
        match self.size {
            Some(size) => self.topology.rank_at(participant % self.nodes * size + participant / self.nodes),
            None => participant,
        }
    }

    fn displacement(&self, _: usize, _: usize) -> u32 {
        0
    }

    fn participant(&self, rank: usize) -> u32 {
        let Some(size) = self.size else { return rank as u32 };
        let seat = self.topology.seat_of(rank);
        (seat % size * self.nodes + seat / size) as u32
    }

    fn node(&self, participant: usize) -> u32 {
        if self.topology.depth() == 0 {
            return participant as u32;
        }
        self.topology.region_of(1, self.rank(participant)) as u32
    }
}

impl Flat {
    /// Makes and flattens the schedules of all participants.
    pub(crate) fn new(
        make: &(dyn Fn(usize) -> Schedule + Sync),
        sizes: &Sizes,
        topology: &Topology,
        cast: &impl Cast,
        crew: Crew,
    ) -> Result<Flat> {
        let part = |first: usize| {
            let mut part = Part::default();
            for participant in first..(first + CHUNK).min(cast.len()) {
                part.add(&make(cast.rank(participant)), sizes, topology, cast);
            }
            part
        };
        let starts: Vec<usize> = (0..cast.len()).step_by(CHUNK).collect();
        // Asking other threads for help takes longer than one chunk.
        let parts = crew.if_worth(starts.len() > 1).map(&starts, part);
        Flat::of(parts, sizes, topology, cast, crew)
    }

    /// All participants, flattened part by part.
    pub(crate) fn of(
        parts: Vec<Part>,
        sizes: &Sizes,
        topology: &Topology,
        cast: &impl Cast,
        crew: Crew,
    ) -> Result<Flat> {
        let mut flat = Flat {
            unit: sizes.unit,
            first_step: vec![END; cast.len()],
            steps: Vec::new(),
            who: Vec::new(),
            waves: None,
            messages: Vec::new(),
            loads: Vec::new(),
            works: Vec::new(),
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
        let several = crew.if_worth(parts.len() > 1);
        let starts = flat.join(parts, crew)?;
        let (waves, measured) = several.beside(|| Waves::new(&flat, starts), || flat.measure(topology));
        flat.waves = waves;
        flat.set(measured, topology, cast);
        Ok(flat)
    }

    /// How many take part.
    pub(crate) fn len(&self) -> usize {
        self.first_step.len()
    }

    /// One look at all messages and steps.
    fn measure(&self, topology: &Topology) -> Measured {
        let nodes = self.node_of.iter().max().map_or(0, |last| *last as usize + 1);
        let mut sends_far = vec![false; self.len()];
        let mut heaviest = vec![0; topology.depth() + 1];
        for load in &self.loads {
            let heaviest = &mut heaviest[load.level()];
            *heaviest = load.weight().max(*heaviest);
        }
        let far: Vec<bool> = self.loads.iter().map(|load| load.level() == 0).collect();
        self.messages.iter().for_each(|message| sends_far[message.from as usize] |= far[message.load as usize]);
        let mut senders = vec![0; nodes];
        for (participant, _) in sends_far.iter().enumerate().filter(|(_, far)| **far) {
            senders[self.node_of[participant] as usize] += 1;
        }
        let sent = |pair: &[Step]| pair[1].first_message - pair[0].first_message;
        let widest = self.steps.windows(2).map(sent).max().unwrap_or(0) as usize;
        let meets = self.works.iter().map(|work| work.meeting).filter(|&level| level != NO_MEETING).max();
        Measured { senders, heaviest, widest, meeting_levels: meets.map_or(0, |level| level as usize + 1) }
    }

    /// Crowds, heaviest messages, meeting regions.
    fn set(&mut self, measured: Measured, topology: &Topology, cast: &impl Cast) {
        let Measured { senders, heaviest, widest, meeting_levels } = measured;
        (self.heaviest, self.widest) = (heaviest, widest);
        self.crowds = senders.clone();
        self.crowds.sort_unstable();
        self.crowds.dedup();
        self.crowds.truncate(MOST_CROWDS);
        if self.crowds.len() > 1 {
            let crowd = |size: &usize| self.crowds.binary_search(size).unwrap_or(self.crowds.len() - 1);
            let crowds: Vec<usize> = senders.iter().map(crowd).collect();
            let mut loads = Kinds::default();
            for message in &mut self.messages {
                let crowd = crowds[self.node_of[message.from as usize] as usize];
                message.load = loads.number(self.loads[message.load as usize].among(crowd));
            }
            self.loads = loads.into_all();
        }
        let region = |level: usize, participant| topology.region_of(level, cast.rank(participant)) as u32;
        self.regions =
            (0..meeting_levels).map(|level| (0..self.len()).map(|one| region(level, one)).collect()).collect();
    }
}
