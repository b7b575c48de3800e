//! Where blocks lie in memory, in bytes, once counts are known.

use std::ops::Range;

use allhands_schedule::{Collective, Problem, Space};

use crate::error::{Error, Result};

/// How much data a plan moves, in elements.
///
/// ```
/// use allhands::raw::Amount;
/// assert_ne!(Amount::Each(2), Amount::Listed(vec![2, 2]));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Amount {
    /// Every block of this many elements; for a vector that the algorithm cuts up (allreduce, bcast, reduce, scan), all of it.
    Each(usize),
    /// A size for each block: for each rank, in an alltoall for each pair, source-major, or for each edge of a graph.
    Listed(Vec<usize>),
    /// What this rank knows without being told by ranks of other nodes: a size for each block that it gives, for each that it gets, and for each that
    /// it carries for another rank. Of an alltoallv, a gatherv, a scatterv or a neighbourhood collective. Only some algorithms can do with it
    /// ([`Knowledge`](allhands_schedule::Knowledge)), and ranks have to agree on which.
    Own {
        /// Of each block of the input.
        given: Vec<usize>,
        /// Of each block of the output.
        gotten: Vec<usize>,
        /// Of each block that is neither, by its number, in ascending order.
        carried: Vec<(usize, usize)>,
    },
}

impl Amount {
    /// Whether all blocks together, of all ranks, have a length that memory can have: every offset is then a number. All ranks say the same.
    pub(crate) fn fits(&self, problem: &Problem, element: usize) -> Result<()> {
        let ranks = problem.ranks();
        let sum = |counts: &[usize]| counts.iter().try_fold(0usize, |sum, &count| sum.checked_add(count));
        let elements = match self {
            Amount::Listed(counts) => sum(counts),
            Amount::Own { given, gotten, carried } => {
                let all = given.iter().chain(gotten).chain(carried.iter().map(|(_, count)| count));
                all.copied().try_fold(0usize, usize::checked_add)
            }
            Amount::Each(count) => count.checked_mul(problem.blocks().unwrap_or(1)),
        };
        match elements.and_then(|elements| elements.checked_mul(element)) {
            Some(bytes) if isize::try_from(bytes).is_ok() => Ok(()),
            _ => Err(Error::TooLarge { collective: problem.collective.name(), ranks, element }),
        }
    }
}

/// The positions of every space of one rank, in bytes. For an amount that [fits](Amount::fits), no sum here is too large for a number.
pub(crate) struct Layout<'a> {
    problem: &'a Problem,
    rank: usize,
    blocks: usize,
    element: usize,
    amount: &'a Amount,
    /// Where what each count is of begins in a vector of all, and where the last one ends; empty where blocks are equal, or not all known.
    starts: Vec<usize>,
    /// The same of the blocks of the caller's input and output, where these are not all blocks.
    input_starts: Vec<usize>,
    output_starts: Vec<usize>,
}

/// A run of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bytes {
    pub(crate) at: usize,
    pub(crate) len: usize,
}

