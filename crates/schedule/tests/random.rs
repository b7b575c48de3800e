//! Beyond the sweep: random shapes, placements and parameters.

mod common;

use allhands_schedule::{Choice, Collective, Counts, Problem, Topology, verify};
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
    fn any_order_of_sizes_is_correct(sizes in prop::collection::vec(0usize..1000, 1..40)) {
        for (collective, algorithm) in [
            (Collective::Allgatherv, "bruck:radix=2:order=sizes"), (Collective::Allgatherv, "circulant:order=sizes"),
            (Collective::ReduceScatter, "cyclic-shift:order=sizes"), (Collective::ReduceScatter, "circulant:order=sizes"),
        ] {
            let problem = Problem::new(collective, Topology::flat(sizes.len()).unwrap()).with_counts(sizes.clone()).unwrap();
            let ensemble = Choice::parse(collective, algorithm).unwrap().prepare(&problem).unwrap().ensemble();
            prop_assert!(verify(&ensemble).is_ok(), "{algorithm} {sizes:?}");
        }
    }
}
