//! The calls of all ranks, added up.

use std::collections::{BTreeSet, HashMap};

use serde::{Deserialize, Serialize};

use super::learning::Learning;

/// Calls that are one row.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Key {
    pub(super) collective: String,
    /// The least power of two that is not less than the bytes; none where a call was passed on before they were known.
    pub(super) up_to_bytes: Option<u64>,
    /// None: the MPI's own.
    pub(super) algorithm: Option<String>,
    /// Why the MPI's own was called.
    pub(super) passed: Option<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Tally {
    pub(super) calls: u64,
    pub(super) bytes: u64,
    pub(super) seconds: f64,
    pub(super) why: String,
    #[serde(default)]
    pub(super) ranks: usize,
}

/// A row as it is written.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Row {
    #[serde(flatten)]
    pub(super) key: Key,
    #[serde(flatten)]
    pub(super) tally: Tally,
}

/// Calls that ours and the MPI's own have served by turns.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Compared {
    pub(super) collective: String,
    /// None of an alltoallv.
    pub(super) up_to_bytes: Option<u64>,
    pub(super) ours: Side,
    pub(super) mpi: Side,
    #[serde(default)]
    pub(super) ranks: usize,
}

/// One side of a comparison: its calls that count, and the median of their times on a rank; over ranks, the mean of those.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Side {
    pub(super) calls: u64,
    pub(super) seconds: f64,
}

/// What one rank tells the first.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Part {
    pub(super) machine: String,
    /// From `MPI_Init` to `MPI_Finalize`.
    pub(super) seconds: f64,
    pub(super) rows: Vec<Row>,
    pub(super) compared: Vec<Compared>,
}

/// The time that a rank spent in a collective, by who served it: the mean over all ranks.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Share {
    pub(super) collective: String,
    pub(super) ours_seconds: f64,
    pub(super) mpi_seconds: f64,
}

/// All ranks' calls.
#[derive(Serialize)]
pub(super) struct Whole {
    pub(super) ranks: usize,
    pub(super) machines: usize,
    /// What `ALLHANDS_TOPOLOGY` says.
    pub(super) topology: Option<String>,
    pub(super) mpi: String,
    pub(super) seconds: f64,
    pub(super) shares: Vec<Share>,
    pub(super) rows: Vec<Row>,
    pub(super) compared: Vec<Compared>,
    /// What was found out of the machine.
    pub(super) machine: Option<String>,
    /// What was learned on communicators that the first rank is in.
    pub(super) learned: Option<Learning>,
}

impl Whole {
    pub(super) fn of(parts: Vec<Part>, mpi: String, topology: Option<String>) -> Whole {
        let machines = parts.iter().map(|part| part.machine.as_str()).collect::<BTreeSet<_>>().len();
        Whole {
            ranks: parts.len(),
            machines,
            topology,
            mpi,
            seconds: parts.iter().map(|part| part.seconds).fold(0.0, f64::max),
            shares: shares(&parts),
            rows: merged(parts.iter().flat_map(|part| part.rows.iter().cloned())),
            compared: weighed(parts.into_iter().flat_map(|part| part.compared)),
            machine: None,
            learned: None,
        }
    }

    /// Seconds that a rank spent in collectives, on average: in ours, and in the MPI's.
    pub(super) fn time(&self) -> (f64, f64) {
        self.shares.iter().fold((0.0, 0.0), |(ours, mpi), share| (ours + share.ours_seconds, mpi + share.mpi_seconds))
    }

    /// Calls that we served, and all.
    pub(super) fn calls(&self) -> (u64, u64) {
        let served = self.rows.iter().filter(|row| row.key.algorithm.is_some());
        (served.map(|row| row.tally.calls).sum(), self.rows.iter().map(|row| row.tally.calls).sum())
    }
}

