//! What is common to all communicators of one rank in a world: the world itself, and the runs it has under way.
//!
//! Everything here that is not atomic, everything of the world and every plan's state is touched inside the world's
//! [gate](crate::gate) only: cells and borrow flags are then never touched by two threads at once. What threads hand around outside of it
//! (a communicator, the state itself) has counts that are atomic.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use allhands_schedule::Topology;

use crate::choose::Evidence;
use crate::company::Company;
use crate::error::{Error, Result};
use crate::gate::Gate;
use crate::job::Obstacle;
use crate::learn::{Lessons, Setting};
use crate::plan::PlanState;
use crate::progress::Helper;
use crate::store::PlanStore;
use crate::world::World;

pub(crate) struct RankState {
    /// The thread that moves runs on while the rank computes, if there is one. First, because it ends before the rest goes.
    helper: RefCell<Option<Helper>>,
    pub(crate) world: Arc<World>,
    /// Plans with a run under way: they move on whenever this rank waits.
    under_way: RefCell<Vec<Rc<RefCell<PlanState>>>>,
    how_many: Cell<usize>,
    /// Ranks of the world that communicators were derived for, by their numbers in it.
    companies: RefCell<PlanStore<Arc<[usize]>, Arc<Company>>>,
    /// What communicators are derived from, in an MPI job.
    pub(crate) origin: Option<Origin>,
}

/// What an MPI job's ranks agreed on when they joined.
pub(crate) struct Origin {
    /// Tells the world from others that this process knows; the same on every rank.
    pub(crate) id: u64,
    pub(crate) topology: Topology,
    pub(crate) evidence: Arc<Evidence>,
    /// When it was joined.
    pub(crate) began: Instant,
    pub(crate) learning: Setting,
    /// Whether all sums are to show no order.
    pub(crate) reproducible: bool,
    /// What this rank could not do with the others of its machine.
    pub(crate) obstacle: Option<Obstacle>,
    /// How many communicators this rank, as their first one, has numbered.
    pub(crate) numbered: AtomicU64,
    /// What one-off calls have taught on communicators that are gone.
    pub(crate) lessons: Mutex<Lessons>,
}

impl Origin {
    /// Keeps what was learned for the next job.
    fn keep_lessons(&self, transport: &str) {
        let lessons = self.lessons.lock().unwrap_or_else(PoisonError::into_inner);
        if !lessons.all.is_empty() {
            lessons.keep(&self.learning, transport, self.evidence.fitted_machine().as_ref());
        }
    }
}

/// So many companies are remembered, whoever uses them.
const MOST_COMPANIES: u64 = 64;

// SAFETY: see the beginning of this file.
unsafe impl Send for RankState {}
// SAFETY: as above.
unsafe impl Sync for RankState {}

/// The worlds of MPI jobs that this process is in, from their making until MPI ends: all ranks of one know it for as long, whatever
/// else they have dropped, so that they find the same when they look for one that has all members of a communicator.
static KNOWN: Mutex<Vec<Arc<RankState>>> = Mutex::new(Vec::new());
/// How many there are.
static WORLDS: AtomicUsize = AtomicUsize::new(0);

/// This thread is inside the gate of a rank's state. It stays on its thread.
pub(crate) struct Entered<'a>(Option<&'a Gate>, PhantomData<*const ()>);

impl Drop for Entered<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(gate) = self.0 {
            gate.leave();
        }
    }
}

impl RankState {
    pub(crate) fn new(world: World, origin: Option<Origin>) -> Arc<RankState> {
        Arc::new(RankState {
            helper: RefCell::default(),
            world: Arc::new(world),
            under_way: RefCell::default(),
            how_many: Cell::new(0),
            companies: RefCell::new(PlanStore::new(MOST_COMPANIES)),
            origin,
        })
    }

    /// Whether the job asks for [reproducible](crate::Options::reproducible) sums everywhere.
    pub(crate) fn sums_reproducibly(&self) -> bool {
        self.origin.as_ref().is_some_and(|origin| origin.reproducible)
    }

    /// Some ranks of an MPI job's world, in this order, as this one of them sees them.
    pub(crate) fn company(&self, origin: &Origin, members: &[usize], me: usize) -> Result<Arc<Company>> {
        let _inside = self.enter();
        if let Some(known) = self.companies.borrow_mut().get(members) {
            return Ok(known.clone());
        }
        let everybody = members.len() == origin.topology.ranks() && members.iter().copied().eq(0..members.len());
        let topology = if everybody { origin.topology.clone() } else { origin.topology.of_members(members)? };
        let members: Arc<[usize]> = members.into();
        let company = Arc::new(Company::new(&self.world, members.clone(), me, topology));
        let (_, gone) = self.companies.borrow_mut().insert(members, company.clone(), 1);
        drop(gone);
        Ok(company)
    }

    /// Communicators of these ranks are derived from this one from now on.
    pub(crate) fn make_known(self: &Arc<RankState>) {
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        known.push(self.clone());
        // All ranks of a communicator take the same one of several that have all of its members.
        known.sort_by_key(|rank| rank.origin.as_ref().map_or(0, |origin| origin.id));
        WORLDS.store(known.len(), Ordering::Relaxed);
    }

