//! Small actions of a few ranks, timed by turns, while all others keep out of the way.

use std::time::{Duration, Instant};

use allhands::{Comm, Op, Options, Plan};

use super::fit::Sample;
use crate::commands::tune::shapes::rest;
use allhands::stats::{median, tenth};

/// Something that all ranks of a communicator do together.
pub(super) type Action = Box<dyn FnMut() -> allhands::Result<()>>;

/// Times of one action: seconds for each run of it, a batch of runs each.
#[derive(Clone, Debug)]
pub(super) struct Times(Vec<f64>);

/// Ranks leave a barrier about a microsecond apart.
const BATCH: Duration = Duration::from_micros(100);
const MOST_RUNS: f64 = 1000.0;
/// Fewer are no median, more tell nothing new.
const ROUNDS: [usize; 2] = [5, 60];

impl Times {
    pub(super) fn median(&self) -> f64 {
        median(&self.0)
    }

    /// As evidence: median, spread and number.
    pub(super) fn told(&self) -> String {
        let us = |seconds: f64| seconds * 1e6;
        let (low, high) = (us(tenth(&self.0, 1)), us(tenth(&self.0, 9)));
        format!("{:.3} us (p10 {low:.3}, p90 {high:.3}, {} batches)", us(self.median()), self.0.len())
    }

    pub(super) fn sample(&self, bytes: usize) -> Sample {
        Sample { bytes: bytes as u64, seconds: self.median() }
    }
}

/// Lets the ranks of one color act, each color on its own; those of none sleep meanwhile. Every rank must call it.
pub(super) fn among<R>(
    comm: &Comm,
    color: Option<usize>,
    act: impl FnOnce(&Comm) -> allhands::Result<R>,
) -> allhands::Result<Option<R>> {
    let part = comm.split(color.map_or(0, |color| 1 + color as u64), comm.rank() as u64)?;
    let result = color.is_some().then(|| act(&part)).transpose()?;
    rest(comm)?;
    Ok(result)
}

/// Times of actions that take turns, in about so many seconds together; the same on every rank.
pub(super) fn by_turns(comm: &Comm, actions: &mut [Action], seconds: f64) -> allhands::Result<Vec<Times>> {
    let mut gate = comm.barrier_plan()?;
    let mut runs = vec![1; actions.len()];
    // Rank 0 says how many runs fill a batch, and how many rounds there is time for.
    let mut rounds = ROUNDS[0];
    for _ in 0..3 {
        let begin = Instant::now();
        for (action, runs) in actions.iter_mut().zip(&mut runs) {
            let time = batch(&mut gate, action, *runs)?.max(1e-9);
            *runs = (BATCH.as_secs_f64() / time).ceil().clamp(1.0, MOST_RUNS) as usize;
        }
        rounds = ((seconds / begin.elapsed().as_secs_f64()) as usize).clamp(ROUNDS[0], ROUNDS[1]);
        let mut agreed: Vec<u64> = runs.iter().chain([&rounds]).map(|number| *number as u64).collect();
        comm.bcast(&mut agreed, 0)?;
        rounds = agreed.pop().map_or(rounds, |rounds| rounds as usize);
        runs = agreed.into_iter().map(|runs| runs as usize).collect();
    }
    let mut times = vec![Vec::with_capacity(rounds); actions.len()];
    for _ in 0..rounds {
        for ((action, runs), times) in actions.iter_mut().zip(&runs).zip(&mut times) {
            times.push(batch(&mut gate, action, *runs)?);
        }
    }
    // The time of a batch is the slowest rank's.
    let mut all = times.concat();
    comm.allreduce_in_place(&mut all, Op::max())?;
    Ok(all.chunks(rounds).map(|times| Times(times.to_vec())).collect())
}

/// Runs back to back; seconds for each.
fn batch(gate: &mut Plan<u8>, action: &mut Action, runs: usize) -> allhands::Result<f64> {
    gate.run(&[], &mut [])?;
    let begin = Instant::now();
    for _ in 0..runs {
        action()?;
    }
    Ok(begin.elapsed().as_secs_f64() / runs as f64)
}

/// Messages of so many bytes between these pairs of ranks, both ways and all at once; a pair of a rank with itself is a copy.
pub(super) fn exchange(comm: &Comm, pairs: &[(usize, usize)], bytes: usize) -> allhands::Result<Action> {
    let mut counts = vec![0; comm.size()];
    for &(one, other) in pairs {
        if one == comm.rank() {
            counts[other] = bytes;
        } else if other == comm.rank() {
            counts[one] = bytes;
        }
    }
    let mut plan: Plan<u8> = comm.alltoallv_plan_with(&counts, &Options::new().algorithm("spread-out"))?;
    let input = vec![1; counts.iter().sum()];
    let mut output = vec![0; input.len()];
    Ok(Box::new(move || plan.run(&input, &mut output)))
}

/// The same vectors exchanged by two ranks and added up.
pub(super) fn combined(comm: &Comm, bytes: usize) -> allhands::Result<Action> {
    let options = Options::new().algorithm("recursive-doubling");
    let mut plan: Plan<f64> = comm.allreduce_plan_with(bytes / 8, Op::sum(), &options)?;
    let input = vec![1.0; bytes / 8];
    let mut output = vec![0.0; bytes / 8];
    Ok(Box::new(move || plan.run(&input, &mut output)))
}

/// A meeting in memory that the ranks share.
pub(super) fn meeting(comm: &Comm) -> allhands::Result<Action> {
    let mut plan = comm.barrier_plan_with(&Options::new().algorithm("node-aware:local=shared"))?;
    Ok(Box::new(move || plan.run(&[], &mut [])))
}
