//! One node for all gives the time that all ranks give.

mod random;

use allhands_model::{Amount, Machine, Mode, Noise, Simulator};
use allhands_schedule::{Choice, Collective, Problem, Topology, algorithms};
use random::Random;

#[test]
fn exact_and_symmetric_agree_on_800_random_cases() {
    let mut random = Random(7);
    let machines = ["lassen", "blue-waters", "aries"].map(|name| Machine::shipped(name).unwrap());
    let machines: Vec<Machine> = machines.into_iter().chain([Machine::postal(1e-6, 1e-9)]).collect();
    let (mut compared, mut symmetric) = (0, 0);
    while compared < 800 {
        let (nodes, size) = (1 + random.below(12), 1 + random.below(6));
        let topology = match random.below(4) {
            0 => Topology::flat(nodes * size).unwrap(),
            1 => Topology::regular(nodes, size).unwrap().cyclic(),
            2 => Topology::nested(&[nodes, 2, size]).unwrap(),
            _ => Topology::regular(nodes, size).unwrap(),
        };
        let collective = Collective::ALL[random.below(Collective::ALL.len())];
        let all: Vec<_> = algorithms(collective).collect();
        let problem = Problem::new(collective, topology);
        let variants = Choice::variants(all[random.below(all.len())], &problem);
        let choice = &variants[random.below(variants.len())];
        let Ok(prepared) = choice.prepare(&problem) else { continue };
        let (machine, amount) = (&machines[random.below(machines.len())], Amount::bytes(1 << random.below(18)));
        let Ok(fast) = Simulator::new(&prepared).run(machine, amount) else { continue };
        let exact = Simulator::new(&prepared).exact().run(machine, amount).unwrap();
        let say =
            || format!("{collective} {choice} on {} {} {amount:?}: {fast:?} {exact:?}", problem.topology, machine.name);
        assert!((fast.seconds - exact.seconds).abs() <= 1e-9 * exact.seconds, "{}", say());
        assert_eq!((fast.far_messages, fast.shares), (exact.far_messages, exact.shares), "{}", say());
        compared += 1;
        symmetric += usize::from(fast.mode == Mode::Symmetric);
    }
    assert!(symmetric >= 150, "only {symmetric} were symmetric");
}

#[test]
fn another_size_gives_the_same_as_a_new_simulation() {
    let problem = Problem::new(Collective::Allreduce, Topology::regular(4, 3).unwrap());
    let machine = Machine::shipped("blue-waters").unwrap();
    for name in ["ring", "nap", "recursive-doubling", "rabenseifner"] {
        let prepared = Choice::parse(Collective::Allreduce, name).unwrap().prepare(&problem).unwrap();
        let mut kept = Simulator::new(&prepared);
        for bytes in [96, 8, 100_000, 96, 7, 9600] {
            let (again, anew) = (
                kept.run(&machine, Amount::bytes(bytes)),
                Simulator::new(&prepared).run(&machine, Amount::bytes(bytes)),
            );
            assert_eq!(again, anew, "{name} {bytes}");
        }
    }
}

#[test]
fn delays_are_the_same_for_the_same_seed_and_only_add() {
    let problem = Problem::new(Collective::Allgather, Topology::regular(8, 4).unwrap());
    let prepared = Choice::parse(Collective::Allgather, "bruck").unwrap().prepare(&problem).unwrap();
    let machine = Machine::shipped("lassen").unwrap();
    let time = |noise| Simulator::new(&prepared).noise(noise).run(&machine, Amount::bytes(64)).unwrap().seconds;
    let noise = Noise { seed: 3, message: 0.5, late: 0.0 };
    assert_eq!(time(noise), time(noise));
    assert!(time(noise) > time(Noise::default()));
    assert!(time(noise) != time(Noise { seed: 4, ..noise }));
    let late = time(Noise { seed: 3, message: 0.0, late: 1e-3 });
    assert!(late > 0.5e-3 && late < 1.1e-3, "{late}");
}
