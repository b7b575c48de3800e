//! The memory of all ranks during a verification: symbols, and who touched what is shared.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use super::symbol::Mix;
use super::{Fault, Symbol};
use crate::{Problem, Space, Span};

type Cells<T> = HashMap<usize, T, BuildHasherDefault<Mix>>;

pub(super) struct Memory<'a> {
    problem: &'a Problem,
    blocks: usize,
    output: Vec<Vec<Option<Symbol>>>,
    scratch: Vec<Cells<Symbol>>,
    shared: Vec<Cells<SharedCell>>,
    clocks: Vec<Clock>,
}

/// `clock[r]`: how many meetings of rank r happened before now, as far as this rank can know.
type Clock = Cells<u32>;

/// A position of shared memory: its value, who wrote it and who has read it since, each at which tick of his clock.
#[derive(Default)]
struct SharedCell {
    value: Option<Symbol>,
    writer: Option<(usize, u32)>,
    readers: Vec<(usize, u32)>,
}

impl<'a> Memory<'a> {
    pub(super) fn new(problem: &'a Problem, blocks: usize) -> Memory<'a> {
        let ranks = problem.ranks();
        let output = (0..ranks).map(|rank| vec![None; problem.extent(Space::Output, rank, blocks)]).collect();
        let nodes = problem.topology.regions(1);
        let clock = |rank| Clock::from_iter([(rank, 1)]);
        Memory {
            problem,
            blocks,
            output,
            scratch: (0..ranks).map(|_| Cells::default()).collect(),
            shared: (0..nodes).map(|_| Cells::default()).collect(),
            clocks: (0..ranks).map(clock).collect(),
        }
    }

    pub(super) fn output(&self, rank: usize, position: usize) -> Option<Symbol> {
        self.output[rank][position]
    }

    /// Appends the symbols of a span.
    pub(super) fn read(
        &mut self,
        rank: usize,
        round: usize,
        span: Span,
        symbols: &mut Vec<Symbol>,
    ) -> Result<(), Fault> {
        let space = span.space;
        for position in span.first..span.end() {
            let found = match space {
                Space::Input => {
                    self.inside(rank, round, space, position)?;
                    Some(Symbol::leaf(rank, self.problem.block_at(space, rank, position, self.blocks)))
                }
                Space::Output => {
                    self.inside(rank, round, space, position)?;
                    self.output[rank][position]
                }
                Space::Scratch => self.scratch[rank].get(&position).copied(),
                Space::Shared => {
                    let node = self.problem.topology.region_of(1, rank);
                    let cell = self.shared[node].entry(position).or_default();
                    let clock = &self.clocks[rank];
                    if let Some((other, _)) =
                        cell.writer.filter(|&(other, tick)| other != rank && !knows(clock, other, tick))
                    {
                        return Err(Fault::Race { rank, round, position, other });
                    }
                    cell.readers.push((rank, clock[&rank]));
                    cell.value
                }
            };
            symbols.push(found.ok_or(Fault::Unwritten { rank, round, space, position })?);
        }
        Ok(())
    }

    pub(super) fn write(
        &mut self,
        rank: usize,
        round: usize,
        space: Space,
        position: usize,
        value: Symbol,
        block: usize,
    ) -> Result<(), Fault> {
        if space == Space::Input {
            return Err(Fault::InputWritten { rank, round });
        }
        self.inside(rank, round, space, position)?;
        let fits = self.problem.block_at(space, rank, position, self.blocks);
        if fits != block {
            return Err(Fault::Misfit { rank, round, space, position, fits, block });
        }
        match space {
            Space::Input => unreachable!("refused above"),
            Space::Output => self.output[rank][position] = Some(value),
            Space::Scratch => {
                self.scratch[rank].insert(position, value);
            }
            Space::Shared => {
                let node = self.problem.topology.region_of(1, rank);
                let cell = self.shared[node].entry(position).or_default();
                let clock = &self.clocks[rank];
                let mut before = cell.writer.iter().chain(&cell.readers);
                if let Some(&(other, _)) = before.find(|&&(other, tick)| other != rank && !knows(clock, other, tick)) {
                    return Err(Fault::Race { rank, round, position, other });
                }
                *cell = SharedCell { value: Some(value), writer: Some((rank, clock[&rank])), readers: vec![] };
            }
        }
        Ok(())
    }

    /// All that one of these ranks did before is now known to all of them.
    pub(super) fn met(&mut self, members: &[usize]) {
        let mut all = Clock::default();
        for &member in members {
            for (&rank, &tick) in &self.clocks[member] {
                let latest = all.entry(rank).or_default();
                *latest = tick.max(*latest);
            }
        }
        for &member in members {
            self.clocks[member] = all.clone();
            *self.clocks[member].entry(member).or_default() += 1;
        }
    }

    fn inside(&self, rank: usize, round: usize, space: Space, position: usize) -> Result<(), Fault> {
        let extent = self.problem.extent(space, rank, self.blocks);
        if position < extent { Ok(()) } else { Err(Fault::Outside { rank, round, space, position, extent }) }
    }
}

fn knows(clock: &Clock, other: usize, tick: u32) -> bool {
    clock.get(&other).is_some_and(|&known| known >= tick)
}
