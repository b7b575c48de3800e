//! What functions return, and the sentence behind it.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};

use allhands::Error;
use allhands_call::{Reason, Unserved};

/// What functions return. `allhands_last_error` has the full sentence.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum allhands_code {
    /// It is done.
    ALLHANDS_SUCCESS = 0,
    /// An argument that means nothing: a null pointer, a negative count, a root that is no rank.
    ALLHANDS_ERR_ARGUMENT = 1,
    /// No plan: a null pointer, or a plan that was freed.
    ALLHANDS_ERR_PLAN = 2,
    /// No communicator, or one between two groups.
    ALLHANDS_ERR_COMM = 3,
    /// No datatype.
    ALLHANDS_ERR_TYPE = 4,
    /// No operation, or none that is served for the datatype.
    ALLHANDS_ERR_OP = 5,
    /// No such algorithm, or one that cannot serve what is asked for.
    ALLHANDS_ERR_ALGORITHM = 6,
    /// Something that is not served here.
    ALLHANDS_ERR_UNSUPPORTED = 7,
    /// A run of the plan is under way.
    ALLHANDS_ERR_ACTIVE = 8,
    /// MPI is not initialised, or there is none.
    ALLHANDS_ERR_NOT_INITIALIZED = 9,
    /// MPI was finalised.
    ALLHANDS_ERR_FINALIZED = 10,
    /// Ranks ask for different things in the same place.
    ALLHANDS_ERR_MISMATCH = 11,
    /// Another rank has failed, ended, or keeps this one waiting too long.
    ALLHANDS_ERR_RANK = 12,
    /// MPI says that something is wrong.
    ALLHANDS_ERR_MPI = 13,
    /// The system has no memory to share, or no thread.
    ALLHANDS_ERR_SYSTEM = 14,
    /// A fault of this library.
    ALLHANDS_ERR_INTERNAL = 15,
}

use allhands_code::*;

/// In the order of their numbers.
const TEXTS: [&CStr; 16] = [
    c"success",
    c"an argument is wrong",
    c"no plan, or one that was freed",
    c"no communicator that plans can be made on",
    c"no datatype",
    c"no operation, or none that is served for the datatype",
    c"no such algorithm, or one that cannot serve this call",
    c"not served by this library; call MPI's own function",
    c"a run of the plan is under way",
    c"MPI is not initialised",
    c"MPI was finalised",
    c"ranks ask for different things",
    c"another rank has failed or ended",
    c"MPI reports an error",
    c"the system has no memory or thread left",
    c"a fault of this library",
];

const UNKNOWN: &CStr = c"no error code of this library";

/// A code in words.
pub(crate) fn text(code: c_int) -> &'static CStr {
    usize::try_from(code).ok().and_then(|code| TEXTS.get(code)).copied().unwrap_or(UNKNOWN)
}

/// What went wrong: the code, and the fact with its remedy.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) code: allhands_code,
    pub(crate) sentence: String,
}

pub(crate) type Result<T> = std::result::Result<T, Fault>;

/// A fault.
pub(crate) fn fault<T>(code: allhands_code, sentence: impl Into<String>) -> Result<T> {
    Err(Fault { code, sentence: sentence.into() })
}

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        use allhands_mpi::Error as Mpi;
        let code = match &error {
            Error::Request(_) => ALLHANDS_ERR_ALGORITHM,
            Error::Operation(_) => ALLHANDS_ERR_UNSUPPORTED,
            Error::Mismatch { .. } | Error::Size { .. } => ALLHANDS_ERR_MISMATCH,
            Error::Panicked { .. } | Error::Left { .. } | Error::Stuck { .. } | Error::Abandoned { .. } => {
                ALLHANDS_ERR_RANK
            }
            Error::Unreadable { .. } => ALLHANDS_ERR_RANK,
            Error::Null | Error::Unequal { .. } => ALLHANDS_ERR_ARGUMENT,
            Error::Memory { .. } | Error::Spawn { .. } | Error::Device { .. } => ALLHANDS_ERR_SYSTEM,
            Error::Mpi(Mpi::NotInitialized | Mpi::NotFound { .. }) => ALLHANDS_ERR_NOT_INITIALIZED,
            Error::Mpi(Mpi::Finalized) => ALLHANDS_ERR_FINALIZED,
            Error::Mpi(_) => ALLHANDS_ERR_MPI,
            _ => ALLHANDS_ERR_ARGUMENT,
        };
        Fault { code, sentence: error.to_string() }
    }
}

