//! A search is the calling thread's alone. The only test of its process: others would start threads of their own.

#![cfg(target_os = "linux")]

use allhands_model::{Allowance, Amount, Machine, best_choices, simulate};
use allhands_schedule::{Choice, Collective, Problem, Topology};

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

#[test]
fn a_search_starts_no_thread() {
    let before = threads();
    let machine = Machine::shipped("generic").unwrap();
    // Alike and unlike nodes, few ranks and so many that a simulation of them asks for help.
    for text in ["4x4", "3,5,4", "256x32", "[[0,1,2],[3],[4,5]]"] {
        for collective in [Collective::Allreduce, Collective::Allgather, Collective::Alltoall, Collective::Barrier] {
            let problem = Problem::new(collective, text.parse().unwrap());
            best_choices(&problem, Amount::bytes(1024), &machine, Allowance::default()).unwrap();
        }
    }
    let uneven: Vec<usize> = (0..1000).map(|node| 5 + node % 7).collect();
    let problem = Problem::new(Collective::Allreduce, Topology::uneven(&uneven).unwrap());
    best_choices(&problem, Amount::bytes(8), &machine, Allowance::default()).unwrap();
    assert_eq!(threads(), before);
    // A simulation that is asked for by itself may: threads would have been noticed.
    let tree = Choice::parse(Collective::Allreduce, "tree").unwrap().prepare(&problem).unwrap();
    simulate(&tree, &machine, Amount::bytes(8)).unwrap();
    assert!(threads() > before, "a simulation of {} ranks started no thread", problem.ranks());
}
