//! The calls of one rank.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use allhands_schedule::Collective;

use super::samples::Samples;
use super::units::class;
use super::whole::{Compared, Key, Part, Row, Side, Tally};
use crate::observe::observer::By;
use allhands_call::locks::lock;

/// The calls of this rank.
pub(super) struct Calls {
    began: Instant,
    rows: Mutex<HashMap<Key, Tally>>,
    compared: Mutex<HashMap<Kind, [Samples; 2]>>,
}

/// Calls that are compared with each other; of an alltoallv those of all sizes.
type Kind = (Collective, Option<u64>);

impl Default for Calls {
    fn default() -> Calls {
        Calls { began: Instant::now(), rows: Mutex::default(), compared: Mutex::default() }
    }
}

impl Calls {
    pub(super) fn note(&self, collective: &str, bytes: Option<usize>, by: &By<'_>, time: Duration) {
        let (algorithm, passed, why) = match *by {
            By::Ours { algorithm, why } => (Some(algorithm.into()), None, why),
            By::Nobody => (Some("nothing".into()), None, "there is nothing to move"),
            By::Theirs(reason) => (None, Some(reason.into()), ""),
        };
        let key = Key { collective: collective.into(), up_to_bytes: bytes.map(class), algorithm, passed };
        let mut rows = lock(&self.rows);
        let tally = rows.entry(key).or_default();
        tally.calls += 1;
        tally.bytes += bytes.unwrap_or(0) as u64;
        tally.seconds += time.as_secs_f64();
        if tally.why.is_empty() {
            tally.why = why.into();
        }
    }

    /// A call of a comparison.
    pub(super) fn compared(&self, collective: Collective, bytes: Option<usize>, ours: bool, time: Duration) {
        let bytes = bytes.filter(|_| !collective.hides_counts());
        let mut compared = lock(&self.compared);
        let sides = compared.entry((collective, bytes.map(class))).or_default();
        sides[usize::from(!ours)].add(time);
    }

    pub(super) fn part(&self) -> Part {
        let rows = std::mem::take(&mut *lock(&self.rows));
        let compared = std::mem::take(&mut *lock(&self.compared));
        let side = |samples: &Samples| Side { calls: samples.calls(), seconds: samples.median() };
        let compared = compared.iter().filter(|(_, sides)| sides.iter().all(|side| side.calls() > 0));
        Part {
            machine: std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default(),
            seconds: self.began.elapsed().as_secs_f64(),
            rows: rows.into_iter().map(|(key, tally)| Row { key, tally }).collect(),
            compared: compared
                .map(|((collective, up_to_bytes), [ours, mpi])| Compared {
                    collective: collective.name().into(),
                    up_to_bytes: *up_to_bytes,
                    ours: side(ours),
                    mpi: side(mpi),
                    ranks: 1,
                })
                .collect(),
        }
    }
}
