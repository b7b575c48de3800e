//! Ranks of a world that come together in some order: where they sit, and the designs of plans for them.
//!
//! Programs make many communicators of the same ranks, each with the same first collectives. What is thought about, made, compiled and
//! put into words for one of them serves all, and for the others only messages and memory are to be bound to it. This is a rank's own
//! affair: a design follows from what all ranks know alike, so it is the same whether a rank has it still or makes it anew.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use allhands_schedule::{Collective, Graph, Prepared, Schedule, Topology};

use crate::choose::Evidence;
use crate::error::{Error, Result};
use crate::kernels::{Operation, Type};
use crate::layout::Amount;
use crate::op::Reducer;
use crate::plan::Options;
use crate::program::{Buffers, Program, alike, compile, unexecutable};
use crate::raw::RawCall;
use crate::reproducible::Reproducible;
use crate::server::Server;
use crate::store::PlanStore;
use crate::world::{Way, World};

/// Ranks in an order.
pub(crate) struct Company {
    pub(crate) members: Arc<[usize]>,
    /// This rank's place among them.
    pub(crate) me: usize,
    pub(crate) topology: Topology,
    /// Whether the ranks of every node share memory.
    pub(crate) shares: bool,
    /// Whether some members are reached by MPI's messages only.
    pub(crate) apart: bool,
    /// Tells the topology from others.
    pub(crate) seating: u64,
    /// Who comes to this rank's meetings at each level, found when it is needed.
    attendees: Box<[OnceLock<Arc<Attendees>>]>,
    designs: Mutex<PlanStore<Wanted, Arc<Design>>>,
    answers: Mutex<PlanStore<Asked, Answer>>,
}

/// Who comes to a meeting of ranks that share memory.
pub(crate) struct Attendees {
    /// Their places in the node.
    pub(crate) places: Box<[usize]>,
    /// Their ranks in the world.
    pub(crate) ranks: Box<[usize]>,
}

/// What callers ask for who learn at run time what their elements are.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Asked {
    pub(crate) call: RawCall,
    pub(crate) options: Options,
}

/// What plans for them are made from: such a call on a new communicator of the same ranks need not be thought through again.
#[derive(Clone)]
pub(crate) struct Answer {
    pub(crate) design: Arc<Design>,
    pub(crate) reducer: Option<Arc<dyn Reducer>>,
    pub(crate) sums: Option<Reproducible>,
}

/// So many answers are remembered.
const MOST_ANSWERS: u64 = 16;

/// What designs may weigh together: a few dozen on small communicators.
const MOST_DESIGNED: u64 = 256 << 10;

/// Everything that a design depends on, beside the ranks.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Wanted {
    pub(crate) collective: Collective,
    pub(crate) amount: Amount,
    pub(crate) element: (Type, usize),
    pub(crate) root: usize,
    pub(crate) graph: Option<Arc<Graph>>,
    /// How it is said, and known.
    pub(crate) operation: String,
    pub(crate) predefined: Option<Operation>,
    pub(crate) commutative: bool,
    pub(crate) exact: bool,
    pub(crate) options: Options,
    /// Whether the MPI library's own collective could serve.
    pub(crate) library: bool,
    /// The address of what decided, which the design keeps.
    pub(crate) evidence: usize,
    /// Tells a schedule in a file from others, where one is named.
    pub(crate) written: Option<u64>,
}

/// What plans for the same call on the same ranks have in common.
pub(crate) struct Design {
    pub(crate) prepared: Prepared,
    pub(crate) schedule: Schedule,
    pub(crate) amount: Amount,
    /// Bytes of an element.
    pub(crate) element: usize,
    pub(crate) apart: Program,
    /// Compiled when it is needed.
    pub(crate) in_place: OnceLock<Program>,
    pub(crate) server: Server,
    /// The algorithm, why, and what is asked for, in words.
    pub(crate) algorithm: String,
    pub(crate) reason: String,
    pub(crate) signature: String,
    /// What was found out about the machine whose model decided, if it did.
    pub(crate) machine: Option<String>,
    /// What decided.
    pub(crate) evidence: Arc<Evidence>,
}

