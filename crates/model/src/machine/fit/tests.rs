use allhands_schedule::{Choice, Collective, Problem, Reduction, Topology};

use super::*;
use crate::{Allowance, Amount, best_choices, simulate};

const LONG: u64 = 32 << 10;
const NEAR_LONG: u64 = 4 << 10;

fn generic() -> Machine {
    Machine::shipped("generic").unwrap()
}

/// What messages of a level take.
fn measured(level: &Level, long: u64) -> Measured {
    let time = |bytes: u64| level.protocol(bytes).time(bytes);
    Measured { bytes: 8, seconds: time(8), long: Some((long, time(long))), gap: None }
}

/// What would be measured on a machine.
fn fit_of(machine: &Machine) -> Fit {
    let near = machine.levels.get(1).map(|level| measured(level, NEAR_LONG));
    Fit { far: Some(measured(&machine.levels[0], LONG)), near }
}

/// Bytes of short messages, which nobody tells apart from their latency, may be off.
fn close(one: f64, other: f64) -> bool {
    (one - other).abs() <= 0.03 * one.abs().max(other.abs()) + 1e-18
}

fn alike(one: &Machine, other: &Machine) -> bool {
    let numbers = |machine: &Machine| {
        let protocols = machine.levels.iter().flat_map(|level| &level.protocols);
        let protocols = protocols.flat_map(|one| [one.latency, one.per_byte, one.overhead, one.injection]);
        let meetings = machine.levels.iter().map(|level| level.meeting);
        meetings.chain(protocols).chain([machine.copy, machine.combine]).collect::<Vec<f64>>()
    };
    let (one, other) = (numbers(one), numbers(other));
    one.len() == other.len() && one.iter().zip(&other).all(|(one, other)| close(*one, *other))
}

fn problem(collective: Collective, topology: &str) -> Problem {
    let reduction = Reduction { commutative: true, identical: true };
    Problem::new(collective, topology.parse::<Topology>().unwrap()).with_reduction(reduction)
}

/// What is chosen on a machine.
fn choice(machine: &Machine, collective: Collective, topology: &str, bytes: u64) -> String {
    let problem = problem(collective, topology);
    let ranked = best_choices(&problem, Amount::bytes(bytes), machine, Allowance::default()).unwrap();
    ranked[0].choice.to_string()
}

/// A network of that latency whose wire has that rate, beside which everything is as on `generic`; `eager`: how long messages go at once.
fn network(latency: f64, per_byte: f64, eager: u64) -> Machine {
    let mut machine = generic();
    let [short, middle, long] = &mut machine.levels[0].protocols[..] else { panic!("three protocols") };
    let (copies, share) = (middle.per_byte - long.per_byte, long.injection / long.per_byte);
    (short.latency, middle.latency, long.latency) = (latency, latency + 0.5e-6, 3.0 * latency + 0.5e-6);
    (short.per_byte, middle.per_byte, long.per_byte) = (per_byte + copies, per_byte + copies, per_byte);
    middle.up_to = eager;
    let shared = share * per_byte - long.injection;
    for protocol in [&mut *middle, &mut *long] {
        protocol.injection = (protocol.injection + shared).max(0.0);
    }
    for protocol in [short, middle, long] {
        protocol.overhead = protocol.overhead.min(protocol.latency);
    }
    machine
}

#[test]
fn a_machine_that_is_as_assumed_stays_as_it_is() {
    let machine = generic();
    let fitted = machine.fitted(&fit_of(&machine));
    assert!(alike(&machine, &fitted), "{fitted:?}");
    assert_eq!(fitted.name, "generic, fitted here");
    assert_eq!(
        fitted.description,
        "between nodes 1.50 us and 11.8 GB/s, inside a node 0.240 us and 6.25 GB/s, the rest as on generic"
    );
    assert!(alike(&fitted.fitted(&fit_of(&fitted)), &fitted));
}

