//! What the papers show, simulated.

use allhands_model::formulas::{Postal, loc_bruck, nap, radix};
use allhands_model::{Amount, Machine, Simulator, rank_choices, simulate};
use allhands_schedule::{Choice, Collective, Problem, Topology};

/// Microseconds.
fn time(machine: &Machine, collective: Collective, topology: &Topology, name: &str, bytes: u64) -> f64 {
    let problem = Problem::new(collective, topology.clone());
    let prepared = Choice::parse(collective, name).unwrap().prepare(&problem).unwrap();
    simulate(&prepared, machine, Amount::bytes(bytes)).unwrap().seconds * 1e6
}

#[test]
fn nap_on_blue_waters_takes_as_long_as_modelled() {
    let machine = Machine::shipped("blue-waters").unwrap();
    for (ranks, targets) in [(256, [12.6, 14.5, 9.1]), (4096, [21.7, 22.3, 14.9]), (32768, [28.6, 28.1, 19.7])] {
        let topology = Topology::regular(ranks / 16, 16).unwrap();
        for (name, target) in ["recursive-doubling", "smp", "nap"].into_iter().zip(targets) {
            let time = time(&machine, Collective::Allreduce, &topology, name, 8);
            assert!((time / target - 1.0).abs() < 0.1, "{name} {ranks}: {time} beside {target}");
        }
    }
}

#[test]
fn nap_leads_smp_up_to_4_kib_and_falls_behind_after() {
    let machine = Machine::shipped("blue-waters").unwrap();
    let topology = Topology::regular(2048, 16).unwrap();
    let lead = |bytes| {
        let [smp, nap] = ["smp", "nap"].map(|name| time(&machine, Collective::Allreduce, &topology, name, bytes));
        smp / nap
    };
    assert!([8, 512, 2048, 4096].into_iter().all(|bytes| lead(bytes) > 1.0));
    assert!([8192, 16384].into_iter().all(|bytes| lead(bytes) < 1.0));
}

#[test]
fn corrected_nap_models_are_what_is_simulated_at_powers() {
    let machine = Machine::shipped("blue-waters").unwrap();
    let far = machine.levels[0].protocols[0];
    let postal =
        |protocol: &allhands_model::Protocol| Postal { latency: protocol.latency, per_byte: protocol.per_byte };
    for nodes in [16, 256] {
        let topology = Topology::regular(nodes, 16).unwrap();
        let setting = nap::Setting {
            nodes,
            per_node: 16,
            bytes: 8.0,
            near: postal(&machine.levels[1].protocols[0]),
            alone: postal(&far),
            crowded: postal(&far.among(16)),
            combine: machine.combine,
        };
        for (name, formula) in [
            ("recursive-doubling", nap::recursive_doubling(&setting)),
            ("smp", nap::smp(&setting)),
            ("nap", nap::nap(&setting)),
        ] {
            let time = time(&machine, Collective::Allreduce, &topology, name, 8);
            assert!((time / (formula * 1e6) - 1.0).abs() < 0.02, "{name} {nodes}: {time} beside {}", formula * 1e6);
        }
        assert!(nap::smp_printed(&setting) < nap::smp(&setting)); // without the broadcast
        assert!(nap::nap_printed(&setting) > nap::nap(&setting)); // with a reduction too many
    }
}

#[test]
fn loc_bruck_on_lassen_gains_three_times_and_dips_where_regions_are_no_power() {
    let lassen = Machine::shipped("lassen").unwrap();
    let gain = |regions, bytes| {
        let topology = Topology::regular(regions, 16).unwrap();
        let [bruck, loc] =
            ["bruck", "loc-bruck"].map(|name| time(&lassen, Collective::Allgather, &topology, name, bytes));
        bruck / loc
    };
    let (power, other) = (gain(256, 4), gain(1024, 4));
    assert!(power > 2.8 && power < 3.3, "{power}");
    assert!(other > 1.3 && other < 2.2, "{other}");
}

#[test]
fn padding_makes_loc_bruck_lose_and_even_shares_let_it_win() {
    let lassen = Machine::shipped("lassen").unwrap();
    let (near, far) = (&lassen.levels[2], &lassen.levels[0]);
    let bruck = loc_bruck::bruck_by_messages(far, 16384, 1024);
    let loc = |share| loc_bruck::loc_bruck_by_messages(near, far, 1024, 16, 1024, share);
    let (padded, even) = (loc(loc_bruck::Share::Padded), loc(loc_bruck::Share::Even));
    assert!(padded > bruck && even < bruck);
    for (time, target) in [(padded, 2.67e-3), (even, 0.93e-3), (bruck, 1.33e-3)] {
        assert!((time / target - 1.0).abs() < 0.02, "{time} beside {target}");
    }
}

