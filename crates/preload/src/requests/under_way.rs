//! All runs and persistent requests of this process.

use std::collections::HashMap;
use std::ffi::c_int;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use allhands::raw::{Pauses, RawPlan};
use allhands::{Error, Server};
use allhands_call::{Communicator, Neighborhood, Reason, Staged, Task, Unserved, counts};
use allhands_mpi::{Handle, Mpi};
use allhands_schedule::Collective;

use super::deferred_free::Lasting;
use super::plan_queues::PlanQueues;
use super::proxies::Proxy;
use super::run::{Endings, Failure, Origin, Run, under_way};
use crate::groups::{self, Found, PlanPreference, Way};
use crate::job::{Forced, Job, Moved, Mover};
use crate::observe::Observers;
use allhands_call::locks::{Held, OneCall, lock, try_lock};

pub(crate) type Member = groups::Member<PlanQueues>;
pub(crate) type Group = groups::Group<PlanQueues>;

/// How many persistent requests there are.
static PREPARED: AtomicUsize = AtomicUsize::new(0);

/// Whether a run is under way.
#[inline]
pub(crate) fn any() -> bool {
    under_way() > 0
}

/// Whether there is a persistent request.
pub(crate) fn any_prepared() -> bool {
    PREPARED.load(Ordering::Acquire) > 0
}

pub(crate) struct Requests {
    endings: Endings,
    mover: Option<Mover>,
    /// What moves all runs on, for the mover to call.
    moving: fn() -> Option<Moved>,
    /// Communicators with runs under way. They stay, though the program may have freed its own.
    busy: Mutex<Vec<Arc<Member>>>,
    prepared: Mutex<HashMap<Handle, Prepared>>,
    /// Lines of persistent requests that were freed while another thread had their communicator's lock, by its number.
    freed: Mutex<Vec<(u64, u64)>>,
}

/// A persistent collective.
#[derive(Clone)]
struct Prepared {
    member: Arc<Member>,
    line: u64,
    proxy: Proxy,
    origin: Origin,
}

impl Requests {
    pub(crate) fn new(job: &Job, observers: Arc<Observers>, moving: fn() -> Option<Moved>) -> Requests {
        Requests {
            endings: Endings::new(job.mpi, observers),
            mover: job.mover,
            moving,
            busy: Mutex::default(),
            prepared: Mutex::default(),
            freed: Mutex::default(),
        }
    }

    /// Moves every run on that no other thread is moving; how many are through.
    pub(crate) fn progress(&self) -> c_int {
        let before = under_way();
        if before == 0 {
            return 0;
        }
        self.endings.observers().look();
        let Some(mut busy) = try_lock(&self.busy) else { return 0 };
        let mut idle = Vec::new();
        busy.retain(|member| {
            let Some(mut group) = member.try_group() else { return true };
            let (comm, queues) = group.parts();
            // The MPI may call from inside its locks, so nothing here waits for another thread.
            let Some(alone) = comm.alone() else { return true };
            queues.step(&self.endings);
            let stays = queues.busy();
            drop(alone);
            drop(group);
            if !stays {
                idle.push(member.clone());
            }
            stays
        });
        drop(busy);
        // The last to hold a communicator ends it, which calls MPI.
        drop(idle);
        before.saturating_sub(under_way()) as c_int
    }

    /// What is to be done on a communicator, and everywhere else, while others are waited for.
    pub(crate) fn on_idle(&self, queues: &mut PlanQueues) {
        if any() {
            queues.step(&self.endings);
            self.progress();
        }
    }

    /// Whether this job's requests are ours: something moves them on.
    pub(crate) fn moved(&self) -> Result<(), Unserved> {
        self.mover.map(|_| ()).ok_or_else(|| Reason::NobodyMoves.into())
    }

    /// Begins a collective; its request. Waits for nobody.
    pub(crate) fn begin(
        &self,
        job: &Job,
        member: &Arc<Member>,
        task: Task,
        origin: Origin,
    ) -> Result<Handle, Unserved> {
        let Some(group) = member.made() else {
            return Err(Reason::NoCommunicator.into());
        };
        let collective = task.call.collective;
        let preference = preference(job, collective, true, task.hood.as_deref())?;
        let mut group = group.lock();
        let (comm, queues) = group.parts();
        let line = match () {
            () if task.knows_its_own() => queues.of_exchanges(comm, &task, preference)?,
            () if task.moves() => queues.of_shape(comm, &task.call, preference, |queues| self.on_idle(queues))?,
            () => queues.of_nothing(),
        };
        let asked = Rc::new(Lasting::new(&job.types, task)?);
        // SAFETY: the program's memory is as it says.
        let staged = unsafe { asked.task.stage(job.mpi)? };
        let proxy = lock(&self.endings.proxies).make(job.mpi, false)?;
        queues.push(line, Run::new(asked, staged, proxy, origin));
        drop(group);
        self.enlist(member);
        self.progress();
        Ok(proxy.request)
    }

