//! `allhands simulate`: what algorithms would cost on a machine, at any scale.

mod contenders;
mod plot;
mod table;

use std::io::Write;

use allhands::Evidence;
use allhands_model::{Amount, Bound, Estimate, Machine, Noise, Simulator, export};
use allhands_schedule::{Choice, Collective, Ensemble, Prepared, Problem, Topology};
use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::args::{Details, Seating, assumes, identical, machine, seated, shape, sizes};
use crate::failure::{Failure, Result};
use crate::screen;

/// Simulate algorithms on a machine, at any scale
///
/// The simulator walks the schedules themselves: ranks go on by their own clocks; messages cost by level and protocol; what the ranks of a
/// node share makes them wait. The lower bound is what no algorithm can beat on that machine.
///
/// Of all algorithms each is shown with the setting that `allhands explain` would choose for that size, with messages and with shared
/// memory. What sends more messages than can be simulated in seconds gets a quick estimate, and is marked.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  allhands simulate allgather --machine lassen --topology 1024x16 --bytes 4..1M
  allhands simulate allreduce --machine blue-waters --topology 2048x16 --algorithm smp,nap --bytes 8
  allhands simulate allreduce --machine my.toml --topology 64x2x8 --format svg > allreduce.svg
  allhands simulate allreduce --topology 65536x16 --bytes 8
  allhands simulate --file by-hand.txt
  allhands simulate allgather --topology 4x4 --algorithm bruck --bytes 1K --format simgrid > bruck.trace")]
pub(crate) struct Simulate {
    /// One that `allhands list` names, such as allreduce, alltoallv or scan
    #[arg(required_unless_present = "file")]
    collective: Option<String>,

    /// A shipped machine (aries, blue-waters, cervino, generic, lassen, tapered, threads, yahoo) or the path of a machine file [default: what
    /// ALLHANDS_MACHINE names, else generic]
    #[arg(long, value_name = "NAME|FILE")]
    machine: Option<String>,

    /// What to compare: names with parameters, separated by blanks or by commas between names, or all
    #[arg(long, value_name = "NAME|all", default_value = "all")]
    algorithm: String,

    #[command(flatten)]
    seating: Seating,

    #[command(flatten)]
    details: Details,

    /// Sizes, as in explain: of one block, or of the whole vector; a range goes up in factors of 4
    #[arg(long, value_name = "FROM..TO", default_value = "8..1M")]
    bytes: String,

    /// Delay messages at random, by this share of their latency on average
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, hide_default_value = true)]
    noise: f64,

    /// Let ranks come at random, up to so many microseconds late
    #[arg(long, value_name = "US", default_value_t = 0.0, hide_default_value = true)]
    late: f64,

    /// Which random delays
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Simulate the schedule in this file beside all algorithms, in the form that `allhands explain --format schedule` prints; - is the
    /// standard input
    #[arg(long, value_name = "F", conflicts_with_all = ["collective", "topology", "placement", "root", "graph", "counts"])]
    file: Option<String>,

    /// How to show the results; simgrid and goal write the schedule of one algorithm and size for other simulators
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum Format {
    Table,
    Json,
    Csv,
    Svg,
    Simgrid,
    Goal,
}

/// One algorithm at one size.
#[derive(Clone, Debug, Serialize)]
struct SimulatedTime {
    collective: &'static str,
    machine: String,
    topology: String,
    ranks: usize,
    bytes: u64,
    algorithm: String,
    /// What it has in common with the lines of other sizes, where its settings differ.
    #[serde(skip)]
    kind: String,
    time_us: f64,
    /// Where every rank was simulated, or one node for all.
    mean_us: Option<f64>,
    /// Messages one after the other, at most; of what an algorithm makes.
    steps: Option<usize>,
    /// Far messages that the busiest rank sends, where it was simulated.
    far_messages: Option<usize>,
    ratio_to_best: f64,
    bound_us: f64,
    /// "exact", "symmetric" or "estimated".
    mode: &'static str,
}

/// What was found, and what was not looked at.
struct Found {
    lines: Vec<SimulatedTime>,
    /// Algorithms that are not among the lines, and why.
    left_out: Vec<String>,
}

/// More messages than this are not simulated, even of who is named: minutes, and more memory than a laptop has.
const MOST_MESSAGES: usize = 1 << 27;

