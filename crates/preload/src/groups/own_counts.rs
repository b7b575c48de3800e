//! Plans for calls of which each rank knows its own counts only: alltoallvs, gathervs, scattervs and all collectives among neighbours.
//!
//! Nothing that ranks have to do alike may depend on what one of them alone knows. So all such calls on a communicator use one place among its
//! plans, which the first of them reserves on every rank, and one algorithm, in which nobody carries what is for others, or only ranks of the same
//! node do, who tell each other how much; how a rank finds, makes and drops its plans for counts is its own affair. Between two ranks messages come in
//! the order of the calls.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use allhands::raw::{Amount, NodeCounts, PlanStore, RawCall, RawComm, RawPlan, Reserved, Slot};
use allhands_call::Unserved;

use super::policy::{MOST_WEIGHT, PlanPreference, Told};
use allhands_schedule::{Choice, Collective, Knowledge};

pub(crate) struct OwnCounts {
    place: Reserved,
    ranks: usize,
    /// By collective and root: the algorithm, and what tells ranks of a node the sizes of what they carry, if it wants that.
    settled: HashMap<(Collective, usize), (Choice, Option<NodeCounts>)>,
    plans: PlanStore<RawCall, (RawPlan, Told)>,
    /// The plan of the last call, which the next one often needs again.
    last: Option<Slot>,
}

impl OwnCounts {
    /// The first such call on a communicator. Waits for nobody.
    pub(crate) fn new(comm: &RawComm) -> Result<OwnCounts, Unserved> {
        let (place, ranks) = (comm.reserve()?, comm.size());
        Ok(OwnCounts { place, ranks, settled: HashMap::new(), plans: PlanStore::new(MOST_WEIGHT), last: None })
    }

    /// Settles the algorithm, and makes what tells ranks of a node what they need to know, if it wants that: at the first call of a collective and root, which comes in the same
    /// order among all calls on every rank. Waits for nobody.
    pub(crate) fn prepare(
        &mut self,
        comm: &RawComm,
        call: &RawCall,
        preference: PlanPreference<'_>,
    ) -> Result<(), Unserved> {
        let like = (call.collective, call.root);
        if let Entry::Vacant(unsettled) = self.settled.entry(like) {
            let choice = preference.choice_for_own_counts(comm, call)?;
            // Where all have one size there is nothing to tell, which all know alike.
            let tells = matches!(call.amount, Amount::Own { .. }) && choice.knowledge() == Knowledge::Node;
            let told = tells.then(|| comm.node_counts(&choice, call)).transpose()?;
            unsettled.insert((choice, told));
        }
        Ok(())
    }

    /// Begins to tell the ranks of this node what they need to know for a call; what tells them, if anything does. Waits for nobody.
    pub(crate) fn tell(&mut self, call: &RawCall) -> Result<Option<&mut NodeCounts>, Unserved> {
        let (Amount::Own { given, gotten, .. }, Some(told)) = (&call.amount, self.telling(call)) else {
            return Ok(None);
        };
        told.start(given, gotten)?;
        Ok(Some(told))
    }

    /// The call with what was told.
    pub(crate) fn informed(&mut self, call: &RawCall) -> Option<RawCall> {
        let carried = self.telling(call)?.carried();
        let Amount::Own { given, gotten, .. } = &call.amount else { return None };
        let amount = Amount::Own { given: given.clone(), gotten: gotten.clone(), carried };
        Some(RawCall { amount, ..call.clone() })
    }

    /// What tells the ranks of this node what they need for a call, if anything does.
    pub(crate) fn telling(&mut self, call: &RawCall) -> Option<&mut NodeCounts> {
        self.settled.get_mut(&(call.collective, call.root))?.1.as_mut()
    }

    /// Finds or makes the plan for a call; whether it was made. Waits for nobody.
    pub(crate) fn make(&mut self, call: &RawCall, preference: PlanPreference<'_>) -> Result<bool, Unserved> {
        let like = |slot: &Slot| self.plans.key(*slot).is_some_and(|known| known == call);
        let known = self.last.filter(like).or_else(|| self.plans.find(call));
        let slot = match known {
            Some(slot) => slot,
            None => {
                let (plan, chosen) = match self.settled.get(&(call.collective, call.root)) {
                    Some((choice, _)) => preference.plan_of_own_counts(call, &self.place, choice)?,
                    // They have told each other.
                    None => preference.plan(|options| self.place.plan(call, options))??,
                };
                let (slot, dropped) = self.plans.insert(call.clone(), (plan, chosen.into()), call.weight(self.ranks));
                drop(dropped);
                slot
            }
        };
        self.last = Some(slot);
        Ok(known.is_none())
    }

    /// The plan of the last call.
    pub(crate) fn made(&mut self) -> Option<(&mut RawPlan, &Told)> {
        self.plans.at(self.last?).map(|(plan, told)| (plan, &*told))
    }

    /// Where the plan of the last call is.
    pub(crate) fn place(&self) -> Option<Slot> {
        self.last
    }

    /// The plan at a place, if it is still there.
    #[inline]
    pub(crate) fn placed(&mut self, place: Slot) -> Option<&mut RawPlan> {
        self.plans.at(place).map(|(plan, _)| plan)
    }
}
