//! The program's communicators, and ours for them.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashSet;
use std::ffi::{c_int, c_void};
use std::ptr::null;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use allhands::kernels::Type;
use allhands::raw::{Amount, PlanStore, RawCall, RawComm, RawPlan, Slot};
use allhands::{Error, Options};
use allhands_mpi::{Handle, Mpi};
use allhands_schedule::Collective;

use crate::check::Private;
use crate::failure::{Reason, Unserved};
use crate::handles::Handles;
use crate::quirks::counts_communicators;
use crate::requests::{self, Lines};
use crate::session::{self, Session};
use crate::settings::IF_IT_CAN;
use crate::turns::Turns;
use crate::watch::{Attendance, Present, Watch};

/// A communicator of the program.
pub(crate) struct Member {
    pub(crate) handle: Handle,
    pub(crate) rank: usize,
    pub(crate) size: usize,
    /// The order in which they were met, in which they are ended.
    number: u64,
    /// Why its calls are not ours, the same on every rank.
    refusal: Option<Reason>,
    /// Whether all ranks of a communicator call the same, and there are several.
    several: bool,
    /// For comparing calls.
    private: OnceLock<Option<Private>>,
    /// For telling who is late.
    attendance: OnceLock<Option<Arc<Attendance>>>,
    /// Ours for it, made when it is needed; or why there is none, the same on every rank.
    ours: OnceLock<Result<Mutex<Group>, Reason>>,
    /// Whether a non-blocking or persistent collective was called on it, or on what it was made from; the same on every rank at the
    /// same call.
    pub(crate) requests: AtomicBool,
    /// Which communicator it is, where that follows from the calls that made it: see [`Comms::created`].
    lineage: Option<u64>,
    /// How many communicators were made from it.
    created: AtomicU64,
    /// Lines of persistent requests that were freed while another thread had the lock.
    freed: Mutex<Vec<u64>>,
}

/// A communicator of ours with its plans.
pub(crate) struct Group {
    plans: PlanStore<RawCall, Planned>,
    /// The plan of the last call, which the next one often needs again.
    last: Option<Slot>,
    /// What is under way. Before the communicator, which it was made from.
    pub(crate) lines: Lines,
    /// Whether the plan of the last call was made for it.
    pub(crate) fresh: bool,
    pub(crate) turns: Turns,
    comm: RawComm,
}

// SAFETY: everything that was made from the communicator is here, behind one lock, and so moves from thread to thread together.
unsafe impl Send for Group {}

/// What serves calls of one shape.
pub(crate) enum Planned {
    Ours {
        plan: RawPlan,
        chosen: Arc<Chosen>,
    },
    /// The MPI's own is faster, or forced.
    Theirs(Reason),
}

/// An algorithm, and why.
pub(crate) struct Chosen {
    pub(crate) algorithm: String,
    pub(crate) why: String,
}

/// What the plans of a communicator may weigh together; those used longest ago go first.
pub(crate) const MOST_WEIGHT: u64 = 32 << 20;

/// Calls that are passed on alike: on which communicator, what, and why.
type Like = (u64, Collective, Option<usize>, String);

thread_local! {
    /// The communicator of this thread's last call, how many had been removed by then, and its place in the table.
    static RECENT: Cell<(u64, Handle, *const Member)> = const { Cell::new((0, 0, null())) };
}

pub(crate) struct Comms {
    /// Of the attribute by which MPI tells that a communicator is freed.
    key: c_int,
    met: AtomicU64,
    /// One more than were removed from the table.
    removed: AtomicU64,
    table: RwLock<Handles<Arc<Member>>>,
    /// What was said of calls that are passed on.
    logged: Mutex<HashSet<Like>>,
}

impl Comms {
    pub(crate) fn new(key: c_int) -> Comms {
        Comms {
            key,
            met: AtomicU64::new(0),
            removed: AtomicU64::new(1),
            table: RwLock::default(),
            logged: Mutex::default(),
        }
    }

    /// Changes when a communicator is freed.
    #[inline]
    pub(crate) fn removed(&self) -> u64 {
        self.removed.load(Ordering::Acquire)
    }

