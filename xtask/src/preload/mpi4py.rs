//! mpi4py's own tests of collectives, on three MPIs.
//!
//! The tests must pass under the preload exactly as they pass without it, and the report must show that our code served the calls.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::{Extent, SERVED, exec, proven, report, served, without};
use crate::launch::{Ended, launch};
use crate::libraries::Library;
use crate::{Result, mpi};

/// Numbers of ranks.
const RANKS: [usize; 5] = [1, 2, 3, 4, 5];

/// Those of mpi4py's test modules that call collectives, ours or not, make communicators or operations, wait, or fail.
const MODULES: [&str; 9] = [
    "test_cco_",
    "test_request",
    "test_attributes",
    "test_op",
    "test_comm",
    "test_errhandler",
    "test_exceptions",
    "test_status",
    "test_threads",
];

/// Those that take minutes, about datatypes: run by hand.
const SLOW: [&str; 4] = ["test_datatype", "test_pack", "test_util_dtlib", "test_msgspec"];

/// Those that are run with every algorithm.
const COLLECTIVES: [&str; 1] = ["test_cco_"];

/// More than any suite needs on two busy cores.
const MOST: Duration = Duration::from_secs(240);

/// Runs the suite on those libraries that mpi4py's wheel knows.
pub(crate) fn run(allhands: &Path, libraries: &[Library], extent: Extent) -> Result<()> {
    let begun = Instant::now();
    for library in libraries.iter().filter(|library| on_the_wheel(library)) {
        example(allhands, library)?;
        for ranks in RANKS {
            // Left to itself an alltoallv is the MPI's.
            try_out(allhands, library, ranks, "alltoallv=spread-out", &MODULES, "")?;
        }
        if extent == Extent::Full {
            try_out(allhands, library, 3, "", &SLOW, " of datatypes")?;
        }
    }
    eprintln!("xtask: mpi4py's tests under the preload in {:.0} s", begun.elapsed().as_secs_f64());
    Ok(())
}

/// The example of the README.
fn example(allhands: &Path, library: &Library) -> Result<()> {
    let report = report(&format!("example-{}.txt", library.name));
    let mut command = exec(allhands, library, 4, &[("ALLHANDS_REPORT", report.as_os_str())]);
    command.arg(mpi::environment("mpi4py").join("bin/python")).arg(mpi::root().join("examples/mean.py"));
    command.env("MPI4PY_LIBMPI", &library.file);
    let ended = launch(command, MOST)?;
    if !passed(&ended) || ended.out.trim() != "mean rank 1.5 of 4" {
        return Err(ended.fault(&format!("{}, examples/mean.py failed", library.title)));
    }
    proven(&report, "examples/mean.py", &["allreduce"])
}

/// The tests of collectives, with the first algorithm of every collective, then the second, and so on: where it can serve, since
/// the tests make communicators of other sizes, too.
pub(crate) fn every_algorithm(allhands: &Path, libraries: &[Library], extent: Extent) -> Result<()> {
    let begun = Instant::now();
    let known = SERVED.iter().map(|collective| algorithms(allhands, collective)).collect::<Result<Vec<_>>>()?;
    let turns = known.iter().map(Vec::len).max().unwrap_or(0);
    let libraries: Vec<&Library> = libraries.iter().filter(|library| on_the_wheel(library)).collect();
    let cases = libraries.len() * RANKS.len();
    for turn in 0..turns {
        let wishes = SERVED.iter().zip(&known).map(|(collective, names)| {
            let name = &names[turn % names.len()];
            format!("{collective}={name}?")
        });
        let wish = wishes.collect::<Vec<_>>().join(";");
        for case in 0..cases {
            let (library, ranks) = (libraries[case % libraries.len()], RANKS[case % RANKS.len()]);
            // One for each turn, on another library and number of ranks.
            if extent == Extent::Full || case == turn % cases {
                try_out(allhands, library, ranks, &wish, &COLLECTIVES, &format!(", algorithms {}", turn + 1))?;
            }
        }
    }
    eprintln!("xtask: mpi4py's tests with every algorithm in {:.0} s", begun.elapsed().as_secs_f64());
    Ok(())
}

/// The algorithms of a collective, those for memory that ranks share as well.
fn algorithms(allhands: &Path, collective: &str) -> Result<Vec<String>> {
    let listed = Command::new(allhands).args(["list", "--json", collective]).output();
    let listed = listed.map_err(|error| format!("{} cannot be started: {error}", allhands.display()))?;
    let wrong = || format!("`allhands list --json {collective}` printed no algorithms");
    let table: serde_json::Value = serde_json::from_slice(&listed.stdout).map_err(|_| wrong())?;
    let rows = table.as_array().filter(|rows| !rows.is_empty()).ok_or_else(wrong)?;
    let mut names = Vec::new();
    for row in rows {
        let name = row["algorithm"].as_str().ok_or_else(wrong)?;
        names.push(name.to_owned());
        if row["parameters"].to_string().contains("\"local\"") {
            names.push(format!("{name}:local=shared"));
        }
    }
    Ok(names)
}

/// One job: exactly what fails without us may fail, and what is called is served by us.
fn try_out(allhands: &Path, library: &Library, ranks: usize, wish: &str, modules: &[&str], how: &str) -> Result<()> {
    let report = report(&format!("{}-{ranks}.txt", library.name));
    let settings = [("ALLHANDS_REPORT", report.as_os_str()), ("ALLHANDS_ALGORITHM", OsStr::new(wish))];
    let ended = suite(exec(allhands, library, ranks, &settings), library, modules)?;
    let title = format!("{}, mpi4py's tests on {ranks} ranks{how}", library.title);
    if !passed(&ended) {
        let without = suite(without(library, ranks), library, modules)?;
        let failures = failed(&ended);
        if failures.is_empty() || failures != failed(&without) || !ended.left.is_empty() {
            return Err(ended.fault(&format!("{title} failed with the preload, and not so without")));
        }
        eprintln!("xtask: {title}: {} fail, with and without the preload", failures.len());
    }
    // Tests of datatypes call few collectives.
    if modules != SLOW {
        proven(&report, &title, served(ranks))?;
    }
    eprintln!("xtask: {title}: {:.1} s", ended.time.as_secs_f64());
    Ok(())
}

/// mpi4py's tests, started by a command that takes a program and its arguments.
fn suite(mut command: Command, library: &Library, modules: &[&str]) -> Result<Ended> {
    let folder = mpi::environment("mpi4py");
    command.arg(folder.join("bin/python")).arg(tests(&folder));
    for module in modules {
        command.args(["-i", module]);
    }
    command.env("MPI4PY_LIBMPI", &library.file);
    launch(command, MOST)
}

/// Whether mpi4py's wheel knows the library.
fn on_the_wheel(library: &Library) -> bool {
    ["openmpi", "mpich", "intel"].contains(&library.name)
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
