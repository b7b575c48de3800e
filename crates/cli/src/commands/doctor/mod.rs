//! `allhands doctor`: whether a job would be served here, how well, and what to do where not.
//!
//! Facts are gathered in one place (`facts`), a job is tried (`trial`), and what follows from all of it is a pure function (`findings`).

mod facts;
mod findings;
mod trial;

use std::io::Write;

use clap::Args;

use super::exec;
use crate::failure::{Failure, Result};
use crate::job;
use crate::screen;
use facts::{Facts, Job, Launch};
use findings::Page;

/// Tell whether a job of this MPI would be served, what makes it slower, and what to do
///
/// It looks for an MPI and its launcher, starts a job of 2 ranks of itself under the library that `allhands exec` uses, and looks at
/// what limits such jobs: whether ranks may read each other's memory (ptrace scope, seccomp, containers), share some (memfd, /dev/shm),
/// and have cores of their own. Started by a launcher, it looks at the job that it is part of. Every finding is ok, slower or
/// fails; below those that are not ok stands the remedy.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  allhands doctor
  mpirun -n 8 allhands doctor

Exit codes: 0 a job would be served; 1 it would not, and the last line says why.")]
pub(crate) struct Doctor {
    /// As a rank whose library is in place
    #[arg(long, hide = true)]
    rank: bool,

    /// What is found goes to the doctor who has started the job
    #[arg(long, hide = true)]
    told: bool,
}

impl Doctor {
    pub(crate) fn run(&self) -> Result<()> {
        match job::launched() {
            Some(launcher) if self.rank => trial::as_rank(&launcher, self.told),
            Some(launcher) => {
                let failure = match trial::with_library(self.told) {
                    Err(failure) => failure,
                    Ok(never) => match never {},
                };
                // The first speaks for all, and the page says what is missing.
                if job::first() {
                    let launch = Launch::By { name: launcher.kind.to_string(), ranks: launcher.size };
                    show(&Facts::here(launch, Job::Ended { code: None, said: Some(failure.to_string()) }))?;
                }
                Err(Failure::Printed)
            }
            None => {
                let launcher = allhands_mpi::launchers_in_path().into_iter().next();
                let Some(launcher) = launcher else {
                    return show(&Facts::here(Launch::None, Job::NotTried));
                };
                let told = match exec::library() {
                    Ok(_) => trial::start(&launcher),
                    Err(_) => trial::Told::default(),
                };
                let facts = Facts::here(Launch::Found(launcher), told.job);
                show(&Facts { mpi: told.mpi.map_or(facts.mpi, Ok), ..facts })
            }
        }
    }
}

/// Prints the page; an error if no job would be served.
fn show(facts: &Facts) -> Result<()> {
    let page = Page::of(facts);
    screen::stdout().write_all(page.text().as_bytes())?;
    if page.served() { Ok(()) } else { Err(Failure::Printed) }
}