impl Simulate {
    pub(crate) fn run(&self) -> Result<()> {
        let written = self.file.as_deref().map(allhands::read_schedule).transpose()?;
        let asked = match (&written, &self.collective) {
            (Some(written), _) => written.ensemble().problem.clone(),
            (None, Some(name)) => {
                let topology = self.seating.resolve()?.map_or_else(|| Topology::regular(16, 16), Ok)?;
                self.details.problem(name.parse()?, topology)?
            }
            (None, None) => return Err(Failure::Usage("name a collective to simulate, or a --file".into())),
        };
        let machine = match &self.machine {
            Some(name) => machine(name)?,
            None => Evidence::of_environment().machine().clone(),
        };
        let problem = seated(asked);
        let barrier = problem.collective == Collective::Barrier;
        let sizes = if barrier { vec![0] } else { sizes(&self.bytes, 4, 1 << 40)? };
        if self.noise < 0.0 || self.late < 0.0 || !self.noise.is_finite() || !self.late.is_finite() {
            return Err(Failure::Usage("--noise and --late are shares and microseconds of at least 0".into()));
        }
        assumes(&machine, &problem);
        if matches!(self.format, Format::Simgrid | Format::Goal) {
            return self.export(&self.named(&problem)?, &machine, &sizes);
        }
        let mut found = match self.algorithm.as_str() {
            "all" => self.all(&identical(problem.clone()), &machine, &sizes)?,
            _ => Found { lines: self.lines(&self.named(&problem)?, &machine, &sizes)?, left_out: vec![] },
        };
        if let Some(written) = &written {
            found.lines.extend(self.by_hand(written.ensemble(), &problem, &machine, &sizes)?);
        }
        in_order(&mut found.lines);
        self.show(&found, &machine)
    }

    fn noise(&self) -> Noise {
        Noise { seed: self.seed, message: self.noise, late: self.late * 1e-6 }
    }

    /// Of all that can serve, what a choice would be made from at every size.
    fn all(&self, problem: &Problem, machine: &Machine, sizes: &[u64]) -> Result<Found> {
        let bar = screen::progress("simulating", sizes.len(), true);
        let mut lines = Vec::new();
        for &bytes in sizes {
            bar.set_message(allhands_schedule::draw::Sizes::words(bytes));
            for contender in contenders::all(problem, machine, bytes, sizes.len(), self.noise()) {
                bar.tick();
                lines.push(contender.line(machine, bytes));
            }
            bar.inc(1);
        }
        bar.finish_and_clear();
        let left_out = contenders::left_out(problem, machine, &lines);
        match lines.is_empty() {
            true => Err(Failure::Usage(format!("no algorithm for {} can be simulated there", problem.collective))),
            false => Ok(Found { lines, left_out }),
        }
    }

    /// Those that are named, which must serve.
    fn named(&self, problem: &Problem) -> Result<Vec<Prepared>> {
        let names = crate::args::names(&self.algorithm);
        if names.is_empty() {
            return Err(Failure::Usage("--algorithm is empty; name one, or all".into()));
        }
        let prepare = |name: &String| -> Result<Prepared> {
            if name == "all" {
                return Err(Failure::Usage(
                    "--format simgrid and goal write one schedule; name one --algorithm and one size in --bytes".into(),
                ));
            }
            let prepared = Choice::parse(problem.collective, name)?.prepare(problem)?;
            match prepared.messages() <= MOST_MESSAGES {
                true => Ok(prepared),
                false => Err(Failure::Usage(format!(
                    "{name} on {} ranks sends more than {MOST_MESSAGES} messages; ask for fewer ranks",
                    problem.ranks()
                ))),
            }
        };
        names.iter().map(prepare).collect()
    }

    fn lines(&self, prepared: &[Prepared], machine: &Machine, sizes: &[u64]) -> Result<Vec<SimulatedTime>> {
        let bar = screen::progress("simulating", prepared.len() * sizes.len(), true);
        let mut lines = Vec::new();
        for one in prepared {
            let mut simulator = Simulator::new(one).noise(self.noise());
            bar.set_message(one.name());
            for &bytes in sizes {
                let estimate = simulator
                    .run(machine, Amount::bytes(bytes))
                    .map_err(|error| Failure::Usage(format!("{}: {error}", one.name())))?;
                let (name, steps) = (one.name(), Some(one.cost().steps));
                lines.push(simulated(one.problem(), (name.clone(), name), steps, machine, bytes, &estimate));
                bar.inc(1);
            }
        }
        bar.finish_and_clear();
        Ok(lines)
    }

