//! Executing a program: resumable at every wait, allocating nothing.
//!
//! One code path serves blocking, non-blocking and persistent use: [`Engine::step`] goes as far as it can; a blocking call
//! steps until the end and waits in between. Messages to ranks of the same node go through channels, others through MPI.

mod connection;
mod messages;
mod short;

use std::sync::Arc;

use allhands_schedule::Combine;

use self::connection::{Common, Gathering};
pub(crate) use self::connection::{Connection, chunk_for};
use self::messages::{Cursor, Destination, Inlet, Outlet, address, copy_run, fill, refers};
use self::short::Short;
use crate::buffer::Buffer;
use crate::error::{Error, Result};
use crate::mpi_transport::{self, MpiTransport};
use crate::node::channel::{Reading, Revoked};
use crate::node::{Arrived, Piece, Reference, Runs};
use crate::op::Reducer;
use crate::program::{Buffers, Instruction, Message, Program, Segment};
use crate::world::{Way, World};

/// A rank's end of a plan.
pub(crate) struct Engine {
    world: Arc<World>,
    /// Tells the messages of this plan from those of others.
    key: u64,
    /// All ranks of the communicator, as the world numbers them.
    members: Arc<[usize]>,
    transport: Option<MpiTransport>,
    sends: Vec<Outlet>,
    takes: Vec<Inlet>,
    /// The programs for buffers apart and in place, if they are of short messages only; the latter from its first run on.
    shorts: [Option<Box<[Short]>>; 2],
    /// Sends that found no room, in order.
    pending: Vec<usize>,
    /// Far sends that MPI has not been asked about since they began.
    unasked: Vec<usize>,
    meetings: Vec<Option<Gathering>>,
    common: Option<Common>,
    scratch: Buffer,
    reducer: Option<Arc<dyn Reducer>>,
    run: u32,
    at: usize,
    gate: u32,
    cursor: Cursor,
    bases: [*mut u8; 4],
    /// How the buffers of this run lie; and whether that and the memory are those of the run before.
    buffers: Buffers,
    same: bool,
    /// How often to look for a message from afar.
    looks: u32,
}

/// What was taken of a message.
enum Taken {
    All,
    /// A letter, and there may be more.
    Letter,
    WhatCame,
}

/// A rank says which core it runs on in one of so many runs: schedulers move ranks seldom.
const SEEN_EVERY: u32 = 8;

impl Engine {
    /// Connects a program to those of the other ranks.
    pub(crate) fn new(
        mut connection: Connection<'_>,
        program: &Program,
        reducer: Option<Arc<dyn Reducer>>,
    ) -> Result<Engine> {
        let mut meetings = Vec::new();
        let common = connection.share(program, &mut meetings)?;
        let Connection { world, key, company, transport, .. } = connection;
        let way = |peer: usize| company.way(&world, peer);
        let outlet = |message: &Message| match way(message.peer) {
            Way::Far => Outlet::Far(mpi_transport::Message::new(message.peer)),
            Way::Near(to) if refers(&world.node, message) => {
                Outlet::Reference { to, pieces: Vec::with_capacity(message.parts.len()), number: None }
            }
            Way::Near(to) => Outlet::Letters { to, cursor: Cursor::default(), done: true },
        };
        let inlet = |message: &Message| match way(message.peer) {
            Way::Far => Inlet::Far(mpi_transport::Message::new(message.peer)),
            Way::Near(from) => Inlet::Near { from },
        };
        let (sends, takes): (Vec<_>, Vec<_>) =
            (program.sends.iter().map(outlet).collect(), program.takes.iter().map(inlet).collect());
        let mut engine = Engine {
            members: company.members.clone(),
            world,
            key,
            transport,
            pending: Vec::with_capacity(program.sends.len()),
            unasked: Vec::with_capacity(program.sends.len()),
            sends,
            takes,
            shorts: [None, None],
            meetings,
            common,
            scratch: Buffer::new(program.scratch),
            reducer,
            run: 0,
            at: usize::MAX,
            gate: 0,
            cursor: Cursor::default(),
            bases: [std::ptr::null_mut(); 4],
            buffers: Buffers::Apart,
            same: false,
            looks: 1,
        };
        engine.get_ready(Buffers::Apart, program);
        Ok(engine)
    }

