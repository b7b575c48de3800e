//! `MPI_Request_get_status_all` and its kin where the MPI has none (before MPI 4.1): programs that look for them find ours. They ask
//! about one request after the other, and cannot tell an inactive persistent request from one that is complete.

use std::ffi::{c_int, c_void};

use allhands_mpi::{Handle, Mpi, RawStatus};

use super::own::native;

type Untyped = *mut c_void;
type Out = *mut c_int;

/// The handles of an array.
///
/// # Safety
/// It has so many.
pub(super) unsafe fn handles(mpi: &Mpi, count: c_int, requests: Untyped) -> Vec<Handle> {
    let abi = mpi.abi();
    // SAFETY: the caller's promise.
    let read = |index: usize| unsafe { abi.read_handle(requests.byte_add(index * abi.handle_bytes())) };
    (0..usize::try_from(count).unwrap_or(0)).map(read).collect()
}

/// Asks about one request: whether it is complete. `Err`: the code of a call that failed.
fn complete(request: Handle, status: Untyped) -> Result<bool, c_int> {
    let mut flag: c_int = 0;
    match native!("Request_get_status"(request, &raw mut flag, status)) {
        Some(0) => Ok(flag != 0),
        code => Err(code.unwrap_or(1)),
    }
}

/// The place of a status in an array, or that of none.
fn place(mpi: &Mpi, statuses: Untyped, index: usize) -> Untyped {
    match statuses == mpi.statuses_ignore().cast() {
        true => mpi.status_ignore().cast(),
        false => statuses.wrapping_byte_add(index * mpi.constants().integers.status_bytes as usize),
    }
}

pub(super) fn of_all(count: c_int, requests: Untyped, flag: Out, statuses: Untyped) -> Option<c_int> {
    let mpi = allhands_mpi::load().ok()?;
    // SAFETY: the program's array.
    let handles = unsafe { handles(mpi, count, requests) };
    let asked = handles.iter().enumerate().map(|(index, request)| complete(*request, place(mpi, statuses, index)));
    let all = asked.into_iter().try_fold(true, |all, one| one.map(|one| all && one));
    Some(all.map_or_else(|code| code, |all| write(flag, all.into())))
}

pub(super) fn of_any(count: c_int, requests: Untyped, (index, flag): (Out, Out), status: Untyped) -> Option<c_int> {
    let mpi = allhands_mpi::load().ok()?;
    // SAFETY: the program's array.
    let handles = unsafe { handles(mpi, count, requests) };
    let mut active = false;
    for (place, request) in handles.into_iter().enumerate().filter(|(_, request)| *request != mpi.request_null()) {
        active = true;
        match complete(request, status) {
            Ok(true) => return Some(write(index, place as c_int) | write(flag, 1)),
            Ok(false) => {}
            Err(code) => return Some(code),
        }
    }
    if !active {
        // An empty status, whose error MPI need not write.
        let _ = complete(mpi.request_null(), status);
        if status != mpi.status_ignore().cast() {
            let error = mpi.constants().integers.status_error as usize;
            write(status.wrapping_byte_add(error).cast(), 0);
        }
    }
    Some(write(index, mpi.constants().integers.undefined) | write(flag, (!active).into()))
}

pub(super) fn of_some(
    count: c_int,
    requests: Untyped,
    (done, indices): (Out, Out),
    statuses: Untyped,
) -> Option<c_int> {
    let mpi = allhands_mpi::load().ok()?;
    // SAFETY: the program's array.
    let handles = unsafe { handles(mpi, count, requests) };
    let (mut active, mut complete_ones) = (false, 0);
    for (index, request) in handles.into_iter().enumerate().filter(|(_, request)| *request != mpi.request_null()) {
        active = true;
        // What is not complete must leave no trace.
        let mut status = RawStatus::new();
        match complete(request, (&raw mut status).cast()) {
            Ok(true) => {}
            Ok(false) => continue,
            Err(code) => return Some(code),
        }
        if statuses != mpi.statuses_ignore().cast() {
            let bytes = mpi.constants().integers.status_bytes as usize;
            let (from, to) = ((&raw const status).cast::<u8>(), place(mpi, statuses, complete_ones));
            // SAFETY: a status of the MPI's, for which the program's array has room.
            unsafe { std::ptr::copy_nonoverlapping(from, to.cast(), bytes) };
        }
        write(indices.wrapping_add(complete_ones), index as c_int);
        complete_ones += 1;
    }
    let number = if active { complete_ones as c_int } else { mpi.constants().integers.undefined };
    Some(write(done, number))
}

/// Writes a variable of the program's; success.
fn write(to: Out, value: c_int) -> c_int {
    // SAFETY: the program gave its address for this.
    unsafe { *to = value };
    0
}
