//! Who waits for whom.
//!
//! From a collective that nobody leaves before all have come, ranks return at nearly the same time: who is in it longest came first,
//! who is in it shortest came last. So the times that ranks have anyway tell, on average over all such calls, and no clocks are compared.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::whole::{Communicator, Part, Whole};

/// Collectives that nobody leaves before all have come.
const FOR_ALL: [&str; 9] = [
    "barrier",
    "allreduce",
    "allgather",
    "allgatherv",
    "alltoall",
    "alltoallv",
    "alltoallw",
    "reduce_scatter",
    "reduce_scatter_block",
];

/// The first and the last to arrive at the collectives of a communicator, on average, and how long each was in them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Wait {
    #[serde(flatten)]
    pub(crate) on: Communicator,
    /// Calls of a rank.
    pub(crate) calls: u64,
    pub(crate) first_rank: usize,
    pub(crate) first_seconds: f64,
    pub(crate) last_rank: usize,
    pub(crate) last_seconds: f64,
}

impl Wait {
    /// Whether it is more than a hundredth of the run.
    pub(crate) fn matters(&self, whole: &Whole) -> bool {
        self.first_seconds - self.last_seconds > 0.01 * whole.seconds
    }
}

/// Of each communicator all of whose ranks are there: of several that one call has made, who came first of all says nothing.
pub(crate) fn waits(parts: &[Part]) -> Vec<Wait> {
    let mut times: BTreeMap<Communicator, Vec<(usize, u64, f64)>> = BTreeMap::new();
    for (rank, part) in parts.iter().enumerate() {
        let mut mine: BTreeMap<Communicator, (u64, f64)> = BTreeMap::new();
        for (key, tally) in &part.rows {
            if key.on.ranks > 1 && FOR_ALL.contains(&key.collective.as_str()) {
                let (calls, seconds) = mine.entry(key.on).or_default();
                (*calls, *seconds) = (*calls + tally.calls, *seconds + tally.spread.sum());
            }
        }
        mine.into_iter().for_each(|(on, (calls, seconds))| times.entry(on).or_default().push((rank, calls, seconds)));
    }
    let whole = times.into_iter().filter(|(on, ranks)| ranks.len() == on.ranks && on.id != Communicator::BETWEEN);
    whole
        .filter_map(|(on, ranks)| {
            let by_time = |one: &&(usize, u64, f64), other: &&(usize, u64, f64)| one.2.total_cmp(&other.2);
            let (first, last) = (ranks.iter().max_by(by_time)?, ranks.iter().min_by(by_time)?);
            Some(Wait {
                on,
                calls: first.1,
                first_rank: first.0,
                first_seconds: first.2,
                last_rank: last.0,
                last_seconds: last.2,
            })
        })
        .collect()
}
