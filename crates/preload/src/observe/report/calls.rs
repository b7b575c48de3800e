//! The calls of one rank.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use allhands_call::Communicator as Known;
use allhands_call::locks::lock;
use allhands_report::{Communicator, Compared, Key, Part, Side, Spread, Tally, class};
use allhands_schedule::Collective;

use super::samples::Samples;
use super::sites::Sites;
use crate::observe::observer::{By, Served, Turn};

/// The calls of this rank.
pub(super) struct Calls {
    began: Instant,
    /// What communicators that were met are called in the report, by their number; and in which order they were met.
    met: Mutex<(HashMap<u64, Communicator>, Vec<Communicator>)>,
    rows: Mutex<HashMap<Key, Tally>>,
    compared: Mutex<HashMap<CallKind, Sides>>,
    /// In point-to-point and in calls that begin or complete requests.
    requests: Mutex<Duration>,
    pub(super) sites: Sites,
}

/// Calls that are compared with each other; of an alltoallv those of all sizes.
type CallKind = (Communicator, Collective, Option<u64>);

/// Those that ours have served, and the MPI's own.
#[derive(Default)]
struct Sides {
    sides: [(Samples, Spread); 2],
    /// All of them, those that do not count included.
    all: Spread,
}

/// More communicators than these are told apart by their size only: a program may make very many.
const MOST_MET: usize = 64;

impl Default for Calls {
    fn default() -> Calls {
        Calls {
            began: Instant::now(),
            met: Mutex::default(),
            rows: Mutex::default(),
            compared: Mutex::default(),
            requests: Mutex::default(),
            sites: Sites::default(),
        }
    }
}

impl Calls {
    /// A communicator, with what all its ranks know it by, if they do.
    pub(super) fn meets(&self, comm: &Known, lineage: Option<u64>) {
        let (known, order) = &mut *lock(&self.met);
        let (size, between) = (comm.size, comm.between_groups);
        let id = match lineage {
            _ if between => Communicator::BETWEEN,
            Some(0) => Communicator::WORLD,
            _ if size == 1 => Communicator::ALONE,
            Some(lineage) if order.len() < MOST_MET => lineage,
            _ => Communicator::OTHERS,
        };
        let on = Communicator { id, ranks: size };
        known.insert(comm.number, on);
        if !order.contains(&on) {
            order.push(on);
        }
    }

    pub(super) fn forgets(&self, comm: &Known) {
        lock(&self.met).0.remove(&comm.number);
    }

    /// What is called with what MPI refuses has no ranks.
    fn on(&self, comm: Option<&Known>) -> Communicator {
        let known = comm.and_then(|comm| lock(&self.met).0.get(&comm.number).copied());
        known.unwrap_or(Communicator { id: Communicator::OTHERS, ranks: comm.map_or(0, |comm| comm.size) })
    }

    pub(super) fn note(&self, call: &Served<'_>) {
        let (algorithm, passed, why) = match call.by {
            By::Ours { algorithm, why } => (Some(algorithm.into()), None, why),
            By::Nobody => (Some("nothing".into()), None, "there is nothing to move"),
            By::Theirs(reason) => (None, Some(reason.into()), ""),
        };
        let on = self.on(call.comm);
        let up_to_bytes = call.bytes.map(class);
        let key = Key { collective: call.name.into(), up_to_bytes, on, algorithm, passed };
        let mut rows = lock(&self.rows);
        let tally = rows.entry(key).or_default();
        tally.calls += 1;
        tally.bytes += call.bytes.unwrap_or(0) as u64;
        if let Some(time) = call.time {
            tally.spread.add(time.as_secs_f64());
        }
        if tally.why.is_empty() {
            tally.why = why.into();
        }
        drop(rows);
        if let (Some(time), Some(from)) = (call.time, call.from) {
            self.sites.note(from.get(), call.name, time);
        }
        if let (Some((collective, turn)), Some(time)) = (call.turn, call.time) {
            self.compares((on, collective, call.bytes), turn, time);
        }
    }

    /// A call of a comparison.
    fn compares(&self, (on, collective, bytes): (Communicator, Collective, Option<usize>), turn: Turn, time: Duration) {
        let bytes = bytes.filter(|_| !collective.hides_counts()).map(class);
        let mut compared = lock(&self.compared);
        let Sides { sides, all } = compared.entry((on, collective, bytes)).or_default();
        all.add(time.as_secs_f64());
        if turn.counts {
            let (samples, spread) = &mut sides[usize::from(!turn.ours)];
            samples.add(time);
            spread.add(time.as_secs_f64());
        }
    }

    /// Time in point-to-point, or in a call that begins or completes requests.
    pub(super) fn spends(&self, time: Duration) {
        *lock(&self.requests) += time;
    }

