//! A run that was begun by the program, and its end.

use std::borrow::Cow;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use allhands::Error;
use allhands::raw::RawPlan;
use allhands_call::{Communicator, Staged, Unserved};
use allhands_mpi::{Handle, Mpi};

use super::deferred_free::Lasting;
use super::proxies::{Proxies, Proxy};
use crate::groups::Chosen;
use crate::observe::{By, Observers, Served, started};
use allhands_call::locks::lock;

/// How many runs are under way.
static UNDER_WAY: AtomicUsize = AtomicUsize::new(0);
/// How many runs have failed without the program knowing it.
static FAILED: AtomicUsize = AtomicUsize::new(0);

/// How many runs are under way.
#[inline]
pub(crate) fn under_way() -> usize {
    UNDER_WAY.load(Ordering::Acquire)
}

/// Whether a run has failed, and the program does not know it yet.
pub(crate) fn any_failed() -> bool {
    FAILED.load(Ordering::Acquire) > 0
}

/// The call that a run came with.
#[derive(Clone, Copy)]
pub(crate) struct Origin {
    /// MPI's name for it, and that of the report.
    pub(crate) function: &'static str,
    pub(crate) name: &'static str,
    pub(crate) comm: Handle,
    pub(crate) on: Communicator,
    /// Whether somebody wants to know of it.
    pub(crate) told: bool,
}

/// A run that was begun by the program.
pub(super) struct Run {
    pub(super) asked: Rc<Lasting>,
    staged: Staged,
    proxy: Proxy,
    origin: Origin,
    /// Whether its plan runs it.
    started: bool,
}

/// How a run ended that could not be completed.
pub(crate) struct Failure {
    pub(crate) function: &'static str,
    pub(crate) comm: Handle,
    pub(crate) error: Error,
}

impl Run {
    /// It counts as under way from now on, until it [ends](Endings::end).
    pub(super) fn new(asked: Rc<Lasting>, staged: Staged, proxy: Proxy, origin: Origin) -> Run {
        UNDER_WAY.fetch_add(1, Ordering::AcqRel);
        Run { asked, staged, proxy, origin, started: false }
    }

    /// The request that stands for it.
    pub(super) fn request(&self) -> Handle {
        self.proxy.request
    }

    /// Moves it on by a plan; whether it is through.
    pub(super) fn step(&mut self, mpi: &Mpi, plan: &mut RawPlan) -> Result<bool, Unserved> {
        let task = &self.asked.task;
        // SAFETY: the program keeps its memory as it said until its request is complete, and the run keeps what is staged.
        unsafe {
            if !std::mem::replace(&mut self.started, true) {
                task.start(&self.staged, plan)?;
            }
            if !plan.test()? {
                return Ok(false);
            }
            task.unstage(mpi, &self.staged)?;
        }
        Ok(true)
    }
}

/// What the end of a run takes.
pub(crate) struct Endings {
    mpi: &'static Mpi,
    observers: Arc<Observers>,
    pub(super) proxies: Mutex<Proxies>,
    failed: Mutex<HashMap<Handle, Failure>>,
}

impl Endings {
    pub(super) fn new(mpi: &'static Mpi, observers: Arc<Observers>) -> Endings {
        Endings { mpi, observers, proxies: Mutex::default(), failed: Mutex::default() }
    }

    pub(super) fn mpi(&self) -> &'static Mpi {
        self.mpi
    }

    pub(super) fn observers(&self) -> &Observers {
        &self.observers
    }

    /// A run is through: the program gets to know when it asks.
    pub(super) fn end(&self, run: Run, outcome: Result<(), Unserved>, chosen: Option<&Chosen>) {
        let Run { asked, proxy, origin, .. } = run;
        if origin.told {
            let by = chosen.map_or(By::Nobody, Chosen::as_server);
            let name = if proxy.persistent { Cow::Owned(started(origin.name)) } else { origin.name.into() };
            let (comm, bytes) = (Some(&origin.on), Some(asked.task.bytes));
            self.observers.served(&Served { name: &name, comm, bytes, by, time: None, turn: None, from: None });
        }
        if let Err(Unserved::Failed(error)) = outcome {
            let failure = Failure { function: origin.function, comm: origin.comm, error };
            lock(&self.failed).insert(proxy.request, failure);
            FAILED.fetch_add(1, Ordering::AcqRel);
        }
        proxy.complete(self.mpi);
        if !proxy.persistent {
            lock(&self.proxies).free(proxy);
        }
        UNDER_WAY.fetch_sub(1, Ordering::AcqRel);
    }

    /// How the run of a request failed, if it did; told once.
    pub(super) fn failure(&self, request: Handle) -> Option<Failure> {
        let failure = lock(&self.failed).remove(&request)?;
        FAILED.fetch_sub(1, Ordering::AcqRel);
        Some(failure)
    }
}
