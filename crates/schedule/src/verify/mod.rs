//! The verifier: runs the schedules of all ranks on symbols instead of bytes. It knows nothing of any algorithm.
//!
//! It proves, for one problem, that every output holds exactly the contributions it should, each once; that nothing is
//! read before it is written, nor written outside its space or where a block of another size belongs; that every send
//! has its receive, of the same blocks, in the same order; that nothing deadlocks even if every send waits for its
//! receive; that no receive of a round touches what the round sends; and that two ranks never touch the same shared
//! memory between two meetings unless both only read. It computes two properties, [`Report::ordered`] and
//! [`Report::identical`], and holds them against what the problem's reduction asks for.
//!
//! ```
//! use allhands_schedule::{Choice, Collective, Problem, Topology, verify};
//! let problem = Problem::new(Collective::Allreduce, Topology::regular(4, 4)?);
//! let nap = Choice::parse(Collective::Allreduce, "nap")?.prepare(&problem)?;
//! let report = verify(&nap.ensemble()).expect("a correct schedule");
//! assert!(report.ordered && report.identical);
//! # Ok::<(), allhands_schedule::Error>(())
//! ```

mod memory;
mod symbol;

use std::ops::Range;

use crate::matching::{Event, Matching, Timing, run};
use crate::schedule::Ensemble;
use crate::{Collective, Combine, Expression, Local, Problem, Round, Space, Span};
use memory::Memory;
use symbol::{Symbol, Symbols};
use thiserror::Error;

/// What the verifier found out about a correct ensemble.
#[derive(Clone, Debug)]
pub struct Report {
    /// Operands are combined in rank order: safe for a non-commutative operation. True where nothing is combined.
    pub ordered: bool,
    /// Every rank evaluates the same expression, so results are the same bits everywhere. True where nothing is combined.
    pub identical: bool,
    /// When each round runs if a message takes one step.
    pub timing: Timing,
}

/// Why a schedule is wrong.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs)] // the sentences say what the fields are
pub enum Fault {
    #[error("there are {given} schedules for {ranks} ranks, or not in rank order")]
    Ranks { given: usize, ranks: usize },
    #[error("{collective} on {ranks} ranks moves {wanted} blocks, but the schedules are cut into {blocks}")]
    Blocks { collective: Collective, ranks: usize, wanted: usize, blocks: usize },
    #[error("rank {rank}, round {round}: rank {peer} is no possible partner")]
    Peer { rank: usize, round: usize, peer: usize },
    #[error("rank {rank}, round {round}: nothing that rank {from} sends is left to receive")]
    NeverSent { rank: usize, round: usize, from: usize },
    #[error("rank {rank}, round {round}: rank {to} never receives this message")]
    NeverReceived { rank: usize, round: usize, to: usize },
    #[error("rank {rank}, round {round}: {received} blocks are expected from rank {from}, which sends {sent}")]
    Size { from: usize, sent: usize, rank: usize, round: usize, received: usize },
    #[error("rank {rank} waits for ever in round {round}{}", .peer.map(|peer| format!(", for rank {peer}")).unwrap_or_default())]
    Deadlock { rank: usize, round: usize, peer: Option<usize> },
    #[error("rank {rank}, round {round}: meets at level {level}, but the topology has levels 0..={depth}")]
    Level { rank: usize, round: usize, level: usize, depth: usize },
    #[error("rank {rank}, round {round}: {space} {position} is read before anything is written there")]
    Unwritten { rank: usize, round: usize, space: Space, position: usize },
    #[error("rank {rank}, round {round}: {space} has {extent} blocks, position {position} is outside")]
    Outside { rank: usize, round: usize, space: Space, position: usize, extent: usize },
    #[error("rank {rank}, round {round}: the input is written")]
    InputWritten { rank: usize, round: usize },
    #[error(
        "rank {rank}, round {round}: {space} {position} has the size of block {fits}, but block {block} is put there"
    )]
    Misfit { rank: usize, round: usize, space: Space, position: usize, fits: usize, block: usize },
    #[error("rank {rank}, round {round}: copies or combines {from} blocks with {to}")]
    Lengths { rank: usize, round: usize, from: usize, to: usize },
    #[error("rank {rank}, round {round}: {space} {position} is both read and written by one copy or combine")]
    Aliased { rank: usize, round: usize, space: Space, position: usize },
    #[error("rank {rank}, round {round}: {space} {position} is received while the same round sends or receives it")]
    Overlap { rank: usize, round: usize, space: Space, position: usize },
    #[error("rank {rank}, round {round}: {collective} combines nothing")]
    Combines { rank: usize, round: usize, collective: Collective },
    #[error("rank {rank}, round {round}: combines block {left} with block {right}")]
    OtherBlock { rank: usize, round: usize, left: usize, right: usize },
    #[error("rank {rank}, round {round}: the contribution of rank {contributor} to block {block} is counted twice")]
    Twice { rank: usize, round: usize, contributor: usize, block: usize },
    #[error("rank {rank}, round {round}: shared {position} is touched by rank {other} too, with no meeting between")]
    Race { rank: usize, round: usize, position: usize, other: usize },
    #[error("rank {rank}: output {position} is never written")]
    Missing { rank: usize, position: usize },
    #[error("rank {rank}: output {position} should hold {wanted}, but holds {found}")]
    Wrong { rank: usize, position: usize, wanted: String, found: String },
    #[error("rank {rank}: output {position} is not combined in rank order, but the operation does not commute")]
    NotOrdered { rank: usize, position: usize },
    #[error(
        "rank {rank}: output {position} is another expression than on the ranks before, but identical results are asked for"
    )]
    NotIdentical { rank: usize, position: usize },
    #[error("rank {rank} can leave the barrier before rank {other} has come")]
    NotEverybody { rank: usize, other: usize },
}

