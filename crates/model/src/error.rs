//! What can go wrong, said in one sentence with the remedy.

/// Why something cannot be modelled.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// There is no such machine.
    #[error("there is no machine {name:?}; shipped are {known}, and a path to a machine file is allowed")]
    UnknownMachine {
        /// As asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// A machine file that cannot be read as one.
    #[error("machine file, line {line}: {fact}")]
    File {
        /// Counted from 1.
        line: usize,
        /// What is wrong, and what is legal.
        fact: String,
    },
    /// A machine whose numbers make no sense.
    #[error("machine {machine:?}: {key} {fact}")]
    Machine {
        /// Its name.
        machine: String,
        /// Where.
        key: String,
        /// What is wrong, and what is legal.
        fact: String,
    },
    /// A message that nobody receives or sends, or of two sizes.
    #[error("the messages to rank {rank} do not fit its receives; `allhands verify` names the fault")]
    Unmatched {
        /// Who receives.
        rank: usize,
    },
    /// Ranks that wait for each other.
    #[error("rank {rank} waits forever; `allhands verify` names the fault")]
    Deadlock {
        /// One that waits.
        rank: usize,
    },
    /// Memory that no node has.
    #[error("a flat topology has no node whose ranks share memory or meet; write one node of 16 ranks as 1x16")]
    NoNodes,
    /// More than can be counted or kept.
    #[error("{messages} messages are more than can be simulated at once; ask for fewer ranks or another algorithm")]
    TooLarge {
        /// At least so many.
        messages: u64,
    },
}

/// With this crate's error.
pub type Result<T> = std::result::Result<T, Error>;
