//! `allhands verify`: proves schedules right, of algorithms on many machines, or one that a person wrote.

mod together;

use std::collections::BTreeSet;
use std::io::Write;

use allhands_schedule::{
    Algorithm, Choice, Collective, Counts, Ensemble, Error, Graph, Problem, Topology, algorithms, verify,
};
use clap::Args;
use indicatif::ParallelProgressIterator;
use rayon::prelude::*;

use crate::args::{Details, MOST_VERIFIED, Seating, at_most, ranks};
use crate::failure::{Failure, Result};
use crate::job;
use crate::screen::{self, counted};

/// Prove schedules right: of algorithms on many machines, or one from a file
///
/// Right means that every output holds exactly the contributions it should, nothing deadlocks, nothing
/// is read before it is written, and what the registry promises (ordered, identical, cost) holds.
///
/// For each number of ranks the machines are: flat, every nodes x ranks, sequential and cyclic, uneven nodes, and three
/// levels. Without --algorithm all algorithms are verified; without parameters all settings worth trying. The ranks of an MPI
/// job share the work.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  allhands verify
  allhands verify allgather --ranks 1..64
  allhands verify allgather --algorithm bruck:radix=4 --ranks 100
  allhands verify allreduce --topology 3,5,4 --placement cyclic
  allhands verify --file by-hand.txt
  mpirun -n 64 allhands verify --ranks 65..128

Exit codes: 0 all are right; 1 one is wrong; 2 the request cannot be served.")]
pub(crate) struct Verify {
    /// Only this collective
    collective: Option<String>,

    /// Only this algorithm; with parameters only this setting
    #[arg(long, value_name = "NAME[:PARAMETER=VALUE]", requires = "collective")]
    algorithm: Option<String>,

    /// Numbers of ranks, both ends included: 8, 1..64 or 1..=64 [default: 1..16]
    #[arg(long, value_name = "RANGE", conflicts_with = "topology")]
    ranks: Option<String>,

    #[command(flatten)]
    seating: Seating,

    #[command(flatten)]
    details: Details,

    /// Verify the schedule in this file, in the form that `allhands explain --format schedule` prints; - is the standard input
    #[arg(long, value_name = "F", conflicts_with_all = ["collective", "algorithm", "ranks", "topology", "placement", "root", "graph", "counts"])]
    file: Option<String>,
}

impl Verify {
    pub(crate) fn run(&self) -> Result<()> {
        match &self.file {
            // One schedule has no parts: a job's first rank verifies it.
            Some(file) if job::first() => verify_file(file),
            Some(_) => Ok(()),
            None => self.sweep(),
        }
    }

    fn sweep(&self) -> Result<()> {
        let collective = self.collective.as_deref().map(str::parse::<Collective>).transpose()?;
        let asked = match (&self.algorithm, collective) {
            (Some(text), Some(collective)) => Some(Choice::parse(collective, text)?),
            _ => None,
        };
        let topologies = self.topologies()?;
        let units = self.units(collective, asked.as_ref(), &topologies)?;
        let verify = |units: Vec<Unit>| {
            let bar = screen::progress("verifying", units.len(), job::first());
            let verified = units.into_par_iter().progress_with(bar).map(|unit| unit.verify(asked.as_ref()));
            verified.reduce(Tally::default, Tally::join)
        };
        let tally = match job::launched() {
            Some(_) => job::run(|comm, _| {
                together::leave_cores(comm);
                let share = units.into_iter().skip(comm.rank()).step_by(comm.size()).collect();
                Ok(Ok(together::joined(comm, verify(share))?))
            })?,
            None => verify(units),
        };
        tally.report(topologies.len())
    }