    /// What this rank tells the first.
    pub(super) fn part(&self) -> Part {
        let side = |(samples, spread): &(Samples, Spread)| Side {
            calls: spread.calls,
            seconds: samples.tenths(5),
            most_seconds: samples.tenths(9),
            mean_seconds: spread.mean,
            deviation_seconds: spread.deviation(),
        };
        let compared = std::mem::take(&mut *lock(&self.compared));
        let compared = compared.iter().filter(|(_, kind)| kind.sides.iter().all(|(_, spread)| spread.calls > 0));
        Part {
            seconds: self.began.elapsed().as_secs_f64(),
            requests_seconds: lock(&self.requests).as_secs_f64(),
            met: lock(&self.met).1.clone(),
            rows: std::mem::take(&mut *lock(&self.rows)).into_iter().collect(),
            compared: compared
                .map(|((on, collective, up_to_bytes), Sides { sides: [ours, mpi], all })| Compared {
                    collective: collective.name().into(),
                    up_to_bytes: *up_to_bytes,
                    ours: side(ours),
                    mpi: side(mpi),
                    on: *on,
                    calls: all.calls as f64,
                    spent_seconds: all.sum(),
                    callers: 1,
                })
                .collect(),
            sites: self.sites.part(),
            ..Part::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comm(number: u64, size: usize, between_groups: bool) -> Known {
        Known { handle: 0, rank: 0, size, between_groups, number }
    }

    #[test]
    fn communicators_are_what_all_their_ranks_know_them_by() {
        let calls = Calls::default();
        let world = comm(0, 4, false);
        calls.meets(&world, Some(0));
        calls.meets(&comm(1, 2, false), Some(77));
        calls.meets(&comm(2, 1, false), Some(78));
        calls.meets(&comm(3, 2, true), None);
        calls.meets(&comm(4, 3, false), None);
        let ids = calls.part().met.iter().map(|on| (on.id, on.ranks)).collect::<Vec<_>>();
        assert_eq!(ids, [(0, 4), (77, 2), (1, 1), (2, 2), (3, 3)]);
        // Very many are told apart by their size.
        (5..500).for_each(|number| calls.meets(&comm(number, 2, false), Some(1000 + number)));
        assert!(calls.part().met.len() <= MOST_MET + 1);
        assert_eq!(calls.on(Some(&comm(499, 2, false))), Communicator { id: Communicator::OTHERS, ranks: 2 });
        assert_eq!(calls.on(Some(&world)), Communicator { id: 0, ranks: 4 });
        assert_eq!(calls.on(None).ranks, 0);
    }

    #[test]
    fn calls_are_counted_with_and_without_a_time() {
        let calls = Calls::default();
        let world = comm(0, 4, false);
        calls.meets(&world, Some(0));
        let ours = By::Ours { algorithm: "ring", why: "the caller's wish" };
        let call = |name, by, milliseconds: Option<u64>| {
            let time = milliseconds.map(Duration::from_millis);
            calls.note(&Served { name, comm: Some(&world), bytes: Some(6), by, time, turn: None, from: None });
        };
        call("allreduce", ours, Some(1));
        call("allreduce", ours, Some(3));
        call("iallreduce", By::Theirs("a request"), None);
        calls.spends(Duration::from_millis(2));
        let mut part = calls.part();
        part.rows.sort_by(|one, other| one.0.cmp(&other.0));
        let rows: Vec<_> = part.rows.iter().map(|(key, tally)| (key.collective.as_str(), tally.calls)).collect();
        assert_eq!(rows, [("allreduce", 2), ("iallreduce", 1)]);
        assert_eq!((part.rows[0].1.bytes, part.rows[0].1.spread.calls, part.rows[1].1.spread.calls), (12, 2, 0));
        assert!((part.rows[0].1.spread.sum() - 0.004).abs() < 1e-12 && part.requests_seconds == 0.002);
    }

    #[test]
    fn all_calls_of_a_comparison_count_for_its_sum_and_those_that_warm_up_for_no_side() {
        let calls = Calls::default();
        let (world, ours) = (comm(0, 2, false), By::Ours { algorithm: "ring", why: "" });
        calls.meets(&world, Some(0));
        for (ours_turn, counts, milliseconds) in
            [(true, false, 50), (true, true, 1), (true, true, 3), (false, true, 6), (false, true, 8)]
        {
            let turn = Some((Collective::Allreduce, Turn { ours: ours_turn, counts }));
            let time = Some(Duration::from_millis(milliseconds));
            calls.note(&Served {
                name: "allreduce",
                comm: Some(&world),
                bytes: Some(8),
                by: ours,
                time,
                turn,
                from: None,
            });
        }
        let compared = &calls.part().compared[0];
        assert_eq!((compared.calls, compared.ours.calls, compared.mpi.calls), (5.0, 2, 2));
        let near = |one: f64, other: f64| (one - other).abs() < 1e-12;
        assert!(near(compared.spent_seconds, 0.068) && near(compared.ours.mean_seconds, 0.002), "{compared:?}");
        assert!(near(compared.mpi.seconds, 0.007) && near(compared.mpi.mean_seconds, 0.007), "{compared:?}");
    }
}
