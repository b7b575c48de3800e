//! Programs: one rank's schedule with offsets, lengths, peers and kernels resolved, flat and without branches.
//!
//! Compiling binds a schedule to counts and an element size. Spans that touch become one run of bytes; scratch positions
//! get addresses; blocks of no bytes vanish, and messages of nothing but such blocks on both sides. A message that lands
//! only to be combined with another operand is combined as it lands, unless it may be cut inside an element. A copy of the
//! input to where it already is, in place, is nothing; another is made while messages travel, next to a send if possible, and messages that would be sent from it
//! are sent from the input.
//!
//! Of a round the program does, in this order: say what it will receive; send everything; take what arrives, overwriting or combining; where a
//! message is to be combined with memory that the round also sends, or may be cut inside an element, take it into scratch first;
//! settle the sends that others read from our memory; combine what was put aside; the local operations.
//!
//! What is compiled is checked: a program that is there keeps to its memory (`check`). While it is made, sums that are too large for a number stay at
//! the largest, which lies outside of every memory.

mod check;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use allhands_schedule::{Collective, Combine, Local, Prepared, Problem, Recv, Round, Schedule, Space, Span};

pub(crate) use self::check::alike;
use crate::error::{Error, Result};
use crate::layout::{Amount, Bytes, Layout};

/// A memory that a program works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Memory {
    Input,
    Output,
    Scratch,
    Shared,
}

/// A run of bytes in one memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) memory: Memory,
    pub(crate) at: usize,
    pub(crate) len: usize,
}

impl Segment {
    fn end(&self) -> usize {
        self.at.saturating_add(self.len)
    }

    fn overlaps(&self, other: &Segment) -> bool {
        self.memory == other.memory && self.at < other.end() && other.at < self.end()
    }
}

/// One end of a message. Between two ranks messages are sent and taken in the same order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    /// The rank at the other end.
    pub(crate) peer: usize,
    /// How many bytes it carries.
    pub(crate) bytes: usize,
    /// Where they are, or go.
    pub(crate) parts: Vec<Segment>,
    /// Whether what arrives is combined with something rather than put in place.
    pub(crate) combined: bool,
    /// Of one that is sent: what its rank does beside sending it.
    pub(crate) beside: Beside,
}

/// What else a rank does in the round in which it sends a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Beside {
    /// Nothing.
    Nothing,
    /// It combines what it takes, so the others most likely do, too.
    Combining,
    /// It moves other messages.
    #[default]
    Moving,
}

impl Message {
    /// What both ends see of it.
    fn envelope(&self) -> (usize, usize) {
        (self.peer, self.bytes)
    }
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Instruction {
    /// From now on a message may arrive: nothing else touches where it goes before it is taken.
    Post(usize),
    /// Begin a send.
    Send(usize),
    /// Wait for a message and put it in place.
    Take(usize),
    /// Wait for a message and combine it with what is in place.
    TakeCombine(usize, Combine),
    /// Wait for a message and put `message op others` (after) or `others op message` (before) in place.
    TakeWith { message: usize, others: Vec<Segment>, side: Combine },
    /// Wait until a send's memory is ours again.
    Settle(usize),
    /// `to = from`
    Copy { from: Segment, to: Segment },
    /// `into = into op from` or `from op into`
    Combine { from: Segment, into: Segment, side: Combine },
    /// Come to a meeting.
    Arrive { level: usize },
    /// Wait for the others.
    Await { level: usize },
}

/// What one rank does, from beginning to end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Program {
    pub(crate) code: Vec<Instruction>,
    pub(crate) sends: Vec<Message>,
    pub(crate) takes: Vec<Message>,
    /// Bytes of scratch.
    pub(crate) scratch: usize,
    /// Bytes of shared memory that this rank touches.
    pub(crate) shared: usize,
    /// Elements that the caller's input and output have.
    pub(crate) input: usize,
    pub(crate) output: usize,
}

/// Messages are cut at multiples of this, and lie at multiples of it wherever they arrive.
const NEVER_CUT: usize = 16;

/// Places in scratch begin at multiples of this, which suits elements of every type.
const ALIGN: usize = 64;

/// Whether the caller's input is in the output already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Buffers {
    Apart,
    InPlace,
}

