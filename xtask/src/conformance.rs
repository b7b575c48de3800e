//! `cargo xtask conformance`: the conformance suite as jobs of every MPI library.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::launch::launch;
use crate::libraries::{self, Library};
use crate::{Result, build, mpi};

/// Numbers of ranks, and nodes for each that the ranks are told they sit on.
const RANKS: [(usize, &str); 6] = [(1, "1"), (2, "2x1"), (3, "1,2"), (4, "2x2"), (7, "3,4"), (8, "4x2")];

/// More than any launch needs on two busy cores.
const MOST: Duration = Duration::from_secs(120);

/// What is to be run.
pub(crate) struct Wish {
    pub(crate) library: Option<String>,
    ranks: Option<usize>,
    cases: usize,
}

impl Wish {
    /// `[LIBRARY] [-n RANKS] [--cases C]`, in any order.
    pub(crate) fn parse(words: &[&str]) -> Option<Wish> {
        let mut wish = Wish { library: None, ranks: None, cases: 100 };
        let mut words = words.iter();
        while let Some(&word) = words.next() {
            match word {
                "-n" => wish.ranks = Some(words.next()?.parse().ok()?),
                "--cases" => wish.cases = words.next()?.parse().ok()?,
                name if !name.starts_with('-') && wish.library.is_none() => wish.library = Some(name.into()),
                _ => return None,
            }
        }
        Some(wish)
    }

    /// The libraries that are meant.
    pub(crate) fn libraries(&self) -> Result<Vec<Library>> {
        match &self.library {
            Some(name) => Ok(vec![libraries::named(name)?]),
            None => Ok(libraries::all()),
        }
    }
}

pub(crate) fn by_hand(wish: &Wish) -> Result<()> {
    mpi::install()?;
    run(&build()?, &wish.libraries()?, wish)
}

/// Builds the program once for all launches; where cargo put it.
pub(crate) fn build() -> Result<PathBuf> {
    build::program(&["--package", "allhands", "--example", "conformance"])
}

/// Two jobs for every library and number of ranks: seated as the ranks really are, and as they are told. Stops at the first
/// that fails.
pub(crate) fn run(program: &Path, libraries: &[Library], wish: &Wish) -> Result<()> {
    let begun = Instant::now();
    for (index, library) in libraries.iter().enumerate() {
        match wish.ranks {
            Some(ranks) => one(program, library, ranks, None, index, wish.cases)?,
            None => {
                for (ranks, nodes) in RANKS {
                    one(program, library, ranks, None, index, wish.cases)?;
                    one(program, library, ranks, Some(nodes), index, wish.cases)?;
                }
            }
        }
    }
    eprintln!("xtask: conformance of {} libraries in {:.0} s", libraries.len(), begun.elapsed().as_secs_f64());
    Ok(())
}

fn one(program: &Path, library: &Library, ranks: usize, nodes: Option<&str>, index: usize, cases: usize) -> Result<()> {
    // Every launch draws cases of its own, the same ones every time.
    let seed = 1000 * index + 10 * ranks + usize::from(nodes.is_some());
    let mut command = library.command(ranks, program);
    command.args(["--cases", &cases.to_string(), "--seed", &seed.to_string()]);
    match nodes {
        Some(nodes) => command.env("ALLHANDS_TOPOLOGY", nodes),
        None => command.env_remove("ALLHANDS_TOPOLOGY"),
    };
    let ended = launch(command, MOST)?;
    let (title, seated) = (library.title, nodes.map_or(String::new(), |nodes| format!(" as {nodes}")));
    let right = ended.status.is_some_and(|status| status.success())
        && ended.out.contains(&format!("conformance: {ranks} ranks"))
        && ended.out.contains("all right")
        && ended.left.is_empty();
    if !right {
        return Err(ended.fault(&format!("{title} failed on {ranks} ranks{seated}")));
    }
    eprintln!("xtask: {title}, {ranks} ranks{seated}: {:.1} s", ended.time.as_secs_f64());
    Ok(())
}
