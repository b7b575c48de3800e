//! Collectives that return before they are through: the non-blocking and the persistent ones, and what completes them.
//!
//! **The handle that a program holds is a request of its MPI**, which MPI itself completes: a receive, of nothing, from this rank, on
//! a communicator of ours that has no other rank. When a run of ours is through, an empty message to ourselves completes it. So
//! statuses, null and inactive requests, indices, translation to Fortran and mixed arrays stay the MPI's own business: a call that
//! completes requests moves our runs on and then calls the MPI's own function, whatever is in its array. A persistent collective
//! is a persistent receive. (A generalized request would serve non-blocking runs as well, but MPI has no persistent ones, and
//! one kind is simpler than two.) With no run under way, each of these calls costs one look at a counter.
//!
//! **Beginning waits for nobody**, as MPI promises: a rank may begin a collective before another rank does what it has to do first to let
//! it come there. So a non-blocking call never makes a communicator of ours, and its plans use algorithms without memory in common
//! (`Options::unshared`), which are made without the others. The world has a communicator of ours from `MPI_Init` on; others get
//! theirs with their first blocking or persistent collective, or when they are made from one on which a non-blocking or persistent
//! collective was called before: all of these are calls in which MPI lets ranks wait for each other, and which come in the same
//! order on every rank. Until then non-blocking calls are the MPI's.
//!
//! **One plan for a shape, one run after the other.** Ranks call the collectives of a communicator in the same order, but complete them
//! whenever they like. Whether an earlier run is through therefore must not decide which plan serves the next: it is always the same,
//! and a run that finds it busy waits in its line, not in the call. All ranks thus run the same sequence on the same plan. A
//! run that waits in line depends on runs begun earlier only, which every rank has begun or will without waiting for this one, and
//! every call that moves anything on moves all on: no circle can close. Alltoallvs, of which no rank knows all counts when it begins
//! one, have one line for all their shapes (`exchange`).
//!
//! **Progress is the MPI's**: `mover` lets the MPI call us whenever it makes progress, in whatever function the program is. So nothing
//! else of MPI needs to be intercepted for it, and no time limit decides anything. What waits here itself, a blocking collective of
//! ours, moves all other runs on as it waits.
//!
//! **Threads**: whoever waits moves everything on that no other thread holds. The lock of a communicator is held across a wait only by
//! a blocking collective on it, which moves the communicator's other runs on, too.

mod begin;
mod complete;
mod creation;
mod exchange;
mod lines;
mod marks;
mod mover;
mod patience;
mod status;

use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use allhands::Error;
use allhands_mpi::{Handle, Mpi};

pub(crate) use begin::{Asked, begin, prepare};
pub(crate) use lines::{Lines, beside, finish};
pub(crate) use mover::Mover;
pub(crate) use patience::Patience;

use crate::comms::Member;
use crate::failure::raise;
use crate::session::Session;
use lines::Named;
use marks::{Mark, Marks};

/// How many runs are under way.
static UNDER_WAY: AtomicUsize = AtomicUsize::new(0);
/// How many persistent requests there are.
static PREPARED: AtomicUsize = AtomicUsize::new(0);
/// How many runs have failed without the program knowing it.
static FAILED: AtomicUsize = AtomicUsize::new(0);

/// Whether a run is under way.
#[inline]
pub(crate) fn any() -> bool {
    UNDER_WAY.load(Ordering::Acquire) > 0
}

/// All runs and persistent requests of this process.
#[derive(Default)]
pub(crate) struct Requests {
    marks: Mutex<Marks>,
    /// Communicators with runs under way. They stay, though the program may have freed its own.
    busy: Mutex<Vec<Arc<Member>>>,
    prepared: Mutex<HashMap<Handle, Prepared>>,
    failed: Mutex<HashMap<Handle, Failure>>,
}

/// A persistent collective.
#[derive(Clone)]
struct Prepared {
    member: Arc<Member>,
    line: u64,
    mark: Mark,
    call: Named,
}

/// How a run ended that could not be completed.
struct Failure {
    function: &'static str,
    comm: Handle,
    error: Error,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks what no other thread holds.
pub(crate) fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

impl Requests {
    /// Moves every run on that no other thread is moving; how many are through.
    pub(crate) fn progress(&self, session: &Session) -> c_int {
        let before = UNDER_WAY.load(Ordering::Acquire);
        if before == 0 {
            return 0;
        }
        if let Some(check) = &session.check {
            // What is wrong with comparing is said where somebody waits for it.
            let _ = check.look(session.mpi);
        }
        let Some(mut busy) = try_lock(&self.busy) else { return 0 };
        let mut idle = Vec::new();
        busy.retain(|member| {
            let Some(mut group) = member.try_group() else { return true };
            // The MPI may call from inside its locks, so nothing here waits for another thread.
            let Some(_alone) = group.parts().0.alone() else { return true };
            group.lines.step(session);
            let stays = group.lines.busy();
            drop(group);
            if !stays {
                idle.push(member.clone());
            }
            stays
        });
        drop(busy);
        // The last to hold a communicator ends it, which calls MPI.
        drop(idle);
        before.saturating_sub(UNDER_WAY.load(Ordering::Acquire)) as c_int
    }