#[test]
fn bruck_by_messages_is_what_is_simulated_without_contention() {
    let alone = Machine::shipped("lassen").unwrap().uncontended();
    for regions in [16, 256] {
        let topology = Topology::regular(regions, 16).unwrap();
        let formula = loc_bruck::bruck_by_messages(&alone.levels[0], regions * 16, 4) * 1e6;
        let time = time(&alone, Collective::Allgather, &topology, "bruck", 4);
        assert!((time / formula - 1.0).abs() < 1e-3, "{time} beside {formula}");
    }
}

/// A latency as long as the transfer of 1 KiB: below, spreading out wins already at 1 KiB; above, three digits at 64 B.
#[test]
fn the_best_radix_lies_near_the_root_of_the_ranks() {
    let network = Postal { latency: 1.024e-6, per_byte: 1e-9 };
    for ranks in [512usize, 2048, 4096] {
        let near_root = (ranks as f64).sqrt().ceil() as usize;
        for bytes in [64, 256, 1024] {
            let time = |radix| radix::time(network, ranks, radix, bytes);
            let best = radix::best(network, ranks, bytes);
            assert!(time(near_root) <= time(best) * 1.01, "{ranks} {bytes}: {best}");
            assert!(time(2) > 1.2 * time(near_root), "{ranks} {bytes}");
        }
        let best = radix::best(network, ranks, 256);
        assert!(best.abs_diff(near_root) <= near_root / 10, "{ranks}: {best}");
    }
}

/// Table 2 of Jocksch et al.: its ports beside ports that it would not choose at that size.
#[test]
fn cyclic_shift_on_aries_follows_the_shape_of_table_2() {
    let machine = Machine::shipped("aries").unwrap();
    let problem = Problem::new(Collective::Allreduce, Topology::regular(160, 12).unwrap());
    let candidates = [
        "160(12,12)",
        "160(-12,-12)160(12,12)",
        "160(-2,-5,-8)160(8,5,2)",
        "160(-1,-1,-1,-2,-6)160(6,2,1,1,1)",
        "160(-1,-1,-1,-1,-1,-1,-2)160(2,1,1,1,1,1,1)",
        "160(1,1,1,1,1,1,1,1)",
    ];
    let choices = candidates
        .map(|phases| format!("cyclic-shift:phases={phases}:local=shared"))
        .map(|text| Choice::parse(Collective::Allreduce, &text).unwrap());
    let best = |bytes: u64| {
        let ranked = rank_choices(&problem, Amount::bytes(bytes), &machine, &choices).unwrap();
        let best = ranked[0].choice.to_string();
        (choices.iter().position(|choice| choice.to_string() == best).unwrap(), ranked[0].seconds * 1e6)
    };
    let (short, time) = best(8);
    assert_eq!(short, 0); // all ports, no reduce_scatter
    assert!((time / 82.11 - 1.0).abs() < 0.1, "{time}");
    assert_eq!(best(16384).0, 1); // reduce_scatter and allgather, all ports
    // More steps with fewer ports as vectors grow.
    let steps: Vec<usize> = [16384, 131072, 1 << 20, 4 << 20, 32 << 20].map(|bytes| best(bytes).0).into();
    assert!(steps.is_sorted() && steps[4] == 4, "{steps:?}");
    let longest = best(32 << 20).1;
    assert!((longest / 41850.0 - 1.0).abs() < 0.1, "{longest}");
}

/// Figure 5 of the Sparbit paper, some cells: sequential, Sparbit between Bruck and ring; dealt out, Bruck is better placed.
#[test]
fn sparbit_on_yahoo_wins_sequentially_and_loses_dealt_out() {
    let machine = Machine::shipped("yahoo").unwrap();
    let wins = |topology: &Topology| {
        let mut wins = 0;
        for bytes in (0..=20).map(|power| 1 << power) {
            let on = |name: &str| {
                let problem = Problem::new(Collective::Allgather, topology.clone());
                let prepared = Choice::parse(Collective::Allgather, name).unwrap().prepare(&problem).unwrap();
                Simulator::new(&prepared).run(&machine, Amount::bytes(bytes)).unwrap().seconds
            };
            let others = ["ring", "neighbor-exchange", "bruck"].map(on);
            wins += usize::from(others.into_iter().all(|other| on("sparbit") < other));
        }
        wins
    };
    let topology = Topology::regular(16, 6).unwrap();
    let (sequential, dealt) = (wins(&topology), wins(&topology.cyclic()));
    assert!(sequential >= 4 && dealt < sequential, "{sequential} {dealt}");
}
