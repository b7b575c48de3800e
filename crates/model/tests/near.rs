//! Sums of two ranks of a node go in blocks that are sent on while they are near, where a machine says so.

use allhands_model::{Allowance, Amount, Machine, best_choices};
use allhands_schedule::{Collective, Problem, Topology};

fn best(collective: Collective, topology: Topology, machine: &Machine, bytes: u64) -> String {
    let allowance = Allowance { shares: false, ..Allowance::default() };
    let found = best_choices(&Problem::new(collective, topology), Amount::bytes(bytes), machine, allowance).unwrap();
    found[0].choice.to_string()
}

#[test]
fn a_long_allreduce_of_two_ranks_goes_in_blocks() {
    let generic = Machine::shipped("generic").unwrap();
    let of = |bytes| best(Collective::Allreduce, Topology::regular(1, 2).unwrap(), &generic, bytes);
    for (bytes, blocks) in [(256 << 10, 2), (512 << 10, 4), (1 << 20, 8), (4 << 20, 32)] {
        assert_eq!(of(bytes), format!("rabenseifner:blocks={blocks}"), "{bytes} bytes");
    }
    for bytes in [8, 8 << 10, 128 << 10] {
        assert!(!of(bytes).contains("blocks"), "{bytes} bytes: {}", of(bytes));
    }
}

#[test]
fn nothing_else_does() {
    let (generic, threads) = (Machine::shipped("generic").unwrap(), Machine::shipped("threads").unwrap());
    let two = || Topology::regular(1, 2).unwrap();
    for (topology, machine) in
        [(two(), &threads), (Topology::regular(1, 4).unwrap(), &generic), (Topology::regular(2, 1).unwrap(), &generic)]
    {
        let best = best(Collective::Allreduce, topology, machine, 1 << 20);
        assert!(!best.contains("blocks="), "{best} on {}", machine.name);
    }
    let reduce = best(Collective::Reduce, two(), &generic, 1 << 20);
    assert!(!reduce.contains("rabenseifner"), "{reduce}");
}
