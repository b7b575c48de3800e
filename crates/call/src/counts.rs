//! The counts of an alltoallv, of which a rank knows its own only.

use allhands::kernels::Type;
use allhands::raw::{Amount, RawCall};
use allhands_schedule::Collective;

/// The call by which each of so many ranks tells all others its counts for each of them. No call of a program's is one of words.
pub fn told(ranks: usize) -> RawCall {
    let (collective, amount) = (Collective::Allgather, Amount::Each(ranks));
    RawCall { collective, amount, element: Type::U64, operation: None, root: 0 }
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
