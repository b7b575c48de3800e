//! A plan as C holds it: a collective on the program's memory.
//!
//! Everything of a communicator is touched under its lock only, which is held while a rank waits if nothing else can need
//! it: no other communicator's plan is under way. Otherwise waiting is a loop that moves all of them on, because ranks may wait for
//! them in different orders.

use std::cell::UnsafeCell;
use std::ffi::{CStr, CString};
use std::sync::{Arc, Mutex, PoisonError};

use allhands::raw::{Pauses, RawPlan};
use allhands_call::{Staged, Task};
use allhands_mpi::Mpi;

use super::communicators::Member;
use super::error::{Result, allhands_code::*, fault};

pub(crate) struct Plan {
    mpi: &'static Mpi,
    member: Arc<Member>,
    inner: UnsafeCell<Inner>,
    algorithm: CString,
    explanation: CString,
}

struct Inner {
    /// There until the plan is dropped.
    plan: Option<RawPlan>,
    task: Task,
    run: Run,
}

/// The last run.
enum Run {
    /// There is none, or its end is known to the program.
    None,
    UnderWay(Staged),
    Ended(Staged, Result<()>),
}

// SAFETY: what is inside is touched under the lock of the communicator only, as `RawPlan` asks; the program's memory may be
// touched by any thread.
unsafe impl Send for Plan {}
// SAFETY: as above.
unsafe impl Sync for Plan {}

/// Plans with a run under way.
static UNDER_WAY: Mutex<Vec<Arc<Plan>>> = Mutex::new(Vec::new());

/// MPI is being finalised.
pub(crate) fn forget_runs() {
    // A plan ends outside of the lock.
    let runs = std::mem::take(&mut *UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner));
    drop(runs);
}

impl Plan {
    pub(crate) fn new(mpi: &'static Mpi, member: Arc<Member>, plan: RawPlan, task: Task) -> Plan {
        let text = |text: String| CString::new(text).unwrap_or_default();
        let (algorithm, explanation) = (text(plan.algorithm()), text(plan.explain()));
        let inner = UnsafeCell::new(Inner { plan: Some(plan), task, run: Run::None });
        Plan { mpi, member, inner, algorithm, explanation }
    }

    pub(crate) fn algorithm(&self) -> &CStr {
        &self.algorithm
    }

    pub(crate) fn explanation(&self) -> &CStr {
        &self.explanation
    }

    /// Touches what is inside, under the communicator's lock.
    fn with<R>(&self, act: impl FnOnce(&mut Inner) -> Result<R>) -> Result<R> {
        let _ours = self.member.lock();
        // SAFETY: whoever touches it has this lock, and `act` does not come here again.
        act(unsafe { &mut *self.inner.get() })
    }

