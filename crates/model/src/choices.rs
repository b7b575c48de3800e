//! Candidates in the order of their estimated times: what a choice starts from.

use allhands_schedule::{Choice, Problem};

use crate::simulate::Simulator;
use crate::{Amount, Estimate, Machine, Result};

/// A candidate that can serve, with its estimate.
#[derive(Clone, Debug)]
pub struct Ranked {
    /// The candidate.
    pub choice: Choice,
    /// Its estimate.
    pub estimate: Estimate,
}

/// More messages than this are not simulated for an estimate: a candidate that sends so many takes seconds to judge, and others
/// send fewer.
const MOST_MESSAGES: usize = 1 << 22;

/// Estimates all candidates that can serve a problem, best first; among equals as they were given.
///
/// One node stands for all after a comparison of a few, and vectors are cut as if evenly: rougher than
/// [`simulate`](crate::simulate()), and much quicker for most. Candidates that cannot serve, or whose simulation would take
/// seconds, are left out.
///
/// ```
/// use allhands_model::{Amount, Machine, rank_choices};
/// use allhands_schedule::{Choice, Collective, Problem, Topology};
/// let problem = Problem::new(Collective::Allgather, Topology::regular(64, 16)?);
/// let candidates = ["ring", "bruck", "loc-bruck"].map(|name| Choice::parse(Collective::Allgather, name).unwrap());
/// let ranked = rank_choices(&problem, Amount::bytes(8), &Machine::shipped("lassen")?, &candidates)?;
/// assert_eq!(ranked[0].choice.to_string(), "loc-bruck");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn rank_choices(
    problem: &Problem,
    amount: Amount,
    machine: &Machine,
    candidates: &[Choice],
) -> Result<Vec<Ranked>> {
    machine.check()?;
    let mut ranked = Vec::with_capacity(candidates.len());
    for choice in candidates {
        let Ok(prepared) = choice.prepare(problem) else { continue };
        if prepared.cost().messages.saturating_mul(problem.ranks()) > MOST_MESSAGES {
            continue;
        }
        if let Ok(estimate) = Simulator::new(&prepared).roughly().run(machine, amount) {
            ranked.push(Ranked { choice: choice.clone(), estimate });
        }
    }
    ranked.sort_by(|a, b| a.estimate.seconds.total_cmp(&b.estimate.seconds));
    Ok(ranked)
}
