//! How much of a non-blocking allreduce of 1 MiB hides behind computation, as IMB-NBC measures it: computation that takes as long
//! as the collective alone, between its start and its end.
//!
//! overlap = (t_pure + t_cpu - t_both) / min(t_pure, t_cpu), between 0 and 1.

use std::hint::black_box;
use std::time::Instant;

use allhands::{Op, Result};

use crate::Bench;
use crate::turns::{Spread, by_turns};

const COUNT: usize = (1 << 20) / size_of::<f64>();

/// How often the collective is tested while the rank computes.
const TESTS: [usize; 3] = [0, 10, 100];

pub(crate) fn measure(bench: &Bench<'_>) -> Result<()> {
    let progress = std::env::var("ALLHANDS_PROGRESS").unwrap_or_else(|_| "none".into());
    let x = vec![1.0; COUNT];
    let mut plan = bench.comm.allreduce_plan::<f64>(COUNT, Op::sum())?;
    let mut y = vec![0.0; COUNT];
    let name = plan.algorithm().to_string();
    let ours = |tests: usize, steps: u64, work: bool| -> Result<()> {
        plan.during(&x, &mut y, |run| {
            if work {
                for _ in 0..tests {
                    compute(steps / (tests as u64 + 1));
                    run.test()?;
                }
                compute(steps / (tests as u64 + 1));
            }
            Ok(())
        })
    };
    one(bench, &format!("allhands algorithm={name} progress={progress}"), ours)?;
    if progress != "none" {
        return Ok(());
    }
    let (mpi, mut z) = (bench.mpi, vec![0.0; COUNT]);
    let comm = mpi.comm_dup(mpi.world())?;
    let (double, sum) = (mpi.constants().types.double, mpi.constants().ops.sum);
    let theirs = |tests: usize, steps: u64, work: bool| -> Result<()> {
        // SAFETY: both vectors have so many doubles and stay until the wait.
        let mut request =
            unsafe { mpi.iallreduce(x.as_ptr().cast(), z.as_mut_ptr().cast(), COUNT, double, sum, comm)? };
        if work {
            for _ in 0..tests {
                compute(steps / (tests as u64 + 1));
                mpi.test_done(&mut request)?;
            }
            compute(steps / (tests as u64 + 1));
        }
        mpi.wait(&mut request)?;
        Ok(())
    };
    one(bench, "mpi algorithm=iallreduce progress=own", theirs)?;
    mpi.comm_free(comm)?;
    Ok(())
}

fn one(bench: &Bench<'_>, who: &str, mut once: impl FnMut(usize, u64, bool) -> Result<()>) -> Result<()> {
    let pure = by_turns(bench, &mut [&mut || once(0, 0, false)])?;
    let steps = calibrated(bench, Spread::of(pure[0].iter().copied()).median)?;
    for tests in TESTS {
        let once = std::cell::RefCell::new(&mut once);
        let times = by_turns(
            bench,
            &mut [
                &mut || (once.borrow_mut())(0, 0, false),
                &mut || {
                    compute(steps);
                    Ok(())
                },
                &mut || (once.borrow_mut())(tests, steps, true),
            ],
        )?;
        let overlap = |pure: f64, cpu: f64, both: f64| 100.0 * ((pure + cpu - both) / pure.min(cpu)).clamp(0.0, 1.0);
        let turns = 0..times[0].len();
        let of_turns = Spread::of(turns.map(|index| overlap(times[0][index], times[1][index], times[2][index])));
        let [pure, cpu, both] = [0, 1, 2].map(|way| Spread::of(times[way].iter().copied()));
        let of_medians = overlap(pure.median, cpu.median, both.median);
        let ranks = bench.comm.size();
        bench.say(format!(
            "overlap by={who} ranks={ranks} bytes=1048576 tests={tests} overlap_of_medians_percent={of_medians:.1} overlap_percent={of_turns} pure_us={pure} cpu_us={cpu} both_us={both}"
        ));
    }
    Ok(())
}

/// Steps of computation that take so many microseconds; the same on every rank.
fn calibrated(bench: &Bench<'_>, microseconds: f64) -> Result<u64> {
    const TRIAL: u64 = 200_000;
    let trial = || {
        let begin = Instant::now();
        compute(TRIAL);
        begin.elapsed().as_secs_f64() * 1e6
    };
    let each = (0..20).map(|_| trial()).fold(f64::INFINITY, f64::min) / TRIAL as f64;
    let mut steps = [(microseconds / each) as u64];
    bench.comm.bcast(&mut steps, 0)?;
    Ok(steps[0])
}

/// Work of the processor alone, without memory.
fn compute(steps: u64) {
    let mut value = 1.0f64;
    for _ in 0..steps {
        value = black_box(value) * 0.999_999 + 1e-9;
    }
    black_box(value);
}
