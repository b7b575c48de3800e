//! Schedules in the forms of other people's simulators, so that these can judge ours.

mod goal;
mod simgrid;

pub use goal::goal;
pub use simgrid::simgrid;

use std::io;

use allhands_schedule::{Combine, Local, Prepared, Recv, Schedule};

use crate::sizes::Sizes;
use crate::{Amount, Error, Machine};

/// What can go wrong on the way out.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// What cannot be expressed.
    #[error(transparent)]
    Model(#[from] Error),
    /// Meetings of ranks that share memory have no form there.
    #[error("{0} meets in shared memory, which the format cannot express; leave out local=shared")]
    Shared(String),
    /// Nobody takes it.
    #[error("cannot write: {0}")]
    Output(#[from] io::Error),
}

/// One rank's rounds in bytes and seconds of work.
struct RankRounds {
    rounds: Vec<RoundBytes>,
}

/// Peers with bytes, and the work that follows.
struct RoundBytes {
    sends: Vec<(usize, u64)>,
    recvs: Vec<(usize, u64)>,
    work: f64,
}

impl RankRounds {
    fn new(schedule: &Schedule, sizes: &Sizes, machine: &Machine) -> RankRounds {
        let rank = schedule.rank;
        let bytes = |spans| sizes.weight(rank, spans) * sizes.unit;
        let combines = |recv: &&Recv| matches!(recv.combine, Some(Combine::After | Combine::Before));
        let rounds = schedule.rounds.iter().filter(|round| !round.is_empty()).map(|round| {
            let combined: u64 = round.recvs.iter().filter(combines).map(|recv| bytes(&recv.spans)).sum();
            let work = round.locals.iter().map(|local| match local {
                Local::Copy { from, .. } => machine.copy * bytes(std::slice::from_ref(from)) as f64,
                Local::Combine { from, .. } => machine.combine * bytes(std::slice::from_ref(from)) as f64,
                Local::Meet { .. } => 0.0,
            });
            RoundBytes {
                sends: round.sends.iter().map(|send| (send.to, bytes(&send.spans))).collect(),
                recvs: round.recvs.iter().map(|recv| (recv.from, bytes(&recv.spans))).collect(),
                work: work.sum::<f64>() + machine.combine * combined as f64,
            }
        });
        RankRounds { rounds: rounds.collect() }
    }
}

fn without_meetings(prepared: &Prepared) -> Result<(), ExportError> {
    if prepared.shares() { Err(ExportError::Shared(prepared.name())) } else { Ok(()) }
}

fn sizes(prepared: &Prepared, amount: Amount) -> Sizes<'_> {
    Sizes::new(prepared.problem(), prepared.blocks(), amount)
}
