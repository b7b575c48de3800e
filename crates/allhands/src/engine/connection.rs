//! What a program needs of the other ranks of its node before its first run: where they meet, and memory that they have in common.

use std::sync::Arc;

use allhands_schedule::Topology;

use crate::company::{Attendees, Company};
use crate::error::{Error, Result};
use crate::mpi_transport::MpiTransport;
use crate::node::Chunk;
use crate::node::meeting::Meeting;
use crate::program::{Instruction, Program};
use crate::segment_pool::{Need, SegmentLease};
use crate::world::World;

/// What an engine is connected with.
pub(crate) struct Connection<'a> {
    pub(crate) world: Arc<World>,
    /// Whose failure concerns it.
    pub(crate) scope: u64,
    pub(crate) key: u64,
    pub(crate) company: &'a Company,
    pub(crate) transport: Option<MpiTransport>,
    /// Whether the ranks of a node need memory together.
    pub(crate) shares: bool,
    /// That memory, if it is there already.
    pub(crate) chunk: Option<Chunk>,
    pub(crate) operation: &'a str,
    /// What is done while others are waited for.
    pub(crate) on_idle: &'a dyn Fn(),
}

impl Connection<'_> {
    /// The memory that the ranks of this node share for a program, if they do, and where they meet in it, by level.
    pub(super) fn share(&mut self, program: &Program, meetings: &mut Vec<Option<Gathering>>) -> Result<Option<Common>> {
        if !self.shares {
            return Ok(None);
        }
        let chunk = self.chunk.take();
        let Connection { ref world, company, scope, key, operation, on_idle, .. } = *self;
        let (rank, topology) = (company.me, &company.topology);
        let everybody = company.attendees(world, 1)?;
        let seats = everybody.places.len();
        let (first, each, memory) = match chunk {
            Some(chunk) => {
                let (first, each) = halves(topology, seats);
                if program.shared > each {
                    let reason = format!("a plan needs {} bytes in common where {each} were expected", program.shared);
                    world.fail(scope, &reason);
                    return Err(Error::Memory { reason });
                }
                (first, each, SegmentLease::Chunk(chunk))
            }
            None => {
                let first = meetings_bytes(topology, seats).next_multiple_of(4096);
                // The two segments begin on lines of their own.
                let size = |need: usize| first + 2 * need.next_multiple_of(128);
                let (places, bytes) = (&everybody.places, program.shared);
                let need = Need { scope, operation, key: key ^ 1, places, bytes, clear: first, on_idle };
                let (need, memory) = world.share(&need, size)?;
                (first, need.next_multiple_of(128), memory)
            }
        };
        let begin = topology.region(1, topology.region_of(1, rank)).start;
        for level in 0..=topology.depth() {
            let meets = program.code.contains(&Instruction::Arrive { level });
            let gathering = |attendees: Arc<Attendees>| {
                let seat = topology.region(level, topology.region_of(level, rank)).start - begin;
                // SAFETY: meetings are at the beginning of the memory, one for every level and seat.
                let meeting = unsafe { memory.as_ptr().cast::<Meeting>().add(level * seats + seat) };
                Gathering { meeting, expected: attendees.places.len() as u32, attendees }
            };
            meetings.push(if meets { Some(gathering(company.attendees(world, level)?)) } else { None });
        }
        Ok(Some(Common { memory, first, each }))
    }
}

/// A meeting, and who comes to it.
pub(super) struct Gathering {
    pub(super) meeting: *const Meeting,
    /// How many they are, at hand for every run.
    pub(super) expected: u32,
    pub(super) attendees: Arc<Attendees>,
}

/// What the ranks of a node share for one plan: meetings, and two segments of memory that runs use in turn.
pub(super) struct Common {
    pub(super) memory: SegmentLease,
    pub(super) first: usize,
    pub(super) each: usize,
}

/// Bytes of the meetings of a node: one for every level and seat.
fn meetings_bytes(topology: &Topology, seats: usize) -> usize {
    (topology.depth() + 1) * seats * size_of::<Meeting>()
}

/// Where the two segments of a chunk begin, and how long each is.
fn halves(topology: &Topology, seats: usize) -> (usize, usize) {
    let first = meetings_bytes(topology, seats);
    (first, Chunk::BYTES.saturating_sub(first) / 2 / 128 * 128)
}

/// How much of a chunk is to be zero if it has room for all that the ranks of a node need in common for vectors of so many bytes, blocks
/// of all ranks together. A schedule has a line of that length for each rank at most, and a few more.
pub(crate) fn chunk_for(topology: &Topology, bytes: usize) -> Option<usize> {
    if topology.regions(1) != 1 {
        return None;
    }
    let (first, each) = halves(topology, topology.ranks());
    let lines = 2 * topology.ranks() + 8;
    (lines.checked_mul(bytes)? <= each).then_some(first)
}