    /// The same as [`member`](Comms::member), without counting who uses it, for a call that is being made with it.
    #[inline]
    pub(crate) fn recent(&self, session: &Session, handle: Handle) -> Result<&Member, Unserved> {
        // Before the table is asked: a removal in between is noticed at the next call.
        let removed = self.removed();
        let (then, known, mut member) = RECENT.get();
        if then != removed || known != handle {
            member = Arc::as_ptr(&self.member(session, handle)?);
            RECENT.set((removed, handle, member));
        }
        // SAFETY: nothing was removed from the table since it was seen there, or else the number had changed; it stays there until the program frees the communicator, which it
        // must not do, in any thread, before its call has returned.
        Ok(unsafe { &*member })
    }

    /// A communicator as the program names it. What MPI would refuse, MPI shall refuse.
    pub(crate) fn member(&self, session: &Session, handle: Handle) -> Result<Arc<Member>, Unserved> {
        let known = self.table.read().unwrap_or_else(PoisonError::into_inner).get(&handle).cloned();
        match known {
            Some(member) => Ok(member),
            None => self.meet(session, handle, (handle == session.mpi.world()).then_some(0)),
        }
    }

    /// A communicator was made from another, in a call that is collective over that one. Communicators of a lineage from the world by
    /// such calls alone are numbered by what all their ranks know: the number of the one that they were made from, and how many
    /// calls have made some from that, in an order that MPI asks to be the same on all its ranks. Those that one call makes have the
    /// same number, but no rank in common, nor have those that are made from them.
    pub(crate) fn created(&self, session: &Session, parent: Handle, new: Handle) -> Result<(), Unserved> {
        let parent = self.table.read().unwrap_or_else(PoisonError::into_inner).get(&parent).cloned();
        let Some((parent, lineage)) = parent.and_then(|parent| Some((parent.clone(), parent.lineage?))) else {
            return Ok(());
        };
        let number = parent.created.fetch_add(1, Ordering::Relaxed);
        if new != session.mpi.constants().handles.comm_null {
            self.meet(session, new, Some(descend(lineage, number)))?;
        }
        Ok(())
    }

    fn meet(&self, session: &Session, handle: Handle, lineage: Option<u64>) -> Result<Arc<Member>, Unserved> {
        let mpi = session.mpi;
        if handle == mpi.constants().handles.comm_null {
            return Err(Reason::Refused.into());
        }
        let ranks = mpi.comm_rank(handle).and_then(|rank| Ok((rank, mpi.comm_size(handle)?)));
        let (rank, size) = ranks.map_err(|_| Reason::Refused)?;
        let inter = mpi.comm_test_inter(handle)?;
        let refusal = match (inter, size) {
            (true, _) => Some(Reason::Intercommunicator),
            (false, 1) => Some(Reason::OneRank),
            _ => None,
        };
        // Any value but null, which might mean that there is none.
        let value = (&raw const *self).cast_mut().cast::<c_void>();
        // SAFETY: handle and key are MPI's.
        mpi.check("MPI_Comm_set_attr", unsafe { (mpi.raw().comm_set_attr)(handle, self.key, value) })?;
        let number = self.met.fetch_add(1, Ordering::Relaxed);
        let member = Arc::new(Member {
            handle,
            rank,
            size,
            number,
            refusal,
            several: !inter && size > 1,
            private: OnceLock::new(),
            attendance: OnceLock::new(),
            ours: OnceLock::new(),
            requests: AtomicBool::new(false),
            lineage: lineage.filter(|_| !inter),
            created: AtomicU64::new(0),
            freed: Mutex::default(),
        });
        self.table.write().unwrap_or_else(PoisonError::into_inner).insert(handle, member.clone());
        if !inter && size == 1 && handle != mpi.comm_self() && session.check.is_some() && counts_communicators(mpi) {
            member.private(mpi);
        }
        Ok(member)
    }

