//! `allhands bench`: how long collectives take on the ranks of an MPI job, or on thread ranks of this machine.

pub(super) mod measure;
mod names;
pub(super) mod report;
mod turns;
pub(super) mod values;
pub(super) mod verdict;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use allhands::{Comm, Options, Threads, Topology};
use allhands_mpi::Launcher;
use allhands_schedule::{Collective, Written};
use clap::{Args, ValueEnum};

use crate::args::{Seating, shape, sizes};
use crate::failure::{Failure, Result};
use crate::screen::{self, counted};
use crate::{host, job};
use indicatif::ProgressBar;
use measure::{Job, Measured};
use names::Names;
use report::{Report, Timing};
use values::Called;

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
  mpirun -n 2 allhands bench allreduce --algorithm auto,mpi --isolated
  allhands bench --file mine.txt")]
pub(crate) struct Bench {
    /// One that `allhands list` names, such as allreduce, alltoallv or scan
    #[arg(required_unless_present = "file")]
    collective: Option<String>,

    /// What to compare: names with parameters, separated by blanks or by commas between names; auto, the library's own
    /// choice; all, which is auto and every algorithm; mpi, the MPI library's own collective; @FILE, the schedule in a file
    #[arg(long, value_name = "NAME|all|auto|mpi|@FILE", default_value = "all")]
    algorithm: String,

    /// Measure the schedule in this file, for its collective and topology, beside the others: as --algorithm all,@FILE does. In the form that
    /// `allhands explain --format schedule` prints; - is the standard input
    #[arg(long, value_name = "F", conflicts_with_all = ["collective", "topology", "placement"])]
    file: Option<String>,

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
    called: Called,
    topology: Option<Topology>,
    sizes: Vec<usize>,
    names: Names,
}

/// More threads than a bench is good for.
const MOST_THREADS: usize = 256;

impl Bench {
    pub(crate) fn run(&self) -> Result<()> {
        if self.iterations == Some(0) {
            return Err(Failure::Usage("--iterations 0 measures nothing; ask for 1 or more".into()));
        }
        match job::launched() {
            Some(launcher) => self.on_mpi(&launcher),
            None => self.on_threads(),
        }
    }

    /// What is asked for, by the command line or by the schedule in its file.
    fn request(&self, written: Option<&Written>) -> Result<Request> {
        let problem = written.map(|written| &written.ensemble().problem);
        let (called, topology) = match (problem, &self.collective) {
            (Some(problem), _) => (Called::of(problem), Some(problem.topology.clone())),
            (None, Some(name)) => (Called::new(name.parse()?), self.seating.resolve()?),
            (None, None) => return Err(Failure::Usage("name a collective to measure, or a --file".into())),
        };
        let names = Names::parse(called.collective, &self.algorithm)?;
        Ok(Request {
            topology,
            sizes: if called.collective == Collective::Barrier { vec![0] } else { self.sizes()? },
            names: match &self.file {
                Some(file) => names.beside(file),
                None => names,
            },
            called,
        })
    }

    fn on_threads(&self) -> Result<()> {
        let own = self.file.as_deref().map(allhands::read_schedule).transpose()?.map(Arc::new);
        let request = self.request(own.as_deref())?;
        let read = |file: &str| match &own {
            Some(own) if self.file.as_deref() == Some(file) => Ok(own.clone()),
            _ => Ok(Arc::new(allhands::read_schedule(file)?)),
        };
        let written = request.names.files().map(read).collect::<Result<Vec<_>>>()?;
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
        let names = request.names.serving(&request.called, &topology, &written)?;
        screen::caution(host::of_threads(topology.ranks(), host::load()));
        let bar = screen::progress("measuring", request.sizes.len() * names.len(), true);
        let show = Show::new(self.report(&request, &names, counted(topology.ranks(), "thread rank"), &topology), &bar);
        let job = Job {
            called: request.called.clone(),
            transport: "threads",
            names: &names,
            sizes: &request.sizes,
            iterations: self.iterations,
            warm_up: measure::WARM_UP,
            isolated: self.isolated,
            bar: &bar,
            sink: &|lines| show.add(lines),
        };
        let ranks = Threads::new(topology).timeout(Duration::from_secs(120)).run(|comm| {
            written.iter().for_each(|written| comm.know(written.clone()));
            job.rank(comm)
        });
        bar.finish_and_clear();
        for measured in ranks.map_err(|error| Failure::Wrong(error.to_string()))? {
            if let Measured::Wrong(reason) = measured {
                return Err(Failure::Wrong(reason));
            }
        }
        show.end()
    }

    fn on_mpi(&self, launcher: &Launcher) -> Result<()> {
        // What a file asks for is known when rank 0 has read it.
        let early = if self.file.is_none() { Some(self.request(None)?) } else { None };
        if let (Some(Request { topology: Some(topology), .. }), Some(ranks)) = (&early, launcher.size) {
            self.seats_all(topology, ranks)?;
        }
        let load = host::load();
        job::run(|comm, mpi| {
            let (told, seated);
            let request = match &early {
                Some(request) => request,
                None => {
                    let file = self.file.as_deref().unwrap_or("-");
                    let own = match job::alike(comm.written(file))? {
                        Ok(own) => own,
                        Err(refused) => return Ok(Err(refused)),
                    };
                    told = match self.request(Some(&own)) {
                        Ok(request) => request,
                        Err(refused) => return Ok(Err(refused)),
                    };
                    &told
                }
            };
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
            let mut written = Vec::new();
            for file in request.names.files() {
                match job::alike(comm.written(file))? {
                    Ok(one) => written.push(one),
                    Err(refused) => return Ok(Err(refused)),
                }
            }
            let names = match request.names.serving(&request.called, comm.topology(), &written) {
                Ok(names) => names,
                Err(refused) => return Ok(Err(refused)),
            };
            let first = comm.rank() == 0;
            let bar = screen::progress("measuring", request.sizes.len() * names.len(), first);
            let version = comm.transport();
            let ranks = format!("{} of {version} ({})", counted(comm.size(), "rank"), job::file(mpi));
            let show = Show::new(self.report(request, &names, ranks, comm.topology()), &bar);
            if first {
                screen::caution(crowd);
            }
            let job = Job {
                called: request.called.clone(),
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
            collective: request.called.collective,
            title: format!("{} on {ranks}{isolated}, {}", request.called.collective, shape(topology)),
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
        let seats = topology.ranks();
        if seats == ranks {
            return Ok(());
        }
        let who = match &self.file {
            Some(file) => format!("the schedule in {}", Written::called(file)),
            None => format!("--topology {}", self.seating.written()),
        };
        Err(Failure::Usage(format!(
            "{who} has {seats} seats, but the job has {ranks} ranks; give every rank one, or start {seats} ranks"
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
        true => Ok(values::plan::<f64>(&Called::new(collective), comm, bytes / 8, &Options::new())?.algorithm()),
        false => Ok(values::plan::<u8>(&Called::new(collective), comm, bytes, &Options::new())?.algorithm()),
    }
}
