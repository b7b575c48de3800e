//! The program's communicators, and ours for them.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use allhands::kernels::Type;
use allhands::raw::{Amount, RawCall, RawComm, RawPlan};
use allhands::{Error, Options};
use allhands_mpi::Handle;
use allhands_schedule::Collective;

use crate::failure::{REFUSED, Unserved};
use crate::session::Session;
use crate::settings::IF_IT_CAN;

/// A communicator of the program.
pub(crate) struct Member {
    pub(crate) handle: Handle,
    pub(crate) rank: usize,
    pub(crate) size: usize,
    /// The order in which they were met, in which they are ended.
    number: u64,
    /// Ours for it, made when it is needed; or why there is none, the same on every rank.
    ours: OnceLock<Result<Mutex<Group>, Cow<'static, str>>>,
}

/// A communicator of ours with its plans.
pub(crate) struct Group {
    plans: Vec<(RawCall, Planned)>,
    places: HashMap<RawCall, usize>,
    /// The plan of the last call, which the next one often needs again.
    last: usize,
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
    Theirs(String),
}

/// An algorithm, and why.
pub(crate) struct Chosen {
    pub(crate) algorithm: String,
    pub(crate) why: String,
}

/// Calls of more shapes than this make their plans anew.
const MOST_PLANS: usize = 256;

pub(crate) struct Comms {
    /// Of the attribute by which MPI tells that a communicator is freed.
    key: c_int,
    met: AtomicU64,
    table: RwLock<HashMap<Handle, Arc<Member>>>,
}

impl Comms {
    pub(crate) fn new(key: c_int) -> Comms {
        Comms { key, met: AtomicU64::new(0), table: RwLock::default() }
    }

    /// A communicator as the program names it. What MPI would refuse, MPI shall refuse.
    pub(crate) fn member(&self, session: &Session, handle: Handle) -> Result<Arc<Member>, Unserved> {
        let known = self.table.read().unwrap_or_else(PoisonError::into_inner).get(&handle).cloned();
        match known {
            Some(member) => Ok(member),
            None => self.meet(session, handle),
        }
    }

    fn meet(&self, session: &Session, handle: Handle) -> Result<Arc<Member>, Unserved> {
        let mpi = session.mpi;
        if handle == mpi.constants().handles.comm_null {
            return Err(REFUSED);
        }
        let ranks = mpi.comm_rank(handle).and_then(|rank| Ok((rank, mpi.comm_size(handle)?)));
        let (rank, size) = ranks.map_err(|_| REFUSED)?;
        let ours = OnceLock::new();
        if mpi.comm_test_inter(handle)? {
            let _ = ours.set(Err("an intercommunicator".into()));
        } else if size == 1 {
            let _ = ours.set(Err("a communicator of one rank".into()));
        }
        // Any value but null, which might mean that there is none.
        let value = (&raw const *self).cast_mut().cast::<c_void>();
        // SAFETY: handle and key are MPI's.
        mpi.check("MPI_Comm_set_attr", unsafe { (mpi.raw().comm_set_attr)(handle, self.key, value) })?;
        let number = self.met.fetch_add(1, Ordering::Relaxed);
        let member = Arc::new(Member { handle, rank, size, number, ours });
        self.table.write().unwrap_or_else(PoisonError::into_inner).insert(handle, member.clone());
        Ok(member)
    }

    /// The program frees it.
    pub(crate) fn remove(&self, handle: Handle) {
        let member = self.table.write().unwrap_or_else(PoisonError::into_inner).remove(&handle);
        // Its end calls MPI, and MPI us: not while the table is locked.
        drop(member);
    }

    /// Ends all of ours, in an order that is the same on every rank.
    pub(crate) fn end(&self) {
        let table = std::mem::take(&mut *self.table.write().unwrap_or_else(PoisonError::into_inner));
        let mut members: Vec<Arc<Member>> = table.into_values().collect();
        members.sort_by_key(|member| member.number);
        members.into_iter().for_each(drop);
    }
}

