//! All communicators that the program has called a collective with.

use std::collections::HashSet;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use allhands::raw::Fellows;
use allhands_call::handles::Handles;
use allhands_call::{Communicator, Unserved};
use allhands_mpi::{Handle, Mpi};
use allhands_schedule::Collective;

use super::group::Remains;
use super::member::Member;
use crate::job::Job;
use crate::observe::{JobLessons, Observers};
use allhands_call::locks::lock;

/// Of so many communicators that are gone something is kept.
const MOST_REMAINS: usize = 4;

/// Calls that are passed on alike: on which communicator, what, and why.
type Like = (u64, Collective, Option<usize>, String);

pub(crate) struct Comms<Q> {
    mpi: &'static Mpi,
    observers: Arc<Observers>,
    /// Whether ours serve calls at all.
    serves: bool,
    /// Of the attribute by which MPI tells that a communicator is freed.
    key: c_int,
    met: AtomicU64,
    /// One more than were removed from the table.
    removed: AtomicU64,
    table: RwLock<Handles<Arc<Member<Q>>>>,
    /// Communicators that the program has freed, and whose end is still to come: see [`Comms::gone`].
    freed: Mutex<Vec<Arc<Member<Q>>>>,
    /// What is left of communicators whose end has come, for those to come.
    remains: Mutex<Vec<Remains>>,
    /// What was said of calls that are passed on.
    logged: Mutex<HashSet<Like>>,
    /// What was learned on communicators that are freed.
    lessons: Mutex<JobLessons>,
}

impl<Q: Default> Comms<Q> {
    /// `key`: that of an attribute whose end tells that its communicator is freed.
    pub(crate) fn new(job: &Job, observers: Arc<Observers>, key: c_int) -> Comms<Q> {
        Comms {
            mpi: job.mpi,
            observers,
            serves: job.serves,
            key,
            met: AtomicU64::new(0),
            removed: AtomicU64::new(1),
            table: RwLock::default(),
            freed: Mutex::default(),
            remains: Mutex::default(),
            logged: Mutex::default(),
            lessons: Mutex::default(),
        }
    }

    /// Changes when a communicator is freed.
    #[inline]
    pub(crate) fn removed(&self) -> u64 {
        self.removed.load(Ordering::Acquire)
    }

    /// A communicator as the program names it. What MPI would refuse, MPI shall refuse.
    pub(crate) fn member(&self, handle: Handle) -> Result<Arc<Member<Q>>, Unserved> {
        let known = self.table.read().unwrap_or_else(PoisonError::into_inner).get(&handle).cloned();
        match known {
            Some(member) => Ok(member),
            None => self.meet(handle, (handle == self.mpi.world()).then_some(0), None),
        }
    }

    /// A communicator was made from another, in a call that is collective over that one. Communicators of a lineage from the world by
    /// such calls alone are numbered by what all their ranks know: the number of the one that they were made from, and how many
    /// calls have made some from that, in an order that MPI asks to be the same on all its ranks. Those that one call makes have the
    /// same number, but no rank in common, nor have those that are made from them.
    /// `duplicate`: whether it has the same ranks in the same order.
    pub(crate) fn created(&self, parent: Handle, new: Handle, duplicate: bool) -> Result<(), Unserved> {
        let parent = self.table.read().unwrap_or_else(PoisonError::into_inner).get(&parent).cloned();
        if let Some(parent) = parent
            && let Some(lineage) = parent.next_lineage()
            && new != self.mpi.constants().handles.comm_null
        {
            self.meet(new, Some(lineage), duplicate.then(|| parent.fellows()).flatten())?;
        }
        Ok(())
    }

    fn meet(&self, handle: Handle, lineage: Option<u64>, fellows: Option<Fellows>) -> Result<Arc<Member<Q>>, Unserved> {
        self.bury();
        let comm = Communicator::of(self.mpi, handle, self.met.fetch_add(1, Ordering::Relaxed))?;
        // Any value but null, which might mean that there is none.
        let value = (&raw const *self).cast_mut().cast::<c_void>();
        // SAFETY: handle and key are MPI's.
        let code = unsafe { (self.mpi.raw().comm_set_attr)(handle, self.key, value) };
        self.mpi.check("MPI_Comm_set_attr", code)?;
        let member = Arc::new(Member::new(comm, lineage, self.serves, fellows, self.remains_of(&comm)));
        self.table.write().unwrap_or_else(PoisonError::into_inner).insert(handle, member.clone());
        self.observers.meet(&comm, member.lineage());
        Ok(member)
    }