    /// Lets go of the memory that it shares with the others of its node: nothing runs before it is [connected anew](Engine::reconnect).
    /// Not where MPI carries messages; then nothing is changed.
    pub(crate) fn disconnect(&mut self) -> bool {
        if self.transport.is_some() {
            return false;
        }
        self.meetings.clear();
        self.common = None;
        true
    }

    /// Connects a program to those of the other ranks once more, as if it were new.
    pub(crate) fn reconnect(&mut self, mut connection: Connection<'_>, program: &Program) -> Result<()> {
        self.common = connection.share(program, &mut self.meetings)?;
        for outlet in &mut self.sends {
            match outlet {
                Outlet::Letters { cursor, done, .. } => (*cursor, *done) = (Cursor::default(), true),
                Outlet::Reference { pieces, number, .. } => {
                    pieces.clear();
                    *number = None;
                }
                Outlet::Far(_) => unreachable!("what MPI carries is not connected anew"),
            }
        }
        self.pending.clear();
        self.unasked.clear();
        (self.key, self.run, self.at, self.gate, self.same) = (connection.key, 0, usize::MAX, 0, false);
        self.cursor = Cursor::default();
        Ok(())
    }

    /// So many words at the beginning of scratch, as the last run has left them; all of scratch, if it is shorter.
    pub(crate) fn words_in_scratch(&self, many: usize) -> Vec<u64> {
        let words = many.min(self.scratch.len() / 8);
        let first = self.scratch.as_ptr().cast::<u64>();
        // SAFETY: initialised memory, aligned for words, of at least so many; only a run of this engine, which has it to itself, writes there.
        (0..words).map(|word| unsafe { first.add(word).read() }).collect()
    }

    /// Whether a program for such buffers has been made ready; for buffers apart it is from the beginning.
    #[inline]
    pub(crate) fn is_ready(&self, buffers: Buffers) -> bool {
        self.shorts[buffers as usize].is_some()
    }

    /// Before a program for such buffers is run for the first time: makes room for what it needs of scratch, and resolves it.
    pub(crate) fn get_ready(&mut self, buffers: Buffers, program: &Program) {
        if program.scratch > self.scratch.len() {
            self.scratch = Buffer::new(program.scratch);
        }
        self.shorten(buffers, program);
    }

    /// Begins a run.
    ///
    /// # Safety
    /// Until [`step`](Engine::step) has returned `true` or [`abandon`](Engine::abandon) has returned, `input` must be readable and
    /// `output` readable and writable for as many bytes as the program says, aligned for the elements, and touched by nobody else.
    #[inline(always)]
    pub(crate) unsafe fn begin(&mut self, buffers: Buffers, input: *const u8, output: *mut u8) {
        self.run = self.run.wrapping_add(1);
        if self.run.is_multiple_of(SEEN_EVERY) {
            self.world.node.be_seen();
        }
        self.at = 0;
        let shared = self.common.as_ref().map_or(std::ptr::null_mut(), |common| {
            // SAFETY: the memory holds two segments of `each` bytes after the first.
            unsafe { common.memory.as_ptr().add(common.first + self.run as usize % 2 * common.each) }
        });
        let bases = [input.cast_mut(), output, self.scratch.as_ptr(), shared];
        // Who wants to know is MPI.
        self.same = self.transport.is_some() && (buffers, bases) == (self.buffers, self.bases);
        (self.buffers, self.bases) = (buffers, bases);
    }

