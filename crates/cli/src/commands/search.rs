//! `allhands search`: schedules beyond the registered ones.

use std::io::Write;
use std::time::{Duration, Instant};

use allhands::Evidence;
use allhands_model::{Allowance, Amount, Bound, Found, Machine, Ranked, search_compositions, search_settings};
use allhands_schedule::draw::Sizes;
use allhands_schedule::{Choice, Collective, Ensemble, Problem, Topology, verify};
use clap::{Args, ValueEnum};
use serde_json::json;

use crate::args::{Details, MOST_VERIFIED, Seating, assumes, bytes, machine, seated, shape};
use crate::failure::{Failure, Result};
use crate::screen;

/// Look for the fastest schedule, beyond the registered ones
///
/// First the settings of every algorithm are searched, far longer than a program that runs has time for. Then, for allgather,
/// reduce_scatter, allreduce and barrier, compositions: which ranks talk in each step, near or far, to how many at once, each rank to
/// another node or all to the same, by messages or through memory. What the messages carry follows from that. Whatever is found is
/// proved right, simulated, and compared with what no algorithm can beat.
///
/// A composition has a name like any algorithm, and runs wherever one is named: in bench, under exec, in plans. Sums of compositions named
/// composed-sums are taken in another order on every rank: they serve operations that do not round.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  allhands search allgather --topology 8x4 --machine blue-waters --bytes 8
  allhands search allreduce --topology 16x16 --machine my.toml --bytes 1M --budget 300
  allhands search allgather --topology 4x4 --bytes 64 --format schedule > best.txt
  allhands bench allgather --file best.txt")]
pub(crate) struct Search {
    /// One that `allhands list` names, such as allreduce, alltoallv or scan
    collective: String,

    /// A shipped machine or the path of a machine file, as in simulate [default: what ALLHANDS_MACHINE names, else generic]
    #[arg(long, value_name = "NAME|FILE")]
    machine: Option<String>,

    #[command(flatten)]
    seating: Seating,

    #[command(flatten)]
    details: Details,

    /// The size of one block, or of the whole vector, as in explain
    #[arg(long, value_name = "N", default_value = "8")]
    bytes: String,

    /// For how many seconds to search
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, value_parser = seconds)]
    budget: f64,

    /// By messages only: nothing goes through memory that ranks of a node share
    #[arg(long)]
    messages: bool,

    /// How to show what was found; schedule prints the best one, to be run from a file
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum Format {
    Table,
    Json,
    Schedule,
}

fn seconds(text: &str) -> std::result::Result<f64, String> {
    let given = text.strip_suffix('s').unwrap_or(text).parse::<f64>().ok();
    given.filter(|seconds| (0.0..=1e6).contains(seconds)).ok_or_else(|| "give seconds, such as 60".into())
}

/// What the settings get of the time, the compositions having the rest.
const SETTINGS: f64 = 0.3;
/// How many of each kind are shown.
const SHOWN: usize = 4;

/// Everything that was found.
struct Outcome {
    bound: f64,
    registered: Vec<Ranked>,
    found: Found,
}

impl Search {
    pub(crate) fn run(&self) -> Result<()> {
        let topology = self.seating.resolve()?.map_or_else(|| Topology::regular(4, 4), Ok)?;
        let problem = seated(self.details.problem(self.collective.parse()?, topology)?);
        let machine = match &self.machine {
            Some(name) => machine(name)?,
            None => Evidence::of_environment().machine().clone(),
        };
        assumes(&machine, &problem);
        let amount = match problem.collective {
            Collective::Barrier => Amount::bytes(0),
            _ => Amount::bytes(bytes(&self.bytes)?),
        };
        let outcome = self.search(&problem, amount, &machine)?;
        let best =
            outcome.best().ok_or_else(|| Failure::Usage(format!("nothing serves {} there", problem.collective)))?;
        let ensemble = best.choice.prepare(&problem)?.ensemble();
        prove(&ensemble)?;
        let mut out = screen::stdout();
        match self.format {
            Format::Schedule => write!(out, "{ensemble}")?,
            Format::Json => {
                serde_json::to_writer_pretty(&mut out, &outcome.json()).map_err(std::io::Error::from)?;
                writeln!(out)?;
            }
            Format::Table => write!(out, "{}", self.text(&problem, amount, &machine, &outcome))?,
        }
        out.flush()?;
        Ok(())
    }

