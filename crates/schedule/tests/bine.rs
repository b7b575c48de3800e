//! Bine trees: who meets whom, how far data goes, and how much of it crosses the borders of groups, beside what doubles its distance.

use allhands_schedule::{Choice, Collective, Counts, Ensemble, Problem, Schedule, verify};

fn ensemble(collective: Collective, algorithm: &str, topology: &str, root: usize) -> Ensemble {
    let problem = Problem::new(collective, topology.parse().unwrap());
    let problem = if collective.rooted() { problem.with_root(root).unwrap() } else { problem };
    Choice::parse(collective, algorithm).unwrap().prepare(&problem).unwrap().ensemble()
}

/// Whom a rank sends to in each round in which it sends.
fn peers(schedule: &Schedule) -> Vec<usize> {
    schedule.rounds.iter().flat_map(|round| &round.sends).map(|send| send.to).collect()
}

/// Blocks times how far they go, around the end: so many cross a border between two ranks, if it may lie anywhere, on average times p.
fn way(ensemble: &Ensemble) -> usize {
    let p = ensemble.schedules.len();
    let of_rank = |schedule: &Schedule| -> usize {
        let sends = schedule.rounds.iter().flat_map(|round| &round.sends);
        let far = |to: usize| schedule.rank.abs_diff(to).min(p - schedule.rank.abs_diff(to));
        sends.map(|send| far(send.to) * send.spans.iter().map(|span| span.count).sum::<usize>()).sum()
    };
    ensemble.schedules.iter().map(of_rank).sum()
}

/// Blocks of all ranks that cross the borders of the outermost regions.
fn far(collective: Collective, algorithm: &str, topology: &str, root: usize) -> usize {
    let ensemble = ensemble(collective, algorithm, topology, root);
    Counts::sent_by_all(&ensemble.problem, &ensemble.schedules)[0].blocks
}

#[test]
fn ranks_meet_21_11_5_3_1_and_1_apart() {
    let allgather = ensemble(Collective::Allgather, "bine", "64", 0);
    assert_eq!(peers(&allgather.schedules[0]), [64 - 21, 11, 64 - 5, 3, 64 - 1, 1]);
    assert_eq!(peers(&allgather.schedules[33]), [33 + 21, 33 - 11, 33 + 5, 33 - 3, 33 + 1, 33 - 1]);
    let whole = ensemble(Collective::Allreduce, "bine:vector=whole", "64", 0);
    assert_eq!(peers(&whole.schedules[33]), peers(&allgather.schedules[33]));
    let pieces = peers(&ensemble(Collective::Allreduce, "bine", "64", 0).schedules[33]);
    assert_eq!(pieces[6..], peers(&allgather.schedules[33]));
    assert!(pieces[..6].iter().rev().eq(&pieces[6..]), "the nearest first, then the farthest: {pieces:?}");
}

#[test]
fn a_tree_of_8_is_the_papers_and_one_of_11_has_its_surplus_as_leaves() {
    let tree =
        |p: &str, root| ensemble(Collective::Bcast, "bine", p, root).schedules.iter().map(peers).collect::<Vec<_>>();
    let empty = Vec::new;
    assert_eq!(tree("8", 0), [vec![3, 7, 1], empty(), empty(), vec![4, 2], vec![5], empty(), empty(), vec![6]]);
    assert_eq!(tree("8", 5)[5], [0, 4, 6], "the same from any root");
    // Cells 0 to 2 have two ranks each, 3 to 7 one: the last round is inside the cells.
    let eleven = tree("11", 0);
    assert_eq!(eleven[0], [6, 10, 2, 1]);
    assert_eq!((&eleven[2], &eleven[4], &eleven[6]), (&vec![3], &vec![5], &vec![7, 4]));
}

#[test]
fn data_goes_two_thirds_as_far_and_never_farther_with_any_number_of_ranks() {
    for p in 2..=130usize {
        let shape = p.to_string();
        let of = |collective, algorithm| way(&ensemble(collective, algorithm, &shape, 0));
        let (bine, sparbit) = (of(Collective::Allgather, "bine"), of(Collective::Allgather, "sparbit"));
        assert!(bine <= sparbit, "{p}: {bine}, {sparbit}");
        let (tree, binomial) = (of(Collective::Bcast, "bine"), of(Collective::Bcast, "binomial"));
        assert!(tree <= binomial, "{p}: {tree}, {binomial}");
        assert_eq!(of(Collective::ReduceScatter, "bine"), bine, "{p}");
        assert_eq!(of(Collective::Reduce, "bine"), tree, "{p}");
        if p.is_power_of_two() {
            // Distances |1 - (-2)^k| / 3 with p / 2^k blocks each, beside 2^(k-1).
            let steps = 1..=p.ilog2();
            let exactly: usize = steps.map(|k| (1 - (-2i64).pow(k)).unsigned_abs() as usize / 3 * (p >> k)).sum();
            assert_eq!((bine, tree, sparbit), (p * exactly, exactly, p * p / 2 * p.ilog2() as usize));
            assert_eq!(of(Collective::Allreduce, "bine"), 2 * bine);
        }
    }
}

#[test]
fn less_crosses_the_borders_of_groups_that_lie_anywhere() {
    let uneven = "12,64,28,48,64,40";
    let of = |algorithm| far(Collective::Allgather, algorithm, uneven, 0);
    assert_eq!(["bine", "recursive-doubling:order=farthest", "sparbit"].map(of), [3364, 3808, 5248]);
    let from_everywhere =
        |algorithm| (0..256).map(|root| far(Collective::Bcast, algorithm, uneven, root)).sum::<usize>();
    assert_eq!([from_everywhere("bine"), from_everywhere("binomial")], [3878, 5248]);
}

#[test]
fn more_does_where_groups_are_aligned() {
    let of = |algorithm| far(Collective::Allgather, algorithm, "8x32", 0);
    assert_eq!(["recursive-doubling:order=farthest", "bine", "sparbit"].map(of), [1792, 4416, 6912]);
    assert_eq!(["binomial", "bine"].map(|algorithm| far(Collective::Bcast, algorithm, "8x32", 0)), [7, 23]);
}

#[test]
fn every_number_of_ranks_just_beyond_the_sweep() {
    for p in [65, 66, 67, 95, 96, 97, 127, 128, 129, 130, 191] {
        for (collective, algorithm) in [
            (Collective::Allgather, "bine"),
            (Collective::ReduceScatter, "bine"),
            (Collective::Allreduce, "bine"),
            (Collective::Allreduce, "bine:vector=whole"),
            (Collective::Bcast, "bine"),
            (Collective::Reduce, "bine"),
        ] {
            let report = verify(&ensemble(collective, algorithm, &p.to_string(), p - 1));
            let report = report.unwrap_or_else(|fault| panic!("{collective} {algorithm} on {p}: {fault}"));
            assert!(report.identical, "{collective} {algorithm} on {p}");
        }
    }
}
