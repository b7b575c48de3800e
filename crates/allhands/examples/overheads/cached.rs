//! What a one-off call costs before its first message: the call beside a run of a plan held by the caller, on a communicator of
//! one rank, where neither sends anything.

use allhands::{Op, Result};

use crate::Bench;
use crate::turns::{Spread, by_turns};

pub(crate) fn measure(bench: &Bench<'_>) -> Result<()> {
    let alone = bench.comm.split(bench.comm.rank() as u64, 0)?;
    let mut plan = alone.allreduce_plan::<f64>(1, Op::sum())?;
    let (mut one, mut other) = ([1.0], [1.0]);
    let times = by_turns(
        bench,
        &mut [&mut || alone.allreduce_in_place(&mut one, Op::sum()), &mut || plan.run_in_place(&mut other)],
    )?;
    let call = Spread::of(times[0].iter().map(|time| time * 1e3));
    let run = Spread::of(times[1].iter().map(|time| time * 1e3));
    let difference = Spread::of(times[0].iter().zip(&times[1]).map(|(call, run)| (call - run) * 1e3));
    bench.say(format!("cached call-run_ns={difference} call_ns={call} run_ns={run}"));
    Ok(())
}