    /// What is left of one that may have had the same ranks.
    fn remains_of(&self, comm: &Communicator) -> Option<Remains> {
        let mut remains = lock(&self.remains);
        let place = remains.iter().rposition(|left| left.seat() == (comm.rank, comm.size))?;
        Some(remains.swap_remove(place))
    }

    /// Makes ours for a communicator at once, where ranks may wait for each other. Collective.
    pub(crate) fn prepare(&self, handle: Handle) -> Option<Arc<Member<Q>>> {
        let member = self.member(handle).ok().filter(|member| member.refusal().is_none())?;
        drop(member.group(self.mpi));
        self.observers.prepare(&member.comm);
        Some(member)
    }

    /// Whether it is one that the program has called a collective with, and has not freed.
    pub(crate) fn knows(&self, handle: Handle) -> bool {
        self.table.read().unwrap_or_else(PoisonError::into_inner).contains_key(&handle)
    }

    /// Whether requests were made on it: see [`Member::has_requests`].
    pub(crate) fn has_requests(&self, handle: Handle) -> bool {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        table.get(&handle).is_some_and(|member| member.has_requests.load(Ordering::Acquire))
    }

    /// Says why a call is passed on, unless it was said of its like on this communicator.
    pub(crate) fn log(&self, comm: Handle, collective: Collective, bytes: Option<usize>, reason: &str) {
        let Ok(member) = self.member(comm) else { return };
        let like = (member.comm.number, collective, bytes, reason.to_owned());
        if member.comm.rank == 0 && lock(&self.logged).insert(like) {
            allhands::raw::log(collective.name(), bytes, member.comm.size, "the MPI", reason);
        }
    }

    /// MPI tells that the program has freed it. No MPI function is called here: an MPI may tell in the midst of its progress, with
    /// locks held that the function would take (MPICH 5.0 does where requests have kept the communicator alive). What is left of it ends in [`Comms::bury`].
    pub(crate) fn gone(&self, handle: Handle) {
        let member = self.table.write().unwrap_or_else(PoisonError::into_inner).remove(&handle);
        self.removed.fetch_add(1, Ordering::AcqRel);
        lock(&self.freed).extend(member);
    }

    /// Ends what belongs to communicators that are gone, which calls MPI: where the program has called a function that frees or makes one.
    pub(crate) fn bury(&self) {
        let next = || {
            let mut freed = lock(&self.freed);
            (!freed.is_empty()).then(|| freed.remove(0))
        };
        while let Some(member) = next() {
            self.observers.forget(&member.comm);
            if let Some(group) = member.made() {
                group.lock().learned(&mut lock(&self.lessons));
            }
            let Some(left) = Arc::into_inner(member).and_then(Member::end) else { continue };
            let mut remains = lock(&self.remains);
            if remains.len() == MOST_REMAINS {
                remains.remove(0);
            }
            remains.push(left);
        }
    }

    /// What was learned on all of them so far. Those that another thread is using are left out: it may wait for what this one does next.
    pub(crate) fn lessons(&self) -> JobLessons {
        self.bury();
        let mut lessons = lock(&self.lessons).clone();
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        for group in table.values().filter_map(|member| member.try_group()) {
            group.learned(&mut lessons);
        }
        lessons
    }

    /// Ends all of ours, in an order that is the same on every rank.
    pub(crate) fn end(&self) {
        self.bury();
        lock(&self.remains).clear();
        let table = std::mem::take(&mut *self.table.write().unwrap_or_else(PoisonError::into_inner));
        self.removed.fetch_add(1, Ordering::AcqRel);
        let mut members: Vec<Arc<Member<Q>>> = table.into_values().collect();
        members.sort_by_key(|member| member.comm.number);
        members.into_iter().for_each(drop);
    }
}