    /// What this process is in, in an order that is the same on every rank.
    pub(crate) fn known() -> Vec<Arc<RankState>> {
        KNOWN.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Nothing is derived from this one any more, or from any if none is named.
    pub(crate) fn forget(which: Option<&RankState>) {
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let (gone, kept) = std::mem::take(&mut *known)
            .into_iter()
            .partition::<Vec<_>, _>(|rank| which.is_none_or(|which| std::ptr::eq(&raw const **rank, which)));
        *known = kept;
        WORLDS.store(known.len(), Ordering::Relaxed);
        drop(known);
        for rank in gone.iter().filter(|rank| rank.world.me() == 0) {
            if let (Some(origin), Some(job)) = (&rank.origin, &rank.world.job) {
                origin.keep_lessons(&crate::job::version(job.mpi()));
            }
        }
        // The end of a world calls MPI, and waits for its helper.
        drop(gone);
    }

    /// From now on a thread moves runs on while this rank computes.
    pub(crate) fn hire(self: &Arc<RankState>) {
        assert!(self.world.gate.is_shared(), "a helper is a second thread");
        let _inside = self.enter();
        // SAFETY: the state stays where it is, and drops its helper before anything else.
        *self.helper.borrow_mut() = Some(unsafe { Helper::new(Arc::as_ptr(self)) });
    }

    /// To be held while anything of this rank is touched.
    #[inline]
    pub(crate) fn enter(&self) -> Entered<'_> {
        let gate = Some(&self.world.gate).filter(|gate| gate.is_shared());
        gate.inspect(|gate| gate.enter());
        Entered(gate, PhantomData)
    }

    /// The same, unless another thread is there.
    pub(crate) fn try_enter(&self) -> Option<Entered<'_>> {
        let gate = Some(&self.world.gate).filter(|gate| gate.is_shared());
        gate.is_none_or(Gate::try_enter).then(|| Entered(gate, PhantomData))
    }

    /// As the helper: one round.
    pub(crate) fn help(&self) {
        self.world.gate.enter();
        self.progress_all();
        self.world.gate.leave();
    }

    /// Moves every run that is under way on. Errors wait for the owner of the run.
    #[inline]
    pub(crate) fn progress(&self) {
        if self.how_many.get() > 0 {
            self.progress_all();
        }
        if self.origin.is_some() && WORLDS.load(Ordering::Relaxed) > 1 {
            self.progress_others();
        }
    }

    /// The others would wait for ever for a rank that waits in another world.
    #[cold]
    fn progress_others(&self) {
        for rank in RankState::known() {
            if !std::ptr::eq(&raw const *rank, self)
                && let Some(_inside) = rank.try_enter()
            {
                rank.progress_all();
            }
        }
    }

    /// Moves those of this world on.
    fn progress_all(&self) {
        if let Ok(under_way) = self.under_way.try_borrow() {
            for core in under_way.iter() {
                if let Ok(mut core) = core.try_borrow_mut() {
                    let _ = core.progress();
                }
            }
        }
    }

    /// Whether every run under way in a scope is through.
    pub(crate) fn quiet(&self, scope: u64) -> bool {
        let through =
            |core: &Rc<RefCell<PlanState>>| core.try_borrow().is_ok_and(|core| core.scope() != scope || core.ended());
        self.under_way.borrow().iter().all(through)
    }

    pub(crate) fn enlist(&self, core: &Rc<RefCell<PlanState>>) {
        self.under_way.borrow_mut().push(core.clone());
        self.counted();
    }

    pub(crate) fn retire(&self, core: &Rc<RefCell<PlanState>>) {
        self.under_way.borrow_mut().retain(|other| !Rc::ptr_eq(other, core));
        self.counted();
    }

    fn counted(&self) {
        let runs = self.under_way.borrow().len();
        self.how_many.set(runs);
        if let Some(helper) = &*self.helper.borrow() {
            helper.runs(runs);
        }
    }

    /// A run that ends with an error cannot be completed by the others of its scope either.
    pub(crate) fn give_up(&self, scope: u64, error: Error) -> Error {
        self.world.fail(scope, &error.to_string());
        error
    }
}

#[cfg(test)]
mod tests {
    use allhands_model::Machine;
    use allhands_schedule::Collective;

    use super::*;
    use crate::learn::Lesson;
    use crate::server::Server;
    use crate::tuning::{Time, Tuning};

    #[test]
    fn what_one_off_calls_have_taught_is_kept_for_the_next_job() {
        let file = std::env::temp_dir().join(format!("allhands-one-offs-{}.toml", std::process::id()));
        let topology = Topology::regular(2, 4).unwrap();
        let origin = Origin {
            id: 1,
            topology: topology.clone(),
            evidence: Arc::new(Evidence::of_machine(Machine::shipped("generic").unwrap())),
            began: Instant::now(),
            learning: Setting::On { file: Some(file.clone()) },
            reproducible: false,
            obstacle: None,
            numbered: AtomicU64::new(0),
            lessons: Mutex::default(),
        };
        origin.keep_lessons("MPICH 5");
        assert!(!file.exists(), "nothing was learned");
        let time = |algorithm: &str, median_us| Time {
            algorithm: algorithm.into(),
            median_us,
            p10_us: median_us,
            p90_us: median_us,
            samples: 16,
        };
        let lesson = Lesson {
            collective: Collective::Allreduce,
            bytes: Some(64),
            usual_bytes: None,
            calls: 1000,
            server: Server::Library,
            tried: vec![time("mpi", 2.0), time("nap", 3.0)],
            settled: true,
            gained: 0.1,
            spent: 0.01,
        };
        origin.lessons.lock().unwrap().add(&topology, (vec![lesson], 0.0));
        origin.keep_lessons("MPICH 5");
        let kept: Tuning = std::fs::read_to_string(&file).unwrap().parse().unwrap();
        let cell = &kept.cells[0];
        assert_eq!((kept.transport.as_str(), kept.cells.len()), ("MPICH 5", 1));
        assert_eq!((cell.nodes, cell.ranks_per_node, cell.bytes, cell.times.len()), (2, 4, 64, 2));
        for ending in ["", ".lock"] {
            std::fs::remove_file(format!("{}{ending}", file.display())).unwrap();
        }
    }
}
