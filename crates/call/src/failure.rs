//! Why a call is not served here, or went wrong.

use std::ffi::c_int;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use allhands::Error;
use allhands_mpi::{Handle, Mpi};

/// A call that is not served.
#[derive(Debug)]
pub enum Unserved {
    /// The MPI's own function is called, on every rank.
    Fallback(Reason),
    /// It was ours to serve, and failed.
    Failed(Error),
}

/// Why the MPI's own function is called.
///
/// A rank that calls it while others wait for it in ours would wait for ever, and they for it: so only what every rank finds alike may be
/// a reason, or what MPI's function refuses on this rank before it waits for another.
///
/// | reason | why all ranks know it |
/// | --- | --- |
/// | `Refused`: a count below 0, no array of counts, no communicator, `MPI_DATATYPE_NULL`, `MPI_OP_NULL`, a root that is no rank, an operation that no collective takes, handles of nothing | the MPI refuses it here, without waiting for others |
/// | `TooLarge`: a block, or the vector of a reduction, of more than 1 GiB | MPI asks for as many bytes on both ends, and of an allgatherv every rank knows all blocks; where a rank knows its own only (alltoallv, gatherv, scatterv), it is no reason |
/// | `ManyEdges`, `UnmatchedEdges`: a graph of neighbours that is too large, or none | every rank has looked at the whole graph |
/// | `UnknownNeighbors` | whether a collective that may wait was called among these neighbours before, which every rank counts alike |
/// | `NoSuchOperation` | MPI asks for the same operation and datatype on every rank |
/// | `Intercommunicator`, `OneRank` | what all ranks of a communicator know |
/// | `NotJoined` | the ranks agree on it when they join |
/// | `Preferred`: the plan is to call the MPI's own | plans are made from what is alike on every rank |
/// | `Turn` | every rank counts the same calls |
/// | `Tried` | the same, and what follows from times that all ranks have told each other |
/// | `NoCommunicator` | the collectives on a communicator come in the same order on every rank |
/// | `MadeTogether` | a setting |
/// | `NoIallreduce` | ranks have the same MPI |
/// | `Off` | the ranks agree in `MPI_Init` on whether the MPI serves the job |
/// | `NobodyMoves` | the ranks agree in `MPI_Init` on whether all have what moves requests on |
/// | `Outlasting` (plans from C only) | the caller is told, and nothing is called |
///
/// What this rank alone can know is dealt with here, by a copy: an input that overlaps the output, memory that is not aligned, gaps in
/// a datatype, memory on a device. What is wrong and what no MPI looks for is an error of ours: a buffer of something that is null, a block that is sent with other bytes than it is received with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// An argument that no collective takes: MPI says what is wrong with it.
    Refused,
    /// A block, or the vector of a reduction, is larger than what is served.
    TooLarge,
    /// A graph of neighbours with more edges than are looked at.
    ManyEdges,
    /// A graph of neighbours whose edges have one end only, and which.
    UnmatchedEdges(Arc<str>),
    /// A call that waits for nobody, among neighbours of which ranks know their own.
    UnknownNeighbors,
    /// MPI does not have the operation for the datatype.
    NoSuchOperation,
    /// An operation that no kernel of ours has, in a plan that outlasts the call.
    Outlasting,
    /// A communicator between two groups.
    Intercommunicator,
    /// A communicator of one rank.
    OneRank,
    /// No communicator of ours could be made for the program's, and why.
    NotJoined(Arc<str>),
    /// The MPI's own is faster, or asked for, and why.
    Preferred(Arc<str>),
    /// It is the MPI's turn in a comparison.
    Turn,
    /// It is tried, to learn who is fastest.
    Tried,
    /// A call that waits for nobody, on a communicator that has none of ours yet.
    NoCommunicator,
    /// A call that waits for nobody, with an algorithm whose plans ranks make together.
    MadeTogether,
    /// The MPI lacks `MPI_Iallreduce`, which comparing calls takes.
    NoIallreduce,
    /// Nothing would move a request on.
    NobodyMoves,
    /// The user has switched ours off.
    Off,
}

impl fmt::Display for Reason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Reason::Refused => "an argument that MPI refuses",
            Reason::TooLarge => "more than 1 GiB",
            Reason::ManyEdges => "a graph of more than a million edges",
            Reason::UnmatchedEdges(fact) => fact,
            Reason::UnknownNeighbors => "a distributed graph without a blocking collective before",
            Reason::NoSuchOperation => "an operation that MPI does not have for the datatype",
            Reason::Outlasting => "an operation that no kernel of ours has, in a plan that outlasts the call",
            Reason::Intercommunicator => "an intercommunicator",
            Reason::OneRank => "a communicator of one rank",
            Reason::NotJoined(why) | Reason::Preferred(why) => why,
            Reason::Turn => "its turn in the comparison",
            Reason::Tried => "a try, to learn who is fastest",
            Reason::NoCommunicator => "a communicator without a blocking collective before",
            Reason::MadeTogether => "a forced algorithm whose plans are made together",
            Reason::NoIallreduce => "an MPI without MPI_Iallreduce",
            Reason::Off => "ALLHANDS=off",
            Reason::NobodyMoves => {
                "a request, which nothing would move on here; ALLHANDS_PROGRESS=thread starts a thread that does"
            }
        })
    }
}

impl From<Reason> for Unserved {
    fn from(reason: Reason) -> Unserved {
        Unserved::Fallback(reason)
    }
}

impl From<Error> for Unserved {
    fn from(error: Error) -> Unserved {
        Unserved::Failed(error)
    }
}

impl From<allhands_mpi::Error> for Unserved {
    fn from(error: allhands_mpi::Error) -> Unserved {
        Unserved::Failed(error.into())
    }
}

impl Unserved {
    /// Whether the arguments are what no collective takes.
    pub fn refused(&self) -> bool {
        matches!(self, Unserved::Fallback(Reason::Refused) | Unserved::Failed(Error::Null | Error::Unequal { .. }))
    }
}

/// By then a rank that has given up has said why.
const HEARD_AFTER: Duration = Duration::from_millis(200);

/// Says what went wrong, and leaves the rest to the communicator's error handler: it may end the job.
pub fn raise(mpi: &Mpi, function: &str, comm: Handle, error: &Error) -> c_int {
    if error.follows() {
        // The rank that knows why speaks first; what the error handler does may end it.
        std::thread::sleep(HEARD_AFTER);
    }
    allhands::raw::say(format_args!("{function}: {error}"));
    let code = code(mpi, error);
    // SAFETY: the communicator is the one that the program called with.
    unsafe { (mpi.raw().comm_call_errhandler)(comm, code) };
    code
}

fn code(mpi: &Mpi, error: &Error) -> c_int {
    let classes = &mpi.constants().errors;
    match error {
        Error::Mpi(allhands_mpi::Error::Call { code, .. }) => *code,
        Error::Size { .. } | Error::Unequal { .. } => classes.truncate,
        Error::Null => classes.buffer,
        Error::Operation(_) => classes.op,
        Error::Memory { .. } => classes.no_mem,
        Error::Request(_) | Error::Length { .. } | Error::Seats { .. } | Error::Setting { .. } => classes.arg,
        Error::Panicked { .. } => classes.intern,
        _ => classes.other,
    }
}

/// The code of a call in which this library failed itself.
pub fn fault(mpi: &Mpi, function: &str, comm: Handle) -> c_int {
    let message = "a fault of this library, reported above".into();
    raise(mpi, function, comm, &Error::Panicked { rank: 0, message })
}
