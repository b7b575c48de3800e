//! Where ranks outnumber cores the model tells apart what measurements tell apart.
//!
//! Medians of isolated calls under Open MPI, 8 ranks on 2 cores, 2026-11-18 (`allhands bench --isolated`), in microseconds: of each list every
//! one took at least 7 % longer than the one before.

use allhands_model::{Allowance, Amount, Machine, best_choices, simulate};
use allhands_schedule::{Choice, Collective, Problem, Topology};

fn crowded() -> Machine {
    Machine::shipped("generic").unwrap().crowded(4.0, 0.5)
}

fn problem(collective: Collective) -> Problem {
    Problem::new(collective, Topology::regular(1, 8).unwrap())
}

#[test]
fn what_took_longer_takes_longer() {
    use Collective::{Allgather, Allreduce, Alltoall, Bcast, Reduce};
    for (collective, bytes, measured) in [
        // 8.9, 14.1, 19.1
        (Bcast, 8, &["cyclic-shift:radix=8", "cyclic-shift:radix=3", "binomial"][..]),
        // 59.8, 101.9, 160.3
        (Bcast, 65536, &["hierarchical:local=shared", "cyclic-shift:radix=8", "scatter-allgather"]),
        // 34.1, 45.2, 70.2
        (Reduce, 8192, &["cyclic-shift:radix=8", "binomial", "circulant:blocks=4"]),
        // 17.0, 25.6, 32.2, 44.7
        (Allreduce, 8, &["nap:local=shared", "multi-lane:local=shared", "nap", "rabenseifner"]),
        // 215.3, 260.5, 280.4, 424.3
        (Allreduce, 65536, &["multi-lane:local=shared", "nap:local=shared", "rabenseifner", "nap"]),
        // 63.5, 117.5
        (Allgather, 8192, &["loc-bruck:local=shared", "bruck:radix=8"]),
        // 1673.7, 1979.9, 3333.2
        (Alltoall, 65536, &["node-aware:local=shared", "pairwise", "bruck"]),
    ] {
        let time = |name: &&str| {
            let prepared = Choice::parse(collective, name).unwrap().prepare(&problem(collective)).unwrap();
            simulate(&prepared, &crowded(), Amount::bytes(bytes)).unwrap().seconds
        };
        let times: Vec<f64> = measured.iter().map(time).collect();
        assert!(times.is_sorted_by(|less, more| less < more), "{collective} {bytes}: {measured:?} {times:?}");
    }
}

#[test]
fn on_one_node_a_long_bcast_goes_through_memory_and_a_short_one_lets_the_root_go() {
    for (bytes, best) in
        [(128, "cyclic-shift:radix=8"), (8192, "hierarchical:local=shared"), (65536, "hierarchical:local=shared")]
    {
        let found = best_choices(&problem(Collective::Bcast), Amount::bytes(bytes), &crowded(), Allowance::default());
        assert_eq!(found.unwrap()[0].choice.to_string(), best, "{bytes} bytes");
    }
    // For one receiver a message does all that memory could.
    let two = Problem::new(Collective::Bcast, Topology::regular(1, 2).unwrap());
    let found = best_choices(&two, Amount::bytes(65536), &crowded(), Allowance::default()).unwrap();
    assert!(found.iter().all(|ranked| ranked.choice.algorithm.name != "hierarchical" || !ranked.choice.shares()));
}

/// Of 4 ranks on 2 cores, where all send to all: 5.3 and 5.9 us under Open MPI, 8.9 and 10.4 under Intel MPI.
#[test]
fn a_meeting_is_cheaper_than_messages_of_all_to_all() {
    let four = Problem::new(Collective::Barrier, Topology::regular(1, 4).unwrap());
    let machine = Machine::shipped("generic").unwrap().crowded(2.0, 0.5);
    let found = best_choices(&four, Amount::bytes(0), &machine, Allowance::default()).unwrap();
    assert_eq!(found[0].choice.to_string(), "node-aware:local=shared");
}
