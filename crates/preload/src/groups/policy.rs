//! Which plan serves a call: the best that is known, or what the user wants.

use std::cell::OnceCell;
use std::sync::Arc;

use allhands::raw::{RawCall, RawComm, RawPlan, Reserved};
use allhands::{Error, Options, Server};
use allhands_call::{Neighborhood, Reason, Unserved};
use allhands_schedule::{Choice, Collective};

use crate::job::Forced;
use crate::observe::By;

/// What the plans of a communicator may weigh together; those used longest ago go first.
pub(crate) const MOST_WEIGHT: u64 = 32 << 20;

/// An algorithm, and why.
pub(crate) struct Chosen {
    pub(crate) algorithm: String,
    pub(crate) why: String,
}

impl Chosen {
    /// That of a plan, after a fact that comes before why it runs what it runs, if there is one.
    fn of(plan: &RawPlan, fact: Option<&str>) -> Chosen {
        let why = match fact {
            Some(fact) => format!("{fact}; {}", plan.why()),
            None => plan.why(),
        };
        Chosen { algorithm: plan.algorithm(), why }
    }

    /// As observers are told.
    pub(crate) fn as_server(&self) -> By<'_> {
        By::Ours { algorithm: &self.algorithm, why: &self.why }
    }
}

/// What observers are told of a plan, put into words when one wants to know.
pub(crate) struct Told {
    /// What comes before why it runs what it runs.
    fact: Option<String>,
    chosen: OnceCell<Arc<Chosen>>,
}

impl Told {
    pub(super) fn later(fact: Option<String>) -> Told {
        Told { fact, chosen: OnceCell::new() }
    }

    /// Of its plan.
    pub(crate) fn of(&self, plan: &RawPlan) -> &Arc<Chosen> {
        self.chosen.get_or_init(|| Arc::new(Chosen::of(plan, self.fact.as_deref())))
    }
}

impl From<Chosen> for Told {
    fn from(chosen: Chosen) -> Told {
        Told { fact: None, chosen: OnceCell::from(Arc::new(chosen)) }
    }
}

/// How the user wants a plan.
#[derive(Clone, Copy, Default)]
pub(crate) struct PlanPreference<'a> {
    /// By whom.
    pub(crate) forced: Option<&'a Forced>,
    /// See [`Options::unshared`].
    pub(crate) unshared: bool,
    /// What is settled for calls among neighbours.
    pub(crate) along: Option<&'a Neighborhood>,
    /// Who is to serve by what was learned, and why.
    pub(crate) learned: Option<(&'a Server, &'a str)>,
}

impl PlanPreference<'_> {
    /// A plan, and the algorithm that it runs; or why the MPI's own serves such calls, which is the same on every rank.
    pub(crate) fn plan(
        self,
        make: impl FnMut(&Options) -> allhands::Result<RawPlan>,
    ) -> Result<Result<(RawPlan, Chosen), Reason>, Unserved> {
        let made = self.plan_in_silence(make)?;
        Ok(made.map(|(plan, fact)| {
            let chosen = Chosen::of(&plan, fact.as_deref());
            (plan, chosen)
        }))
    }

    /// The same for who may not want to know: in place of the algorithm, why it is not the one that was named, if so.
    pub(crate) fn plan_in_silence(
        self,
        make: impl FnMut(&Options) -> allhands::Result<RawPlan>,
    ) -> Result<Result<(RawPlan, Option<String>), Reason>, Unserved> {
        let (plan, fact) = self.made(make)?;
        if plan.is_library() {
            return Ok(Err(Reason::Preferred(Chosen::of(&plan, fact.as_deref()).why.into())));
        }
        Ok(Ok((plan, fact)))
    }

    /// The algorithm for calls like this one, of any counts, of which each rank knows its own: the one that the user names, or one for all such calls. Or why
    /// the MPI's own serves them. The same on every rank.
    pub(crate) fn choice_for_own_counts(self, comm: &RawComm, call: &RawCall) -> Result<Choice, Unserved> {
        let collective = call.collective;
        match self.forced.map(|forced| (&forced.server, forced.if_it_can)) {
            Some((Server::Library, _)) => return Err(Reason::Preferred("the caller's wish".into()).into()),
            Some((Server::Schedule(choice), if_it_can)) if !if_it_can || comm.serves(choice, call) => {
                return Ok(choice.clone());
            }
            _ => {}
        }
        if let Some(hood) = self.along {
            return Ok(hood.choice(collective).0.clone());
        }
        let name = match (collective, comm.is_apart()) {
            (Collective::Alltoallv, false) => "spread-out",
            // One message for each rank and node, of which sizes are known inside both nodes.
            (Collective::Alltoallv, true) => "node-aware",
            (_, false) => "linear",
            // One message for each node, but nothing long twice.
            (_, true) => "node-aware:straight=8192",
        };
        Ok(Choice::parse(collective, name).map_err(Error::from)?)
    }

    /// The same as [`plan`](PlanPreference::plan) for such a call, at a place that is reserved for it, by an algorithm, and why that serves if it was learned.
    pub(crate) fn plan_of_own_counts(
        self,
        call: &RawCall,
        place: &Reserved,
        choice: &Choice,
        learned: Option<&str>,
    ) -> Result<(RawPlan, Chosen), Unserved> {
        let algorithm = choice.to_string();
        let plan = place.plan(call, &Options::new().unshared(true).algorithm(&algorithm))?;
        let forced = self.forced.and_then(|forced| forced.server.choice());
        let why = match (forced == Some(choice), learned, self.along) {
            (true, _, _) => plan.why(),
            (false, Some(learned), _) => learned.into(),
            (false, None, Some(hood)) => hood.choice(call.collective).1.into(),
            (false, None, None) => "counts of which each rank knows its own".into(),
        };
        Ok((plan, Chosen { algorithm, why }))
    }

    /// A plan, and why it is not by the algorithm that was named, if so.
    fn made(
        self,
        mut make: impl FnMut(&Options) -> allhands::Result<RawPlan>,
    ) -> Result<(RawPlan, Option<String>), Unserved> {
        // Where the MPI's own is best, the program's call is passed on to it: such a plan is not run.
        let free = Options::new().unshared(self.unshared).only_ours(true);
        if let Some((server, why)) = self.learned {
            return Ok((make(&free.learned(server, why))?, None));
        }
        let Some(Forced { server, if_it_can }) = self.forced else { return Ok((make(&free)?, None)) };
        match make(&free.clone().algorithm(&server.to_string())) {
            // Every rank finds the same, before it talks to others.
            Err(Error::Request(fact)) if *if_it_can => Ok((make(&free)?, Some(fact.to_string()))),
            planned => Ok((planned?, None)),
        }
    }
}
