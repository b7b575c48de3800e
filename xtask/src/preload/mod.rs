//! `cargo xtask preload`: programs that know nothing of us, under `allhands exec`.

mod device;
mod imb;
mod mixed;
mod mpi4py;
mod programs;
mod promise;
mod requests;

pub(crate) use self::mpi4py::algorithms;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::libraries::{self, Library};
use crate::{Result, build, mpi};

/// The collectives that have algorithms, all of which mpi4py's tests call.
pub(crate) const SERVED: [&str; 16] = [
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
    "gather",
    "gatherv",
    "scatter",
    "scatterv",
    "scan",
    "exscan",
];

/// Those that every program in C and Fortran calls.
const CALLED: usize = 10;

/// How much is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// What the test command has time for.
    Short,
    Full,
}

impl Extent {
    fn of(full: bool) -> Extent {
        if full { Extent::Full } else { Extent::Short }
    }
}

/// What is to be run.
pub(crate) struct Args {
    library: Option<String>,
    extent: Extent,
    part: Option<Part>,
    /// One of the programs of `promise`, and nothing else.
    only: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Mpi4py,
    EveryAlgorithm,
    Programs,
    Requests,
    Imb,
}

impl Args {
    /// `[LIBRARY] [--full] [--mpi4py | --every-algorithm | --programs | --requests | --imb | --only NAME]`, in any order.
    pub(crate) fn parse(words: &[&str]) -> Option<Args> {
        let mut args = Args { library: None, extent: Extent::Short, part: None, only: None };
        let mut words = words.iter();
        while let Some(&word) = words.next() {
            let part = match word {
                "--only" => {
                    let name = words.next()?;
                    promise::is_known(name).then_some(())?;
                    args.only = Some(name.to_string());
                    continue;
                }
                "--full" => {
                    args.extent = Extent::Full;
                    continue;
                }
                "--mpi4py" => Part::Mpi4py,
                "--every-algorithm" => Part::EveryAlgorithm,
                "--programs" => Part::Programs,
                "--requests" => Part::Requests,
                "--imb" => Part::Imb,
                name if !name.starts_with('-') && args.library.is_none() => {
                    args.library = Some(name.into());
                    continue;
                }
                _ => return None,
            };
            if args.part.replace(part).is_some() {
                return None;
            }
        }
        Some(args)
    }
}

pub(crate) fn by_hand(args: &Args) -> Result<()> {
    mpi::install()?;
    let libraries = match &args.library {
        Some(name) => vec![libraries::named(name)?],
        None => libraries::all(),
    };
    if let Some(name) = &args.only {
        return promise::run(&build::command()?, &libraries, Some(name));
    }
    parts(&libraries, args.extent, |part| args.part.is_none_or(|only| only == part))
}

/// What the test command runs, but for [`every_algorithm`].
pub(crate) fn run(libraries: &[Library], full: bool) -> Result<()> {
    parts(libraries, Extent::of(full), |part| part != Part::EveryAlgorithm)
}

/// mpi4py's tests with every algorithm: short jobs, which compute more than they wait for each other.
pub(crate) fn every_algorithm(libraries: &[Library], full: bool) -> Result<()> {
    parts(libraries, Extent::of(full), |part| part == Part::EveryAlgorithm)
}

fn parts(libraries: &[Library], extent: Extent, wanted: impl Fn(Part) -> bool) -> Result<()> {
    let allhands = build::command()?;
    if wanted(Part::Mpi4py) {
        mpi4py::run(&allhands, libraries, extent)?;
    }
    if wanted(Part::EveryAlgorithm) {
        mpi4py::every_algorithm(&allhands, libraries, extent)?;
    }
    if wanted(Part::Programs) {
        programs::run(&allhands, libraries, extent)?;
        promise::run(&allhands, libraries, None)?;
    }
    if wanted(Part::Requests) {
        requests::run(&allhands, libraries)?;
    }
    if wanted(Part::Imb) {
        imb::run(&allhands, libraries, extent)?;
    }
    Ok(())
}

/// A report says that our code served each of these collectives.
fn proven(report: &Path, title: &str, collectives: &[&str]) -> Result<()> {
    let table = std::fs::read_to_string(report)
        .map_err(|error| format!("{title}: there is no report {}: {error}", report.display()))?;
    let ours = |collective: &&&str| {
        table.lines().any(|line| line.starts_with(&format!("{collective} ")) && !line.contains("  the MPI ["))
    };
    match collectives.iter().find(|collective| !ours(collective)) {
        Some(collective) => Err(format!("{title}: no {collective} was served by us\n{table}")),
        None => Ok(()),
    }
}

/// What a job of so many ranks must have had served: one rank has nobody to talk to.
fn served(ranks: usize) -> &'static [&'static str] {
    if ranks > 1 { &SERVED } else { &[] }
}

/// The same of the programs in C and Fortran.
fn served_programs(ranks: usize) -> &'static [&'static str] {
    &served(ranks)[..CALLED.min(served(ranks).len())]
}

/// `allhands exec` on so many ranks, to which a program and its arguments are to be added, with these settings and no others.
pub(crate) fn exec(allhands: &Path, library: &Library, ranks: usize, settings: &[(&str, &OsStr)]) -> Command {
    let mut command = library.command(ranks, allhands);
    command.arg("exec");
    clean(&mut command);
    command.envs(settings.iter().copied());
    command
}

/// The same without us.
pub(crate) fn without(library: &Library, ranks: usize) -> Command {
    let mut command = library.command(ranks, Path::new("env"));
    clean(&mut command);
    command
}

/// Nothing of the developer's own settings.
fn clean(command: &mut Command) {
    for name in [
        "LD_PRELOAD",
        "ALLHANDS",
        "ALLHANDS_ALGORITHM",
        "ALLHANDS_LEARN",
        "ALLHANDS_REPORT",
        "ALLHANDS_TUNING",
        "ALLHANDS_TOPOLOGY",
    ] {
        command.env_remove(name);
    }
}

/// Where a job's report goes; there is none yet.
fn report(name: &str) -> PathBuf {
    let file = mpi::root().join("target").join(format!("report-{name}"));
    let _ = std::fs::remove_file(&file);
    file
}
