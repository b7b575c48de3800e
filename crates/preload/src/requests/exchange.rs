//! Calls that return before they are through, and of which a rank knows its own counts only: alltoallvs, gathervs, scattervs and collectives among neighbours.
//!
//! All such calls of one collective that are begun on a communicator wait in one line, whatever their counts, since nothing that ranks decide
//! alike may depend on what some of them do not know. Each rank completes one before it begins the next, so all of them can use one
//! place among the communicator's plans, which was reserved by the first. Where ranks carry blocks for others a
//! run has two parts: they tell each other counts, then the data move by a plan for these.

use std::sync::Arc;

use allhands::Error;
use allhands::raw::{RawCall, RawComm};
use allhands_call::{Neighborhood, Task, Unserved};
use allhands_mpi::Mpi;

use super::run::Run;
use crate::groups::{Chosen, OwnCounts, PlanPreference};
use crate::job::Forced;

/// What runs such calls on a communicator, one after the other.
pub(super) struct Exchange {
    me: usize,
    plans: OwnCounts,
    forced: Option<Forced>,
    hood: Option<Arc<Neighborhood>>,
    stage: Stage,
    /// The call of the run at work, with what was told.
    told: Option<RawCall>,
    /// A run was not completed: what others have sent in it may still come.
    broken: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Stage {
    Idle,
    Counting,
    Moving,
}

impl Exchange {
    /// The first call of a collective on a communicator. Waits for nobody.
    pub(super) fn new(comm: &RawComm, task: &Task, preference: PlanPreference<'_>) -> Result<Exchange, Unserved> {
        let plans = OwnCounts::new(comm)?;
        let (forced, hood) = (preference.forced.cloned(), task.hood.clone());
        Ok(Exchange { me: comm.rank(), plans, forced, hood, stage: Stage::Idle, told: None, broken: false })
    }

    /// Another call, which all ranks begin in the same order. Waits for nobody.
    pub(super) fn prepare(
        &mut self,
        comm: &RawComm,
        call: &RawCall,
        preference: PlanPreference<'_>,
    ) -> Result<(), Unserved> {
        self.plans.prepare(comm, call, preference).map(|_| ())
    }

    /// What moved the data of the last run.
    pub(super) fn chosen(&mut self) -> Option<&Chosen> {
        self.plans.made().map(|(plan, told)| &**told.of(plan))
    }

    /// Moves the first run of the line on; whether it is through.
    pub(super) fn step(&mut self, mpi: &Mpi, run: &mut Run) -> Result<bool, Unserved> {
        if self.broken {
            let collective = run.asked.task.call.collective;
            let reason =
                format!("an earlier {collective} on this communicator, begun without waiting, was not completed");
            return Err(Error::Abandoned { rank: self.me, reason }.into());
        }
        let through = self.advance(mpi, run);
        self.broken = through.is_err();
        through
    }

    fn advance(&mut self, mpi: &Mpi, run: &mut Run) -> Result<bool, Unserved> {
        let task = &run.asked.task;
        if self.stage == Stage::Idle {
            self.plans.tell(&task.call)?;
            self.stage = Stage::Counting;
        }
        if self.stage == Stage::Counting {
            if !self.plans.telling(&task.call).map_or(Ok(true), |telling| telling.plan().test())? {
                return Ok(false);
            }
            self.told = self.plans.informed(&task.call)?;
            let preference = PlanPreference {
                forced: self.forced.as_ref(),
                unshared: true,
                along: self.hood.as_deref(),
                learned: None,
            };
            self.plans.make(self.told.as_ref().unwrap_or(&task.call), preference)?;
            self.stage = Stage::Moving;
        }
        let Some((plan, _)) = self.plans.made() else { return Ok(false) };
        let through = run.step(mpi, plan)?;
        if through {
            self.stage = Stage::Idle;
        }
        Ok(through)
    }
}
