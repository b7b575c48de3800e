//! Joining a running MPI job more than once, and what outlives what.

use std::time::Duration;

use allhands::kernels::{Operation, Type};
use allhands::raw::{Amount, RawCall, RawComm};
use allhands::{Comm, Op, Options, Result};
use allhands_schedule::Collective;

/// All ranks of the job, once more.
fn joined() -> Result<Comm> {
    // SAFETY: MPI is running, and its world is a communicator.
    unsafe { Comm::from_mpi(allhands_mpi::load()?.world()) }
}

/// Every rank of a running MPI job calls it.
pub(crate) fn joins() -> Result<()> {
    parts_outlive_the_whole()?;
    collectives_of_two_joins_move_on_together()?;
    plans_start_on_plain_memory()?;
    communicators_come_and_go(400)
}

fn parts_outlive_the_whole() -> Result<()> {
    let part = {
        let all = joined()?;
        all.split(all.rank() as u64 % 2, 0)?
    };
    for run in 0..3 {
        // The others wait, and meanwhile let MPI make progress.
        if part.rank() == run {
            std::thread::sleep(Duration::from_millis(5));
        }
        let mut ranks = [1u32];
        part.allreduce_in_place(&mut ranks, Op::sum())?;
        assert_eq!(ranks[0] as usize, part.size());
    }
    Ok(())
}

/// Whoever waits in one moves the other on, too: otherwise these orders of waiting would never end.
fn collectives_of_two_joins_move_on_together() -> Result<()> {
    let (one, other) = (joined()?, joined()?);
    let (me, p) = (one.rank(), one.size());
    let mut first = one.allreduce_plan::<u64>(5000, Op::sum())?;
    let mut second = other.allreduce_plan::<u64>(5000, Op::sum())?;
    for run in 0..4 {
        let input = vec![(me + run) as u64; 5000];
        let (mut a, mut b) = (vec![0; 5000], vec![0; 5000]);
        let pending = first.start(&input, &mut a)?;
        if me % 2 == run % 2 {
            second.run(&input, &mut b)?;
            pending.wait()?;
        } else {
            pending.wait()?;
            second.run(&input, &mut b)?;
        }
        let wanted = vec![(p * (p - 1) / 2 + p * run) as u64; 5000];
        assert!(a == wanted && b == wanted, "run {run} of two joins");
    }
    Ok(())
}

/// One of ours and one of MPI's own at once, waited for in different orders.
fn plans_start_on_plain_memory() -> Result<()> {
    const COUNT: usize = 5000;
    // SAFETY: MPI is running, and its world is a communicator.
    let comm = unsafe { RawComm::from_mpi(allhands_mpi::load()?.world())? };
    let (me, p) = (comm.rank() as u64, comm.size() as u64);
    let call = RawCall {
        collective: Collective::Allreduce,
        amount: Amount::Each(COUNT),
        element: Type::U64,
        operation: Some(Operation::Sum.into()),
        root: 0,
        graph: None,
    };
    let mut plans = [comm.plan(&call, &Options::new())?, comm.plan(&call, &Options::new().algorithm("mpi"))?];
    for run in 0..4 {
        let (x, mut y, mut z) = (vec![me + run; COUNT], vec![0u64; COUNT], vec![me * run; COUNT]);
        let [ours, theirs] = &mut plans;
        // SAFETY: as many words as the call says, which stay until both runs are through.
        unsafe {
            ours.start(x.as_ptr().cast(), y.as_mut_ptr().cast())?;
            theirs.start_in_place(z.as_mut_ptr().cast())?;
        }
        if me % 2 == run % 2 {
            ours.wait()?;
            while !theirs.test()? {
                std::thread::yield_now();
            }
        } else {
            theirs.wait()?;
            ours.wait()?;
        }
        let ranks = p * (p - 1) / 2;
        assert_eq!((y, z), (vec![ranks + p * run; COUNT], vec![ranks * run; COUNT]), "run {run}");
    }
    Ok(())
}

/// Open files, and pages of memory.
fn held() -> (usize, usize) {
    let files = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    (files, pages.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0))
}

/// Communicators, with plans that share memory and plans that do not, leave nothing behind.
fn communicators_come_and_go(cycles: usize) -> Result<()> {
    let all = joined()?;
    let mut before = (0, 0);
    for cycle in 0..cycles {
        // What libraries keep for later is there after a while.
        if cycle == cycles / 2 {
            all.barrier()?;
            before = held();
        }
        let part = all.split(all.rank() as u64 % 2, 0)?;
        let mut ranks = [1u32];
        part.allreduce_in_place(&mut ranks, Op::sum())?;
        assert_eq!(ranks[0] as usize, part.size());
    }
    all.barrier()?;
    let after = held();
    assert!(after.0 <= before.0 + 4, "{} files are open after {} before", after.0, before.0);
    let more = after.1.saturating_sub(before.1);
    assert!(more < cycles / 2, "{more} more pages after {} communicators", cycles / 2);
    Ok(())
}
