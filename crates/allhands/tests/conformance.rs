//! Every algorithm of every collective on thread ranks equals a naive reference, bit for bit: random machines, counts (unequal,
//! zero), types and operations; in place or not; blocking, non-blocking with interleaved tests, persistent.

mod suite;

use allhands::{Options, Topology};
use allhands_schedule::{Algorithm, Collective, algorithms};

use suite::case::{Case, Kind};
use suite::job::job;
use suite::player::How;
use suite::sample::Random;

fn topology(random: &mut Random, most: usize) -> Topology {
    let shape = match random.below(4) {
        0 => Topology::flat(1 + random.below(most)).unwrap(),
        1 => Topology::regular(1 + random.below(6), 1 + random.below(5)).unwrap(),
        2 => Topology::uneven(&(0..1 + random.below(5)).map(|_| 1 + random.below(6)).collect::<Vec<_>>()).unwrap(),
        _ => Topology::nested(&[1 + random.below(3), 1 + random.below(3), 1 + random.below(3)]).unwrap(),
    };
    if random.below(3) == 0 { shape.cyclic() } else { shape }
}

/// `None` where the algorithm does not serve the machine that was drawn.
fn case(random: &mut Random, collective: Collective, algorithm: &'static Algorithm, kind: Kind) -> Option<Case> {
    let topology = topology(random, 32);
    let size = random.pick(&[0, 1, 2, 3, 8, 33, 257, 700]);
    Case::draw(random, topology, collective, algorithm, kind, size)
}

/// Runs a case in a world of its own.
fn check(case: &Case, runs: usize) {
    let outcome = allhands::threads(case.topology.clone(), |comm| {
        let mut player = case.player(comm)?;
        (0..runs).try_for_each(|run| player.run(How::of(run), run))
    });
    outcome.unwrap_or_else(|error| panic!("{case}: {error}"));
}

fn movers() -> impl Iterator<Item = (Collective, &'static Algorithm)> {
    let collectives = Collective::ALL.into_iter().filter(|collective| *collective != Collective::Barrier);
    collectives.flat_map(|collective| algorithms(collective).map(move |algorithm| (collective, algorithm)))
}

#[test]
fn every_algorithm_equals_the_reference() {
    let mut random = Random(2026);
    for (collective, algorithm) in movers() {
        let mut served = 0;
        for _ in 0..40 {
            let kind = Kind::draw(&mut random);
            if let Some(case) = case(&mut random, collective, algorithm, kind) {
                check(&case, 7);
                served += 1;
            }
        }
        assert!(served > 4, "{collective} {} was hardly served", algorithm.name);
    }
}

#[test]
fn a_plan_can_be_restarted_a_hundred_times() {
    let mut random = Random(100);
    for (collective, algorithm) in movers() {
        let draw = || case(&mut random, collective, algorithm, Kind::SumU32);
        let mut cases = std::iter::repeat_with(draw).take(60).flatten();
        let case = cases.find(|case| case.topology.ranks() > 1).expect("a machine it serves");
        check(&case, 100);
    }
}

#[test]
fn operations_that_do_not_commute_are_combined_in_rank_order() {
    let mut random = Random(7);
    for collective in Collective::ALL.into_iter().filter(|collective| collective.reduces()) {
        let mut served = 0;
        for algorithm in algorithms(collective) {
            for _ in 0..30 {
                if let Some(case) = case(&mut random, collective, algorithm, Kind::ComposeU64) {
                    check(&case, 7);
                    served += 1;
                }
            }
        }
        assert!(served > 20, "{collective}");
    }
}

#[test]
fn every_barrier_waits_for_everybody() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    let mut random = Random(3);
    for algorithm in algorithms(Collective::Barrier) {
        for _ in 0..40 {
            let Some(case) = case(&mut random, Collective::Barrier, algorithm, Kind::SumU8) else { continue };
            let (came, p) = (AtomicUsize::new(0), case.topology.ranks());
            let barriers = allhands::threads(case.topology.clone(), |comm| {
                let mut plan = comm.barrier_plan_with(&Options::new().algorithm(&case.algorithm))?;
                for round in 1..=20 {
                    came.fetch_add(1, Ordering::SeqCst);
                    plan.run(&[], &mut [])?;
                    assert!(came.load(Ordering::SeqCst) >= round * p, "{} on {}", case.algorithm, case.topology);
                }
                Ok(())
            });
            barriers.unwrap();
        }
    }
}

#[test]
fn one_job_serves_every_algorithm_that_can_serve_so_many_ranks() {
    for ranks in [1, 2, 3, 4, 7, 8] {
        let reports = allhands::threads(Topology::flat(ranks).unwrap(), |comm| job(comm, ranks as u64, 150)).unwrap();
        let report = &reports[0];
        let all = Collective::ALL.into_iter().flat_map(algorithms).count();
        assert!(report.cases >= 150, "{report:?}");
        assert_eq!(report.algorithms + report.impossible.len(), all, "{report:?}");
        let choosy = ["neighbor-exchange", "recursive-doubling", "recursive-halving"];
        let wants_a_power_of_two = |one: &String| choosy.iter().any(|name| one.ends_with(name));
        assert!(report.impossible.iter().all(wants_a_power_of_two), "{report:?}");
        assert!(report.impossible.is_empty() || !ranks.is_power_of_two(), "{report:?}");
    }
}
