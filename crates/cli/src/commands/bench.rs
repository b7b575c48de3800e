//! `allhands bench`: how long collectives take on thread ranks of this machine.

use std::io::{IsTerminal, Write};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use allhands::{Comm, Op, Options, Plan, Threads, Topology};
use allhands_schedule::{Choice, Collective, Problem, algorithms};
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::args::{Seating, bytes, names};
use crate::failure::{Failure, Result};
use crate::screen;

/// Measure collectives on thread ranks of this machine
///
/// Ranks are threads of this process: no MPI is needed. Every result is compared with a reference. The time of an iteration
/// is that of the slowest rank; algorithms take turns, in an order shuffled for each iteration, after a warm-up. Times depend on
/// what else runs here: compare columns of one run with each other, not runs.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  allhands bench allreduce
  allhands bench allgather --algorithm bruck,loc-bruck:fan=full --topology 4x2 --bytes 8..64K
  allhands bench alltoall --algorithm all --format csv > alltoall.csv")]
pub(crate) struct Bench {
    /// allgather(v), alltoall(v), allreduce, reduce_scatter(_block), bcast, reduce or barrier
    collective: String,

    /// What to compare: names with parameters, separated by blanks or by commas between names; all; or auto, the
    /// library's own choice
    #[arg(long, value_name = "NAME|all|auto", default_value = "all")]
    algorithm: String,

    #[command(flatten)]
    seating: Seating,

    /// Sizes, as in explain: of one block, or of the whole vector; a range goes up in factors of 8
    #[arg(long, value_name = "FROM..TO", default_value = "8..1M")]
    bytes: String,

    /// Iterations of each algorithm and size [default: as many as fit into about 15 s in all, at least 5]
    #[arg(long, value_name = "N")]
    iterations: Option<usize>,

    /// How to show the results
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum Format {
    Table,
    Json,
    Csv,
}

/// The times of one algorithm at one size, in microseconds.
#[derive(Clone, Debug, Serialize)]
struct Line {
    collective: &'static str,
    ranks: usize,
    bytes: usize,
    algorithm: String,
    iterations: usize,
    median_us: f64,
    p10_us: f64,
    p90_us: f64,
    min_us: f64,
    max_us: f64,
    /// The median divided by the best median of this size.
    ratio_to_best: f64,
}

const WARM_UP: usize = 3;
const LIMIT: Duration = Duration::from_secs(15);

impl Bench {
    pub(crate) fn run(&self) -> Result<()> {
        let collective: Collective = self.collective.parse()?;
        let topology = self.seating.resolve()?.map_or_else(|| Topology::regular(2, 4), Ok)?;
        if topology.ranks() > 256 {
            let ranks = topology.ranks();
            return Err(Failure::Usage(format!(
                "{ranks} ranks are more threads than a bench is good for; ask for at most 256"
            )));
        }
        let sizes = if collective == Collective::Barrier { vec![0] } else { self.sizes()? };
        let names = self.names(collective, &topology)?;
        let bar = progress_bar(sizes.len() * names.len());
        let lines = Mutex::new(Vec::new());
        let job =
            Job { collective, names: &names, sizes: &sizes, iterations: self.iterations, bar: &bar, lines: &lines };
        let ranks = Threads::new(topology.clone()).timeout(Duration::from_secs(120)).run(|comm| job.rank(comm));
        bar.finish_and_clear();
        ranks.map_err(|error| Failure::Wrong(error.to_string()))?;
        let lines = lines.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        self.show(&lines, &topology)
    }

    fn sizes(&self) -> Result<Vec<usize>> {
        let (from, to) = self.bytes.split_once("..").unwrap_or((&self.bytes, &self.bytes));
        let (from, to) = (bytes(from)? as usize, bytes(to.strip_prefix('=').unwrap_or(to))? as usize);
        if from > to || to > 1 << 30 {
            let text = &self.bytes;
            return Err(Failure::Usage(format!(
                "--bytes {text}: not a range up to 1G; write a size (4K) or a range (8..1M)"
            )));
        }
        let mut sizes = vec![from];
        while let Some(next) = sizes.last().map(|last| (last * 8).max(8)).filter(|next| *next < to) {
            sizes.push(next);
        }
        if to > from {
            sizes.push(to);
        }
        Ok(sizes)
    }

    /// What is compared; `auto` is the library's own choice.
    fn names(&self, collective: Collective, topology: &Topology) -> Result<Vec<String>> {
        let problem = Problem::new(collective, topology.clone());
        let serves = |name: &&str| Choice::parse(collective, name).is_ok_and(|choice| choice.prepare(&problem).is_ok());
        if self.algorithm == "all" {
            let known = algorithms(collective).map(|algorithm| algorithm.name).filter(serves);
            return Ok(std::iter::once("auto").chain(known).map(Into::into).collect());
        }
        let names = names(&self.algorithm);
        for name in names.iter().filter(|name| *name != "auto") {
            Choice::parse(collective, name)?.prepare(&problem)?;
        }
        match names.is_empty() {
            true => Err(Failure::Usage("--algorithm is empty; name one, all or auto".into())),
            false => Ok(names),
        }
    }