/// Binds a schedule, of one rank, to sizes. One that does not keep to the memory which these give it is an error.
pub(crate) fn compile(
    prepared: &Prepared,
    schedule: &Schedule,
    element: usize,
    amount: &Amount,
    buffers: Buffers,
) -> Result<Program> {
    let problem = prepared.problem();
    amount.fits(problem, element)?;
    let refused = |fact: String| unexecutable(prepared, schedule.rank, fact);
    check::schedule(prepared, schedule, amount).map_err(refused)?;
    let make = |keep_input: bool| {
        let layout = Layout::new(problem, schedule.rank, prepared.blocks(), element, amount);
        let mut compiler = Compiler::new(problem, schedule, layout, element, buffers, keep_input);
        compiler.run(schedule).map(|()| compiler.program)
    };
    let made = match make(false) {
        // The input is kept in scratch.
        Err(Obstacle::Overwritten) => make(true),
        made => made,
    };
    let mut program = made.map_err(|obstacle| refused(obstacle.fact().into()))?;
    check::program(&program, element, buffers).map_err(refused)?;
    program.shared = program
        .segments()
        .filter(|segment| segment.memory == Memory::Shared)
        .map(|segment| segment.end())
        .max()
        .unwrap_or(0);
    Ok(program)
}

/// A schedule that must not be run.
pub(crate) fn unexecutable(prepared: &Prepared, rank: usize, fact: String) -> Error {
    let (algorithm, collective) = (prepared.name(), prepared.problem().collective.name());
    Error::Unexecutable { algorithm, collective, rank, fact }
}

impl Program {
    /// Every run of bytes that is read or written.
    fn segments(&self) -> impl Iterator<Item = Segment> + '_ {
        let messages = self.sends.iter().chain(&self.takes).flat_map(|message| message.parts.iter().copied());
        let local = self.code.iter().flat_map(|instruction| match instruction {
            Instruction::Copy { from, to } => vec![*from, *to],
            Instruction::Combine { from, into, .. } => vec![*from, *into],
            Instruction::TakeWith { others, .. } => others.clone(),
            _ => vec![],
        });
        messages.chain(local)
    }
}

/// What keeps a schedule from being compiled as it is.
enum Obstacle {
    /// Something would be overwritten before its last use: the input, if it is in place.
    Overwritten,
    /// The operands of a copy or a combination have different lengths.
    Unequal,
}

type Compiled<T = ()> = std::result::Result<T, Obstacle>;

impl Obstacle {
    fn fact(&self) -> &'static str {
        match self {
            Obstacle::Overwritten => "a message arrives where another is sent from",
            Obstacle::Unequal => "blocks of different lengths are copied or combined",
        }
    }
}

struct Compiler<'a> {
    problem: &'a Problem,
    rank: usize,
    layout: Layout<'a>,
    buffers: Buffers,
    /// Whether a message has to be there as a whole before its elements are.
    whole: bool,
    /// Where the input is kept, if not where the caller has it.
    kept_input: Option<usize>,
    scratch: BTreeMap<usize, usize>,
    /// Bytes of the output that no longer hold the caller's input.
    overwritten: Vec<Range<usize>>,
    /// Copies of the input, apart from it, that still hold what they were made from: from where, and where.
    copies: Vec<(Segment, Segment)>,
    /// Those of them that are yet to be made.
    late: Vec<(Segment, Segment)>,
    program: Program,
}

