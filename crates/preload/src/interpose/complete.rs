//! The calls that complete, start or free requests, ours and all others.

use std::ffi::{c_int, c_void};

use allhands_call::failure::{fault, raise};
use allhands_mpi::{Handle, Mpi};

use super::narrow;
use super::own::function;
use super::session::{self, Session, spent};
use super::status::{self, handles};
use super::theirs;
use crate::job::inside;
use crate::requests::{Failure, any, any_failed, any_prepared};

type Untyped = *mut c_void;
type Out = *mut c_int;

/// Makes a call that completes some of these requests, and tells what went wrong with ours.
fn checked(count: c_int, requests: Untyped, told: &Outcomes, call: impl FnOnce() -> c_int) -> c_int {
    spent(|| completed(count, requests, told, call))
}

fn completed(count: c_int, requests: Untyped, told: &Outcomes, call: impl FnOnce() -> c_int) -> c_int {
    if !any() && !narrow::any() && !any_failed() {
        return call();
    }
    let Ok(mpi) = allhands_mpi::load() else { return call() };
    // SAFETY: the program's array.
    let before = unsafe { handles(mpi, count, requests) };
    let code = call();
    if narrow::any() {
        // SAFETY: as above.
        let after = unsafe { handles(mpi, count, requests) };
        before
            .iter()
            .zip(after)
            .filter(|(before, after)| *before != after)
            .for_each(|(gone, _)| narrow::release(*gone));
    }
    match session::current() {
        // SAFETY: as above.
        Some(session) if code == 0 && any_failed() => unsafe { told.failures(session, &before, requests) },
        _ => code,
    }
}

function! { "Wait" "" (request: Untyped, status: Untyped), own => checked(1, request, &Outcomes::Code, own), None }
function! { "Waitall" "" (count: c_int, requests: Untyped, statuses: Untyped), own => {
    checked(count, requests, &all(statuses, count), own)
}, None }
function! { "Waitany" "" (count: c_int, requests: Untyped, index: Out, status: Untyped), own => {
    checked(count, requests, &Outcomes::Code, own)
}, None }
function! { "Waitsome" "" (count: c_int, requests: Untyped, done: Out, indices: Out, statuses: Untyped), own => {
    checked(count, requests, &Outcomes::Some { statuses, indices, count: done }, own)
}, None }
function! { "Test" "" (request: Untyped, flag: Out, status: Untyped), own => checked(1, request, &Outcomes::Code, own), None }
function! { "Testall" "" (count: c_int, requests: Untyped, flag: Out, statuses: Untyped), own => {
    checked(count, requests, &all(statuses, count), own)
}, None }
function! { "Testany" "" (count: c_int, requests: Untyped, index: Out, flag: Out, status: Untyped), own => {
    checked(count, requests, &Outcomes::Code, own)
}, None }
function! { "Testsome" "" (count: c_int, requests: Untyped, done: Out, indices: Out, statuses: Untyped), own => {
    checked(count, requests, &Outcomes::Some { statuses, indices, count: done }, own)
}, None }

function! { "Request_get_status_all" "" (count: c_int, requests: Untyped, flag: Out, statuses: Untyped),
own => own(), status::of_all(count, requests, flag, statuses) }
function! { "Request_get_status_any" "" (count: c_int, requests: Untyped, index: Out, flag: Out, status: Untyped),
own => own(), status::of_any(count, requests, (index, flag), status) }
function! { "Request_get_status_some" "" (count: c_int, requests: Untyped, done: Out, indices: Out, statuses: Untyped),
own => own(), status::of_some(count, requests, (done, indices), statuses) }

function! { "Start" "" (request: Untyped), own => spent(|| started(1, request, own)), None }
function! { "Startall" "" (count: c_int, requests: Untyped), own => spent(|| started(count, requests, own)), None }
function! { "Request_free" "" (request: Untyped), own => freed(request, own), None }
function! { "Cancel" "" (request: Untyped), own => cancelled(request, own), None }

fn all(statuses: Untyped, count: c_int) -> Outcomes {
    Outcomes::All { statuses, count: usize::try_from(count).unwrap_or(0) }
}

/// MPI starts them, and we the runs of ours among them.
fn started(count: c_int, requests: Untyped, own: impl FnOnce() -> c_int) -> c_int {
    if !any_prepared() && !theirs::any() {
        return own();
    }
    let Some(session) = session::current() else { return own() };
    // SAFETY: the program's array.
    let handles = unsafe { handles(session.job.mpi, count, requests) };
    let code = own();
    if code != 0 {
        return code;
    }
    if theirs::any() {
        inside(|| theirs::start(session, &handles));
    }
    let begun = inside(|| session.requests.start(&handles));
    if begun.is_some() { 0 } else { fault(session.job.mpi, "progress", session.job.mpi.world()) }
}

