//! `allhands tune`: measure which algorithm is the fastest where, once, as at the installation of a library.

mod evaluate;
mod settle;
mod shapes;

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use allhands::{Comm, Threads, Topology, Tuning};
use allhands_schedule::{Choice, Collective, Problem};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};

use crate::args::{Seating, sizes};
use crate::failure::{Failure, Result};
use crate::{job, screen};
use settle::settle;

/// Measure which algorithm is the fastest where, and write a tuning file
///
/// On the ranks of an MPI job under mpirun, else on thread ranks. Measures every collective on the whole machine and on parts of it
/// (nodes and ranks in powers of two) at sizes in factors of 8: candidates take turns, those that are clearly slower drop out, until
/// the fastest is settled or the budget is spent. Under mpirun the MPI's own collective is a candidate too. The file is written
/// after every cell: a tuning that was interrupted goes on where it stopped when it is started again with the same file.
///
/// ALLHANDS_TUNING=FILE makes every program follow it; between what was measured times are interpolated.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  allhands tune --topology 2x4 --budget 2m --output threads.toml
  mpirun -n 8 allhands tune --output openmpi.toml
  mpirun -n 8 allhands tune --evaluate openmpi.toml
  allhands tune --check openmpi.toml")]
pub(crate) struct Tune {
    /// Only these collectives [default: allgather, alltoall, allreduce, reduce_scatter_block, bcast, reduce]
    collectives: Vec<String>,

    /// How long to measure: 30s, 5m, 1h
    #[arg(long, value_name = "TIME", default_value = "5m")]
    budget: String,

    /// The tuning file to write, or to go on with
    #[arg(long, value_name = "FILE", default_value = "allhands-tuning.toml")]
    output: PathBuf,

    /// Sizes, from..to
    #[arg(long, value_name = "FROM..TO", default_value = "8..1M")]
    bytes: String,

    #[command(flatten)]
    seating: Seating,

    /// Measure the choices that FILE leads to beside everything else, on shapes and at sizes that were not tuned
    #[arg(long, value_name = "FILE", conflicts_with = "check")]
    evaluate: Option<PathBuf>,

    /// Say what FILE holds, or what is wrong with it
    #[arg(long, value_name = "FILE")]
    check: Option<PathBuf>,
}

/// What ends a tuning early.
enum Stop {
    Failed(allhands::Error),
    Wrong(Option<String>),
}

impl From<allhands::Error> for Stop {
    fn from(error: allhands::Error) -> Stop {
        Stop::Failed(error)
    }
}

const COLLECTIVES: [Collective; 6] = [
    Collective::Allreduce,
    Collective::Allgather,
    Collective::Alltoall,
    Collective::ReduceScatterBlock,
    Collective::Bcast,
    Collective::Reduce,
];

/// What all ranks do together.
struct Work {
    collectives: Vec<Collective>,
    sizes: Vec<usize>,
    topology: Option<Topology>,
    budget: Duration,
    /// What the file holds already, and the file; or the file to evaluate.
    begun: Tuning,
    evaluates: bool,
    output: PathBuf,
}

impl Tune {
    pub(crate) fn run(&self) -> Result<()> {
        if let Some(file) = &self.check {
            return if job::first() { check(file) } else { Ok(()) };
        }
        let collectives: Vec<Collective> = match self.collectives.is_empty() {
            true => COLLECTIVES.into(),
            false => self.collectives.iter().map(|name| Ok(name.parse()?)).collect::<Result<_>>()?,
        };
        let begun = match &self.evaluate {
            Some(file) => read(file)?,
            None if self.output.exists() => read(&self.output)?,
            None => Tuning::default(),
        };
        let work = Work {
            collectives,
            sizes: self.sizes()?,
            topology: self.seating.resolve()?,
            budget: time(&self.budget)?,
            begun,
            evaluates: self.evaluate.is_some(),
            output: self.output.clone(),
        };
        match job::launched() {
            Some(_) => job::run(|comm, _| {
                let seated = work.topology.clone().map(|topology| comm.seated(topology)).transpose()?;
                work.rank(seated.as_ref().unwrap_or(comm))
            }),
            None => {
                let topology = work.topology.clone().map_or_else(|| Topology::regular(2, 4), Ok)?;
                let first: Mutex<Result<()>> = Mutex::new(Ok(()));
                let ranks = Threads::new(topology).timeout(Duration::from_secs(300)).run(|comm| {
                    let outcome = work.rank(comm)?;
                    if comm.rank() == 0 {
                        *first.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = outcome;
                    }
                    Ok(())
                });
                ranks.map_err(|error| Failure::Wrong(error.to_string()))?;
                first.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
            }
        }
    }

