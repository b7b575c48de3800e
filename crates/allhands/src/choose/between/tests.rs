use allhands_model::{Allowance, Machine, best_choices, simulate};
use allhands_schedule::Collective;

use super::*;
use crate::tuning::{Cell, Time, Tuning};

const ABLE: Abilities = Abilities { library: true, allowance: Allowance { shares: true, memory: None } };

fn time(algorithm: &str, us: f64) -> Time {
    Time { algorithm: algorithm.into(), median_us: us, p10_us: us, p90_us: us, samples: 9 }
}

fn file(cells: Vec<Cell>) -> Tuning {
    let mut file = Tuning::new("an MPI");
    file.cells = cells;
    file
}

#[test]
fn the_shapes_own_numbers_are_carried_to_other_shapes() {
    for (collective, name, there) in [
        (Collective::Allreduce, "nap:local=shared", Some("nap:local=shared")),
        (Collective::Bcast, "cyclic-shift:radix=4", Some("cyclic-shift:radix=3")),
        (Collective::Bcast, "cyclic-shift:radix=8", Some("cyclic-shift:radix=6")),
        (
            Collective::Allgather,
            "multi-leader:leaders=4:level=1:local=shared",
            Some("multi-leader:leaders=3:level=1:local=shared"),
        ),
        (Collective::Bcast, "cyclic-shift:radix=5", None),
    ] {
        let read = |name: &str| Choice::parse(collective, name).unwrap();
        assert_eq!(carried(&read(name), (2, 4), (2, 3)), there.map(read), "{name}");
    }
}

/// The model is wrong by a factor about the algorithm that it takes for the best, and by none about others: another is chosen, and takes as long as the model says.
#[test]
fn what_took_longer_than_the_model_says_does_so_nearby() {
    let generic = Machine::shipped("generic").unwrap();
    let ranked = |nodes, ranks| {
        let problem = Problem::new(Collective::Allreduce, Topology::regular(nodes, ranks).unwrap());
        (best_choices(&problem, Amount::bytes(64), &generic, ABLE.allowance).unwrap(), problem)
    };
    let kind = |choice: &Choice| (choice.algorithm.name, choice.shares());
    let (here, problem) = ranked(3, 4);
    let slow = kind(&here[0].choice);
    let cell = |nodes: usize, ranks_per_node: usize, library: f64| {
        let took = |Ranked { choice, seconds, .. }: &Ranked| {
            time(&choice.to_string(), seconds * 1e6 * if kind(choice) == slow { 7.0 } else { 1.0 })
        };
        let mut times: Vec<Time> = ranked(nodes, ranks_per_node).0.iter().map(took).collect();
        let fastest = times.iter().map(|time| time.median_us).fold(f64::INFINITY, f64::min);
        times.push(time("mpi", fastest * library));
        Cell { collective: "allreduce".into(), nodes, ranks_per_node, bytes: 64, times }
    };
    for library in [1.1, 0.5] {
        let tuning = file(vec![cell(2, 4, library), cell(4, 4, library)]);
        let evidence = Evidence::of_machine(generic.clone()).with_tuning(tuning);
        let Decision { why, best, .. } = evidence.between(&problem, 64, ABLE).unwrap();
        assert!(why.to_string().starts_with("the tuning file (2 cells): "), "{why}");
        let ours: Vec<&(Server, f64)> = best.iter().filter(|(server, _)| *server != Server::Library).collect();
        let expected = here.iter().find(|ranked| kind(&ranked.choice) != slow).unwrap();
        assert_eq!(ours[0].0.choice(), Some(&expected.choice));
        assert!((ours[0].1 / (expected.seconds * 1e6) - 1.0).abs() < 1e-9);
        let own = best.iter().find(|(server, _)| *server == Server::Library).unwrap();
        assert!((own.1 / ours[0].1 - library).abs() < 1e-9);
        assert_eq!(best[0].0 == Server::Library, library < 1.0);
        // What was learned is not followed where the MPI's own might get a device's memory.
        let learned = Evidence { learned: true, ..evidence };
        assert!(learned.between(&problem, 64, ABLE).unwrap().best.iter().all(|(server, _)| *server != Server::Library));
    }
    let far_away = Problem::new(Collective::Allreduce, Topology::regular(64, 4).unwrap());
    let tuning = file(vec![cell(2, 4, 1.0)]);
    let evidence = Evidence::of_machine(generic.clone()).with_tuning(tuning);
    assert_eq!(evidence.between(&far_away, 64, ABLE), None);
}