impl<'a> Compiler<'a> {
    fn new(
        problem: &'a Problem,
        schedule: &Schedule,
        layout: Layout<'a>,
        element: usize,
        buffers: Buffers,
        keep_input: bool,
    ) -> Compiler<'a> {
        let mut scratch = BTreeMap::new();
        let used = schedule
            .rounds
            .iter()
            .flat_map(Round::spans)
            .map(|(span, _)| span)
            .filter(|span| span.space == Space::Scratch);
        for span in used {
            (span.first..span.end()).for_each(|position| {
                scratch.insert(position, 0);
            });
        }
        let mut program =
            Program { input: layout.extent(Space::Input), output: layout.extent(Space::Output), ..Program::default() };
        for (position, at) in &mut scratch {
            *at = program.scratch;
            program.scratch = program.scratch.saturating_add(layout.scratch_len(*position));
        }
        program.scratch = aligned(program.scratch);
        let kept_input = keep_input.then_some(program.scratch);
        if let Some(at) = kept_input {
            program.scratch = aligned(at.saturating_add(program.input * element));
        }
        let mut compiler = Compiler {
            problem,
            rank: schedule.rank,
            layout,
            buffers,
            whole: !NEVER_CUT.is_multiple_of(element),
            kept_input,
            scratch,
            overwritten: Vec::new(),
            copies: Vec::new(),
            late: Vec::new(),
            program,
        };
        if let Some(kept) = kept_input {
            let input = compiler.in_place(Bytes { at: 0, len: compiler.program.input * element });
            let from = Segment { memory: Memory::Output, at: input.at, len: input.len };
            if input.len > 0 {
                let to = Segment { memory: Memory::Scratch, at: kept, ..from };
                compiler.program.code.push(Instruction::Copy { from, to });
            }
        }
        compiler
    }

    fn run(&mut self, schedule: &Schedule) -> Compiled {
        schedule.rounds.iter().try_for_each(|round| self.round(round))?;
        self.make_late_copies();
        Ok(())
    }

    fn round(&mut self, round: &Round) -> Compiled {
        let mut sent: Vec<Segment> = Vec::new();
        let mut to_settle = Vec::new();
        let (begin, taken) = (self.program.code.len(), self.program.takes.len());
        for send in &round.sends {
            let parts = self.read(&send.spans)?;
            let parts = match self.originals(&parts) {
                Some(originals) => originals,
                None => {
                    if self.late.iter().any(|(_, to)| parts.iter().any(|part| part.overlaps(to))) {
                        self.make_late_copies();
                    }
                    parts
                }
            };
            if let Some(message) = self.message(send.to, &send.spans, parts, true) {
                sent.extend(&self.program.sends[message].parts);
                self.program.code.push(Instruction::Send(message));
                to_settle.push(message);
            }
        }
        let mut locals = round.locals.iter().peekable();
        if !round.sends.is_empty() || !round.recvs.is_empty() {
            // While the messages travel.
            if matches!(locals.peek(), Some(Local::Copy { .. })) {
                let mut touched = sent.clone();
                touched.extend(round.recvs.iter().flat_map(|recv| self.segments(&recv.spans)));
                while let Some(local) = locals.next_if(|local| self.is_aside(local, &touched)) {
                    self.local(local)?;
                }
            }
            self.make_late_copies();
        }
        let copied = self.program.code.len();
        let mut aside = Vec::new();
        for combining in [false, true] {
            for recv in round.recvs.iter().filter(|recv| recv.combine.is_some() == combining) {
                let others = if combining { None } else { self.others(recv, &round.recvs, &mut locals)? };
                self.take(recv, others, &sent, &mut aside)?;
            }
        }
        let beside = match (&to_settle[..], &self.program.takes[taken..]) {
            ([_], []) => Beside::Nothing,
            (_, takes) if takes.iter().any(|take| take.combined) => Beside::Combining,
            _ => Beside::Moving,
        };
        to_settle.iter().for_each(|&message| self.program.sends[message].beside = beside);
        let landed = || self.program.takes[taken..].iter().flat_map(|take| &take.parts);
        let hit = |from: &Segment| landed().any(|part| part.overlaps(from));
        if self.buffers == Buffers::InPlace && self.kept_input.is_none() && aside.iter().any(|(from, ..)| hit(from)) {
            return Err(Obstacle::Overwritten);
        }
        // As early as can be: a message must not land where a copy is still to be made.
        let early = |instruction: &Instruction| matches!(instruction, Instruction::Copy { to, .. } if hit(to));
        let first = if self.program.code[begin..copied].iter().any(early) { copied } else { begin };
        let posts = (taken..self.program.takes.len()).map(Instruction::Post);
        self.program.code.splice(first..first, posts);
        self.program.code.extend(to_settle.into_iter().map(Instruction::Settle));
        for (from, into, side) in aside {
            self.program.code.push(Instruction::Combine { from, into, side });
        }
        locals.try_for_each(|local| self.local(local))
    }

    /// Whether a local operation is a copy of the input to where a round's messages, which touch these parts, neither come from nor go.
    fn is_aside(&self, local: &Local, touched: &[Segment]) -> bool {
        let Local::Copy { from, to } = local else { return false };
        let apart = |to: &Segment| to.memory != Memory::Shared && !touched.iter().any(|part| part.overlaps(to));
        self.segments(&[*from]).iter().all(|from| from.memory == Memory::Input)
            && self.segments(&[*to]).iter().all(apart)
    }

    /// The operands with which a plain receive is to be combined at once, if the next local operations say so and they are there.
    fn others<'l>(
        &self,
        recv: &Recv,
        recvs: &[Recv],
        locals: &mut std::iter::Peekable<impl Iterator<Item = &'l Local> + Clone>,
    ) -> Compiled<Option<(Vec<Segment>, Combine)>> {
        let mut ahead = locals.clone();
        let mut operands = Vec::with_capacity(recv.spans.len());
        let mut side = None;
        for span in &recv.spans {
            match ahead.next() {
                Some(Local::Combine { from, into, how })
                    if into == span && from.count == span.count && side.is_none_or(|side| side == *how) =>
                {
                    side = Some(*how);
                    operands.push(*from);
                }
                _ => return Ok(None),
            }
        }
        let Some(side) = side else { return Ok(None) };
        // What another message of the round brings is not there yet.
        let others = recvs.iter().filter(|other| !std::ptr::eq(*other, recv));
        if others.flat_map(|other| &other.spans).any(|brought| operands.iter().any(|operand| operand.overlaps(brought)))
        {
            return Ok(None);
        }
        let others = self.read(&operands)?;
        *locals = ahead;
        Ok(Some((others, side)))
    }

    fn take(
        &mut self,
        recv: &Recv,
        others: Option<(Vec<Segment>, Combine)>,
        sent: &[Segment],
        aside: &mut Vec<(Segment, Segment, Combine)>,
    ) -> Compiled {
        let parts = self.segments(&recv.spans);
        let Some(message) = self.message(recv.from, &recv.spans, parts, false) else { return Ok(()) };
        let parts = self.program.takes[message].parts.clone();
        parts.iter().for_each(|part| self.overwrite(*part));
        let busy = parts.iter().any(|part| sent.iter().any(|sent| sent.overlaps(part)));
        let side = match (&others, recv.combine) {
            // In place, the operand is where the message goes.
            (Some((others, side)), _) if *others == parts => Some(opposite(*side)),
            (None, combine) => combine,
            (Some((others, side)), _) => {
                let clash = others.iter().any(|other| parts.iter().any(|part| part.overlaps(other)));
                if busy || clash {
                    return Err(Obstacle::Overwritten);
                }
                // Operand by operand, the others and the destination are cut alike.
                let side = *side;
                if self.whole {
                    self.program.code.push(Instruction::Take(message));
                    if length(others) != length(&parts) {
                        return Err(Obstacle::Unequal);
                    }
                    aside.extend(paired(others.clone(), parts).map(|(other, part)| (other, part, side)));
                    return Ok(());
                }
                let (others, parts) = paired(others.clone(), parts).unzip();
                self.program.takes[message].parts = parts;
                self.program.takes[message].combined = true;
                self.program.code.push(Instruction::TakeWith { message, others, side });
                return Ok(());
            }
        };
        match side {
            None if busy => return Err(Obstacle::Overwritten),
            None => self.program.code.push(Instruction::Take(message)),
            Some(side) if !busy && !self.whole => {
                self.program.takes[message].combined = true;
                self.program.code.push(Instruction::TakeCombine(message, side));
            }
            Some(side) => {
                let mut at = self.program.scratch;
                let mut staged = Vec::with_capacity(parts.len());
                for part in parts {
                    let from = Segment { memory: Memory::Scratch, at, len: part.len };
                    staged.push(from);
                    aside.push((from, part, side));
                    at = at.saturating_add(part.len);
                }
                self.program.scratch = aligned(at);
                self.program.takes[message].parts = staged;
                self.program.code.push(Instruction::Take(message));
            }
        }
        Ok(())
    }

    fn local(&mut self, local: &Local) -> Compiled {
        let (from, into, side) = match *local {
            Local::Meet { level } => {
                self.make_late_copies();
                self.program.code.extend([Instruction::Arrive { level }, Instruction::Await { level }]);
                return Ok(());
            }
            Local::Copy { from, to } => (from, to, None),
            Local::Combine { from, into, how } => (from, into, Some(how)),
        };
        let from = self.read(&[from])?;
        let into = self.segments(&[into]);
        if length(&from) != length(&into) {
            return Err(Obstacle::Unequal);
        }
        for (from, into) in paired(from, into) {
            if side.is_none() && from.memory == Memory::Input && matches!(into.memory, Memory::Output | Memory::Scratch)
            {
                self.overwrite(into);
                self.copies.push((from, into));
                self.late.push((from, into));
                continue;
            }
            self.make_late_copies();
            match side {
                None if from == into => {}
                None => self.program.code.push(Instruction::Copy { from, to: into }),
                Some(side) => self.program.code.push(Instruction::Combine { from, into, side }),
            }
            if from != into {
                self.overwrite(into);
            }
        }
        Ok(())
    }

    /// Where the input is of which these parts are copies, if all of them are: a message sent from there need not wait for
    /// the copy, and finds its bytes where nobody has just written.
    fn originals(&self, parts: &[Segment]) -> Option<Vec<Segment>> {
        let original = |part: &Segment| {
            let holds =
                |(_, to): &&(Segment, Segment)| to.memory == part.memory && to.at <= part.at && part.end() <= to.end();
            let (from, to) = self.copies.iter().find(holds)?;
            Some(Segment { at: from.at + part.at - to.at, len: part.len, ..*from })
        };
        parts.iter().map(original).collect()
    }

    fn make_late_copies(&mut self) {
        let copies = self.late.drain(..).map(|(from, to)| Instruction::Copy { from, to });
        self.program.code.extend(copies);
    }

    /// Notes a message, unless it carries blocks and all of them are of no bytes.
    fn message(&mut self, peer: usize, spans: &[Span], parts: Vec<Segment>, sending: bool) -> Option<usize> {
        let bytes = length(&parts);
        if bytes == 0 && !spans.is_empty() {
            return None;
        }
        let list = if sending { &mut self.program.sends } else { &mut self.program.takes };
        list.push(Message { peer, bytes, parts, combined: false, beside: Beside::default() });
        Some(list.len() - 1)
    }

    /// The bytes of some spans that are read: an error if they are input that is gone.
    fn read(&self, spans: &[Span]) -> Compiled<Vec<Segment>> {
        if self.buffers == Buffers::InPlace && self.kept_input.is_none() {
            for segment in
                spans.iter().filter(|span| span.space == Space::Input).flat_map(|span| self.segments(&[*span]))
            {
                if self.overwritten.iter().any(|gone| gone.start < segment.end() && segment.at < gone.end) {
                    return Err(Obstacle::Overwritten);
                }
            }
        }
        Ok(self.segments(spans))
    }

    fn overwrite(&mut self, segment: Segment) {
        self.copies.retain(|(_, to)| !to.overlaps(&segment));
        if self.buffers == Buffers::InPlace && segment.memory == Memory::Output {
            match self.overwritten.last_mut() {
                Some(last) if last.end == segment.at => last.end = segment.end(),
                _ => self.overwritten.push(segment.at..segment.end()),
            }
        }
    }

    /// The bytes of some spans, in order, runs that touch merged.
    fn segments(&self, spans: &[Span]) -> Vec<Segment> {
        let mut segments: Vec<Segment> = Vec::with_capacity(spans.len());
        for span in spans {
            for position in span.first..span.end() {
                let segment = self.segment(span.space, position);
                match segments.last_mut() {
                    _ if segment.len == 0 => {}
                    Some(last) if last.memory == segment.memory && last.end() == segment.at => last.len += segment.len,
                    _ => segments.push(segment),
                }
            }
        }
        segments
    }

    fn segment(&self, space: Space, position: usize) -> Segment {
        let own = |memory, Bytes { at, len }: Bytes| Segment { memory, at, len };
        match space {
            Space::Output => own(Memory::Output, self.layout.own(space, position)),
            Space::Input => {
                let input = self.layout.own(space, position);
                match (self.kept_input, self.buffers) {
                    (Some(kept), _) => {
                        Segment { memory: Memory::Scratch, at: kept.saturating_add(input.at), len: input.len }
                    }
                    (None, Buffers::Apart) => own(Memory::Input, input),
                    (None, Buffers::InPlace) => own(Memory::Output, self.in_place(input)),
                }
            }
            Space::Scratch => {
                let at = self.scratch[&position];
                Segment { memory: Memory::Scratch, at, len: self.layout.scratch_len(position) }
            }
            Space::Shared => own(Memory::Shared, self.layout.shared(position)),
        }
    }

    /// Where the input is when the caller has put it into the output.
    fn in_place(&self, input: Bytes) -> Bytes {
        let among_all = match self.problem.collective.family() {
            Collective::Allgather => true,
            Collective::Gather => self.rank == self.problem.root,
            _ => false,
        };
        let place = if among_all { self.layout.first_of(self.rank) } else { 0 };
        Bytes { at: place + input.at, ..input }
    }
}

