//! What can go wrong while collectives run, each with the fact and what to do about it.

use std::fmt;
use std::time::Duration;

use thiserror::Error;

/// An error of a plan or a communicator. `{:?}` is the sentence, too: it is what `fn main() -> allhands::Result<()>` prints.
///
/// ```
/// let seats = allhands::Error::Seats { topology: "2x2".into(), seats: 4, ranks: 3 };
/// assert_eq!(format!("{seats:?}"), "the topology 2x2 has 4 seats, but there are 3 ranks; give every rank one");
/// ```
#[derive(Clone, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The request itself is wrong, or no such algorithm can serve it.
    #[error(transparent)]
    Request(#[from] allhands_schedule::Error),
    /// MPI's own collective under a limit on memory.
    #[error(
        "how much memory MPI's own collectives take is not known; leave out the limit on memory, or the algorithm mpi"
    )]
    LibraryMemory,
    /// At a place that was [reserved](crate::raw::RawComm::reserve), MPI's own collectives cannot be told from others.
    #[error("MPI's own collectives cannot be planned at a place that was reserved; leave out the algorithm mpi")]
    LibraryLater,
    /// The schedule of a file, for a plan that is made without waiting for others.
    #[error(
        "the schedule in {file} is not known yet to a plan that waits for nobody; make one that may wait first, or name another algorithm"
    )]
    WrittenLater {
        /// The file.
        file: String,
    },
    /// More bytes than memory can have.
    #[error(
        "this {collective} on {ranks} ranks has more elements of {element} bytes than memory can hold; ask for fewer"
    )]
    TooLarge {
        /// The collective.
        collective: &'static str,
        /// How many ranks there are.
        ranks: usize,
        /// Bytes of an element.
        element: usize,
    },
    /// A schedule that does not keep to its memory, and is not run: a mistake of ours.
    #[error(
        "the schedule of {algorithm} for {collective} cannot be run on rank {rank}: {fact}; name another algorithm, and report this as a mistake of allhands"
    )]
    Unexecutable {
        /// With its parameters.
        algorithm: String,
        /// The collective.
        collective: &'static str,
        /// Whose schedule it is.
        rank: usize,
        /// What is wrong with it.
        fact: String,
    },
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
    /// A message of another size than the plan says.
    #[error(
        "rank {rank} expects {expected} bytes from rank {other}, but {} came; every rank must make the same calls with matching counts",
        if *.came == usize::MAX { "more".into() } else { .came.to_string() }
    )]
    Size {
        /// The rank that receives.
        rank: usize,
        /// The rank that sent.
        other: usize,
        /// How many bytes should have come.
        expected: usize,
        /// How many came; `usize::MAX`: too many.
        came: usize,
    },
    /// A buffer that is nowhere, though it should hold something.
    #[error(
        "a buffer is NULL where something is to be sent or received; pass the address of as many elements as the count says"
    )]
    Null,
    /// A block that is sent with other bytes than it is received with.
    #[error(
        "a block of {sent} bytes is sent where one of {received} bytes is received; a block that is sent has as many bytes as it is received with"
    )]
    Unequal {
        /// Bytes that this rank sends.
        sent: usize,
        /// Bytes that it receives from each rank, or from itself.
        received: usize,
    },
    /// A device's memory could not be copied.
    #[error(
        "memory on a device cannot be copied: {driver} says {reason}; is it still allocated, and as long as the counts say?"
    )]
    Device {
        /// Whose driver.
        driver: &'static str,
        /// What it said.
        reason: String,
    },
    /// Memory for the ranks of a node cannot be had.
    #[error("memory for the ranks of a node cannot be shared: {reason}; use an algorithm without local=shared")]
    Memory {
        /// What the system said.
        reason: String,
    },
    /// Ranks of one machine reach each other neither by memory nor by messages.
    #[error(
        "ranks of one machine share no memory, and long messages of {mpi} fail, since they read the sender's memory, which is refused; set MPIR_CVAR_CH4_CMA_ENABLE=0"
    )]
    Secluded {
        /// What the MPI calls itself.
        mpi: String,
    },
    /// Ranks that should share memory cannot.
    #[error(
        "local=shared needs ranks that share memory, but rank {rank} and rank {other}, which sit in one region, do not; use local=messages"
    )]
    Apart {
        /// This rank.
        rank: usize,
        /// One that it shares no memory with.
        other: usize,
    },
    /// Another rank's memory could not be read.
    #[error("a message in the memory of rank {rank} cannot be read: {reason}; has it ended?")]
    Unreadable {
        /// The rank that sent.
        rank: usize,
        /// What the system said.
        reason: String,
    },
    /// A setting that means nothing.
    #[error("{name}={value} is not understood; {remedy}")]
    Setting {
        /// The environment variable.
        name: &'static str,
        /// What it is set to.
        value: String,
        /// What it can be set to.
        remedy: &'static str,
    },
    /// A topology for another number of ranks.
    #[error("the topology {topology} has {seats} seats, but there are {ranks} ranks; give every rank one")]
    Seats {
        /// The topology.
        topology: String,
        /// How many ranks it has.
        seats: usize,
        /// How many there are.
        ranks: usize,
    },
    /// MPI cannot be used, or says that something is wrong.
    #[error(transparent)]
    Mpi(#[from] allhands_mpi::Error),
    /// The system has no thread left for a rank.
    #[error("a thread for rank {rank} cannot be started: {reason}; ask for fewer ranks")]
    Spawn {
        /// Which rank.
        rank: usize,
        /// What the system said.
        reason: String,
    },
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error {
    /// Whether it only says that another rank is gone, or does not come: that rank knows why, and should speak first.
    ///
    /// ```
    /// let left = allhands::Error::Left { rank: 0, waiting: 1, operation: "a barrier".into() };
    /// assert!(left.follows() && !allhands::Error::LibraryMemory.follows());
    /// ```
    pub fn follows(&self) -> bool {
        matches!(self, Error::Left { .. } | Error::Abandoned { .. } | Error::Stuck { .. } | Error::Unreadable { .. })
    }
}

/// The result of everything that communicates.
pub type Result<T> = std::result::Result<T, Error>;
