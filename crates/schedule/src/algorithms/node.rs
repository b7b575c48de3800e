//! The node phases: the near part of two-level algorithms through memory that the ranks of a node share.
//! (Jocksch et al. 2021: copy-in or local reduction, the inter-node part by one or several ranks, copy-out.)
//!
//! Shared memory is written on *lines*, each a full set of blocks. An allgather needs one line a region: every block enters
//! the region once, on its place. A short reduction needs one line a rank: everybody copies in, all meet, then each rank
//! reduces its slice of all lines. A long one needs one line in all: chunk after chunk, each rank combines its operand with
//! what is there, one after the other, a meeting between. Far messages are sent from the lines and land on them. Regions of one node (sockets) have lines
//! of their own.
//!
//! ```text
//! allgather, 2x2, multi-lane   copy in: 0 1 | 2 3   far: 0<->2 1<->3, from line to line   meet   copy out
//! smp, 2x2                     copy in, meet   0 and 2 reduce   0<->2   meet   copy out
//! ```
//!
//! Two segments of shared memory, used in turn, are enough for runs one after the other without another meeting, because
//! any two ranks that touch the same position meet in every run; see ARCHITECTURE.md.

use super::allreduce::whole::home;
use crate::blockset::BlockSet;
use crate::compose::{Reversal, embed, emptied, pairs, placing};
use crate::math::part;
use crate::registry::{Make1, Parameter, Parameters, Recipe, both, gather, own_apart, scatter};
use crate::schedule::push_span;
use crate::{Collective, Combine, InlineVec, Local, Problem, Result, Round, Space, Span, Topology};

pub(crate) const LOCAL: Parameter = Parameter {
    name: "local",
    values: "messages, or shared: the ranks of a region talk through memory they share",
    default: "messages",
};

pub(crate) const REDUCTION: Parameter = Parameter {
    name: "reduction",
    values: "lines, or chunks: with local=shared, everybody copies in and slices are reduced, or operands are combined in place \
             chunk by chunk, which takes one vector of memory and a meeting for each chunk",
    default: "lines",
};

/// How a region reduces in shared memory.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Reduction {
    /// Short: everybody copies in, all meet, each reduces its slice.
    Lines,
    /// Long: chunk by chunk, in place.
    Chunks,
}

pub(crate) fn reduction(parameters: &Parameters) -> Result<Reduction> {
    let word = parameters.word("reduction", &["lines", "chunks"])?;
    if parameters.setting("reduction").is_some() && !shared(parameters)? {
        return Err(parameters.wrong("reduction", "is given without local=shared", "local=shared beside it"));
    }
    Ok(if word == "chunks" { Reduction::Chunks } else { Reduction::Lines })
}

/// Whether the near part is to run through shared memory.
pub(crate) fn shared(parameters: &Parameters) -> Result<bool> {
    Ok(parameters.word("local", &["messages", "shared"])? == "shared")
}

/// The same of parameters that were found right.
pub(crate) fn uses_memory(parameters: &Parameters) -> bool {
    parameters.get("local") == Some("shared")
}

/// Every setting, by messages and through shared memory.
pub(crate) fn either_way(mut variants: Vec<String>) -> Vec<String> {
    let through_memory = |setting: &String| match setting.as_str() {
        "" => "local=shared".to_string(),
        setting => format!("{setting}:local=shared"),
    };
    variants.extend(variants.iter().map(through_memory).collect::<Vec<_>>());
    variants
}

/// The ranks that share, as one of them sees them, and where their lines are.
pub(crate) struct Region {
    level: usize,
    pub(crate) size: usize,
    /// This rank's place in it.
    pub(crate) me: usize,
    /// Which of its node's regions it is.
    index: usize,
    /// The first of its `size + 1` lines.
    first: usize,
    /// How many lines its node has.
    lines: usize,
}

impl Region {
    pub(crate) fn new(topology: &Topology, level: usize, rank: usize) -> Region {
        let (region, seats, me) = home(topology, level, rank);
        let node = topology.region(1, topology.region_of_seat(1, seats.start));
        let regions = topology.region_of_seat(level, node.start)..topology.region_of_seat(level, node.end - 1) + 1;
        let index = region - regions.start;
        Region {
            // On a flat machine everybody is one node.
            level: level.min(topology.depth()),
            size: seats.len(),
            me,
            index,
            first: seats.start - node.start + index,
            lines: node.len() + regions.len(),
        }
    }

    /// Ends the last round with a meeting; what follows belongs in the round after it. One rank alone meets nobody.
    pub(crate) fn meet(&self, rounds: &mut Vec<Round>) {
        if self.size > 1 {
            last(rounds).locals.push(Local::Meet { level: self.level });
            rounds.push(Round::default());
        }
    }

    /// The one line on which all blocks of the region are: where a position is on it.
    pub(crate) fn base(&self, blocks: usize) -> usize {
        self.index * blocks
    }

    /// The line that is no member's.
    pub(crate) fn spare_line(&self, blocks: usize) -> Span {
        self.whole_line(self.size, blocks)
    }