    fn show(&self, lines: &[Line], topology: &Topology) -> Result<()> {
        let mut out = screen::stdout();
        match self.format {
            Format::Json => {
                serde_json::to_writer_pretty(&mut out, lines).map_err(std::io::Error::from)?;
                writeln!(out)?;
            }
            Format::Csv => {
                writeln!(
                    out,
                    "collective,ranks,bytes,algorithm,iterations,median_us,p10_us,p90_us,min_us,max_us,ratio_to_best"
                )?;
                for line in lines {
                    let Line { collective, ranks, bytes, algorithm, iterations, .. } = line;
                    let times =
                        [line.median_us, line.p10_us, line.p90_us, line.min_us, line.max_us, line.ratio_to_best];
                    let times: Vec<String> = times.iter().map(|time| format!("{time:.3}")).collect();
                    writeln!(out, "{collective},{ranks},{bytes},\"{algorithm}\",{iterations},{}", times.join(","))?;
                }
            }
            Format::Table => {
                let Some(first) = lines.first() else { return Ok(()) };
                writeln!(
                    out,
                    "{} on {} thread ranks, {topology}; microseconds; * is the best of its size",
                    first.collective, first.ranks
                )?;
                let mut table =
                    screen::table(&["bytes", "algorithm", "", "median", "p10", "p90", "min", "max", "x best", "runs"]);
                screen::unbroken(&mut table, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
                let mut above = None;
                for line in lines {
                    let size = if above == Some(line.bytes) { String::new() } else { line.bytes.to_string() };
                    above = Some(line.bytes);
                    let best = if line.ratio_to_best == 1.0 { "*" } else { "" };
                    let time = |time: f64| format!("{time:.2}");
                    table.add_row([
                        size,
                        line.algorithm.clone(),
                        best.into(),
                        time(line.median_us),
                        time(line.p10_us),
                        time(line.p90_us),
                        time(line.min_us),
                        time(line.max_us),
                        time(line.ratio_to_best),
                        line.iterations.to_string(),
                    ]);
                }
                writeln!(out, "{}", table.trim_fmt())?;
            }
        }
        Ok(())
    }
}

fn progress_bar(steps: usize) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(steps as u64);
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos}/{len} {msg}") {
        bar.set_style(style);
    }
    bar
}

/// What all ranks do together.
struct Job<'a> {
    collective: Collective,
    names: &'a [String],
    sizes: &'a [usize],
    iterations: Option<usize>,
    bar: &'a ProgressBar,
    lines: &'a Mutex<Vec<Line>>,
}