impl Fault {
    /// The rank that is to blame, and its round, where there is one: counted from 0, as everywhere.
    ///
    /// ```
    /// use allhands_schedule::Fault;
    /// assert_eq!(Fault::InputWritten { rank: 3, round: 1 }.place(), Some((3, Some(1))));
    /// assert_eq!(Fault::Missing { rank: 3, position: 0 }.place(), Some((3, None)));
    /// ```
    pub fn place(&self) -> Option<(usize, Option<usize>)> {
        match *self {
            Fault::Ranks { .. } | Fault::Blocks { .. } => None,
            Fault::Peer { rank, round, .. }
            | Fault::NeverSent { rank, round, .. }
            | Fault::NeverReceived { rank, round, .. }
            | Fault::Size { rank, round, .. }
            | Fault::Deadlock { rank, round, .. }
            | Fault::Level { rank, round, .. }
            | Fault::Unwritten { rank, round, .. }
            | Fault::Outside { rank, round, .. }
            | Fault::InputWritten { rank, round }
            | Fault::Misfit { rank, round, .. }
            | Fault::Lengths { rank, round, .. }
            | Fault::Aliased { rank, round, .. }
            | Fault::Overlap { rank, round, .. }
            | Fault::Combines { rank, round, .. }
            | Fault::OtherBlock { rank, round, .. }
            | Fault::Twice { rank, round, .. }
            | Fault::Race { rank, round, .. } => Some((rank, Some(round))),
            Fault::Missing { rank, .. }
            | Fault::Wrong { rank, .. }
            | Fault::NotOrdered { rank, .. }
            | Fault::NotIdentical { rank, .. }
            | Fault::NotEverybody { rank, .. } => Some((rank, None)),
        }
    }
}

/// Proves an ensemble right, or names the first fault.
pub fn verify(ensemble: &Ensemble) -> Result<Report, Fault> {
    verify_watched(ensemble, |_| ())
}

/// What an observer of a run sees: a value arrives at a position, in a round.
#[derive(Clone, Copy, Debug)]
pub struct Write<'a> {
    /// Whose memory.
    pub rank: usize,
    /// In which of its rounds.
    pub round: usize,
    /// The space.
    pub space: Space,
    /// The position in it.
    pub position: usize,
    /// The block whose value is there now.
    pub block: usize,
    /// Whose contributions it holds: runs of ranks, first and one past last.
    pub contributors: &'a [(u32, u32)],
}