    /// Where a span is on a member's line.
    fn line(&self, member: usize, blocks: usize, span: Span) -> Span {
        Span::new(Space::Shared, (self.first + member) * blocks + span.first, span.count)
    }

    /// A member's whole line.
    pub(crate) fn whole_line(&self, member: usize, blocks: usize) -> Span {
        self.line(member, blocks, Span::input(0, blocks))
    }

    /// A place for one value, of `size + 1` times as many as asked for that the region has for each turn.
    pub(crate) fn slot(&self, times: usize, turn: usize, index: usize) -> Span {
        Span::new(Space::Shared, (turn * self.lines + self.first) * times + index, 1)
    }

    /// Local reduction onto the first line, which is the first member's alone afterwards.
    pub(crate) fn reduce(&self, blocks: usize, reduction: Reduction) -> Vec<Round> {
        match reduction {
            Reduction::Lines => self.reduce_lines(blocks),
            Reduction::Chunks => self.reduce_chunks(blocks),
        }
    }

    /// Chunk by chunk: in turn t member m combines its operand with chunk t - m, which the members before it have done.
    fn reduce_chunks(&self, blocks: usize) -> Vec<Round> {
        let mut rounds = vec![Round::default()];
        for turn in 0..blocks + self.size - 1 {
            if let Some(chunk) = turn.checked_sub(self.me).filter(|&chunk| chunk < blocks) {
                let (from, into) = (Span::input(chunk, 1), self.line(0, blocks, Span::input(chunk, 1)));
                match self.me {
                    0 => last(&mut rounds).copy(from, into),
                    _ => last(&mut rounds).combine(from, into, Combine::After),
                }
            }
            self.meet(&mut rounds);
        }
        rounds
    }

    /// Everybody copies its vector in, all meet, each reduces its slice.
    fn reduce_lines(&self, blocks: usize) -> Vec<Round> {
        let mut rounds = vec![Round::default()];
        last(&mut rounds).copy(Span::input(0, blocks), self.whole_line(self.me, blocks));
        self.meet(&mut rounds);
        let (first, count) = part(blocks, self.size, self.me);
        let slice = Span::input(first, count);
        for member in (1..self.size).filter(|_| count > 0) {
            let (from, into) = (self.line(member, blocks, slice), self.line(0, blocks, slice));
            last(&mut rounds).combine(from, into, Combine::After);
        }
        if blocks > 1 {
            self.meet(&mut rounds);
        }
        rounds
    }

    /// The result is on a line, written by the first member: all meet and copy it out.
    pub(crate) fn copy_out(&self, rounds: &mut Vec<Round>, line: Span) {
        self.meet(rounds);
        last(rounds).copy(line, Span::output(0, line.count));
    }

    /// A step in which the members shared `all`, this one what is `mine`, backwards: everybody lays its operands for the
    /// others on its line, all meet, each reduces `mine`.
    fn share_back(&self, blocks: usize, all: &[Span], mine: &[Span], reversal: &mut Reversal) {
        let mut own = BlockSet::default();
        mine.iter().for_each(|span| own.insert(span.first..span.end()));
        let others = all.iter().flat_map(|span| own.split(span.first..span.end())).filter(|(_, mine)| !mine);
        let others: Vec<Span> = others.map(|(piece, _)| Span::output(piece.start, piece.len())).collect();
        for operand in reversal.located(&others) {
            last(&mut reversal.rounds).copy(operand, self.line(self.me, blocks, operand));
        }
        self.meet(&mut reversal.rounds);
        reversal.begin(mine);
        // Nearest line first on either side: operands meet in the order of the seats.
        for line in (0..self.me).rev().chain(self.me + 1..self.size) {
            let how = if line < self.me { Combine::Before } else { Combine::After };
            for &span in mine {
                last(&mut reversal.rounds).combine(self.line(line, blocks, span), span, how);
            }
        }
    }
}

/// The round to which local operations are added.
pub(crate) fn last(rounds: &mut Vec<Round>) -> &mut Round {
    if rounds.is_empty() {
        rounds.push(Round::default());
    }
    rounds.last_mut().expect("there is one")
}

/// A step of a movement whose near part runs through shared memory.
pub(crate) enum Step {
    /// Far messages, between `Output` positions.
    Talk(Round),
    /// The region shares `all` these blocks, of which this rank has `mine`.
    Share { all: InlineVec<Span>, mine: InlineVec<Span> },
}

/// One rank's steps, and with whom it shares.
pub(crate) type Steps = Box<dyn Fn(usize) -> (Region, Vec<Step>) + Send + Sync>;

/// A two-level movement, in either form.
pub(crate) enum Movement {
    Messages(Make1),
    Shared(Steps),
}

impl Movement {
    /// What the collective makes of it.
    pub(crate) fn serving(self, problem: &Problem) -> Recipe {
        match problem.collective.family() {
            Collective::ReduceScatter => self.reduce_scatter(problem),
            Collective::Allreduce => self.allreduce(problem),
            Collective::Barrier => self.barrier(),
            _ => self.allgather(problem),
        }
    }

