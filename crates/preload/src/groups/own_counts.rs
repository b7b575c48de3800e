//! Plans for calls of which each rank knows its own counts only: alltoallvs, gathervs, scattervs and all collectives among neighbours.
//!
//! Nothing that ranks have to do alike may depend on what one of them alone knows. So all such calls on a communicator use one place among its
//! plans, which the first of them reserves on every rank. Who serves follows from how many there were, and from what all ranks have told each other: one
//! algorithm, in which nobody carries what is for others, or ranks tell each other how much they carry; or, if that was learned, another one or the MPI's own. How a rank finds, makes and drops its plans for counts is its own affair. Between two ranks messages come in the order of the calls.

use allhands::Server;
use allhands::learn::Grant;
use allhands::learn::Turn;
use allhands::raw::{Amount, CarriedCounts, PlanStore, RawCall, RawComm, RawPlan, Reserved, Slot};
use allhands_call::{Reason, Unserved};
use allhands_schedule::{Choice, Collective};

use super::policy::{MOST_WEIGHT, PlanPreference, Told};

pub(crate) struct OwnCounts {
    place: Reserved,
    ranks: usize,
    /// By collective and root.
    settled: Vec<Settled>,
    /// Where it is settled who serves the last call that a plan was made or found for.
    last: Option<usize>,
}

/// Plans of one server by counts.
struct Plans {
    by_call: PlanStore<RawCall, (RawPlan, Told)>,
    /// That of the last call, which the next one often needs again.
    last: Option<Slot>,
}

/// Who serves calls of one collective and root.
struct Settled {
    collective: Collective,
    root: usize,
    /// The one that serves without learning, and others that were tried.
    servers: Vec<Serving>,
    /// Which of them serves now.
    now: usize,
    grant: Grant,
}

/// Somebody who serves.
struct Serving {
    /// None: the MPI's own does.
    ours: Option<Ours>,
    /// Why, if that was learned.
    learned: Option<String>,
}

/// An algorithm of ours.
struct Ours {
    choice: Choice,
    /// What tells ranks the sizes of what they carry, if they carry anything.
    telling: Option<CarriedCounts>,
    plans: Plans,
}

/// Where the plan of a call is.
#[derive(Clone, Copy)]
pub(crate) struct OwnPlace {
    settled: usize,
    server: usize,
    slot: Slot,
}

impl Plans {
    fn new() -> Plans {
        Plans { by_call: PlanStore::new(MOST_WEIGHT), last: None }
    }

    /// Finds or makes the plan for a call; whether it was made.
    fn make(
        &mut self,
        call: &RawCall,
        ranks: usize,
        make: impl FnOnce() -> Result<(RawPlan, Told), Unserved>,
    ) -> Result<bool, Unserved> {
        let like = |slot: &Slot| self.by_call.key(*slot).is_some_and(|known| known == call);
        let known = self.last.filter(like).or_else(|| self.by_call.find(call));
        let slot = match known {
            Some(slot) => slot,
            None => {
                let (slot, dropped) = self.by_call.insert(call.clone(), make()?, call.weight(ranks));
                drop(dropped);
                slot
            }
        };
        self.last = Some(slot);
        Ok(known.is_none())
    }

    /// The plan of the last call.
    fn made(&mut self) -> Option<(&mut RawPlan, &Told)> {
        self.by_call.at(self.last?).map(|(plan, told)| (plan, &*told))
    }
}

impl Serving {
    /// By an algorithm, for calls like one. All ranks make it at the same call; it waits for nobody.
    fn ours(comm: &RawComm, call: &RawCall, choice: Choice, learned: Option<String>) -> Result<Serving, Unserved> {
        // Where all have one size there is nothing to tell, which all know alike.
        let tells = choice.knowledge().is_told() && matches!(call.amount, Amount::Own { .. });
        let telling = tells.then(|| comm.carried_counts(&choice, call)).transpose()?;
        Ok(Serving { ours: Some(Ours { choice, telling, plans: Plans::new() }), learned })
    }

    fn server(&self) -> Server {
        self.ours.as_ref().map_or(Server::Library, |ours| Server::Schedule(ours.choice.clone()))
    }
}

impl Settled {
    fn now(&mut self) -> &mut Serving {
        &mut self.servers[self.now]
    }

    /// From now on somebody serves who was named by what all ranks know.
    fn follow(&mut self, comm: &RawComm, call: &RawCall, turn: &Turn) -> Result<(), Unserved> {
        let known = self.servers.iter().position(|serving| serving.server() == turn.server);
        self.now = match (known, turn.server.choice()) {
            (Some(known), _) => {
                self.servers[known].learned.clone_from(&turn.why);
                known
            }
            (None, choice) => {
                let why = turn.why.clone();
                self.servers.push(match choice {
                    Some(choice) => Serving::ours(comm, call, choice.clone(), why)?,
                    None => Serving { ours: None, learned: why },
                });
                self.servers.len() - 1
            }
        };
        self.grant.renew(turn.rest);
        Ok(())
    }
}

impl OwnCounts {
    /// The first such call on a communicator. Waits for nobody.
    pub(crate) fn new(comm: &RawComm) -> Result<OwnCounts, Unserved> {
        let (place, ranks) = (comm.reserve()?, comm.size());
        Ok(OwnCounts { place, ranks, settled: Vec::new(), last: None })
    }

