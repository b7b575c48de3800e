//! The types of a schedule: spans, messages, rounds, and one rank's list of rounds.
//!
//! What a round means, exactly, is written once, on [`Round`].

use std::fmt;

use crate::{InlineVec, Problem};

/// Where a block lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Space {
    /// What the caller gave. Never written.
    Input,
    /// What the caller gets.
    Output,
    /// Memory of this rank alone. Position `s` has the size of block `s mod blocks`.
    Scratch,
    /// Memory common to the ranks of one node (the outermost region). Sized like scratch.
    Shared,
}

impl Space {
    /// All four, in the order they are listed everywhere.
    pub const ALL: [Space; 4] = [Space::Input, Space::Output, Space::Scratch, Space::Shared];

    /// The name used in the text and JSON forms.
    pub fn name(self) -> &'static str {
        match self {
            Space::Input => "input",
            Space::Output => "output",
            Space::Scratch => "scratch",
            Space::Shared => "shared",
        }
    }
}

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A run of consecutive blocks in one space. Positions count blocks from the start of the space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    /// The memory.
    pub space: Space,
    /// The first position.
    pub first: usize,
    /// How many blocks.
    pub count: usize,
}

impl Span {
    /// `count` blocks of `space` from position `first` on.
    pub fn new(space: Space, first: usize, count: usize) -> Span {
        Span { space, first, count }
    }

    /// Blocks of the caller's input.
    pub fn input(first: usize, count: usize) -> Span {
        Span::new(Space::Input, first, count)
    }

    /// Blocks of the caller's output.
    pub fn output(first: usize, count: usize) -> Span {
        Span::new(Space::Output, first, count)
    }

    /// Blocks of this rank's scratch.
    pub fn scratch(first: usize, count: usize) -> Span {
        Span::new(Space::Scratch, first, count)
    }

    /// One past the last position.
    pub fn end(&self) -> usize {
        self.first + self.count
    }

    /// Whether the two have a position in common. An empty span has none.
    pub fn overlaps(&self, other: &Span) -> bool {
        self.space == other.space && self.first.max(other.first) < self.end().min(other.end())
    }
}

/// Appends a span, merging it with the last one where they touch; an empty span vanishes.
pub(crate) fn push_span(spans: &mut InlineVec<Span>, span: Span) {
    if span.count == 0 {
        return;
    }
    match spans.last_mut() {
        Some(last) if last.space == span.space && last.end() == span.first => last.count += span.count,
        _ => spans.push(span),
    }
}

/// How many blocks the spans hold together.
pub(crate) fn blocks_in(spans: &[Span]) -> usize {
    spans.iter().map(|span| span.count).sum()
}

/// A message that leaves: the blocks of `spans`, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Send {
    /// The rank that gets it.
    pub to: usize,
    /// What it carries. Empty in a barrier.
    pub spans: InlineVec<Span>,
}

/// A message that arrives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recv {
    /// The rank it comes from.
    pub from: usize,
    /// Where its blocks go, in order.
    pub spans: InlineVec<Span>,
    /// `None`: the blocks overwrite. Otherwise they are combined with what is there.
    pub combine: Option<Combine>,
}

/// On which side of the value in place the other operand stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Combine {
    /// `value = value op other`
    After,
    /// `value = other op value`
    Before,
}

/// What a rank does to its own memory when the messages of a round are through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Local {
    /// `to = from`
    Copy {
        /// Read.
        from: Span,
        /// Overwritten.
        to: Span,
    },
    /// `into = into op from` ([`Combine::After`]) or `into = from op into` ([`Combine::Before`]).
    Combine {
        /// The other operand, unchanged.
        from: Span,
        /// The value in place.
        into: Span,
        /// The side on which `from` stands.
        how: Combine,
    },
    /// Waits until every rank of this rank's region at `level` has come to the same meeting.
    /// Level 0 is everybody, level 1 this rank's node.
    Meet {
        /// The level of the region that meets.
        level: usize,
    },
}

