//! The search finds the papers' algorithms by itself, from their steps alone, and what is faster where there is something.

use allhands_model::{Allowance, Amount, Found, Machine, Ranked, search_compositions, search_settings, simulate};
use allhands_schedule::{Choice, Collective, Problem, Topology, verify};

const MESSAGES: Allowance = Allowance { shares: false, memory: None };

/// The first widths only: no clock decides what a test finds.
fn search(problem: &Problem, machine: &Machine, bytes: u64, allowance: Allowance) -> Found {
    let mut go_on = |width: usize| width < 100;
    search_compositions(problem, Amount::bytes(bytes), machine, allowance, &mut go_on).unwrap()
}

fn seconds(problem: &Problem, machine: &Machine, bytes: u64, name: &str) -> f64 {
    let prepared = Choice::parse(problem.collective, name).unwrap().prepare(problem).unwrap();
    simulate(&prepared, machine, Amount::bytes(bytes)).unwrap().seconds
}

fn problem(collective: Collective, nodes: usize, ranks: usize) -> Problem {
    Problem::new(collective, Topology::regular(nodes, ranks).unwrap())
}

#[test]
fn loc_bruck_and_nap_or_better_are_found_on_every_shipped_machine() {
    for name in ["lassen", "blue-waters", "aries"] {
        let machine = Machine::shipped(name).unwrap();
        for nodes in [4, 8] {
            for (collective, papers) in [
                (Collective::Allgather, ["loc-bruck", "loc-bruck:fan=full"]),
                (Collective::Allreduce, ["nap", "nap:fan=full"]),
            ] {
                let problem = problem(collective, nodes, 4);
                let best = &search(&problem, &machine, 8, MESSAGES).best[0];
                for paper in papers {
                    let known = seconds(&problem, &machine, 8, paper);
                    let Ranked { choice, seconds, .. } = best;
                    assert!(*seconds <= known * 1.000_001, "{name}, {nodes}x4: {choice} {seconds}, {paper} {known}");
                }
            }
        }
    }
}

/// On eight nodes of four: the last window is fetched by everybody for himself, which saves the near part after it.
#[test]
fn what_is_faster_than_everything_registered_is_found_and_right() {
    let machine = Machine::shipped("blue-waters").unwrap();
    let problem = problem(Collective::Allgather, 8, 4);
    let found = search(&problem, &machine, 8, MESSAGES);
    let mut registered = search_settings(&problem, Amount::bytes(8), &machine, MESSAGES, &mut || true).unwrap();
    registered.retain(|ranked| !ranked.choice.algorithm.name.starts_with("composed"));
    assert!(
        found.best[0].seconds * 1.1 < registered[0].seconds,
        "{} and {}",
        found.best[0].choice,
        registered[0].choice
    );
    for Ranked { choice, .. } in &found.best {
        verify(&choice.prepare(&problem).unwrap().ensemble()).unwrap_or_else(|fault| panic!("{choice}: {fault}"));
    }
}

#[test]
fn through_memory_too_and_nothing_where_there_are_no_compositions() {
    let machine = Machine::shipped("generic").unwrap();
    let everything = Allowance::default();
    let shared = problem(Collective::Allgather, 4, 4);
    let best = &search(&shared, &machine, 8, everything).best[0];
    assert!(best.choice.shares() && best.seconds <= seconds(&shared, &machine, 8, "loc-bruck:local=shared"));
    assert!(search(&problem(Collective::Bcast, 4, 4), &machine, 8, everything).best.is_empty());
    let uneven = Problem::new(Collective::Allgather, "3,4".parse().unwrap());
    assert!(search(&uneven, &machine, 8, everything).best.is_empty());
}
