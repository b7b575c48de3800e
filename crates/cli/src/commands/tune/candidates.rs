//! What is worth measuring: by the model of this machine, by what has won nearby, and what is always compared.

use std::collections::BTreeSet;

use allhands::{Cell, Comm, Server};
use allhands_model::{Allowance, Amount, Machine, best_choices};
use allhands_schedule::{Choice, Collective, Problem, Reduction};

use super::files;

/// So many different algorithms at least, each with its best setting: a model that is wrong about one may be right about another.
const ALGORITHMS: usize = 10;

/// So many cells nearby, and so many of the fastest of each: between cells algorithms are compared that were measured in both.
const NEARBY: usize = 4;
const FASTEST: usize = 2;

/// Every algorithm that can serve with its defaults, with its near part through shared memory where it has one, and with the settings
/// that were measured anywhere; on MPI ranks also the library's own.
pub(super) fn everything(comm: &Comm, collective: Collective, known: &[Cell]) -> Vec<String> {
    let problem = problem(comm, collective);
    let mut names: Vec<String> = choices(&problem).iter().map(Choice::to_string).collect();
    let cells = known.iter().filter(|cell| cell.collective == collective.name());
    let measured: BTreeSet<&str> = cells.flat_map(|cell| &cell.times).map(|time| time.algorithm.as_str()).collect();
    names.extend(measured.into_iter().filter(|name| serves(&problem, name)).map(String::from));
    names.extend(library(comm));
    let mut seen = BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names
}

/// Whether an algorithm of ours serves; the MPI's own is none of them.
fn serves(problem: &Problem, name: &str) -> bool {
    Choice::parse(problem.collective, name).is_ok_and(|choice| choice.prepare(problem).is_ok())
}

/// What a call asks for that asks for nothing special: the same bits on every rank.
fn problem(comm: &Comm, collective: Collective) -> Problem {
    let problem = Problem::new(collective, comm.topology().clone());
    Problem { reduction: Reduction { identical: true, ..problem.reduction }, ..problem }
}

fn choices(problem: &Problem) -> Vec<Choice> {
    let settings = allhands_schedule::algorithms(problem.collective)
        .flat_map(|algorithm| [algorithm.name.to_string(), format!("{}:local=shared", algorithm.name)]);
    let parsed = settings.filter_map(|name| Choice::parse(problem.collective, &name).ok());
    parsed.filter(|choice| choice.prepare(problem).is_ok()).collect()
}

fn library(comm: &Comm) -> Option<String> {
    (comm.transport() != "threads").then(|| Server::Library.to_string())
}

/// All settings in the order in which the model of this machine puts them.
fn ranked(problem: &Problem, bytes: usize, machine: &Machine) -> Vec<Choice> {
    let ranked = best_choices(problem, Amount::bytes(bytes as u64), machine, Allowance::default());
    ranked.map_or_else(|_| choices(problem), |ranked| ranked.into_iter().map(|ranked| ranked.choice).collect())
}

/// The candidates of a cell: the model's best few, what was the fastest in cells nearby, the MPI's own, and what serves now. Rank 0
/// decides for all.
pub(super) fn few(
    comm: &Comm,
    collective: Collective,
    bytes: usize,
    machine: &Machine,
    known: &[Cell],
) -> allhands::Result<Vec<String>> {
    let problem = problem(comm, collective);
    let mut names = different(&ranked(&problem, bytes, machine));
    // The MPI's own is among them in any case, if there is one.
    let near = nearby(known, collective, comm, bytes).into_iter().filter(|name| serves(&problem, name));
    for name in near.chain(library(comm)).chain([of_the_library(comm, collective, bytes)?]) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    // Ranks that were not part of all shapes know fewer cells.
    Ok(files::agreed(comm, Some(names.join("\n")))?.lines().map(String::from).collect())
}

/// The best setting of each of the best algorithms, and its defaults: those are compared between cells, whatever numbers are the
/// best in each.
fn different(ranked: &[Choice]) -> Vec<String> {
    let mut best: Vec<&Choice> = Vec::new();
    for choice in ranked {
        if best.len() < ALGORITHMS && best.iter().all(|known| known.algorithm.name != choice.algorithm.name) {
            best.push(choice);
        }
    }
    let plain = |choice: &&Choice| {
        let known = best.iter().find(|best| best.algorithm.name == choice.algorithm.name);
        known.is_some_and(|best| best.to_string() != choice.to_string())
            && [choice.algorithm.name.into(), format!("{}:local=shared", choice.algorithm.name)]
                .contains(&choice.to_string())
    };
    let plain = ranked.iter().filter(plain);
    best.iter().copied().chain(plain).map(Choice::to_string).collect()
}

