//! Running a plan to its end.

use std::cell::RefCell;
use std::rc::Rc;

use super::{Means, PlanState};
use crate::error::{Error, Result};
use crate::program::Buffers;
use crate::rank::RankState;

/// Gives the memory of a blocking run back when it ends, also by a panic in a user's operation.
struct Running<'a>(&'a mut PlanState);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

/// Calls the MPI library's own collective, if the plan is for that.
///
/// # Safety
/// As for [`Engine::begin`](crate::engine::Engine::begin), until this returns.
pub(super) unsafe fn call_library(
    core: &mut PlanState,
    rank: &RankState,
    buffers: Buffers,
    input: *const u8,
    output: *mut u8,
) -> Result<()> {
    let Means::Library(library) = &mut core.means else {
        return Err(Error::Operation("the plan is not for the MPI library's own collective; run it".into()));
    };
    // SAFETY: the caller keeps the buffers until this function returns. MPI waits: others may enter meanwhile.
    let ran = rank.world.gate.away(|| unsafe { library.0.run(buffers, input, output) });
    ran.map_err(|error| rank.give_up(core.scope, error))
}

/// Runs a plan, of which no run is under way, from beginning to end.
///
/// # Safety
/// As for [`Engine::begin`](crate::engine::Engine::begin), until this returns.
#[inline(always)]
pub(super) unsafe fn run(
    core: &mut PlanState,
    rank: &RankState,
    buffers: Buffers,
    input: *const u8,
    output: *mut u8,
) -> Result<()> {
    let Means::Schedule(scheduled) = &mut core.means else {
        // SAFETY: the caller's promise.
        return unsafe { run_library(core, rank, buffers, input, output) };
    };
    // SAFETY: the caller keeps the buffers until this function returns, and `Running` ends the run before that.
    if let Err(error) = unsafe { scheduled.begin(buffers, input, output) } {
        return Err(rank.give_up(core.scope, error));
    }
    let running = Running(core);
    if running.0.run_short() {
        std::mem::forget(running);
        return Ok(());
    }
    complete(running, rank, buffers)
}

/// Runs to its end what has begun.
#[inline(never)]
fn complete(running: Running<'_>, rank: &RankState, buffers: Buffers) -> Result<()> {
    let scope = running.0.scope;
    let mut outcome = running.0.step(buffers, true);
    if matches!(outcome, Ok(false)) {
        let signature = running.0.signature.clone();
        let core = RefCell::new(&mut *running.0);
        let far = || core.borrow().awaits_far(buffers);
        let ready = || {
            rank.progress();
            match core.borrow_mut().step(buffers, true) {
                Ok(false) => false,
                ended => {
                    outcome = ended;
                    true
                }
            }
        };
        let awaited = |gone: &dyn Fn(usize) -> bool| core.borrow().awaited(buffers, gone);
        rank.world.wait(scope, &signature, &far, ready, awaited).map_err(|error| rank.give_up(scope, error))?;
    }
    outcome.map_err(|error| rank.give_up(scope, error))?;
    std::mem::forget(running);
    Ok(())
}

/// Calls the MPI library's own collective, which the plan is for, when everything under way is through.
///
/// # Safety
/// As for [`Engine::begin`](crate::engine::Engine::begin), until this returns.
#[inline(never)]
unsafe fn run_library(
    core: &mut PlanState,
    rank: &RankState,
    buffers: Buffers,
    input: *const u8,
    output: *mut u8,
) -> Result<()> {
    let scope = core.scope;
    // While MPI blocks it moves nothing of ours on, and the others may wait for that before they come.
    let ready = || {
        rank.progress();
        rank.quiet(scope)
    };
    let waited = rank.world.wait(scope, &core.signature, &|| false, ready, |_| None);
    waited.map_err(|error| rank.give_up(scope, error))?;
    // SAFETY: the caller's promise.
    unsafe { call_library(core, rank, buffers, input, output) }
}

/// Waits for a run under way, if there is one.
pub(super) fn finish(core: &Rc<RefCell<PlanState>>, rank: &RankState) -> Result<()> {
    if core.borrow().under_way.is_none() {
        return Ok(());
    }
    let scope = core.borrow().scope;
    let mut outcome = core.borrow_mut().progress();
    if matches!(outcome, Ok(false)) {
        let signature = core.borrow().signature.clone();
        let far = || {
            let core = core.borrow();
            core.awaits_far(core.under_way.unwrap_or(Buffers::Apart))
        };
        let ready = || {
            rank.progress();
            outcome = core.borrow_mut().progress();
            !matches!(outcome, Ok(false))
        };
        let awaited = |gone: &dyn Fn(usize) -> bool| {
            let core = core.borrow();
            let buffers = core.under_way.unwrap_or(Buffers::Apart);
            core.awaited(buffers, gone)
        };
        let waited = rank.world.wait(scope, &signature, &far, ready, awaited);
        if waited.is_err() {
            outcome = waited.map(|()| true);
        }
    }
    rank.retire(core);
    let mut core = core.borrow_mut();
    core.under_way = None;
    if outcome.is_err() {
        core.abandon();
    }
    outcome.map(|_| ()).map_err(|error| rank.give_up(scope, error))
}