/// What a rank does between two waits.
///
/// 1. All sends and receives are posted together. A send reads its spans as they are when the round begins.
/// 2. The round waits until every send has been received and every receive has arrived. The n-th
///    message from rank a to rank b is received by the n-th receive that b posts for a, whatever the rounds.
/// 3. Plain receives have overwritten their spans; now combining receives are applied, in the order listed.
/// 4. Local operations run, in the order listed.
///
/// So a combining receive may aim at a span that the same round sends; a plain one may not, nor may two plain
/// receives of a round overlap. Rounds of different ranks are not synchronised by anything but their messages
/// and meetings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// Messages that leave.
    pub sends: InlineVec<Send>,
    /// Messages that arrive.
    pub recvs: InlineVec<Recv>,
    /// What follows, in order.
    pub locals: Vec<Local>,
}

impl Round {
    /// Whether nothing happens.
    pub fn is_empty(&self) -> bool {
        self.sends.is_empty() && self.recvs.is_empty() && self.locals.is_empty()
    }

    /// Whether a message leaves or arrives.
    pub fn communicates(&self) -> bool {
        !self.sends.is_empty() || !self.recvs.is_empty()
    }

    /// Every span of the round, with whether it is written.
    pub fn spans(&self) -> impl Iterator<Item = (Span, bool)> + '_ {
        let sent = self.sends.iter().flat_map(|send| send.spans.iter().map(|&span| (span, false)));
        let received = self.recvs.iter().flat_map(|recv| recv.spans.iter().map(|&span| (span, true)));
        let local = self.locals.iter().flat_map(|local| match *local {
            Local::Copy { from, to } => vec![(from, false), (to, true)],
            Local::Combine { from, into, .. } => vec![(from, false), (into, true)],
            Local::Meet { .. } => vec![],
        });
        sent.chain(received).chain(local)
    }

    pub(crate) fn send(&mut self, to: usize, spans: impl Into<InlineVec<Span>>) {
        self.sends.push(Send { to, spans: spans.into() });
    }

    pub(crate) fn recv(&mut self, from: usize, spans: impl Into<InlineVec<Span>>, combine: Option<Combine>) {
        self.recvs.push(Recv { from, spans: spans.into(), combine });
    }

    /// Sends some more in the message to a rank, which there is none of if nothing is sent.
    pub(crate) fn send_along(&mut self, to: usize, spans: impl IntoIterator<Item = Span>) {
        for span in spans {
            match self.sends.iter_mut().find(|send| send.to == to) {
                Some(send) => push_span(&mut send.spans, span),
                None => self.send(to, [span]),
            }
        }
    }

    /// Receives it there.
    pub(crate) fn recv_along(&mut self, from: usize, spans: impl IntoIterator<Item = Span>) {
        for span in spans {
            match self.recvs.iter_mut().find(|recv| recv.from == from) {
                Some(recv) => push_span(&mut recv.spans, span),
                None => self.recv(from, [span], None),
            }
        }
    }

    pub(crate) fn copy(&mut self, from: Span, to: Span) {
        push(&mut self.locals, Local::Copy { from, to });
    }

    pub(crate) fn combine(&mut self, from: Span, into: Span, how: Combine) {
        push(&mut self.locals, Local::Combine { from, into, how });
    }
}

/// Appends one thing, of which most rounds have only one: a vector would make room for four.
fn push<T>(things: &mut Vec<T>, thing: T) {
    if things.is_empty() {
        things.reserve_exact(1);
    }
    things.push(thing);
}

/// One rank's rounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Whose.
    pub rank: usize,
    /// In the order they run.
    pub rounds: Vec<Round>,
}

impl Schedule {
    /// How many positions of scratch a naive layout needs: one past the highest that is touched.
    pub fn scratch(&self) -> usize {
        let scratch = self.rounds.iter().flat_map(Round::spans).filter(|(span, _)| span.space == Space::Scratch);
        scratch.map(|(span, _)| span.end()).max().unwrap_or(0)
    }
}

/// The schedules of all ranks together, with what they are to achieve: what is verified, counted, drawn and printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ensemble {
    /// What is asked.
    pub problem: Problem,
    /// What made it, as written on the command line, or any other name.
    pub algorithm: String,
    /// Into how many blocks the data is cut: one for each rank, one for each pair, or as the algorithm decides.
    pub blocks: usize,
    /// One for each rank, in rank order.
    pub schedules: Vec<Schedule>,
}
