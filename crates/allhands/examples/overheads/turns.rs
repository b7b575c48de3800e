//! Several ways to do one thing, measured by turns: batches in an order shuffled for every turn.

use std::fmt;
use std::time::{Duration, Instant};

use allhands::{Op, Result};

use crate::Bench;

/// A way to do it once.
pub(crate) type Way<'a> = &'a mut dyn FnMut() -> Result<()>;

/// The fastest way's batch takes so long.
const BATCH: Duration = Duration::from_micros(100);
/// All turns of a measurement together.
const LIMIT: Duration = Duration::from_secs(1);

/// Microseconds for each of some ways, in every turn, of the slowest rank.
pub(crate) fn by_turns(bench: &Bench<'_>, ways: &mut [Way<'_>]) -> Result<Vec<Vec<f64>>> {
    let comm = bench.comm;
    let mut gate = comm.barrier_plan()?;
    let mut batch = |way: &mut Way<'_>, runs: usize| -> Result<f64> {
        gate.run(&[], &mut [])?;
        let begin = Instant::now();
        for _ in 0..runs {
            way()?;
        }
        Ok(begin.elapsed().as_secs_f64() * 1e6 / runs as f64)
    };
    let (mut runs, mut turns) = (1, bench.turns);
    let mut fastest = f64::INFINITY;
    for _ in 0..5 {
        let begin = Instant::now();
        for way in ways.iter_mut() {
            fastest = fastest.min(batch(way, runs)?);
        }
        let next = (BATCH.as_secs_f64() * 1e6 / fastest).ceil().clamp(1.0, 5000.0);
        let turn = begin.elapsed().as_secs_f64() * next / runs as f64;
        turns = bench.turns.min((LIMIT.as_secs_f64() / turn) as usize).max(5);
        let mut agreed = [next as u64, turns as u64];
        comm.bcast(&mut agreed, 0)?;
        [runs, turns] = agreed.map(|number| number as usize);
    }
    let mut times = vec![Vec::with_capacity(turns); ways.len()];
    let mut state = 1u64;
    for _ in 0..turns {
        let mut order: Vec<usize> = (0..ways.len()).collect();
        for last in (1..order.len()).rev() {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            order.swap(last, (state >> 33) as usize % (last + 1));
        }
        for index in order {
            times[index].push(batch(&mut ways[index], runs)?);
        }
    }
    for times in &mut times {
        comm.allreduce_in_place(times, Op::max())?;
    }
    Ok(times)
}

/// The median, and in brackets the tenth and ninetieth percentile.
pub(crate) struct Spread {
    pub(crate) median: f64,
    low: f64,
    high: f64,
}

impl Spread {
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Spread {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let at = |tenths: usize| values.get((values.len().max(1) - 1) * tenths / 10).copied().unwrap_or(f64::NAN);
        Spread { median: at(5), low: at(1), high: at(9) }
    }

    /// Of the ratios of what was measured in the same turn.
    pub(crate) fn of_ratios(above: &[f64], below: &[f64]) -> Spread {
        Spread::of(above.iter().zip(below).map(|(above, below)| above / below))
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}({:.3}..{:.3})", self.median, self.low, self.high)
    }
}