fn freed(request: Untyped, own: impl FnOnce() -> c_int) -> c_int {
    if narrow::any()
        && let Ok(mpi) = allhands_mpi::load()
    {
        // SAFETY: the program's variable.
        let handle = unsafe { mpi.abi().read_handle(request) };
        let code = unprepared(request, own);
        narrow::release(handle);
        return code;
    }
    unprepared(request, own)
}

/// Frees a request; if it is a persistent one of ours, with what belongs to it.
fn unprepared(request: Untyped, own: impl FnOnce() -> c_int) -> c_int {
    if any_prepared()
        && let Some(session) = session::current()
    {
        // SAFETY: the program's variable.
        let handle = unsafe { session.job.mpi.abi().read_handle(request) };
        inside(|| session.requests.free(handle));
    }
    if theirs::any()
        && let Ok(mpi) = allhands_mpi::load()
    {
        // SAFETY: the program's variable.
        let handle = unsafe { mpi.abi().read_handle(request) };
        inside(|| theirs::free(handle));
    }
    own()
}

/// MPI has no way to take a collective back.
fn cancelled(request: Untyped, own: impl FnOnce() -> c_int) -> c_int {
    if (any() || any_prepared())
        && let Some(session) = session::current()
    {
        // SAFETY: the program's variable.
        let handle = unsafe { session.job.mpi.abi().read_handle(request) };
        if inside(|| session.requests.has(handle)) == Some(true) {
            let code = session.job.mpi.constants().errors.request;
            allhands::raw::say("MPI_Cancel: a collective cannot be cancelled; wait for it");
            // SAFETY: a communicator of MPI's.
            unsafe { (session.job.mpi.raw().comm_call_errhandler)(session.job.mpi.world(), code) };
            return code;
        }
    }
    own()
}

/// Where the program reads how each of several requests ended.
enum Outcomes {
    /// One request: the code of the call.
    Code,
    /// All of them, in this array.
    All { statuses: *mut c_void, count: usize },
    /// Those that an array of so many indices names.
    Some { statuses: *mut c_void, indices: *const c_int, count: *const c_int },
}

impl Outcomes {
    /// Tells the program about those of `handles` that have failed and that its call has completed: the call's code.
    ///
    /// # Safety
    /// `requests` is the program's array, which had these handles before the call.
    unsafe fn failures(&self, session: &Session, handles: &[Handle], requests: Untyped) -> c_int {
        let (mpi, abi) = (session.job.mpi, session.job.mpi.abi());
        let mut codes = Vec::new();
        for (index, handle) in handles.iter().enumerate() {
            // SAFETY: the caller's promise.
            let now = unsafe { abi.read_handle(requests.byte_add(index * abi.handle_bytes())) };
            if now == *handle && !session.requests.has_prepared(*handle) {
                continue;
            }
            let Some(Failure { function, comm, error }) = session.requests.failure(*handle) else { continue };
            let comm = if session.comms.knows(comm) { comm } else { mpi.world() };
            codes.push((index, raise(mpi, function, comm, &error)));
        }
        // SAFETY: the caller's promise.
        unsafe { self.codes(mpi, &codes) }
    }

    /// # Safety
    /// The arrays are the program's, as the call has left them.
    unsafe fn codes(&self, mpi: &Mpi, codes: &[(usize, c_int)]) -> c_int {
        let Some(&(_, first)) = codes.first() else { return 0 };
        let (statuses, places): (_, Vec<usize>) = match *self {
            Outcomes::Code => return first,
            Outcomes::All { statuses, count } => (statuses, (0..count).collect()),
            Outcomes::Some { statuses, indices, count } => {
                // SAFETY: the caller's promise.
                let count = usize::try_from(unsafe { *count }).unwrap_or(0);
                // SAFETY: as above.
                (statuses, (0..count).map(|place| unsafe { *indices.add(place) } as usize).collect())
            }
        };
        if statuses != mpi.statuses_ignore().cast() {
            let integers = &mpi.constants().integers;
            let (stride, error) = (integers.status_bytes as usize, integers.status_error as usize);
            for (place, index) in places.into_iter().enumerate() {
                let code = codes.iter().find(|(failed, _)| *failed == index).map_or(0, |(_, code)| *code);
                // SAFETY: a status for each request that the call speaks of.
                unsafe { statuses.byte_add(place * stride + error).cast::<c_int>().write_unaligned(code) };
            }
        }
        mpi.constants().errors.in_status
    }
}
