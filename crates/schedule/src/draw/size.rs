//! Bytes beside blocks.

use crate::schedule::blocks_in;
use crate::{Problem, Span};

/// How large blocks are, for drawings and tables that show bytes too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    bytes: u64,
}

impl Sizes {
    /// `bytes` is the size of one block where blocks belong to ranks (allgather, alltoall, reduce_scatter), or of one
    /// unit of the counts where counts are given; and of the whole vector elsewhere (allreduce, bcast, reduce).
    pub fn new(bytes: u64) -> Sizes {
        Sizes { bytes }
    }

    /// The bytes that a rank's spans hold, when vectors are cut into `blocks`. Parts of a vector, and pieces of blocks, are rounded up.
    pub fn of(&self, problem: &Problem, blocks: usize, rank: usize, spans: &[Span]) -> u64 {
        if problem.counts.is_empty() {
            return self.of_blocks(problem, blocks, blocks_in(spans));
        }
        let positions = spans.iter().flat_map(|span| (span.first..span.end()).map(|position| (span.space, position)));
        let pieces = problem.pieces(blocks);
        let units = positions.map(|(space, position)| {
            problem.block_size(problem.block_at(space, rank, position, blocks) / pieces) as u64
        });
        units.fold(0, u64::saturating_add).saturating_mul(self.bytes).div_ceil(pieces as u64)
    }

    /// The bytes of `count` blocks of equal size.
    pub fn of_blocks(&self, problem: &Problem, blocks: usize, count: usize) -> u64 {
        let total = u128::from(self.bytes) * count as u128;
        let parts = if problem.collective.cuts() { blocks.max(1) } else { problem.pieces(blocks) };
        u64::try_from(total.div_ceil(parts as u128)).unwrap_or(u64::MAX)
    }

    /// `512 B`, `4 KiB`, `1.5 MiB`.
    pub fn words(bytes: u64) -> String {
        let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        let exponent = (bytes.max(1).ilog2() / 10) as usize;
        let whole = 1u64 << (10 * exponent);
        if bytes.is_multiple_of(whole) {
            return format!("{} {}", bytes / whole, units[exponent]);
        }
        format!("{:.1} {}", bytes as f64 / whole as f64, units[exponent])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Collective, Topology};

    #[test]
    fn blocks_belong_to_ranks_or_cut_a_vector() {
        let problem = |collective| Problem::new(collective, Topology::flat(3).unwrap());
        let sizes = Sizes::new(8);
        assert_eq!(sizes.of(&problem(Collective::Allgather), 3, 0, &[Span::output(0, 2)]), 16);
        assert_eq!(sizes.of(&problem(Collective::Allreduce), 3, 0, &[Span::output(0, 2)]), 6);
        let uneven = problem(Collective::Allgatherv).with_counts(vec![1, 0, 5]).unwrap();
        assert_eq!(sizes.of(&uneven, 3, 2, &[Span::input(0, 1), Span::output(0, 2)]), 48);
        assert_eq!(
            [0, 1023, 1536, 4096, u64::MAX].map(Sizes::words),
            ["0 B", "1023 B", "1.5 KiB", "4 KiB", "16.0 EiB"]
        );
    }
}