fn length(parts: &[Segment]) -> usize {
    parts.iter().fold(0, |sum, part| sum.saturating_add(part.len))
}

fn aligned(at: usize) -> usize {
    at.checked_next_multiple_of(ALIGN).unwrap_or(usize::MAX)
}

fn opposite(side: Combine) -> Combine {
    if side == Combine::After { Combine::Before } else { Combine::After }
}

/// Two lists of segments of the same length, cut into pairs of equal pieces.
pub(crate) fn paired(from: Vec<Segment>, to: Vec<Segment>) -> impl Iterator<Item = (Segment, Segment)> {
    let (mut from, mut to) = (from.into_iter(), to.into_iter());
    let (mut a, mut b) = (from.next(), to.next());
    std::iter::from_fn(move || {
        let (left, right) = (a?, b?);
        let len = left.len.min(right.len);
        let rest = |segment: Segment| Segment { at: segment.at + len, len: segment.len - len, ..segment };
        a = if left.len > len { Some(rest(left)) } else { from.next() };
        b = if right.len > len { Some(rest(right)) } else { to.next() };
        Some((Segment { len, ..left }, Segment { len, ..right }))
    })
}

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let memory = match self.memory {
            Memory::Input => "input",
            Memory::Output => "output",
            Memory::Scratch => "scratch",
            Memory::Shared => "shared",
        };
        write!(f, "{memory}+{}:{}", self.at, self.len)
    }
}

