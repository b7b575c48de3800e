//! The job: what its ranks have agreed on in `MPI_Init`, before anything depends on it.

mod agreement;
mod inside;
mod mover;
mod presence;
mod settings;

use allhands_call::Types;
use allhands_mpi::Mpi;

use agreement::{Agreed, agree};
pub(crate) use inside::{inside, is_inside, is_interruptible, waiting};
pub(crate) use mover::{Moved, Mover};
pub(crate) use settings::{Forced, Settings};

/// What all calls are served with; alike on every rank.
pub(crate) struct Job {
    pub(crate) mpi: &'static Mpi,
    pub(crate) types: Types,
    pub(crate) settings: Settings,
    /// What moves requests on, on every rank; without it they are the MPI's.
    pub(crate) mover: Option<Mover>,
}

impl Job {
    /// Lets the ranks agree; none if the MPI serves this job. Collective over the world, of those who are under us.
    pub(crate) fn agreed() -> Result<Option<Job>, String> {
        let mpi = allhands_mpi::load().map_err(|error| error.to_string())?;
        let Agreed::Serve { mover } = agree(mpi)? else { return Ok(None) };
        let settings = Settings::agreed(mpi)?;
        Ok(Some(Job { mpi, types: Types::new(mpi), settings, mover }))
    }
}

/// The thread level that MPI is to be initialised with, whatever the program asks for: a thread of ours will call it.
pub(crate) fn thread_level() -> Option<std::ffi::c_int> {
    let mpi = allhands_mpi::load().ok().filter(|_| settings::wants_thread())?;
    Some(mpi.constants().integers.thread_multiple)
}

/// MPI is about to be initialised.
pub(crate) fn announce() {
    inside(presence::announce);
}
