//! Whether a barrier waits for everybody, told by clocks: ranks of other processes share nothing else.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use allhands::{Comm, Options, Result};

use super::case::Case;

/// How late the last rank comes, and by how much less the others may leave before it: clocks of machines differ a little.
const LATE: Duration = Duration::from_millis(3);
const SKEW: Duration = Duration::from_millis(2);

pub(crate) fn check(case: &Case, comm: &Comm) -> Result<()> {
    let mut plan = comm.barrier_plan_with(&Options::new().algorithm(&case.algorithm))?;
    let (me, p) = (comm.rank(), comm.size());
    for _ in 0..50 {
        plan.run(&[], &mut [])?;
    }
    for late in 0..p.min(4) {
        if me == late {
            std::thread::sleep(LATE);
        }
        let came = now();
        if late.is_multiple_of(2) {
            plan.run(&[], &mut [])?
        } else {
            plan.start(&[], &mut [])?.wait()?
        }
        let left = now();
        let mut times = vec![0; 2 * p];
        comm.allgather(&[came, left], &mut times)?;
        let last = times.iter().step_by(2).max().copied().unwrap_or_default();
        let skew = SKEW.as_nanos() as u64;
        assert!(left + skew >= last, "{case}, rank {me}: it left {} ns before the last rank came", last - left);
    }
    comm.barrier()
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}