    /// Goes on as far as possible without waiting; `true` at the end of the program. `patient`: whether the caller waits anyway.
    pub(crate) fn step(&mut self, program: &Program, patient: bool) -> Result<bool> {
        if self.at == 0 && self.run_short(patient) {
            return Ok(true);
        }
        while let Some(instruction) = program.code.get(self.at) {
            self.looks = 1;
            if self.execute(program, instruction)? || patient && self.look(program, instruction)? {
                self.at += 1;
                continue;
            }
            if !self.pending.is_empty() {
                self.pump(program);
            }
            if !self.unasked.is_empty() {
                self.ask();
            }
            return Ok(false);
        }
        self.unasked.clear();
        Ok(true)
    }

    /// Looks for a message a few times in a row: it is found sooner so than by a caller who comes back, and MPI is
    /// moved on by more than one message before the core is given away.
    #[inline(never)]
    fn look(&mut self, program: &Program, instruction: &Instruction) -> Result<bool> {
        if !self.pending.is_empty() {
            return Ok(false);
        }
        if self.awaits_far(program) {
            self.ask();
            self.looks = self.world.looks(!self.takes_far(program, self.at + 1));
            return self.execute(program, instruction);
        }
        match self.inlet(program, self.at) {
            Some(&Inlet::Near { from }) if self.world.arrives_soon(self.world.node.neighbour(from)) => {
                self.execute(program, instruction)
            }
            _ => Ok(false),
        }
    }

    /// Asks once about each far send, while there is time: most are through then, and settled without another call.
    fn ask(&mut self) {
        let Some(transport) = &self.transport else { return };
        for index in self.unasked.drain(..) {
            if let Outlet::Far(outbound) = &mut self.sends[index] {
                // An error is found again where the send is settled.
                let _ = transport.sent(outbound);
            }
        }
    }

    /// The first rank that has to act before the run can go on, and of which `gone` is true.
    pub(crate) fn awaited(&self, program: &Program, gone: &dyn Fn(usize) -> bool) -> Option<usize> {
        let peer = |peer: usize| Some(self.members[peer]).filter(|&peer| gone(peer));
        match program.code.get(self.at)? {
            Instruction::Settle(message) => peer(program.sends[*message].peer),
            Instruction::Take(message)
            | Instruction::TakeCombine(message, _)
            | Instruction::TakeWith { message, .. } => peer(program.takes[*message].peer),
            Instruction::Await { level } => {
                self.meetings[*level].as_ref()?.attendees.ranks.iter().copied().find(|&other| gone(other))
            }
            _ => None,
        }
    }

    /// Whether MPI brings what the run waits for.
    pub(crate) fn awaits_far(&self, program: &Program) -> bool {
        match program.code.get(self.at) {
            Some(Instruction::Settle(message)) => matches!(self.sends[*message], Outlet::Far(_)),
            _ => self.takes_far(program, self.at),
        }
    }

    /// Whether an instruction takes a message from afar.
    fn takes_far(&self, program: &Program, at: usize) -> bool {
        matches!(self.inlet(program, at), Some(Inlet::Far(_)))
    }

    /// Where the message comes in that an instruction takes, if it takes one.
    fn inlet(&self, program: &Program, at: usize) -> Option<&Inlet> {
        match program.code.get(at)? {
            Instruction::Take(message)
            | Instruction::TakeCombine(message, _)
            | Instruction::TakeWith { message, .. } => Some(&self.takes[*message]),
            _ => None,
        }
    }

    /// Gives up: nobody reads or writes this rank's memory any more when this returns.
    pub(crate) fn abandon(&mut self) {
        self.pending.clear();
        self.unasked.clear();
        for outlet in &mut self.sends {
            if let Outlet::Reference { to, number: Some(number), .. } = outlet {
                self.world.node.revoke(*to, *number);
            }
        }
        if let Some(transport) = &self.transport {
            let outbound = self.sends.iter_mut().filter_map(|outlet| match outlet {
                Outlet::Far(outbound) => Some(outbound),
                _ => None,
            });
            let inbound = self.takes.iter_mut().filter_map(|inlet| match inlet {
                Inlet::Far(inbound) => Some(inbound),
                Inlet::Near { .. } => None,
            });
            transport.abandon(outbound, inbound);
        }
        self.cursor = Cursor::default();
        self.at = usize::MAX;
    }