    fn sizes(&self) -> Result<Vec<usize>> {
        let sizes = sizes(&self.bytes, 8, 1 << 30)?;
        if sizes.contains(&0) {
            let text = &self.bytes;
            return Err(Failure::Usage(format!(
                "--bytes {text}: nothing takes no time to measure; begin with 1 or more"
            )));
        }
        Ok(sizes.into_iter().map(|size| size as usize).collect())
    }
}

impl Work {
    /// What one rank does; the outer error is the library's, the inner one what all ranks find alike.
    fn rank(&self, comm: &Comm) -> allhands::Result<Result<()>> {
        let outcome = if self.evaluates { self.evaluate(comm) } else { self.tune(comm) };
        match outcome {
            Ok(done) => Ok(done),
            Err(Stop::Failed(error)) => Err(error),
            Err(Stop::Wrong(Some(reason))) => Ok(Err(Failure::Rank { rank: Some(comm.rank()), reason })),
            Err(Stop::Wrong(None)) => Ok(Err(Failure::Elsewhere)),
        }
    }

    fn evaluate(&self, comm: &Comm) -> std::result::Result<Result<()>, Stop> {
        if let Err(foreign) = self.same_transport(comm) {
            return Ok(Err(foreign));
        }
        let bar = bar(comm, evaluate::cells(comm, self.collectives.len(), &self.sizes));
        let regrets = evaluate::evaluate(comm, &self.begun, &self.collectives, &self.sizes, &bar)?;
        bar.finish_and_clear();
        Ok(if comm.rank() == 0 { evaluate::show(&regrets) } else { Ok(()) })
    }

    fn same_transport(&self, comm: &Comm) -> Result<()> {
        let (made, here) = (&self.begun.transport, comm.transport());
        if self.begun.cells.is_empty() || *made == here {
            return Ok(());
        }
        Err(Failure::Usage(format!("the tuning file was made for {made}, but this is {here}; name another file")))
    }

    fn tune(&self, comm: &Comm) -> std::result::Result<Result<()>, Stop> {
        if let Err(foreign) = self.same_transport(comm) {
            return Ok(Err(foreign));
        }
        let shapes = shapes::tuned(comm.topology());
        let bar = bar(comm, shapes.len() * self.collectives.len() * self.sizes.len());
        let mut tuning = Tuning::new(&comm.transport());
        tuning.about = about(comm);
        tuning.cells = self.begun.cells.clone();
        let begin = Instant::now();
        let mut left = 0;
        for shape in shapes {
            let part = shapes::part(comm, shape)?;
            for &collective in &self.collectives {
                for &bytes in &self.sizes {
                    bar.set_message(format!("{collective} on {}x{}, {bytes} bytes", shape.0, shape.1));
                    bar.inc(1);
                    // Rank 0, which is part of every shape, says whether the cell is needed and there is time for it.
                    let known = tuning.cells.iter().any(|cell| {
                        (cell.collective.as_str(), cell.nodes, cell.ranks_per_node, cell.bytes)
                            == (collective.name(), shape.0, shape.1, bytes)
                    });
                    let mut go = [u8::from(!known && begin.elapsed() < self.budget)];
                    comm.bcast(&mut go, 0)?;
                    if go[0] == 0 {
                        left += usize::from(!known);
                        continue;
                    }
                    if let Some(part) = &part {
                        tuning.cells.push(settle(part, collective, bytes, candidates(part, collective))?);
                    }
                    if comm.rank() == 0
                        && let Err(error) = write(&self.output, &tuning)
                    {
                        return Ok(Err(error));
                    }
                }
            }
        }
        comm.barrier()?;
        bar.finish_and_clear();
        if comm.rank() > 0 {
            return Ok(Ok(()));
        }
        Ok(summary(&self.output, &tuning, left))
    }
}

