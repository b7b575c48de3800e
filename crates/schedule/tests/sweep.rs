//! Every algorithm, every setting, on every shape: verified, its promises proved, its closed form compared with the count.

use allhands_schedule::{Choice, Collective, Counts, Error, Problem, Topology, algorithms, verify};
use rayon::prelude::*;

/// One of each family: vector forms use the same schedules.
const FAMILIES: [Collective; 7] = [
    Collective::Allgather,
    Collective::Alltoall,
    Collective::Allreduce,
    Collective::ReduceScatter,
    Collective::Bcast,
    Collective::Reduce,
    Collective::Barrier,
];

/// Verifies every setting of every algorithm on every topology, with several roots and sizes; says how many.
fn sweep(topologies: impl IntoParallelIterator<Item = Topology>) -> usize {
    let verified = topologies.into_par_iter().map(|topology| {
        FAMILIES.iter().flat_map(|&collective| problems(collective, &topology)).map(|problem| check_all(&problem)).sum::<usize>()
    });
    verified.sum()
}

fn problems(collective: Collective, topology: &Topology) -> Vec<Problem> {
    let problem = Problem::new(collective, topology.clone());
    let p = problem.ranks();
    if collective.rooted() {
        let mut roots = vec![0, p / 2, p - 1];
        roots.dedup();
        return roots.into_iter().map(|root| problem.clone().with_root(root).unwrap()).collect();
    }
    vec![problem]
}

fn check_all(problem: &Problem) -> usize {
    let mut verified = 0;
    for algorithm in algorithms(problem.collective) {
        for choice in Choice::variants(algorithm, problem) {
            verified += usize::from(check(&choice, problem));
        }
    }
    verified
}

/// Whether the algorithm serves the problem; panics if it does and is wrong.
fn check(choice: &Choice, problem: &Problem) -> bool {
    let say = || format!("{} {choice} on {} (root {})", problem.collective, problem.topology, problem.root);
    let prepared = match choice.prepare(problem) {
        Ok(prepared) => prepared,
        Err(Error::Unservable { .. }) => return false,
        Err(error) => panic!("{}: {error}", say()),
    };
    let ensemble = prepared.ensemble();
    let report = verify(&ensemble).unwrap_or_else(|fault| panic!("{}: {fault}", say()));
    assert!(report.ordered || !choice.ordered(problem), "{}: not ordered", say());
    assert!(report.identical || !choice.identical(problem), "{}: not identical", say());
    let (counts, cost) = (Counts::maxima(&ensemble), prepared.cost());
    let (counted, formula) = ([report.timing.steps, counts.sent.messages, counts.sent.blocks], [cost.steps, cost.messages, cost.blocks]);
    let agrees = if cost.exact { counted == formula } else { counted.iter().zip(&formula).all(|(counted, formula)| counted <= formula) };
    assert!(agrees, "{}: steps, messages, blocks are {counted:?}, the formula says {cost:?}", say());
    true
}

#[test]
fn every_flat_p_up_to_64() {
    let verified = sweep((1..=64).map(|p| Topology::flat(p).unwrap()).collect::<Vec<_>>());
    assert!(verified > 1_000, "{verified}");
}

#[test]
fn nodes_1_to_9_by_ppn_1_to_8_sequential_and_cyclic() {
    let shapes = (1..=9).flat_map(|nodes| (1..=8).map(move |ppn| Topology::regular(nodes, ppn).unwrap()));
    let verified = sweep(shapes.flat_map(|shape| [shape.clone(), shape.cyclic()]).collect::<Vec<_>>());
    assert!(verified > 1_000, "{verified}");
}

#[test]
fn uneven_nodes_and_three_levels() {
    let shapes = [
        "3,5,4", "1,2", "2,1", "1,1,4", "7,1,1,1", "5,5,5,6", "2,3,2,3,2,3,2", "1,8,2,4,3", "4,4,4,3", "3,1,4,1,5,9,2,6",
        "2x2x2", "3x2x4", "2x3x3", "5x2x2", "4x4x2", "2x2x2x2", "3x3x1", "1x4x3",
        "[[[0,1,2],[3]],[[4,5],[6,7,8,9]]]", "[[[7],[6,5]],[[4,3,2]],[[1],[0]]]", "[[9,1,4],[0,8],[2,3,5,7],[6]]",
    ];
    let shapes = shapes.map(|text| text.parse::<Topology>().unwrap());
    let verified = sweep(shapes.into_iter().flat_map(|shape| [shape.clone(), shape.cyclic()]).collect::<Vec<_>>());
    assert!(verified > 1_000, "{verified}");
}