/// Where the time went, the longest first.
fn shares(parts: &[Part]) -> Vec<Share> {
    let mut times: HashMap<&str, (f64, f64)> = HashMap::new();
    for Row { key, tally } in parts.iter().flat_map(|part| &part.rows) {
        let (ours, mpi) = times.entry(&key.collective).or_default();
        *(if key.algorithm.is_some() { ours } else { mpi }) += tally.seconds / parts.len() as f64;
    }
    let mut shares: Vec<Share> = times
        .into_iter()
        .map(|(name, (ours_seconds, mpi_seconds))| Share { collective: name.into(), ours_seconds, mpi_seconds })
        .collect();
    let time = |share: &Share| share.ours_seconds + share.mpi_seconds;
    shares.sort_by(|one, other| time(other).total_cmp(&time(one)).then_with(|| one.collective.cmp(&other.collective)));
    shares
}

/// The rows of all ranks: calls and bytes of all of them together, the time of the rank that took longest.
fn merged(rows: impl Iterator<Item = Row>) -> Vec<Row> {
    let mut all: HashMap<Key, Tally> = HashMap::new();
    for Row { key, tally } in rows {
        let sum = all.entry(key).or_default();
        sum.calls += tally.calls;
        sum.bytes += tally.bytes;
        sum.seconds = sum.seconds.max(tally.seconds);
        sum.ranks += 1;
        if sum.why.is_empty() {
            sum.why = tally.why;
        }
    }
    let mut rows: Vec<Row> = all.into_iter().map(|(key, tally)| Row { key, tally }).collect();
    rows.sort_by(|one, other| one.key.cmp(&other.key));
    rows
}

/// The comparisons of all ranks: the mean of their medians, each rank counting as much as the others.
fn weighed(all: impl Iterator<Item = Compared>) -> Vec<Compared> {
    let mut kinds: HashMap<(String, Option<u64>), Compared> = HashMap::new();
    for compared in all {
        let kind = (compared.collective.clone(), compared.up_to_bytes);
        kinds
            .entry(kind)
            .and_modify(|sum| {
                for (sum, side) in [(&mut sum.ours, compared.ours), (&mut sum.mpi, compared.mpi)] {
                    sum.calls += side.calls;
                    sum.seconds += side.seconds;
                }
                sum.ranks += 1;
            })
            .or_insert(compared);
    }
    let mut kinds: Vec<Compared> = kinds.into_values().collect();
    for Compared { ours, mpi, ranks, .. } in &mut kinds {
        ours.seconds /= *ranks as f64;
        mpi.seconds /= *ranks as f64;
    }
    kinds.sort_by(|one, other| (&one.collective, one.up_to_bytes).cmp(&(&other.collective, other.up_to_bytes)));
    kinds
}

impl Row {
    /// Who served it, and why.
    pub(super) fn served(&self) -> (&str, &str) {
        match (&self.key.algorithm, &self.key.passed) {
            (Some(algorithm), _) => (algorithm, &self.tally.why),
            (None, reason) => ("the MPI", reason.as_deref().unwrap_or_default()),
        }
    }
}

/// What ours is worth beside the MPI's own.
pub(super) enum Gain {
    /// They are as fast: no more than a twentieth apart.
    None,
    Faster(f64),
    Slower(f64),
}

impl Gain {
    pub(super) fn of(compared: &Compared) -> Gain {
        let (ours, mpi) = (compared.ours.seconds.max(1e-12), compared.mpi.seconds.max(1e-12));
        match mpi / ours {
            ratio if ratio > 1.05 => Gain::Faster(ratio),
            ratio if ratio < 1.0 / 1.05 => Gain::Slower(1.0 / ratio),
            _ => Gain::None,
        }
    }
}

impl std::fmt::Display for Gain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Gain::None => write!(f, "as fast"),
            Gain::Faster(times) => write!(f, "{times:.2}x faster"),
            Gain::Slower(times) => write!(f, "{times:.2}x slower"),
        }
    }
}
