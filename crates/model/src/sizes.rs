//! How many bytes a span has, once amounts are known.

use allhands_schedule::{Collective, Problem, Space, Span};

/// A far message of more runs is packed before it leaves, and unpacked when it has arrived. A window that wraps has two.
const MOST_RUNS: usize = 2;

/// How much data a collective moves: of one block; of the whole vector where the algorithm cuts one up (allreduce, bcast,
/// reduce, scan); of one unit of the counts where these differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Amount {
    /// In bytes; a multiple of `element`.
    pub bytes: u64,
    /// The bytes of an element, which is never cut.
    pub element: u64,
}

impl Amount {
    /// So many bytes, in elements of 8 bytes, or of 4, 2 or 1 where that does not divide them.
    ///
    /// ```
    /// use allhands_model::Amount;
    /// assert_eq!((Amount::bytes(24).element, Amount::bytes(20).element, Amount::bytes(7).element), (8, 4, 1));
    /// ```
    pub fn bytes(bytes: u64) -> Amount {
        let element = [8, 4, 2, 1].into_iter().find(|element| bytes.is_multiple_of(*element)).unwrap_or(1);
        Amount { bytes, element }
    }
}

/// The sizes of all positions: each is a number of `unit` bytes.
pub(crate) struct Sizes<'a> {
    problem: &'a Problem,
    blocks: usize,
    /// Bytes of one unit of weight.
    pub(crate) unit: u64,
    rule: Rule,
}

enum Rule {
    /// Every block weighs 1.
    Equal,
    /// A vector of so many elements of so many bytes is cut into blocks, the larger ones first.
    Cut { elements: u64, element: u64 },
    /// Block `b` weighs `starts[b + 1] - starts[b]`.
    Listed { starts: Vec<u64> },
}

