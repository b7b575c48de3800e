//! Addition chains for short allreduces: never behind the paper's factorisations, ahead where a chain is shorter, and found by the search.

use allhands_model::{Allowance, Amount, Machine, best_choices, rank_choices};
use allhands_schedule::{Choice, Collective, Problem, Topology, algorithms};

/// Every message costs a microsecond, every byte a nanosecond.
fn machine() -> Machine {
    Machine::postal(1e-6, 1e-9)
}

fn problem(p: usize) -> Problem {
    Problem::new(Collective::Allreduce, Topology::flat(p).unwrap())
}

/// Seconds of the best of some choices.
fn best(p: usize, bytes: u64, choices: &[Choice]) -> f64 {
    rank_choices(&problem(p), Amount::bytes(bytes), &machine(), choices).unwrap()[0].seconds
}

/// One port, whole vectors: every factorisation, each factor by the binary method.
fn factorised(p: usize) -> Vec<Choice> {
    fn factorisations(p: usize) -> Vec<String> {
        let steps = |factor: usize| vec!["1"; factor.next_power_of_two().ilog2() as usize].join(",");
        let mut all = vec![format!("{p}({})", steps(p))];
        for factor in (2..p).filter(|factor| p.is_multiple_of(*factor)) {
            let rest = factorisations(p / factor);
            all.extend(rest.iter().map(|rest| format!("{factor}({}){rest}", steps(factor))));
        }
        all
    }
    let parse = |phases: String| Choice::parse(Collective::Allreduce, &format!("cyclic-shift:{phases}")).unwrap();
    factorisations(p).into_iter().map(parse).collect()
}

fn chains(p: usize) -> Vec<Choice> {
    let algorithm = algorithms(Collective::Allreduce).find(|algorithm| algorithm.name == "addition-chain").unwrap();
    Choice::variants(algorithm, &problem(p))
}

#[test]
fn chains_are_never_behind_the_factorised_forms() {
    for p in 2..=64 {
        for bytes in [8, 256, 2048, 16_384] {
            let (chain, factorised) = (best(p, bytes, &chains(p)), best(p, bytes, &factorised(p)));
            assert!(chain <= factorised * (1.0 + 1e-12), "{p} ranks, {bytes} B: {chain} s against {factorised} s");
        }
    }
}

#[test]
fn shorter_chains_are_ahead_where_bytes_count() {
    for p in [23, 31, 43, 46, 47] {
        let (chain, factorised) = (best(p, 16_384, &chains(p)), best(p, 16_384, &factorised(p)));
        assert!(chain < factorised * 0.95, "{p} ranks: {chain} s against {factorised} s");
    }
}

/// Where messages of a round cost little more than one, and bytes something. (NAP with several ports can be ahead of both.)
#[test]
fn the_search_finds_them() {
    let aries = Machine::shipped("aries").unwrap();
    for (p, bytes) in [(43, 256), (47, 256), (94, 256)] {
        let problem = Problem::new(Collective::Allreduce, Topology::regular(p, 1).unwrap());
        let best = best_choices(&problem, Amount::bytes(bytes), &aries, Allowance::default()).unwrap();
        let mut others = best.iter().filter(|ranked| ranked.choice.algorithm.name != "nap");
        let (first, other) =
            (others.next().unwrap(), others.find(|ranked| ranked.choice.algorithm.name != "addition-chain"));
        assert_eq!(first.choice.algorithm.name, "addition-chain", "{p} ranks, {bytes} B");
        assert!(first.seconds < other.unwrap().seconds, "{} against {}", first.choice, other.unwrap().choice);
    }
}
