//! No simulation beats the lower bound in seconds.

use allhands_model::{Amount, Bound, Machine, Simulator};
use allhands_schedule::{Choice, Collective, Problem, algorithms};

#[test]
fn nothing_in_the_registry_is_faster_than_its_bound() {
    let shipped = Machine::shipped_names().map(|name| Machine::shipped(name).unwrap());
    let flows = Machine::parse(include_str!("simgrid/cluster.toml")).unwrap();
    let machines: Vec<Machine> = shipped.chain([Machine::postal(1e-6, 1e-9), flows]).collect();
    for text in ["1x1", "2", "7", "4x2", "2x4", "3,1,2", "2x2x2", "6x4"] {
        for collective in Collective::ALL {
            let problem = Problem::new(collective, text.parse().unwrap());
            for choice in algorithms(collective).flat_map(|algorithm| Choice::variants(algorithm, &problem)) {
                let Ok(prepared) = choice.prepare(&problem) else { continue };
                let mut simulator = Simulator::new(&prepared);
                for machine in &machines {
                    for bytes in [8, 4096, 1 << 20] {
                        let amount = Amount::bytes(bytes);
                        let Ok(estimate) = simulator.run(machine, amount) else { continue };
                        let bound = Bound::new(&problem, machine, amount, estimate.shares);
                        assert!(
                            estimate.seconds >= bound.seconds() * (1.0 - 1e-9),
                            "{collective} {choice} on {text}, {}, {bytes} B: {} < {bound:?}",
                            machine.name,
                            estimate.seconds
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn the_bound_of_every_collective_is_what_the_table_says() {
    let machine = Machine::postal(1.0, 1.0);
    let bound = |collective| {
        let problem = Problem::new(collective, "16".parse().unwrap());
        let bound = Bound::new(&problem, &machine, Amount::bytes(160), false);
        (bound.steps, bound.bytes)
    };
    assert_eq!(bound(Collective::Allgather), (4.0, 2400.0));
    assert_eq!(bound(Collective::Alltoall), (4.0, 2400.0));
    assert_eq!(bound(Collective::ReduceScatterBlock), (4.0, 2400.0));
    assert_eq!(bound(Collective::Allreduce), (4.0, 300.0));
    assert_eq!(bound(Collective::Bcast), (4.0, 160.0));
    assert_eq!(bound(Collective::Reduce), (4.0, 160.0));
    assert_eq!(bound(Collective::Barrier), (4.0, 0.0));
}
