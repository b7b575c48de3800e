//! `cargo xtask conformance`: the conformance suite as jobs of every MPI library.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::launch::launch;
use crate::libraries::{self, Library};
use crate::{Result, build, mpi};

/// Numbers of ranks, and nodes for each that the ranks are told they sit on.
const RANKS: [(usize, &str); 6] = [(1, "1"), (2, "2x1"), (3, "1,2"), (4, "2x2"), (7, "3,4"), (8, "4x2")];

/// Other ways for the same messages to go, each tried once.
const SETTINGS: [(&str, &str); 2] = [("ALLHANDS_SINGLE_COPY", "off"), ("ALLHANDS_PROGRESS", "thread")];

/// More than any launch needs on two busy cores.
const MOST: Duration = Duration::from_secs(120);

/// What is to be run.
pub(crate) struct Args {
    pub(crate) library: Option<String>,
    ranks: Option<usize>,
    cases: usize,
    /// All that there is, however long it takes.
    pub(crate) full: bool,
}

impl Args {
    /// `[LIBRARY] [-n RANKS] [--cases C] [--full]`, in any order.
    pub(crate) fn parse(words: &[&str]) -> Option<Args> {
        let mut args = Args { library: None, ranks: None, cases: 100, full: false };
        let mut words = words.iter();
        while let Some(&word) = words.next() {
            match word {
                "-n" => args.ranks = Some(words.next()?.parse().ok()?),
                "--full" => args.full = true,
                "--cases" => args.cases = words.next()?.parse().ok()?,
                name if !name.starts_with('-') && args.library.is_none() => args.library = Some(name.into()),
                _ => return None,
            }
        }
        Some(args)
    }

    /// The libraries that are meant.
    pub(crate) fn libraries(&self) -> Result<Vec<Library>> {
        match &self.library {
            Some(name) => Ok(vec![libraries::named(name)?]),
            None => Ok(libraries::all()),
        }
    }
}

pub(crate) fn by_hand(args: &Args) -> Result<()> {
    mpi::install()?;
    run(&build()?, &args.libraries()?, args)
}

/// Builds the program once for all launches, and those beside it, before cargo compiles other things; where cargo put it.
pub(crate) fn build() -> Result<PathBuf> {
    for beside in ["borrowed", "fourier_filter"] {
        example(beside)?;
    }
    example("conformance")
}

/// An example program of ours, built.
pub(crate) fn example(name: &str) -> Result<PathBuf> {
    build::program(&["--workspace", "--example", name])
}

/// Two jobs for every library and number of ranks: seated as the ranks really are, and as they are told. Unless all is wanted, libraries
/// have the numbers of ranks by turns, and those of the standard ABI only the small ones: what differs between them is not how ranks are counted.
/// Stops at the first that fails.
pub(crate) fn run(program: &Path, libraries: &[Library], args: &Args) -> Result<()> {
    let begun = Instant::now();
    let borrowed = example("borrowed")?;
    let filter = example("fourier_filter")?;
    filters(Command::new(&filter), "8 thread ranks")?;
    let libraries: Vec<&Library> = libraries.iter().filter(|library| library.reduces()).collect();
    for (index, library) in libraries.iter().enumerate() {
        match args.ranks {
            Some(ranks) => one(program, library, ranks, None, index, args.cases)?,
            None => {
                let most = if library.is_native() { usize::MAX } else { 4 };
                let has_time = |place: usize, ranks: usize| (place + index).is_multiple_of(2) && ranks <= most;
                for (place, (ranks, nodes)) in RANKS.into_iter().enumerate() {
                    if !args.full && !has_time(place, ranks) {
                        continue;
                    }
                    one(program, library, ranks, None, index, args.cases)?;
                    one(program, library, ranks, Some(("ALLHANDS_TOPOLOGY", nodes)), index, args.cases)?;
                }
                for setting in SETTINGS {
                    one(program, library, 4, Some(setting), index, args.cases)?;
                }
                lend(&borrowed, library)?;
                learns(program, library)?;
                // Once is enough: what it calls is tested above.
                if index == 0 {
                    filters(library.command(4, &filter), "4 ranks of an MPI job")?;
                }
            }
        }
    }
    eprintln!("xtask: conformance of {} libraries in {:.0} s", libraries.len(), begun.elapsed().as_secs_f64());
    Ok(())
}

