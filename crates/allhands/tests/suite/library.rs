//! The MPI library's own collectives, through the same plans: what the algorithm `mpi` gives.

use allhands::{Comm, Result};
use allhands_schedule::{Collective, algorithms};

use super::case::{Case, Kind};
use super::player::How;
use super::sample::Random;

/// Every collective with types and operations that every MPI has; blocking, in place and, where it is offered, non-blocking.
pub(crate) fn library(world: &Comm, seed: u64) -> Result<usize> {
    let mut random = Random(seed);
    let mut served = 0;
    for collective in Collective::ALL.into_iter().filter(|collective| *collective != Collective::Barrier) {
        for kind in [Kind::SumI64, Kind::SumF64, Kind::MinI64, Kind::XorU64, Kind::MinLocF64] {
            let size = random.pick(&[0, 1, 5, 300]);
            let seats = world.topology().clone();
            // Any algorithm that can serve stands in while counts and root are drawn.
            let Some(case) = algorithms(collective)
                .find_map(|any| Case::draw(&mut random, seats.clone(), collective, any, kind, size))
            else {
                continue;
            };
            let case = case.by("mpi");
            let mut player = case.player(world)?;
            for run in 0..4 {
                player.run(if run % 2 == 0 { How::Blocking } else { How::InPlace }, run)?;
            }
            if matches!(collective, Collective::Allreduce | Collective::Allgather) {
                player.run(How::NonBlocking, 4)?;
                player.run(How::NonBlockingInPlace, 5)?;
            }
            served += 1;
        }
    }
    world.barrier_plan_with(&allhands::Options::new().algorithm("mpi"))?.run(&[], &mut [])?;
    Ok(served)
}
