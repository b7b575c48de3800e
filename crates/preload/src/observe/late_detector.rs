//! `ALLHANDS_TIMEOUT`: of a collective that takes longer, who has arrived and who has not, once, on the standard error.
//!
//! A thread of each process looks; it calls no MPI. What it sees is the attendance table of its machine: of ranks on other machines, those
//! who wait there tell. The collective goes on waiting.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use allhands::raw::NodeMemory;
use allhands_call::{Communicator, Unserved};
use allhands_mpi::Mpi;
use allhands_schedule::hash;

use super::attendance_table::{AttendanceTable, Whereabouts};
use super::observer::{Announced, Observer, Stay};
use allhands_call::locks::lock;

/// What all threads of the process know of its calls.
pub(super) struct LateDetector {
    mpi: &'static Mpi,
    shared: Arc<SharedState>,
    /// By the number of the communicator; none if some of its ranks are not of this world.
    attendances: Mutex<HashMap<u64, Option<Arc<Attendance>>>>,
    looker: Mutex<Option<JoinHandle<()>>>,
}

struct SharedState {
    most: Duration,
    /// None where the ranks of the machine share no memory.
    memory: Option<NodeMemory>,
    /// This rank's place there.
    place: usize,
    calls: Mutex<Vec<Waiting>>,
    ended: AtomicBool,
}

/// What the ranks of a communicator are in the world.
struct Attendance {
    /// The same on every one of them.
    group: u64,
    /// Of this rank's row; none without memory or where there are too many groups.
    slot: Option<usize>,
    /// By rank of the communicator.
    world: Vec<usize>,
}

/// A call that has not returned.
struct Waiting {
    attendance: Arc<Attendance>,
    number: u64,
    text: String,
    since: Instant,
    told: bool,
}

/// As long as it lives the rank is in a call.
struct Present<'a> {
    shared: &'a SharedState,
    attendance: Arc<Attendance>,
    number: u64,
}

impl Observer for LateDetector {
    fn listens(&self) -> bool {
        true
    }

    fn arrives<'a>(&'a self, call: &Announced<'_>, _meanwhile: &dyn Fn()) -> Result<Option<Stay<'a>>, Unserved> {
        let known = lock(&self.attendances).get(&call.comm.number).cloned();
        let attendance = known.unwrap_or_else(|| {
            let made = self.attendance(call.comm);
            lock(&self.attendances).insert(call.comm.number, made.clone());
            made
        });
        Ok(attendance.map(|attendance| Box::new(self.enter(&attendance, &call.text)) as Stay<'a>))
    }

    fn forgets(&self, comm: &Communicator) {
        lock(&self.attendances).remove(&comm.number);
    }

    fn ends(&self) {
        self.shared.ended.store(true, Ordering::Release);
        if let Some(attendance_table) = self.shared.attendance_table() {
            attendance_table.row(self.shared.place).leave();
        }
        let looker = lock(&self.looker).take();
        if let Some(looker) = looker {
            looker.thread().unpark();
            let _ = looker.join();
        }
    }
}

impl LateDetector {
    /// Collective over the world.
    pub(super) fn new(mpi: &'static Mpi, most: Duration) -> Result<LateDetector, String> {
        let (world, fact) = (mpi.world(), |error: &dyn std::fmt::Display| error.to_string());
        let (me, ranks) = (mpi.comm_rank(world).map_err(|error| fact(&error))?, mpi.comm_size(world));
        let words = AttendanceTable::words(ranks.map_err(|error| fact(&error))?);
        // SAFETY: the world lives.
        let memory = unsafe { NodeMemory::of_mpi(world, words) }.map_err(|error| fact(&error))?;
        let place = memory.as_ref().and_then(|memory| memory.ranks().iter().position(|rank| *rank == me)).unwrap_or(0);
        let shared =
            Arc::new(SharedState { most, memory, place, calls: Mutex::default(), ended: AtomicBool::new(false) });
        let looker = std::thread::Builder::new().name("allhands-watch".into()).spawn({
            let shared = shared.clone();
            move || shared.look()
        });
        let looker = Mutex::new(Some(looker.map_err(|error| fact(&error))?));
        Ok(LateDetector { mpi, shared, attendances: Mutex::default(), looker })
    }

    /// What is to be known of a communicator; none if some of its ranks are not of this world.
    fn attendance(&self, comm: &Communicator) -> Option<Arc<Attendance>> {
        let ranks: Vec<i32> = (0..comm.size as i32).collect();
        let world = self.mpi.translate_ranks(comm.handle, &ranks, self.mpi.world()).ok()??;
        let group = hash(world.iter().flat_map(|rank| rank.to_le_bytes())) | 1;
        let _one_at_a_time = self.shared.calls();
        let slot = self
            .shared
            .attendance_table()
            .and_then(|attendance_table| attendance_table.row(self.shared.place).slot(group));
        Some(Arc::new(Attendance { group, slot, world }))
    }

    /// The rank begins a call.
    fn enter(&self, attendance: &Arc<Attendance>, text: &str) -> Present<'_> {
        let shared = &*self.shared;
        let mut number = 0;
        if let (Some(attendance_table), Some(slot)) = (shared.attendance_table(), attendance.slot) {
            number = attendance_table.row(shared.place).begin(slot, text);
        }
        let attendance = attendance.clone();
        let (text, since, told) = (text.into(), Instant::now(), false);
        shared.calls().push(Waiting { attendance: attendance.clone(), number, text, since, told });
        Present { shared, attendance, number }
    }
}

impl Drop for Present<'_> {
    fn drop(&mut self) {
        if let (Some(attendance_table), Some(slot)) = (self.shared.attendance_table(), self.attendance.slot) {
            attendance_table.row(self.shared.place).end(slot);
        }
        let mut calls = self.shared.calls();
        let mine =
            calls.iter().position(|call| call.number == self.number && Arc::ptr_eq(&call.attendance, &self.attendance));
        if let Some(mine) = mine {
            calls.swap_remove(mine);
        }
    }
}

