//! Every algorithm, every setting, on every shape: verified, its promises proved, its closed form compared with the count.

#[allow(dead_code)] // only the list of families is needed here
mod common;

use allhands_schedule::{
    Choice, Collective, Counts, Error, Graph, Knowledge, Problem, Round, Schedule, Space, Topology, algorithms, verify,
};
use common::FAMILIES;
use rayon::prelude::*;

/// Verifies every setting of every algorithm on every topology, with several roots; says how many there were.
fn sweep(topologies: Vec<Topology>) -> usize {
    let problems = topologies.iter().flat_map(|topology| FAMILIES.map(|collective| problems(collective, topology)));
    let problems: Vec<Problem> = problems.flatten().collect();
    let outcomes: Vec<Result<bool, String>> = problems.par_iter().flat_map_iter(check_all).collect();
    let failures: Vec<&String> = outcomes.iter().filter_map(|outcome| outcome.as_ref().err()).collect();
    let first: Vec<String> = failures.iter().take(20).map(ToString::to_string).collect();
    assert!(
        failures.is_empty(),
        "{} of {} are wrong, for example\n{}",
        failures.len(),
        outcomes.len(),
        first.join("\n")
    );
    outcomes.into_iter().filter(|outcome| *outcome == Ok(true)).count()
}

fn problems(collective: Collective, topology: &Topology) -> Vec<Problem> {
    let problem = Problem::new(collective, topology.clone());
    let p = problem.ranks();
    if collective.rooted() {
        let mut roots = vec![0, p / 2, p - 1];
        roots.dedup();
        return roots.into_iter().map(|root| problem.clone().with_root(root).unwrap()).collect();
    }
    if collective.has_graph() {
        let graphs = [Graph::square(p), Graph::random(p, 3, p as u64)];
        return graphs.map(|graph| problem.clone().with_graph(graph.into()).unwrap()).into();
    }
    vec![problem]
}

fn check_all(problem: &Problem) -> Vec<Result<bool, String>> {
    let choices = algorithms(problem.collective).flat_map(|algorithm| Choice::variants(algorithm, problem));
    choices
        .map(|choice| {
            check(&choice, problem).map_err(|fact| {
                format!("{} {choice} on {} (root {}): {fact}", problem.collective, problem.topology, problem.root)
            })
        })
        .collect()
}

/// Whether a rank is told the sizes of all blocks that it carries for others.
fn knows_enough(knowledge: Knowledge, problem: &Problem, schedule: &Schedule) -> bool {
    let (p, topology) = (problem.ranks(), &problem.topology);
    let near = |rank: usize| topology.region_of(1, rank) == topology.region_of(1, schedule.rank);
    let ends = |block: usize| match (problem.collective, &problem.graph) {
        (Collective::NeighborAlltoall, Some(graph)) => vec![graph.edge(block).from, graph.edge(block).to],
        (_, Some(graph)) => std::iter::once(block).chain(graph.destinations(block)).collect(),
        (Collective::Gather | Collective::Scatter, _) => vec![block],
        _ => vec![block / p, block % p],
    };
    let known = |block: usize| match knowledge {
        Knowledge::Own => false,
        Knowledge::Node => ends(block).into_iter().any(near),
        Knowledge::Path | Knowledge::All => true,
    };
    let blocks = problem.blocks().unwrap_or(1).max(1);
    schedule.rounds.iter().flat_map(Round::spans).all(|(span, _)| match span.space {
        Space::Scratch => (span.first..span.end()).all(|position| known(position % blocks)),
        Space::Shared => knowledge == Knowledge::All,
        _ => true,
    })
}

/// Whether the schedules of a problem are those of other counts.
fn goes_the_same_way(choice: &Choice, problem: &Problem, schedules: &[Schedule]) -> bool {
    let counts = (0..problem.blocks().unwrap_or(0)).map(|block| block * block % 7 * 1000).collect();
    let other = Problem { counts, ..problem.clone() };
    choice.prepare(&other).is_ok_and(|other| schedules.iter().all(|schedule| other.rank(schedule.rank) == *schedule))
}

