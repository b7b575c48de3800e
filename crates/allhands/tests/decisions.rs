//! What is decided for many problems, written down: all ranks of a job decide for themselves, so a decision must not depend on the
//! machine, the build or the day. A change of the model or of the search shows here, and is to be looked at before it is taken over.

use std::fmt::Write as _;

use allhands::{Evidence, Topology, Tuning};
use allhands_model::{Allowance, Machine};
use allhands_schedule::{Collective, Problem, Reduction};

const COLLECTIVES: [Collective; 7] = [
    Collective::Allgather,
    Collective::Alltoall,
    Collective::Allreduce,
    Collective::ReduceScatter,
    Collective::Bcast,
    Collective::Reduce,
    Collective::Barrier,
];

/// The chosen one, the others that a decision names, and their times.
fn write(text: &mut String, evidence: &Evidence, problem: &Problem, bytes: usize, allowance: Allowance) {
    let shares = if allowance.shares { "" } else { ", nothing shared" };
    let limit = allowance.memory.map_or(String::new(), |memory| format!(", within {memory} bytes"));
    let ordered = if problem.reduction.commutative { "" } else { ", in order" };
    let (collective, topology) = (problem.collective, problem.topology.to_string());
    writeln!(text, "{collective} of {bytes} bytes on {topology}{shares}{limit}{ordered}").unwrap();
    match evidence.decide_within(problem, bytes, allowance) {
        Ok(decision) => {
            writeln!(text, "    {}", decision.why).unwrap();
            for (algorithm, microseconds) in &decision.best {
                writeln!(text, "    {microseconds:12.4} us  {algorithm}").unwrap();
            }
        }
        Err(error) => writeln!(text, "    {error}").unwrap(),
    }
}

#[test]
fn decisions_by_the_model_are_those_that_were_written_down() {
    let mut text = String::new();
    let free = Allowance::default();
    for (machine, topologies) in [("generic", vec!["12", "4x4", "16x8"]), ("lassen", vec!["3,5,4"])] {
        let evidence = Evidence::of_machine(Machine::shipped(machine).unwrap());
        for topology in topologies {
            let topology: Topology = topology.parse().unwrap();
            for collective in COLLECTIVES {
                for bytes in if collective == Collective::Barrier { vec![0] } else { vec![8, 3000, 200_000] } {
                    write(&mut text, &evidence, &Problem::new(collective, topology.clone()), bytes, free);
                }
            }
        }
    }
    let evidence = Evidence::of_machine(Machine::shipped("threads").unwrap());
    let cyclic = Topology::regular(3, 4).unwrap().cyclic();
    for collective in COLLECTIVES {
        let apart = Allowance { shares: false, memory: None };
        write(&mut text, &evidence, &Problem::new(collective, cyclic.clone()), 64, apart);
        let frugal = Allowance { shares: true, memory: Some(512) };
        let ordered = Reduction { commutative: false, identical: true };
        write(&mut text, &evidence, &Problem::new(collective, cyclic.clone()).with_reduction(ordered), 64, frugal);
    }
    insta::assert_snapshot!(text);
}

#[test]
fn a_tuning_file_is_written_as_it_was_read() {
    let text = include_str!("tuning.toml");
    assert_eq!(text.parse::<Tuning>().unwrap().to_string(), text);
}
