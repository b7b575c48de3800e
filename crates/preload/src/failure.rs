//! Why a call is not served here, or went wrong.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ffi::c_int;
use std::sync::{Mutex, PoisonError};

use allhands::Error;
use allhands_mpi::{Handle, Mpi};

/// A call that is not served.
pub(crate) enum Unserved {
    /// The MPI's own function is called, for this reason.
    Passed(Cow<'static, str>),
    /// It was ours to serve, and failed.
    Failed(Error),
}

/// A reason that is given again and again. There are few of them, and they stay.
pub(crate) fn lasting(reason: String) -> &'static str {
    static REASONS: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut reasons = REASONS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = reasons.get(reason.as_str()) {
        return known;
    }
    let kept: &'static str = Box::leak(reason.into_boxed_str());
    reasons.insert(kept);
    kept
}

/// A call that is handed to the MPI, and why.
pub(crate) const fn passed(reason: &'static str) -> Unserved {
    Unserved::Passed(Cow::Borrowed(reason))
}

/// An argument that no collective takes: MPI says what is wrong with it.
pub(crate) const REFUSED: Unserved = passed(REFUSED_TEXT);
pub(crate) const REFUSED_TEXT: &str = "an argument that MPI refuses";

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

/// Says what went wrong, and leaves the rest to the communicator's error handler: it may end the job.
pub(crate) fn raise(mpi: &Mpi, function: &str, comm: Handle, error: &Error) -> c_int {
    eprintln!("allhands: {function}: {error}");
    let code = code(mpi, error);
    // SAFETY: the communicator is the one that the program called with.
    unsafe { (mpi.raw().comm_call_errhandler)(comm, code) };
    code
}

fn code(mpi: &Mpi, error: &Error) -> c_int {
    let classes = &mpi.constants().errors;
    match error {
        Error::Mpi(allhands_mpi::Error::Call { code, .. }) => *code,
        Error::Size { .. } => classes.truncate,
        Error::Operation(_) => classes.op,
        Error::Memory { .. } => classes.no_mem,
        Error::Request(_) | Error::Length { .. } | Error::Seats { .. } | Error::Setting { .. } => classes.arg,
        Error::Panicked { .. } => classes.intern,
        _ => classes.other,
    }
}

/// The code of a call in which this library failed itself.
pub(crate) fn fault(mpi: &Mpi, function: &str, comm: Handle) -> c_int {
    let message = "a fault of this library, reported above".into();
    raise(mpi, function, comm, &Error::Panicked { rank: 0, message })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_kept_once() {
        let [one, same, other] = ["a", "a", "b"].map(|reason| lasting(reason.into()));
        assert!(std::ptr::eq(one, same));
        assert_eq!((one, other), ("a", "b"));
    }
}
