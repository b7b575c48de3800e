//! Under the postal model the simulated time is the closed form, exactly.

use allhands_model::formulas::{Postal, radix};
use allhands_model::{Amount, Machine, Simulator};
use allhands_schedule::{Choice, Collective, Problem, Topology, algorithms, verify};

const ALPHA: f64 = 1.0;
const BETA: f64 = 1.0 / 1024.0;

fn time(collective: Collective, name: &str, topology: &Topology, bytes: u64) -> f64 {
    let problem = Problem::new(collective, topology.clone());
    let prepared = Choice::parse(collective, name).unwrap().prepare(&problem).unwrap();
    let machine = Machine::postal(ALPHA, BETA);
    let fast = Simulator::new(&prepared).run(&machine, Amount::bytes(bytes)).unwrap().seconds;
    let exact = Simulator::new(&prepared).exact().run(&machine, Amount::bytes(bytes)).unwrap().seconds;
    assert_eq!(fast, exact);
    exact
}

/// Numbers are powers of two and small: floating point is exact, so are the comparisons.
#[test]
fn closed_forms_of_the_papers_hold_exactly() {
    for p in 2..=33usize {
        let flat = Topology::flat(p).unwrap();
        let s = 256;
        let (blocks, bytes) = ((p - 1) as f64, s as f64);
        let log = (0..).find(|k| 1 << k >= p).unwrap() as f64;
        let time = |collective, name: &str| time(collective, name, &flat, s);
        assert_eq!(time(Collective::Allgather, "ring"), blocks * (ALPHA + BETA * bytes));
        assert_eq!(time(Collective::Allgather, "bruck"), log * ALPHA + blocks * BETA * bytes);
        assert_eq!(time(Collective::Allgather, "sparbit"), log * ALPHA + blocks * BETA * bytes);
        assert_eq!(time(Collective::Alltoall, "spread-out"), blocks * (ALPHA + BETA * bytes));
        assert_eq!(time(Collective::Alltoall, "pairwise"), blocks * (ALPHA + BETA * bytes));
        assert_eq!(time(Collective::Bcast, "binomial"), log * (ALPHA + BETA * bytes));
        assert_eq!(time(Collective::Bcast, "bine"), log * (ALPHA + BETA * bytes));
        assert_eq!(time(Collective::ReduceScatterBlock, "circulant"), log * ALPHA + blocks * BETA * bytes);
        assert_eq!(time(Collective::Barrier, "dissemination"), log * ALPHA);
        if p.is_multiple_of(2) {
            let rounds = (p / 2) as f64;
            assert_eq!(time(Collective::Allgather, "bine"), log * ALPHA + blocks * BETA * bytes);
            assert_eq!(time(Collective::ReduceScatterBlock, "bine"), log * ALPHA + blocks * BETA * bytes);
            assert_eq!(time(Collective::Allgather, "neighbor-exchange"), rounds * ALPHA + blocks * BETA * bytes);
        }
        if p.is_power_of_two() {
            assert_eq!(time(Collective::Allgather, "recursive-doubling"), log * ALPHA + blocks * BETA * bytes);
            assert_eq!(time(Collective::Allreduce, "recursive-doubling"), log * (ALPHA + BETA * bytes));
            assert_eq!(time(Collective::Allreduce, "bine:vector=whole"), log * (ALPHA + BETA * bytes));
        }
    }
}

#[test]
fn the_radix_r_alltoall_costs_its_messages_and_blocks() {
    let network = Postal { latency: ALPHA, per_byte: BETA };
    for p in [2, 6, 16, 23, 64, 100] {
        for r in (2..=p.min(12)).chain([p]) {
            let formula = radix::time(network, p, r, 64);
            for name in ["bruck", "modified-bruck"] {
                let counted = time(Collective::Alltoall, &format!("{name}:radix={r}"), &Topology::flat(p).unwrap(), 64);
                assert_eq!(counted, formula, "{name} {p} {r}");
            }
        }
    }
}

/// With any number of ports and empty messages, time is the length of the longest chain, which the verifier finds its own way.
#[test]
fn with_free_ports_every_algorithm_takes_its_steps() {
    let mut machine = Machine::postal(1.0, 0.0);
    machine.ports = None;
    for text in ["1x1", "1x7", "1x8", "4x2", "3x3", "2x5", "3,1,4", "2x2x3"] {
        for collective in Collective::ALL {
            let problem = Problem::new(collective, text.parse().unwrap());
            for choice in algorithms(collective).flat_map(|algorithm| Choice::variants(algorithm, &problem)) {
                let Ok(prepared) = choice.prepare(&problem) else { continue };
                let steps = verify(&prepared.ensemble()).unwrap().timing.steps;
                let time = Simulator::new(&prepared).run(&machine, Amount::bytes(8)).unwrap().seconds;
                assert_eq!(time, steps as f64, "{collective} {choice} on {text}");
            }
        }
    }
}

/// Two full blocks among empty ones, gathered in an order that scatters them: nobody copies but the two, their own block.
#[test]
fn empty_blocks_are_not_packed() {
    for ranks in [4usize, 8, 16, 32] {
        let counts = (0..ranks).map(|rank| usize::from(rank + 2 >= ranks)).collect();
        let problem = Problem::new(Collective::Allgatherv, Topology::regular(ranks, 1).unwrap()).with_counts(counts);
        let problem = problem.unwrap();
        let prepared = Choice::parse(Collective::Allgatherv, "bruck:order=sizes").unwrap().prepare(&problem).unwrap();
        let time = |copy: f64| {
            let machine = Machine { copy, ..Machine::postal(ALPHA, BETA) };
            Simulator::new(&prepared).run(&machine, Amount::bytes(256)).unwrap().seconds
        };
        assert_eq!(time(1.0), time(0.0) + 256.0, "{ranks} ranks");
    }
}