impl Job<'_> {
    fn rank(&self, comm: &Comm) -> allhands::Result<()> {
        let mut order = Shuffle(1);
        for &bytes in self.sizes {
            // Counted in doubles where they can be; a barrier has none.
            match bytes.is_multiple_of(8) && self.collective != Collective::Barrier {
                true => self.size::<f64>(comm, bytes, &mut order)?,
                false => self.size::<u8>(comm, bytes, &mut order)?,
            }
        }
        Ok(())
    }

    fn size<T: Value>(&self, comm: &Comm, bytes: usize, order: &mut Shuffle) -> allhands::Result<()> {
        let count = bytes / size_of::<T>();
        let plans = self.names.iter().map(|name| self.plan::<T>(comm, count, name));
        let mut plans: Vec<Plan<T>> = plans.collect::<allhands::Result<_>>()?;
        let (input, wanted) = (self.input::<T>(comm, comm.rank(), count), self.wanted::<T>(comm, count));
        let mut output = vec![T::of(0); wanted.len()];
        let mut gate = comm.barrier_plan()?;
        let mut once = |plan: &mut Plan<T>, output: &mut Vec<T>| -> allhands::Result<f64> {
            output.fill(T::of(0));
            gate.run(&[], &mut [])?;
            let begin = Instant::now();
            plan.run(&input, output)?;
            let time = begin.elapsed();
            assert!(*output == wanted, "{} gives a wrong result", plan.algorithm());
            Ok(time.as_secs_f64() * 1e6)
        };
        let begin = Instant::now();
        for _ in 0..WARM_UP {
            for plan in &mut plans {
                once(plan, &mut output)?;
            }
        }
        // Rank 0 says how many iterations there is time for.
        let each = begin.elapsed().as_secs_f64() / WARM_UP as f64;
        let share = LIMIT.as_secs_f64() / self.sizes.len() as f64;
        let mut iterations = [self.iterations.unwrap_or(((share / each) as usize).clamp(5, 1000)) as u64];
        comm.bcast(&mut iterations, 0)?;
        let mut times = vec![Vec::with_capacity(iterations[0] as usize); plans.len()];
        for _ in 0..iterations[0] {
            for index in order.next(plans.len()) {
                times[index].push(once(&mut plans[index], &mut output)?);
            }
        }
        let mut lines = Vec::with_capacity(plans.len());
        for ((name, plan), mut times) in self.names.iter().zip(&plans).zip(times) {
            comm.allreduce_in_place(&mut times, Op::max())?;
            times.sort_by(f64::total_cmp);
            let at = |tenths: usize| times.get((times.len() - 1) * tenths / 10).copied().unwrap_or(0.0);
            let algorithm = if name == "auto" { format!("auto ({})", plan.algorithm()) } else { name.clone() };
            lines.push(Line {
                collective: self.collective.name(),
                ranks: comm.size(),
                bytes,
                algorithm,
                iterations: times.len(),
                median_us: at(5),
                p10_us: at(1),
                p90_us: at(9),
                min_us: at(0),
                max_us: at(10),
                ratio_to_best: 0.0,
            });
            if comm.rank() == 0 {
                self.bar.set_message(format!("{bytes} bytes"));
                self.bar.inc(1);
            }
        }
        if comm.rank() == 0 {
            let best = lines.iter().map(|line| line.median_us).fold(f64::INFINITY, f64::min);
            lines.iter_mut().for_each(|line| line.ratio_to_best = line.median_us / best);
            self.lines.lock().unwrap_or_else(std::sync::PoisonError::into_inner).extend(lines);
        }
        Ok(())
    }

    fn plan<T: Value>(&self, comm: &Comm, count: usize, name: &str) -> allhands::Result<Plan<T>> {
        // A comparison may include algorithms whose results differ in rounding from rank to rank.
        let options = if name == "auto" { Options::new() } else { Options::new().algorithm(name).identical(false) };
        let counts = || vec![count; comm.size()];
        match self.collective {
            Collective::Allgather => comm.allgather_plan_with(count, &options),
            Collective::Allgatherv => comm.allgatherv_plan_with(&counts(), &options),
            Collective::Alltoall => comm.alltoall_plan_with(count, &options),
            Collective::Alltoallv => comm.alltoallv_plan_with(&counts(), &options),
            Collective::Allreduce => comm.allreduce_plan_with(count, Op::sum(), &options),
            Collective::ReduceScatter => comm.reduce_scatter_plan_with(&counts(), Op::sum(), &options),
            Collective::ReduceScatterBlock => comm.reduce_scatter_block_plan_with(count, Op::sum(), &options),
            Collective::Bcast => comm.bcast_plan_with(count, 0, &options),
            Collective::Reduce => comm.reduce_plan_with(count, Op::sum(), 0, &options),
            Collective::Barrier => T::barrier(comm, &options),
        }
    }

    /// Small whole numbers, whose sums are exact in every order.
    fn input<T: Value>(&self, comm: &Comm, rank: usize, count: usize) -> Vec<T> {
        let p = comm.size();
        let len = match self.collective.family() {
            Collective::Alltoall | Collective::ReduceScatter => count * p,
            Collective::Bcast if rank != 0 => 0,
            Collective::Barrier => 0,
            _ => count,
        };
        (0..len).map(|index| T::of(rank * 3 + index % 5)).collect()
    }

    fn wanted<T: Value>(&self, comm: &Comm, count: usize) -> Vec<T> {
        let (p, me) = (comm.size(), comm.rank());
        let inputs = || (0..p).map(|rank| self.input::<T>(comm, rank, count));
        let sum = |first: usize, len: usize| -> Vec<T> {
            (first..first + len).map(|index| T::of((0..p).map(|rank| rank * 3 + index % 5).sum())).collect()
        };
        match self.collective.family() {
            Collective::Allgather => inputs().flatten().collect(),
            Collective::Alltoall => inputs().flat_map(|input| input[me * count..(me + 1) * count].to_vec()).collect(),
            Collective::Allreduce => sum(0, count),
            Collective::ReduceScatter => sum(me * count, count),
            Collective::Bcast => inputs().next().unwrap_or_default(),
            Collective::Reduce if me == 0 => sum(0, count),
            _ => vec![],
        }
    }
}

/// The two element types of a bench: doubles, or bytes where the size is no multiple of eight.
trait Value: allhands::kernels::Element + PartialEq {
    fn of(number: usize) -> Self;
    fn barrier(comm: &Comm, options: &Options) -> allhands::Result<Plan<Self>>;
}

impl Value for f64 {
    fn of(number: usize) -> f64 {
        number as f64
    }

    fn barrier(_: &Comm, _: &Options) -> allhands::Result<Plan<f64>> {
        unreachable!("a barrier has 0 bytes, which are counted in bytes")
    }
}

impl Value for u8 {
    fn of(number: usize) -> u8 {
        number as u8
    }

    fn barrier(comm: &Comm, options: &Options) -> allhands::Result<Plan<u8>> {
        comm.barrier_plan_with(options)
    }
}

/// The same order of algorithms on every rank, another in every iteration.
struct Shuffle(u64);

impl Shuffle {
    fn next(&mut self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        for last in (1..count).rev() {
            self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            order.swap(last, (self.0 >> 33) as usize % (last + 1));
        }
        order
    }
}
