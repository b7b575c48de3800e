//! A program that has MPI and communicators of its own, and hands one of them over.
//!
//! Here the program's MPI calls go through `allhands_mpi`, so that this builds without an MPI; a program that uses the `mpi`
//! crate (rsmpi) passes `communicator.as_raw() as usize`, a C program its `MPI_Comm`:
//!
//! ```ignore
//! use mpi::traits::*;
//! let universe = mpi::initialize().unwrap();
//! let comm = unsafe { allhands::Comm::from_mpi(universe.world().as_raw() as usize)? };
//! ```

use std::process::ExitCode;

use allhands::{Comm, Op};
use allhands_mpi::ThreadLevel;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // In one write, so that the lines of several ranks stay apart.
            let line = format!("borrowed: {error}\n");
            eprint!("{line}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let mpi = allhands_mpi::load()?;
    mpi.init(ThreadLevel::Funneled)?;
    let world = mpi.world();
    let (me, ranks) = (mpi.comm_rank(world)?, mpi.comm_size(world)?);
    // Odd and even ranks, the last one first.
    let half = mpi.comm_split(world, Some(me as i32 % 2), -(me as i32))?.ok_or("every rank has a color")?;
    {
        // SAFETY: a communicator of this MPI, freed only below.
        let comm = unsafe { Comm::from_mpi(half)? };
        assert_eq!((comm.rank(), comm.size()), (mpi.comm_rank(half)?, mpi.comm_size(half)?));
        let mut all = vec![0; comm.size()];
        comm.allgather(&[me as u64], &mut all)?;
        let expected: Vec<u64> = (0..ranks as u64).rev().filter(|rank| rank % 2 == me as u64 % 2).collect();
        assert_eq!(all, expected);
        // Two at once, of which one is all ranks.
        // SAFETY: as above; nobody frees the world.
        let everybody = unsafe { Comm::from_mpi(world)? };
        let mut sum = [me as f64; 3];
        everybody.allreduce_in_place(&mut sum, Op::sum())?;
        assert_eq!(sum, [(ranks * (ranks - 1) / 2) as f64; 3]);
        // The program's own communicator may go; ours is a duplicate.
        mpi.comm_free(half)?;
        comm.barrier()?;
    }
    if me == 0 {
        println!("borrowed: {ranks} ranks, all right");
    }
    mpi.finalize()?;
    Ok(())
}
