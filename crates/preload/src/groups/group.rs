//! A communicator of ours with its plans.

use std::cell::RefCell;
use std::sync::Arc;

use allhands::raw::{PlanStore, RawCall, RawComm, RawPlan, Slot};
use allhands_call::{Reason, Unserved};

use super::own_counts::OwnCounts;
use super::policy::{Chosen, MOST_WEIGHT, Wish};
use crate::job::Forced;

/// A communicator of ours with its plans, and what is under way on it.
pub(crate) struct Group<Q> {
    plans: PlanStore<RawCall, Planned>,
    /// The plan of the last call of which all ranks know all, which the next one often needs again.
    last: Option<Slot>,
    /// Where that of the last call of all is, if a call like it needs nothing else: ranks may have to tell each other counts first.
    place: Option<Place>,
    /// What serves calls of which each rank knows its own counts.
    own_counts: Option<OwnCounts>,
    /// Whether the plan of the last call was made for it.
    pub(crate) fresh: bool,
    /// What is under way. Before the communicator, which it was made from.
    queue: Q,
    comm: RawComm,
}

// SAFETY: everything that was made from the communicator is here, behind one lock, and so moves from thread to thread together.
unsafe impl<Q> Send for Group<Q> {}

/// Where a plan is.
#[derive(Clone, Copy)]
pub(crate) enum Place {
    /// Among those of calls of which all ranks know all.
    Known(Slot),
    /// Among those of calls of which each rank knows its own counts.
    OwnCounts(Slot),
}

/// What serves calls of one shape.
enum Planned {
    Ours {
        plan: RawPlan,
        chosen: Arc<Chosen>,
    },
    /// The MPI's own is faster, or forced.
    Theirs(Reason),
}

impl<Q: Default> Group<Q> {
    pub(super) fn new(comm: RawComm) -> Group<Q> {
        Group {
            plans: PlanStore::new(MOST_WEIGHT),
            last: None,
            place: None,
            own_counts: None,
            fresh: false,
            queue: Q::default(),
            comm,
        }
    }

    /// The plan for a call, made at the first one of its shape. Who waits for others calls `meanwhile` again and again.
    #[inline]
    pub(crate) fn plan(
        &mut self,
        call: &RawCall,
        forced: Option<&Forced>,
        meanwhile: impl Fn(&mut Q),
    ) -> Result<(&mut RawPlan, &Arc<Chosen>, &mut Q), Unserved> {
        self.fresh = false;
        let like = |slot: &Slot| self.plans.key(*slot).is_some_and(|known| known == call);
        let slot = match self.last.filter(like).or_else(|| self.plans.find(call)) {
            Some(slot) => slot,
            None => self.make(call, forced, meanwhile)?,
        };
        self.last = Some(slot);
        self.place = Some(Place::Known(slot)).filter(|_| !call.collective.hides_counts());
        match self.plans.at(slot) {
            Some(Planned::Ours { plan, chosen }) => Ok((plan, chosen, &mut self.queue)),
            Some(Planned::Theirs(why)) => Err(why.clone().into()),
            None => unreachable!("it was just found, or made"),
        }
    }

    /// Lets the ranks of a node tell each other what they need to know for a call of which each knows its own counts; the call with that, if
    /// there is anything. Who waits calls `finish`.
    pub(crate) fn tell_own_counts(
        &mut self,
        call: &RawCall,
        wish: Wish<'_>,
        finish: impl FnOnce(&mut RawPlan, &mut Q) -> Result<(), Unserved>,
    ) -> Result<Option<RawCall>, Unserved> {
        let own_counts = match &mut self.own_counts {
            Some(known) => known,
            none => none.insert(OwnCounts::new(&self.comm)?),
        };
        own_counts.prepare(&self.comm, call, wish)?;
        let Some(told) = own_counts.tell(call)? else { return Ok(None) };
        finish(told.plan(), &mut self.queue)?;
        Ok(own_counts.informed(call))
    }

    /// The plan for a call of which each rank knows its own counts, after they were told. Waits for nobody.
    pub(crate) fn plan_of_own_counts(
        &mut self,
        call: &RawCall,
        wish: Wish<'_>,
    ) -> Result<(&mut RawPlan, &Arc<Chosen>, &mut Q), Unserved> {
        let own_counts = self.own_counts.as_mut().expect("counts are told first");
        self.fresh = own_counts.make(call, wish)?;
        let tells = own_counts.telling(call).is_some();
        self.place = own_counts.place().map(Place::OwnCounts).filter(|_| !tells);
        let (plan, chosen) = own_counts.made().expect("it was just found, or made");
        Ok((plan, chosen, &mut self.queue))
    }

    /// Where the plan of the last call is.
    pub(crate) fn place(&self) -> Option<Place> {
        self.place
    }

    /// The plan at a place, if it is still there.
    #[inline]
    pub(crate) fn placed(&mut self, place: Place) -> Option<&mut RawPlan> {
        let slot = match place {
            Place::Known(slot) => slot,
            Place::OwnCounts(slot) => return self.own_counts.as_mut()?.placed(slot),
        };
        match self.plans.at(slot) {
            Some(Planned::Ours { plan, .. }) => Some(plan),
            _ => None,
        }
    }

    /// The communicator, and what is under way on it.
    pub(crate) fn parts(&mut self) -> (&RawComm, &mut Q) {
        (&self.comm, &mut self.queue)
    }

    /// Makes a plan; its place. All ranks do so at the same call, and drop the same plans for it.
    fn make(&mut self, call: &RawCall, forced: Option<&Forced>, meanwhile: impl Fn(&mut Q)) -> Result<Slot, Unserved> {
        let (comm, queue) = (&self.comm, RefCell::new(&mut self.queue));
        let made = Wish { forced, unshared: false, along: None }
            .plan(|options| comm.plan_while(call, options, &|| meanwhile(&mut queue.borrow_mut())))?;
        let planned = match made {
            Ok((plan, chosen)) => Planned::Ours { plan, chosen: Arc::new(chosen) },
            Err(reason) => Planned::Theirs(reason),
        };
        self.fresh = true;
        let (slot, dropped) = self.plans.insert(call.clone(), planned, call.weight(self.comm.size()));
        drop(dropped);
        Ok(slot)
    }
}
