//! Counts of which a rank knows its own only: of an alltoallv, a gatherv or a scatterv.

use allhands::kernels::Type;
use allhands::raw::{Amount, RawCall};
use allhands_schedule::Collective;

/// The call by which each rank tells all others so many counts. No call of a program's is one of words.
pub fn told(counts: usize) -> RawCall {
    let (collective, amount) = (Collective::Allgather, Amount::Each(counts));
    RawCall { collective, amount, element: Type::U64, operation: None, root: 0, graph: None }
}

/// The algorithm for it: short messages, few of them.
pub const ALGORITHM: &str = "bruck";

/// Counts as they travel.
pub fn as_words(counts: &[usize]) -> Vec<u64> {
    counts.iter().map(|&count| count as u64).collect()
}

/// Counts as they have come.
pub fn from_words(words: &[u64]) -> Vec<usize> {
    words.iter().map(|&word| word as usize).collect()
}