    /// Begins a run.
    ///
    /// # Safety
    /// The program's memory is as it said when it made the plan, until the run is through.
    pub(crate) unsafe fn start(self: &Arc<Plan>) -> Result<()> {
        // SAFETY: the caller's promise.
        self.with(|inner| unsafe { inner.start(self.mpi) })?;
        UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner).push(self.clone());
        Ok(())
    }

    /// Moves on, as all others do; whether no run is under way any more.
    pub(crate) fn test(self: &Arc<Plan>) -> Result<bool> {
        self.others().iter().for_each(|other| other.nudge());
        self.look()
    }

    /// Waits for the run under way, if there is one.
    pub(crate) fn wait(self: &Arc<Plan>) -> Result<()> {
        let mut pauses = Pauses::default();
        loop {
            let others = self.others();
            if others.is_empty() {
                let outcome = self.with(|inner| {
                    inner.step(true);
                    inner.end(self.mpi)
                });
                self.retire();
                return outcome.map(|_| ());
            }
            if self.look()? {
                return Ok(());
            }
            others.iter().for_each(|other| other.nudge());
            self.with(|inner| {
                inner.plan.as_ref().inspect(|plan| plan.drive_mpi());
                Ok(())
            })?;
            pauses.pause();
        }
    }

    /// Runs from beginning to end.
    ///
    /// # Safety
    /// As for [`start`](Plan::start), until this returns.
    pub(crate) unsafe fn run(self: &Arc<Plan>) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe {
            if self.others().is_empty() {
                return self.with(|inner| inner.run(self.mpi));
            }
            self.start()?;
        }
        self.wait()
    }

    /// Plans of other communicators that are under way.
    fn others(&self) -> Vec<Arc<Plan>> {
        let under_way = UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner);
        under_way.iter().filter(|other| !Arc::ptr_eq(&other.member, &self.member)).cloned().collect()
    }

    /// Whether no run is under way any more.
    fn look(&self) -> Result<bool> {
        let through = self.with(|inner| {
            inner.step(false);
            inner.end(self.mpi)
        });
        if !matches!(through, Ok(false)) {
            self.retire();
        }
        through
    }

    /// Moves on, unless another thread is there.
    fn nudge(&self) {
        if let Some(_ours) = self.member.try_lock() {
            // SAFETY: as in `with`.
            unsafe { &mut *self.inner.get() }.step(false);
        }
    }

    /// No run of it is under way.
    fn retire(&self) {
        UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner).retain(|other| !std::ptr::eq(&**other, self));
    }
}

impl Drop for Plan {
    /// Waits for a run that is under way.
    fn drop(&mut self) {
        let _ours = self.member.lock();
        self.inner.get_mut().plan = None;
    }
}

impl Inner {
    fn idle(&self) -> Result<()> {
        match self.run {
            Run::None => Ok(()),
            _ => fault(
                ALLHANDS_ERR_ACTIVE,
                "a run of this plan is under way; complete it with allhands_wait, or make another plan for a second one",
            ),
        }
    }

    /// # Safety
    /// As for [`Plan::start`].
    unsafe fn start(&mut self, mpi: &Mpi) -> Result<()> {
        self.idle()?;
        let Some(plan) = &mut self.plan else { return freed() };
        // SAFETY: the caller's promise; what is staged stays with the run.
        unsafe {
            let staged = self.task.stage(mpi)?;
            self.task.start(&staged, plan)?;
            self.run = Run::UnderWay(staged);
        }
        Ok(())
    }

    /// # Safety
    /// As for [`Plan::run`].
    unsafe fn run(&mut self, mpi: &Mpi) -> Result<()> {
        self.idle()?;
        let Some(plan) = &mut self.plan else { return freed() };
        // SAFETY: the caller's promise.
        unsafe { self.task.run(mpi, plan)? };
        Ok(())
    }

    /// Moves a run on that is under way.
    fn step(&mut self, patient: bool) {
        let Some(plan) = &mut self.plan else { return };
        self.run = match std::mem::replace(&mut self.run, Run::None) {
            Run::UnderWay(staged) => match if patient { plan.wait().map(|()| true) } else { plan.test() } {
                Ok(false) => Run::UnderWay(staged),
                Ok(true) => Run::Ended(staged, Ok(())),
                Err(error) => Run::Ended(staged, Err(error.into())),
            },
            other => other,
        };
    }

    /// Tells the end of a run, if it has ended; whether none is under way.
    fn end(&mut self, mpi: &Mpi) -> Result<bool> {
        match std::mem::replace(&mut self.run, Run::None) {
            Run::None => Ok(true),
            Run::UnderWay(staged) => {
                self.run = Run::UnderWay(staged);
                Ok(false)
            }
            Run::Ended(staged, outcome) => {
                outcome?;
                // SAFETY: the run was begun on the program's memory, which stays until its end is told.
                unsafe { self.task.unstage(mpi, &staged)? };
                Ok(true)
            }
        }
    }
}

fn freed<T>() -> Result<T> {
    fault(ALLHANDS_ERR_PLAN, "the plan was freed; make another one")
}
