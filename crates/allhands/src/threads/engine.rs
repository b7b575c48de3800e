//! Executing a program on thread ranks: resumable at every wait, allocating nothing.
//!
//! One code path serves blocking, non-blocking and persistent use: [`Engine::step`] goes as far as it can; a blocking call
//! steps until the end and waits in between.

use std::sync::Arc;

use allhands_schedule::{Combine, Topology};

use super::hub::{Buffer, Hub};
use super::meeting::Meeting;
use super::wire::{Piece, Wire};
use super::world::World;
use crate::error::{Error, Result};
use crate::op::Reducer;
use crate::program::{Instruction, Memory, Message, Program, Segment};

/// A rank's end of a plan.
pub(crate) struct Engine {
    world: Arc<World>,
    hub: Arc<Hub>,
    /// This rank, and all ranks of the communicator, as the world numbers them.
    me: usize,
    members: Arc<[usize]>,
    sends: Vec<(Arc<Wire>, u32)>,
    takes: Vec<Arc<Wire>>,
    meetings: Vec<Option<(Arc<Meeting>, Vec<usize>)>>,
    shared: Option<Arc<[Buffer; 2]>>,
    scratch: Buffer,
    reducer: Option<Arc<dyn Reducer>>,
    run: u32,
    at: usize,
    gate: u32,
    bases: [*mut u8; 4],
}

impl Engine {
    /// Connects a program to those of the other ranks.
    pub(crate) fn new(
        world: Arc<World>,
        hub: Arc<Hub>,
        members: Arc<[usize]>,
        rank: usize,
        topology: &Topology,
        program: &Program,
        reducer: Option<Arc<dyn Reducer>>,
    ) -> Result<Engine> {
        let me = members[rank];
        let outgoing = |message: &Message| {
            let wire = hub.wire(rank, message.peer, message.nth, message.bytes);
            if let Wire::Large(large) = &*wire {
                // SAFETY: this rank sends, and has not sent anything yet.
                unsafe { large.reserve(message.parts.len()) };
            }
            (wire, 0)
        };
        let sends = program.sends.iter().map(outgoing);
        let takes = program.takes.iter().map(|message| hub.wire(message.peer, rank, message.nth, message.bytes));
        let (sends, takes) = (sends.collect(), takes.collect());
        let meets = |level: &usize| program.code.contains(&Instruction::Arrive { level: *level });
        let meeting = |level: usize| {
            let region = topology.region_of(level, rank);
            let others: Vec<usize> = topology.members(level, region).map(|member| members[member]).collect();
            (hub.meeting(level, region, others.len()), others)
        };
        let meetings = (0..=topology.depth()).map(|level| meets(&level).then(|| meeting(level))).collect();
        let mut engine = Engine {
            world,
            hub,
            me,
            members,
            sends,
            takes,
            meetings,
            shared: None,
            scratch: Buffer::new(program.scratch),
            reducer,
            run: 0,
            at: usize::MAX,
            gate: 0,
            bases: [std::ptr::null_mut(); 4],
        };
        engine.share(rank, topology, program.shared)?;
        Ok(engine)
    }

    /// Says how much shared memory this rank needs and, if it needs any, waits until all ranks of the node have said so.
    fn share(&mut self, rank: usize, topology: &Topology, bytes: usize) -> Result<()> {
        let node = topology.region_of(1, rank);
        let neighbours: Vec<usize> = topology.members(1, node).map(|member| self.members[member]).collect();
        self.hub.need_shared(node, neighbours.len(), bytes);
        neighbours.iter().for_each(|&neighbour| self.world.ring(neighbour));
        if bytes == 0 {
            return Ok(());
        }
        self.world.begin(self.me, self.hub.operation());
        let waited = self.world.wait(
            self.me,
            || self.hub.shared(node).is_some(),
            |gone| neighbours.iter().copied().find(|&rank| gone(rank)),
        );
        self.world.end(self.me);
        waited?;
        self.shared = self.hub.shared(node);
        Ok(())
    }

