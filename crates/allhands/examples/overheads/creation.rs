//! How long it takes to make a plan: on the clock, and of this thread's own time, which is what it would take with a core for
//! every rank.

use std::time::Instant;

use allhands::{Comm, Op, Options, Plan, Result};

use crate::Bench;
use crate::turns::Spread;

type Make = fn(&Comm, &Options) -> Result<Plan<f64>>;

/// Elements of a block, or of the vector.
const COUNT: usize = 128;

const COLLECTIVES: [(&str, Make, &[&str]); 6] = [
    ("allgather", |comm, options| comm.allgather_plan_with(COUNT, options), &["bruck", "ring", "loc-bruck"]),
    ("alltoall", |comm, options| comm.alltoall_plan_with(COUNT, options), &["bruck", "spread-out", "node-aware"]),
    (
        "allreduce",
        |comm, options| comm.allreduce_plan_with(COUNT, Op::sum(), options),
        &["nap", "ring", "recursive-doubling"],
    ),
    (
        "reduce_scatter_block",
        |comm, options| comm.reduce_scatter_block_plan_with(COUNT, Op::sum(), options),
        &["ring", "loc-bruck"],
    ),
    ("bcast", |comm, options| comm.bcast_plan_with(COUNT, 0, options), &["binomial"]),
    ("reduce", |comm, options| comm.reduce_plan_with(COUNT, Op::sum(), 0, options), &["binomial"]),
];

pub(crate) fn measure(bench: &Bench<'_>) -> Result<()> {
    for (collective, make, names) in COLLECTIVES {
        for name in std::iter::once("auto").chain(names.iter().copied()) {
            let options = Options::new().identical(false);
            let options = if name == "auto" { options } else { options.algorithm(name) };
            one(bench, collective, name, make, &options)?;
        }
    }
    Ok(())
}

fn one(bench: &Bench<'_>, collective: &str, name: &str, make: Make, options: &Options) -> Result<()> {
    let comm = bench.comm;
    let (ranks, plans) = (comm.size(), bench.turns.min(100));
    let mut times = Vec::new();
    for index in 0..plans + 3 {
        comm.barrier()?;
        let (begin, began) = (Instant::now(), thread_time());
        let plan = make(comm, options)?;
        let pair = [begin.elapsed().as_secs_f64() * 1e6, (thread_time() - began) * 1e6];
        drop(plan);
        // The first ones find cold caches.
        if index >= 3 {
            times.extend(pair);
        }
    }
    let mut all = vec![0.0; times.len() * ranks];
    comm.allgather(&times, &mut all)?;
    let clock = Spread::of(all.iter().step_by(2).copied());
    let own = Spread::of(all.iter().skip(1).step_by(2).copied());
    bench.say(format!(
        "creation collective={collective} algorithm={name} ranks={ranks} plans={plans} clock_us={clock} own_us={own}"
    ));
    Ok(())
}

/// Seconds that this thread has had a core.
fn thread_time() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the time is writable; the clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}