    #[inline]
    fn address(&self, segment: &Segment) -> *mut u8 {
        address(&self.bases, segment)
    }

    #[inline(always)]
    fn execute(&mut self, program: &Program, instruction: &Instruction) -> Result<bool> {
        match instruction {
            Instruction::Post(index) => {
                if let Inlet::Far(inbound) = &mut self.takes[*index] {
                    let transport = self.transport.as_ref().expect("far messages have a link");
                    let message = &program.takes[*index];
                    // SAFETY: as below; where the memory is the same, so are the parts.
                    if self.same && unsafe { transport.post_again(inbound, message.bytes)? } {
                        return Ok(true);
                    }
                    let bases = &self.bases;
                    let places = message.parts.iter().map(|part| Piece { at: address(bases, part), len: part.len });
                    // SAFETY: the program does not touch the parts between here and the take; `abandon` takes them back.
                    unsafe { transport.post(inbound, (!message.combined).then_some(places), message.bytes)? };
                }
            }
            Instruction::Send(index) => return self.send(program, *index),
            Instruction::Take(index) => return self.take(program, *index, None, None),
            Instruction::TakeCombine(index, side) => return self.take(program, *index, Some(*side), None),
            Instruction::TakeWith { message, others, side } => {
                return self.take(program, *message, Some(*side), Some(others));
            }
            Instruction::Settle(index) => {
                return Ok(match &mut self.sends[*index] {
                    Outlet::Letters { done, .. } => *done,
                    Outlet::Reference { to, number, .. } => match number {
                        Some(sent) if self.world.node.neighbour(*to).settled(*sent) => {
                            *number = None;
                            true
                        }
                        _ => false,
                    },
                    Outlet::Far(outbound) => {
                        self.transport.as_ref().expect("far messages have a link").sent(outbound)?
                    }
                });
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
                let gathering = self.meetings[*level].as_ref().expect("connected for every level it meets at");
                // SAFETY: the meeting is in memory that the plan holds.
                let (gate, last) = unsafe { &*gathering.meeting }.arrive(gathering.expected);
                if last {
                    let me = self.world.node.me();
                    let others = gathering.attendees.places.iter().filter(|&&place| place != me);
                    others.for_each(|&place| self.world.node.neighbour(place).wake());
                }
                self.gate = gate;
            }
            Instruction::Await { level } => {
                let gathering = self.meetings[*level].as_ref().expect("connected for every level it meets at");
                // SAFETY: as above.
                return Ok(unsafe { &*gathering.meeting }.open(self.gate));
            }
        }
        Ok(true)
    }

    /// Begins a send. A message that finds no room waits in `pending` while the program goes on.
    #[inline(always)]
    fn send(&mut self, program: &Program, index: usize) -> Result<bool> {
        // One run of memory and one letter, as most messages are.
        if let Outlet::Letters { to, done, .. } = &mut self.sends[index]
            && let [part] = &program.sends[index].parts[..]
            && part.len <= self.world.node.body()
            && self.pending.is_empty()
        {
            let from = address(&self.bases, part);
            // SAFETY: the part is inside this rank's memory, and the letter has room for it.
            let fill = |at: *mut u8| unsafe { copy_run(from, at, part.len) };
            if self.world.node.neighbour(*to).send(self.key, part.len, true, fill) {
                *done = true;
                return Ok(true);
            }
        }
        self.send_otherwise(program, index)
    }