#[test]
fn what_was_measured_is_what_messages_take() {
    for machine in Machine::shipped_names().map(|name| Machine::shipped(name).unwrap()) {
        let fit = fit_of(&machine);
        let fitted = generic().fitted(&fit);
        fitted.check().unwrap();
        let far = [(8, fit.far.unwrap().seconds), fit.far.unwrap().long.unwrap()];
        let near = fit.near.map(|near| [(8, near.seconds), near.long.unwrap()]);
        for (level, (bytes, seconds)) in
            far.map(|one| (0, one)).into_iter().chain(near.into_iter().flatten().map(|one| (1, one)))
        {
            let says = fitted.levels[level].protocol(bytes).time(bytes);
            // A byte of a short message may take less or more than was assumed.
            assert!((says / seconds - 1.0).abs() < 0.1, "{}, {bytes} bytes: {seconds}, fitted {says}", machine.name);
        }
    }
}

#[test]
fn a_network_that_was_measured_is_chosen_for_as_if_it_were_known() {
    for (latency, rates) in
        [(0.5e-6, [0.04e-9, 0.085e-9]), (1.5e-6, [0.085e-9, 0.8e-9]), (50e-6, [0.8e-9, 8e-9]), (2e-3, [0.8e-9, 8e-9])]
    {
        for per_byte in rates {
            for eager in [16 << 10, LONG] {
                let known = network(latency, per_byte, eager);
                known.check().unwrap();
                let fitted = generic().fitted(&fit_of(&known));
                // By one time alone, bytes and waiting cannot always be told apart.
                let waits = fitted.levels[0].protocol(LONG).rendezvous;
                if waits != (eager < LONG) {
                    continue;
                }
                assert!(alike(&known, &fitted), "{latency} {per_byte} {eager}: {known:?} {fitted:?}");
                for (collective, bytes) in
                    [(Collective::Allreduce, 8), (Collective::Allreduce, 64 << 10), (Collective::Bcast, 4096)]
                {
                    let [here, best] = [&fitted, &known].map(|machine| choice(machine, collective, "4x4", bytes));
                    let time = |choice: &str| {
                        let prepared = Choice::parse(collective, choice).unwrap();
                        let prepared = prepared.prepare(&problem(collective, "4x4")).unwrap();
                        simulate(&prepared, &known, Amount::bytes(bytes)).unwrap().seconds
                    };
                    // The search looks at so many settings and no more: of those that take about as long it may end with another.
                    assert!(
                        time(&here) <= 1.05 * time(&best),
                        "{latency} {per_byte} {eager}: {here} in place of {best}"
                    );
                }
            }
        }
    }
}

/// The same memory, half as fast: nothing that goes through it is chosen for that.
#[test]
fn what_is_copied_inside_a_node_is_as_slow_as_its_messages() {
    let mut slow = generic();
    for protocol in &mut slow.levels[1].protocols {
        (protocol.latency, protocol.per_byte) = (2.0 * protocol.latency, 2.0 * protocol.per_byte);
    }
    let fitted = generic().fitted(&fit_of(&slow));
    let shares =
        |machine: &Machine| [machine.copy, machine.combine].map(|time| time / machine.levels[1].protocols[1].per_byte);
    assert!(shares(&fitted).into_iter().zip(shares(&generic())).all(|(one, other)| close(one, other)), "{fitted:?}");
    assert!(fitted.copy > 1.9 * generic().copy, "{fitted:?}");
    for (collective, bytes) in [8 << 10, 64 << 10, 512 << 10]
        .into_iter()
        .flat_map(|bytes| [Collective::Allreduce, Collective::Allgather, Collective::Alltoall].map(|of| (of, bytes)))
    {
        let shares = |machine: &Machine| choice(machine, collective, "1x2", bytes).contains("local=shared");
        assert_eq!(shares(&fitted), shares(&generic()), "{collective} of {bytes} bytes");
    }
}

#[test]
fn whether_a_message_waits_is_told_where_it_matters() {
    // Where three latencies are neither next to nothing nor about as long as the bytes take.
    for (latency, per_byte) in [(50e-6, 0.8e-9), (500e-6, 8e-9), (2e-3, 8e-9)] {
        for eager in [16 << 10, LONG] {
            let fitted = generic().fitted(&fit_of(&network(latency, per_byte, eager)));
            assert_eq!(fitted.levels[0].protocol(LONG).rendezvous, eager < LONG, "{latency} {per_byte}");
        }
    }
}

