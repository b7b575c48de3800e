//! Neighbourhood collectives: graphs of all kinds, what a node has to know, and how many messages leave it.

use std::collections::BTreeMap;
use std::sync::Arc;

use allhands_schedule::{
    Choice, Collective, Counts, Edge, Ensemble, Graph, Problem, Round, Space, Topology, algorithms, verify,
};
use proptest::prelude::*;

const BOTH: [Collective; 2] = [Collective::NeighborAllgather, Collective::NeighborAlltoall];

fn problem(collective: Collective, topology: &Topology, graph: Graph) -> Problem {
    Problem::new(collective, topology.clone()).with_graph(Arc::new(graph)).unwrap()
}

fn made(problem: &Problem, choice: &str) -> Ensemble {
    Choice::parse(problem.collective, choice).unwrap().prepare(problem).unwrap().ensemble()
}

/// Far messages of all ranks together.
fn far_messages(ensemble: &Ensemble) -> usize {
    let each = ensemble.schedules.iter().map(|schedule| Counts::of(&ensemble.problem, schedule).far_sent.messages);
    each.sum()
}

#[test]
fn a_pair_of_nodes_has_one_message_and_a_block_of_an_allgather_crosses_once() {
    let shapes = [
        ("torus:8x4x4", "32x4"),
        ("torus:8x4x4:corners", "32x4"),
        ("grid:4x4x4", "8x8"),
        ("grid:4x4x4:corners", "8x8"),
        ("random:60:1", "16x8"),
        ("random:5:2", "3,5,4,4"),
    ];
    for ((text, shape), collective) in shapes.into_iter().flat_map(|one| BOTH.map(|collective| (one, collective))) {
        let topology: Topology = shape.parse().unwrap();
        let graph = Graph::parse(text, topology.ranks()).unwrap();
        let problem = problem(collective, &topology, graph);
        let graph = problem.graph.as_ref().unwrap();
        let ensemble = made(&problem, "node-aware");
        verify(&ensemble).unwrap();
        assert_eq!(far_messages(&ensemble), graph.far_pairs(&topology), "{collective} on {text}, {shape}");
        let node = |rank| topology.region_of(1, rank);
        let mut crossing: Vec<(usize, usize)> = (0..graph.edges())
            .map(|number| (number, graph.edge(number)))
            .filter(|(_, edge)| node(edge.from) != node(edge.to))
            .map(|(number, edge)| match collective {
                Collective::NeighborAllgather => (edge.from, node(edge.to)),
                _ => (number, node(edge.to)),
            })
            .collect();
        crossing.sort_unstable();
        crossing.dedup();
        let blocks = ensemble.schedules.iter().map(|one| Counts::of(&problem, one).far_sent.blocks).sum::<usize>();
        assert_eq!(blocks, crossing.len(), "{collective} on {text}, {shape}");
        assert_eq!(far_messages(&made(&problem, "direct")), graph.far_neighbors(&topology));
    }
}

/// A message as both ends see it: from, to, and the blocks by their edge (from, place there) or source.
type Seen = Vec<(usize, bool, usize, Vec<(Space, Edge)>)>;

/// What a rank does, without the numbers of edges.
fn seen(problem: &Problem, rank: usize, choice: &str) -> Seen {
    let graph = problem.graph.as_ref().unwrap();
    let prepared = Choice::parse(problem.collective, choice).unwrap().prepare(problem).unwrap();
    let schedule = prepared.rank(rank);
    let blocks = |spans: &[allhands_schedule::Span]| {
        let positions = spans.iter().flat_map(|span| (span.first..span.end()).map(|at| (span.space, at)));
        let edge = |(space, at)| match (space, problem.collective) {
            (Space::Scratch, Collective::NeighborAlltoall) => (space, graph.edge(at)),
            (space, _) => (space, Edge { from: at, out: 0, to: 0, into: 0 }),
        };
        // Of edges of others, only their order at this node is known: the ranks are.
        let named = positions.map(edge).map(|(space, edge)| (space, Edge { out: 0, into: 0, ..edge }));
        named.collect::<Vec<_>>()
    };
    let round = |(at, round): (usize, &Round)| {
        let sends = round.sends.iter().map(|send| (at, true, send.to, blocks(&send.spans)));
        let recvs = round.recvs.iter().map(|recv| (at, false, recv.from, blocks(&recv.spans)));
        sends.chain(recvs).collect::<Vec<_>>()
    };
    schedule.rounds.iter().enumerate().flat_map(round).collect()
}

/// Random graphs on random machines: nodes, their sizes, edges.
fn graphs() -> impl Strategy<Value = (Topology, Vec<(usize, usize)>)> {
    (prop::collection::vec(1usize..=5, 1..=6), any::<bool>()).prop_flat_map(|(sizes, cyclic)| {
        let topology = Topology::uneven(&sizes).unwrap();
        let topology = if cyclic { topology.cyclic() } else { topology };
        let p = topology.ranks();
        (Just(topology), prop::collection::vec((0..p, 0..p), 0..80))
    })
}

