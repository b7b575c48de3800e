//! Calls without a plan, many of each kind: every result is right, whoever serves, and sums that are rounded keep their bits.

use allhands::{Comm, Op, Result};

/// Calls of each kind.
const CALLS: usize = 60;

/// On all ranks, and on the even and the odd ones.
pub(crate) fn one_offs(world: &Comm) -> Result<()> {
    kinds(world)?;
    kinds(&world.split(world.rank() as u64 % 2, 0)?)
}

/// Eight kinds of calls in turn, of three sizes each.
fn kinds(comm: &Comm) -> Result<()> {
    let (me, ranks) = (comm.rank() as u64, comm.size() as u64);
    let mut begun: [Vec<u64>; 3] = Default::default();
    for call in 0..CALLS as u64 {
        for (size, count) in [1usize, 65, 700].into_iter().enumerate() {
            let root = call as usize % comm.size();
            let of = |rank: u64| move |index: usize| 1000 * rank + 7 * call + index as u64;
            let mine: Vec<u64> = (0..count).map(of(me)).collect();
            let sums: Vec<u64> = (0..count).map(|index| (0..ranks).map(|rank| of(rank)(index)).sum()).collect();
            let everything: Vec<u64> = (0..ranks).flat_map(|rank| (0..count).map(of(rank))).collect();
            let [mut result, mut all] = [vec![0; count], vec![0; count * comm.size()]];

            comm.allreduce(&mine, &mut result, Op::sum())?;
            assert_eq!(result, sums, "allreduce, call {call}");
            comm.allgather(&mine, &mut all)?;
            assert_eq!(all, everything, "allgather, call {call}");
            let gathered = if comm.rank() == root { all.len() } else { 0 };
            all.fill(0);
            comm.gather(&mine, &mut all[..gathered], root)?;
            assert_eq!(all[..gathered], everything[..gathered], "gather, call {call}");
            let mut told = if comm.rank() == root { mine.clone() } else { vec![0; count] };
            comm.bcast(&mut told, root)?;
            assert_eq!(told, (0..count).map(of(root as u64)).collect::<Vec<_>>(), "bcast, call {call}");
            let gives = |from: u64, to: u64| (0..count).map(move |index| of(from)(index) + 100_000 * to);
            let sent: Vec<u64> = (0..ranks).flat_map(|to| gives(me, to)).collect();
            comm.alltoall(&sent, &mut all)?;
            assert_eq!(all, (0..ranks).flat_map(|from| gives(from, me)).collect::<Vec<_>>(), "alltoall, call {call}");
            comm.reduce_scatter_block(&everything, &mut result, Op::sum())?;
            assert_eq!(result, mine.iter().map(|one| one * ranks).collect::<Vec<_>>(), "reduce_scatter, call {call}");
            comm.barrier()?;

            // The same contributions every time, in which the order of operands shows.
            let thirds: Vec<f64> = (0..count).map(|index| (1.0 + me as f64) / (3.0 + index as f64)).collect();
            let mut sum = vec![0.0; count];
            comm.allreduce(&thirds, &mut sum, Op::sum())?;
            let bits: Vec<u64> = sum.iter().map(|sum| sum.to_bits()).collect();
            if call == 0 {
                begun[size] = bits;
            } else {
                assert_eq!(begun[size], bits, "allreduce of doubles, call {call}");
            }
        }
    }
    Ok(())
}
