//! Combinators: schedules made from schedules.
//!
//! They work on *movements*: one rank's rounds of plain messages between `Output` positions, in which every rank begins
//! with some blocks in place and receives each other block once. An allgather is a movement, and so is a bcast.
//!
//! - [`embed`] runs a schedule of a small group inside a larger one (`within` a region, `across` regions, along a lane).
//! - [`reverse`] runs time backwards: a send becomes a receive that combines; an allgather becomes a reduce_scatter.
//! - [`flip`] runs time backwards without combining: a scatter becomes a gather.
//! - [`abreast`] runs several schedules of one rank together, round by round; [`in_turn`] does so each a round behind the one before.
//! - `then` is concatenation: `rounds.extend(more)`.

use std::ops::Range;

use crate::blockset::BlockSet;
use crate::schedule::push_span;
use crate::{Combine, InlineVec, Local, Recv, Round, Send, Space, Span};

/// A schedule of a group's member, in the ranks and positions of the whole.
///
/// `place` appends the spans that a span of the group stands for, possibly none. A message left with no spans vanishes
/// on both sides; rounds stay, so that rounds of a group remain aligned.
pub(crate) fn embed(
    rounds: Vec<Round>,
    rank_of: impl Fn(usize) -> usize,
    place: impl Fn(Span, &mut InlineVec<Span>),
) -> Vec<Round> {
    let all = |spans: &[Span]| {
        let mut placed = InlineVec::new();
        for &span in spans {
            place(span, &mut placed);
        }
        placed
    };
    let one = |span: Span| all(&[span]);
    let local = |local: Local| match local {
        Local::Copy { from, to } => pairs(one(from), one(to)).map(|(from, to)| Local::Copy { from, to }).collect(),
        Local::Combine { from, into, how } => {
            pairs(one(from), one(into)).map(|(from, into)| Local::Combine { from, into, how }).collect()
        }
        meet => vec![meet],
    };
    let embed_round = |round: Round| Round {
        sends: (round.sends.into_iter())
            .map(|send| Send { to: rank_of(send.to), spans: all(&send.spans) })
            .filter(|send| !send.spans.is_empty())
            .collect(),
        recvs: (round.recvs.into_iter())
            .map(|recv| Recv { from: rank_of(recv.from), spans: all(&recv.spans), combine: recv.combine })
            .filter(|recv| !recv.spans.is_empty())
            .collect(),
        locals: round.locals.into_iter().flat_map(local).collect::<Vec<Local>>(),
    };
    rounds.into_iter().map(embed_round).collect()
}

/// Cuts two lists of spans of the same total length into pairs of equal pieces.
pub(crate) fn pairs(
    from: impl IntoIterator<Item = Span>,
    to: impl IntoIterator<Item = Span>,
) -> impl Iterator<Item = (Span, Span)> {
    let (mut from, mut to) = (from.into_iter(), to.into_iter());
    let (mut a, mut b) = (from.next(), to.next());
    std::iter::from_fn(move || {
        let (left, right) = (a?, b?);
        let count = left.count.min(right.count);
        let rest = |span: Span| Span::new(span.space, span.first + count, span.count - count);
        a = if left.count > count { Some(rest(left)) } else { from.next() };
        b = if right.count > count { Some(rest(right)) } else { to.next() };
        Some((Span { count, ..left }, Span { count, ..right }))
    })
}

/// Moves every run of `Output` positions to where `place` says and leaves other spaces alone: what [`embed`] wants for
/// most groups. Sender and receiver of a message name the same runs, so a run may be placed in any order of its own.
pub(crate) fn placing(place: impl Fn(Range<usize>, &mut InlineVec<Span>)) -> impl Fn(Span, &mut InlineVec<Span>) {
    move |span, spans| match span.space {
        Space::Output => place(span.first..span.end(), spans),
        _ => push_span(spans, span),
    }
}

/// A movement with time running backwards, every arriving block combined with this rank's own: a bcast becomes a
/// reduce, an allgather a reduce_scatter.
///
/// Blocks are read from `Input` until something has been combined with them, and live in `Output` from then on, at the
/// same position; those of `keep` end there whatever happens. Operands from lower ranks go before, from higher ranks
/// after, so the result is ordered wherever the movement permits it.
pub(crate) fn reverse(movement: Vec<Round>, rank: usize, keep: &[Span]) -> Vec<Round> {
    reverse_begun(movement, rank, keep, BlockSet::default())
}

/// The same where some blocks have `begun`: they are in `Output` already.
pub(crate) fn reverse_begun(movement: Vec<Round>, rank: usize, keep: &[Span], begun: BlockSet) -> Vec<Round> {
    let mut reversal = Reversal::new(rank, begun);
    movement.into_iter().rev().for_each(|round| reversal.round(round));
    reversal.finish(keep)
}

/// A movement on its way back, last round first.
pub(crate) struct Reversal {
    rank: usize,
    begun: BlockSet,
    pub(crate) rounds: Vec<Round>,
}

impl Reversal {
    pub(crate) fn new(rank: usize, begun: BlockSet) -> Reversal {
        Reversal { rank, begun, rounds: vec![Round::default()] }
    }

