//! `allhands explain`: what an algorithm does, step by step, and what it costs.

mod costs;
mod play;

use std::io::{self, Write};

use allhands::{Decision, Evidence, Grounds, Why};
use allhands_model::{Allowance, Amount, Bound, HOPELESS, memory};
use allhands_schedule::draw::{Drawing, Picture, Sizes, svg};
use allhands_schedule::{Bounds, Choice, Collective, Cost, Counts, Document, Ensemble, Prepared, Problem, ports};
use clap::{Args, ValueEnum};

use self::costs::Costs;
use crate::args::{Details, MOST_DRAWN, Seating, assumes, at_most, bytes, identical, machine, seated, size};
use crate::failure::{Failure, Result};
use crate::screen::{self, counted};

/// Show what an algorithm does, step by step, and what it costs; or which one would be chosen
///
/// Shows the messages of every step, far ones marked with => and coloured on a
/// terminal, and how the buffers of all ranks fill; then what was counted, beside the closed form and the lower bound.
///
/// Steps count messages one after the other on the critical path. A message is far when it crosses nodes.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  allhands explain allreduce --topology 64x16 --bytes 8
  allhands explain allreduce --topology 64x16 --bytes 8 --machine blue-waters
  allhands explain allreduce --topology 64x16 --bytes 1M --memory 64K
  allhands explain allgather --algorithm bruck --topology 4x4
  allhands explain allgather --algorithm bruck:radix=4 --topology 16 --bytes 1K
  allhands explain allgather --algorithm bruck --topology 65536x16 --rank 77
  allhands explain neighbor_alltoall --algorithm node-aware --topology 8x4 --graph torus:4x4x2
  allhands explain allgather --algorithm bruck --topology 2x4 --format svg > bruck.svg
  allhands explain allgather --algorithm bruck --topology 4x4 --format html > bruck.html
  allhands explain allgather --algorithm bruck --topology 2x4 --format schedule > bruck.txt
  allhands explain --file bruck.txt

Formats:
  text      for people
  schedule  one operation a line; `allhands verify --file` reads it back
  json      for programs
  program   what the ranks execute: bytes, offsets and kernels resolved (with --bytes, else 8 a block)
  svg       a picture: ranks are columns, steps are rows
  html      a page to play with, at most 64 ranks: two schedules side by side, step by step, with
            counts and estimated times; other algorithms, shapes and sizes to change to")]
pub(crate) struct Explain {
    /// One of MPI's collectives: allgather, alltoallv, reduce_scatter_block, neighbor_alltoall (see `allhands list`)
    #[arg(required_unless_present = "file")]
    collective: Option<String>,

    /// The algorithm, with parameters after colons: bruck, bruck:radix=4, bruck:ports=3,1 (see `allhands list`)
    /// Without it: which one the library would choose there, the runner-up, by how much, and from what evidence
    #[arg(long, value_name = "NAME[:PARAMETER=VALUE]")]
    algorithm: Option<String>,

    /// The machine whose model chooses, or estimates the times of a page: a shipped one, or the path of a machine file [default: as
    /// programs do, what ALLHANDS_TUNING and ALLHANDS_MACHINE name, else generic]
    #[arg(long, value_name = "NAME|FILE")]
    machine: Option<String>,

    #[command(flatten)]
    seating: Seating,

    /// Only this rank's schedule is made and shown, in full: works for a million ranks
    #[arg(long, value_name = "R")]
    rank: Option<usize>,

    #[command(flatten)]
    details: Details,

    /// Show bytes beside blocks: the size of one block (allgather, alltoall, reduce_scatter) or of the whole vector
    /// (allreduce, bcast, reduce), such as 8, 4K or 1M; with --counts, of one unit of the counts
    #[arg(long, value_name = "N")]
    bytes: Option<String>,

    /// Bytes that a rank may take beside the caller's buffers, such as 0, 64K or 1M: what takes more is not chosen, and
    /// refused if it is named (with --bytes)
    #[arg(long, value_name = "BYTES", requires = "bytes")]
    memory: Option<String>,