    /// Settles who serves without learning, and makes what tells ranks what they need to know, if that wants it: at the first call of a collective
    /// and root, which comes in the same order among all calls on every rank. Waits for nobody. Which of those that are settled it is.
    pub(crate) fn prepare(
        &mut self,
        comm: &RawComm,
        call: &RawCall,
        preference: PlanPreference<'_>,
    ) -> Result<usize, Unserved> {
        if let Some(known) = self.find(call) {
            return Ok(known);
        }
        let (collective, root) = (call.collective, call.root);
        let serving = Serving::ours(comm, call, preference.choice_for_own_counts(comm, call)?, None)?;
        self.settled.push(Settled { collective, root, servers: vec![serving], now: 0, grant: Grant::default() });
        Ok(self.settled.len() - 1)
    }

    fn find(&self, call: &RawCall) -> Option<usize> {
        self.settled.iter().position(|known| known.collective == call.collective && known.root == call.root)
    }

    /// Counts a call that was prepared. If it is to be asked who serves it: who does without learning, and how many were served since it was asked.
    pub(crate) fn pass(&mut self, prepared: usize) -> Option<(Server, Option<u64>)> {
        let settled = &mut self.settled[prepared];
        (!settled.grant.spend()).then(|| (settled.servers[0].server(), settled.grant.since_asked()))
    }

    /// Who serves the call, and the next ones: what was learned, or without that the same to the end.
    pub(crate) fn follow(
        &mut self,
        prepared: usize,
        comm: &RawComm,
        call: &RawCall,
        turn: Option<&Turn>,
    ) -> Result<(), Unserved> {
        let settled = &mut self.settled[prepared];
        match turn {
            Some(turn) => settled.follow(comm, call, turn),
            None => {
                settled.grant.last_for_ever();
                Ok(())
            }
        }
    }

    /// Why the MPI's own serves a call that was prepared, if it does.
    pub(crate) fn left_to_the_library(&mut self, prepared: usize, tried: bool) -> Option<Reason> {
        let serving = self.settled[prepared].now();
        match (&serving.ours, tried) {
            (Some(_), _) => None,
            (None, true) => Some(Reason::Tried),
            (None, false) => Some(Reason::Preferred(
                serving.learned.as_deref().unwrap_or("the fastest of those that were tried").into(),
            )),
        }
    }

    /// Begins to tell ranks what they need to know for a call; what tells them, if anything does. Waits for nobody.
    pub(crate) fn tell(&mut self, call: &RawCall) -> Result<Option<&mut CarriedCounts>, Unserved> {
        let (Amount::Own { given, gotten, .. }, Some(told)) = (&call.amount, self.telling(call)) else {
            return Ok(None);
        };
        told.start(given, gotten)?;
        Ok(Some(told))
    }

    /// The call with what was told, if anything was.
    pub(crate) fn informed(&mut self, call: &RawCall) -> Result<Option<RawCall>, Unserved> {
        let (Amount::Own { given, gotten, .. }, Some(told)) = (&call.amount, self.telling(call)) else {
            return Ok(None);
        };
        let carried = told.carried(gotten)?;
        let amount = Amount::Own { given: given.clone(), gotten: gotten.clone(), carried };
        Ok(Some(RawCall { amount, ..call.clone() }))
    }

    /// What tells ranks what they need for a call, if anything does.
    pub(crate) fn telling(&mut self, call: &RawCall) -> Option<&mut CarriedCounts> {
        let settled = self.find(call)?;
        self.settled[settled].now().ours.as_mut()?.telling.as_mut()
    }

    /// Finds or makes the plan for a call; whether it was made. Waits for nobody.
    pub(crate) fn make(&mut self, call: &RawCall, preference: PlanPreference<'_>) -> Result<bool, Unserved> {
        self.last = self.find(call);
        let OwnCounts { place, ranks, settled, last } = self;
        let last = last.expect("calls are prepared first");
        let Serving { ours: Some(Ours { choice, plans, .. }), learned } = settled[last].now() else { return Ok(false) };
        plans.make(call, *ranks, || {
            let (plan, chosen) = preference.plan_of_own_counts(call, place, choice, learned.as_deref())?;
            Ok((plan, chosen.into()))
        })
    }

    /// The plan of the last call.
    pub(crate) fn made(&mut self) -> Option<(&mut RawPlan, &Told)> {
        self.settled[self.last?].now().ours.as_mut()?.plans.made()
    }

    /// Where the plan of the last call is, if a call like it needs nothing else.
    pub(crate) fn place(&self) -> Option<OwnPlace> {
        let settled = self.last?;
        let server = self.settled[settled].now;
        let ours = self.settled[settled].servers[server].ours.as_ref().filter(|ours| ours.telling.is_none())?;
        Some(OwnPlace { settled, server, slot: ours.plans.last? })
    }

    /// The plan at a place for one more call, if it is still there and nobody is to be asked who serves.
    #[inline]
    pub(crate) fn placed(&mut self, place: OwnPlace) -> Option<&mut RawPlan> {
        let settled = self.settled.get_mut(place.settled).filter(|settled| settled.now == place.server)?;
        let (plan, _) = settled.servers[place.server].ours.as_mut()?.plans.by_call.at(place.slot)?;
        settled.grant.spend().then_some(plan)
    }
}