impl From<allhands_mpi::Error> for Fault {
    fn from(error: allhands_mpi::Error) -> Fault {
        Error::from(error).into()
    }
}

impl From<Unserved> for Fault {
    /// What would be handed to the MPI under an unmodified program, the caller can hand to it here.
    fn from(unserved: Unserved) -> Fault {
        let reason = match unserved {
            Unserved::Failed(error) => return error.into(),
            Unserved::Fallback(reason) => reason,
        };
        let (code, remedy) = remedy(&reason);
        Fault { code, sentence: format!("no plan serves {reason}; {remedy}") }
    }
}

/// What to do about a reason to call the MPI's own function.
fn remedy(reason: &Reason) -> (allhands_code, &'static str) {
    match reason {
        Reason::Refused => (ALLHANDS_ERR_ARGUMENT, "no count is negative, and no array of counts is NULL"),
        Reason::NoSuchOperation | Reason::Outlasting => {
            (ALLHANDS_ERR_OP, "use one that the datatype has, or call MPI's function")
        }
        Reason::TooLarge => (ALLHANDS_ERR_UNSUPPORTED, "use smaller blocks, or call MPI's function"),
        Reason::UnmatchedEdges(_) => {
            (ALLHANDS_ERR_MISMATCH, "give the communicator a graph whose edges have both ends")
        }
        Reason::ManyEdges
        | Reason::UnknownNeighbors
        | Reason::Intercommunicator
        | Reason::OneRank
        | Reason::NotJoined(_)
        | Reason::Preferred(_)
        | Reason::Turn
        | Reason::Tried
        | Reason::NoCommunicator
        | Reason::MadeTogether
        | Reason::NoIallreduce
        | Reason::NobodyMoves
        | Reason::Off => (ALLHANDS_ERR_UNSUPPORTED, "call MPI's function"),
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// The sentence of the last fault of this thread; empty before there is one.
pub(crate) fn last() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// Keeps the sentence, and gives the number.
pub(crate) fn told(outcome: Result<()>) -> c_int {
    let Err(Fault { code, sentence }) = outcome else { return ALLHANDS_SUCCESS as c_int };
    let sentence = CString::new(sentence.replace('\0', " ")).unwrap_or_default();
    // A thread that is ending keeps nothing.
    let _ = LAST.try_with(|last| *last.borrow_mut() = sentence);
    code as c_int
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_its_text() {
        assert_eq!(TEXTS.len(), ALLHANDS_ERR_INTERNAL as usize + 1);
        assert_eq!(text(ALLHANDS_SUCCESS as c_int), c"success");
        assert_eq!(text(ALLHANDS_ERR_INTERNAL as c_int), c"a fault of this library");
        assert_eq!((text(-1), text(16)), (UNKNOWN, UNKNOWN));
    }

    #[test]
    fn the_last_fault_stays_until_the_next() {
        // SAFETY: the text is this thread's, and read at once.
        let said = || unsafe { CStr::from_ptr(last()) }.to_str().unwrap().to_owned();
        assert_eq!(said(), "");
        assert_eq!(told(fault(ALLHANDS_ERR_PLAN, "a\0b")), 2);
        assert_eq!(told(Ok(())), 0);
        assert_eq!(said(), "a b");
    }

    #[test]
    fn reasons_to_call_mpi_have_codes_and_remedies() {
        let of = |unserved: Unserved| Fault::from(unserved).code;
        assert_eq!(of(Reason::Refused.into()), ALLHANDS_ERR_ARGUMENT);
        assert_eq!(of(Reason::NoSuchOperation.into()), ALLHANDS_ERR_OP);
        assert_eq!(of(Reason::TooLarge.into()), ALLHANDS_ERR_UNSUPPORTED);
        assert_eq!(of(Error::Null.into()), ALLHANDS_ERR_ARGUMENT);
        let sentence = Fault::from(Unserved::from(Reason::TooLarge)).sentence;
        assert_eq!(sentence, "no plan serves more than 1 GiB; use smaller blocks, or call MPI's function");
    }
}