impl Member {
    /// Ours for it. Collective the first time.
    pub(crate) fn group(&self) -> Result<MutexGuard<'_, Group>, Unserved> {
        let ours = self.ours.get_or_init(|| {
            // SAFETY: the program's communicator, which it is calling with, and no intercommunicator.
            let comm = unsafe { RawComm::from_mpi(self.handle) };
            comm.map(|comm| Mutex::new(Group::new(comm))).map_err(|error| error.to_string().into())
        });
        match ours {
            Ok(group) => Ok(group.lock().unwrap_or_else(PoisonError::into_inner)),
            Err(reason) => Err(Unserved::Passed(reason.clone())),
        }
    }

    /// Whether there is a reason against ours that needs no try.
    pub(crate) fn refusal(&self) -> Option<Unserved> {
        match self.ours.get() {
            Some(Err(reason)) => Some(Unserved::Passed(reason.clone())),
            _ => None,
        }
    }
}

impl Group {
    fn new(comm: RawComm) -> Group {
        Group { plans: Vec::new(), places: HashMap::new(), last: 0, comm }
    }

    /// The plan for a call, made at the first one of its shape.
    pub(crate) fn plan(
        &mut self,
        call: &RawCall,
        forced: Option<&str>,
    ) -> Result<(&mut RawPlan, &Arc<Chosen>), Unserved> {
        if self.plans.get(self.last).is_none_or(|(known, _)| known != call) {
            self.last = match self.places.get(call) {
                Some(place) => *place,
                None => self.make(call, forced)?,
            };
        }
        match &mut self.plans[self.last].1 {
            Planned::Ours { plan, chosen } => Ok((plan, chosen)),
            Planned::Theirs(why) => Err(Unserved::Passed(Cow::Owned(why.clone()))),
        }
    }

    /// Every rank's counts, one rank after the other. Collective.
    pub(crate) fn counts_of_all(&mut self, mine: &[usize]) -> Result<Vec<usize>, Unserved> {
        let mine: Vec<u64> = mine.iter().map(|&count| count as u64).collect();
        let mut all = vec![0u64; mine.len() * self.comm.size()];
        let call = RawCall {
            collective: Collective::Allgather,
            amount: Amount::Each(mine.len()),
            element: Type::U64,
            operation: None,
            root: 0,
        };
        // No call of the program's is one of words.
        let (plan, _) = self.plan(&call, Some("bruck"))?;
        // SAFETY: as many aligned words as the call says.
        unsafe { plan.run(mine.as_ptr().cast(), all.as_mut_ptr().cast())? };
        Ok(all.into_iter().map(|count| count as usize).collect())
    }

    /// A plan, and why it runs the algorithm that it runs.
    fn planned(&self, call: &RawCall, forced: Option<&str>) -> Result<(RawPlan, String), Unserved> {
        let plan = |options: &Options| {
            let plan = self.comm.plan(call, options)?;
            let why = plan.why();
            Ok((plan, why))
        };
        let Some(name) = forced else { return Ok(plan(&Options::new())?) };
        let Some(wished) = name.strip_suffix(IF_IT_CAN) else { return Ok(plan(&Options::new().algorithm(name))?) };
        match plan(&Options::new().algorithm(wished)) {
            // Every rank finds the same, before it talks to others.
            Err(Error::Request(fact)) => {
                let (plan, why) = plan(&Options::new())?;
                Ok((plan, format!("{fact}; {why}")))
            }
            planned => Ok(planned?),
        }
    }

    /// Makes a plan; its place.
    fn make(&mut self, call: &RawCall, forced: Option<&str>) -> Result<usize, Unserved> {
        let (plan, why) = self.planned(call, forced)?;
        let algorithm = plan.algorithm();
        let planned = match algorithm.as_str() {
            "mpi" => Planned::Theirs(why),
            _ => Planned::Ours { chosen: Arc::new(Chosen { algorithm, why }), plan },
        };
        // Every rank makes the same calls, so all of them start afresh at the same one.
        if self.plans.len() >= MOST_PLANS {
            self.plans.clear();
            self.places.clear();
        }
        self.places.insert(call.clone(), self.plans.len());
        self.plans.push((call.clone(), planned));
        Ok(self.plans.len() - 1)
    }
}
