//! Calls that return before they are through, and of which a rank knows its own counts only: alltoallvs, gathervs and scattervs.
//!
//! All such calls of one collective that are begun on a communicator wait in one line, whatever their counts, since nothing that ranks decide
//! alike may depend on what some of them do not know. Each rank completes one before it begins the next, so all of them can use one
//! place among the communicator's plans, which was reserved by the first. Where the user wants an algorithm that needs all counts, a run
//! has two parts: ranks tell each other their counts, then the data move by a plan for these.

use allhands::raw::{RawCall, RawComm, RawPlan};
use allhands::{Error, Options};
use allhands_call::{Unserved, counts};
use allhands_mpi::Mpi;

use super::run::Run;
use crate::groups::{Chosen, OwnCounts, Wish};
use crate::job::Forced;

/// What runs such calls on a communicator, one after the other.
pub(super) struct Exchange {
    telling: Option<Telling>,
    me: usize,
    plans: OwnCounts,
    forced: Option<Forced>,
    stage: Stage,
    /// A run was not completed: what others have sent in it may still come.
    broken: bool,
}

/// Tells everybody everybody's counts.
struct Telling {
    /// Goes before what it reads and writes.
    plan: RawPlan,
    mine: Vec<u64>,
    all: Vec<u64>,
    /// The call of the run at work, with what was told.
    call: Option<RawCall>,
}

#[derive(Clone, Copy, PartialEq)]
enum Stage {
    Idle,
    Counting,
    Moving,
}

impl Exchange {
    /// The first call on a communicator. `told`: how many counts a rank tells the others, if it does. Waits for nobody.
    pub(super) fn new(comm: &RawComm, wish: Wish<'_>, told: Option<usize>) -> Result<Exchange, Unserved> {
        let telling = |words: usize| {
            let alone = Options::new().unshared(true);
            let plan = comm.plan(&counts::told(words), &alone.algorithm(counts::ALGORITHM))?;
            Ok::<_, Unserved>(Telling { plan, mine: vec![0; words], all: vec![0; words * comm.size()], call: None })
        };
        Ok(Exchange {
            telling: told.map(telling).transpose()?,
            me: comm.rank(),
            plans: OwnCounts::new(comm)?,
            forced: wish.forced.cloned(),
            stage: Stage::Idle,
            broken: false,
        })
    }

    /// What moved the data of the last run.
    pub(super) fn chosen(&mut self) -> Option<&Chosen> {
        self.plans.made().map(|(_, chosen)| &**chosen)
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
        if let Some(telling) = &mut self.telling {
            if self.stage == Stage::Idle {
                telling.begin(task.counts().unwrap_or_default())?;
                self.stage = Stage::Counting;
            }
            if self.stage == Stage::Counting {
                if !telling.plan.test()? {
                    return Ok(false);
                }
                telling.call = Some(task.agreed(self.me, counts::from_words(&telling.all))?);
            }
        }
        let told = self.telling.as_ref().and_then(|telling| telling.call.as_ref());
        let call = told.unwrap_or(&task.call);
        let wish = Wish { forced: self.forced.as_ref(), unshared: true };
        self.plans.make(call, wish)?;
        let Some((plan, _)) = self.plans.made() else { return Ok(false) };
        self.stage = Stage::Moving;
        let through = run.step(mpi, plan)?;
        if through {
            self.stage = Stage::Idle;
        }
        Ok(through)
    }
}

impl Telling {
    fn begin(&mut self, mine: &[usize]) -> Result<(), Unserved> {
        self.mine.copy_from_slice(&counts::as_words(mine));
        // SAFETY: as many words as the call says, and so many from each, which stay as long as the plan.
        Ok(unsafe { self.plan.start(self.mine.as_ptr().cast(), self.all.as_mut_ptr().cast())? })
    }
}