/// Both ends list their edges in an order of their own.
fn graph_of(ranks: usize, ends: &[(usize, usize)], seed: usize) -> Graph {
    let mut into = vec![0; ranks];
    let mut by_source: BTreeMap<usize, usize> = BTreeMap::new();
    let mut order: Vec<usize> = (0..ends.len()).collect();
    order.sort_by_key(|at| (at * 7919 + seed) % 101);
    let mut places = vec![0; ends.len()];
    for at in order {
        let next = &mut into[ends[at].1];
        (places[at], *next) = (*next, *next + 1);
    }
    let edge = |(at, &(from, to)): (usize, &(usize, usize))| {
        let out = by_source.entry(from).or_default();
        *out += 1;
        Edge { from, out: *out - 1, to, into: places[at] }
    };
    Graph::new(ranks, ends.iter().enumerate().map(edge).collect()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_graph_is_served_right_and_its_text_gives_it_back((topology, ends) in graphs(), seed in 0usize..1000) {
        for collective in BOTH {
            let problem = problem(collective, &topology, graph_of(topology.ranks(), &ends, seed));
            for choice in algorithms(collective).flat_map(|algorithm| Choice::variants(algorithm, &problem)) {
                let ensemble = choice.prepare(&problem).unwrap().ensemble();
                let report = verify(&ensemble);
                prop_assert!(report.is_ok(), "{collective} {choice} on {topology} {ends:?}: {}", report.unwrap_err());
                prop_assert_eq!(ensemble.to_string().parse::<Ensemble>().unwrap(), ensemble);
            }
        }
    }

    #[test]
    fn any_sizes_are_served_and_long_blocks_go_straight(
        (topology, ends) in graphs(),
        seed in 0usize..1000,
        straight in 1usize..9,
    ) {
        let graph = graph_of(topology.ranks(), &ends, seed);
        for collective in [Collective::NeighborAllgatherv, Collective::NeighborAlltoallv] {
            let problem = Problem::new(collective, topology.clone()).with_graph(Arc::new(graph.clone())).unwrap();
            let sizes: Vec<usize> = (0..problem.blocks().unwrap()).map(|block| (block * 31 + seed) % 10).collect();
            let problem = problem.with_counts(sizes.clone()).unwrap();
            let ensemble = made(&problem, &format!("node-aware:straight={straight}"));
            prop_assert!(verify(&ensemble).is_ok(), "{collective} on {topology} {ends:?}");
            let carried = ensemble.schedules.iter().flat_map(|schedule| &schedule.rounds).flat_map(Round::spans);
            let carried = carried.filter(|(span, _)| span.space == Space::Scratch);
            for block in carried.flat_map(|(span, _)| span.first..span.end()) {
                prop_assert!(sizes[block] < straight, "{collective} carries block {block}");
            }
        }
    }

    #[test]
    fn a_rank_needs_to_know_the_edges_of_its_own_node_only((topology, ends) in graphs(), seed in 0usize..1000) {
        for (collective, choice) in BOTH.into_iter().flat_map(|one| ["direct", "node-aware", "node-aware:lanes=1"].map(|choice| (one, choice))) {
            let whole = problem(collective, &topology, graph_of(topology.ranks(), &ends, seed));
            for rank in 0..topology.ranks() {
                let near = |other| topology.region_of(1, other) == topology.region_of(1, rank);
                let part = problem(collective, &topology, whole.graph.as_ref().unwrap().around(near));
                prop_assert_eq!(seen(&whole, rank, choice), seen(&part, rank, choice), "{} {} rank {}", collective, choice, rank);
            }
        }
    }
}

#[test]
fn a_file_of_a_graph_is_refused_by_line() {
    let problem = problem(BOTH[1], &Topology::regular(2, 2).unwrap(), Graph::square(4));
    let text = made(&problem, "node-aware").to_string();
    assert!(text.contains("\nneighbors 0: from "), "{text}");
    let refused = |text: &str| text.parse::<Ensemble>().unwrap_err().to_string();
    let lines: Vec<&str> = text.lines().collect();
    for cut in 1..lines.len() {
        let refused = refused(&lines[..cut].join("\n"));
        assert!(refused.starts_with("line "), "cut after line {cut}: {refused}");
    }
    let at = lines.iter().position(|line| line.starts_with("neighbors 2")).unwrap();
    let with = |line: &str| {
        let mut lines = lines.clone();
        lines[at] = line;
        refused(&lines.join("\n"))
    };
    assert!(with("neighbors 2: from 0").contains(&format!("line {}: \"2: from 0\" is no list", at + 1)));
    assert!(
        with("neighbors 2: from zero to 1").contains("is not a rank")
            || with("neighbors 2: from zero to 1").contains("zero")
    );
    assert!(with("neighbors 1: from 0 to 0").contains("given twice"));
    assert!(with("neighbors 9: from to").contains("names no rank"));
    assert!(with("neighbors 2: from to").contains("but rank"), "{}", with("neighbors 2: from to"));
    assert!(with("").contains("`neighbors 2` is missing"));
}