    /// Makes room for a program that needs more scratch.
    pub(crate) fn grow_scratch(&mut self, bytes: usize) {
        if bytes > self.scratch.len() {
            self.scratch = Buffer::new(bytes);
        }
    }

    /// Begins a run.
    ///
    /// # Safety
    /// Until [`step`](Engine::step) has returned `true` or [`abandon`](Engine::abandon) has returned, `input` must be readable and
    /// `output` readable and writable for as many bytes as the program says, aligned for the elements, and touched by nobody else.
    pub(crate) unsafe fn begin(&mut self, input: *const u8, output: *mut u8) {
        self.run = self.run.wrapping_add(1);
        self.at = 0;
        let shared = self.shared.as_ref().map_or(std::ptr::null_mut(), |shared| shared[self.run as usize % 2].as_ptr());
        self.bases = [input.cast_mut(), output, self.scratch.as_ptr(), shared];
        self.world.begin(self.me, self.hub.operation());
    }

    /// Goes on as far as possible without waiting; `true` at the end of the program.
    pub(crate) fn step(&mut self, program: &Program) -> Result<bool> {
        while let Some(instruction) = program.code.get(self.at) {
            if !self.execute(program, instruction)? {
                return Ok(false);
            }
            self.at += 1;
        }
        self.world.end(self.me);
        Ok(true)
    }

    /// Where the run is: for [`awaited`](Engine::awaited).
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    /// The first rank that has to act before a run can go on from a position, and of which `gone` is true.
    pub(crate) fn awaited(&self, program: &Program, position: usize, gone: &dyn Fn(usize) -> bool) -> Option<usize> {
        let peer = |peer: usize| Some(self.members[peer]).filter(|&peer| gone(peer));
        match program.code.get(position)? {
            Instruction::Send(message) | Instruction::Settle(message) => peer(program.sends[*message].peer),
            Instruction::Take(message)
            | Instruction::TakeCombine(message, _)
            | Instruction::TakeWith { message, .. } => peer(program.takes[*message].peer),
            Instruction::Await { level } => {
                let (_, others) = self.meetings[*level].as_ref()?;
                others.iter().copied().find(|&other| gone(other))
            }
            _ => None,
        }
    }

    /// Gives up: nobody reads this rank's memory any more when this returns.
    pub(crate) fn abandon(&mut self) {
        for (wire, _) in &self.sends {
            if let Wire::Large(large) = &**wire {
                large.revoke();
            }
        }
        self.at = usize::MAX;
        self.world.end(self.me);
    }

    #[inline]
    fn address(&self, segment: &Segment) -> *mut u8 {
        let base = self.bases[match segment.memory {
            Memory::Input => 0,
            Memory::Output => 1,
            Memory::Scratch => 2,
            Memory::Shared => 3,
        }];
        // SAFETY: programs stay inside the memory they were compiled for; `begin` was promised as much.
        unsafe { base.add(segment.at) }
    }

