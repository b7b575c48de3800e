//! All ranks of a run, as one of them sees them: who is reached through shared memory, who through MPI, and waiting for them.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::{Duration, Instant};

use allhands_schedule::Topology;

use crate::error::{Error, Result};
use crate::gate::Gate;
use crate::mpi_transport::Job;
use crate::node::ladder::{Ladder, Wait};
use crate::node::memory::Mapping;
use crate::node::{Arrived, Chunk, Neighbour, Node, PeerMemory};
use crate::segment_pool::{Need, SegmentPool};

/// One rank's view of all.
pub(crate) struct World {
    me: usize,
    pub(crate) node: Node,
    /// The place in this rank's node of every rank of the world, if it has one there.
    places: Box<[Option<usize>]>,
    /// The ranks of the node, by place.
    neighbours: Box<[usize]>,
    ladder: Ladder,
    timeout: Duration,
    /// Of every rank, the first of those whose memory it shares; none where all share the same.
    homes: Option<Vec<usize>>,
    /// What reaches the others.
    pub(crate) job: Option<Job>,
    /// Memory of plans that are gone, for those to come.
    pub(crate) segment_pool: SegmentPool,
    /// Inside which this rank's threads touch all of this.
    pub(crate) gate: Gate,
}

// SAFETY: cells are touched inside the gate only; see `rank`.
unsafe impl Send for World {}
// SAFETY: as above.
unsafe impl Sync for World {}

/// Where a rank is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// By memory, at this place of the node.
    Near(usize),
    /// By MPI.
    Far,
}

/// Thread ranks get up from time to time to see whether a rank has failed or left.
const NAP_OF_THREADS: Duration = Duration::from_millis(20);
/// MPI ranks drive MPI's progress, for messages of ours and of the program's, at least so often.
const NAP_WITH_MPI: Duration = Duration::from_millis(1);
/// Of two nanoseconds each.
const CLOSE_LOOKS: u32 = 200;
/// How often a process that waits looks whether the others are alive.
const PULSE: Duration = Duration::from_secs(1);

impl World {
    /// A rank of thread ranks.
    pub(crate) fn of_threads(memory: Arc<Mapping>, body: usize, ranks: usize, me: usize, timeout: Duration) -> World {
        let node = Node::new(memory, ranks, me, body, PeerMemory::Here);
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        World {
            me,
            node,
            places: (0..ranks).map(Some).collect(),
            neighbours: (0..ranks).collect(),
            ladder: Ladder::new(ranks > cores, NAP_OF_THREADS),
            timeout,
            homes: None,
            job: None,
            segment_pool: SegmentPool::default(),
            gate: Gate::new(false),
        }
    }

    /// A rank of an MPI job, whose neighbours are given by place; `threads`: whether several threads of it may call at once.
    pub(crate) fn of_job(
        job: Job,
        me: usize,
        homes: Vec<usize>,
        node: Node,
        neighbours: Vec<usize>,
        threads: bool,
    ) -> World {
        let mut places = vec![None; homes.len()];
        for (place, &rank) in neighbours.iter().enumerate() {
            places[rank] = Some(place);
        }
        World {
            me,
            ladder: Ladder::of_process(node.is_crowded(), NAP_WITH_MPI),
            node,
            places: places.into(),
            neighbours: neighbours.into(),
            timeout: Duration::MAX,
            homes: Some(homes),
            job: Some(job),
            segment_pool: SegmentPool::default(),
            gate: Gate::new(threads),
        }
    }

    pub(crate) fn me(&self) -> usize {
        self.me
    }

    /// How a rank is reached; `same_node`: whether the communicator's topology lets the two share memory.
    pub(crate) fn way(&self, rank: usize, same_node: bool) -> Way {
        match self.places[rank] {
            Some(place) if same_node || self.job.is_none() => Way::Near(place),
            _ => Way::Far,
        }
    }

    /// How often to look once more for a message from afar before the core is given away. Where ranks crowd the cores, a few times:
    /// fewer looks give it away while messages wait in MPI's queues, more keep it from those who would send. One look takes one
    /// message from the queue, so for one that is `alone` one is enough; Open MPI gives the core away by itself when nothing comes.
    /// Measured with `overheads hand` on three MPIs.
    pub(crate) fn looks(&self, alone: bool) -> u32 {
        match self.ladder.crowded() {
            false => 20,
            true if alone && self.job.as_ref().is_some_and(Job::keeps_the_core) => 1,
            true => 3,
        }
    }

