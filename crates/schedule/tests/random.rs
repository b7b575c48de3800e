//! Beyond the sweep: random shapes, placements and parameters.

mod common;

use allhands_schedule::{Choice, Collective, Counts, Problem, Round, Space, Topology, verify};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_algorithm_on_any_machine_is_correct_and_keeps_its_promises((problem, choice) in common::cases(90)) {
        if let Ok(prepared) = choice.prepare(&problem) {
            let ensemble = prepared.ensemble();
            let report = verify(&ensemble);
            prop_assert!(report.is_ok(), "{} {choice} on {}: {}", problem.collective, problem.topology, report.unwrap_err());
            let report = report.unwrap();
            prop_assert!(report.ordered || !choice.ordered(&problem), "{} {choice} on {}", problem.collective, problem.topology);
            prop_assert!(report.identical || !choice.identical(&problem), "{} {choice} on {}", problem.collective, problem.topology);
            let (counts, cost) = (Counts::maxima(&ensemble), prepared.cost());
            let counted = [report.timing.steps, counts.sent.messages, counts.sent.blocks];
            let formula = [cost.steps, cost.messages, cost.blocks];
            let agrees = if cost.exact { counted == formula } else { counted.iter().zip(&formula).all(|(counted, formula)| counted <= formula) };
            prop_assert!(agrees, "{} {choice} on {}: counted {counted:?}, {cost:?}", problem.collective, problem.topology);
        }
    }

    #[test]
    fn any_sizes_are_correct(sizes in prop::collection::vec(0usize..1000, 1..40)) {
        for (collective, algorithm) in [
            (Collective::Allgatherv, "bruck:radix=2:order=sizes"), (Collective::Allgatherv, "circulant:order=sizes"),
            (Collective::ReduceScatter, "cyclic-shift:order=sizes"), (Collective::ReduceScatter, "circulant:order=sizes"),
            (Collective::Allgatherv, "circulant:blocks=4"), (Collective::ReduceScatter, "circulant:blocks=7"),
            (Collective::Allgatherv, "circulant-lanes:blocks=2"), (Collective::ReduceScatter, "circulant-lanes:blocks=3"),
        ] {
            let problem = Problem::new(collective, Topology::flat(sizes.len()).unwrap()).with_counts(sizes.clone()).unwrap();
            let ensemble = Choice::parse(collective, algorithm).unwrap().prepare(&problem).unwrap().ensemble();
            prop_assert!(verify(&ensemble).is_ok(), "{algorithm} {sizes:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn long_blocks_are_sent_once_between_nodes_and_root(
        sizes in prop::collection::vec(1usize..=5, 1..=6),
        root in any::<prop::sample::Index>(),
        straight in 1usize..9,
        seed in 0usize..100,
    ) {
        let topology = Topology::uneven(&sizes).unwrap();
        let (p, root) = (topology.ranks(), root.index(topology.ranks()));
        for collective in [Collective::Gatherv, Collective::Scatterv] {
            let counts: Vec<usize> = (0..p).map(|rank| (rank * 7 + seed) % 10).collect();
            let problem = Problem::new(collective, topology.clone()).with_root(root).unwrap();
            let problem = problem.with_counts(counts.clone()).unwrap();
            let choice = Choice::parse(collective, &format!("node-aware:straight={straight}")).unwrap();
            let ensemble = choice.prepare(&problem).unwrap().ensemble();
            prop_assert!(verify(&ensemble).is_ok(), "{collective} on {topology} with {counts:?} from {root}");
            let carried = ensemble.schedules.iter().flat_map(|schedule| &schedule.rounds).flat_map(Round::spans);
            for (span, _) in carried.filter(|(span, _)| span.space == Space::Scratch) {
                prop_assert!((span.first..span.end()).all(|block| counts[block] < straight), "{span}");
            }
        }
    }
}