    /// Explain the schedule in this file, in the form that --format schedule prints; - is the standard input
    #[arg(long, value_name = "F", conflicts_with_all = ["collective", "algorithm", "machine", "topology", "placement", "rank", "root", "graph", "counts", "memory"])]
    file: Option<String>,

    /// How to show it
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum Format {
    Text,
    Json,
    Schedule,
    Program,
    Svg,
    Html,
}

impl Explain {
    pub(crate) fn run(&self) -> Result<()> {
        let Some(collective) = self.collective.as_deref() else { return self.by_hand() };
        let collective: Collective = collective.parse()?;
        let topology = self.seating.resolve()?;
        let topology = topology
            .ok_or_else(|| Failure::Usage("explain needs a machine; add --topology, such as --topology 4x4".into()))?;
        let problem = self.details.problem(collective, topology)?;
        let unit = self.bytes.as_deref().map(bytes).transpose()?;
        let memory = self.memory.as_deref().map(|text| size("--memory", text)).transpose()?;
        let allowance = Allowance { memory, ..Allowance::default() };
        let choice = self.algorithm.as_deref().map(|name| Choice::parse(collective, name)).transpose()?;
        if self.format == Format::Html {
            return self.play(&problem, choice.as_ref(), unit, allowance);
        }
        let choice = match choice {
            None if self.rank.is_none() && self.format == Format::Text => {
                return self.choice(&problem, unit, allowance);
            }
            None => self.decided(&problem, unit, allowance)?,
            Some(choice) if self.machine.is_none() => choice,
            Some(_) => {
                return Err(Failure::Usage(
                    "--machine says who chooses, or whose times a page shows; leave out --algorithm, or add --format html"
                        .into(),
                ));
            }
        };
        let prepared = choice.prepare(&problem)?;
        allowance.check(&prepared, Amount::bytes(unit.unwrap_or(0)))?;
        if self.format == Format::Program {
            return programs(&prepared, self.rank, unit.unwrap_or(8));
        }
        let sizes = unit.map(Sizes::new);
        match self.rank {
            Some(rank) => one_rank(&prepared, rank, sizes, self.format),
            None => {
                at_most(problem.ranks(), MOST_DRAWN, "add --rank R to see one rank's schedule")?;
                not_too_heavy(&prepared)?;
                all_ranks(&prepared.ensemble(), Some(&prepared), sizes, self.format)
            }
        }
    }

    /// A schedule that a person wrote.
    fn by_hand(&self) -> Result<()> {
        let file = self.file.as_deref().unwrap_or("-");
        if matches!(self.format, Format::Program | Format::Html) {
            return Err(Failure::Usage(
                "--file has no program and no page, which are made of algorithms; ask for text, svg, json or schedule"
                    .into(),
            ));
        }
        let written = allhands::read_schedule(file)?;
        let ensemble = written.ensemble();
        at_most(ensemble.problem.ranks(), MOST_DRAWN, "write a schedule of fewer")?;
        let unit = self.bytes.as_deref().map(bytes).transpose()?;
        all_ranks(ensemble, None, unit.map(Sizes::new), self.format)
    }

    /// The page.
    fn play(&self, problem: &Problem, choice: Option<&Choice>, bytes: Option<u64>, allowance: Allowance) -> Result<()> {
        if self.rank.is_some() {
            return Err(Failure::Usage("--format html plays all ranks; leave out --rank".into()));
        }
        at_most(problem.ranks(), play::MOST_RANKS, "ask for fewer, or for --format svg")?;
        if let Some(choice) = choice {
            allowance.check(&choice.prepare(problem)?, Amount::bytes(bytes.unwrap_or(0)))?;
        }
        let (evidence, shape) = (self.evidence()?, self.seating.to_string());
        let view = play::FirstView { problem, shape, choice, bytes, allowance, machine: evidence.machine() };
        let mut out = screen::stdout();
        out.write_all(play::page(&view)?.as_bytes())?;
        out.flush()?;
        Ok(())
    }

