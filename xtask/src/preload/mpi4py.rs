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

/// Numbers of ranks; and those for which there is always time, by turns of the MPIs: on few cores five ranks take a minute.
const RANKS: [usize; 5] = [1, 2, 3, 4, 5];
const SHORT_RANKS: [&[usize]; 3] = [&[2], &[1, 4], &[3]];

/// Of those that give a request, some that it calls on the world.
const REQUESTED: [&str; 9] = [
    "iallgather",
    "ialltoall",
    "ialltoallv",
    "iallreduce",
    "ireduce_scatter",
    "ibcast",
    "ireduce",
    "ibarrier",
    "allreduce_init",
];

/// So many ranks of one node suit every algorithm. CI has time for the first.
const ALL_SERVE: [usize; 2] = [2, 4];

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

/// Those that take minutes, about datatypes: run by hand, as are the others, which call collectives by the way at most.
const SLOW: [&str; 4] = ["test_datatype", "test_pack", "test_util_dtlib", "test_msgspec"];

/// Those that fail without us: of connected and spawned processes, where Intel MPI 2021.18 has a segmentation fault and Open MPI misses the
/// network that its jobs here do without; and of types that no wheel has.
const FAILING: [&str; 4] = ["test_dynproc", "test_spawn", "test_util_pool", "test_mpiabi"];

/// Those that are run with every algorithm: of all collectives that have some, and of the blocking ones.
const COLLECTIVES: &str = "test_cco_";
const NOT_OURS: [&str; 1] = ["_inter"];
const REQUESTS: [&str; 2] = ["_nb_", "_pr_"];

const AMONG_NEIGHBORS: [&str; 4] =
    ["neighbor_allgather", "neighbor_allgatherv", "neighbor_alltoall", "neighbor_alltoallv"];

/// Test modules: names that match one of the first, or any if there are none, and none of the second.
#[derive(Clone, Copy, PartialEq)]
struct Selection {
    included: &'static [&'static str],
    excluded: &'static [&'static [&'static str]],
}

impl Selection {
    /// Whether all collectives of ours are called: tests of datatypes and others call few.
    fn collective(&self) -> bool {
        [MOST_MODULES, ALL_COLLECTIVES, BLOCKING].contains(self)
    }
}

const MOST_MODULES: Selection = Selection { included: &MODULES, excluded: &[] };
const SLOW_MODULES: Selection = Selection { included: &SLOW, excluded: &[] };
const OTHER_MODULES: Selection = Selection { included: &[], excluded: &[&MODULES, &SLOW, &FAILING] };
const ALL_COLLECTIVES: Selection = Selection { included: &[COLLECTIVES], excluded: &[&NOT_OURS] };
const BLOCKING: Selection = Selection { included: &[COLLECTIVES], excluded: &[&NOT_OURS, &REQUESTS] };

/// More than any suite needs on two busy cores.
const MOST: Duration = Duration::from_secs(240);

