//! `allhands bench`: how long collectives take on the ranks of an MPI job, or on thread ranks of this machine.

pub(super) mod measure;
mod names;
pub(super) mod report;
mod turns;
mod values;
pub(super) mod verdict;

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use allhands::{Comm, Options, Threads, Topology};
use allhands_mpi::Launcher;
use allhands_schedule::Collective;
use clap::{Args, ValueEnum};

use crate::args::{Seating, shape, sizes};
use crate::failure::{Failure, Result};
use crate::screen::{self, counted};
use crate::{host, job};
use indicatif::ProgressBar;
use measure::{Job, Measured};
use names::Names;
use report::{Report, Timing};

/// Measure collectives: on the ranks of an MPI job under mpirun, else on thread ranks of this machine
///
/// Started by mpirun, the ranks are the job's, on whichever MPI that is; --topology then makes them behave as if they sat like
/// that. Otherwise ranks are threads of this process, and no MPI is needed.
///
/// Algorithms take turns, in an order shuffled for each iteration, after a warm-up. An iteration is a batch of runs back to back,
/// long enough for the clock and for ranks that do not begin at once: 50 microseconds or more with the fastest algorithm of the
/// size, and equally many runs with all. Its time is that of the slowest rank, divided by the runs; with --isolated, runs of a
/// batch are apart, and only they are timed. The output is
/// spoilt before every batch and compared with a reference after it. Times depend on what else runs here: compare
/// columns of one run with each other, not runs. Who is not certainly slower than the fastest, by 2 % or more, ties with it.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  allhands bench allreduce
  allhands bench allgather --algorithm bruck,loc-bruck:fan=full --topology 4x2 --bytes 8..64K
  allhands bench alltoall --algorithm all --format csv > alltoall.csv
  mpirun -n 8 allhands bench allgather --algorithm all,mpi --topology 2x4
  mpirun -n 2 allhands bench allreduce --algorithm auto,mpi --isolated")]
pub(crate) struct Bench {
    /// allgather(v), alltoall(v), allreduce, reduce_scatter(_block), bcast, reduce or barrier
    collective: String,

    /// What to compare: names with parameters, separated by blanks or by commas between names; auto, the library's own
    /// choice; all, which is auto and every algorithm; mpi, the MPI library's own collective
    #[arg(long, value_name = "NAME|all|auto|mpi", default_value = "all")]
    algorithm: String,

    #[command(flatten)]
    seating: Seating,

    /// Sizes, as in explain: of one block, or of the whole vector; a range goes up in factors of 8
    #[arg(long, value_name = "FROM..TO", default_value = "8..1M")]
    bytes: String,

    /// Iterations of each algorithm and size [default: as many as fit into about 15 s in all, at least 5]
    #[arg(long, value_name = "N")]
    iterations: Option<usize>,

    /// Time every run alone, after its input was written anew and all ranks have met: as programs call. Without it runs follow each
    /// other on warm buffers, which flatters
    #[arg(long)]
    isolated: bool,

    /// How to show the results
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum Format {
    Table,
    Json,
    Csv,
    Svg,
}

/// What the command line asks for.
struct Request {
    collective: Collective,
    topology: Option<Topology>,
    sizes: Vec<usize>,
    names: Names,
}

/// More threads than a bench is good for.
const MOST_THREADS: usize = 256;

impl Bench {
    pub(crate) fn run(&self) -> Result<()> {
        let collective: Collective = self.collective.parse()?;
        if self.iterations == Some(0) {
            return Err(Failure::Usage("--iterations 0 measures nothing; ask for 1 or more".into()));
        }
        let request = Request {
            collective,
            topology: self.seating.resolve()?,
            sizes: if collective == Collective::Barrier { vec![0] } else { self.sizes()? },
            names: Names::parse(collective, &self.algorithm)?,
        };
        match job::launched() {
            Some(launcher) => self.on_mpi(request, &launcher),
            None => self.on_threads(request),
        }
    }

    fn on_threads(&self, request: Request) -> Result<()> {
        let topology = request.topology.clone().map_or_else(|| Topology::regular(2, 4), Ok)?;
        if topology.ranks() > MOST_THREADS {
            let ranks = topology.ranks();
            return Err(Failure::Usage(format!(
                "{ranks} ranks are more threads than a bench is good for; ask for at most {MOST_THREADS}"
            )));
        }
        if request.names.of_mpi() {
            return Err(Failure::Usage(
                "--algorithm mpi: the MPI library's own collective needs MPI ranks; start the command with mpirun, or leave mpi out".into(),
            ));
        }
        let names = request.names.serving(request.collective, &topology)?;
        screen::caution(host::of_threads(topology.ranks(), host::load()));
        let bar = screen::progress("measuring", request.sizes.len() * names.len(), true);
        let show = Show::new(self.report(&request, &names, counted(topology.ranks(), "thread rank"), &topology), &bar);
        let job = Job {
            collective: request.collective,
            transport: "threads",
            names: &names,
            sizes: &request.sizes,
            iterations: self.iterations,
            warm_up: measure::WARM_UP,
            isolated: self.isolated,
            bar: &bar,
            sink: &|lines| show.add(lines),
        };
        let ranks = Threads::new(topology).timeout(Duration::from_secs(120)).run(|comm| job.rank(comm));
        bar.finish_and_clear();
        for measured in ranks.map_err(|error| Failure::Wrong(error.to_string()))? {
            if let Measured::Wrong(reason) = measured {
                return Err(Failure::Wrong(reason));
            }
        }
        show.end()
    }