    /// What choices and estimates rest on.
    fn evidence(&self) -> Result<Evidence> {
        Ok(match &self.machine {
            Some(name) => Evidence::of_machine(machine(name)?),
            None => Evidence::of_environment(),
        })
    }

    /// What the library decides for so many bytes, from what evidence, and what exactly was asked.
    fn decision(
        &self,
        problem: &Problem,
        unit: Option<u64>,
        allowance: Allowance,
    ) -> Result<(Evidence, Decision, Problem, u64)> {
        let unit = if problem.collective == Collective::Barrier { Some(0) } else { unit };
        let Some(unit) = unit else {
            return Err(Failure::Usage(
                "a choice needs a size; add --bytes, such as --bytes 1K, or name an --algorithm to see it at work"
                    .into(),
            ));
        };
        let evidence = self.evidence()?;
        let mean = problem.counts.iter().sum::<usize>() / problem.counts.len().max(1);
        let each = if problem.counts.is_empty() { unit } else { unit * mean as u64 };
        let asked = identical(seated(problem.clone()));
        assumes(evidence.machine(), &asked);
        let decision = evidence.decide_within(&asked, each as usize, allowance)?;
        Ok((evidence, decision, asked, each))
    }

    /// The algorithm that the library would choose, to be shown itself.
    fn decided(&self, problem: &Problem, unit: Option<u64>, allowance: Allowance) -> Result<Choice> {
        let (_, decision, ..) = self.decision(problem, unit, allowance)?;
        decision.best.iter().find_map(|(server, _)| server.choice()).cloned().ok_or_else(|| {
            Failure::Usage("nothing of ours would be chosen there; name an --algorithm to see it at work".into())
        })
    }