    /// A round of messages, backwards.
    pub(crate) fn round(&mut self, round: Round) {
        let mut new = Round::default();
        for Recv { from, spans, .. } in round.recvs {
            new.send(from, self.located(&spans));
        }
        let rank = self.rank;
        let mut arriving = round.sends;
        // Nearest rank first on either side, lower ranks before higher: then operands meet in rank order.
        arriving.sort_by_key(|send| if send.to < rank { (0, rank - send.to) } else { (1, send.to - rank) });
        let alone = arriving.len() == 1;
        for Send { to: from, spans } in arriving {
            let how = if from < rank { Combine::Before } else { Combine::After };
            let fresh = self.pieces(&spans).all(|(_, begun)| !begun);
            if alone && fresh {
                // The first operand lands in place and meets our own, which is still in the input.
                let mirrored = if how == Combine::After { Combine::Before } else { Combine::After };
                for span in &spans {
                    new.combine(Span::input(span.first, span.count), *span, mirrored);
                }
                new.recv(from, spans.clone(), None);
                spans.iter().for_each(|span| self.begun.insert(span.first..span.end()));
            } else {
                self.begin(&spans);
                new.recv(from, spans, Some(how));
            }
        }
        self.rounds.push(new);
    }

    /// The rounds, with the blocks of `keep` in `Output` at the end.
    pub(crate) fn finish(mut self, keep: &[Span]) -> Vec<Round> {
        self.begin(keep);
        if self.rounds[0].is_empty() {
            self.rounds.remove(0);
        }
        self.rounds
    }

    /// Copies from `Input` to `Output` what is not there yet.
    pub(crate) fn begin(&mut self, spans: &[Span]) {
        let fresh: Vec<_> = self.pieces(spans).filter(|(_, begun)| !begun).collect();
        let last = self.rounds.last_mut().expect("there is a first round");
        for (piece, _) in fresh {
            last.copy(Span::input(piece.start, piece.len()), Span::output(piece.start, piece.len()));
            self.begun.insert(piece);
        }
    }

    fn pieces<'a>(&'a self, spans: &'a [Span]) -> impl Iterator<Item = (Range<usize>, bool)> + 'a {
        spans.iter().flat_map(|span| self.begun.split(span.first..span.end()))
    }

    /// The same spans, in `Output` where something has begun and in `Input` elsewhere.
    pub(crate) fn located(&self, spans: &[Span]) -> InlineVec<Span> {
        let mut found = InlineVec::new();
        for (piece, begun) in self.pieces(spans) {
            let space = if begun { Space::Output } else { Space::Input };
            push_span(&mut found, Span::new(space, piece.start, piece.len()));
        }
        found
    }
}

/// A movement with time running backwards and nothing combined: a scatter becomes a gather.
pub(crate) fn flip(movement: Vec<Round>) -> Vec<Round> {
    let turn = |round: Round| Round {
        sends: round.recvs.into_iter().map(|recv| Send { to: recv.from, spans: recv.spans }).collect(),
        recvs: round.sends.into_iter().map(|send| Recv { from: send.to, spans: send.spans, combine: None }).collect(),
        locals: vec![],
    };
    movement.into_iter().rev().map(turn).collect()
}

/// Several schedules of one rank, the i-th rounds of all of them together.
pub(crate) fn abreast(schedules: impl IntoIterator<Item = Vec<Round>>) -> Vec<Round> {
    staggered(schedules, 0)
}

/// The same, each so many rounds behind the one before.
fn staggered(schedules: impl IntoIterator<Item = Vec<Round>>, behind: usize) -> Vec<Round> {
    let mut together: Vec<Round> = Vec::new();
    for (place, schedule) in schedules.into_iter().enumerate() {
        let first = place * behind;
        together.resize_with(together.len().max(first + schedule.len()), Round::default);
        for (whole, part) in together[first..].iter_mut().zip(schedule) {
            whole.sends.extend(part.sends);
            whole.recvs.extend(part.recvs);
            whole.locals.extend(part.locals);
        }
    }
    together
}

/// A schedule for each of so many parts of a vector, each beginning a round after the one before: while one goes on, the next begins. `blocks`:
/// of the schedule; those of a part follow those of the part before.
pub(crate) fn in_turn(schedule: &[Round], blocks: usize, parts: usize) -> Vec<Round> {
    let of_part = |part: usize| {
        let shift = move |span: Span, placed: &mut InlineVec<Span>| {
            placed.push(Span::new(span.space, part * blocks + span.first, span.count));
        };
        embed(schedule.to_vec(), |rank| rank, shift)
    };
    staggered((0..parts).map(of_part), 1)
}

/// The same messages, carrying nothing: an allgather becomes a barrier.
pub(crate) fn emptied(mut movement: Vec<Round>) -> Vec<Round> {
    for round in &mut movement {
        round.sends.iter_mut().for_each(|send| send.spans.clear());
        round.recvs.iter_mut().for_each(|recv| recv.spans.clear());
    }
    movement
}
