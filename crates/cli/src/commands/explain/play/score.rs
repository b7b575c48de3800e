//! One schedule as the page plays it: its messages by step, and how every buffer fills.

use std::collections::{BTreeMap, HashMap};

use allhands_model::{Amount, Machine, Simulator};
use allhands_schedule::draw::{Cell, Picture, Sizes};
use allhands_schedule::{Collective, Counts, Ensemble, Local, Prepared, Problem, Schedule, Space, Span};
use serde::Serialize;

use super::code::push;

/// A schedule, proved right and written down.
#[derive(Serialize)]
pub(super) struct Score {
    pub(super) algorithm: String,
    /// What is set, as after the colon on the command line; empty for the default.
    pub(super) setting: String,
    /// Into how many blocks the data is cut.
    pub(super) blocks: usize,
    /// How many of them what each rank contributes, or gets, is cut into.
    pub(super) pieces: usize,
    pub(super) steps: usize,
    /// Whether ranks of a node share memory.
    pub(super) shares: bool,
    /// The most blocks of scratch that a rank touches.
    pub(super) scratch: usize,
    /// For each step, how many messages; for each, how much its sender exceeds the one before, the receiver, and the weight in
    /// blocks or in units of the counts.
    pub(super) messages: String,
    /// How many cells a rank has.
    pub(super) rows: usize,
    /// For each rank and cell, when and how its content comes. Where blocks are moved: `1 + 3 step + how` of its block's
    /// coming, or 0.
    /// Where they are combined: how many changes, and for each `3 steps since the last + how` and the number of a set.
    pub(super) cells: String,
    /// Whose contributions a cell holds: runs of ranks, first and one past last, one after the other.
    pub(super) sets: Vec<Vec<u32>>,
    /// The estimated time in microseconds for each size; none where the machine has no place for the algorithm.
    pub(super) us: Vec<Option<f64>>,
}

/// How a block came to a rank: what the colour of a cell says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Own,
    Near,
    Far,
}

impl Score {
    /// Plays an algorithm once, and simulates it at every size.
    pub(super) fn new(
        prepared: &Prepared,
        machine: &Machine,
        sizes: &[u64],
    ) -> Result<Score, allhands_schedule::Fault> {
        let (ensemble, problem) = (prepared.ensemble(), prepared.problem());
        let picture = Picture::new(&ensemble)?;
        let rows = rows(problem, ensemble.blocks);
        let (cells, sets) = match problem.collective.reduces() {
            true => combined(&ensemble, &picture, rows),
            false => (moved(&ensemble, &picture, rows), Vec::new()),
        };
        let name = prepared.name();
        let (algorithm, setting) = name.split_once(':').unwrap_or((&name, ""));
        Ok(Score {
            algorithm: algorithm.into(),
            setting: setting.into(),
            blocks: ensemble.blocks,
            pieces: problem.pieces(ensemble.blocks),
            steps: picture.report.timing.steps,
            shares: prepared.shares(),
            scratch: Counts::maxima(&ensemble).scratch,
            messages: messages(&ensemble, &picture),
            rows,
            cells,
            sets,
            us: estimates(prepared, machine, sizes),
        })
    }
}

/// Cells that a rank has: the blocks that it is to have, or may carry for others, or those of a vector that everybody has an operand for.
fn rows(problem: &Problem, blocks: usize) -> usize {
    match problem.collective.reduces() || problem.collective.family() == Collective::Scatter {
        true => blocks,
        // One for each rank that may be a neighbour.
        false if problem.collective.has_graph() => problem.ranks(),
        false => problem.extent(Space::Output, problem.root, blocks),
    }
}

fn estimates(prepared: &Prepared, machine: &Machine, sizes: &[u64]) -> Vec<Option<f64>> {
    let mut simulator = Simulator::new(prepared);
    let estimate = |&bytes: &u64| simulator.run(machine, Amount::bytes(bytes)).ok();
    sizes.iter().map(estimate).map(|estimate| Some(super::microseconds(estimate?.seconds))).collect()
}

fn messages(ensemble: &Ensemble, picture: &Picture) -> String {
    let mut text = String::new();
    for step in &picture.steps[1..] {
        push(&mut text, step.messages.len());
        let mut last = 0;
        for message in &step.messages {
            let spans = &ensemble.schedules[message.from].rounds[message.round].sends[message.index].spans;
            push(&mut text, message.from - last);
            push(&mut text, message.to);
            push(&mut text, weight(&ensemble.problem, ensemble.blocks, message.from, spans));
            last = message.from;
        }
    }
    text
}

/// Blocks, or units of the counts where these are given, each as many times as there are pieces of it.
fn weight(problem: &Problem, blocks: usize, rank: usize, spans: &[Span]) -> usize {
    match problem.counts.is_empty() {
        true => spans.iter().map(|span| span.count).sum(),
        false => Sizes::new(problem.pieces(blocks) as u64).of(problem, blocks, rank, spans) as usize,
    }
}

