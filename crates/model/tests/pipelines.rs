//! Long bcasts near their bound: what the search finds on a machine with a node's rate of 20 GB/s, shared by 16 ranks, and 5 GB/s a message.

use allhands_model::{Allowance, Amount, Bound, Machine, best_choices, rank_choices};
use allhands_schedule::{Choice, Collective, Problem, Topology};

fn machine(ports: &str) -> Machine {
    let protocol =
        |latency: f64, rate: &str| format!("latency_us = {latency}\noverhead_us = 0.2\n{rate}\nsource = \"made up\"\n");
    let (far, near) = ("ns_per_byte = 0.2\ninjection_ns_per_byte = 0.05", "ns_per_byte = 0.1");
    let text = format!(
        "schema = 2\nname = \"judge\"\ndescription = \"20 GB/s a node\"\nsource = \"made up\"\n{ports}\ncombine_ns_per_byte = 0.0\ncopy_ns_per_byte = 0.0\n\
         [[level]]\nname = \"network\"\n[level.short]\n{}[level.rendezvous]\nfrom_bytes = 8192\n{}\
         [[level]]\nname = \"node\"\nmeeting_us = 100000.0\n[level.short]\n{}[level.rendezvous]\nfrom_bytes = 8192\n{}\
         [end]\nlevels = 2\n",
        protocol(2.4032, far),
        protocol(2.2032, far),
        protocol(0.9016, near),
        protocol(0.7016, near),
    );
    Machine::parse(&text).unwrap()
}

/// Seconds of what is found, and the bound.
fn bcast(machine: &Machine, nodes: usize, bytes: u64) -> (String, f64, f64) {
    let problem = Problem::new(Collective::Bcast, Topology::regular(nodes, 16).unwrap());
    let best = best_choices(&problem, Amount::bytes(bytes), machine, Allowance::default()).unwrap().remove(0);
    let bound = Bound::new(&problem, machine, Amount::bytes(bytes), false).seconds();
    (best.choice.algorithm.name.into(), best.seconds, bound)
}

#[test]
fn a_long_bcast_is_found_that_takes_about_twice_its_bound() {
    let one = machine("ports = 1");
    for (nodes, bytes, times) in [(16, 1 << 20, 2.0), (64, 1 << 20, 2.1), (16, 1 << 24, 1.9)] {
        let (name, seconds, bound) = bcast(&one, nodes, bytes);
        assert!(
            ["pipeline", "circulant-lanes"].contains(&&*name) && seconds < times * bound,
            "{nodes} nodes, {bytes} B: {seconds} beside {bound}, {name}"
        );
    }
}

/// The machine as SimGrid has it, where ranks of a node cannot share memory.
#[test]
fn on_simgrid_s_cluster_it_takes_at_most_twice_its_bound() {
    let cluster = Machine::parse(include_str!("simgrid/cluster.toml")).unwrap();
    let by_messages = Allowance { shares: false, memory: None };
    for (nodes, bytes, most) in [(16, 1 << 20, None), (64, 1 << 20, None), (16, 1 << 16, Some(25e-6))] {
        let problem = Problem::new(Collective::Bcast, Topology::regular(nodes, 16).unwrap());
        let best = best_choices(&problem, Amount::bytes(bytes), &cluster, by_messages).unwrap().remove(0);
        let bound = Bound::new(&problem, &cluster, Amount::bytes(bytes), false).seconds();
        let most = most.unwrap_or(2.0 * bound);
        assert!(best.simulated && best.seconds <= most, "{nodes} nodes, {bytes} B: {best:?} beside {bound}");
    }
}

#[test]
fn where_every_message_is_a_flow_of_its_own_it_takes_less() {
    let flows = machine("");
    let (name, seconds, bound) = bcast(&flows, 16, 1 << 20);
    assert!(name == "pipeline" && seconds < 1.5 * bound, "{seconds} beside {bound}, {name}");
    let (name, seconds, _) = bcast(&flows, 16, 1 << 16);
    assert!(name == "pipeline" && seconds < 20e-6, "{seconds}, {name}");
}

/// On many ranks every simulation is a large share of all that a search may do.
#[test]
fn on_many_ranks_settings_are_changed_too_and_guesses_are_checked() {
    let cluster = Machine::parse(include_str!("simgrid/cluster.toml")).unwrap();
    let problem = Problem::new(Collective::Reduce, Topology::regular(32, 32).unwrap());
    let best = best_choices(&problem, Amount::bytes(8), &cluster, Allowance::default()).unwrap().remove(0);
    let radices = [2, 3, 4, 6, 8, 12, 16].map(|radix| format!("cyclic-shift:radix={radix}"));
    let radices = radices.map(|text| Choice::parse(Collective::Reduce, &text).unwrap());
    let by_hand = rank_choices(&problem, Amount::bytes(8), &cluster, &radices).unwrap().remove(0);
    assert!(best.simulated && best.seconds <= 1.01 * by_hand.seconds, "{best:?} beside {by_hand:?}");

    // A quick estimate of another algorithm says that it takes less than is possible.
    let problem = Problem::new(Collective::Bcast, Topology::regular(16, 16).unwrap());
    let best = best_choices(&problem, Amount::bytes(64 << 20), &cluster, Allowance::default()).unwrap().remove(0);
    let bound = Bound::new(&problem, &cluster, Amount::bytes(64 << 20), false).seconds();
    assert!(best.simulated && best.seconds < 1.2 * bound, "{best:?} beside {bound}");
}

/// Where a message is under way for as long as 70 KiB take, long blocks follow each other; short ones would wait for each other in every round.
#[test]
fn blocks_are_as_long_as_latency_asks_for() {
    let protocol = "latency_us = 580.0\noverhead_us = 29.0\nns_per_byte = 7.94\ninjection_ns_per_byte = 7.94\nsource = \"as fitted over TCP\"\n";
    let near = "latency_us = 0.4\noverhead_us = 0.2\nns_per_byte = 0.16\nsource = \"made up\"\n";
    let text = format!(
        "schema = 2\nname = \"slow\"\ndescription = \"1 Gbit/s a node\"\nsource = \"made up\"\nports = 1\ncombine_ns_per_byte = 0.02\ncopy_ns_per_byte = 0.16\n\
         [[level]]\nname = \"network\"\n[level.short]\n{protocol}[level.rendezvous]\nfrom_bytes = 16385\n{protocol}\
         [[level]]\nname = \"node\"\nmeeting_us = 0.5\n[level.short]\n{near}[end]\nlevels = 2\n"
    );
    let slow = Machine::parse(&text).unwrap();
    for (collective, bytes, times) in [
        (Collective::Bcast, 1 << 20, 1.3),
        (Collective::Bcast, 4 << 20, 1.1),
        (Collective::Reduce, 1 << 20, 1.3),
        (Collective::Reduce, 4 << 20, 1.1),
    ] {
        let problem = Problem::new(collective, Topology::regular(4, 4).unwrap());
        let best = best_choices(&problem, Amount::bytes(bytes), &slow, Allowance::default()).unwrap().remove(0);
        let bound = Bound::new(&problem, &slow, Amount::bytes(bytes), false).seconds();
        assert!(best.seconds < times * bound, "{collective} of {bytes} B: {best:?} beside {bound}");
    }
}