    /// Looks for a letter from a rank of the node, closely and for less than a microsecond, where that is what waiting is: with a core for every
    /// rank, and no other thread that stands before the gate. Whether one has come.
    #[inline(never)]
    pub(crate) fn arrives_soon(&self, neighbour: &Neighbour) -> bool {
        let keeps_the_core = !self.ladder.crowded() && !self.gate.is_wanted();
        keeps_the_core && (0..CLOSE_LOOKS).any(|_| neighbour.has_come())
    }

    /// Whether all ranks of every node of a topology share memory. Every rank finds the same.
    pub(crate) fn share_memory(&self, members: &[usize], topology: &Topology) -> bool {
        let Some(homes) = &self.homes else { return true };
        let together = |node: usize| {
            let mut ranks = topology.members(1, node).map(|rank| homes[members[rank]]);
            let first = ranks.next();
            ranks.all(|home| Some(home) == first)
        };
        (0..topology.regions(1)).all(together)
    }

    /// Whether some members of a communicator are reached by MPI's messages only. Every member finds the same.
    pub(crate) fn apart(&self, members: &[usize], topology: &Topology) -> bool {
        let Some(homes) = &self.homes else { return false };
        topology.regions(1) > 1 || members.iter().any(|&rank| homes[rank] != homes[members[0]])
    }

    /// The collective cannot be completed: everybody of the node who waits in its scope gets to know.
    pub(crate) fn fail(&self, scope: u64, reason: &str) {
        self.node.board().fail(scope, self.me, reason);
        self.node.ring_all();
    }

    /// Whether some rank of the node cannot go on with what belongs to a scope.
    #[inline]
    pub(crate) fn has_failed(&self, scope: u64) -> bool {
        self.node.board().has_failed(scope)
    }

    /// Compares what the ranks of a node ask for where they make a plan together. With `clear`, they may get a chunk of memory that begins
    /// with so many zeros; all of them or none.
    pub(crate) fn join(
        &self,
        scope: u64,
        key: u64,
        members: &[usize],
        asked: &str,
        clear: Option<usize>,
    ) -> Result<Option<Chunk>> {
        let neighbours = members.iter().filter(|&&rank| self.places[rank].is_some()).count();
        self.node.join(key, neighbours, asked, clear).map_err(|(place, expected)| {
            let error = Error::Mismatch { rank: self.me, asked: asked.into(), other: self.neighbours[place], expected };
            self.fail(scope, &error.to_string());
            error
        })
    }

    /// Waits in `operation`, which belongs to a scope, until `ready`, which may do work; `awaited` finds a rank that must act for it and is
    /// gone; `far`: whether MPI brings what is waited for, so that looking for it moves MPI on.
    pub(crate) fn wait(
        &self,
        scope: u64,
        operation: &str,
        far: &dyn Fn() -> bool,
        ready: impl FnMut() -> bool,
        awaited: impl Fn(&dyn Fn(usize) -> bool) -> Option<usize>,
    ) -> Result<()> {
        let mut waiting = Waiting {
            world: self,
            scope,
            operation,
            far,
            ready,
            awaited,
            began: None,
            looked: Duration::ZERO,
            suspect: None,
            dead: Cell::new(None),
        };
        let seat = self.node.seat(self.node.me());
        let outcome = self.ladder.wait(&seat.wakeup, &self.gate, &mut waiting);
        if waiting.began.is_some() {
            seat.say("");
        }
        outcome
    }

    fn stuck(&self, operation: &str, after: Duration) -> Error {
        let mut places: Vec<(String, Vec<usize>)> = Vec::new();
        for place in 0..self.node.ranks() {
            let seat = self.node.seat(place);
            let doing = seat.doing();
            let doing = match (seat.left(), doing.is_empty()) {
                (true, _) => "ended".into(),
                (false, true) => "in nothing".into(),
                (false, false) => format!("in {doing}"),
            };
            let rank = self.neighbours[place];
            match places.iter_mut().find(|(known, _)| *known == doing) {
                Some((_, ranks)) => ranks.push(rank),
                None => places.push((doing, vec![rank])),
            }
        }
        let list = |ranks: &[usize]| ranks.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        let places: Vec<String> = places.iter().map(|(place, ranks)| format!("rank {} {place}", list(ranks))).collect();
        Error::Stuck { rank: self.me, operation: operation.into(), after, places: places.join(", ") }
    }