/// Whether the algorithm serves the problem; an error if it does and is wrong.
fn check(choice: &Choice, problem: &Problem) -> Result<bool, String> {
    let prepared = match choice.prepare(problem) {
        Ok(prepared) => prepared,
        Err(Error::Unservable { .. }) => return Ok(false),
        Err(error) => return Err(error.to_string()),
    };
    let ensemble = prepared.ensemble();
    let report = verify(&ensemble).map_err(|fault| fault.to_string())?;
    for (claimed, proved, property) in [
        (choice.ordered(problem), report.ordered, "ordered"),
        (choice.identical(problem), report.identical, "identical"),
    ] {
        if claimed && !proved {
            return Err(format!("claims to be {property} and is not"));
        }
    }
    if choice.knowledge() == Knowledge::Path && !goes_the_same_way(choice, problem, &ensemble.schedules) {
        return Err("does not go the same way whatever sizes are".into());
    }
    if !ensemble.schedules.iter().all(|schedule| knows_enough(choice.knowledge(), problem, schedule)) {
        return Err("carries blocks whose sizes a rank does not know".into());
    }
    let (counts, cost) = (Counts::maxima(&ensemble), prepared.cost());
    let counted = [report.timing.steps, counts.sent.messages, counts.sent.blocks];
    let formula = [cost.steps, cost.messages, cost.blocks];
    let agree = |(counted, formula)| if cost.exact { counted == formula } else { counted <= formula };
    if !counted.iter().zip(&formula).all(agree) {
        return Err(format!("steps, messages, blocks are {counted:?}, the formula says {cost:?}"));
    }
    Ok(true)
}

/// Shapes of up to so many ranks are always tried; the others take a minute.
const ALWAYS: usize = 32;

fn flat(ranks: impl Iterator<Item = usize>) {
    let verified = sweep(ranks.map(|p| Topology::flat(p).unwrap()).collect());
    assert!(verified > 1_000, "{verified}");
}

/// Those of 1 to 9 nodes by 1 to 8 ranks that are wanted, one node after the other and dealt in turn.
fn regular(wanted: impl Fn(usize) -> bool) {
    let shapes = (1..=9).flat_map(|nodes| (1..=8).map(move |ppn| Topology::regular(nodes, ppn).unwrap()));
    let shapes = shapes.filter(|shape| wanted(shape.ranks()));
    let verified = sweep(shapes.flat_map(|shape| [shape.clone(), shape.cyclic()]).collect());
    assert!(verified > 1_000, "{verified}");
}

#[test]
fn every_flat_p_up_to_32() {
    flat(1..=ALWAYS);
}

#[test]
#[ignore = "long: `cargo xtask test --full` runs it"]
fn every_flat_p_from_33_to_64() {
    flat(ALWAYS + 1..=64);
}

#[test]
fn nodes_1_to_9_by_ppn_1_to_8_of_up_to_32_ranks() {
    regular(|ranks| ranks <= ALWAYS);
}

#[test]
#[ignore = "long: `cargo xtask test --full` runs it"]
fn nodes_1_to_9_by_ppn_1_to_8_of_more_than_32_ranks() {
    regular(|ranks| ranks > ALWAYS);
}

#[test]
fn uneven_nodes_and_three_levels() {
    let shapes = [
        "3,5,4",
        "1,2",
        "2,1",
        "1,1,4",
        "7,1,1,1",
        "5,5,5,6",
        "2,3,2,3,2,3,2",
        "1,8,2,4,3",
        "4,4,4,3",
        "3,1,4,1,5,9,2,6",
        "2x2x2",
        "3x2x4",
        "2x3x3",
        "5x2x2",
        "4x4x2",
        "2x2x2x2",
        "3x3x1",
        "1x4x3",
        "[[[0,1,2],[3]],[[4,5],[6,7,8,9]]]",
        "[[[7],[6,5]],[[4,3,2]],[[1],[0]]]",
        "[[9,1,4],[0,8],[2,3,5,7],[6]]",
    ];
    let shapes = shapes.map(|text| text.parse::<Topology>().unwrap());
    let verified = sweep(shapes.into_iter().flat_map(|shape| [shape.clone(), shape.cyclic()]).collect::<Vec<_>>());
    assert!(verified > 1_000, "{verified}");
}
