//! `allhands tune`: measure which algorithm is the fastest where, once, as at the installation of a library.

mod candidates;
mod evaluate;
mod files;
mod machine;
mod settle;
mod shapes;

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use allhands::{Comm, Threads, Topology, Tuning};
use allhands_model::Machine;
use allhands_schedule::Collective;
use clap::Args;
use indicatif::ProgressBar;

use crate::args::{Seating, sizes};
use crate::failure::{Failure, Result};
use crate::{host, job, screen};
use settle::settle;
use shapes::Shape;

/// Measure which algorithm is the fastest where, and write a tuning file
///
/// On the ranks of an MPI job under mpirun, else on thread ranks. First measures the machine, in at most a quarter of the budget: what
/// messages cost by level, size, and how many are sent at once, and what copies, reductions and meetings do. That is the machine file,
/// FILE.machine.toml beside FILE.toml, which allhands simulate --machine takes too.
///
/// Then every collective on the whole machine and on parts of it (nodes and ranks in powers of two, and three) at sizes in factors of 8. The
/// candidates of a cell are the best few by the model of the machine, what was the fastest in cells nearby, what the library chooses now
/// and, under mpirun, the MPI's own collective. They take turns; those that are clearly slower drop out, until the fastest is settled or
/// the cell's share of the budget is spent. A bcast or reduce is timed with a barrier after it. The file is written after every cell: a tuning that was interrupted goes on where it stopped
/// when it is started again with the same file, without measuring the machine again.
///
/// ALLHANDS_TUNING=FILE makes every program follow it; between what was measured times are interpolated.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  allhands tune --topology 2x4 --budget 2m --output threads.toml
  mpirun -n 8 allhands tune --output openmpi.toml
  mpirun -n 8 allhands tune --evaluate openmpi.toml
  allhands tune --merge monday.toml tuesday.toml --output openmpi.toml
  allhands tune --check openmpi.toml")]
pub(crate) struct Tune {
    /// Only these collectives [default: allgather, alltoall, allreduce, reduce_scatter_block, bcast, reduce]
    collectives: Vec<String>,

    /// How long to measure: 30s, 5m, 1h; an evaluation too
    #[arg(long, value_name = "TIME", default_value = "5m")]
    budget: String,

    /// The tuning file to write, or to go on with; its machine file FILE.machine.toml is written beside it
    #[arg(long, value_name = "FILE", default_value = "allhands-tuning.toml")]
    output: PathBuf,

    /// Sizes, from..to
    #[arg(long, value_name = "FROM..TO", default_value = "8..1M")]
    bytes: String,

    #[command(flatten)]
    seating: Seating,

    /// Measure the choices that FILE leads to beside everything else, on shapes and at sizes that were not tuned. The best is found
    /// in one half of the rounds and compared in the other, so that it owes nothing to luck
    #[arg(long, value_name = "FILE", conflicts_with_all = ["check", "merge"])]
    evaluate: Option<PathBuf>,

    /// Write what several files of one transport know into --output; where they know the same cell, what was measured more often counts
    #[arg(long, value_name = "FILE", num_args = 2.., requires = "output", conflicts_with = "check")]
    merge: Vec<PathBuf>,

    /// Say what FILE holds, or what is wrong with it
    #[arg(long, value_name = "FILE")]
    check: Option<PathBuf>,
}

/// Seconds for a cell that is measured although the budget is spent.
const LEAST: f64 = 0.05;

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

