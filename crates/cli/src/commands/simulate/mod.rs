//! `allhands simulate`: what algorithms would cost on a machine, at any scale.

mod plot;

use std::io::Write;

use allhands_model::{Amount, Bound, Estimate, Machine, Noise, Simulator, export};
use allhands_schedule::{Choice, Collective, Prepared, Problem, Topology, algorithms};
use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::args::{Details, Seating, machine, shape, sizes};
use crate::failure::{Failure, Result};
use crate::screen;

/// Simulate algorithms on a machine, at any scale
///
/// The simulator walks the schedules themselves: ranks go on by their own clocks; messages cost by level and protocol; what the ranks of a
/// node share makes them wait. The lower bound is what no algorithm can beat on that machine.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  allhands simulate allgather --machine lassen --topology 1024x16 --bytes 4..1M
  allhands simulate allreduce --machine blue-waters --topology 2048x16 --algorithm smp,nap --bytes 8
  allhands simulate allreduce --machine my.toml --topology 64x2x8 --format svg > allreduce.svg
  allhands simulate allgather --topology 4x4 --algorithm bruck --bytes 1K --format simgrid > bruck.trace")]
pub(crate) struct Simulate {
    /// allgather(v), alltoall(v), allreduce, reduce_scatter(_block), bcast, reduce or barrier
    collective: String,

    /// A shipped machine (aries, blue-waters, cervino, generic, lassen, threads, yahoo) or the path of a machine file
    #[arg(long, value_name = "NAME|FILE", default_value = "lassen")]
    machine: String,

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
struct Line {
    collective: &'static str,
    machine: String,
    topology: String,
    ranks: usize,
    bytes: u64,
    algorithm: String,
    time_us: f64,
    mean_us: f64,
    /// Messages one after the other, at most.
    steps: usize,
    /// Far messages that the busiest rank sends.
    far_messages: usize,
    ratio_to_best: f64,
    bound_us: f64,
    mode: &'static str,
}

/// More messages than this are not simulated: minutes, and more memory than a laptop has.
const MOST_MESSAGES: usize = 1 << 27;

impl Simulate {
    pub(crate) fn run(&self) -> Result<()> {
        let collective: Collective = self.collective.parse()?;
        let machine = machine(&self.machine)?;
        let topology = self.seating.resolve()?.map_or_else(|| Topology::regular(16, 16), Ok)?;
        let problem = self.details.problem(collective, topology)?;
        let sizes = if collective == Collective::Barrier { vec![0] } else { sizes(&self.bytes, 4, 1 << 40)? };
        if self.noise < 0.0 || self.late < 0.0 || !self.noise.is_finite() || !self.late.is_finite() {
            return Err(Failure::Usage("--noise and --late are shares and microseconds of at least 0".into()));
        }
        let prepared = self.prepared(&problem)?;
        match self.format {
            Format::Simgrid | Format::Goal => self.export(&prepared, &machine, &sizes),
            _ => self.show(&self.lines(&prepared, &machine, &sizes)?, &machine),
        }
    }

    /// What is compared: named, and able to serve; or all that can.
    fn prepared(&self, problem: &Problem) -> Result<Vec<Prepared>> {
        let collective = problem.collective;
        let few_enough =
            |prepared: &Prepared| prepared.cost().messages.saturating_mul(problem.ranks()) <= MOST_MESSAGES;
        if self.algorithm == "all" {
            let default = |name| Choice::parse(collective, name).ok()?.prepare(problem).ok();
            let all = algorithms(collective).filter_map(|algorithm| default(algorithm.name));
            let served: Vec<Prepared> = all.filter(few_enough).collect();
            return match served.is_empty() {
                true => Err(Failure::Usage(format!("no algorithm for {collective} can be simulated there"))),
                false => Ok(served),
            };
        }
        let names = crate::args::names(&self.algorithm);
        if names.is_empty() {
            return Err(Failure::Usage("--algorithm is empty; name one, or all".into()));
        }
        let prepare = |name: &String| -> Result<Prepared> {
            let prepared = Choice::parse(collective, name)?.prepare(problem)?;
            match few_enough(&prepared) {
                true => Ok(prepared),
                false => Err(Failure::Usage(format!(
                    "{name} on {} ranks sends more than {MOST_MESSAGES} messages; ask for fewer ranks",
                    problem.ranks()
                ))),
            }
        };
        names.iter().map(prepare).collect()
    }

