//! Persistent collectives that are the MPI's own: each of their starts is a call that a report counts.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use allhands_call::Communicator;
use allhands_call::locks::lock;
use allhands_mpi::Handle;

use super::session::Session;
use crate::observe::{By, Served, started};

/// What a request was prepared by.
#[derive(Clone)]
pub(super) struct Prepared {
    /// As the report has it.
    pub(super) name: &'static str,
    pub(super) comm: Option<Communicator>,
    pub(super) bytes: Option<usize>,
    /// Why it is the MPI's.
    pub(super) by: String,
}

/// How many there are; kept only if somebody wants to know.
static KNOWN: AtomicUsize = AtomicUsize::new(0);
static TABLE: Mutex<Option<HashMap<Handle, Prepared>>> = Mutex::new(None);

/// Whether there are some.
pub(super) fn any() -> bool {
    KNOWN.load(Ordering::Acquire) > 0
}

pub(super) fn prepared(request: Handle, prepared: Prepared) {
    let mut table = lock(&TABLE);
    let table = table.get_or_insert_default();
    table.insert(request, prepared);
    KNOWN.store(table.len(), Ordering::Release);
}

/// Those among these requests are started.
pub(super) fn start(session: &Session, requests: &[Handle]) {
    for request in requests {
        let known = lock(&TABLE).as_ref().and_then(|table| table.get(request).cloned());
        if let Some(Prepared { name, comm, bytes, by }) = known {
            let (name, comm, by) = (started(name), comm.as_ref(), By::Theirs(&by));
            session.observers.served(&Served { name: &name, comm, bytes, by, time: None, turn: None, from: None });
        }
    }
}

/// A request is freed: its handle may be another's next.
pub(super) fn free(request: Handle) {
    if let Some(table) = lock(&TABLE).as_mut() {
        table.remove(&request);
        KNOWN.store(table.len(), Ordering::Release);
    }
}