    fn topologies(&self) -> Result<Vec<Topology>> {
        if let Some(topology) = self.seating.resolve()? {
            at_most(topology.ranks(), MOST_VERIFIED, "ask for fewer")?;
            return Ok(vec![topology]);
        }
        // The largest first: the last to finish should be a small one.
        let all = ranks(self.ranks.as_deref().unwrap_or("1..16"))?.rev();
        all.map(machines).collect::<Result<Vec<_>>>().map(|machines| machines.into_iter().flatten().collect())
    }

    fn units(
        &self,
        collective: Option<Collective>,
        asked: Option<&Choice>,
        topologies: &[Topology],
    ) -> Result<Vec<Unit>> {
        let collectives = match collective {
            Some(collective) => vec![collective],
            // A vector form uses the schedules of its plain form.
            None => Collective::ALL.into_iter().filter(|collective| collective.family() == *collective).collect(),
        };
        let mut units = Vec::new();
        for topology in topologies {
            for &collective in &collectives {
                for (problem, graph) in self.problems(collective, topology)? {
                    let all = algorithms(collective);
                    let wanted =
                        all.filter(|algorithm| asked.is_none_or(|asked| asked.algorithm.name == algorithm.name));
                    units.extend(wanted.map(|algorithm| Unit { problem: problem.clone(), graph, algorithm }));
                }
            }
        }
        if units.is_empty() {
            let name = collective.map_or("nothing", Collective::name);
            return Err(Failure::Usage(format!("there is no algorithm for {name} to verify; see `allhands list`")));
        }
        Ok(units)
    }

    /// With the root or the graph given, or several; and how such a graph is named.
    fn problems(&self, collective: Collective, topology: &Topology) -> Result<Vec<(Problem, Option<&'static str>)>> {
        let problem = self.details.problem(collective, topology.clone())?;
        if collective.has_graph() && !self.details.has_graph() {
            let drawn = |name: &'static str| {
                let graph = Graph::parse(name, topology.ranks())?;
                Ok((problem.clone().with_graph(graph.into())?, Some(name)))
            };
            let square = std::iter::once(Ok((problem.clone(), None)));
            return square.chain(GRAPHS.into_iter().map(drawn)).collect();
        }
        if !collective.rooted() || self.details.has_root() {
            return Ok(vec![(problem, None)]);
        }
        let last = topology.ranks() - 1;
        let roots = BTreeSet::from([0, topology.ranks() / 2, last]);
        let with = |root| Ok((problem.clone().with_root(root)?, None));
        roots.into_iter().map(with).collect()
    }
}

/// The machines with so many ranks: flat, every nodes x ranks sequential and cyclic, uneven, and three levels.
fn machines(ranks: usize) -> Result<Vec<Topology>> {
    let mut machines = vec![Topology::flat(ranks)?];
    for nodes in (1..=ranks).filter(|nodes| ranks.is_multiple_of(*nodes)) {
        let regular = Topology::regular(nodes, ranks / nodes)?;
        // With one node, or one rank a node, there is nothing to deal out.
        if nodes > 1 && nodes < ranks {
            machines.push(regular.clone().cyclic());
        }
        machines.push(regular);
    }
    if ranks >= 3 {
        let uneven = Topology::uneven(&growing(ranks))?;
        machines.extend([uneven.clone(), uneven.cyclic()]);
    }
    if let Some([nodes, sockets, cores]) = three_factors(ranks) {
        machines.push(Topology::nested(&[nodes, sockets, cores])?);
    }
    Ok(machines)
}

/// Nodes of 1, 2, 3, ... ranks, the last one with what is left.
fn growing(ranks: usize) -> Vec<usize> {
    let mut sizes = Vec::new();
    let mut left = ranks;
    for size in 1.. {
        if left < 2 * size + 1 {
            sizes.push(left);
            break;
        }
        sizes.push(size);
        left -= size;
    }
    sizes
}

/// The two smallest prime factors and the rest, where that is more than 1.
fn three_factors(ranks: usize) -> Option<[usize; 3]> {
    let smallest = |n: usize| (2..n).find(|&prime| n.is_multiple_of(prime));
    let nodes = smallest(ranks)?;
    let sockets = smallest(ranks / nodes)?;
    Some([nodes, sockets, ranks / nodes / sockets])
}