    /// Makes ours for a communicator at once, where ranks may wait for each other. Collective.
    pub(crate) fn prepare(&self, session: &Session, handle: Handle) -> Option<Arc<Member>> {
        let member = self.member(session, handle).ok().filter(|member| member.refusal().is_none())?;
        drop(member.group(session.mpi));
        if session.check.is_some() {
            member.private(session.mpi);
        }
        Some(member)
    }

    /// Whether it is one that the program has called a collective with, and has not freed.
    pub(crate) fn knows(&self, handle: Handle) -> bool {
        self.table.read().unwrap_or_else(PoisonError::into_inner).contains_key(&handle)
    }

    /// Whether requests were made on it: see [`Member::requests`].
    pub(crate) fn has_requests(&self, handle: Handle) -> bool {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        table.get(&handle).is_some_and(|member| member.requests.load(Ordering::Acquire))
    }

    /// Says why a call is passed on, unless it was said of its like on this communicator.
    pub(crate) fn log(
        &self,
        session: &Session,
        comm: Handle,
        collective: Collective,
        bytes: Option<usize>,
        reason: &str,
    ) {
        let Ok(member) = self.member(session, comm) else { return };
        let like = (member.number, collective, bytes, reason.to_owned());
        if member.rank == 0 && self.logged.lock().unwrap_or_else(PoisonError::into_inner).insert(like) {
            allhands::raw::log(collective.name(), bytes, member.size, "the MPI", reason);
        }
    }

    /// The program frees it.
    pub(crate) fn remove(&self, handle: Handle) {
        let member = self.table.write().unwrap_or_else(PoisonError::into_inner).remove(&handle);
        self.removed.fetch_add(1, Ordering::AcqRel);
        // Its end calls MPI, and MPI us: not while the table is locked.
        drop(member);
    }

    /// Ends all of ours, in an order that is the same on every rank.
    pub(crate) fn end(&self) {
        let table = std::mem::take(&mut *self.table.write().unwrap_or_else(PoisonError::into_inner));
        self.removed.fetch_add(1, Ordering::AcqRel);
        let mut members: Vec<Arc<Member>> = table.into_values().collect();
        members.sort_by_key(|member| member.number);
        members.into_iter().for_each(drop);
    }
}

impl Member {
    /// Ours for it. Collective the first time.
    #[inline]
    pub(crate) fn group(&self, mpi: &'static Mpi) -> Result<MutexGuard<'_, Group>, Unserved> {
        let ours = self.ours.get_or_init(|| {
            let joined = session::waiting(|| self.join(mpi));
            joined.map(|comm| Mutex::new(Group::new(comm))).map_err(|why| Reason::NotJoined(why.into()))
        });
        match ours {
            Ok(group) => Ok(group.lock().unwrap_or_else(PoisonError::into_inner)),
            Err(reason) => Err(reason.clone().into()),
        }
    }

    /// Ours for it, if there is one.
    pub(crate) fn made(&self) -> Option<&Mutex<Group>> {
        self.ours.get()?.as_ref().ok()
    }

    /// The same, if no other thread has it.
    pub(crate) fn try_group(&self) -> Option<MutexGuard<'_, Group>> {
        requests::try_lock(self.made()?)
    }

    /// A persistent request is freed: its line goes, now or when the lock is free.
    pub(crate) fn free_line(&self, line: u64) {
        self.freed.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        if let Some(mut group) = self.try_group() {
            self.forget_lines(&mut group.lines);
        }
    }

    pub(crate) fn forget_lines(&self, lines: &mut Lines) {
        let freed = std::mem::take(&mut *self.freed.lock().unwrap_or_else(PoisonError::into_inner));
        freed.into_iter().for_each(|line| lines.forget(line));
    }

