//! Simulated times, for lines and tables.

use allhands_model::{Amount, Estimate, Machine, Simulator};
use allhands_schedule::{Choice, Collective, Problem, Topology};

use crate::error::{Error, Result};

/// A machine that comes along.
pub(super) fn machine(name: &str) -> Result<Machine> {
    Machine::shipped(name).map_err(failure)
}

/// An algorithm at several sizes, in the order of these.
pub(super) fn estimates(
    machine: &Machine,
    collective: Collective,
    topology: &Topology,
    algorithm: &str,
    sizes: &[u64],
) -> Result<Vec<Estimate>> {
    let problem = Problem::new(collective, topology.clone());
    let prepared = Choice::parse(collective, algorithm)?.prepare(&problem)?;
    let mut simulator = Simulator::new(&prepared);
    sizes.iter().map(|&bytes| simulator.run(machine, Amount::bytes(bytes)).map_err(failure)).collect()
}

/// Microseconds until the last rank is through, at several sizes.
pub(super) fn times(
    machine: &Machine,
    collective: Collective,
    topology: &Topology,
    algorithm: &str,
    sizes: &[u64],
) -> Result<Vec<f64>> {
    let estimates = estimates(machine, collective, topology, algorithm, sizes)?;
    Ok(estimates.iter().map(|estimate| estimate.seconds * 1e6).collect())
}

/// The same at one size.
pub(super) fn time(
    machine: &Machine,
    collective: Collective,
    topology: &Topology,
    algorithm: &str,
    bytes: u64,
) -> Result<f64> {
    Ok(times(machine, collective, topology, algorithm, &[bytes])?[0])
}

pub(super) fn failure(error: allhands_model::Error) -> Error {
    Error::Wrong(error.to_string())
}