fn one(
    program: &Path,
    library: &Library,
    ranks: usize,
    setting: Option<(&str, &str)>,
    index: usize,
    cases: usize,
) -> Result<()> {
    // Every launch draws cases of its own, the same ones every time.
    let seed = 1000 * index + 10 * ranks + setting.map_or(0, |(name, _)| name.len());
    let mut command = library.command(ranks, program);
    command.args(["--cases", &cases.to_string(), "--seed", &seed.to_string()]);
    for name in ["ALLHANDS_TOPOLOGY", "ALLHANDS_SINGLE_COPY", "ALLHANDS_PROGRESS"] {
        command.env_remove(name);
    }
    command.envs(setting);
    let ended = launch(command, MOST)?;
    let set = setting.map_or(String::new(), |(name, value)| format!(" with {name}={value}"));
    let title = library.title;
    let right = ended.status.is_some_and(|status| status.success())
        && ended.out.contains(&format!("conformance: {ranks} ranks"))
        && ended.out.contains("all right")
        && ended.left.is_empty();
    if !right {
        return Err(ended.fault(&format!("{title} failed on {ranks} ranks{set}")));
    }
    eprintln!("xtask: {title}, {ranks} ranks{set}: {:.1} s", ended.time.as_secs_f64());
    Ok(())
}

/// The example program that filters, on such ranks.
fn filters(mut command: Command, ranks: &str) -> Result<()> {
    command.args(["--runs", "5"]);
    let ended = launch(command, MOST)?;
    let right = ended.status.is_some_and(|status| status.success())
        && ended.out.contains(&format!("fourier_filter: {ranks}"))
        && ended.out.contains("all right");
    if !right || !ended.left.is_empty() {
        return Err(ended.fault(&format!("the Fourier filter failed on {ranks}")));
    }
    eprintln!("xtask: the Fourier filter on {ranks}: {:.1} s", ended.time.as_secs_f64());
    Ok(())
}

/// Calls without a plan are right, and bits stay, while everybody is tried over and over.
fn learns(program: &Path, library: &Library) -> Result<()> {
    for (ranks, topology) in [(2, ""), (4, "2x2"), (5, "2,3")] {
        let mut command = library.command(ranks, program);
        command.args(["--cases", "0"]).env("ALLHANDS_LEARN", "eager").env("ALLHANDS_LOG", "1");
        command.env("ALLHANDS_TOPOLOGY", topology);
        let ended = launch(command, MOST)?;
        let title = format!("{}, calls without a plan that teach on {ranks} ranks {topology}", library.title);
        let right = ended.status.is_some_and(|status| status.success()) && ended.out.contains("all right");
        let said = ["mpi (a try, to learn who is fastest)", "(learned: "];
        if let Some(unsaid) = said.into_iter().find(|words| !ended.err.contains(words)) {
            return Err(ended.fault(&format!("{title}: {unsaid:?} is not said")));
        }
        if !right || !ended.left.is_empty() {
            return Err(ended.fault(&format!("{title} failed")));
        }
        eprintln!("xtask: {}: {:.1} s", title.trim_end(), ended.time.as_secs_f64());
    }
    Ok(())
}

/// A program with communicators of its own hands them over.
fn lend(program: &Path, library: &Library) -> Result<()> {
    let ended = launch(library.command(5, program), MOST)?;
    let title = library.title;
    let right =
        ended.status.is_some_and(|status| status.success()) && ended.out.contains("borrowed: 5 ranks, all right");
    if !right || !ended.left.is_empty() {
        return Err(ended.fault(&format!("{title} failed with a program's own communicators")));
    }
    eprintln!("xtask: {title}, a program's own communicators: {:.1} s", ended.time.as_secs_f64());
    Ok(())
}