    fn on_mpi(&self, request: Request, launcher: &Launcher) -> Result<()> {
        if let (Some(topology), Some(ranks)) = (&request.topology, launcher.size) {
            self.seats_all(topology, ranks)?;
        }
        let load = host::load();
        job::run(|comm, mpi| {
            let seated;
            let crowd = host::of_job(comm, load)?;
            let comm = match request.topology.clone() {
                Some(topology) => {
                    if let Err(refused) = self.seats_all(&topology, comm.size()) {
                        return Ok(Err(refused));
                    }
                    seated = comm.seated(topology)?;
                    &seated
                }
                None => comm,
            };
            let names = match request.names.serving(request.collective, comm.topology()) {
                Ok(names) => names,
                Err(refused) => return Ok(Err(refused)),
            };
            let first = comm.rank() == 0;
            let bar = screen::progress("measuring", request.sizes.len() * names.len(), first);
            let version = comm.transport();
            let ranks = format!("{} of {version} ({})", counted(comm.size(), "rank"), job::file(mpi));
            let show = Show::new(self.report(&request, &names, ranks, comm.topology()), &bar);
            if first {
                screen::caution(crowd);
            }
            let job = Job {
                collective: request.collective,
                transport: &version,
                names: &names,
                sizes: &request.sizes,
                iterations: self.iterations,
                warm_up: measure::WARM_UP,
                isolated: self.isolated,
                bar: &bar,
                sink: &|lines| show.add(lines),
            };
            let measured = job.rank(comm)?;
            bar.finish_and_clear();
            Ok(match measured {
                Measured::All if first => show.end(),
                Measured::All => Ok(()),
                Measured::Wrong(reason) => Err(Failure::Rank { rank: Some(comm.rank()), reason, follows: false }),
                Measured::WrongElsewhere => Err(Failure::Elsewhere),
            })
        })
    }

    /// What is going to be shown, before anything is measured.
    fn report(&self, request: &Request, names: &[String], ranks: String, topology: &Topology) -> Report {
        let isolated = if self.isolated { ", isolated calls" } else { "" };
        Report {
            format: self.format,
            collective: request.collective,
            title: format!("{} on {ranks}{isolated}, {}", request.collective, shape(topology)),
            longest: names
                .iter()
                .map(|name| if name == names::AUTO { names::LONG_AUTO } else { name.len() })
                .max()
                .unwrap_or(0),
            mpi: request.names.of_mpi(),
            lines: vec![],
        }
    }

    /// That the topology has a seat for every rank of the job.
    fn seats_all(&self, topology: &Topology, ranks: usize) -> Result<()> {
        let (text, seats) = (self.seating.written(), topology.ranks());
        if seats == ranks {
            return Ok(());
        }
        Err(Failure::Usage(format!(
            "--topology {text} has {seats} seats, but the job has {ranks} ranks; give every rank one, or start {seats} ranks"
        )))
    }

    fn sizes(&self) -> Result<Vec<usize>> {
        Ok(sizes(&self.bytes, 8, 1 << 30)?.into_iter().map(|size| size as usize).collect())
    }
}

/// A report while ranks measure: what cannot be written ends them all.
struct Show<'a> {
    report: Mutex<(Report, Result<()>)>,
    bar: &'a ProgressBar,
}

impl<'a> Show<'a> {
    fn new(report: Report, bar: &'a ProgressBar) -> Show<'a> {
        Show { report: Mutex::new((report, Ok(()))), bar }
    }

    /// Whether somebody still reads.
    fn add(&self, lines: &[Timing]) -> bool {
        let mut report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
        report.1 = self.bar.suspend(|| report.0.add(lines));
        report.1.is_ok()
    }

    fn end(self) -> Result<()> {
        let (report, written) = self.report.into_inner().unwrap_or_else(PoisonError::into_inner);
        written?;
        report.end()
    }
}

/// The algorithm that the library chooses for so many bytes where a call names none.
pub(super) fn chosen(collective: Collective, comm: &Comm, bytes: usize) -> allhands::Result<String> {
    match bytes.is_multiple_of(8) && collective != Collective::Barrier {
        true => Ok(values::plan::<f64>(collective, comm, bytes / 8, &Options::new())?.algorithm()),
        false => Ok(values::plan::<u8>(collective, comm, bytes, &Options::new())?.algorithm()),
    }
}