/// What is worth measuring: every algorithm with its defaults, its near part through shared memory where it has one, and, on
/// MPI ranks, the library's own.
fn candidates(comm: &Comm, collective: Collective) -> Vec<String> {
    let problem = Problem::new(collective, comm.topology().clone());
    let mut names: Vec<String> = Vec::new();
    for algorithm in allhands_schedule::algorithms(collective) {
        let shared = format!("{}:local=shared", algorithm.name);
        for name in [algorithm.name, shared.as_str()] {
            let serves = Choice::parse(collective, name).is_ok_and(|choice| choice.prepare(&problem).is_ok());
            if serves {
                names.push(name.into());
            }
        }
    }
    if comm.transport() != "threads" {
        names.push("mpi".into());
    }
    names
}

fn bar(comm: &Comm, steps: usize) -> ProgressBar {
    if comm.rank() > 0 || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(steps as u64);
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos}/{len} {msg} {eta}") {
        bar.set_style(style);
    }
    bar
}

/// Where and when, as far as the system tells.
fn about(comm: &Comm) -> std::collections::BTreeMap<String, String> {
    let file = |path: &str| std::fs::read_to_string(path).map(|text| text.trim().to_string());
    let mut about = std::collections::BTreeMap::new();
    about.insert("topology".into(), comm.topology().to_string());
    about.insert("command".into(), std::env::args().collect::<Vec<_>>().join(" "));
    if let Ok(host) = file("/proc/sys/kernel/hostname") {
        about.insert("host".into(), host);
    }
    if let Ok(load) = file("/proc/loadavg") {
        about.insert("load".into(), load);
    }
    if let Ok(since) = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH) {
        about.insert("seconds_since_1970".into(), since.as_secs().to_string());
    }
    about
}

fn read(file: &Path) -> Result<Tuning> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| Failure::Usage(format!("{} cannot be read: {error}; name a tuning file", file.display())))?;
    text.parse().map_err(|error| Failure::Usage(format!("{}: {error}", file.display())))
}

/// Through a file beside it, so that whoever reads it finds a whole one.
fn write(file: &Path, tuning: &Tuning) -> Result<()> {
    let beside = file.with_extension("part");
    std::fs::write(&beside, tuning.to_string()).and_then(|()| std::fs::rename(&beside, file)).map_err(|error| {
        Failure::Usage(format!("{} cannot be written: {error}; name another --output", file.display()))
    })
}

fn check(file: &Path) -> Result<()> {
    let tuning = read(file)?;
    summary(file, &tuning, 0)
}

/// What a file holds: for every collective, how often each algorithm is the fastest.
fn summary(file: &Path, tuning: &Tuning, left: usize) -> Result<()> {
    let mut out = screen::stdout();
    writeln!(out, "{}: {} cells for {}", file.display(), tuning.cells.len(), tuning.transport)?;
    let mut table = screen::table(&["collective", "cells", "fastest, and in how many cells"]);
    for collective in Collective::ALL {
        let cells = tuning.cells.iter().filter(|cell| cell.collective == collective.name());
        let mut wins = std::collections::BTreeMap::<&str, usize>::new();
        cells.clone().filter_map(|cell| cell.times.first()).for_each(|time| {
            *wins.entry(time.algorithm.as_str()).or_default() += 1;
        });
        let mut wins: Vec<(&str, usize)> = wins.into_iter().collect();
        wins.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        if !wins.is_empty() {
            let list: Vec<String> = wins.iter().map(|(name, count)| format!("{name} {count}")).collect();
            table.add_row([collective.name().into(), cells.count().to_string(), list.join(", ")]);
        }
    }
    writeln!(out, "{}", table.trim_fmt())?;
    if left > 0 {
        writeln!(out, "the budget is spent; {left} cells are left: start it again with the same file to go on")?;
    }
    Ok(())
}

/// `90s`, `5m`, `1h`.
fn time(text: &str) -> Result<Duration> {
    let wrong = || Failure::Usage(format!("{text}: not a time; write 30s, 5m or 1h"));
    let (number, unit) = text.split_at(text.len() - text.chars().last().map_or(0, char::len_utf8));
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return Err(wrong()),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    number.checked_mul(seconds).map(Duration::from_secs).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(time("5m").unwrap(), Duration::from_secs(300));
        assert_eq!(time("30s").unwrap(), Duration::from_secs(30));
        for wrong in ["", "5", "m", "5d", "-1s", "99999999999999999999h"] {
            assert!(time(wrong).unwrap_err().to_string().contains("write 30s, 5m or 1h"), "{wrong}");
        }
    }
}