impl Design {
    /// Bytes of a block, or of the vector; of all of them where they differ.
    pub(crate) fn bytes(&self) -> usize {
        match &self.amount {
            Amount::Each(count) => count.saturating_mul(self.element),
            _ => self.all_bytes(),
        }
    }

    /// Bytes of all blocks together, the same on every rank.
    pub(crate) fn all_bytes(&self) -> usize {
        let elements = match &self.amount {
            Amount::Listed(counts) => counts.iter().fold(0usize, |all, &count| all.saturating_add(count)),
            Amount::Own { .. } => unreachable!("what ranks know alone is no memory of theirs together"),
            Amount::Each(count) => count.saturating_mul(self.prepared.problem().blocks().unwrap_or(1)),
        };
        elements.saturating_mul(self.element)
    }

    /// The program for a run in place, which is to have the messages and the shared memory of the other: engines are connected for that.
    pub(crate) fn in_place(&self) -> Result<&Program> {
        if let Some(program) = self.in_place.get() {
            return Ok(program);
        }
        let program = compile(&self.prepared, &self.schedule, self.element, &self.amount, Buffers::InPlace)?;
        if !alike(&self.apart, &program) {
            let fact = "in place it sends, takes or shares something else".into();
            return Err(unexecutable(&self.prepared, self.schedule.rank, fact));
        }
        Ok(self.in_place.get_or_init(|| program))
    }
}

impl Company {
    pub(crate) fn new(world: &World, members: Arc<[usize]>, me: usize, topology: Topology) -> Company {
        Company {
            shares: world.share_memory(&members, &topology),
            apart: world.apart(&members, &topology),
            attendees: (0..=topology.depth().max(1)).map(|_| OnceLock::new()).collect(),
            seating: allhands_schedule::hash(topology.to_string().into_bytes()),
            members,
            me,
            topology,
            designs: Mutex::new(PlanStore::new(MOST_DESIGNED)),
            answers: Mutex::new(PlanStore::new(MOST_ANSWERS)),
        }
    }

    /// How a member is reached.
    pub(crate) fn way(&self, world: &World, member: usize) -> Way {
        let node = |member| self.topology.region_of(1, member);
        world.way(self.members[member], node(member) == node(self.me))
    }

    /// Who comes to this rank's meetings at a level; an error if some of them share no memory.
    pub(crate) fn attendees(&self, world: &World, level: usize) -> Result<Arc<Attendees>> {
        if let Some(known) = self.attendees[level].get() {
            return Ok(known.clone());
        }
        let region = self.topology.region_of(level, self.me);
        let place = |member| match self.way(world, member) {
            Way::Near(place) => Ok(place),
            Way::Far => Err(Error::Apart { rank: self.members[self.me], other: self.members[member] }),
        };
        let places = self.topology.members(level, region).map(place).collect::<Result<_>>()?;
        let ranks = self.topology.members(level, region).map(|member| self.members[member]).collect();
        Ok(self.attendees[level].get_or_init(|| Arc::new(Attendees { places, ranks })).clone())
    }

    /// What was found for a call before, by the same evidence.
    pub(crate) fn answer(&self, asked: &Asked, evidence: &Arc<Evidence>) -> Option<Answer> {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.get(asked).filter(|answer| Arc::ptr_eq(&answer.design.evidence, evidence)).cloned()
    }

    /// Keeps what was found for a call.
    pub(crate) fn remember(&self, asked: Asked, answer: Answer) {
        let (_, gone) = self.answers.lock().unwrap_or_else(PoisonError::into_inner).insert(asked, answer, 1);
        drop(gone);
    }

    /// A design that was made before.
    pub(crate) fn known(&self, wanted: &Wanted) -> Option<Arc<Design>> {
        self.designs.lock().unwrap_or_else(PoisonError::into_inner).get(wanted).cloned()
    }

    /// Keeps a design for others like it; the one that was not used for the longest time goes.
    pub(crate) fn keep(&self, wanted: Wanted, design: &Arc<Design>) {
        // It holds no data, only what is to be done with them.
        let weight = crate::raw::weight(wanted.collective, &wanted.amount, 0, self.members.len());
        let (_, gone) =
            self.designs.lock().unwrap_or_else(PoisonError::into_inner).insert(wanted, design.clone(), weight);
        drop(gone);
    }
}
