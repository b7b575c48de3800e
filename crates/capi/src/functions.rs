//! Functions on plans, and about this library.

use std::ffi::{c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;

use super::abi::ALLHANDS_ABI_VERSION;
use super::error::{self, Result, allhands_code::*, fault, told};
use super::stage;

/// A collective on a communicator and on buffers: made once by a function that ends in `_init`, run as often as one likes, freed by
/// `allhands_free` or, at the latest, by `MPI_Finalize`.
///
/// A plan is used by one thread at a time. Threads may use different plans at once if MPI was initialised with
/// `MPI_THREAD_MULTIPLE`.
pub struct allhands_plan {
    _number: usize,
}

/// The number behind a pointer.
pub(crate) fn number(plan: *const allhands_plan) -> usize {
    plan.addr()
}

/// Does what a function is for; what it panics with stays here.
pub(crate) fn guarded(act: impl FnOnce() -> Result<()>) -> c_int {
    let outcome = catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(|_| {
        fault(ALLHANDS_ERR_INTERNAL, "a fault of this library, which the standard error tells; please report it")
    });
    told(outcome)
}

/// The version of the library, such as "0.1.0".
#[unsafe(no_mangle)]
pub extern "C" fn allhands_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// The version of the C interface of the library that the program runs with; `ALLHANDS_ABI_VERSION` is that of this header.
#[unsafe(no_mangle)]
pub extern "C" fn allhands_abi_version() -> c_int {
    ALLHANDS_ABI_VERSION
}

/// What a code means, in a few words; never NULL.
#[unsafe(no_mangle)]
pub extern "C" fn allhands_error_string(code: c_int) -> *const c_char {
    error::text(code).as_ptr()
}

/// What the last function that failed in this thread has to say: the fact, and what to do about it. Empty before one has failed,
/// never NULL. The text stays until a function fails again in this thread.
#[unsafe(no_mangle)]
pub extern "C" fn allhands_last_error() -> *const c_char {
    error::last()
}

/// Begins a run of the plan: reads the send buffer, writes the receive buffer. Until it is completed by `allhands_wait` or
/// `allhands_test` the program touches neither (it may read what it sends). All ranks of the communicator start the plan.
///
/// A run moves on while the program is in a function of this library, or with `ALLHANDS_PROGRESS=thread`.
///
/// Errors: `ALLHANDS_ERR_PLAN`, `ALLHANDS_ERR_ACTIVE` if a run of the plan is under way, `ALLHANDS_ERR_FINALIZED`,
/// `ALLHANDS_ERR_RANK` if another rank has failed, `ALLHANDS_ERR_MPI`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allhands_start(plan: *mut allhands_plan) -> c_int {
    // SAFETY: the program has promised its buffers when it made the plan.
    guarded(|| unsafe { stage::find(number(plan))?.start() })
}

/// Moves the run under way on, without waiting, and sets `*done` to 1 if it is complete, else to 0. Without a run it is complete.
///
/// Errors: `ALLHANDS_ERR_PLAN`, `ALLHANDS_ERR_ARGUMENT` if `done` is NULL, `ALLHANDS_ERR_FINALIZED`, and what happened to the run,
/// which is then over: `ALLHANDS_ERR_MISMATCH`, `ALLHANDS_ERR_RANK`, `ALLHANDS_ERR_MPI`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allhands_test(plan: *mut allhands_plan, done: *mut c_int) -> c_int {
    guarded(|| {
        if done.is_null() {
            return fault(ALLHANDS_ERR_ARGUMENT, "done is NULL; pass the address of an int");
        }
        let through = stage::find(number(plan))?.test()?;
        // SAFETY: the address of the program's int.
        unsafe { *done = through.into() };
        Ok(())
    })
}

/// Waits until the run under way is complete. Without one it returns at once.
///
/// Errors: as `allhands_test`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allhands_wait(plan: *mut allhands_plan) -> c_int {
    guarded(|| stage::find(number(plan))?.wait())
}

/// Runs the plan from beginning to end: what `allhands_start` and `allhands_wait` do, a little faster.
///
/// Errors: as both.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allhands_run(plan: *mut allhands_plan) -> c_int {
    // SAFETY: the program has promised its buffers when it made the plan.
    guarded(|| unsafe { stage::find(number(plan))?.run() })
}

/// Frees a plan and sets `*plan` to NULL. A run that is under way is completed first. NULL in `*plan` is no error.
///
/// All ranks of the communicator free the plan.
///
/// Errors: `ALLHANDS_ERR_ARGUMENT` if `plan` is NULL, `ALLHANDS_ERR_PLAN` if it was freed by another name, and what happened to a
/// run under way; the plan is gone all the same.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allhands_free(plan: *mut *mut allhands_plan) -> c_int {
    guarded(|| {
        if plan.is_null() {
            return fault(ALLHANDS_ERR_ARGUMENT, "plan is NULL; pass the address of the plan's pointer");
        }
        // SAFETY: the address of the program's pointer.
        match number(unsafe { plan.replace(null_mut()) }) {
            0 => Ok(()),
            number => stage::take(number)?.wait(),
        }
    })
}

/// Sets `*name` to the algorithm that the plan runs, with its parameters, such as "loc-bruck:fan=full"; "mpi" is the MPI's own. The
/// text stays until the plan is freed.
///
/// Errors: `ALLHANDS_ERR_PLAN`, `ALLHANDS_ERR_ARGUMENT` if `name` is NULL, `ALLHANDS_ERR_FINALIZED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allhands_algorithm(plan: *const allhands_plan, name: *mut *const c_char) -> c_int {
    guarded(|| {
        if name.is_null() {
            return fault(ALLHANDS_ERR_ARGUMENT, "name is NULL; pass the address of a const char pointer");
        }
        let plan = stage::find(number(plan))?;
        // SAFETY: the address of the program's pointer.
        unsafe { *name = plan.algorithm().as_ptr() };
        Ok(())
    })
}

/// Sets `*text` to a few lines that say which algorithm the plan runs, why, and what it sends. The text stays until the plan is freed.
///
/// Errors: as `allhands_algorithm`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allhands_explain(plan: *const allhands_plan, text: *mut *const c_char) -> c_int {
    guarded(|| {
        if text.is_null() {
            return fault(ALLHANDS_ERR_ARGUMENT, "text is NULL; pass the address of a const char pointer");
        }
        let plan = stage::find(number(plan))?;
        // SAFETY: the address of the program's pointer.
        unsafe { *text = plan.explanation().as_ptr() };
        Ok(())
    })
}
