//! From the first plan to `MPI_Finalize`: what plans are made with, which plans there are, and their end.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use allhands_call::Types;
use allhands_mpi::{Handle, Mpi};

use super::communicators;
use super::error::{Result, allhands_code::*, fault};
use super::plan::{Plan, forget_runs};

/// Plans by number, in the order in which they were made. Numbers are never used again.
static PLANS: RwLock<BTreeMap<usize, Arc<Plan>>> = RwLock::new(BTreeMap::new());
static NEXT: AtomicUsize = AtomicUsize::new(1);

/// MPI is being finalised.
static ENDED: AtomicBool = AtomicBool::new(false);

/// What plans are made with, if MPI is running.
pub(crate) fn types() -> Result<&'static Types> {
    static TYPES: OnceLock<Types> = OnceLock::new();
    static HOOKED: OnceLock<Result<()>> = OnceLock::new();
    let mpi = allhands_mpi::load()?;
    if ENDED.load(Ordering::Acquire) || mpi.finalized()? {
        return ended();
    }
    if !mpi.initialized()? {
        return fault(ALLHANDS_ERR_NOT_INITIALIZED, "MPI is not initialised; call MPI_Init before plans are made");
    }
    match HOOKED.get_or_init(|| hook(mpi)) {
        Ok(()) => Ok(TYPES.get_or_init(|| Types::new(mpi))),
        Err(why) => fault(why.code, why.sentence.clone()),
    }
}

fn ended<T>() -> Result<T> {
    fault(ALLHANDS_ERR_FINALIZED, "MPI was finalised, and all plans with it; use plans before MPI_Finalize")
}

/// MPI_Finalize begins with the attributes of MPI_COMM_SELF, while MPI still works: then plans end.
fn hook(mpi: &Mpi) -> Result<()> {
    // SAFETY: the function does what MPI asks of it, at any time.
    unsafe { mpi.at_finalize(finalizing)? };
    Ok(())
}

unsafe extern "C" fn finalizing(_: Handle, _: c_int, _: *mut c_void, _: *mut c_void) -> c_int {
    let _ = std::panic::catch_unwind(|| {
        ENDED.store(true, Ordering::Release);
        let plans = std::mem::take(&mut *PLANS.write().unwrap_or_else(PoisonError::into_inner));
        forget_runs();
        // In an order that is the same on every rank.
        plans.into_values().for_each(drop);
        communicators::forget();
    });
    0
}

/// Keeps a plan; its number.
pub(crate) fn keep(plan: Plan) -> usize {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    PLANS.write().unwrap_or_else(PoisonError::into_inner).insert(number, Arc::new(plan));
    number
}

/// The plan of a number.
pub(crate) fn find(number: usize) -> Result<Arc<Plan>> {
    match PLANS.read().unwrap_or_else(PoisonError::into_inner).get(&number) {
        Some(plan) => Ok(plan.clone()),
        None => missing(number),
    }
}

/// Takes the plan of a number out.
pub(crate) fn take(number: usize) -> Result<Arc<Plan>> {
    let plan = PLANS.write().unwrap_or_else(PoisonError::into_inner).remove(&number);
    plan.map_or_else(|| missing(number), Ok)
}

fn missing<T>(number: usize) -> Result<T> {
    if ENDED.load(Ordering::Acquire) {
        return ended();
    }
    fault(
        ALLHANDS_ERR_PLAN,
        match number {
            0 => "the plan is NULL; make it with one of the functions that end in _init",
            _ => "this is no plan, or one that was freed; make one with a function that ends in _init",
        },
    )
}
