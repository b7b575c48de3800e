//! Pipelines with every number of blocks, on every shape: verified, in as many rounds as their closed forms say.

use allhands_schedule::{Choice, Collective, Problem, Topology, verify};
use rayon::prelude::*;

/// Every shape of up to 64 ranks whose nodes are of one size; flat ones, too.
fn shapes() -> Vec<Topology> {
    let regular = (1..=64).flat_map(|nodes| (1..=64 / nodes).map(move |q| Topology::regular(nodes, q).unwrap()));
    (1..=64).map(|p| Topology::flat(p).unwrap()).chain(regular).collect()
}

/// Rounds in which somebody sends, of the rank that has the most of them.
fn steps(collective: Collective, text: &str, topology: &Topology, root: usize) -> usize {
    let problem = Problem::new(collective, topology.clone()).with_root(root).unwrap();
    let prepared = Choice::parse(collective, text).unwrap().prepare(&problem).unwrap();
    let report = verify(&prepared.ensemble()).unwrap_or_else(|fault| panic!("{text} on {topology}: {fault}"));
    report.timing.steps
}

/// The depth of a tree in which everybody has so many children.
fn depth(members: usize, fan: usize) -> usize {
    let (mut depth, mut level, mut all) = (0, 1, 1);
    while all < members {
        (depth, level) = (depth + 1, level * fan);
        all += level;
    }
    depth
}

#[test]
fn every_number_of_blocks_on_every_shape_takes_the_rounds_of_its_closed_form() {
    let check = |topology: Topology| {
        let p = topology.ranks();
        let (nodes, q) = if topology.depth() == 0 { (p, 1) } else { (topology.regions(1), p / topology.regions(1)) };
        for blocks in 1..=8 {
            let root = (7 * blocks) % p;
            let trees = [1, 2].into_iter().filter(|fan| *fan < nodes.max(2));
            let far = trees.map(|fan| (format!("pipeline:fan={fan}"), depth(nodes, fan)));
            let graph = ("circulant-lanes".to_string(), nodes.next_power_of_two().ilog2() as usize);
            for (far, depth) in far.chain([graph]) {
                let handed = usize::from(q > 2);
                let rounds = if p == 1 { 0 } else { blocks - 1 + handed + depth + usize::from(q > 1) };
                // Whoever takes which places, the trees are as deep.
                let turns = (blocks == 5).then(|| [1, q.div_ceil(2)].map(|turns| format!(":turns={turns}")));
                for turns in [String::new()].into_iter().chain(turns.into_iter().flatten()) {
                    let text = format!("{far}:blocks={blocks}{turns}");
                    for collective in [Collective::Bcast, Collective::Reduce] {
                        let found = steps(collective, &text, &topology, root);
                        assert_eq!(found, rounds, "{collective} {text} on {topology}");
                    }
                }
            }
        }
    };
    shapes().into_par_iter().for_each(check);
}

#[test]
fn the_circulant_takes_as_few_rounds_as_there_can_be() {
    let check = |p: usize| {
        let topology = Topology::flat(p).unwrap();
        for blocks in 1..=8 {
            let rounds = if p == 1 { 0 } else { blocks - 1 + p.next_power_of_two().ilog2() as usize };
            // What everybody has for everybody is verified in time on fewer ranks.
            let of_all = [Collective::Allgather, Collective::ReduceScatterBlock].into_iter().filter(|_| p <= 64);
            for collective in [Collective::Bcast, Collective::Reduce].into_iter().chain(of_all) {
                let found = steps(collective, &format!("circulant:blocks={blocks}"), &topology, 3 * blocks % p);
                assert_eq!(found, rounds, "{collective} of {blocks} blocks on {p}");
            }
        }
    };
    (1..=64).chain([97, 128, 129, 200, 255, 257, 511, 1000]).collect::<Vec<_>>().into_par_iter().for_each(check);
}

#[test]
fn circulants_of_lanes_take_the_rounds_of_their_graphs_and_two_inside() {
    let check = |topology: Topology| {
        let p = topology.ranks();
        let (nodes, q) = if topology.depth() == 0 { (p, 1) } else { (topology.regions(1), p / topology.regions(1)) };
        for blocks in 1..=8 {
            let far = if nodes == 1 { 0 } else { blocks - 1 + nodes.next_power_of_two().ilog2() as usize };
            let rounds = match (nodes, q) {
                (_, 1) => far,
                (1, _) => blocks + 1,
                _ => far + 2,
            };
            for lanes in [1, q.div_ceil(2), q] {
                for collective in [Collective::Allgather, Collective::ReduceScatterBlock] {
                    let text = format!("circulant-lanes:blocks={blocks}:lanes={lanes}");
                    assert_eq!(steps(collective, &text, &topology, 0), rounds, "{collective} {text} on {topology}");
                }
            }
        }
    };
    let few = |topology: &Topology| topology.ranks() <= 24;
    shapes().into_par_iter().filter(few).for_each(check);
}