#[test]
fn a_slow_network_is_crossed_less_often() {
    let slow = generic().fitted(&fit_of(&network(500e-6, 8e-9, LONG)));
    for (collective, topology, bytes, assumed, here) in [
        // Every node sends to every other at once, in place of phases that halve the vector.
        (
            Collective::Allreduce,
            "16x2",
            64 << 10,
            "cyclic-shift:phases=2(-1)16(-1,-2,-2)16(2,2,2)2(1)",
            "multi-lane:radix=16",
        ),
        (Collective::Allgather, "16x2", 8 << 10, "multi-lane:radix=14", "multi-lane:radix=16"),
        (Collective::Allgather, "8x4", 1 << 20, "ring", "multi-lane:radix=8"),
        (Collective::Bcast, "8x4", 8, "hierarchical:radix=3:local=shared", "hierarchical:radix=8:local=shared"),
    ] {
        assert_eq!(choice(&generic(), collective, topology, bytes), assumed);
        assert_eq!(choice(&slow, collective, topology, bytes), here);
    }
}

#[test]
fn overheads_are_the_processors_whatever_the_network() {
    let slow = generic().fitted(&fit_of(&network(500e-6, 8e-9, LONG)));
    let fast = generic().fitted(&fit_of(&network(0.2e-6, 0.085e-9, LONG)));
    for (index, assumed) in generic().levels[0].protocols.iter().enumerate() {
        assert_eq!(slow.levels[0].protocols[index].overhead, assumed.overhead);
        assert!(fast.levels[0].protocols[index].overhead <= fast.levels[0].protocols[index].latency);
    }
}

/// Where each message keeps its rank, those that send few are better.
#[test]
fn messages_that_keep_their_rank_are_sent_less_often() {
    let fit = fit_of(&network(500e-6, 8e-9, LONG));
    let with = |gap: Option<f64>| {
        let far = fit.far.map(|far| Measured { gap, ..far });
        generic().fitted(&Fit { far, ..fit })
    };
    assert_eq!(with(Some(1e-9)), with(None), "what is assumed is more");
    assert_eq!(with(Some(60e-6)).levels[0].protocols[0].overhead, 60e-6);
    assert_eq!(with(Some(1.0)).levels[0].protocols[0].overhead, with(None).levels[0].protocols[0].latency);
    assert!(with(Some(60e-6)).description.contains(" us, 60.0 us a message and "));
    let chosen = |gap| choice(&with(gap), Collective::Alltoall, "4x4", 8 << 10);
    assert_eq!([chosen(None), chosen(Some(200e-6))], ["multi-leader:leaders=3:level=1", "node-aware:local=shared"]);
}

#[test]
fn nonsense_is_as_if_nobody_had_tried() {
    let times = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, 0.0, 1e-30, 1e30];
    for seconds in times {
        let measured = Measured { bytes: 8, seconds, long: Some((LONG, 1e-3)), gap: Some(seconds) };
        assert_eq!(generic().fitted(&Fit { far: Some(measured), near: Some(measured) }), generic());
        let sound = Measured { seconds: 20e-6, ..measured };
        let fitted =
            generic().fitted(&Fit { far: Some(Measured { long: Some((LONG, seconds)), ..sound }), near: None });
        let without = generic().fitted(&Fit { far: Some(Measured { long: None, ..sound }), near: None });
        assert_eq!(fitted, without, "{seconds}");
        fitted.check().unwrap();
    }
    assert_eq!(generic().fitted(&Fit::default()), generic());
}

#[test]
fn any_times_make_a_sound_machine() {
    for machine in Machine::shipped_names().map(|name| Machine::shipped(name).unwrap()) {
        let times: Vec<f64> = (-9..=1).map(|power| 10f64.powi(power)).collect();
        for &seconds in &times {
            for &long in &times {
                let measured = Some(Measured { bytes: 8, seconds, long: Some((LONG, long)), gap: Some(long) });
                machine.fitted(&Fit { far: measured, near: measured }).check().unwrap();
            }
        }
    }
}
