//! The MPI library's own collectives, through the same plans: what the algorithm `mpi` gives.

use allhands::{Comm, Op, Options, Result};
use allhands_schedule::{Collective, algorithms};

use super::case::{Case, Kind};
use super::player::How;
use super::sample::Random;

/// Every collective but those of a neighbourhood, which the MPI has on communicators with the graph, with types and operations that every MPI has; blocking, in place and non-blocking.
pub(crate) fn library(world: &Comm, seed: u64) -> Result<usize> {
    let mut random = Random(seed);
    let mut served = 0;
    let movers = Collective::ALL.into_iter().filter(|one| *one != Collective::Barrier && !one.has_graph());
    for collective in movers {
        for kind in [Kind::SumI64, Kind::SumF64, Kind::MinI64, Kind::XorU64, Kind::MinLocF64, Kind::XorBool] {
            // No bytes at all may be where `MPI_IN_PLACE` is.
            let size = if kind == Kind::XorBool { 0 } else { random.pick(&[0, 1, 5, 300]) };
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
            player.run(How::NonBlocking, 4)?;
            player.run(How::NonBlockingInPlace, 5)?;
            served += 1;
        }
    }
    beside_ours(world)?;
    let mut barrier = world.barrier_plan_with(&Options::new().algorithm("mpi"))?;
    barrier.run(&[], &mut [])?;
    barrier.start(&[], &mut [])?.wait()?;
    Ok(served)
}

/// A collective of MPI's own while one of ours is under way, which others wait for first.
fn beside_ours(world: &Comm) -> Result<()> {
    const COUNT: usize = 50_000;
    let (me, p) = (world.rank(), world.size());
    let mut ours = world.allreduce_plan::<u64>(COUNT, Op::sum())?;
    let mut theirs = world.bcast_plan_with::<u64>(1, 0, &Options::new().algorithm("mpi"))?;
    for run in 0..4 {
        let (input, mut output, mut word) = (vec![1; COUNT], vec![0; COUNT], [(me + run) as u64]);
        let pending = ours.start(&input, &mut output)?;
        if me % 2 == run % 2 {
            theirs.run_in_place(&mut word)?;
            pending.wait()?;
        } else {
            pending.wait()?;
            theirs.run_in_place(&mut word)?;
        }
        assert_eq!((output, word), (vec![p as u64; COUNT], [run as u64]));
    }
    Ok(())
}
