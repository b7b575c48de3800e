//! The job: what its ranks have agreed on in `MPI_Init`, before anything depends on it.

mod agreement;
mod inside;
mod mover;
mod presence;
mod settings;
mod thread;
mod variables;

use allhands_call::Types;
use allhands_mpi::{Launcher, Mpi};

use agreement::{Agreed, agree};
pub(crate) use inside::{inside, is_inside, is_interruptible, waiting};
pub(crate) use mover::{Moved, Mover};
pub(crate) use settings::{Forced, Settings};
pub(crate) use thread::with_words;

/// What all calls are served with; alike on every rank.
pub(crate) struct Job {
    pub(crate) mpi: &'static Mpi,
    pub(crate) types: Types,
    pub(crate) settings: Settings,
    /// What moves requests on, on every rank; without it they are the MPI's.
    pub(crate) mover: Option<Mover>,
    /// Whether ours serve calls; otherwise the MPI does, and it is only told what it did.
    pub(crate) serves: bool,
}

impl Job {
    /// Lets the ranks agree; none if the MPI serves this job and nobody wants to know of it. Collective over the world, of those who are under us.
    pub(crate) fn agreed() -> Result<Option<Job>, String> {
        let mpi = allhands_mpi::load().map_err(|error| error.to_string())?;
        if !launched(mpi) {
            presence::withdraw();
            return Ok(None);
        }
        let (mover, serves) = match agree(mpi)? {
            Agreed::Serve { mover } => (mover, true),
            Agreed::Watch => (None, false),
            Agreed::Leave => return Ok(None),
        };
        let settings = Settings::agreed(mpi)?;
        let settings = if serves { settings } else { settings.of_watching() };
        let wanted = serves || settings.report.is_some();
        Ok(wanted.then(|| Job { mpi, types: Types::new(mpi), settings, mover, serves }))
    }
}

/// Whether the MPI's own launcher has started the job. Where another has, so that each process is alone, the first says so, and the
/// program goes on as it would without us.
fn launched(mpi: &Mpi) -> bool {
    let speaks = || Launcher::from_environment().is_some_and(|launcher| launcher.rank.unwrap_or(0) == 0);
    let known = mpi.comm_size(mpi.world()).and_then(|ranks| mpi.check_launcher(ranks));
    let Err(error @ allhands_mpi::Error::Launcher { .. }) = known else { return true };
    if speaks() {
        allhands::raw::say(error);
    }
    false
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
