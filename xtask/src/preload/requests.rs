//! A C program that begins, prepares and completes collectives in every way, on three MPIs.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::{exec, proven, report};
use crate::launch::launch;
use crate::libraries::Library;
use crate::{Result, mpi};

const PROGRAM: &str = "crates/preload/tests/programs/requests.c";

/// Numbers of ranks. Three are told that they sit on two nodes.
const RANKS: [usize; 4] = [1, 2, 3, 5];

/// On two ranks, so many communicators come and go: a millisecond each, more on other MPIs than on MPICH.
fn cycles(library: &Library, ranks: usize) -> Option<usize> {
    (ranks == 2).then_some(if library.name == "mpich" { 10_000 } else { 2_000 })
}

/// What the report of more than one rank must show as ours.
const SERVED: [&str; 19] = [
    "iallgather",
    "iallgatherv",
    "ialltoall",
    "iallreduce",
    "ireduce_scatter",
    "ireduce_scatter_block",
    "ibcast",
    "ireduce",
    "ibarrier",
    "allgather_init",
    "allgatherv_init",
    "alltoall_init",
    "alltoallv_init",
    "allreduce_init",
    "reduce_scatter_init",
    "reduce_scatter_block_init",
    "bcast_init",
    "reduce_init",
    "barrier_init",
];

/// More than it needs on two busy cores.
const MOST: Duration = Duration::from_secs(120);

/// Runs the program on those libraries whose headers are installed with them.
pub(crate) fn run(allhands: &Path, libraries: &[Library]) -> Result<()> {
    let begun = Instant::now();
    for library in libraries.iter().filter(|library| ["openmpi", "mpich", "intel"].contains(&library.name)) {
        let program = compiled(library)?;
        for ranks in RANKS {
            one(allhands, library, &program, ranks)?;
        }
    }
    eprintln!("xtask: requests under the preload in {:.0} s", begun.elapsed().as_secs_f64());
    Ok(())
}

/// The program for a library, compiled without what its compiler wrapper needs.
fn compiled(library: &Library) -> Result<PathBuf> {
    let program = mpi::root().join(format!("target/requests-{}", library.name));
    let folder = mpi::environment(library.name);
    let mut command = Command::new("cc");
    command.args(["-O1", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&program).arg(mpi::root().join(PROGRAM));
    command.arg("-I").arg(folder.join("include")).arg(&library.file).arg("-lpthread");
    command.arg("-Wl,--allow-shlib-undefined").arg(format!("-Wl,-rpath,{}", folder.join("lib").display()));
    match command.status() {
        Ok(status) if status.success() => Ok(program),
        Ok(_) => Err(format!("{PROGRAM} cannot be compiled with the header of {}", library.title)),
        Err(error) => Err(format!("cc cannot be started: {error}; install a C compiler")),
    }
}

fn one(allhands: &Path, library: &Library, program: &Path, ranks: usize) -> Result<()> {
    let report = report(&format!("requests-{}-{ranks}.txt", library.name));
    // Left to itself an alltoallv is the MPI's.
    let settings =
        [("ALLHANDS_REPORT", report.as_os_str()), ("ALLHANDS_ALGORITHM", OsStr::new("alltoallv=spread-out"))];
    let mut command = exec(allhands, library, ranks, &settings);
    if ranks == 3 {
        command.env("ALLHANDS_TOPOLOGY", "1,2");
    }
    command.arg(program);
    command.args(cycles(library, ranks).map(|cycles| cycles.to_string()));
    let ended = launch(command, MOST)?;
    let title = format!("{}, requests on {ranks} ranks", library.title);
    let right = ended.out.contains(&format!("requests: {ranks} ranks, all right"));
    if !right || !ended.status.is_some_and(|status| status.success()) || !ended.left.is_empty() {
        return Err(ended.fault(&format!("{title} failed")));
    }
    if ranks > 1 {
        proven(&report, &title, &SERVED)?;
    }
    eprintln!("xtask: {title}: {:.1} s", ended.time.as_secs_f64());
    Ok(())
}
