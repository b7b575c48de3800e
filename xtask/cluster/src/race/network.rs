//! What our `auto` is chosen from in a race: what is best on the network that is emulated, as a machine file would describe it.
//!
//! Delay and rate are known. How long a message may be to travel in one go is a setting of each MPI, and longer ones wait for an
//! answer first: both were seen. Inside a node everything takes as long as a rank waits for a core.

use allhands_model::{Allowance, Amount, Machine, Protocol, Ranked, best_choices};
use allhands_schedule::{Collective, Problem, Reduction, Topology};

use crate::Result;
use crate::job::Mpi;
use crate::settings::{Delay, Rate, Shape};

/// Seconds of a message between two nodes beside the delay.
const STACK: f64 = 60e-6;
/// Seconds for which a message occupies its ranks, for every rank there is: all of them share two cores. Between what a message takes
/// where all send at once (15 us) and what it takes of a rank that sends alone; the second is near that.
const OVERHEADS: [f64; 2] = [6e-6, 1e-6];
/// Seconds of a message inside a node, and of a meeting: ranks are many, and cores few.
const NEAR: f64 = 100e-6;

/// The machine that a race on this network is about.
fn machine(mpi: Mpi, shape: Shape, delay: Delay, rate: Rate, overhead: f64) -> Result<Machine> {
    let mut machine = Machine::shipped("generic").map_err(|error| error.to_string())?;
    machine.name = format!("the emulated cluster, {delay}, {rate}, {}", mpi.title());
    let delay = delay.duration().as_secs_f64();
    let per_byte = rate.time(1_000_000).as_secs_f64() / 1e6;
    let (longest, delays) = mpi.eager();
    let eager = Protocol {
        up_to: longest,
        rendezvous: false,
        latency: delay + STACK,
        per_byte,
        overhead: overhead * (f64::from(shape.nodes) * f64::from(shape.ranks)),
        crowd: None,
        injection: per_byte,
    };
    let long = Protocol { up_to: u64::MAX, rendezvous: true, latency: delays * (delay + STACK), ..eager };
    machine.levels[0].protocols = vec![eager, long];
    machine.levels[1].meeting = NEAR;
    for protocol in &mut machine.levels[1].protocols {
        (protocol.latency, protocol.overhead) = (NEAR, NEAR / 10.0);
    }
    Ok(machine)
}

/// How many settings are tried, at most so many of one algorithm: a model that is wrong about one may be right about another.
const CANDIDATES: usize = 10;
const OF_ONE: usize = 5;

/// What `auto` can be there, the best by the model first, by either guess in turn.
pub(super) fn candidates(
    mpi: Mpi,
    shape: Shape,
    delay: Delay,
    rate: Rate,
    (collective, bytes): (&str, usize),
) -> Result<Vec<String>> {
    let known = Collective::ALL.into_iter().find(|known| known.name() == collective);
    let collective = known.ok_or_else(|| format!("{collective} is no collective"))?;
    let topology = Topology::regular(shape.nodes.into(), shape.ranks.into()).map_err(|error| error.to_string())?;
    // As plans ask for where nothing is said.
    let problem = Problem::new(collective, topology).with_reduction(Reduction { commutative: true, identical: true });
    let ranked = |overhead| {
        let machine = machine(mpi, shape, delay, rate, overhead)?;
        let ranked = best_choices(&problem, Amount::bytes(bytes as u64), &machine, Allowance::default());
        ranked.map_err(|error| error.to_string())
    };
    let [crowded, alone] = [ranked(OVERHEADS[0])?, ranked(OVERHEADS[1])?];
    let mut chosen: Vec<String> = Vec::new();
    for Ranked { choice, .. } in crowded.iter().zip(&alone).flat_map(|(one, other)| [one, other]) {
        let (name, text) = (choice.algorithm.name, choice.to_string());
        let alike = chosen.iter().filter(|known| known.split(':').next() == Some(name)).count();
        if chosen.len() < CANDIDATES && alike < OF_ONE && !chosen.contains(&text) {
            chosen.push(text);
        }
    }
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the model thinks the best.
    fn choice(mpi: Mpi, shape: Shape, delay: Delay, rate: Rate, cell: (&str, usize)) -> Result<String> {
        let candidates = candidates(mpi, shape, delay, rate, cell)?;
        candidates.into_iter().next().ok_or_else(|| "there is none".into())
    }

    /// Candidates are some settings of several algorithms.
    #[test]
    fn candidates_are_several_algorithms() {
        let (shape, delay, rate) = ("4x4".parse().unwrap(), Delay { micros: 2000 }, Rate { megabits: 1000 });
        let candidates = candidates(Mpi::Intel, shape, delay, rate, ("allreduce", 65536)).unwrap();
        let different: std::collections::BTreeSet<&str> =
            candidates.iter().map(|candidate| candidate.split(':').next().unwrap()).collect();
        assert!(candidates.len() == CANDIDATES && different.len() >= CANDIDATES.div_ceil(OF_ONE), "{candidates:?}");
        assert!(candidates[0].starts_with("multi-lane:"), "{candidates:?}");
    }

    /// Where the far latency dominates, nothing takes more hops than it must.
    #[test]
    fn short_collectives_take_one_hop() {
        let rate = Rate { megabits: 1000 };
        for (shape, delay) in [("4x4", 500), ("4x4", 2000), ("8x4", 2000)] {
            let shape: Shape = shape.parse().unwrap();
            for (collective, begins) in [("bcast", "hierarchical:radix="), ("alltoall", "node-aware")] {
                let choice = choice(Mpi::Intel, shape, Delay { micros: delay }, rate, (collective, 8)).unwrap();
                assert!(choice.starts_with(begins), "{collective} on {shape}, {delay} us: {choice}");
                let all = format!("radix={}", shape.nodes);
                assert!(
                    collective != "bcast" || choice.contains(&all),
                    "{collective} on {shape}, {delay} us: {choice}"
                );
            }
        }
        let shape: Shape = "4x4".parse().unwrap();
        for (collective, begins) in [("allgather", "loc-bruck"), ("allreduce", "nap")] {
            let choice = choice(Mpi::Openmpi, shape, Delay { micros: 2000 }, rate, (collective, 8)).unwrap();
            assert!(choice.starts_with(begins), "{collective}: {choice}");
        }
    }
}