/// Runs the suite on those libraries that mpi4py's wheel knows: the ones with an interface of their own.
pub(crate) fn run(allhands: &Path, libraries: &[Library], extent: Extent) -> Result<()> {
    let begun = Instant::now();
    for (place, library) in libraries.iter().filter(|library| library.is_native()).enumerate() {
        example(allhands, library)?;
        let ranks = if extent == Extent::Full { &RANKS[..] } else { SHORT_RANKS[place % SHORT_RANKS.len()] };
        for &ranks in ranks {
            let report = try_out(allhands, library, ranks, "", MOST_MODULES, "")?;
            if ranks > 1 && moved(library, ranks) {
                proven(&report, library.title, &REQUESTED)?;
            }
        }
        if extent == Extent::Full {
            for ranks in RANKS {
                try_out(allhands, library, ranks, "", SLOW_MODULES, " of datatypes")?;
                try_out(allhands, library, ranks, "", OTHER_MODULES, " of all else")?;
            }
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
    let collectives = [&SERVED[..], &AMONG_NEIGHBORS].concat();
    let known = collectives.iter().map(|collective| algorithms(allhands, collective)).collect::<Result<Vec<_>>>()?;
    let turns = known.iter().map(Vec::len).max().unwrap_or(0);
    let libraries: Vec<&Library> = libraries.iter().filter(|library| library.is_native()).collect();
    let modules = if extent == Extent::Full { ALL_COLLECTIVES } else { BLOCKING };
    for turn in 0..turns {
        let names: Vec<&str> = known.iter().map(|names| names[turn % names.len()].as_str()).collect();
        let wishes = collectives.iter().zip(&names).map(|(collective, name)| format!("{collective}={name}?"));
        let args = wishes.collect::<Vec<_>>().join(";");
        let how = format!(", algorithms {} of {turns}", turn + 1);
        for (place, library) in libraries.iter().enumerate() {
            let short = turn % libraries.len() == place;
            for ranks in RANKS.into_iter().filter(|ranks| extent == Extent::Full || short && *ranks == ALL_SERVE[0]) {
                let report = try_out(allhands, library, ranks, &args, modules, &how)?;
                if ALL_SERVE.contains(&ranks) {
                    forced(&report, &collectives, &names)?;
                }
            }
        }
    }
    eprintln!("xtask: mpi4py's tests with every algorithm in {:.0} s", begun.elapsed().as_secs_f64());
    Ok(())
}

/// A report says that these collectives were served by these algorithms.
fn forced(report: &Path, collectives: &[&str], names: &[&str]) -> Result<()> {
    let table = std::fs::read_to_string(report).unwrap_or_default();
    // Columns are two blanks apart: collective, bytes, calls, time, a call, served by.
    let by = |line: &str| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).nth(5).map(str::to_owned);
    let ran = |(collective, name): &(&&str, &&str)| {
        let mut lines = table.lines().filter(|line| line.starts_with(&format!("{collective} ")));
        lines.any(|line| by(line).is_some_and(|by| by.starts_with(**name)))
    };
    match collectives.iter().zip(names).find(|pair| !ran(pair)) {
        Some((collective, name)) => Err(format!("no {collective} by {name} was run\n{table}")),
        None => Ok(()),
    }
}

/// The algorithms of a collective, those for memory that ranks share as well. What does not promise the same bits on every rank serves where
/// nothing is rounded, which suffices to have run.
pub(crate) fn algorithms(allhands: &Path, collective: &str) -> Result<Vec<String>> {
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

/// mpi4py initialises MPI for several threads, where only Open MPI's progress calls us.
fn moved(library: &Library, ranks: usize) -> bool {
    library.name == "openmpi" || threaded(library, ranks)
}

/// On two ranks a thread of ours moves requests on instead; on the others they are the MPI's.
fn threaded(library: &Library, ranks: usize) -> bool {
    library.name != "openmpi" && ranks == 2
}

/// One job: exactly what fails without us may fail, and what is called is served by us. Its report.
fn try_out(
    allhands: &Path,
    library: &Library,
    ranks: usize,
    args: &str,
    modules: Selection,
    how: &str,
) -> Result<PathBuf> {
    let report = report(&format!("{}-{ranks}.txt", library.name));
    let progress = if threaded(library, ranks) { "thread" } else { "" };
    let settings = [
        ("ALLHANDS_REPORT", report.as_os_str()),
        ("ALLHANDS_ALGORITHM", OsStr::new(args)),
        ("ALLHANDS_PROGRESS", OsStr::new(progress)),
    ];
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
    if modules.collective() {
        proven(&report, &title, served(ranks))?;
    }
    eprintln!("xtask: {title}: {:.1} s", ended.time.as_secs_f64());
    Ok(report)
}

/// mpi4py's tests, started by a command that takes a program and its arguments.
fn suite(mut command: Command, library: &Library, modules: Selection) -> Result<Ended> {
    let folder = mpi::environment("mpi4py");
    command.arg(folder.join("bin/python")).arg(tests(&folder));
    modules.included.iter().for_each(|module| {
        command.args(["-i", module]);
    });
    modules.excluded.iter().copied().flatten().for_each(|module| {
        command.args(["-e", module]);
    });
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
