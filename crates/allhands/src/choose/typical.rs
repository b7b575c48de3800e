//! The problem that stands for all that are decided alike.
//!
//! Roots are alike, and so are counts of the same mean whose largest is about as many times the mean: an algorithm in which a block goes from rank to
//! rank is as slow as the largest of them, and another one, that cuts it into pieces, is then faster.

use allhands_model::Amount;
use allhands_schedule::{Collective, Problem};

/// Where the largest block is so many times the mean or more, what was measured with equal ones says nothing.
pub(crate) const VERY_UNEQUAL: usize = 4;
/// So many units a block has in the counts that stand for others.
const UNITS: usize = 64;
/// A unit has no fewer bytes than this.
const SHORTEST_UNIT: usize = 8;

/// How many times the mean the largest count is, to the nearest power of two: 1 where they are equal, or not known to all.
///
/// Every rank of an allgatherv and of a reduce_scatter has all counts.
pub(crate) fn skew(problem: &Problem) -> usize {
    if !matches!(problem.collective, Collective::Allgatherv | Collective::ReduceScatter) {
        return 1;
    }
    let all: f64 = problem.counts.iter().map(|count| *count as f64).sum();
    let largest = problem.counts.iter().max().map_or(0.0, |largest| *largest as f64);
    let ratio = if all > 0.0 { largest * problem.counts.len() as f64 / all } else { 1.0 };
    // 2^k is the nearest, by ratio, up to the root of 2^(2k + 1). Nothing here depends on more than how numbers are multiplied.
    let mut skew = 1;
    while ratio * ratio >= 2.0 * (skew * skew) as f64 {
        skew *= 2;
    }
    skew
}

/// The same problem with equal blocks, and a root that stands for all.
pub(crate) fn with_equal_blocks(problem: &Problem) -> Problem {
    Problem { counts: Vec::new(), root: 0, topology: problem.topology.on_nodes(), ..problem.clone() }
}

/// A problem for all of its kind whose mean block has so many bytes, and what a unit of its counts is.
pub(crate) fn typical(problem: &Problem, bytes: usize) -> (Problem, Amount) {
    let equal = with_equal_blocks(problem);
    let (ranks, skew) = (problem.ranks(), skew(problem));
    let units = (bytes / SHORTEST_UNIT).min(UNITS);
    if skew == 1 || units == 0 {
        return (equal, Amount::bytes(bytes as u64));
    }
    let largest = (skew * units).min(ranks * units);
    let mut counts = vec![(ranks * units - largest) / (ranks - 1); ranks];
    counts[0] = largest;
    (Problem { counts, ..equal }, Amount::bytes((bytes / units) as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use allhands_schedule::Topology;

    fn problem(counts: &[usize]) -> Problem {
        let topology = Topology::flat(counts.len()).unwrap();
        Problem::new(Collective::Allgatherv, topology).with_counts(counts.to_vec()).unwrap()
    }

    #[test]
    fn skew_is_the_nearest_power_of_two() {
        let skews = [
            (&[0, 0, 0, 0][..], 1),
            (&[5, 5, 5, 5], 1),
            (&[7, 5, 4, 4], 1),     // 1.4
            (&[8, 5, 5, 4], 2),     // 1.45
            (&[40, 10, 5, 2], 2),   // 2.81
            (&[400, 98, 50, 8], 4), // 2.88
            (&[1, 0, 0, 0], 4),
            (&[usize::MAX >> 20, 0, 0, 0], 4),
        ];
        for (counts, skew_of) in skews {
            assert_eq!(skew(&problem(counts)), skew_of, "{counts:?}");
        }
        let equal = Problem::new(Collective::Allgather, Topology::flat(4).unwrap());
        assert_eq!(skew(&equal), 1);
    }

    #[test]
    fn what_stands_for_others_has_their_mean_and_their_largest() {
        let (typical_of, amount) = typical(&problem(&[900, 20, 30, 50]), 2000);
        let sum: u64 = typical_of.counts.iter().map(|count| *count as u64 * amount.bytes).sum();
        assert!(sum.abs_diff(4 * 2000) < 4 * 64, "{sum}");
        assert_eq!(typical_of.counts[0] as u64 * amount.bytes / 2000, 3, "{:?} of {amount:?}", typical_of.counts);
        assert_eq!(typical(&problem(&[9, 0, 0, 0]), 4).0.counts, [0; 0]);
    }
}