/// The fastest on the same shape at the nearest sizes, and at the same size on the nearest shapes.
fn nearby(known: &[Cell], collective: Collective, comm: &Comm, bytes: usize) -> Vec<String> {
    let shape = (comm.topology().regions(1), comm.topology().region_sizes(1).1);
    let step = |one: usize, other: usize| (one.max(1) as f64 / other.max(1) as f64).log2().abs();
    let away = |cell: &Cell| {
        let (nodes, ranks) = (step(cell.nodes, shape.0), step(cell.ranks_per_node, shape.1));
        nodes + ranks + step(cell.bytes, bytes) / 3.0
    };
    let mut cells: Vec<&Cell> = known.iter().filter(|cell| cell.collective == collective.name()).collect();
    cells.sort_by(|one, other| away(one).total_cmp(&away(other)));
    let fastest = cells.iter().take(NEARBY).flat_map(|cell| cell.times.iter().take(FASTEST));
    fastest.map(|time| time.algorithm.clone()).collect()
}

/// What the library chooses where a call names nothing.
pub(super) fn of_the_library(comm: &Comm, collective: Collective, bytes: usize) -> allhands::Result<String> {
    crate::commands::bench::chosen(collective, comm, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(names: &[&str]) -> Vec<Choice> {
        names.iter().map(|name| Choice::parse(Collective::Allgather, name).unwrap()).collect()
    }

    #[test]
    fn settings_of_one_algorithm_do_not_crowd_out_the_others() {
        let radices = ["bruck:radix=4", "bruck:radix=3", "bruck", "ring", "loc-bruck:local=shared", "loc-bruck"];
        let others =
            ["linear", "sparbit", "neighbor-exchange", "circulant", "multi-lane", "multi-leader", "hierarchical"];
        let few = different(&parsed(&[&radices[..], &others[..]].concat()));
        assert_eq!(few[..4], ["bruck:radix=4", "ring", "loc-bruck:local=shared", "linear"]);
        assert_eq!(few[9..], ["hierarchical", "bruck", "loc-bruck"]);
        assert_eq!(different(&parsed(&["bruck", "bruck:radix=3"])), ["bruck"]);
    }

    #[test]
    fn what_has_won_nearby_is_a_candidate_and_so_is_what_serves_now() {
        let machine = Machine::shipped("lassen").unwrap();
        let time = |algorithm: &str| allhands::Time {
            algorithm: algorithm.into(),
            median_us: 1.0,
            p10_us: 1.0,
            p90_us: 1.0,
            samples: 1,
        };
        let cell = |bytes, winner: &str| Cell {
            collective: "allgather".into(),
            nodes: 2,
            ranks_per_node: 4,
            bytes,
            times: vec![time(winner), time("recursive-doubling"), time("mpi")],
        };
        // The winner of the farthest cell counts for nothing; recursive doubling cannot serve six ranks.
        let far = cell(1 << 24, "multi-leader:leaders=3");
        let near = [8, 512, 4096].map(|bytes| cell(bytes, "ring"));
        let known = [vec![far], near.to_vec(), vec![cell(64, "multi-leader:leaders=2")]].concat();
        let names = allhands::threads(allhands::Topology::regular(2, 3).unwrap(), |comm| {
            few(comm, Collective::Allgather, 64, &machine, &known)
        });
        let names = names.unwrap();
        assert!(names.iter().all(|other| *other == names[0]), "the same on every rank");
        let names = &names[0];
        assert!(names.len() <= 3 * ALGORITHMS + 3 && names.contains(&"bruck".into()), "{names:?}");
        assert!(names.contains(&"ring".into()) && names.contains(&"multi-leader:leaders=2".into()), "{names:?}");
        for absent in ["recursive-doubling", "multi-leader:leaders=3"] {
            assert!(!names.contains(&absent.into()), "{absent} in {names:?}");
        }
        let mut once = names.clone();
        once.sort();
        once.dedup();
        assert_eq!(once.len(), names.len());
    }
}