    #[inline]
    fn execute(&mut self, program: &Program, instruction: &Instruction) -> Result<bool> {
        match instruction {
            Instruction::Send(index) => {
                let message = &program.sends[*index];
                let piece = |part: &Segment| Piece { at: self.address(part), len: part.len };
                let run = self.run;
                let mut seen = self.sends[*index].1;
                match &*self.sends[*index].0 {
                    Wire::Small(small) => {
                        let free = small.free(run, &mut seen);
                        if free {
                            // SAFETY: the slot is free; the parts are inside this rank's memory.
                            unsafe { small.send(run, message.parts.iter().map(piece)) };
                        }
                        self.sends[*index].1 = seen;
                        if !free {
                            return Ok(false);
                        }
                    }
                    Wire::Large(large) => {
                        if !large.settled() {
                            return Ok(false);
                        }
                        // SAFETY: settled; the program does not write the parts before it settles this message, and `abandon`
                        // revokes it.
                        unsafe { large.publish(message.parts.iter().map(piece)) };
                    }
                }
                self.world.ring(self.members[message.peer]);
            }
            Instruction::Take(index) => return self.take(program, *index, None, None),
            Instruction::TakeCombine(index, side) => return self.take(program, *index, Some(*side), None),
            Instruction::TakeWith { message, others, side } => {
                return self.take(program, *message, Some(*side), Some(others));
            }
            Instruction::Settle(index) => {
                if let Wire::Large(large) = &*self.sends[*index].0 {
                    return Ok(large.settled());
                }
            }
            Instruction::Copy { from, to } => {
                // SAFETY: both inside this rank's memory; a schedule never copies a block over itself.
                unsafe { std::ptr::copy(self.address(from), self.address(to), from.len) };
            }
            Instruction::Combine { from, into, side } => {
                // SAFETY: both inside this rank's memory, aligned as elements are.
                unsafe { self.reducer().combine(self.address(from), self.address(into), from.len, *side) };
            }
            Instruction::Arrive { level } => {
                let (meeting, others) = self.meetings[*level].as_ref().expect("connected for every level it meets at");
                let (gate, last) = meeting.arrive();
                if last {
                    others.iter().filter(|&&other| other != self.me).for_each(|&other| self.world.ring(other));
                }
                self.gate = gate;
            }
            Instruction::Await { level } => {
                let (meeting, _) = self.meetings[*level].as_ref().expect("connected for every level it meets at");
                return Ok(meeting.open(self.gate));
            }
        }
        Ok(true)
    }

    /// Takes a message, if it is there.
    #[inline]
    fn take(&self, program: &Program, index: usize, side: Option<Combine>, others: Option<&[Segment]>) -> Result<bool> {
        let wire = &self.takes[index];
        if !wire.arrived(self.run) {
            return Ok(false);
        }
        let message = &program.takes[index];
        // SAFETY: the piece is readable while it is taken; the parts are inside this rank's memory and as long together as the
        // message.
        let put = |piece: Piece, index: usize, done: usize, len: usize| unsafe {
            let to = self.address(&message.parts[index]).add(done);
            match (side, others) {
                (None, _) => std::ptr::copy_nonoverlapping(piece.at, to, len),
                (Some(side), None) => self.reducer().combine(piece.at, to, len, side),
                (Some(side), Some(others)) => {
                    let other = self.address(&others[index]).add(done).cast_const();
                    let (left, right) = if side == Combine::After { (piece.at, other) } else { (other, piece.at) };
                    self.reducer().combine_into(left, right, to, len);
                }
            }
        };
        // A cursor through the parts, whose cuts are not those of the pieces that arrive.
        let (mut part, mut done) = (0, 0);
        let place = |mut piece: Piece| {
            if let ([_], true) = (&message.parts[..], piece.len == message.bytes) {
                return put(piece, 0, 0, piece.len);
            }
            while piece.len > 0 {
                let into = &message.parts[part];
                let len = piece.len.min(into.len - done);
                put(piece, part, done, len);
                // SAFETY: at most one past the end of the piece.
                piece = Piece { at: unsafe { piece.at.add(len) }, len: piece.len - len };
                done += len;
                if done == into.len {
                    (part, done) = (part + 1, 0);
                }
            }
        };
        // SAFETY: this rank receives, and the message has arrived.
        let taken = unsafe { wire.take(self.run, place) };
        let peer = self.members[message.peer];
        if wire.tells_sender(self.run) {
            self.world.ring(peer);
        }
        taken.map_err(|_| Error::Abandoned { rank: peer, reason: "its run ended with an error".into() })?;
        Ok(true)
    }

    fn reducer(&self) -> &dyn Reducer {
        self.reducer.as_deref().expect("a plan that combines has an operation")
    }
}
