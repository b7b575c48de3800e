//! Alltoallvs that return before they are through.
//!
//! A rank knows its own counts only, so a run has two parts: ranks tell each other their counts, then the data move by a plan for
//! these. All alltoallvs that are begun on a communicator wait in one line, whatever their counts, since nothing that ranks decide alike
//! may depend on what some of them do not know yet. Each rank completes one before it begins the next, so all of them can use one
//! place among the communicator's plans, which was reserved by the first.

use std::sync::Arc;

use allhands::raw::{RawCall, RawComm, RawPlan, Reserved};
use allhands::{Error, Options};
use allhands_call::{Unserved, counts};
use allhands_mpi::Mpi;

use super::run::Run;
use crate::groups::{Chosen, Wish};
use crate::job::Forced;

/// Counts of more calls than this are forgotten: those of all ranks are as many as there are pairs.
const MOST_KNOWN: usize = 16;

/// What runs the alltoallvs of a communicator, one after the other.
pub(super) struct Exchange {
    /// Tells everybody everybody's counts; goes before what it reads and writes.
    counts: RawPlan,
    mine: Vec<u64>,
    all: Vec<u64>,
    me: usize,
    place: Reserved,
    forced: Option<Forced>,
    plans: Vec<Known>,
    /// The plan of the run at work, or of the last one.
    now: usize,
    stage: Stage,
    /// A run was not completed: what others have sent in it may still come.
    broken: bool,
}

/// What moves data in certain counts.
struct Known {
    call: RawCall,
    plan: RawPlan,
    chosen: Arc<Chosen>,
}

#[derive(Clone, Copy, PartialEq)]
enum Stage {
    Idle,
    Counting,
    Moving,
}

impl Exchange {
    /// The first call on a communicator. Waits for nobody.
    pub(super) fn new(comm: &RawComm, wish: Wish<'_>) -> Result<Exchange, Unserved> {
        let ranks = comm.size();
        let alone = Options::new().unshared(true);
        Ok(Exchange {
            counts: comm.plan(&counts::told(ranks), &alone.algorithm(counts::ALGORITHM))?,
            mine: vec![0; ranks],
            all: vec![0; ranks * ranks],
            me: comm.rank(),
            place: comm.reserve()?,
            forced: wish.forced.cloned(),
            plans: Vec::new(),
            now: 0,
            stage: Stage::Idle,
            broken: false,
        })
    }

    /// What moved the data of the last run.
    pub(super) fn chosen(&self) -> Option<&Chosen> {
        self.plans.get(self.now).map(|known| &*known.chosen)
    }

    /// Moves the first run of the line on; whether it is through.
    pub(super) fn step(&mut self, mpi: &Mpi, run: &mut Run) -> Result<bool, Unserved> {
        if self.broken {
            let reason = "an earlier MPI_Ialltoallv on this communicator was not completed".into();
            return Err(Error::Abandoned { rank: self.me, reason }.into());
        }
        let through = self.advance(mpi, run);
        self.broken = through.is_err();
        through
    }

    fn advance(&mut self, mpi: &Mpi, run: &mut Run) -> Result<bool, Unserved> {
        if self.stage == Stage::Idle {
            if let Some(given) = run.asked.task.counts() {
                self.mine.copy_from_slice(&counts::as_words(given));
            }
            // SAFETY: a word for each rank, and so many from each, which stay as long as the plan.
            unsafe { self.counts.start(self.mine.as_ptr().cast(), self.all.as_mut_ptr().cast())? };
            self.stage = Stage::Counting;
        }
        if self.stage == Stage::Counting {
            if !self.counts.test()? {
                return Ok(false);
            }
            self.now = self.known(run.asked.task.agreed(self.me, counts::from_words(&self.all))?)?;
            self.stage = Stage::Moving;
        }
        let through = run.step(mpi, &mut self.plans[self.now].plan)?;
        if through {
            self.stage = Stage::Idle;
        }
        Ok(through)
    }

    /// Where the plan for a call is.
    fn known(&mut self, call: RawCall) -> Result<usize, Unserved> {
        if let Some(index) = self.plans.iter().position(|known| known.call == call) {
            return Ok(index);
        }
        if self.plans.len() >= MOST_KNOWN {
            self.plans.clear();
        }
        let wish = Wish { forced: self.forced.as_ref(), unshared: true };
        let (plan, chosen) = wish.plan(|options| self.place.plan(&call, options))??;
        self.plans.push(Known { call, plan, chosen: Arc::new(chosen) });
        Ok(self.plans.len() - 1)
    }
}
