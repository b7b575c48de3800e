//! `allhands exec`: a program as it is, with our collectives under it.

use std::convert::Infallible;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;

use crate::failure::{Failure, Result};

/// Run an MPI program, unchanged, with the collectives of this library
///
/// Put it between the launcher and the program. In every rank it sets LD_PRELOAD to liballhands_preload.so, which serves the program's
/// collectives or hands them to the program's own MPI, and then becomes the program.
#[derive(Args, Debug)]
#[command(
    override_usage = "allhands exec PROGRAM [ARGUMENTS]...",
    after_help = "Environment:
  ALLHANDS=off
      the program's own MPI serves everything; a report tells of that, too
  ALLHANDS_ALGORITHM='allreduce=nap;bcast=mpi'
      forces algorithms; mpi is the MPI's own; nap? is used where it can serve
  ALLHANDS_TUNING=FILE
      chooses as `allhands tune` has measured with this MPI
  ALLHANDS_LEARN=off|frozen|FILE.toml
      learns nothing; changes nothing that was learned; keeps it there, not
      below ~/.cache
  ALLHANDS_REPORT=1|FILE|FILE.json|FILE.html
      at MPI_Finalize: what was called, who served it, why, and what it was worth
  ALLHANDS_COMPARE=1
      ours and the MPI's own take turns; the report tells what is gained or lost
  ALLHANDS_REPRODUCIBLE=1
      sums of floats have the same bits whoever serves, in whatever order
  ALLHANDS_CHECK=1
      ranks compare each call first; what differs is named and ends the job
  ALLHANDS_TIMEOUT=SECONDS
      of a collective that takes longer: who has arrived, who has not
  ALLHANDS_LOG=1|FILE
      a line for each decision: collective, bytes, ranks, algorithm, why
What is not understood, a name or a value, ends the job in MPI_Init.

Examples:
  mpirun -n 4 allhands exec ./program
  ALLHANDS_REPORT=1 mpirun -n 4 allhands exec python script.py"
)]
pub(crate) struct Exec {
    /// The program
    #[arg(value_name = "PROGRAM")]
    program: OsString,

    /// Its arguments
    #[arg(value_name = "ARGUMENTS", trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

const LIBRARY: &str = "liballhands_preload.so";

impl Exec {
    pub(crate) fn run(&self) -> Result<()> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        match under_library(command)? {}
    }
}

/// Becomes a program, with our library before its MPI; returns only where that fails.
pub(super) fn under_library(mut command: Command) -> Result<Infallible> {
    let mut preload = library()?.into_os_string();
    if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
        preload.push(":");
        preload.push(others);
    }
    let error = command.env("LD_PRELOAD", preload).exec();
    Err(Failure::Usage(format!("{} cannot be run: {error}", Path::new(command.get_program()).display())))
}

/// The library beside this command, or in the folder of libraries that belongs to it.
pub(super) fn library() -> Result<PathBuf> {
    let command = std::env::current_exe().and_then(|path| path.canonicalize())?;
    let folder = command.parent().unwrap_or(Path::new("/"));
    let places = [folder.join(LIBRARY), folder.join("../lib").join(LIBRARY), folder.join("../lib64").join(LIBRARY)];
    places.into_iter().find(|place| place.is_file()).ok_or_else(|| {
        let folder = folder.display();
        Failure::Usage(format!(
            "{LIBRARY} is neither in {folder} nor in {folder}/../lib; put it beside the command (`cargo build -p allhands-preload` makes it)"
        ))
    })
}
