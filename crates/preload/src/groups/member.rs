//! A communicator of the program, and ours for it.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use allhands::raw::{Fellows, RawComm};
use allhands_call::{Communicator, Neighborhood, Reason, Unserved};
use allhands_mpi::{Mpi, ThreadLevel};

use super::group::{Group, Remains};
use crate::job::waiting;
use allhands_call::locks::{Held, OneCall, lock};

/// A communicator of the program.
pub(crate) struct Member<Q> {
    pub(crate) comm: Communicator,
    /// Why its calls are not ours, the same on every rank.
    refusal: Option<Reason>,
    /// Its ranks, if they are those of a communicator that it is a duplicate of.
    fellows: Option<Fellows>,
    /// What ours for it may begin with.
    remains: Mutex<Option<Remains>>,
    /// Ours for it, made when it is needed; or why there is none, the same on every rank.
    ours: OnceLock<Result<OneCall<Group<Q>>, Reason>>,
    /// Whether a non-blocking or persistent collective was called on it, or on what it was made from; the same on every rank at the
    /// same call.
    pub(crate) has_requests: AtomicBool,
    /// Which communicator it is, where that follows from the calls that made it: see [`Comms::created`](super::comms::Comms::created).
    lineage: Option<u64>,
    /// How many calls have made communicators from it.
    created: AtomicU64,
    /// What is settled for collectives among neighbours: in calls that wait, and in others.
    neighborhoods: [OnceLock<Result<Arc<Neighborhood>, Reason>>; 2],
}

/// How a collective is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// The call waits until it is through.
    Blocking,
    /// It begins, and waits for nobody.
    NonBlocking,
    /// It is prepared, and ranks may wait for each other.
    Persistent,
}

impl<Q: Default> Member<Q> {
    /// `serves`: whether ours serve calls at all.
    pub(super) fn new(
        comm: Communicator,
        lineage: Option<u64>,
        serves: bool,
        fellows: Option<Fellows>,
        remains: Option<Remains>,
    ) -> Member<Q> {
        let refusal = match comm {
            _ if !serves => Some(Reason::Off),
            Communicator { between_groups: true, .. } => Some(Reason::Intercommunicator),
            Communicator { size: 1, .. } => Some(Reason::OneRank),
            _ => None,
        };
        Member {
            refusal,
            fellows,
            remains: Mutex::new(remains),
            ours: OnceLock::new(),
            has_requests: AtomicBool::new(false),
            lineage: lineage.filter(|_| !comm.between_groups),
            created: AtomicU64::new(0),
            neighborhoods: Default::default(),
            comm,
        }
    }

    /// What all its ranks know it by, if they do.
    pub(super) fn lineage(&self) -> Option<u64> {
        self.lineage
    }

    /// The lineage of what a call makes from it, which counts; none if it has none itself.
    pub(super) fn next_lineage(&self) -> Option<u64> {
        let lineage = self.lineage?;
        Some(descend(lineage, self.created.fetch_add(1, Ordering::Relaxed)))
    }

    /// Ours for it. Collective the first time.
    #[inline]
    pub(crate) fn group(&self, mpi: &'static Mpi) -> Result<Held<'_, Group<Q>>, Unserved> {
        let ours = self.ours.get_or_init(|| {
            let joined = waiting(|| match self.derived()? {
                Some(group) => Ok(group),
                None => Ok(Group::new(self.comm.join(mpi)?)),
            });
            let several = !mpi.query_thread().is_ok_and(|level| level < ThreadLevel::Multiple);
            // SAFETY: below that level MPI asks programs to make their calls one after the other, and a thread of ours comes at that level only.
            let one_call = |group| unsafe { OneCall::new(group, several) };
            joined.map(one_call).map_err(|why: Cow<'static, str>| Reason::NotJoined(why.into()))
        });
        match ours {
            Ok(group) => Ok(group.lock()),
            Err(reason) => Err(reason.clone().into()),
        }
    }

    /// Ours for it, if it follows from what its ranks know alike; waits for nobody.
    fn derived(&self) -> Result<Option<Group<Q>>, Cow<'static, str>> {
        let Some(lineage) = self.lineage else { return Ok(None) };
        let asked = match &self.fellows {
            Some(_) => None,
            None => self.comm.fellows()?,
        };
        let Some(fellows) = self.fellows.as_ref().or(asked.as_ref()) else { return Ok(None) };
        let renewed = lock(&self.remains).take().and_then(|remains| remains.renewed(fellows, lineage));
        Ok(renewed.or_else(|| RawComm::of_fellows(fellows, lineage).map(Group::new)))
    }

    /// What is left of it when it is gone.
    pub(super) fn end(self) -> Option<Remains> {
        let ours = self.ours.into_inner()?.ok()?;
        ours.into_inner().end()
    }

    /// Its ranks, as far as it is known without waiting.
    pub(super) fn fellows(&self) -> Option<Fellows> {
        Some(self.try_group()?.fellows())
    }

    /// What is settled for collectives among neighbours, at the first of them that may wait; all ranks find the same.
    pub(crate) fn neighborhood(&self, mpi: &'static Mpi, form: Form) -> Result<Arc<Neighborhood>, Unserved> {
        if let Some(refusal) = self.refusal() {
            return Err(refusal);
        }
        let blocking = form == Form::Blocking;
        let place = &self.neighborhoods[usize::from(blocking)];
        if let Some(known) = place.get() {
            return known.clone().map_err(Unserved::from);
        }
        let together = form != Form::NonBlocking;
        let mut group = match (together, self.made()) {
            (true, _) => self.group(mpi)?,
            (false, Some(made)) => made.lock(),
            (false, None) => return Err(Reason::NoCommunicator.into()),
        };
        let learned = waiting(|| Neighborhood::learn(mpi, &self.comm, group.parts().0, blocking, together));
        let known = match learned.map(Arc::new) {
            Ok(hood) => Ok(hood),
            // A later call may wait.
            Err(Unserved::Fallback(reason)) if reason != Reason::UnknownNeighbors => Err(reason),
            Err(unserved) => return Err(unserved),
        };
        if known.as_ref().is_ok_and(|hood| hood.any_form) {
            let _ = self.neighborhoods[usize::from(!blocking)].set(known.clone());
        }
        place.get_or_init(|| known).clone().map_err(Unserved::from)
    }

    /// Ours for it, if there is one.
    pub(crate) fn made(&self) -> Option<&OneCall<Group<Q>>> {
        self.ours.get()?.as_ref().ok()
    }

    /// The same, if no other thread has it.
    pub(crate) fn try_group(&self) -> Option<Held<'_, Group<Q>>> {
        self.made()?.try_lock()
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

/// The lineage of a communicator by that of the one that it was made from, and how many calls made some from that before. Both steps can be
/// taken back, so that those of one parent differ; those of different parents do with all but no likelihood.
fn descend(lineage: u64, before: u64) -> u64 {
    let mixed = (lineage.rotate_left(32) ^ (before + 1)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 29
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn communicators_of_different_calls_have_different_lineages() {
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
