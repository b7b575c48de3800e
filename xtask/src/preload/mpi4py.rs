//! mpi4py's own tests of collectives, on three MPIs.
//!
//! The tests must pass under the preload exactly as they pass without it, and the report must show that our code served the calls.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::{exec, report, without};
use crate::launch::{Ended, launch};
use crate::libraries::Library;
use crate::{Result, mpi};

/// Numbers of ranks.
const RANKS: [usize; 5] = [1, 2, 3, 4, 5];

/// Those of mpi4py's test modules that call collectives, ours or not, or make communicators.
const MODULES: [&str; 3] = ["test_cco_", "test_request", "test_attributes"];

/// The collectives that we serve; a suite of more than one rank calls all of them.
const SERVED: [&str; 10] = [
    "allgather",
    "allgatherv",
    "alltoall",
    "alltoallv",
    "allreduce",
    "reduce_scatter",
    "reduce_scatter_block",
    "bcast",
    "reduce",
    "barrier",
];

/// More than any suite needs on two busy cores.
const MOST: Duration = Duration::from_secs(240);

/// Runs the suite on those libraries that mpi4py's wheel knows.
pub(crate) fn run(allhands: &Path, libraries: &[Library]) -> Result<()> {
    let begun = Instant::now();
    for library in libraries.iter().filter(|library| ["openmpi", "mpich", "intel"].contains(&library.name)) {
        for ranks in RANKS {
            one(allhands, library, ranks)?;
        }
    }
    eprintln!("xtask: mpi4py's tests under the preload in {:.0} s", begun.elapsed().as_secs_f64());
    Ok(())
}

fn one(allhands: &Path, library: &Library, ranks: usize) -> Result<()> {
    let report = report(&format!("{}-{ranks}.txt", library.name));
    // Left to itself an alltoallv is the MPI's.
    let settings =
        [("ALLHANDS_REPORT", report.as_os_str()), ("ALLHANDS_ALGORITHM", OsStr::new("alltoallv=spread-out"))];
    let ended = suite(exec(allhands, library, ranks, &settings), library)?;
    let title = format!("{}, mpi4py's tests on {ranks} ranks", library.title);
    if !passed(&ended) {
        let without = suite(without(library, ranks), library)?;
        let failures = failed(&ended);
        if failures.is_empty() || failures != failed(&without) || !ended.left.is_empty() {
            return Err(ended.fault(&format!("{title} failed with the preload, and not so without")));
        }
        eprintln!("xtask: {title}: {} fail, with and without the preload", failures.len());
    }
    let table = std::fs::read_to_string(&report)
        .map_err(|error| format!("{title}: there is no report {}: {error}", report.display()))?;
    if ranks > 1 {
        for collective in SERVED {
            if !table.lines().any(|line| line.starts_with(&format!("{collective} ")) && !line.contains("  the MPI  ")) {
                return Err(format!("{title}: no {collective} was served by us\n{table}"));
            }
        }
    }
    eprintln!("xtask: {title}: {:.1} s", ended.time.as_secs_f64());
    Ok(())
}

/// mpi4py's tests, started by a command that takes a program and its arguments.
fn suite(mut command: Command, library: &Library) -> Result<Ended> {
    let folder = mpi::environment("mpi4py");
    command.arg(folder.join("bin/python")).arg(tests(&folder));
    for module in MODULES {
        command.args(["-i", module]);
    }
    command.env("MPI4PY_LIBMPI", &library.file);
    launch(command, MOST)
}

fn tests(folder: &Path) -> PathBuf {
    folder.join("suite/test/main.py")
}

fn passed(ended: &Ended) -> bool {
    ended.status.is_some_and(|status| status.success()) && ended.left.is_empty() && failed(ended).is_empty()
}

/// The tests that failed on some rank.
fn failed(ended: &Ended) -> BTreeSet<&str> {
    let lines = ended.err.lines().chain(ended.out.lines());
    lines.filter(|line| line.contains("FAIL: ") || line.contains("ERROR: ")).collect()
}