const COLLECTIVES: [Collective; 10] = [
    Collective::Allreduce,
    Collective::Allgather,
    Collective::Alltoall,
    Collective::ReduceScatterBlock,
    Collective::Bcast,
    Collective::Reduce,
    Collective::Gather,
    Collective::Scatter,
    Collective::Scan,
    Collective::Exscan,
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
            return if job::first() { files::check(file) } else { Ok(()) };
        }
        if !self.merge.is_empty() {
            return if job::first() { files::merge(&self.merge, &self.output) } else { Ok(()) };
        }
        let collectives: Vec<Collective> = match self.collectives.is_empty() {
            true => COLLECTIVES.into(),
            false => self.collectives.iter().map(|name| Ok(name.parse()?)).collect::<Result<_>>()?,
        };
        if let Some(collective) = collectives.iter().find(|collective| collective.has_graph()) {
            return Err(Failure::Usage(format!(
                "what serves {collective} is chosen for its graph, of which a tuning file knows nothing; leave it out"
            )));
        }
        let begun = match &self.evaluate {
            Some(file) => files::read(file)?,
            None if self.output.exists() => files::read(&self.output)?,
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
        let load = host::load();
        match job::launched() {
            Some(_) => job::run(|comm, _| {
                let crowd = host::of_job(comm, load)?;
                if comm.rank() == 0 {
                    screen::caution(crowd);
                }
                let seated = work.topology.clone().map(|topology| comm.seated(topology)).transpose()?;
                work.rank(seated.as_ref().unwrap_or(comm))
            }),
            None => {
                let topology = work.topology.clone().map_or_else(|| Topology::regular(2, 4), Ok)?;
                screen::caution(host::of_threads(topology.ranks(), load));
                let first: Mutex<Result<()>> = Mutex::new(Ok(()));
                let ranks = Threads::new(topology).timeout(Duration::from_secs(300) + work.budget).run(|comm| {
                    let outcome = work.rank(comm)?;
                    let mut first = first.lock().unwrap_or_else(PoisonError::into_inner);
                    // Who knows the cause; the others know that there is one.
                    if first.is_ok() && !matches!(outcome, Err(Failure::Elsewhere)) {
                        *first = outcome;
                    }
                    Ok(())
                });
                first.into_inner().unwrap_or_else(PoisonError::into_inner)?;
                ranks.map(|_| ()).map_err(|error| Failure::Wrong(error.to_string()))
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
            Err(Stop::Wrong(Some(reason))) => {
                Ok(Err(Failure::Rank { rank: Some(comm.rank()), reason, follows: false }))
            }
            Err(Stop::Wrong(None)) => Ok(Err(Failure::Elsewhere)),
        }
    }

    fn evaluate(&self, comm: &Comm) -> std::result::Result<Result<()>, Stop> {
        if let Err(foreign) = self.same_transport(comm) {
            return Ok(Err(foreign));
        }
        let cells = evaluate::cells(comm, self.collectives.len(), &self.sizes);
        let bar = screen::progress("evaluating", cells, comm.rank() == 0);
        let seconds = self.budget.as_secs_f64() / cells.max(1) as f64;
        let regrets = evaluate::evaluate(comm, &self.begun, &self.collectives, &self.sizes, seconds, &bar)?;
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
        if let Err(failure) = files::told(comm, || files::writable(&self.output))? {
            return Ok(Err(failure));
        }
        let cells = self.cells(comm);
        let bar = screen::progress("tuning", cells.len() + comm.topology().depth() + 2, comm.rank() == 0);
        let begin = Instant::now();
        let machine = match self.machine(comm, &bar)? {
            Ok(machine) => machine,
            Err(failure) => return Ok(Err(failure)),
        };
        let mut tuning = Tuning::new(&comm.transport());
        tuning.about = files::about(comm);
        tuning.cells = self.begun.cells.clone();
        let mut parts = Vec::new();
        for shape in shapes::tuned(comm.topology()) {
            parts.push((shape, shapes::part(comm, shape)?));
        }
        let (mut left, mut measured) = (0, 0);
        for (index, cell) in cells.iter().enumerate() {
            let part = parts.iter().find(|(shape, _)| *shape == cell.shape).and_then(|(_, part)| part.as_ref());
            bar.set_message(format!("{} on {}x{}, {} bytes", cell.collective, cell.shape.0, cell.shape.1, cell.bytes));
            bar.inc(1);
            // Rank 0, which is part of every shape, says whether the cell is needed and how much time there is for it.
            let known = tuning.cells.iter().any(|known| cell.is(known));
            let remaining = self.budget.as_secs_f64() - begin.elapsed().as_secs_f64();
            // Every start measures one cell at least: whoever starts again and again comes to the end.
            let least = if measured == 0 { LEAST } else { 0.0 };
            let mut seconds = [if known { 0.0 } else { (remaining / (cells.len() - index) as f64).max(least) }];
            comm.bcast(&mut seconds, 0)?;
            if seconds[0] <= 0.0 {
                left += usize::from(!known);
                continue;
            }
            measured += 1;
            if let Some(part) = part {
                let names = candidates::few(part, cell.collective, cell.bytes, &machine, &tuning.cells)?;
                tuning.cells.push(settle(part, cell.collective, cell.bytes, &names, seconds[0])?);
            }
            shapes::rest(comm)?;
            if let Err(failure) = files::told(comm, || files::write(&self.output, &tuning.to_string()))? {
                return Ok(Err(failure));
            }
        }
        bar.finish_and_clear();
        if comm.rank() > 0 {
            return Ok(Ok(()));
        }
        Ok(files::summary(&self.output, &tuning, left))
    }

    /// What there is to measure: every other size of everything first, so that a tuning that ends early knows a little about all.
    fn cells(&self, comm: &Comm) -> Vec<TuneCell> {
        let mut cells = Vec::new();
        for first in [0, 1] {
            for shape in shapes::tuned(comm.topology()) {
                for &collective in &self.collectives {
                    let sizes = self.sizes.iter().skip(first).step_by(2);
                    cells.extend(sizes.map(|&bytes| TuneCell { shape, collective, bytes }));
                }
            }
        }
        cells
    }

    /// The machine that this is: from its file if there is one of the same ranks, else measured and written there.
    fn machine(&self, comm: &Comm, bar: &ProgressBar) -> std::result::Result<Result<Machine>, Stop> {
        let file = allhands::machine_file(&self.output);
        let host = files::host().unwrap_or_else(|| "unknown".into());
        let here = format!("{} ranks of {} as {} on {host}", comm.size(), comm.transport(), comm.topology());
        let text = std::fs::read_to_string(&file).ok().filter(|text| {
            Machine::parse(text).is_ok_and(|machine| machine.description.starts_with(&here)) && comm.rank() == 0
        });
        let mut text = files::agreed(comm, text)?;
        if text.is_empty() {
            let seconds = MACHINE_SHARE * self.budget.as_secs_f64();
            text = files::agreed(comm, machine::measure(comm, seconds, &host, &here, bar)?)?;
            if let Err(failure) = files::told(comm, || files::write(&file, &text))? {
                return Ok(Err(failure));
            }
        }
        let wrong = |error| Failure::Wrong(format!("what was measured makes no machine: {error}"));
        Ok(Machine::parse(&text).map_err(wrong))
    }
}

/// At most so much of the budget is for the machine.
const MACHINE_SHARE: f64 = 0.25;

/// A cell to be measured.
struct TuneCell {
    shape: Shape,
    collective: Collective,
    bytes: usize,
}

impl TuneCell {
    fn is(&self, cell: &allhands::Cell) -> bool {
        (cell.collective.as_str(), cell.nodes, cell.ranks_per_node, cell.bytes)
            == (self.collective.name(), self.shape.0, self.shape.1, self.bytes)
    }
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
