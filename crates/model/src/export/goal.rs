//! GOAL, the input of LogGOPSim: operations of each rank with what they require.

use std::io::Write;

use allhands_schedule::Prepared;

use super::{ExportError, RankRounds, sizes, without_meetings};
use crate::{Amount, Machine};

/// Writes all ranks: the operations of a round require the last of the round before. Work is in nanoseconds.
///
/// ```
/// use allhands_model::{Amount, Machine, export};
/// use allhands_schedule::{Choice, Collective, Problem, Topology};
/// let problem = Problem::new(Collective::Allgather, Topology::flat(2)?);
/// let prepared = Choice::parse(Collective::Allgather, "ring")?.prepare(&problem)?;
/// let mut text = Vec::new();
/// export::goal(&mut text, &prepared, &Machine::postal(1e-6, 1e-9), Amount::bytes(8))?;
/// let text = String::from_utf8(text)?;
/// assert!(text.starts_with("num_ranks 2\n\nrank 0 {\nl1: calc 0\nl2: recv 8b from 1 tag 0\nl2 requires l1\n"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn goal(out: &mut impl Write, prepared: &Prepared, machine: &Machine, amount: Amount) -> Result<(), ExportError> {
    without_meetings(prepared)?;
    let (ranks, sizes) = (prepared.problem().ranks(), sizes(prepared, amount));
    writeln!(out, "num_ranks {ranks}")?;
    for rank in 0..ranks {
        writeln!(out, "\nrank {rank} {{")?;
        let (mut label, mut last) = (0, None);
        for round in RankRounds::new(&prepared.rank(rank), &sizes, machine).rounds {
            let recvs = round.recvs.iter().map(|(from, bytes)| format!("recv {bytes}b from {from} tag 0"));
            let sends = round.sends.iter().map(|(to, bytes)| format!("send {bytes}b to {to} tag 0"));
            let mut posted = Vec::new();
            for operation in recvs.chain(sends) {
                label += 1;
                writeln!(out, "l{label}: {operation}")?;
                if let Some(last) = last {
                    writeln!(out, "l{label} requires l{last}")?;
                }
                posted.push(label);
            }
            label += 1;
            writeln!(out, "l{label}: calc {:.0}", round.work * 1e9)?;
            posted.extend(last.filter(|_| posted.is_empty()));
            for before in posted {
                writeln!(out, "l{label} requires l{before}")?;
            }
            last = Some(label);
        }
        writeln!(out, "}}")?;
    }
    Ok(())
}