    /// Joins on all ranks, or on none of them.
    fn join(&self, mpi: &Mpi) -> Result<RawComm, Cow<'static, str>> {
        // SAFETY: the program's communicator, which it is calling with, and no intercommunicator.
        let joined = unsafe {
            match self.lineage {
                Some(lineage) => RawComm::from_creation(self.handle, lineage),
                None => RawComm::from_mpi(self.handle),
            }
        };
        let joined = match joined {
            // It is so on every rank.
            Ok(comm) if comm.is_derived() => return Ok(comm),
            joined => joined,
        };
        let mut all = c_int::from(joined.is_ok());
        // SAFETY: one integer in place on every rank.
        let agreed = unsafe {
            let (own, constants) = (mpi.in_place().cast_const(), mpi.constants());
            mpi.allreduce(own, (&raw mut all).cast(), 1, constants.types.int, constants.ops.min, self.handle)
        };
        match (joined, agreed) {
            (Err(error), _) => Err(error.to_string().into()),
            (_, Err(error)) => Err(error.to_string().into()),
            (Ok(_), Ok(())) if all == 0 => Err("another rank could not join".into()),
            (Ok(comm), Ok(())) => Ok(comm),
        }
    }

    /// A communicator of the same ranks, for comparing calls; none if it could not be made. Collective the first time.
    pub(crate) fn private(&self, mpi: &'static Mpi) -> Option<&Private> {
        self.private.get_or_init(|| session::waiting(|| Private::of(mpi, self.handle, self.rank))).as_ref()
    }

    /// The same, if it was made.
    pub(crate) fn privately(&self) -> Option<&Private> {
        self.private.get()?.as_ref()
    }

    /// This rank is in a call with it until what is returned is dropped.
    pub(crate) fn attend<'a>(&self, watch: &'a Watch, mpi: &Mpi, text: &str) -> Option<Present<'a>> {
        let attendance = self.attendance.get_or_init(|| watch.attendance(mpi, self.handle, self.size));
        attendance.as_ref().map(|attendance| watch.enter(attendance, text))
    }

    /// Whether it is one group of several ranks.
    pub(crate) fn several(&self) -> bool {
        self.several
    }

    /// Whether there is a reason against ours that needs no try.
    #[inline]
    pub(crate) fn refusal(&self) -> Option<Unserved> {
        match self.ours.get() {
            _ if self.refusal.is_some() => self.refusal.clone().map(Unserved::from),
            Some(Err(reason)) => Some(reason.clone().into()),
            _ => None,
        }
    }
}

impl Group {
    fn new(comm: RawComm) -> Group {
        Group {
            plans: PlanStore::new(MOST_WEIGHT),
            last: None,
            lines: Lines::default(),
            fresh: false,
            turns: Turns::default(),
            comm,
        }
    }

    /// The plan for a call, made at the first one of its shape.
    #[inline]
    pub(crate) fn plan(
        &mut self,
        session: &Session,
        call: &RawCall,
        forced: Option<&str>,
    ) -> Result<(&mut RawPlan, &Arc<Chosen>, &mut Lines), Unserved> {
        self.fresh = false;
        let like = |slot: &Slot| self.plans.key(*slot).is_some_and(|known| known == call);
        let slot = match self.last.filter(like).or_else(|| self.plans.find(call)) {
            Some(slot) => slot,
            None => self.make(session, call, forced)?,
        };
        self.last = Some(slot);
        match self.plans.at(slot) {
            Some(Planned::Ours { plan, chosen }) => Ok((plan, chosen, &mut self.lines)),
            Some(Planned::Theirs(why)) => Err(why.clone().into()),
            None => unreachable!("it was just found, or made"),
        }
    }

    /// Where the plan of the last call is.
    pub(crate) fn place(&self) -> Option<Slot> {
        self.last
    }

    /// The plan at a place, if it is still there.
    #[inline]
    pub(crate) fn placed(&mut self, place: Slot) -> Option<&mut RawPlan> {
        match self.plans.at(place) {
            Some(Planned::Ours { plan, .. }) => Some(plan),
            _ => None,
        }
    }

    /// A plan that its caller keeps, and touches only while it has this group. Collective.
    pub(crate) fn kept(&mut self, session: &Session, call: &RawCall, options: &Options) -> Result<RawPlan, Unserved> {
        Ok(self.comm.plan_while(call, options, &self.lines.meanwhile(session))?)
    }

    /// The communicator, and what is under way on it.
    pub(crate) fn parts(&mut self) -> (&RawComm, &mut Lines) {
        (&self.comm, &mut self.lines)
    }