impl<'a> Sizes<'a> {
    pub(crate) fn new(problem: &'a Problem, blocks: usize, amount: Amount) -> Sizes<'a> {
        let cuts = problem.collective.cuts();
        let elements = amount.bytes / amount.element;
        let pieces = problem.pieces(blocks) as u64;
        let (unit, rule) = if cuts && blocks > 0 && !elements.is_multiple_of(blocks as u64) {
            (1, Rule::Cut { elements, element: amount.element })
        } else if cuts && blocks > 0 {
            (amount.bytes / blocks as u64, Rule::Equal)
        } else if problem.counts.is_empty() && elements.is_multiple_of(pieces) {
            (amount.bytes / pieces, Rule::Equal)
        } else if pieces > 1 {
            // Of every rank's block the larger pieces first, which are one element larger.
            let whole = |block: u64| problem.block_size((block / pieces) as usize) as u64 * elements;
            let piece = |block| whole(block) / pieces + u64::from(block % pieces < whole(block) % pieces);
            (amount.element, Rule::Listed { starts: starts_of((0..blocks as u64).map(piece)) })
        } else {
            (amount.bytes, Rule::Listed { starts: starts_of(problem.counts.iter().map(|count| *count as u64)) })
        };
        Sizes { problem, blocks, unit, rule }
    }

    /// Takes all blocks of a vector as large as the largest.
    pub(crate) fn round(&mut self) {
        if let Rule::Cut { elements, element } = self.rule {
            self.unit = elements.div_ceil(self.blocks as u64) * element;
            self.rule = Rule::Equal;
        }
    }

    /// Whether every block has the same size.
    pub(crate) fn equal(&self) -> bool {
        matches!(self.rule, Rule::Equal)
    }

    /// The weight of spans of a rank.
    pub(crate) fn weight(&self, rank: usize, spans: &[Span]) -> u64 {
        match &self.rule {
            Rule::Equal => spans.iter().map(|span| span.count as u64).sum(),
            _ => spans.iter().map(|span| self.span(rank, span)).sum(),
        }
    }

    /// Whether spans of a rank are too many runs for a far message that is not packed. Empty blocks are no runs.
    pub(crate) fn scattered(&self, rank: usize, spans: &[Span]) -> bool {
        let full = |span: &&Span| self.weight(rank, std::slice::from_ref(span)) > 0;
        spans.len() > MOST_RUNS && spans.iter().filter(full).nth(MOST_RUNS).is_some()
    }

    fn span(&self, rank: usize, span: &Span) -> u64 {
        let family = self.problem.collective.family();
        let owned = matches!(span.space, Space::Input | Space::Output);
        let single = matches!(
            (family, span.space),
            (Collective::Allgather | Collective::Gather, Space::Input)
                | (Collective::ReduceScatter | Collective::Scatter, Space::Output)
        );
        if single || (owned && (family == Collective::Alltoall || family.has_graph())) {
            let block = |position| self.problem.block_at(span.space, rank, position, self.blocks);
            return (span.first..span.end()).map(|position| self.run(block(position), block(position) + 1)).sum();
        }
        // Scratch begins anew after every `blocks` positions; runs inside a line are runs of blocks.
        let (mut weight, mut at) = (0, span.first);
        while at < span.end() {
            let first = at % self.blocks.max(1);
            let last = (first + span.end() - at).min(self.blocks.max(1));
            weight += self.run(first, last);
            at += last - first;
        }
        weight
    }

    /// The weight of blocks `first..end`.
    fn run(&self, first: usize, end: usize) -> u64 {
        match &self.rule {
            Rule::Equal => (end - first) as u64,
            Rule::Cut { elements, element } => {
                let (each, larger) = (elements / self.blocks as u64, elements % self.blocks as u64);
                let start = |block: usize| block as u64 * each + larger.min(block as u64);
                (start(end) - start(first)) * element
            }
            Rule::Listed { starts } => starts[end] - starts[first],
        }
    }
}

/// Where things of these weights begin, one after the other, and where the last one ends.
fn starts_of(weights: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut starts = vec![0];
    for weight in weights {
        starts.push(starts[starts.len() - 1] + weight);
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::*;
    use allhands_schedule::Topology;

    #[test]
    fn a_cut_vector_keeps_its_length() {
        let problem = Problem::new(Collective::Allreduce, Topology::flat(5).unwrap());
        for (bytes, blocks) in [(8, 5), (0, 5), (40, 5), (48, 5), (1000, 7), (999, 7)] {
            let sizes = Sizes::new(&problem, blocks, Amount::bytes(bytes));
            assert_eq!(sizes.weight(0, &[Span::output(0, blocks)]) * sizes.unit, bytes);
            assert_eq!(sizes.weight(0, &[Span::scratch(3, 2 * blocks)]) * sizes.unit, 2 * bytes);
        }
        let sizes = Sizes::new(&problem, 5, Amount::bytes(56));
        let each: Vec<u64> = (0..5).map(|block| sizes.weight(0, &[Span::output(block, 1)])).collect();
        assert_eq!(each, [16, 16, 8, 8, 8]);
    }

    #[test]
    fn counts_multiply_the_amount() {
        let problem = Problem::new(Collective::Allgatherv, Topology::flat(3).unwrap());
        let problem = problem.with_counts(vec![5, 0, 2]).unwrap();
        let sizes = Sizes::new(&problem, 3, Amount::bytes(4));
        let weights = [0, 1, 2].map(|rank| sizes.weight(rank, &[Span::input(0, 1)]) * sizes.unit);
        assert_eq!(weights, [20, 0, 8]);
        assert_eq!(sizes.weight(1, &[Span::output(0, 3)]), 7);
    }

    #[test]
    fn pieces_of_a_block_have_its_bytes_together() {
        let problem = Problem::new(Collective::Allgatherv, Topology::flat(3).unwrap());
        let weights = |problem: &Problem, bytes| {
            let sizes = Sizes::new(problem, 12, Amount::bytes(bytes));
            [0, 1, 2].map(|rank| {
                let piece = |position| sizes.weight(rank, &[Span::input(position, 1)]) * sizes.unit;
                assert_eq!((0..4).map(piece).sum::<u64>(), sizes.weight(0, &[Span::output(4 * rank, 4)]) * sizes.unit);
                [0, 1, 2, 3].map(piece)
            })
        };
        assert_eq!(weights(&problem, 64), [[16; 4]; 3]);
        assert_eq!(weights(&problem, 8), [[8, 0, 0, 0]; 3]);
        let unequal = problem.with_counts(vec![5, 0, 2]).unwrap();
        assert_eq!(weights(&unequal, 8), [[16, 8, 8, 8], [0; 4], [8, 8, 0, 0]]);
    }

    #[test]
    fn empty_blocks_are_no_runs() {
        let problem = Problem::new(Collective::Allgatherv, Topology::flat(7).unwrap());
        let problem = problem.with_counts(vec![5, 0, 2, 0, 0, 0, 1]).unwrap();
        let sizes = Sizes::new(&problem, 7, Amount::bytes(4));
        let spans = |blocks: &[usize]| blocks.iter().map(|&block| Span::output(block, 1)).collect::<Vec<_>>();
        assert!(!sizes.scattered(0, &spans(&[0, 3, 5, 1, 6])));
        assert!(sizes.scattered(0, &spans(&[0, 3, 2, 5, 6])));
        assert!(!sizes.scattered(0, &spans(&[0, 2])));
    }
}
