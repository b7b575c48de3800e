//! A time-independent trace for SimGrid's replay: `smpirun -replay`.

use std::io::Write;

use allhands_schedule::Prepared;

use super::{ExportError, RankRounds, sizes, without_meetings};
use crate::{Amount, Machine};

/// Operations a second of the hosts for which work is written: one is one nanosecond on a host of 1 Gf.
const SPEED: f64 = 1e9;

/// Writes one rank's trace: receives and sends of a round posted together, then awaited, then the work.
///
/// Work is in operations of a host that does 1e9 a second. Bytes are sent as MPI_BYTE, type 6 of the replay.
///
/// ```
/// use allhands_model::{Amount, Machine, export};
/// use allhands_schedule::{Choice, Collective, Problem, Topology};
/// let problem = Problem::new(Collective::Allgather, Topology::flat(2)?);
/// let prepared = Choice::parse(Collective::Allgather, "ring")?.prepare(&problem)?;
/// let mut trace = Vec::new();
/// export::simgrid(&mut trace, &prepared, 0, &Machine::postal(1e-6, 1e-9), Amount::bytes(8))?;
/// assert_eq!(String::from_utf8(trace)?, "0 init\n0 irecv 1 0 8 6\n0 isend 1 0 8 6\n0 waitall 2\n0 finalize\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn simgrid(
    out: &mut impl Write,
    prepared: &Prepared,
    rank: usize,
    machine: &Machine,
    amount: Amount,
) -> Result<(), ExportError> {
    without_meetings(prepared)?;
    writeln!(out, "{rank} init")?;
    for round in RankRounds::new(&prepared.rank(rank), &sizes(prepared, amount), machine).rounds {
        for (from, bytes) in &round.recvs {
            writeln!(out, "{rank} irecv {from} 0 {bytes} 6")?;
        }
        for (to, bytes) in &round.sends {
            writeln!(out, "{rank} isend {to} 0 {bytes} 6")?;
        }
        if !round.recvs.is_empty() || !round.sends.is_empty() {
            writeln!(out, "{rank} waitall {}", round.recvs.len() + round.sends.len())?;
        }
        if round.work > 0.0 {
            writeln!(out, "{rank} compute {:.3}", round.work * SPEED)?;
        }
    }
    writeln!(out, "{rank} finalize")?;
    Ok(())
}
