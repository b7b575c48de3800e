//! A communicator of the program, and ours for it.

use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, OnceLock};

use allhands_call::{Communicator, Reason, Unserved};
use allhands_mpi::Mpi;

use super::group::Group;
use crate::job::waiting;
use crate::locks::{lock, try_lock};

/// A communicator of the program.
pub(crate) struct Member<Q> {
    pub(crate) comm: Communicator,
    /// Why its calls are not ours, the same on every rank.
    refusal: Option<Reason>,
    /// Ours for it, made when it is needed; or why there is none, the same on every rank.
    ours: OnceLock<Result<Mutex<Group<Q>>, Reason>>,
    /// Whether a non-blocking or persistent collective was called on it, or on what it was made from; the same on every rank at the
    /// same call.
    pub(crate) has_requests: AtomicBool,
}

impl<Q: Default> Member<Q> {
    pub(super) fn new(comm: Communicator) -> Member<Q> {
        let refusal = match comm {
            Communicator { between_groups: true, .. } => Some(Reason::Intercommunicator),
            Communicator { size: 1, .. } => Some(Reason::OneRank),
            _ => None,
        };
        Member { comm, refusal, ours: OnceLock::new(), has_requests: AtomicBool::new(false) }
    }

    /// Ours for it. Collective the first time.
    #[inline]
    pub(crate) fn group(&self, mpi: &'static Mpi) -> Result<MutexGuard<'_, Group<Q>>, Unserved> {
        let ours = self.ours.get_or_init(|| {
            let joined = waiting(|| self.comm.join(mpi));
            joined.map(|comm| Mutex::new(Group::new(comm))).map_err(|why| Reason::NotJoined(why.into()))
        });
        match ours {
            Ok(group) => Ok(lock(group)),
            Err(reason) => Err(reason.clone().into()),
        }
    }

    /// Ours for it, if there is one.
    pub(crate) fn made(&self) -> Option<&Mutex<Group<Q>>> {
        self.ours.get()?.as_ref().ok()
    }

    /// The same, if no other thread has it.
    pub(crate) fn try_group(&self) -> Option<MutexGuard<'_, Group<Q>>> {
        try_lock(self.made()?)
    }

    /// Whether all its ranks call the same, and there are several.
    pub(crate) fn has_several(&self) -> bool {
        !self.comm.between_groups && self.comm.size > 1
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