    /// Prepares a collective; its request. Ranks may wait for each other here.
    pub(crate) fn prepare(
        &self,
        job: &Job,
        member: Arc<Member>,
        mut task: Task,
        origin: Origin,
    ) -> Result<Handle, Unserved> {
        let hood = task.hood.clone();
        let preference = preference(job, task.call.collective, false, hood.as_deref())?;
        let mut group = member.group(job.mpi)?;
        if hood.is_none() {
            self.agree_on_counts(&mut task, &member.comm, &mut group)?;
        }
        let asked = Lasting::new(&job.types, task)?;
        let (comm, queues) = group.parts();
        self.forget_freed(&member, queues);
        let line = match hood {
            Some(_) => queues.of_neighbors(comm, asked, preference, |plan, queues| self.finish(plan, queues))?,
            None => {
                let preference = asked.task.moves().then_some(preference);
                queues.of_request(comm, asked, preference, |queues| self.on_idle(queues))?
            }
        };
        let proxy = lock(&self.endings.proxies).make(job.mpi, true)?;
        drop(group);
        lock(&self.prepared).insert(proxy.request, Prepared { member, line, proxy, origin });
        PREPARED.fetch_add(1, Ordering::AcqRel);
        Ok(proxy.request)
    }

    /// Starts the runs of those requests among these, which MPI has started, that are ours.
    pub(crate) fn start(&self, requests: &[Handle]) {
        for request in requests {
            let prepared = lock(&self.prepared).get(request).cloned();
            if let Some(prepared) = prepared {
                self.start_prepared(&prepared);
            }
        }
        self.progress();
    }

    fn start_prepared(&self, Prepared { member, line, proxy, origin }: &Prepared) {
        let Some(mut group) = member.made().map(OneCall::lock) else { return };
        let (_, queues) = group.parts();
        let Some(asked) = queues.asked(*line) else { return };
        // SAFETY: the program's memory is as it says.
        match unsafe { asked.task.stage(self.endings.mpi()) } {
            Ok(staged) => queues.push(*line, Run::new(asked, staged, *proxy, *origin)),
            // MPI has started its request, which ends at once.
            Err(unserved) => {
                let run = Run::new(asked, Staged::default(), *proxy, *origin);
                self.endings.end(run, Err(unserved), None);
            }
        }
        drop(group);
        self.enlist(member);
    }

    /// A communicator has a run under way, which moves from now on.
    fn enlist(&self, member: &Arc<Member>) {
        let mut busy = lock(&self.busy);
        if !busy.iter().any(|known| Arc::ptr_eq(known, member)) {
            busy.push(member.clone());
        }
        drop(busy);
        if let Some(mover) = self.mover {
            mover.engage(self.moving);
        }
    }

    /// Whether a request is one of ours whose run is under way, or that is persistent.
    pub(crate) fn has(&self, request: Handle) -> bool {
        let begun = |member: &Arc<Member>| member.try_group().is_some_and(|mut group| group.parts().1.has(request));
        self.has_prepared(request) || lock(&self.busy).iter().any(begun)
    }

    /// Whether a request is a persistent one of ours.
    pub(crate) fn has_prepared(&self, request: Handle) -> bool {
        lock(&self.prepared).contains_key(&request)
    }

    /// How the run of a request failed, if it did; told once.
    pub(crate) fn failure(&self, request: Handle) -> Option<Failure> {
        self.endings.failure(request)
    }

    /// A persistent request is freed: its line goes, now or when the lock is free.
    pub(crate) fn free(&self, request: Handle) {
        let Some(Prepared { member, line, proxy, .. }) = lock(&self.prepared).remove(&request) else { return };
        PREPARED.fetch_sub(1, Ordering::AcqRel);
        lock(&self.freed).push((member.comm.number, line));
        if let Some(mut group) = member.try_group() {
            self.forget_freed(&member, group.parts().1);
        }
        lock(&self.endings.proxies).free(proxy);
    }

    fn forget_freed(&self, member: &Member, queues: &mut PlanQueues) {
        lock(&self.freed).retain(|(number, line)| {
            let mine = *number == member.comm.number;
            if mine {
                queues.forget(*line);
            }
            !mine
        });
    }

