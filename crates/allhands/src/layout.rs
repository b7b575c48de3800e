//! Where blocks lie in memory, in bytes, once counts are known.

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
    /// Every block of this many elements; for a vector that the algorithm cuts up (allreduce, bcast, reduce), all of it.
    Each(usize),
    /// A size for each block: for each rank, or in an alltoall for each pair, source-major.
    Listed(Vec<usize>),
}

impl Amount {
    /// Whether all blocks together, of all ranks, have a length that memory can have: every offset is then a number. All ranks say the same.
    pub(crate) fn fits(&self, problem: &Problem, element: usize) -> Result<()> {
        let ranks = problem.ranks();
        let elements = match (self, problem.collective.family()) {
            (Amount::Listed(counts), _) => counts.iter().try_fold(0usize, |sum, &count| sum.checked_add(count)),
            (Amount::Each(count), Collective::Allgather | Collective::ReduceScatter) => count.checked_mul(ranks),
            (Amount::Each(count), Collective::Alltoall) => {
                count.checked_mul(ranks).and_then(|row| row.checked_mul(ranks))
            }
            (Amount::Each(count), _) => Some(*count),
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
    /// Where each block begins in a vector of all blocks, and where the last one ends; empty where blocks are equal.
    starts: Vec<usize>,
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
        let mut layout = Layout { problem, rank, blocks, element, amount, starts: Vec::new() };
        if matches!(amount, Amount::Listed(_)) {
            let mut starts = vec![0];
            for block in 0..blocks {
                starts.push(starts[block] + layout.elements(block));
            }
            layout.starts = starts;
        }
        layout
    }

    /// How many elements a block has.
    pub(crate) fn elements(&self, block: usize) -> usize {
        match self.amount {
            Amount::Listed(counts) => counts[block],
            Amount::Each(all) if self.cuts() => all / self.blocks + usize::from(block < all % self.blocks),
            Amount::Each(one) => *one,
        }
    }

    /// Whether the algorithm cuts one vector into blocks.
    fn cuts(&self) -> bool {
        matches!(self.problem.collective.family(), Collective::Allreduce | Collective::Bcast | Collective::Reduce)
    }

    /// Where a block begins in a vector of all blocks, in elements.
    fn start(&self, block: usize) -> usize {
        match self.amount {
            Amount::Listed(_) => self.starts[block],
            Amount::Each(all) if self.cuts() => block * (all / self.blocks) + block.min(all % self.blocks),
            Amount::Each(one) => block * one,
        }
    }

    /// How many elements the caller's input or output has.
    pub(crate) fn extent(&self, space: Space) -> usize {
        let positions = self.problem.extent(space, self.rank, self.blocks);
        (0..positions).map(|position| self.elements(self.block_at(space, position))).sum()
    }

    fn block_at(&self, space: Space, position: usize) -> usize {
        self.problem.block_at(space, self.rank, position, self.blocks)
    }

    /// The bytes of a position of the caller's input or output.
    pub(crate) fn own(&self, space: Space, position: usize) -> Bytes {
        let block = self.block_at(space, position);
        let at = match (self.problem.collective.family(), space) {
            (Collective::Allgather, Space::Input) | (Collective::ReduceScatter, Space::Output) => 0,
            (Collective::Alltoall, _) if matches!(self.amount, Amount::Listed(_)) => {
                (0..position).map(|before| self.elements(self.block_at(space, before))).sum()
            }
            (Collective::Alltoall, _) => position * self.elements(block),
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