    /// What a person wrote, seated as the algorithms are.
    fn by_hand(
        &self,
        ensemble: &Ensemble,
        problem: &Problem,
        machine: &Machine,
        sizes: &[u64],
    ) -> Result<Vec<SimulatedTime>> {
        let ensemble = Ensemble { problem: problem.clone(), ..ensemble.clone() };
        let mut simulator = Simulator::of(&ensemble).noise(self.noise());
        let line = |&bytes: &u64| {
            let estimate = simulator
                .run(machine, Amount::bytes(bytes))
                .map_err(|error| Failure::Usage(format!("{}: {error}", ensemble.algorithm)))?;
            let name = ensemble.algorithm.clone();
            Ok(simulated(problem, (name.clone(), name), None, machine, bytes, &estimate))
        };
        sizes.iter().map(line).collect()
    }

    fn show(&self, Found { lines, left_out }: &Found, machine: &Machine) -> Result<()> {
        let mut out = screen::stdout();
        match self.format {
            Format::Json => {
                serde_json::to_writer_pretty(&mut out, lines).map_err(std::io::Error::from)?;
                writeln!(out)?;
            }
            Format::Csv => {
                writeln!(
                    out,
                    "collective,machine,topology,ranks,bytes,algorithm,time_us,mean_us,steps,far_messages,ratio_to_best,bound_us,mode"
                )?;
                for line in lines {
                    let SimulatedTime { collective, machine, topology, ranks, bytes, algorithm, mode, .. } = line;
                    let [steps, far] = [line.steps, line.far_messages]
                        .map(|count| count.map_or(String::new(), |count| count.to_string()));
                    let mean = line.mean_us.map_or(String::new(), |mean| format!("{mean:.4}"));
                    writeln!(
                        out,
                        "{collective},\"{machine}\",\"{topology}\",{ranks},{bytes},\"{algorithm}\",{:.4},{mean},{steps},{far},{:.4},{:.4},{mode}",
                        line.time_us, line.ratio_to_best, line.bound_us
                    )?;
                }
            }
            Format::Svg => write!(out, "{}", plot::svg(lines, machine))?,
            _ => write!(out, "{}", table::text(lines, left_out, machine))?,
        }
        out.flush()?;
        Ok(())
    }

    fn export(&self, prepared: &[Prepared], machine: &Machine, sizes: &[u64]) -> Result<()> {
        let ([prepared], [bytes]) = (prepared, sizes) else {
            return Err(Failure::Usage(
                "--format simgrid and goal write one schedule; name one --algorithm and one size in --bytes".into(),
            ));
        };
        let mut out = screen::stdout();
        let amount = Amount::bytes(*bytes);
        let failure = |error: export::ExportError| match error {
            export::ExportError::Output(error) => Failure::Output(error),
            other => Failure::Usage(other.to_string()),
        };
        match self.format {
            Format::Goal => export::goal(&mut out, prepared, machine, amount).map_err(failure)?,
            _ => {
                for rank in 0..prepared.problem().ranks() {
                    export::simgrid(&mut out, prepared, rank, machine, amount).map_err(failure)?;
                }
            }
        }
        out.flush()?;
        Ok(())
    }
}

/// The fastest of each size first, each compared with that.
fn in_order(lines: &mut [SimulatedTime]) {
    lines.sort_by(|a, b| a.bytes.cmp(&b.bytes).then(a.time_us.total_cmp(&b.time_us)));
    let mut best = (u64::MAX, 0.0);
    for line in lines {
        if best.0 != line.bytes {
            best = (line.bytes, line.time_us);
        }
        line.ratio_to_best = if best.1 > 0.0 { line.time_us / best.1 } else { 1.0 };
    }
}

/// The line of what was simulated; with its name, and its kind.
fn simulated(
    problem: &Problem,
    (algorithm, kind): (String, String),
    steps: Option<usize>,
    machine: &Machine,
    bytes: u64,
    estimate: &Estimate,
) -> SimulatedTime {
    let bound = Bound::new(problem, machine, Amount::bytes(bytes), estimate.shares);
    SimulatedTime {
        collective: problem.collective.name(),
        machine: machine.name.clone(),
        topology: shape(&problem.topology),
        ranks: problem.ranks(),
        bytes,
        algorithm,
        kind,
        time_us: estimate.seconds * 1e6,
        mean_us: Some(estimate.mean_seconds * 1e6),
        steps,
        far_messages: Some(estimate.far_messages),
        ratio_to_best: 1.0,
        bound_us: bound.seconds() * 1e6,
        mode: estimate.mode.name(),
    }
}
