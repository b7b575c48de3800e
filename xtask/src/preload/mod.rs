//! `cargo xtask preload`: programs that know nothing of us, under `allhands exec`.

mod mpi4py;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::conformance::Wish;
use crate::libraries::Library;
use crate::{Result, build, mpi};

pub(crate) fn by_hand(wish: &Wish) -> Result<()> {
    mpi::install()?;
    run(&wish.libraries()?)
}

/// What CI runs.
pub(crate) fn run(libraries: &[Library]) -> Result<()> {
    let allhands = build::program(&["--package", "allhands-preload", "--package", "allhands-cli"])?;
    mpi4py::run(&allhands, libraries)
}

/// `allhands exec` on so many ranks, to which a program and its arguments are to be added, with these settings and no others.
fn exec(allhands: &Path, library: &Library, ranks: usize, settings: &[(&str, &OsStr)]) -> Command {
    let mut command = library.command(ranks, allhands);
    command.arg("exec");
    clean(&mut command);
    command.envs(settings.iter().copied());
    command
}

/// The same without us.
fn without(library: &Library, ranks: usize) -> Command {
    let mut command = library.command(ranks, Path::new("env"));
    clean(&mut command);
    command
}

/// Nothing of the developer's own settings.
fn clean(command: &mut Command) {
    for name in
        ["LD_PRELOAD", "ALLHANDS", "ALLHANDS_ALGORITHM", "ALLHANDS_REPORT", "ALLHANDS_TUNING", "ALLHANDS_TOPOLOGY"]
    {
        command.env_remove(name);
    }
}

/// Where a job's report goes; there is none yet.
fn report(name: &str) -> PathBuf {
    let file = mpi::root().join("target").join(format!("report-{name}"));
    let _ = std::fs::remove_file(&file);
    file
}
