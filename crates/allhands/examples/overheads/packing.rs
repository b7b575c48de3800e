//! Messages of several pieces: copied into one piece and out again, beside a derived datatype. Both by hand, between pairs of
//! ranks; the pieces are those of the first message of Bruck's alltoall, every second block.

use allhands::Result;
use allhands_mpi::{Handle, Handles, Mpi};

use crate::Bench;
use crate::turns::{Spread, by_turns};

const TAG: i32 = 2;

pub(crate) fn measure(bench: &Bench<'_>) -> Result<()> {
    let (p, me) = (bench.comm.size(), bench.comm.rank());
    if !p.is_multiple_of(2) {
        bench.say(format!("packing ranks={p} skipped: pairs need an even number of ranks"));
        return Ok(());
    }
    let comm = bench.mpi.comm_dup(bench.mpi.world())?;
    for ranks in [8, 64] {
        for block in [8, 64, 512, 4096, 32768] {
            one(bench, comm, (me ^ 1) as i32, ranks, block)?;
        }
    }
    bench.mpi.comm_free(comm)?;
    Ok(())
}

fn one(bench: &Bench<'_>, comm: Handle, peer: i32, ranks: usize, block: usize) -> Result<()> {
    let mpi = bench.mpi;
    let offsets: Vec<usize> = (1..ranks).step_by(2).map(|place| place * block).collect();
    let bytes = offsets.len() * block;
    let from: Vec<u8> = (0..ranks * block).map(|index| (index / block + index % 7 + peer as usize) as u8).collect();
    let (mut packed, mut arrived) = (vec![0u8; bytes], vec![0u8; bytes]);
    let (mut by_packing, mut by_type) = (vec![0u8; ranks * block], vec![0u8; ranks * block]);
    let places: Vec<isize> = offsets.iter().map(|offset| *offset as isize).collect();
    let datatype = mpi.type_create_hindexed(&vec![block as i32; places.len()], &places, mpi.constants().types.byte)?;
    mpi.type_commit(datatype)?;
    let mut pack = || -> Result<()> {
        // SAFETY: all buffers stay until the wait, and none is used twice.
        unsafe {
            let receive = mpi.irecv(arrived.as_mut_ptr(), bytes, peer, TAG, comm)?;
            for (piece, offset) in packed.chunks_exact_mut(block).zip(&offsets) {
                piece.copy_from_slice(&from[*offset..offset + block]);
            }
            let send = mpi.isend(packed.as_ptr(), bytes, peer, TAG, comm)?;
            wait(mpi, receive, send)?;
        }
        for (piece, offset) in arrived.chunks_exact(block).zip(&offsets) {
            by_packing[*offset..offset + block].copy_from_slice(piece);
        }
        Ok(())
    };
    let mut typed = || -> Result<()> {
        let (mut receive, mut send): (Handle, Handle) = (0, 0);
        // SAFETY: the type stays inside both buffers, which stay until the wait.
        unsafe {
            let raw = mpi.raw();
            let code = (raw.irecv)(by_type.as_mut_ptr().cast(), 1, datatype, peer, TAG, comm, &mut receive);
            mpi.check("MPI_Irecv", code)?;
            let code = (raw.isend)(from.as_ptr().cast(), 1, datatype, peer, TAG, comm, &mut send);
            mpi.check("MPI_Isend", code)?;
        }
        wait(mpi, receive, send)
    };
    let times = by_turns(bench, &mut [&mut pack, &mut typed])?;
    assert!(by_packing == by_type, "packing and a datatype give different results");
    mpi.type_free(datatype)?;
    let [pack_us, typed_us] = [0, 1].map(|way| Spread::of(times[way].iter().copied()));
    let ratio = Spread::of_ratios(&times[1], &times[0]);
    let pieces = offsets.len();
    bench.say(format!(
        "packing pieces={pieces} piece_bytes={block} datatype/packing={ratio} packing_us={pack_us} datatype_us={typed_us}"
    ));
    Ok(())
}

fn wait(mpi: &Mpi, receive: Handle, send: Handle) -> Result<()> {
    let mut both = Handles::new(mpi, 2);
    both.set(0, receive);
    both.set(1, send);
    Ok(mpi.waitall(&mut both)?)
}