/// Besides the square: directed edges, some of them twice and some from a rank to itself, few and many.
const GRAPHS: [&str; 2] = ["random:2:1", "random:7:2"];

/// One algorithm on one problem, in all its settings.
struct Unit {
    problem: Problem,
    /// As it is named on the command line, if it is none that the user names.
    graph: Option<&'static str>,
    algorithm: &'static Algorithm,
}

impl Unit {
    fn verify(&self, asked: Option<&Choice>) -> Tally {
        let mut tally = Tally::default();
        // A name without parameters asks for every setting.
        let one = asked.filter(|asked| asked.to_string() != self.algorithm.name);
        let choices = match one {
            Some(choice) => vec![choice.clone()],
            None => Choice::variants(self.algorithm, &self.problem),
        };
        for choice in choices {
            match choice.prepare(&self.problem) {
                Ok(prepared) => match check(&choice, &self.problem, &prepared.ensemble(), prepared.cost()) {
                    Ok(()) => tally.verified(self),
                    Err(fact) => tally.wrong.push(self.failed(&choice, &fact)),
                },
                // What a person asked for may be illegal here; a setting of our own may only be unservable.
                Err(error) if one.is_some() || matches!(error, Error::Unservable { .. }) => tally.refused(error),
                Err(error) => tally.wrong.push(self.failed(&choice, &error.to_string())),
            }
        }
        tally
    }

    /// What is wrong, and the command that shows it again.
    fn failed(&self, choice: &Choice, fact: &str) -> String {
        let Problem { collective, topology, root, counts, .. } = &self.problem;
        let mut command = format!("allhands verify {collective} --algorithm '{choice}' --topology '{topology}'");
        if collective.rooted() {
            command.push_str(&format!(" --root {root}"));
        }
        if let Some(graph) = self.graph {
            command.push_str(&format!(" --graph {graph}"));
        }
        if !counts.is_empty() {
            let counts: Vec<_> = counts.iter().map(ToString::to_string).collect();
            command.push_str(&format!(" --counts {}", counts.join(",")));
        }
        format!("{collective} {choice}: {fact}\n  {command}")
    }
}

/// Whether a schedule is right and keeps what the registry promises.
fn check(
    choice: &Choice,
    problem: &Problem,
    ensemble: &Ensemble,
    cost: allhands_schedule::Cost,
) -> std::result::Result<(), String> {
    let report = verify(ensemble).map_err(|fault| fault.to_string())?;
    if choice.ordered(problem) && !report.ordered {
        return Err("promises to combine in rank order, but does not".into());
    }
    if choice.identical(problem) && !report.identical {
        return Err("promises identical results, but ranks evaluate different expressions".into());
    }
    let sent = Counts::maxima(ensemble).sent;
    let counted = [report.timing.steps, sent.messages, sent.blocks];
    let formula = [cost.steps, cost.messages, cost.blocks];
    let agrees = if cost.exact {
        counted == formula
    } else {
        counted.iter().zip(&formula).all(|(counted, most)| counted <= most)
    };
    if agrees {
        return Ok(());
    }
    let how = if cost.exact { "" } else { "at most " };
    Err(format!("steps, messages and blocks are {counted:?}, but the closed form says {how}{formula:?}"))
}

/// What a sweep has found.
#[derive(Default)]
struct Tally {
    verified: usize,
    refused: usize,
    algorithms: BTreeSet<(Collective, &'static str)>,
    first_refusal: Option<String>,
    wrong: Vec<String>,
}

/// Enough to see the pattern.
const MOST_SHOWN: usize = 10;

impl Tally {
    fn verified(&mut self, unit: &Unit) {
        self.verified += 1;
        self.algorithms.insert((unit.problem.collective, unit.algorithm.name));
    }