    /// Whether a request is one of ours whose run is under way, or that is persistent.
    fn ours(&self, request: Handle) -> bool {
        let begun = |member: &Arc<Member>| member.try_group().is_some_and(|mut group| group.parts().1.has(request));
        lock(&self.prepared).contains_key(&request) || lock(&self.busy).iter().any(begun)
    }

    /// A communicator has a run under way, which moves from now on.
    fn enlist(&self, session: &'static Session, member: &Arc<Member>) {
        let mut busy = lock(&self.busy);
        if !busy.iter().any(|known| Arc::ptr_eq(known, member)) {
            busy.push(member.clone());
        }
        drop(busy);
        if let Some(mover) = session.mover {
            mover.engage(session);
        }
    }

    /// MPI is about to be finalised: persistent requests that the program has not freed go.
    pub(crate) fn end(&self, mpi: &Mpi, mover: Option<Mover>) {
        if let Some(mover) = mover {
            mover.dismiss();
        }
        PREPARED.store(0, Ordering::Release);
        let prepared = std::mem::take(&mut *lock(&self.prepared));
        let busy = std::mem::take(&mut *lock(&self.busy));
        drop((prepared, busy));
        lock(&self.marks).end(mpi);
    }

    /// Tells the program about those of `handles` that have failed and that its call has completed: the call's code.
    ///
    /// # Safety
    /// `requests` is the program's array, which had these handles before the call.
    unsafe fn tell(&self, session: &Session, handles: &[Handle], requests: *mut c_void, told: &Told) -> c_int {
        let (mpi, abi) = (session.mpi, session.mpi.abi());
        let mut codes = Vec::new();
        for (index, handle) in handles.iter().enumerate() {
            // SAFETY: the caller's promise.
            let now = unsafe { abi.read_handle(requests.byte_add(index * abi.handle_bytes())) };
            if now == *handle && !lock(&self.prepared).contains_key(handle) {
                continue;
            }
            let Some(Failure { function, comm, error }) = lock(&self.failed).remove(handle) else { continue };
            FAILED.fetch_sub(1, Ordering::AcqRel);
            let comm = if session.comms.knows(comm) { comm } else { mpi.world() };
            codes.push((index, raise(mpi, function, comm, &error)));
        }
        // SAFETY: the caller's promise.
        unsafe { told.codes(mpi, &codes) }
    }
}

/// Where the program reads how each of several requests ended.
enum Told {
    /// One request: the code of the call.
    Code,
    /// All of them, in this array.
    All { statuses: *mut c_void, count: usize },
    /// Those that an array of so many indices names.
    Some { statuses: *mut c_void, indices: *const c_int, count: *const c_int },
}

impl Told {
    /// # Safety
    /// The arrays are the program's, as the call has left them.
    unsafe fn codes(&self, mpi: &Mpi, codes: &[(usize, c_int)]) -> c_int {
        let Some(&(_, first)) = codes.first() else { return 0 };
        let (statuses, places): (_, Vec<usize>) = match *self {
            Told::Code => return first,
            Told::All { statuses, count } => (statuses, (0..count).collect()),
            Told::Some { statuses, indices, count } => {
                // SAFETY: the caller's promise.
                let count = usize::try_from(unsafe { *count }).unwrap_or(0);
                // SAFETY: as above.
                (statuses, (0..count).map(|place| unsafe { *indices.add(place) } as usize).collect())
            }
        };
        if statuses != mpi.statuses_ignore().cast() {
            let integers = &mpi.constants().integers;
            let (stride, error) = (integers.status_bytes as usize, integers.status_error as usize);
            for (place, index) in places.into_iter().enumerate() {
                let code = codes.iter().find(|(failed, _)| *failed == index).map_or(0, |(_, code)| *code);
                // SAFETY: a status for each request that the call speaks of.
                unsafe { statuses.byte_add(place * stride + error).cast::<c_int>().write_unaligned(code) };
            }
        }
        mpi.constants().errors.in_status
    }
}
