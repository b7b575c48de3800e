//! What can go wrong while collectives run, each with the fact and what to do about it.

use std::time::Duration;

use thiserror::Error;

/// An error of a plan or a communicator.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The request itself is wrong, or no such algorithm can serve it.
    #[error(transparent)]
    Request(#[from] allhands_schedule::Error),
    /// An operation that the element type does not have.
    #[error("{0}")]
    Operation(String),
    /// A buffer of another length than the plan's.
    #[error(
        "the {which} buffer has {given} elements, but this {collective} plan needs {needed}; pass a slice of that length or make a plan for this one"
    )]
    Length {
        /// "input", "output" or "in-place".
        which: &'static str,
        /// The collective.
        collective: &'static str,
        /// What was passed.
        given: usize,
        /// What the plan was made for.
        needed: usize,
    },
    /// Two ranks asked for different things in the same place.
    #[error(
        "rank {rank} asks for {asked}, where rank {other} asked for {expected}; every rank of a communicator must make the same calls in the same order with matching arguments"
    )]
    Mismatch {
        /// This rank.
        rank: usize,
        /// What it asks for.
        asked: String,
        /// A rank that came before.
        other: usize,
        /// What that rank asked for.
        expected: String,
    },
    /// A rank panicked.
    #[error("rank {rank} panicked: {message}; the collective cannot be completed without it")]
    Panicked {
        /// Which rank.
        rank: usize,
        /// With what message.
        message: String,
    },
    /// A rank returned while others still wait for it.
    #[error(
        "rank {rank} has ended, but rank {waiting} still waits for it in {operation}; every rank must make the same calls"
    )]
    Left {
        /// The rank that ended.
        rank: usize,
        /// The rank that waits.
        waiting: usize,
        /// In what.
        operation: String,
    },
    /// Nothing moved for too long.
    #[error("rank {rank} has waited {} s in {operation}: {places}; make every rank call it, or allow more time with Threads::timeout", .after.as_secs())]
    Stuck {
        /// The rank that waits.
        rank: usize,
        /// In what.
        operation: String,
        /// For how long.
        after: Duration,
        /// Who is where.
        places: String,
    },
    /// Another rank gave up.
    #[error("rank {rank} gave up: {reason}")]
    Abandoned {
        /// Which rank.
        rank: usize,
        /// Why.
        reason: String,
    },
    /// The system has no thread left for a rank.
    #[error("a thread for rank {rank} cannot be started: {reason}; ask for fewer ranks")]
    Spawn {
        /// Which rank.
        rank: usize,
        /// What the system said.
        reason: String,
    },
}

/// The result of everything that communicates.
pub type Result<T> = std::result::Result<T, Error>;