    fn lines(&self, prepared: &[Prepared], machine: &Machine, sizes: &[u64]) -> Result<Vec<Line>> {
        let bar = screen::progress("simulating", prepared.len() * sizes.len(), true);
        let noise = Noise { seed: self.seed, message: self.noise, late: self.late * 1e-6 };
        let mut lines = Vec::new();
        for one in prepared {
            let mut simulator = Simulator::new(one).noise(noise);
            bar.set_message(one.choice().to_string());
            for &bytes in sizes {
                match simulator.run(machine, Amount::bytes(bytes)) {
                    Ok(estimate) => lines.push(line(one, machine, bytes, &estimate)),
                    // What shares memory has no place on a flat machine; of all algorithms it is left out.
                    Err(error) if self.algorithm != "all" => {
                        return Err(Failure::Usage(format!("{}: {error}", one.choice())));
                    }
                    Err(_) => {}
                }
                bar.inc(1);
            }
        }
        bar.finish_and_clear();
        lines.sort_by(|a, b| a.bytes.cmp(&b.bytes).then(a.time_us.total_cmp(&b.time_us)));
        let mut best = (u64::MAX, 0.0);
        for line in &mut lines {
            if best.0 != line.bytes {
                best = (line.bytes, line.time_us);
            }
            line.ratio_to_best = if best.1 > 0.0 { line.time_us / best.1 } else { 1.0 };
        }
        Ok(lines)
    }

    fn show(&self, lines: &[Line], machine: &Machine) -> Result<()> {
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
                    let Line {
                        collective, machine, topology, ranks, bytes, algorithm, steps, far_messages, mode, ..
                    } = line;
                    writeln!(
                        out,
                        "{collective},\"{machine}\",\"{topology}\",{ranks},{bytes},\"{algorithm}\",{:.4},{:.4},{steps},{far_messages},{:.4},{:.4},{mode}",
                        line.time_us, line.mean_us, line.ratio_to_best, line.bound_us
                    )?;
                }
            }
            Format::Svg => write!(out, "{}", plot::svg(lines, machine))?,
            _ => table(&mut out, lines, machine)?,
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

fn line(prepared: &Prepared, machine: &Machine, bytes: u64, estimate: &Estimate) -> Line {
    let problem = prepared.problem();
    let bound = Bound::new(problem, machine, Amount::bytes(bytes), estimate.shares);
    Line {
        collective: problem.collective.name(),
        machine: machine.name.clone(),
        topology: shape(&problem.topology),
        ranks: problem.ranks(),
        bytes,
        algorithm: prepared.choice().to_string(),
        time_us: estimate.seconds * 1e6,
        mean_us: estimate.mean_seconds * 1e6,
        steps: prepared.cost().steps,
        far_messages: estimate.far_messages,
        ratio_to_best: 1.0,
        bound_us: bound.seconds() * 1e6,
        mode: estimate.mode.name(),
    }
}

fn table(out: &mut impl Write, lines: &[Line], machine: &Machine) -> Result<()> {
    let Some(first) = lines.first() else { return Ok(()) };
    writeln!(
        out,
        "{} on {}, {} ({} ranks); simulated microseconds",
        first.collective, machine.name, first.topology, first.ranks
    )?;
    let mut table =
        screen::table(&["bytes", "algorithm", "time", "x best", "lower bound", "steps", "far messages", "mode"]);
    screen::unbroken(&mut table, &[0, 1, 2, 3, 4, 5, 6, 7]);
    let mut above = None;
    for line in lines {
        let size = if above == Some(line.bytes) { String::new() } else { line.bytes.to_string() };
        above = Some(line.bytes);
        table.add_row([
            size,
            line.algorithm.clone(),
            format!("{:.2}", line.time_us),
            format!("{:.2}", line.ratio_to_best),
            format!("{:.2}", line.bound_us),
            line.steps.to_string(),
            line.far_messages.to_string(),
            line.mode.into(),
        ]);
    }
    writeln!(out, "{}", screen::shown(table))?;
    writeln!(out, "{}", machine.description)?;
    Ok(())
}