    /// Sends a few bytes to a neighbour while a plan is being made, waiting for room.
    pub(crate) fn tell(&self, need: &Need<'_>, to: usize, words: [u64; 2]) -> Result<()> {
        // SAFETY: a letter of sixteen bytes has room for two words.
        let send = || {
            self.node
                .neighbour(to)
                .send(need.key, 16, true, |at| unsafe { at.cast::<[u64; 2]>().write_unaligned(words) })
        };
        self.making(need, to, send)
    }

    /// Waits for what a neighbour tells.
    pub(crate) fn hear(&self, need: &Need<'_>, from: usize) -> Result<[u64; 2]> {
        let heard = RefCell::new(None);
        let read = |arrived: Arrived<'_>| match arrived {
            // SAFETY: `tell` wrote two words.
            Arrived::Bytes(payload) => unsafe { payload.at.cast::<[u64; 2]>().read_unaligned() },
            Arrived::Reference(..) => unreachable!("a few bytes are never referred to"),
        };
        let ready = || {
            *heard.borrow_mut() = self.node.neighbour(from).take(need.key, read);
            heard.borrow().is_some()
        };
        self.making(need, from, ready)?;
        Ok(heard.into_inner().expect("waited for"))
    }

    /// Waits for a neighbour while a plan is being made. What it has under way with this rank may have to be through before it comes.
    fn making(&self, need: &Need<'_>, other: usize, mut ready: impl FnMut() -> bool) -> Result<()> {
        let ready = || {
            ready() || {
                (need.on_idle)();
                false
            }
        };
        self.wait(need.scope, need.operation, &|| false, ready, |gone| {
            Some(self.neighbours[other]).filter(|rank| gone(*rank))
        })
    }
}

/// A rank waits in an operation.
struct Waiting<'a, R, A> {
    world: &'a World,
    scope: u64,
    operation: &'a str,
    far: &'a dyn Fn() -> bool,
    ready: R,
    awaited: A,
    /// When it first slept.
    began: Option<Instant>,
    /// How long after that it last looked whether the others are alive.
    looked: Duration,
    /// Who is awaited and gone, as it seemed after the last sleep.
    suspect: Option<usize>,
    /// Whose process was found to have ended; until the next look, which comes long before the next pulse.
    dead: Cell<Option<usize>>,
}

impl<R: FnMut() -> bool, A: Fn(&dyn Fn(usize) -> bool) -> Option<usize>> Wait for Waiting<'_, R, A> {
    type Reason = Error;

    #[inline]
    fn ready(&mut self) -> bool {
        (self.ready)()
    }

    fn far(&self) -> bool {
        (self.far)()
    }

    fn beside(&self) -> bool {
        let beside = |rank: usize| self.world.places[rank].is_some_and(|place| self.world.node.beside(place));
        (self.awaited)(&beside).is_some()
    }

    fn progress(&mut self) {
        if let Some(job) = &self.world.job {
            job.progress();
        }
    }

    fn slept(&mut self) -> Option<Error> {
        let Waiting { world, operation, .. } = *self;
        if let Some((rank, reason)) = world.node.board().failure(self.scope) {
            return Some(Error::Abandoned { rank, reason });
        }
        let after = match self.began {
            Some(began) => began.elapsed(),
            None => {
                world.node.seat(world.node.me()).say(operation);
                self.began.insert(Instant::now()).elapsed()
            }
        };
        let pulse = world.job.is_some() && after >= self.looked + PULSE;
        if pulse {
            self.looked = after;
        }
        let gone = |rank: usize| {
            let seat = world.places[rank].map(|place| world.node.seat(place));
            let found = seat.is_some_and(|seat| pulse && seat.dead());
            if found {
                self.dead.set(Some(rank));
            }
            found || self.dead.get() == Some(rank) || seat.is_some_and(|seat| seat.left())
        };
        // What a rank sent before it went may have been taken only in part: it is missed if it is still awaited after
        // everything that had come was taken.
        let now = (self.awaited)(&gone);
        let before = std::mem::replace(&mut self.suspect, now);
        if let Some(rank) = now.filter(|rank| before == Some(*rank)) {
            return Some(Error::Left { rank, waiting: world.me, operation: operation.into() });
        }
        (after >= world.timeout).then(|| world.stuck(operation, after))
    }
}