/// Proves an ensemble right as [`verify`] does, and tells `watch` every write: what a drawing of filling buffers needs.
pub fn verify_watched(ensemble: &Ensemble, watch: impl FnMut(Write<'_>)) -> Result<Report, Fault> {
    run_on_symbols(ensemble, watch, |machine, timing| {
        let (ordered, identical) = machine.judge()?;
        Ok(Report { ordered, identical, timing })
    })
}

/// Which expression every output is.
pub(crate) fn expression_of(ensemble: &Ensemble) -> Result<Expression, Fault> {
    run_on_symbols(ensemble, |_| (), |machine, _| machine.expression())
}

fn run_on_symbols<W: FnMut(Write<'_>), R>(
    ensemble: &Ensemble,
    watch: W,
    finish: impl FnOnce(&Machine<'_, W>, Timing) -> Result<R, Fault>,
) -> Result<R, Fault> {
    let Ensemble { problem, schedules, blocks, .. } = ensemble;
    let ranks = problem.ranks();
    if schedules.len() != ranks || schedules.iter().enumerate().any(|(rank, schedule)| schedule.rank != rank) {
        return Err(Fault::Ranks { given: schedules.len(), ranks });
    }
    let wanted = problem.blocks().map_or((*blocks).max(1), |wanted| wanted * problem.pieces(*blocks));
    if *blocks != wanted {
        return Err(Fault::Blocks { collective: problem.collective, ranks, wanted, blocks: *blocks });
    }
    let matching = Matching::new(schedules)?;
    let mut machine = Machine {
        ensemble,
        matching: &matching,
        symbols: Symbols::default(),
        memory: Memory::new(problem, *blocks),
        in_flight: matching
            .receiver
            .iter()
            .map(|rounds| rounds.iter().map(|sends| vec![None; sends.len()]).collect())
            .collect(),
        known: if problem.collective == Collective::Barrier {
            (0..ranks).map(|rank| Known::only(rank, ranks)).collect()
        } else {
            vec![]
        },
        watch,
    };
    let timing = run(schedules, &problem.topology, &matching, |event| machine.event(event))?;
    finish(&machine, timing)
}

/// A message under way: its symbols, and in a barrier what its sender knew.
type Parcel = (Vec<Symbol>, Known);

struct Machine<'a, W> {
    ensemble: &'a Ensemble,
    matching: &'a Matching,
    symbols: Symbols,
    memory: Memory<'a>,
    in_flight: Vec<Vec<Vec<Option<Parcel>>>>,
    known: Vec<Known>,
    watch: W,
}

impl<W: FnMut(Write<'_>)> Machine<'_, W> {
    fn event(&mut self, event: Event<'_>) -> Result<(), Fault> {
        match event {
            Event::Post { rank, round } => self.post(rank, round),
            Event::Through { rank, round } => self.through(rank, round),
            Event::Local { rank, round, local } => self.local(rank, round, local),
            Event::Met { members } => {
                self.memory.met(members);
                if let Some((&first, rest)) = members.split_first().filter(|_| !self.known.is_empty()) {
                    let mut all = self.known[first].clone();
                    rest.iter().for_each(|&member| all.join(&self.known[member]));
                    members.iter().for_each(|&member| self.known[member] = all.clone());
                }
                Ok(())
            }
        }
    }

    fn round(&self, rank: usize, round: usize) -> &Round {
        &self.ensemble.schedules[rank].rounds[round]
    }

    fn post(&mut self, rank: usize, round: usize) -> Result<(), Fault> {
        check_overlaps(rank, round, self.round(rank, round))?;
        let ensemble = self.ensemble;
        for (index, send) in ensemble.schedules[rank].rounds[round].sends.iter().enumerate() {
            let mut symbols = Vec::with_capacity(crate::schedule::blocks_in(&send.spans));
            for span in &send.spans {
                self.memory.read(rank, round, *span, &mut symbols)?;
            }
            let known = self.known.get(rank).cloned().unwrap_or_default();
            self.in_flight[rank][round][index] = Some((symbols, known));
        }
        Ok(())
    }

    fn through(&mut self, rank: usize, round: usize) -> Result<(), Fault> {
        let ensemble = self.ensemble;
        let recvs = &ensemble.schedules[rank].rounds[round].recvs;
        for combining in [false, true] {
            for (index, recv) in recvs.iter().enumerate().filter(|(_, recv)| recv.combine.is_some() == combining) {
                let end = self.matching.sender[rank][round][index];
                let parcel = self.in_flight[end.rank][end.round][end.index].take();
                let (symbols, known) = parcel.expect("a message that was posted and not yet received");
                if let Some(mine) = self.known.get_mut(rank) {
                    mine.join(&known);
                }
                let mut symbols = symbols.into_iter();
                for span in &recv.spans {
                    for position in span.first..span.end() {
                        let value = symbols.next().expect("sizes were matched");
                        self.put(rank, round, span.space, position, value, recv.combine)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn local(&mut self, rank: usize, round: usize, local: &Local) -> Result<(), Fault> {
        let (from, to, how) = match *local {
            Local::Copy { from, to } => (from, to, None),
            Local::Combine { from, into, how } => (from, into, Some(how)),
            Local::Meet { .. } => return Ok(()),
        };
        if from.count != to.count {
            return Err(Fault::Lengths { rank, round, from: from.count, to: to.count });
        }
        if from.overlaps(&to) && to.space != Space::Input {
            let position = from.first.max(to.first);
            return Err(Fault::Aliased { rank, round, space: to.space, position });
        }
        let mut symbols = Vec::with_capacity(from.count);
        self.memory.read(rank, round, from, &mut symbols)?;
        for (position, value) in (to.first..to.end()).zip(symbols) {
            self.put(rank, round, to.space, position, value, how)?;
        }
        Ok(())
    }

    fn put(
        &mut self,
        rank: usize,
        round: usize,
        space: Space,
        position: usize,
        value: Symbol,
        how: Option<Combine>,
    ) -> Result<(), Fault> {
        let value = match how {
            None => value,
            Some(how) => {
                let problem = &self.ensemble.problem;
                if !problem.collective.reduces() {
                    return Err(Fault::Combines { rank, round, collective: problem.collective });
                }
                let mut there = Vec::with_capacity(1);
                self.memory.read(rank, round, Span::new(space, position, 1), &mut there)?;
                let (left, right) = if how == Combine::After { (there[0], value) } else { (value, there[0]) };
                self.symbols.combine(left, right).map_err(|clash| clash.fault(rank, round))?
            }
        };
        let block = self.symbols.block(value);
        self.memory.write(rank, round, space, position, value, block)?;
        let mut own = [(0, 0)];
        let contributors = self.symbols.ranks(value, &mut own);
        (self.watch)(Write { rank, round, space, position, block, contributors });
        Ok(())
    }

    /// Compares every output with what is asked.
    fn judge(&self) -> Result<(bool, bool), Fault> {
        let Ensemble { problem, blocks, .. } = self.ensemble;
        let ranks = problem.ranks();
        for (rank, known) in self.known.iter().enumerate() {
            if let Some(other) = (0..ranks).find(|&other| !known.contains(other)) {
                return Err(Fault::NotEverybody { rank, other });
            }
        }
        let (mut ordered, mut identical) = (true, true);
        let mut results = vec![None; *blocks];
        for rank in 0..ranks {
            for position in 0..problem.extent(Space::Output, rank, *blocks) {
                let found = self.memory.output(rank, position).ok_or(Fault::Missing { rank, position })?;
                let block = problem.block_at(Space::Output, rank, position, *blocks);
                let right = match problem.contributor(block, *blocks) {
                    Some(source) => found == Symbol::leaf(source, block),
                    None => self.symbols.block(found) == block && self.symbols.are(found, contributors(problem, rank)),
                };
                if !right {
                    let wanted = match problem.contributor(block, *blocks) {
                        Some(source) => format!("block {block} of rank {source}"),
                        None if problem.collective.prefixes() => {
                            let Range { start, end } = contributors(problem, rank);
                            format!("block {block} of ranks {start}..{end}")
                        }
                        None => format!("block {block} of all {ranks} ranks"),
                    };
                    return Err(Fault::Wrong { rank, position, wanted, found: self.symbols.describe(found) });
                }
                ordered &= self.symbols.ordered(found);
                // Each rank has a prefix of its own, of which no other has a copy.
                identical &= problem.collective.prefixes() || *results[block].get_or_insert(found) == found;
                if !ordered && !problem.reduction.commutative {
                    return Err(Fault::NotOrdered { rank, position });
                }
                if !identical && problem.reduction.identical {
                    return Err(Fault::NotIdentical { rank, position });
                }
            }
        }
        Ok((ordered, identical))
    }

    /// What the outputs are, where there is something in them.
    fn expression(&self) -> Result<Expression, Fault> {
        let Ensemble { problem, blocks, .. } = self.ensemble;
        let (fingerprints, pieces) = (self.symbols.fingerprints(), problem.pieces(*blocks));
        let of_rank = |rank| {
            // Of a block of few elements the last pieces are empty.
            let full = |position| {
                let block = problem.block_at(Space::Output, rank, position, *blocks);
                problem.counts.is_empty() || problem.block_size(block / pieces) > block % pieces
            };
            let output = |position| {
                let symbol = self.memory.output(rank, position).ok_or(Fault::Missing { rank, position })?;
                Ok(fingerprints.of(symbol))
            };
            let positions = 0..problem.extent(Space::Output, rank, *blocks);
            positions.filter(|&position| full(position)).map(output).collect()
        };
        let outputs = (0..problem.ranks()).map(of_rank).collect::<Result<Vec<Vec<_>>, Fault>>()?;
        Ok(Expression::of_outputs(outputs))
    }
}

/// Whose contributions make up what a rank gets of a reduction.
fn contributors(problem: &Problem, rank: usize) -> Range<usize> {
    match problem.collective {
        Collective::Scan => 0..rank + 1,
        Collective::Exscan => 0..rank,
        _ => 0..problem.ranks(),
    }
}

/// No receive may touch what the round sends or plainly receives, except that combining ones wait their turn.
fn check_overlaps(rank: usize, round: usize, step: &Round) -> Result<(), Fault> {
    let plain = step.recvs.iter().filter(|recv| recv.combine.is_none()).flat_map(|recv| &recv.spans);
    let combining = step.recvs.iter().filter(|recv| recv.combine.is_some()).flat_map(|recv| &recv.spans);
    let sent = step.sends.iter().flat_map(|send| &send.spans);
    // (span, a plain receive, something a plain receive must not touch)
    let mut all: Vec<(Span, bool)> =
        plain.map(|&span| (span, true)).chain(combining.chain(sent).map(|&span| (span, false))).collect();
    all.sort_by_key(|(span, _)| (span.space, span.first));
    let mut furthest_plain: Option<Span> = None;
    let mut furthest: Option<Span> = None;
    for (span, is_plain) in all {
        let rival = if is_plain { furthest } else { furthest_plain };
        if rival.is_some_and(|rival| rival.overlaps(&span)) {
            return Err(Fault::Overlap { rank, round, space: span.space, position: span.first });
        }
        let further = |old: Option<Span>| match old {
            Some(old) if old.space == span.space && old.end() >= span.end() => Some(old),
            _ => Some(span),
        };
        furthest = further(furthest);
        if is_plain {
            furthest_plain = further(furthest_plain);
        }
    }
    Ok(())
}

/// A set of ranks, for barriers.
#[derive(Clone, Debug, Default)]
struct Known(Vec<u64>);

impl Known {
    fn only(rank: usize, ranks: usize) -> Known {
        let mut bits = vec![0; ranks.div_ceil(64)];
        bits[rank / 64] |= 1 << (rank % 64);
        Known(bits)
    }

    fn join(&mut self, other: &Known) {
        self.0.iter_mut().zip(&other.0).for_each(|(mine, theirs)| *mine |= theirs);
    }

    fn contains(&self, rank: usize) -> bool {
        self.0[rank / 64] >> (rank % 64) & 1 == 1
    }
}
