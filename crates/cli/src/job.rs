//! The MPI job that the command is a part of, if a launcher has started it.

use std::time::Duration;

use allhands::{Comm, Error};
use allhands_mpi::{Launcher, Mpi};

use crate::failure::{Failure, Result};

/// What the launcher says, if there is one.
pub(crate) fn launched() -> Option<Launcher> {
    Launcher::from_environment().filter(|launcher| launcher.size.is_some() || launcher.rank.is_some())
}

/// Whether this process speaks for all: the only one, or the job's first. Where the launcher does not number its processes, each
/// speaks for itself.
pub(crate) fn first() -> bool {
    launched().is_none_or(|launcher| launcher.rank.unwrap_or(0) == 0)
}

/// Before a silent failure. Launchers end a job when the first of its processes fails: that should be one that has said why.
pub(crate) fn let_others_speak() {
    std::thread::sleep(Duration::from_secs(1));
}

/// Runs `body` on this rank of the job. What `body` refuses is refused alike by all ranks; an error of the library is this rank's.
pub(crate) fn run<R>(body: impl FnOnce(&Comm, &'static Mpi) -> allhands::Result<Result<R>>) -> Result<R> {
    let mpi = allhands_mpi::load().map_err(|error| Failure::Usage(error.to_string()))?;
    let mut rank = launched().and_then(|launcher| launcher.rank);
    let outcome = allhands::mpi(|comm| {
        rank = Some(comm.rank());
        body(comm, mpi)
    });
    outcome.map_err(|error| Failure::Rank { rank, reason: error.to_string(), follows: error.follows() })?
}

/// What all ranks refuse alike, apart from what is this rank's error.
pub(crate) fn alike<R>(outcome: allhands::Result<R>) -> allhands::Result<Result<R>> {
    match outcome {
        Ok(found) => Ok(Ok(found)),
        Err(Error::Request(refused)) => Ok(Err(refused.into())),
        Err(error) => Err(error),
    }
}

/// The name of an MPI's file.
pub(crate) fn file(mpi: &Mpi) -> String {
    mpi.path().file_name().unwrap_or(mpi.path().as_os_str()).to_string_lossy().into_owned()
}