    /// Every rank's counts, one rank after the other. Collective.
    pub(crate) fn counts_of_all(&mut self, session: &Session, mine: &[usize]) -> Result<Vec<usize>, Unserved> {
        let mine: Vec<u64> = mine.iter().map(|&count| count as u64).collect();
        let mut all = vec![0u64; mine.len() * self.comm.size()];
        // No call of the program's is one of words.
        let (plan, _, lines) = self.plan(session, &counts_told(mine.len()), Some("bruck"))?;
        // SAFETY: as many aligned words as the call says.
        unsafe { plan.start(mine.as_ptr().cast(), all.as_mut_ptr().cast())? };
        requests::finish(session, plan, lines)?;
        Ok(all.into_iter().map(|count| count as usize).collect())
    }

    /// Makes a plan; its place. All ranks do so at the same call, and drop the same plans for it.
    fn make(&mut self, session: &Session, call: &RawCall, forced: Option<&str>) -> Result<Slot, Unserved> {
        let wish = Wish { forced, unshared: false };
        let (plan, why) = wish.plan(|options| self.comm.plan_while(call, options, &self.lines.meanwhile(session)))?;
        let planned = match plan.is_library() {
            true => Planned::Theirs(Reason::Preferred(why.into())),
            false => Planned::Ours { chosen: Arc::new(Chosen { algorithm: plan.algorithm(), why }), plan },
        };
        self.fresh = true;
        let (slot, dropped) = self.plans.insert(call.clone(), planned, call.weight(self.comm.size()));
        drop(dropped);
        Ok(slot)
    }
}

/// The number of a communicator by that of the one that it was made from, and how many calls made some from that before. Both steps can be
/// taken back, so that numbers of one parent differ; those of different parents do with all but no likelihood.
fn descend(lineage: u64, before: u64) -> u64 {
    let mixed = (lineage.rotate_left(32) ^ (before + 1)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 29
}

/// The call by which each of so many ranks tells all others its counts for each of them.
pub(crate) fn counts_told(ranks: usize) -> RawCall {
    let (collective, amount) = (Collective::Allgather, Amount::Each(ranks));
    RawCall { collective, amount, element: Type::U64, operation: None, root: 0 }
}

/// How the user wants a plan.
#[derive(Clone, Copy)]
pub(crate) struct Wish<'a> {
    /// An algorithm, with [`IF_IT_CAN`] at its end where another may stand in for it.
    pub(crate) forced: Option<&'a str>,
    /// See [`Options::unshared`].
    pub(crate) unshared: bool,
}

impl Wish<'_> {
    /// A plan, and why it runs the algorithm that it runs.
    pub(crate) fn plan(
        self,
        mut make: impl FnMut(&Options) -> allhands::Result<RawPlan>,
    ) -> Result<(RawPlan, String), Unserved> {
        // Where the MPI's own is best, the program's call is passed on to it: such a plan is not run.
        let free = Options::new().unshared(self.unshared).only_ours(true);
        let mut plan = |options: &Options| {
            let plan = make(options)?;
            let why = plan.why();
            Ok((plan, why))
        };
        let Some(name) = self.forced else { return Ok(plan(&free)?) };
        let Some(wished) = name.strip_suffix(IF_IT_CAN) else { return Ok(plan(&free.algorithm(name))?) };
        match plan(&free.clone().algorithm(wished)) {
            // Every rank finds the same, before it talks to others.
            Err(Error::Request(fact)) => {
                let (plan, why) = plan(&free)?;
                Ok((plan, format!("{fact}; {why}")))
            }
            planned => Ok(planned?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn communicators_of_different_calls_have_different_numbers() {
        // Three generations of forty each, from the world on.
        let children = |lineage: &u64| (0..40).map(|before| descend(*lineage, before)).collect::<Vec<_>>();
        let (mut generation, mut all) = (vec![0], HashSet::from([0]));
        for _ in 0..3 {
            generation = generation.iter().flat_map(children).collect();
            all.extend(generation.iter().copied());
        }
        assert_eq!(all.len(), 1 + 40 + 40 * 40 + 40 * 40 * 40);
    }
}