/// What `allhands tune` would measure on machines that do as their models say, on shapes in steps of two; then choices on shapes and at sizes in between, by a
/// model that has latencies and bandwidths a fifth wrong, this way and that.
#[test]
fn between_tuned_places_choices_are_close_to_the_best() {
    let tuned = [(2, 2), (2, 4), (4, 2), (4, 4), (1, 2), (1, 4), (1, 8)];
    let held_out = ["2x3", "3x2", "2,3", "3,2", "7", "6", "3x3", "4x3", "2x4"];
    let collectives = [
        Collective::Allreduce,
        Collective::Allgather,
        Collective::Alltoall,
        Collective::ReduceScatter,
        Collective::Bcast,
        Collective::Reduce,
    ];
    let (mut cells, mut far_off, mut by_file, mut without) = (0, Vec::new(), 0, 0);
    for name in ["aries", "lassen", "blue-waters"] {
        let machine = Machine::shipped(name).unwrap();
        let problem = |collective, topology: &Topology| with_equal_blocks(&Problem::new(collective, topology.clone()));
        let ranked = |collective, topology: &Topology, bytes: usize| {
            let problem = problem(collective, topology);
            best_choices(&problem, Amount::bytes(bytes as u64), &machine, ABLE.allowance).unwrap()
        };
        let mut cells_of_file = Vec::new();
        for (nodes, ranks_per_node) in tuned {
            let topology = Topology::regular(nodes, ranks_per_node).unwrap();
            for collective in collectives {
                for bytes in [8, 64, 512, 4 << 10, 32 << 10, 256 << 10] {
                    let took = |ranked: &Ranked| time(&ranked.choice.to_string(), ranked.seconds * 1e6);
                    let times = ranked(collective, &topology, bytes).iter().take(8).map(took).collect();
                    let collective = collective.name().into();
                    cells_of_file.push(Cell { collective, nodes, ranks_per_node, bytes, times });
                }
            }
        }
        let mut wrong = machine.clone();
        for (number, protocol) in wrong.levels.iter_mut().flat_map(|level| &mut level.protocols).enumerate() {
            let [more, less] = if number % 2 == 0 { [1.2, 0.8] } else { [0.8, 1.2] };
            (protocol.latency, protocol.per_byte) = (protocol.latency * more, protocol.per_byte * less);
            protocol.overhead = protocol.overhead.min(protocol.latency);
            protocol.injection = protocol.injection.min(protocol.per_byte);
        }
        let tuned = Evidence::of_machine(wrong).with_tuning(file(cells_of_file.clone()));
        // Nobody has said what this machine is like.
        let generic = Machine::shipped("generic").unwrap();
        let assumed = Evidence::of_machine(generic.clone()).with_tuning(file(cells_of_file));
        let untuned = Evidence::of_machine(generic);
        for shape in held_out {
            let topology: Topology = shape.parse().unwrap();
            for collective in collectives {
                for bytes in [16, 256, 2 << 10, 16 << 10, 128 << 10] {
                    let problem = problem(collective, &topology);
                    let best = ranked(collective, &topology, bytes)[0].seconds;
                    let took = |evidence: &Evidence| {
                        let decision = evidence.think(&problem, bytes, Abilities { library: false, ..ABLE }).unwrap();
                        let prepared = decision.server.choice().unwrap().prepare(&problem).unwrap();
                        let time = simulate(&prepared, &machine, Amount::bytes(bytes as u64)).unwrap().seconds / best;
                        (time, decision)
                    };
                    cells += 1;
                    let (time, decision) = took(&tuned);
                    assert!(
                        decision.why.to_string().starts_with("the tuning file"),
                        "{shape} {bytes}: {}",
                        decision.why
                    );
                    if time > 1.1 {
                        far_off.push(format!("{name} {collective} {bytes} {shape} {time:.2} {}", decision.server));
                    }
                    by_file += usize::from(took(&assumed).0 > 1.1);
                    without += usize::from(took(&untuned).0 > 1.1);
                }
            }
        }
    }
    println!("{} of {cells}; {by_file} with the file and generic, {without} with generic", far_off.len());
    assert!(far_off.len() * 10 <= cells, "{} of {cells}: {far_off:#?}", far_off.len());
    assert!(by_file < without, "{by_file} with the file, {without} without");
}