    /// What the library would choose, and why.
    fn choice(&self, problem: &Problem, unit: Option<u64>, allowance: Allowance) -> Result<()> {
        let (evidence, decision, problem, each) = self.decision(problem, unit, allowance)?;
        let (problem, unit) = (&problem, unit.unwrap_or(0));
        let mut out = screen::stdout();
        writeln!(out, "{}, {}: {}", asked(problem), Sizes::words(each), decision.server)?;
        writeln!(out, "because of {}\n", decision.why)?;
        let header = row("algorithm", ["us", "x best", "lower bound", "memory a rank"].map(String::from));
        writeln!(out, "{header}\n{}", "─".repeat(header.chars().count()))?;
        let by_model = matches!(decision.why, Why::Fastest { grounds: Grounds::Model { .. }, .. });
        let mut estimated = false;
        for (server, time) in &decision.best {
            let Some(choice) = server.choice() else { continue };
            let prepared = choice.prepare(problem)?;
            let bound = Bound::new(problem, evidence.machine(), Amount::bytes(each), prepared.shares());
            let times = [*time, time / decision.best[0].1, bound.seconds() * 1e6].map(|number| format!("{number:.2}"));
            let [mut us, best, bound] = times;
            if by_model && *time > HOPELESS * decision.best[0].1 {
                us.insert(0, '~');
                estimated = true;
            }
            let memory = memory(&prepared, Amount::bytes(unit));
            writeln!(out, "{}", row(&choice.to_string(), [us, best, bound, Sizes::words(memory)]))?;
        }
        if estimated {
            writeln!(out, "\n~ may be a quick estimate: what is that far behind is not simulated.")?;
        }
        out.flush()?;
        Ok(())
    }
}

/// A row of a choice, in 80 columns; a name that is too long has a line of its own.
fn row(name: &str, [us, best, bound, memory]: [String; 4]) -> String {
    const ROOM: usize = 34;
    let (above, name) = if name.len() > ROOM { (format!("{name}\n"), "") } else { (String::new(), name) };
    format!("{above}{name:<ROOM$} {us:>9}  {best:>6}  {bound:>11}  {memory:>13}")
}

/// What one rank executes, or each of them.
fn programs(prepared: &Prepared, rank: Option<usize>, bytes: u64) -> Result<()> {
    let (problem, mut out) = (prepared.problem(), screen::stdout());
    let ranks = match rank {
        Some(rank) => {
            is_rank(problem, rank)?;
            rank..rank + 1
        }
        None => {
            at_most(problem.ranks(), MOST_DRAWN, "add --rank R to see one rank's program")?;
            0..problem.ranks()
        }
    };
    for rank in ranks {
        writeln!(out, "# rank {rank} of {}: {} {}", problem.ranks(), problem.collective, prepared.name())?;
        let program = allhands::program_text(prepared, rank, bytes as usize, 1);
        write!(out, "{}", program.map_err(|error| Failure::Wrong(error.to_string()))?)?;
    }
    out.flush()?;
    Ok(())
}

fn is_rank(problem: &Problem, rank: usize) -> Result<()> {
    if rank < problem.ranks() {
        return Ok(());
    }
    let last = problem.ranks() - 1;
    Err(Failure::Usage(format!("--rank {rank} is not a rank; legal is 0..={last}")))
}

fn one_rank(prepared: &Prepared, rank: usize, sizes: Option<Sizes>, format: Format) -> Result<()> {
    let problem = prepared.problem();
    is_rank(problem, rank)?;
    let schedule = prepared.rank(rank);
    let mut out = screen::stdout();
    match format {
        Format::Text => {
            let source = prepared.choice().map(|choice| choice.algorithm.source);
            heading(&mut out, problem, &prepared.name(), prepared.blocks(), source)?;
            let node = problem.topology.region_of(1, rank);
            writeln!(out, "rank {rank} sits on node {node}\n")?;
            write!(out, "{}", drawing(sizes).rank(problem, &schedule, prepared.blocks()))?;
            let costs = Costs {
                counts: Counts::of(problem, &schedule),
                steps: None,
                far_steps: None,
                sent_by_all: None,
                ports: ports(std::slice::from_ref(&schedule)),
                bound: Bounds::of(problem, std::slice::from_ref(&schedule), prepared.blocks()),
            };
            writeln!(out)?;
            let whose = format!("rank {rank}");
            let header = ["", &whose, "closed form, busiest rank", "lower bound, busiest rank"];
            costs.write(&mut out, problem, prepared.blocks(), Some(prepared.cost()), sizes, header)?;
            writeln!(
                out,
                "not verified: one rank alone cannot be; leave out --rank to verify all {}",
                problem.ranks()
            )?;
        }
        Format::Json => {
            let algorithm = prepared.name();
            let (schedules, blocks) = (std::slice::from_ref(&schedule), prepared.blocks());
            let formula = Some(prepared.cost());
            write_json(
                &mut out,
                &Document { problem, algorithm: &algorithm, blocks, schedules, steps: None, formula },
            )?;
        }
        Format::Schedule => {
            let ranks = problem.ranks();
            writeln!(out, "# {} {}: only rank {rank} of {ranks}", problem.collective, prepared.name())?;
            write!(out, "{schedule}")?;
        }
        Format::Program | Format::Html => {}
        Format::Svg => {
            return Err(Failure::Usage("--format svg shows messages between all ranks; leave out --rank".into()));
        }
    }
    out.flush()?;
    Ok(())
}

/// Refuses what would take many gigabytes and minutes, though its ranks are few enough.
fn not_too_heavy(prepared: &Prepared) -> Result<()> {
    // A message takes about as much memory as 16 blocks; a gigabyte or two is what this comes to.
    const BLOCKS_OF_A_MESSAGE: usize = 16;
    const MOST_BLOCKS: usize = 1 << 25;
    let ranks = prepared.problem().ranks();
    let Cost { messages, blocks, .. } = prepared.cost();
    let [messages, blocks] = [messages, blocks].map(|count| count.saturating_mul(ranks));
    if messages.saturating_mul(BLOCKS_OF_A_MESSAGE).saturating_add(blocks) <= MOST_BLOCKS {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "{} on {ranks} ranks sends up to {messages} messages with {blocks} blocks, too many to be made together; ask for fewer ranks, or add --rank R to see one rank's schedule",
        prepared.name()
    )))
}