    /// MPI is about to be finalised: persistent requests that the program has not freed go.
    pub(crate) fn end(&self, mpi: &Mpi) {
        if let Some(mover) = self.mover {
            mover.dismiss();
        }
        PREPARED.store(0, Ordering::Release);
        let prepared = std::mem::take(&mut *lock(&self.prepared));
        let busy = std::mem::take(&mut *lock(&self.busy));
        drop((prepared, busy));
        lock(&self.endings.proxies).end(mpi);
    }

    /// Runs a blocking collective's plan from beginning to end; what is under way moves on.
    ///
    /// # Safety
    /// As for [`Task::run`].
    #[inline]
    pub(crate) unsafe fn run(
        &self,
        mpi: &Mpi,
        task: &Task,
        plan: &mut RawPlan,
        queues: &mut PlanQueues,
    ) -> Result<(), Unserved> {
        // SAFETY: the caller's promise; the memory stays until the run is through.
        unsafe {
            if !any() {
                return task.run(mpi, plan);
            }
            let staged = task.stage(mpi)?;
            task.start(&staged, plan)?;
            self.finish(plan, queues)?;
            task.unstage(mpi, &staged)
        }
    }

    /// How a plan is found for a blocking call, while what is under way moves on.
    #[inline]
    pub(crate) fn way<'a>(
        &'a self,
        forced: Option<&'a Forced>,
        learns: bool,
    ) -> Way<'a, impl Fn(&mut PlanQueues), impl Fn(&mut RawPlan, &mut PlanQueues) -> Result<(), Unserved>> {
        Way {
            forced,
            learns,
            on_idle: |queues: &mut PlanQueues| self.on_idle(queues),
            finish: |plan: &mut RawPlan, queues: &mut PlanQueues| self.finish(plan, queues),
        }
    }

    /// Waits for a plan's run; what is under way moves on.
    pub(crate) fn finish(&self, plan: &mut RawPlan, queues: &mut PlanQueues) -> Result<(), Unserved> {
        if !any() {
            return Ok(plan.wait()?);
        }
        let mut pauses = Pauses::default();
        while !plan.test()? {
            self.on_idle(queues);
            // Others may first wait for a message of the program's, or for a request of the MPI's own.
            plan.drive_mpi();
            pauses.pause();
        }
        Ok(())
    }

    /// Lets the ranks of a call of which each knows its own counts tell each other as much as its algorithm needs. Collective.
    pub(crate) fn tell_counts(
        &self,
        job: &Job,
        task: &mut Task,
        comm: &Communicator,
        group: &mut Held<'_, Group>,
    ) -> Result<(), Unserved> {
        if !task.knows_its_own() {
            return Ok(());
        }
        if job.settings.tells_counts(task.call.collective) {
            return self.agree_on_counts(task, comm, group);
        }
        let preference = preference(job, task.call.collective, true, task.hood.as_deref())?;
        let way = self.way(preference.forced, !job.settings.compare);
        if let Some(call) = group.tell_own_counts(&task.call, preference, way)? {
            task.call = call;
        }
        Ok(())
    }

    /// Lets the ranks of a call of which each knows its own counts tell them to all others. Collective.
    fn agree_on_counts(
        &self,
        task: &mut Task,
        comm: &Communicator,
        group: &mut Held<'_, Group>,
    ) -> Result<(), Unserved> {
        let Some(mine) = task.counts().map(counts::as_words) else { return Ok(()) };
        let mut all = vec![0u64; mine.len() * comm.size];
        let told = counts::told(mine.len());
        let server = Server::parse(told.collective, counts::ALGORITHM).map_err(Error::from)?;
        let by = Forced { server, if_it_can: false };
        let way = self.way(Some(&by), false);
        let Found { plan, queue: queues, .. } = group.plan(&told, way)?;
        // SAFETY: as many aligned words as the call says.
        unsafe { plan.start(mine.as_ptr().cast(), all.as_mut_ptr().cast())? };
        self.finish(plan, queues)?;
        task.call = task.agreed(comm.rank, counts::from_words(&all))?;
        Ok(())
    }
}

/// `unshared`: whether the plan is to be made without waiting for others.
pub(crate) fn preference<'a>(
    job: &'a Job,
    collective: Collective,
    unshared: bool,
    along: Option<&'a Neighborhood>,
) -> Result<PlanPreference<'a>, Unserved> {
    let forced = job.settings.forced(collective);
    let choice = forced.and_then(|forced| forced.server.choice());
    if unshared && choice.is_some_and(|choice| choice.parameters.get("local") == Some("shared")) {
        return Err(Reason::MadeTogether.into());
    }
    Ok(PlanPreference { forced, unshared, along, learned: None })
}
