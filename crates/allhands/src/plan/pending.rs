//! Collectives under way, as their callers hold them.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use super::running::finish;
use super::{Plan, PlanState};
use crate::error::Result;
use crate::kernels::Element;
use crate::rank::RankState;

/// A collective that runs while other work is done: see [`Plan::during`].
pub struct UnderWay<'a> {
    pub(super) core: &'a Rc<RefCell<PlanState>>,
    pub(super) rank: &'a Arc<RankState>,
}

impl UnderWay<'_> {
    /// Moves on without waiting; whether the collective is complete on this rank.
    pub fn test(&mut self) -> Result<bool> {
        let _inside = self.rank.enter();
        self.rank.progress();
        self.core.borrow_mut().progress()
    }
}

/// Ends a run on the caller's buffers when the work beside it panics.
pub(super) struct Ending<'a> {
    pub(super) core: &'a Rc<RefCell<PlanState>>,
    pub(super) rank: &'a Arc<RankState>,
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        let _inside = self.rank.enter();
        self.rank.retire(self.core);
        let mut core = self.core.borrow_mut();
        core.abandon();
        core.under_way = None;
    }
}

/// A collective under way.
#[must_use = "a collective under way is completed by wait"]
pub struct Pending<'a, T: Element> {
    pub(super) plan: &'a mut Plan<T>,
    pub(super) output: &'a mut [T],
    pub(super) done: bool,
}

impl<T: Element> Pending<'_, T> {
    /// Moves on without waiting; whether the result is in the output.
    pub fn test(&mut self) -> Result<bool> {
        if self.done {
            return Ok(true);
        }
        match self.plan.test() {
            Ok(true) => self.complete().map(|()| true),
            Ok(false) => Ok(false),
            Err(error) => {
                self.done = true;
                Err(error)
            }
        }
    }

    /// Waits for the result.
    pub fn wait(mut self) -> Result<()> {
        if self.done { Ok(()) } else { self.complete() }
    }

    fn complete(&mut self) -> Result<()> {
        let rank = self.plan.rank.clone();
        let _inside = rank.enter();
        self.done = true;
        finish(&self.plan.core, &self.plan.rank)?;
        let core = self.plan.core.borrow();
        let (_, own) = core.own.as_ref().expect("a run under way has buffers");
        let output = core.output.min(self.output.len());
        // SAFETY: the plan's own output holds that many elements, written by the run or zero.
        unsafe {
            match core.sums {
                None => std::ptr::copy_nonoverlapping(own.as_ptr().cast(), self.output.as_mut_ptr(), output),
                Some(_) => core.round_to(self.output.as_mut_ptr().cast(), output),
            }
        }
        Ok(())
    }
}

impl<T: Element> Drop for Pending<'_, T> {
    /// Waits; a result that nobody asked for is still written.
    fn drop(&mut self) {
        if !self.done && !std::thread::panicking() {
            let _ = self.complete();
        }
    }
}