    fn refused(&mut self, error: Error) {
        self.refused += 1;
        self.first_refusal.get_or_insert_with(|| error.to_string());
    }

    fn join(mut self, other: Tally) -> Tally {
        self.wrong.extend(other.wrong);
        Tally {
            verified: self.verified + other.verified,
            refused: self.refused + other.refused,
            algorithms: &self.algorithms | &other.algorithms,
            first_refusal: self.first_refusal.or(other.first_refusal),
            wrong: self.wrong,
        }
    }

    fn report(self, topologies: usize) -> Result<()> {
        if let (0, true, Some(refusal)) = (self.verified, self.wrong.is_empty(), self.first_refusal) {
            return Err(Failure::Usage(refusal));
        }
        if !job::first() {
            return if self.wrong.is_empty() { Ok(()) } else { Err(Failure::Elsewhere) };
        }
        let mut out = screen::stdout();
        for failure in self.wrong.iter().take(MOST_SHOWN) {
            writeln!(out, "{failure}")?;
        }
        let refused = match self.refused {
            0 => String::new(),
            refused => format!(" ({refused} not served)"),
        };
        let (verified, algorithms) = (self.verified, self.algorithms.len());
        let summary = format!(
            "verified {} of {} on {}",
            counted(verified, "schedule"),
            counted(algorithms, "algorithm"),
            topologies_in_words(topologies)
        );
        if self.wrong.is_empty() {
            writeln!(out, "{}", screen::wrapped(&format!("{summary}: all correct{refused}")))?;
            return Ok(());
        }
        out.flush()?;
        Err(Failure::Wrong(format!(
            "{summary}{refused}, but {} wrong",
            match self.wrong.len() {
                1 => "1 is".into(),
                more => format!("{more} are"),
            }
        )))
    }
}

fn topologies_in_words(count: usize) -> String {
    if count == 1 { "1 topology".into() } else { format!("{count} topologies") }
}

fn verify_file(file: &str) -> Result<()> {
    let written = allhands::read_schedule(file)?;
    let (ensemble, report) = (written.ensemble(), written.report());
    let problem = &ensemble.problem;
    let counts = Counts::maxima(ensemble);
    let mut out = screen::stdout();
    let yes = |holds| if holds { "yes" } else { "no" };
    writeln!(out, "{} {} on {}", problem.collective, ensemble.algorithm, counted(problem.ranks(), "rank"))?;
    writeln!(out, "ordered    {}", yes(report.ordered))?;
    writeln!(out, "identical  {}", yes(report.identical))?;
    writeln!(out, "steps      {}", report.timing.steps)?;
    for (name, traffic) in [
        ("sent", counts.sent),
        ("received", counts.received),
        ("far sent", counts.far_sent),
        ("far received", counts.far_received),
    ] {
        let (messages, blocks) = (counted(traffic.messages, "message"), counted(traffic.blocks, "block"));
        writeln!(out, "{name:<12} {messages}, {blocks} by the busiest rank")?;
    }
    writeln!(out, "verified 1 schedule: correct")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uneven_nodes_differ_and_hold_everybody() {
        assert_eq!(
            [3, 4, 6, 8, 10].map(growing),
            [vec![1, 2], vec![1, 3], vec![1, 2, 3], vec![1, 2, 5], vec![1, 2, 3, 4]]
        );
        for ranks in 3..200 {
            assert_eq!(growing(ranks).iter().sum::<usize>(), ranks);
        }
    }

    #[test]
    fn every_machine_has_its_ranks() {
        for ranks in 1..=64 {
            let machines = machines(ranks).unwrap();
            assert!(machines.iter().all(|machine| machine.ranks() == ranks));
            assert!(!machines.is_empty());
        }
        assert_eq!([8, 12, 6, 7].map(three_factors), [Some([2, 2, 2]), Some([2, 2, 3]), None, None]);
    }
}