impl<'a> Layout<'a> {
    pub(crate) fn new(
        problem: &'a Problem,
        rank: usize,
        blocks: usize,
        element: usize,
        amount: &'a Amount,
    ) -> Layout<'a> {
        let (starts, input_starts, output_starts) = (Vec::new(), Vec::new(), Vec::new());
        let mut layout = Layout { problem, rank, blocks, element, amount, starts, input_starts, output_starts };
        match amount {
            Amount::Each(_) => {}
            Amount::Listed(counts) => {
                layout.starts = starts_of(counts.iter().copied());
                if by_position(problem.collective) {
                    let of = |space| {
                        let positions = 0..problem.extent(space, rank, blocks);
                        starts_of(positions.map(|position| counts[problem.block_at(space, rank, position, blocks)]))
                    };
                    (layout.input_starts, layout.output_starts) = (of(Space::Input), of(Space::Output));
                }
            }
            Amount::Own { given, gotten, .. } => {
                layout.input_starts = starts_of(given.iter().copied());
                layout.output_starts = starts_of(gotten.iter().copied());
            }
        }
        layout
    }

    /// Where the caller's blocks begin in a space, if that does not follow from their number.
    fn own_starts(&self, space: Space) -> Option<&[usize]> {
        let starts = if space == Space::Input { &self.input_starts } else { &self.output_starts };
        (!starts.is_empty()).then_some(starts)
    }

    /// How many elements a block has.
    pub(crate) fn elements(&self, block: usize) -> usize {
        match self.amount {
            // Nothing is made of blocks that are not known: `check` refuses it.
            Amount::Own { carried, .. } => known(carried, block).unwrap_or(0),
            Amount::Each(all) if self.cuts() => part(*all, self.blocks, block).len(),
            Amount::Listed(_) | Amount::Each(_) => self.piece(block).len(),
        }
    }

    /// What a block is of the rank's, or of the pair's, from whose beginning elements are counted: all of it, or a piece.
    fn piece(&self, block: usize) -> Range<usize> {
        let pieces = self.problem.pieces(self.blocks);
        let whole = match self.amount {
            Amount::Listed(counts) => counts[block / pieces],
            Amount::Each(one) => *one,
            Amount::Own { .. } => 0,
        };
        part(whole, pieces, block % pieces)
    }

    /// Whether the algorithm cuts one vector into blocks.
    fn cuts(&self) -> bool {
        self.problem.collective.cuts()
    }

    /// Where a block begins in a vector of all blocks, in elements.
    fn start(&self, block: usize) -> usize {
        match self.amount {
            Amount::Own { .. } => 0,
            Amount::Each(all) if self.cuts() => part(*all, self.blocks, block).start,
            Amount::Listed(_) => self.starts[block / self.problem.pieces(self.blocks)] + self.piece(block).start,
            Amount::Each(one) => block / self.problem.pieces(self.blocks) * one + self.piece(block).start,
        }
    }

    /// Where what a rank contributes begins in an output of what all do, in bytes.
    pub(crate) fn first_of(&self, rank: usize) -> usize {
        self.own(Space::Output, rank * self.problem.pieces(self.blocks)).at
    }

    /// How many elements the caller's input or output has.
    pub(crate) fn extent(&self, space: Space) -> usize {
        if let Some(starts) = self.own_starts(space) {
            return starts[starts.len() - 1];
        }
        let positions = self.problem.extent(space, self.rank, self.blocks);
        (0..positions).map(|position| self.elements(self.block_at(space, position))).sum()
    }

    fn block_at(&self, space: Space, position: usize) -> usize {
        self.problem.block_at(space, self.rank, position, self.blocks)
    }

    /// The bytes of a position of the caller's input or output.
    pub(crate) fn own(&self, space: Space, position: usize) -> Bytes {
        if let Some(starts) = self.own_starts(space) {
            let (at, end) = (starts[position], starts[position + 1]);
            return Bytes { at: at * self.element, len: (end - at) * self.element };
        }
        let block = self.block_at(space, position);
        let at = match (self.problem.collective.family(), space) {
            (Collective::Allgather | Collective::Gather, Space::Input)
            | (Collective::ReduceScatter | Collective::Scatter, Space::Output) => self.piece(block).start,
            _ if by_position(self.problem.collective) => position * self.elements(block),
            _ => self.start(block),
        };
        Bytes { at: at * self.element, len: self.elements(block) * self.element }
    }

    /// The bytes of a position of shared memory: line after line, each with room for every block. A line too far to have a number is at the last
    /// number.
    pub(crate) fn shared(&self, position: usize) -> Bytes {
        let (line, block) = (position / self.blocks, position % self.blocks);
        let all = self.start(self.blocks - 1) + self.elements(self.blocks - 1);
        let at = line.saturating_mul(all).saturating_add(self.start(block)).saturating_mul(self.element);
        Bytes { at, len: self.elements(block) * self.element }
    }

    /// The size of a position of scratch; where it lies is the program's business.
    pub(crate) fn scratch_len(&self, position: usize) -> usize {
        self.elements(position % self.blocks) * self.element
    }
}

/// One of `parts` of so many elements, the larger ones first.
fn part(elements: usize, parts: usize, number: usize) -> Range<usize> {
    let start = |number: usize| number * (elements / parts) + number.min(elements % parts);
    start(number)..start(number + 1)
}

/// Whether a rank's blocks are some of all, and lie one after the other.
fn by_position(collective: Collective) -> bool {
    collective.family() == Collective::Alltoall || collective.has_graph()
}

/// The size of a block that is carried, if it is known.
pub(crate) fn known(carried: &[(usize, usize)], block: usize) -> Option<usize> {
    carried.binary_search_by_key(&block, |(block, _)| *block).ok().map(|at| carried[at].1)
}

/// Where things of these lengths begin, one after the other, and where the last one ends.
fn starts_of(lengths: impl Iterator<Item = usize>) -> Vec<usize> {
    let ends = lengths.scan(0, |end, length| {
        *end += length;
        Some(*end)
    });
    std::iter::once(0).chain(ends).collect()
}