    /// The same for every message.
    #[inline(never)]
    fn send_otherwise(&mut self, program: &Program, index: usize) -> Result<bool> {
        let message = &program.sends[index];
        match &mut self.sends[index] {
            Outlet::Letters { cursor, done, .. } => {
                *cursor = Cursor::default();
                *done = false;
            }
            Outlet::Reference { pieces, number, .. } => {
                pieces.clear();
                let bases = &self.bases;
                pieces.extend(message.parts.iter().map(|part| Piece { at: address(bases, part), len: part.len }));
                *number = None;
            }
            Outlet::Far(outbound) => {
                let bases = &self.bases;
                let transport = self.transport.as_ref().expect("far messages have a link");
                self.unasked.push(index);
                // SAFETY: as below; where the memory is the same, so are the parts.
                if self.same && unsafe { transport.send_again(outbound, message.bytes)? } {
                    return Ok(true);
                }
                let pieces = message.parts.iter().map(|part| Piece { at: address(bases, part), len: part.len });
                // SAFETY: the program does not write the parts before it settles this message; `abandon` takes it back.
                unsafe { transport.send(outbound, pieces, message.bytes)? };
                return Ok(true);
            }
        }
        if self.pending.is_empty() && self.push_and_copy(program, index) {
            return Ok(true);
        }
        self.pending.push(index);
        self.pump(program);
        Ok(true)
    }

    /// Sends what there is room for; whether that was all. A copy that comes next is made at the same time, each time as much as a letter
    /// carries: often both are of the same bytes, which are near then, and the letter's way to memory that the other core has read takes as
    /// long as the copy.
    fn push_and_copy(&mut self, program: &Program, index: usize) -> bool {
        let (from, to) = match program.code.get(self.at + 1) {
            Some(Instruction::Copy { from, to })
                if from.memory != to.memory && program.sends[index].bytes > self.world.node.body() =>
            {
                (from, to)
            }
            _ => return self.push(program, index, |_| ()),
        };
        let (from_at, to_at, mut copied) = (self.address(from), self.address(to), 0);
        let mut copy = |most: usize| {
            let bytes = most.min(from.len - copied);
            // SAFETY: as for any copy of a program; one that comes between a message's send and its settling leaves its bytes alone.
            unsafe { std::ptr::copy(from_at.add(copied), to_at.add(copied), bytes) };
            copied += bytes;
        };
        let sent = self.push(program, index, &mut copy);
        copy(from.len);
        self.at += 1;
        sent
    }

    /// Sends what there is room for; whether that was all. `between` is told of each letter how long it was.
    #[inline]
    fn push(&mut self, program: &Program, index: usize, mut between: impl FnMut(usize)) -> bool {
        let message = &program.sends[index];
        let node = &self.world.node;
        match &mut self.sends[index] {
            Outlet::Letters { to, cursor, done } => {
                let (bases, neighbour) = (&self.bases, node.neighbour(*to));
                loop {
                    let bytes = (message.bytes - cursor.in_all).min(node.body());
                    let last = cursor.in_all + bytes == message.bytes;
                    if !neighbour.send(self.key, bytes, last, |at| fill(bases, message, cursor, at, bytes)) {
                        return false;
                    }
                    between(bytes);
                    if last {
                        *done = true;
                        return true;
                    }
                }
            }
            Outlet::Reference { to, pieces, number } => {
                *number = node.neighbour(*to).refer(self.key, pieces);
                number.is_some()
            }
            Outlet::Far(_) => true,
        }
    }

    /// Tries pending sends again, each after those to the same rank before it.
    fn pump(&mut self, program: &Program) {
        let mut pending = std::mem::take(&mut self.pending);
        let mut kept = 0;
        for place in 0..pending.len() {
            let index = pending[place];
            let peer = program.sends[index].peer;
            let behind = pending[..kept].iter().any(|&before| program.sends[before].peer == peer);
            if behind || !self.push(program, index, |_| ()) {
                pending[kept] = index;
                kept += 1;
            }
        }
        pending.truncate(kept);
        self.pending = pending;
    }

