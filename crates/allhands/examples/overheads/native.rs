//! What it costs to call MPI's own collective through a plan, as `allhands bench --algorithm mpi` does, beside a direct call.

use allhands::{Op, Options, Result};

use crate::Bench;
use crate::turns::{Spread, by_turns};

pub(crate) fn measure(bench: &Bench<'_>) -> Result<()> {
    let mpi = bench.mpi;
    let comm = mpi.comm_dup(mpi.world())?;
    let (double, sum) = (mpi.constants().types.double, mpi.constants().ops.sum);
    for count in [1, 512] {
        let mut plan = bench.comm.allreduce_plan_with::<f64>(count, Op::sum(), &Options::new().algorithm("mpi"))?;
        let (x, mut y, mut z) = (vec![1.0; count], vec![0.0; count], vec![0.0; count]);
        let mut direct = || -> Result<()> {
            // SAFETY: both vectors have so many doubles.
            unsafe { mpi.allreduce(x.as_ptr().cast(), z.as_mut_ptr().cast(), count, double, sum, comm)? };
            Ok(())
        };
        let times = by_turns(bench, &mut [&mut || plan.run(&x, &mut y), &mut direct])?;
        let [plan_us, direct_us] = [0, 1].map(|way| Spread::of(times[way].iter().copied()));
        let (ranks, bytes, ratio) = (bench.comm.size(), 8 * count, Spread::of_ratios(&times[0], &times[1]));
        bench.say(format!(
            "native collective=allreduce ranks={ranks} bytes={bytes} plan/direct={ratio} plan_us={plan_us} direct_us={direct_us}"
        ));
    }
    mpi.comm_free(comm)?;
    Ok(())
}