/// When each block that a rank is to have came to it, in whatever memory.
fn moved(ensemble: &Ensemble, picture: &Picture, rows: usize) -> String {
    let mut text = String::new();
    for rank in 0..ensemble.problem.ranks() {
        let origins = Origins::new(ensemble, picture, rank);
        let mut came = vec![0; rows];
        for (step, space, position, cell) in written(picture, rank) {
            let row = match *cell {
                Cell::Block(block) => block,
                Cell::Pair { source, destination } if destination == rank => source,
                _ => continue,
            };
            if came[row] == 0 {
                came[row] = 1 + 3 * step + origins.how(step, space, position) as usize;
            }
        }
        came.into_iter().for_each(|code| push(&mut text, code));
    }
    text
}

/// What a rank has at the end of each step that it did not have before: step, place, content.
fn written(picture: &Picture, rank: usize) -> impl Iterator<Item = (usize, Space, usize, &Cell)> {
    picture.steps.iter().enumerate().flat_map(move |(step, all)| {
        let own = all.written.iter().filter(move |((_, _, whose), _)| *whose == rank);
        own.map(move |(&(space, position, _), cell)| (step, space, position, cell))
    })
}

/// The most contributions to each block that a rank has had in any memory, as they become more. It begins with its own.
fn combined(ensemble: &Ensemble, picture: &Picture, rows: usize) -> (String, Vec<Vec<u32>>) {
    type Change<'a> = (usize, How, &'a [(u32, u32)]);
    let Ensemble { problem, blocks, .. } = ensemble;
    let (mut text, mut sets) = (String::new(), BTreeMap::new());
    for rank in 0..problem.ranks() {
        let origins = Origins::new(ensemble, picture, rank);
        let mut changes: Vec<Vec<Change<'_>>> = vec![Vec::new(); rows];
        for (step, space, position, cell) in written(picture, rank) {
            let Cell::Combined(runs) = cell else { continue };
            let row = &mut changes[problem.block_at(space, rank, position, *blocks)];
            if contributions(runs) > row.last().map_or(1, |last| contributions(last.2)) {
                row.pop_if(|last| last.0 == step);
                row.push((step, origins.how(step, space, position), runs));
            }
        }
        for row in &changes {
            push(&mut text, row.len());
            let mut last = 0;
            for &(step, how, runs) in row {
                push(&mut text, 3 * (step - last) + how as usize);
                let new = sets.len();
                push(&mut text, *sets.entry(runs).or_insert(new));
                last = step;
            }
        }
    }
    let mut listed = vec![Vec::new(); sets.len()];
    for (runs, number) in sets {
        listed[number] = runs.iter().flat_map(|&(first, end)| [first, end]).collect();
    }
    (text, listed)
}

fn contributions(runs: &[(u32, u32)]) -> u32 {
    runs.iter().map(|(first, end)| end - first).sum()
}

/// How what one rank writes has come to it, by step and place.
struct Origins(HashMap<(usize, Space, usize), How>);

impl Origins {
    /// Follows the rank's own rounds: what was received is near or far, a copy is what was copied; from shared memory all is near.
    fn new(ensemble: &Ensemble, picture: &Picture, rank: usize) -> Origins {
        let Schedule { rounds, .. } = &ensemble.schedules[rank];
        let topology = &ensemble.problem.topology;
        let (mut held, mut origins) = (HashMap::new(), HashMap::new());
        for (number, round) in rounds.iter().enumerate() {
            let step = picture.report.timing.step[rank][number];
            let mut write = |held: &mut HashMap<_, _>, space: Space, position: usize, how: How| {
                held.insert((space, position), how);
                origins.insert((step, space, position), how);
            };
            for recv in &round.recvs {
                let how = if topology.far(rank, recv.from) { How::Far } else { How::Near };
                recv.spans
                    .iter()
                    .for_each(|span| places(span).for_each(|(space, at)| write(&mut held, space, at, how)));
            }
            for local in &round.locals {
                let (from, to) = match local {
                    Local::Copy { from, to } => (from, to),
                    Local::Combine { from, into, .. } => (from, into),
                    Local::Meet { .. } => continue,
                };
                for (from, (space, at)) in places(from).zip(places(to)) {
                    let unknown = if from.0 == Space::Shared { How::Near } else { How::Own };
                    let brought = held.get(&from).copied().unwrap_or(unknown);
                    let kept =
                        if matches!(local, Local::Combine { .. }) { held.get(&(space, at)).copied() } else { None };
                    let how = if brought == How::Own { kept.unwrap_or(How::Own) } else { brought };
                    write(&mut held, space, at, how);
                }
            }
        }
        Origins(origins)
    }

    fn how(&self, step: usize, space: Space, position: usize) -> How {
        self.0.get(&(step, space, position)).copied().unwrap_or(How::Own)
    }
}

fn places(span: &Span) -> impl Iterator<Item = (Space, usize)> + use<> {
    let space = span.space;
    (span.first..span.end()).map(move |position| (space, position))
}
