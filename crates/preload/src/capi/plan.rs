//! A plan as C holds it: a collective on the program's memory.
//!
//! Everything of a communicator is touched under its group's lock only, which is held while a rank waits if nothing else can need
//! it: no other communicator's plan is under way. Otherwise waiting is a loop that moves all of them on, because ranks may wait for
//! them in different orders.

use std::cell::UnsafeCell;
use std::ffi::{CStr, CString};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use allhands::raw::RawPlan;
use allhands_mpi::Mpi;

use super::arguments::Types;
use super::error::{Fault, Result, allhands_code::*, fault};
use crate::collectives::Task;
use crate::comms::Member;
use crate::memory::Region;

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
    /// Copies of what does not lie together.
    from: Vec<u128>,
    to: Vec<u128>,
    run: Run,
    /// Derived datatypes that the task's memory has.
    _types: Types,
}

/// The last run.
enum Run {
    /// There is none, or its end is known to the program.
    None,
    UnderWay,
    Ended(Result<()>),
}

// SAFETY: what is inside is touched under the lock of the communicator's group only, as `RawPlan` asks; the program's memory may be
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
    pub(crate) fn new(mpi: &'static Mpi, member: Arc<Member>, plan: RawPlan, task: Task, types: Types) -> Plan {
        let text = |text: String| CString::new(text).unwrap_or_default();
        let (algorithm, explanation) = (text(plan.algorithm()), text(plan.explain()));
        let copy = |region: &Region| match region.direct() {
            Some(_) => Vec::new(),
            None => vec![0u128; region.bytes().div_ceil(16)],
        };
        let from = task.input.as_ref().map(copy).unwrap_or_default();
        let to = copy(&task.output);
        let inner = Inner { plan: Some(plan), task, from, to, run: Run::None, _types: types };
        Plan { mpi, member, inner: UnsafeCell::new(inner), algorithm, explanation }
    }

    pub(crate) fn algorithm(&self) -> &CStr {
        &self.algorithm
    }

    pub(crate) fn explanation(&self) -> &CStr {
        &self.explanation
    }

    /// Touches what is inside, under the group's lock.
    fn with<R>(&self, act: impl FnOnce(&mut Inner) -> Result<R>) -> Result<R> {
        let _group = self.member.group()?;
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
        let mut looks = 0u32;
        loop {
            let others = self.others();
            if others.is_empty() {
                let outcome = self.with(|inner| inner.wait(self.mpi));
                self.retire();
                return outcome;
            }
            if self.look()? {
                return Ok(());
            }
            others.iter().for_each(|other| other.nudge());
            rest(self.mpi, &mut looks);
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
            inner.step();
            inner.end(self.mpi)
        });
        if !matches!(through, Ok(false)) {
            self.retire();
        }
        through
    }

    /// Moves on, unless another thread is there.
    fn nudge(&self) {
        if let Some(_group) = self.member.group_if_free() {
            // SAFETY: as in `with`.
            unsafe { &mut *self.inner.get() }.step();
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
        if let Ok(_group) = self.member.group() {
            self.inner.get_mut().plan = None;
        }
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
        // SAFETY: the caller's promise.
        unsafe {
            let (from, to) = self.given(mpi)?;
            let plan = self.plan()?;
            match from {
                Some(from) => plan.start(from, to)?,
                None => plan.start_in_place(to)?,
            }
        }
        self.run = Run::UnderWay;
        Ok(())
    }

    /// # Safety
    /// As for [`Plan::run`].
    unsafe fn run(&mut self, mpi: &Mpi) -> Result<()> {
        self.idle()?;
        // SAFETY: the caller's promise.
        unsafe {
            let (from, to) = self.given(mpi)?;
            let plan = self.plan()?;
            match from {
                Some(from) => plan.run(from, to)?,
                None => plan.run_in_place(to)?,
            }
            self.deliver(mpi)
        }
    }

    /// Moves a run on that is under way.
    fn step(&mut self) {
        let Run::UnderWay = self.run else { return };
        self.run = match self.plan().and_then(|plan| Ok(plan.test()?)) {
            Ok(false) => Run::UnderWay,
            Ok(true) => Run::Ended(Ok(())),
            Err(fault) => Run::Ended(Err(fault)),
        };
    }

    /// Waits for a run that is under way.
    fn wait(&mut self, mpi: &Mpi) -> Result<()> {
        if let Run::UnderWay = self.run {
            self.run = Run::Ended(self.plan().and_then(|plan| Ok(plan.wait()?)));
        }
        self.end(mpi).map(|_| ())
    }

    /// Tells the end of a run, if it has ended; whether none is under way.
    fn end(&mut self, mpi: &Mpi) -> Result<bool> {
        match std::mem::replace(&mut self.run, Run::None) {
            Run::None => Ok(true),
            Run::UnderWay => {
                self.run = Run::UnderWay;
                Ok(false)
            }
            Run::Ended(outcome) => {
                outcome?;
                // SAFETY: the run was begun on the program's memory, which stays until its end is told.
                unsafe { self.deliver(mpi)? };
                Ok(true)
            }
        }
    }

    fn plan(&mut self) -> Result<&mut RawPlan> {
        self.plan.as_mut().ok_or_else(|| Fault { code: ALLHANDS_ERR_PLAN, sentence: "the plan was freed".into() })
    }

    /// Where the input lies, unless that is in place, and where the output goes.
    ///
    /// # Safety
    /// As for [`Plan::start`].
    unsafe fn given(&mut self, mpi: &Mpi) -> Result<(Option<*const u8>, *mut u8)> {
        let Inner { task, from, to, .. } = self;
        let target = place(&task.output, to);
        let (region, at) = match &task.input {
            Some(input) => (input, place(input, from)),
            None => (&task.output, target),
        };
        if region.direct().is_none() {
            // SAFETY: the caller's promise; the copy has room. No rank is left out of MPI_COMM_SELF.
            unsafe { region.pack(mpi, mpi.comm_self(), at)? };
        }
        Ok((task.input.as_ref().map(|_| at.cast_const()), target))
    }

    /// Puts the result where the program wants it.
    ///
    /// # Safety
    /// As for [`Plan::start`].
    unsafe fn deliver(&mut self, mpi: &Mpi) -> Result<()> {
        let output = &self.task.output;
        if output.direct().is_none() && !self.task.gives {
            // SAFETY: the caller's promise; the copy holds as many bytes.
            unsafe { output.unpack(mpi, mpi.comm_self(), self.to.as_ptr().cast())? };
        }
        Ok(())
    }
}

/// Where the data lie together.
fn place(region: &Region, copy: &mut [u128]) -> *mut u8 {
    match region.direct() {
        Some(at) if !at.is_null() => at,
        // Of nothing, or its copy.
        _ => copy.as_mut_ptr().cast(),
    }
}

/// Between two looks: MPI moves on, and the core is given away, the longer the more often nothing has happened.
fn rest(mpi: &Mpi, looks: &mut u32) {
    let integers = &mpi.constants().integers;
    let _ = mpi.iprobe(integers.any_source, integers.any_tag, mpi.comm_self());
    *looks += 1;
    match *looks {
        ..100 => std::hint::spin_loop(),
        100..400 => std::thread::yield_now(),
        _ => std::thread::sleep(Duration::from_micros(100)),
    }
}