/// One instruction a line.
impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |parts: &[Segment]| parts.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        let side = |side: Combine| if side == Combine::After { "after" } else { "before" };
        writeln!(
            f,
            "# {} bytes of scratch, {} of shared memory; memory+offset:length in bytes",
            self.scratch, self.shared
        )?;
        for (index, instruction) in self.code.iter().enumerate() {
            write!(f, "{index:4}  ")?;
            match instruction {
                Instruction::Post(message) => {
                    let Message { peer, bytes, .. } = &self.takes[*message];
                    writeln!(f, "post          from {peer}, {bytes} bytes")
                }
                Instruction::Send(message) => {
                    let Message { peer, bytes, parts, .. } = &self.sends[*message];
                    writeln!(f, "send          to {peer}, {bytes} bytes  {}", list(parts))
                }
                Instruction::Take(message) => {
                    let Message { peer, bytes, parts, .. } = &self.takes[*message];
                    writeln!(f, "take          from {peer}, {bytes} bytes  {}", list(parts))
                }
                Instruction::TakeCombine(message, how) => {
                    let Message { peer, bytes, parts, .. } = &self.takes[*message];
                    writeln!(f, "take-combine  from {peer}, {bytes} bytes, {}  {}", side(*how), list(parts))
                }
                Instruction::TakeWith { message, others, side: how } => {
                    let Message { peer, bytes, parts, .. } = &self.takes[*message];
                    writeln!(
                        f,
                        "take-with     from {peer}, {bytes} bytes, {}  {} -> {}",
                        side(*how),
                        list(others),
                        list(parts)
                    )
                }
                Instruction::Settle(message) => writeln!(f, "settle        the send to {}", self.sends[*message].peer),
                Instruction::Copy { from, to } => writeln!(f, "copy          {from} -> {to}"),
                Instruction::Combine { from, into, side: how } => {
                    writeln!(f, "combine       {from} -> {into}, {}", side(*how))
                }
                Instruction::Arrive { level } => writeln!(f, "arrive        at level {level}"),
                Instruction::Await { level } => writeln!(f, "await         level {level}"),
            }?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