    /// Takes a message, or what has come of it; whether that was all. Where sends wait for room, there is some after each letter: what is sent next
    /// goes into the memory that was read last.
    #[inline]
    fn take(
        &mut self,
        program: &Program,
        index: usize,
        side: Option<Combine>,
        others: Option<&[Segment]>,
    ) -> Result<bool> {
        loop {
            match self.take_letters(program, index, side, others)? {
                Taken::All => return Ok(true),
                Taken::WhatCame => return Ok(false),
                Taken::Letter => self.pump(program),
            }
        }
    }

    #[inline]
    fn take_letters(
        &mut self,
        program: &Program,
        index: usize,
        side: Option<Combine>,
        others: Option<&[Segment]>,
    ) -> Result<Taken> {
        let message = &program.takes[index];
        let place = Destination { bases: &self.bases, reducer: self.reducer.as_deref(), message, side, others };
        let from = match &mut self.takes[index] {
            Inlet::Near { from } => *from,
            Inlet::Far(inbound) => {
                let transport = self.transport.as_ref().expect("far messages have a link");
                let Some(arrived) = transport.arrived(inbound, message.bytes, self.looks)? else {
                    return Ok(Taken::WhatCame);
                };
                if let Some(at) = arrived {
                    place.put(&mut Cursor::default(), Piece { at, len: message.bytes });
                }
                return Ok(Taken::All);
            }
        };
        let neighbour = self.world.node.neighbour(from);
        let mut cursor = self.cursor;
        let taken = loop {
            let read = |arrived: Arrived<'_>| match arrived {
                Arrived::Bytes(payload) if payload.len <= message.bytes - cursor.in_all => {
                    payload.each(|_, at, len| place.put(&mut cursor, Piece { at, len }));
                    Ok(())
                }
                Arrived::Bytes(payload) => Err(self.unexpected(message, payload.len)),
                Arrived::Reference(reference, reading) => self.refer(&place, &mut cursor, from, &reference, reading),
            };
            match neighbour.take(self.key, read) {
                None => break Taken::WhatCame,
                Some(taken) => taken?,
            }
            if cursor.in_all == message.bytes {
                cursor = Cursor::default();
                break Taken::All;
            }
            if !self.pending.is_empty() {
                break Taken::Letter;
            }
        };
        self.cursor = cursor;
        Ok(taken)
    }

    /// Reads what a reference names.
    #[cold]
    fn refer(
        &self,
        place: &Destination<'_>,
        cursor: &mut Cursor,
        from: usize,
        reference: &Reference,
        reading: std::result::Result<Reading<'_>, Revoked>,
    ) -> Result<()> {
        let peer = self.members[place.message.peer];
        let _reading =
            reading.map_err(|_| Error::Abandoned { rank: peer, reason: "its run ended with an error".into() })?;
        if cursor.in_all != 0 || reference.bytes != place.message.bytes {
            return Err(self.unexpected(place.message, reference.bytes));
        }
        let part = |index: usize| place.message.parts.get(index).map(|part| (self.address(part), part.len));
        let runs = place.side.is_none().then(|| Runs::new(part));
        // SAFETY: the reference is being read; the parts are together as long as the message, and so is what it names.
        let read = unsafe { self.world.node.peer_memory.read(from, reference, runs, |piece| place.put(cursor, piece)) };
        read.map_err(|error| Error::Unreadable { rank: peer, reason: error.0.to_string() })?;
        cursor.in_all = place.message.bytes;
        Ok(())
    }

    #[cold]
    fn unexpected(&self, message: &Message, bytes: usize) -> Error {
        Error::Size { rank: self.world.me(), other: self.members[message.peer], expected: message.bytes, came: bytes }
    }

    fn reducer(&self) -> &dyn Reducer {
        self.reducer.as_deref().expect("a plan that combines has an operation")
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if let Some(transport) = &self.transport {
            for outlet in &mut self.sends {
                if let Outlet::Far(outbound) = outlet {
                    transport.free(outbound);
                }
            }
            for inlet in &mut self.takes {
                if let Inlet::Far(inbound) = inlet {
                    transport.free(inbound);
                }
            }
        }
    }
}