impl SharedState {
    fn calls(&self) -> MutexGuard<'_, Vec<Waiting>> {
        lock(&self.calls)
    }

    fn attendance_table(&self) -> Option<AttendanceTable<'_>> {
        self.memory.as_ref().map(|memory| AttendanceTable::new(memory.words()))
    }

    /// Until the session ends.
    fn look(&self) {
        let pause = (self.most / 8).clamp(Duration::from_millis(5), Duration::from_millis(250));
        while !self.ended.load(Ordering::Acquire) {
            std::thread::park_timeout(pause);
            let mut calls = self.calls();
            for call in calls.iter_mut().filter(|call| !call.told && call.since.elapsed() >= self.most) {
                call.told = true;
                if let Some(sentence) = self.sentence(call) {
                    allhands::raw::say(sentence);
                }
            }
        }
    }

    /// What there is to say of a call; none if another rank says it.
    fn sentence(&self, call: &Waiting) -> Option<String> {
        let Attendance { group, slot, world } = &*call.attendance;
        let late = format!("{} on {} ranks has not completed within {:?}", call.text, world.len(), self.most);
        let (Some(attendance_table), Some(_), Some(memory)) = (self.attendance_table(), slot, &self.memory) else {
            return Some(format!("{late}; who has arrived cannot be seen from here"));
        };
        if !attendance_table.claim(*group, call.number) {
            return None;
        }
        let seen = world.iter().enumerate().map(|(rank, world)| {
            let place = memory.ranks().iter().position(|rank| rank == world);
            (rank, place.map(|place| attendance_table.row(place).whereabouts(*group, call.number)))
        });
        Some(format!("{late}: {}", told(&call.text, seen)))
    }
}

/// Who is where, in words, ranks of the same whereabouts together.
fn told(text: &str, seen: impl Iterator<Item = (usize, Option<Whereabouts>)>) -> String {
    // In this order.
    const OTHER_MACHINES: u8 = 4;
    let mut parts: BTreeMap<(u8, String), Vec<usize>> = BTreeMap::new();
    for (rank, whereabouts) in seen {
        let (order, part) = match whereabouts {
            Some(Whereabouts::Here(call)) if call == text => (0, "arrived".into()),
            Some(Whereabouts::Here(call)) => (1, format!("arrived with {call}")),
            Some(Whereabouts::Gone) => (2, "arrived and gone on".into()),
            Some(Whereabouts::Missing(None)) => (3, "not arrived, being in no collective".into()),
            Some(Whereabouts::Missing(Some(call))) => (3, format!("not arrived, being in {call}")),
            Some(Whereabouts::Left) => (3, "not arrived, being after MPI_Finalize".into()),
            None => (OTHER_MACHINES, "on other machines, where those who have arrived tell of themselves".into()),
        };
        parts.entry((order, part)).or_default().push(rank);
    }
    let phrase = |((order, part), ranks): ((u8, String), Vec<usize>)| {
        let (noun, verb) = match (ranks.len(), order) {
            (1, OTHER_MACHINES) => ("rank", "is"),
            (_, OTHER_MACHINES) => ("ranks", "are"),
            (1, _) => ("rank", "has"),
            _ => ("ranks", "have"),
        };
        format!("{noun} {} {verb} {part}", listed(&ranks))
    };
    parts.into_iter().map(phrase).collect::<Vec<_>>().join("; ")
}

/// `0-2, 5`
fn listed(ranks: &[usize]) -> String {
    let runs = ranks.chunk_by(|one, next| one + 1 == *next);
    let run = |run: &[usize]| match run {
        [one] => one.to_string(),
        [first, .., last] => format!("{first}-{last}"),
        [] => String::new(),
    };
    runs.map(run).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_of_the_same_whereabouts_stand_together() {
        let here = || Some(Whereabouts::Here("MPI_Barrier()".into()));
        let elsewhere = || Some(Whereabouts::Missing(Some("MPI_Bcast(root 0, 4 bytes)".into())));
        let seen = [here(), here(), Some(Whereabouts::Missing(None)), here(), elsewhere(), elsewhere(), None];
        assert_eq!(
            told("MPI_Barrier()", seen.into_iter().enumerate()),
            "ranks 0-1, 3 have arrived; ranks 4-5 have not arrived, being in MPI_Bcast(root 0, 4 bytes); \
             rank 2 has not arrived, being in no collective; \
             rank 6 is on other machines, where those who have arrived tell of themselves"
        );
    }

    #[test]
    fn another_call_at_the_same_place_is_named() {
        let seen = [Whereabouts::Here("MPI_Bcast(root 0, 4 bytes)".into()), Whereabouts::Gone, Whereabouts::Left];
        assert_eq!(
            told("MPI_Barrier()", seen.into_iter().map(Some).enumerate()),
            "rank 0 has arrived with MPI_Bcast(root 0, 4 bytes); rank 1 has arrived and gone on; \
             rank 2 has not arrived, being after MPI_Finalize"
        );
    }
}
