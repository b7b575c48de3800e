//! The communicators that plans were made on.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use allhands::raw::{RawCall, RawComm, RawPlan};
use allhands::{Error, Options, Server};
use allhands_call::handles::Handles;
use allhands_call::locks::{lock, try_lock};
use allhands_call::{Communicator, Neighborhood, Task, Unserved, counts, neighborhood};
use allhands_mpi::{Handle, Mpi};

use super::error::{Result, allhands_code::*, fault};

/// A communicator of the program, with ours for it.
pub(crate) struct Member {
    pub(crate) comm: Communicator,
    /// Everything that was made from it is touched under this lock.
    ours: Mutex<Ours>,
}

/// A communicator of ours.
pub(crate) struct Ours(RawComm);

// SAFETY: everything that was made from the communicator is touched under its lock only, and so moves from thread to thread together.
unsafe impl Send for Ours {}

static TABLE: RwLock<Option<Handles<Arc<Member>>>> = RwLock::new(None);
static MET: AtomicU64 = AtomicU64::new(0);

/// Ours for a communicator of the program. Collective the first time.
pub(crate) fn member(mpi: &'static Mpi, handle: Handle) -> Result<Arc<Member>> {
    let known =
        TABLE.read().unwrap_or_else(PoisonError::into_inner).as_ref().and_then(|table| table.get(&handle).cloned());
    if let Some(member) = known {
        return Ok(member);
    }
    let comm = Communicator::of(mpi, handle, MET.fetch_add(1, Ordering::Relaxed))?;
    if comm.between_groups {
        return fault(
            ALLHANDS_ERR_COMM,
            "the communicator is between two groups; merge them with MPI_Intercomm_merge, or call MPI's function",
        );
    }
    let ours = match comm.join(mpi) {
        Ok(ours) => Mutex::new(Ours(ours)),
        Err(why) => return fault(ALLHANDS_ERR_UNSUPPORTED, format!("no plan serves {why}; call MPI's function")),
    };
    let member = Arc::new(Member { comm, ours });
    watch(mpi, handle)?;
    TABLE.write().unwrap_or_else(PoisonError::into_inner).get_or_insert_default().insert(handle, member.clone());
    Ok(member)
}

/// Lets MPI tell when the communicator is freed.
fn watch(mpi: &'static Mpi, handle: Handle) -> Result<()> {
    static KEY: OnceLock<allhands_mpi::Result<c_int>> = OnceLock::new();
    // SAFETY: the function does what MPI asks of it, at any time.
    let key = KEY.get_or_init(|| unsafe { mpi.comm_keyval(gone) }).clone()?;
    // Any value but null, which might mean that there is none.
    let value = (&raw const TABLE).cast_mut().cast::<c_void>();
    // SAFETY: handle and key are MPI's.
    Ok(mpi.check("MPI_Comm_set_attr", unsafe { (mpi.raw().comm_set_attr)(handle, key, value) })?)
}

/// A communicator of the program is freed. Plans that are left keep ours.
unsafe extern "C" fn gone(comm: Handle, _: c_int, _: *mut c_void, _: *mut c_void) -> c_int {
    let _ = std::panic::catch_unwind(|| {
        let Ok(mpi) = allhands_mpi::load() else { return };
        let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
        let member = table.as_mut().and_then(|table| table.remove(&mpi.abi().handle(comm)));
        drop(table);
        // Its end calls MPI, and MPI us: not while the table is locked.
        drop(member);
    });
    0
}

/// MPI is being finalised: ours end, in an order that is the same on every rank.
pub(crate) fn forget() {
    let table = TABLE.write().unwrap_or_else(PoisonError::into_inner).take();
    let mut members: Vec<Arc<Member>> = table.into_iter().flat_map(Handles::into_values).collect();
    members.sort_by_key(|member| member.comm.number);
    members.into_iter().for_each(drop);
}

impl Member {
    /// Waits for a thread that has it.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Ours> {
        lock(&self.ours)
    }

    /// None if another thread has it.
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, Ours>> {
        try_lock(&self.ours)
    }
}

impl Ours {
    /// A plan, which is touched only by who has this. Collective.
    pub(crate) fn plan(&self, call: &RawCall, options: &Options) -> Result<RawPlan> {
        Ok(self.0.plan(call, options)?)
    }

    /// What is settled for collectives among neighbours. Collective.
    pub(crate) fn neighborhood(&self, mpi: &Mpi, comm: &Communicator) -> std::result::Result<Neighborhood, Unserved> {
        Neighborhood::learn(mpi, comm, &self.0, false, true)
    }

    /// A plan for a call among neighbours, by the algorithm that the program names or by what is settled. Collective.
    pub(crate) fn plan_among_neighbors(
        &self,
        call: &RawCall,
        hood: &Neighborhood,
        algorithm: Option<&str>,
    ) -> Result<RawPlan> {
        let named = algorithm.map(|name| Server::parse(call.collective, name)).transpose().map_err(Error::from)?;
        let choice = match named {
            None => hood.choice(call.collective).0.clone(),
            Some(Server::Schedule(choice)) => choice,
            Some(Server::Written(_)) => {
                return fault(ALLHANDS_ERR_UNSUPPORTED, "no file serves plans among neighbours; name an algorithm");
            }
            Some(Server::Library) => {
                return fault(
                    ALLHANDS_ERR_UNSUPPORTED,
                    "no plan is the MPI's own among neighbours; call MPI's function",
                );
            }
        };
        Ok(neighborhood::plan(&self.0, call, &choice, |told| Ok(told.wait()?))?)
    }

    /// Lets the ranks of a call of which each knows its own counts tell them to each other. Collective.
    pub(crate) fn agree_on_counts(&self, task: &mut Task, me: usize) -> Result<()> {
        let Some(mine) = task.counts().map(counts::as_words) else { return Ok(()) };
        let mut all = vec![0u64; mine.len() * self.0.size()];
        let mut plan = self.plan(&counts::told(mine.len()), &Options::new().algorithm(counts::ALGORITHM))?;
        // SAFETY: as many aligned words as the call says.
        unsafe { plan.run(mine.as_ptr().cast(), all.as_mut_ptr().cast())? };
        task.call = task.agreed(me, counts::from_words(&all))?;
        Ok(())
    }
}