    pub(crate) fn allgather(self, problem: &Problem) -> Recipe {
        let p = problem.ranks();
        let make: Make1 = match self {
            Movement::Messages(make) => Box::new(move |rank| gather(make(rank), rank)),
            Movement::Shared(make) => Box::new(move |rank| {
                let (region, steps) = make(rank);
                gather_shared(&region, rounds_of(&region, steps), p, rank)
            }),
        };
        Recipe { blocks: p, make }
    }

    fn reduce_scatter(self, problem: &Problem) -> Recipe {
        let p = problem.ranks();
        let make: Make1 = match self {
            Movement::Messages(make) => Box::new(move |rank| scatter(make(rank), rank)),
            Movement::Shared(make) => Box::new(move |rank| {
                let (region, steps) = make(rank);
                own_apart(reversed(&region, steps, p, rank), rank, 1)
            }),
        };
        Recipe { blocks: p, make }
    }

    /// Backwards, then forwards.
    fn allreduce(self, problem: &Problem) -> Recipe {
        let p = problem.ranks();
        let make: Make1 = match self {
            Movement::Messages(make) => Box::new(move |rank| both(make(rank), rank)),
            Movement::Shared(make) => Box::new(move |rank| {
                let (region, steps) = make(rank);
                let mut rounds = reversed(&region, steps, p, rank);
                let forwards = rounds_of(&region, make(rank).1);
                match region.size {
                    1 => rounds.extend(forwards),
                    // The members' lines may still be read.
                    _ => rounds.extend(on_line(region.spare_line(p).first, forwards, p, Span::output(rank, 1), rank)),
                }
                rounds.retain(|round| !round.is_empty());
                rounds
            }),
        };
        Recipe { blocks: p, make }
    }

    fn barrier(self) -> Recipe {
        let make: Make1 = match self {
            Movement::Messages(make) => Box::new(move |rank| emptied(make(rank))),
            Movement::Shared(make) => Box::new(move |rank| {
                let (region, steps) = make(rank);
                let mut rounds = emptied(rounds_of(&region, steps));
                rounds.retain(|round| !round.is_empty());
                rounds
            }),
        };
        Recipe { blocks: 0, make }
    }
}

/// A movement backwards: the rank's own block is reduced, in its place in the output.
fn reversed(region: &Region, steps: Vec<Step>, p: usize, rank: usize) -> Vec<Round> {
    let mut reversal = Reversal::new(rank, BlockSet::default());
    for step in steps.into_iter().rev() {
        match step {
            Step::Talk(round) => reversal.round(round),
            Step::Share { .. } if region.size == 1 => {}
            Step::Share { all, mine } => region.share_back(p, &all, &mine, &mut reversal),
        }
    }
    reversal.finish(&[Span::output(rank, 1)])
}

/// Messages, and meetings where the region shares.
fn rounds_of(region: &Region, steps: Vec<Step>) -> Vec<Round> {
    let mut rounds = vec![Round::default()];
    for step in steps {
        match step {
            Step::Talk(round) => rounds.push(round),
            Step::Share { .. } => region.meet(&mut rounds),
        }
    }
    rounds
}

/// An allgather from far messages and meetings: copy-in, the messages from line to line, copy-out.
pub(crate) fn gather_shared(region: &Region, rounds: Vec<Round>, p: usize, rank: usize) -> Vec<Round> {
    match region.size {
        1 => gather(rounds, rank),
        _ => on_line(region.base(p), rounds, p, Span::input(0, 1), rank),
    }
}

/// The same from wherever the rank's own block is, on a line that begins at `base`.
fn on_line(base: usize, rounds: Vec<Round>, p: usize, own: Span, rank: usize) -> Vec<Round> {
    let line = |first: usize, count: usize| Span::new(Space::Shared, base + first, count);
    let place = placing(|blocks, spans| push_span(spans, line(blocks.start, blocks.len())));
    let mut copy_in = Round::default();
    copy_in.copy(own, line(rank, 1));
    let mut all = vec![copy_in];
    for round in embed(rounds, |peer| peer, place) {
        // A meeting alone ends the round before.
        if round.communicates() { all.push(round) } else { last(&mut all).locals.extend(round.locals) }
    }
    let mut copy_out = Round::default();
    if own != Span::output(rank, 1) {
        copy_out.copy(own, Span::output(rank, 1));
    }
    for others in [0..rank, rank + 1..p].into_iter().filter(|others| !others.is_empty()) {
        copy_out.copy(line(others.start, others.len()), Span::output(others.start, others.len()));
    }
    all.push(copy_out);
    all
}

/// Copies one list of spans to another of the same length.
pub(crate) fn copy_all(round: &mut Round, from: InlineVec<Span>, to: InlineVec<Span>) {
    pairs(from, to).for_each(|(from, to)| round.copy(from, to));
}
