//! What fewer bytes between groups of nodes are worth where the links between them are thin, and where they are worth nothing.

use allhands_model::{Amount, Machine, simulate};
use allhands_schedule::{Choice, Collective, Problem, Topology};

fn time(machine: &str, collective: Collective, algorithm: &str, topology: &str, bytes: u64) -> f64 {
    let problem = Problem::new(collective, topology.parse::<Topology>().unwrap());
    let prepared = Choice::parse(collective, algorithm).unwrap().prepare(&problem).unwrap();
    simulate(&prepared, &Machine::shipped(machine).unwrap(), Amount::bytes(bytes)).unwrap().seconds
}

#[test]
fn bine_gains_where_groups_are_not_aligned() {
    for bytes in [8, 64 << 10, 1 << 20, 16 << 20] {
        for (bine, twin) in [("bine", "rabenseifner"), ("bine:vector=whole", "recursive-doubling")] {
            let on = |machine, algorithm| time(machine, Collective::Allreduce, algorithm, "64x1", bytes);
            assert!(on("tapered", bine) < on("tapered", twin), "{bine}, {bytes} bytes");
            // The same messages of the same sizes: without groups they take the same time.
            assert_eq!(on("generic", bine), on("generic", twin), "{bine}, {bytes} bytes");
        }
    }
    for bytes in [256, 4 << 10, 64 << 10] {
        let on = |algorithm| time("tapered", Collective::Allgather, algorithm, "60x4", bytes);
        assert!(on("bine") < on("sparbit") / 1.2, "{bytes} bytes");
    }
}

#[test]
fn bine_loses_where_ranks_are_aligned_with_their_nodes() {
    let on = |algorithm| time("tapered", Collective::Allreduce, algorithm, "64x4", 16 << 20);
    assert!(on("rabenseifner") < on("bine"));
    let on = |algorithm| time("tapered", Collective::Bcast, algorithm, "64x4", 1 << 20);
    assert!(on("binomial") < on("bine"));
}