    fn search(&self, problem: &Problem, amount: Amount, machine: &Machine) -> Result<Outcome> {
        let allowance = Allowance { shares: !self.messages, memory: None };
        let bar = screen::progress("searching", (self.budget * 10.0) as usize, true);
        let start = Instant::now();
        let until = |share: f64| {
            let bar = &bar;
            let limit = Duration::from_secs_f64(self.budget * share);
            move || {
                bar.set_position((start.elapsed().as_secs_f64() * 10.0) as u64);
                start.elapsed() < limit
            }
        };
        let failed = |error: allhands_model::Error| Failure::Usage(error.to_string());
        let mut registered =
            search_settings(problem, amount, machine, allowance, &mut until(SETTINGS)).map_err(failed)?;
        registered.retain(|ranked| !composed(&ranked.choice) && ranked.simulated);
        let found = {
            let go_on = until(1.0);
            search_compositions(problem, amount, machine, allowance, &mut |_| go_on())
        }
        .map_err(failed)?;
        bar.finish_and_clear();
        let bound = Bound::new(problem, machine, amount, allowance.shares).seconds();
        Ok(Outcome { bound, registered, found })
    }

    fn text(&self, problem: &Problem, amount: Amount, machine: &Machine, outcome: &Outcome) -> String {
        let asked = format!(
            "{} of {} on {}, {} ({} ranks): simulated microseconds, and how many times the lower bound of {}",
            problem.collective,
            Sizes::words(amount.bytes),
            machine.name,
            shape(&problem.topology),
            problem.ranks(),
            microseconds(outcome.bound)
        );
        let mut text = format!("{}\n\n", screen::wrapped(&asked));
        let line = |ranked: &Ranked| {
            let times = if outcome.bound > 0.0 { format!("{:.2}", ranked.seconds / outcome.bound) } else { "-".into() };
            format!("{:>12} {:>7}  {}\n", microseconds(ranked.seconds), times, ranked.choice)
        };
        for (heading, list) in [("registered", &outcome.registered), ("composed", &outcome.found.best)] {
            if !list.is_empty() {
                text += &format!("{heading}\n");
                let mut shown: Vec<&Ranked> = Vec::new();
                // Steps in another order often take the same time.
                for ranked in list {
                    let same = |other: &&Ranked| other.seconds == ranked.seconds;
                    if shown.len() < SHOWN && !shown.iter().any(same) {
                        shown.push(ranked);
                    }
                }
                text.extend(shown.into_iter().map(line));
            }
        }
        text.push('\n');
        for said in outcome.said(problem) {
            text += &format!("{}\n", screen::wrapped(&said));
        }
        text
    }
}

fn composed(choice: &Choice) -> bool {
    choice.algorithm.name.starts_with("composed")
}

fn microseconds(seconds: f64) -> String {
    format!("{:.2}", seconds * 1e6)
}

/// Proves the schedules of all ranks, where they are not too many.
fn prove(ensemble: &Ensemble) -> Result<()> {
    if ensemble.problem.ranks() > MOST_VERIFIED {
        return Ok(());
    }
    let wrong = |fault| Failure::Wrong(format!("{} is wrong: {fault}", ensemble.algorithm));
    verify(ensemble).map(|_| ()).map_err(wrong)
}

impl Outcome {
    fn best(&self) -> Option<&Ranked> {
        let all = self.registered.first().into_iter().chain(self.found.best.first());
        // Of equals the registered one.
        all.min_by(|one, other| one.seconds.total_cmp(&other.seconds))
    }

    /// What was looked at, and what that means.
    fn said(&self, problem: &Problem) -> Vec<String> {
        let Found { best, seen, complete, simulated, exhausted } = &self.found;
        let mut said = Vec::new();
        if best.is_empty() {
            said.push(format!(
                "There are no compositions for {} there: only settings were searched.",
                problem.collective
            ));
        } else {
            let all = if *exhausted { ": all there are of the steps that are tried" } else { "" };
            said.push(format!(
                "{seen} compositions were looked at{all}; {complete} were complete, {simulated} simulated."
            ));
        }
        if let (Some(found), Some(registered)) = (best.first(), self.registered.first()) {
            let gain = registered.seconds / found.seconds;
            said.push(match gain {
                gain if gain > 1.0005 => {
                    format!(
                        "The best composition is {:.1} % faster than every registered algorithm.",
                        (gain - 1.0) * 100.0
                    )
                }
                gain if gain < 0.9995 => "No composition is as fast as the best registered algorithm.".into(),
                _ => "The best composition is as fast as the best registered algorithm.".into(),
            });
        }
        if let Some(best) = self.best() {
            let proved = match problem.ranks() <= MOST_VERIFIED {
                true => "It is proved right",
                false => "It has too many ranks to be proved right here (verify fewer)",
            };
            said.push(format!("{proved}; run it with --algorithm '{}'.", best.choice));
        }
        said
    }

    fn json(&self) -> serde_json::Value {
        let list = |list: &[Ranked]| -> Vec<serde_json::Value> {
            let one =
                |ranked: &Ranked| json!({ "algorithm": ranked.choice.to_string(), "time_us": ranked.seconds * 1e6 });
            list.iter().map(one).collect()
        };
        json!({
            "bound_us": self.bound * 1e6,
            "registered": list(&self.registered),
            "composed": list(&self.found.best),
            "looked_at": self.found.seen,
            "complete": self.found.complete,
            "simulated": self.found.simulated,
            "exhausted": self.found.exhausted,
        })
    }
}