/// What all ranks do; by an algorithm, or by hand.
fn all_ranks(ensemble: &Ensemble, prepared: Option<&Prepared>, sizes: Option<Sizes>, format: Format) -> Result<()> {
    let picture = Picture::new(ensemble).map_err(|fault| {
        let Ensemble { problem, algorithm, .. } = ensemble;
        Failure::Wrong(format!("{} {algorithm} is wrong: {fault}", problem.collective))
    })?;
    let steps = picture.report.timing.steps;
    let mut out = screen::stdout();
    match format {
        Format::Text => {
            let source = prepared.and_then(Prepared::choice).map(|choice| choice.algorithm.source);
            heading(&mut out, &ensemble.problem, &ensemble.algorithm, ensemble.blocks, source)?;
            writeln!(out)?;
            write!(out, "{}", drawing(sizes).steps(ensemble, &picture))?;
            let costs = Costs {
                counts: Counts::maxima(ensemble),
                steps: Some(steps),
                far_steps: Some(picture.far_steps()),
                sent_by_all: Some(Counts::sent_by_all(&ensemble.problem, &ensemble.schedules)),
                ports: ports(&ensemble.schedules),
                bound: Bounds::of(&ensemble.problem, &ensemble.schedules, ensemble.blocks),
            };
            writeln!(out)?;
            let header = ["busiest rank", "counted", "closed form", "lower bound"];
            let formula = prepared.map(Prepared::cost);
            costs.write(&mut out, &ensemble.problem, ensemble.blocks, formula, sizes, header)?;
            let proved = |holds, yes, no| if holds { yes } else { no };
            writeln!(
                out,
                "verified; {}; {}",
                proved(picture.report.ordered, "ordered", "not ordered: the operation must commute"),
                proved(picture.report.identical, "identical on every rank", "not identical on every rank"),
            )?;
        }
        Format::Json => write_json(
            &mut out,
            &Document {
                problem: &ensemble.problem,
                algorithm: &ensemble.algorithm,
                blocks: ensemble.blocks,
                schedules: &ensemble.schedules,
                steps: Some(steps),
                formula: prepared.map(Prepared::cost),
            },
        )?,
        Format::Schedule => write!(out, "{ensemble}")?,
        Format::Program | Format::Html => {}
        Format::Svg => write!(out, "{}", svg(ensemble, &picture))?,
    }
    out.flush()?;
    Ok(())
}

fn drawing(sizes: Option<Sizes>) -> Drawing<'static> {
    Drawing { paint: &screen::paint, letters: !screen::coloured(), width: screen::width(), sizes }
}

fn write_json(out: &mut impl Write, document: &Document<'_>) -> Result<()> {
    serde_json::to_writer(&mut *out, document).map_err(io::Error::from)?;
    writeln!(out)?;
    Ok(())
}

fn heading(
    out: &mut impl Write,
    problem: &Problem,
    algorithm: &str,
    blocks: usize,
    source: Option<&str>,
) -> Result<()> {
    let asked = asked(problem);
    let rest = asked.trim_start_matches(problem.collective.name());
    writeln!(out, "{} {algorithm}{rest}, {}", problem.collective, counted(blocks, "block"))?;
    source.map_or(Ok(()), |source| writeln!(out, "{source}"))?;
    Ok(())
}

/// The collective, its root, and among whom.
fn asked(problem: &Problem) -> String {
    let Problem { collective, topology, root, .. } = problem;
    let (nodes, ranks) = (topology.regions(1), topology.ranks());
    let (smallest, largest) = topology.region_sizes(1);
    let each = if smallest == largest { format!("{largest}") } else { format!("{smallest} to {largest}") };
    let machine = if nodes > 1 { format!("{ranks} ranks on {nodes} nodes of {each}") } else { counted(ranks, "rank") };
    let root = if collective.rooted() { format!(" from root {root}") } else { String::new() };
    let graph = problem.graph.as_ref().map(|graph| format!(", {}", counted(graph.edges(), "edge")));
    format!("{collective}{root}: {machine}{}", graph.unwrap_or_default())
}
