//! Steps in any order: what is accepted is right, and what is refused lacks something.

use allhands_schedule::{Choice, Collective, Error, Problem, Topology, verify};
use proptest::prelude::*;

fn step(shares: bool) -> impl Strategy<Value = String> {
    let kind = if shares {
        prop::sample::select(vec!["far", "lane", "fan"])
    } else {
        prop::sample::select(vec!["near", "near", "far", "lane", "fan"])
    };
    let one = (kind, 1usize..6, 0usize..5).prop_map(|(kind, stride, times)| match times {
        0 | 1 => format!("{kind}{stride}"),
        times => format!("{kind}{stride}x{times}"),
    });
    let talk = prop::collection::vec(one, 1..3).prop_map(|moves| moves.join("+"));
    if shares { prop_oneof![talk, Just("share".to_string())].boxed() } else { talk.boxed() }
}

fn shapes() -> impl Strategy<Value = Topology> {
    (1usize..6, 1usize..5, any::<bool>()).prop_map(|(regions, seats, cyclic)| {
        let topology = Topology::regular(regions, seats).unwrap();
        if cyclic { topology.cyclic() } else { topology }
    })
}

/// Verifies the steps if they are accepted; whether they were.
fn check(collective: Collective, name: &str, topology: &Topology, steps: &[String], shares: bool) -> bool {
    let problem = Problem::new(collective, topology.clone());
    let local = if shares { ":local=shared" } else { "" };
    let text = format!("{name}:steps={}{local}", steps.join(","));
    match Choice::parse(collective, &text).unwrap().prepare(&problem) {
        Ok(prepared) => {
            let report = verify(&prepared.ensemble())
                .unwrap_or_else(|fault| panic!("{collective} {text} on {topology}: {fault}"));
            assert!(report.timing.steps <= prepared.cost().steps, "{collective} {text} on {topology}");
            true
        }
        Err(Error::Unservable { needs, .. }) => {
            assert!(needs.starts_with("steps "), "{text} on {topology}: {needs}");
            false
        }
        Err(error) => panic!("{collective} {text} on {topology}: {error}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// What is still lacking after random steps, two more bring: all neighbours, then all regions.
    #[test]
    fn movements_of_any_steps_are_right((shares, steps) in any::<bool>().prop_flat_map(|shares| (Just(shares), prop::collection::vec(step(shares), 0..5))), topology in shapes()) {
        let mut steps = steps;
        let rest: &[&str] = if shares { &["share", "fan1x5", "share"] } else { &["near1x4", "far1x5"] };
        steps.extend(rest.iter().map(ToString::to_string));
        for collective in [Collective::Allgather, Collective::ReduceScatter, Collective::Allreduce, Collective::Barrier] {
            prop_assert!(check(collective, "composed", &topology, &steps, shares));
        }
    }

    #[test]
    fn sums_of_any_steps_are_right_or_refused((shares, steps) in any::<bool>().prop_flat_map(|shares| (Just(shares), prop::collection::vec(step(shares), 1..6))), topology in shapes()) {
        check(Collective::Allreduce, "composed-sums", &topology, &steps, shares);
    }
}

/// Of the many sequences of a few steps that could be, those that add up are not one or two.
#[test]
fn sums_of_many_steps_are_right() {
    let all = ["near1", "near2", "near1x3", "far1", "far2", "fan1", "fan1x3", "fan2x1"];
    let topology = Topology::regular(4, 4).unwrap();
    let mut right = 0;
    for code in 0..all.len().pow(5) {
        let steps = (0..5).scan(code, |rest, _| {
            let step = all[*rest % all.len()];
            *rest /= all.len();
            Some(step.to_string())
        });
        right +=
            usize::from(check(Collective::Allreduce, "composed-sums", &topology, &steps.collect::<Vec<_>>(), false));
    }
    assert!(right > 100, "{right}");
}
