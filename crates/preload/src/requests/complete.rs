//! The calls that complete, start or free requests, ours and all others.

use std::ffi::{c_int, c_void};
use std::sync::atomic::Ordering;

use allhands_mpi::Handle;

use super::status::{self, handles};
use super::{FAILED, PREPARED, Requests, Told, any, lock};
use crate::entries::function;
use crate::failure::fault;
use crate::{narrow, session};

type Place = *mut c_void;
type Out = *mut c_int;

/// Makes a call that completes some of these requests, and tells what went wrong with ours.
fn checked(count: c_int, requests: Place, told: &Told, call: impl FnOnce() -> c_int) -> c_int {
    if !any() && !narrow::any() && FAILED.load(Ordering::Acquire) == 0 {
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
        Some(session) if code == 0 && FAILED.load(Ordering::Acquire) > 0 => unsafe {
            session.requests.tell(session, &before, requests, told)
        },
        _ => code,
    }
}

function! { "Wait" "" (request: Place, status: Place), own => checked(1, request, &Told::Code, own), None }
function! { "Waitall" "" (count: c_int, requests: Place, statuses: Place), own => {
    checked(count, requests, &all(statuses, count), own)
}, None }
function! { "Waitany" "" (count: c_int, requests: Place, index: Out, status: Place), own => {
    checked(count, requests, &Told::Code, own)
}, None }
function! { "Waitsome" "" (count: c_int, requests: Place, done: Out, indices: Out, statuses: Place), own => {
    checked(count, requests, &Told::Some { statuses, indices, count: done }, own)
}, None }
function! { "Test" "" (request: Place, flag: Out, status: Place), own => checked(1, request, &Told::Code, own), None }
function! { "Testall" "" (count: c_int, requests: Place, flag: Out, statuses: Place), own => {
    checked(count, requests, &all(statuses, count), own)
}, None }
function! { "Testany" "" (count: c_int, requests: Place, index: Out, flag: Out, status: Place), own => {
    checked(count, requests, &Told::Code, own)
}, None }
function! { "Testsome" "" (count: c_int, requests: Place, done: Out, indices: Out, statuses: Place), own => {
    checked(count, requests, &Told::Some { statuses, indices, count: done }, own)
}, None }

function! { "Request_get_status_all" "" (count: c_int, requests: Place, flag: Out, statuses: Place),
own => own(), status::of_all(count, requests, flag, statuses) }
function! { "Request_get_status_any" "" (count: c_int, requests: Place, index: Out, flag: Out, status: Place),
own => own(), status::of_any(count, requests, (index, flag), status) }
function! { "Request_get_status_some" "" (count: c_int, requests: Place, done: Out, indices: Out, statuses: Place),
own => own(), status::of_some(count, requests, (done, indices), statuses) }

function! { "Start" "" (request: Place), own => started(1, request, own), None }
function! { "Startall" "" (count: c_int, requests: Place), own => started(count, requests, own), None }
function! { "Request_free" "" (request: Place), own => freed(request, own), None }
function! { "Cancel" "" (request: Place), own => cancelled(request, own), None }

fn all(statuses: Place, count: c_int) -> Told {
    Told::All { statuses, count: usize::try_from(count).unwrap_or(0) }
}

/// MPI starts them, and we the runs of ours among them.
fn started(count: c_int, requests: Place, own: impl FnOnce() -> c_int) -> c_int {
    if PREPARED.load(Ordering::Acquire) == 0 {
        return own();
    }
    let Some(session) = session::current() else { return own() };
    // SAFETY: the program's array.
    let handles = unsafe { handles(session.mpi, count, requests) };
    let code = own();
    if code != 0 {
        return code;
    }
    let begun = session::inside(|| {
        for request in handles {
            let prepared = lock(&session.requests.prepared).get(&request).cloned();
            if let Some(prepared) = prepared {
                prepared.start(session, request);
            }
        }
        session.requests.progress(session);
    });
    if begun.is_some() { 0 } else { fault(session.mpi, "progress", session.mpi.world()) }
}

fn freed(request: Place, own: impl FnOnce() -> c_int) -> c_int {
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
fn unprepared(request: Place, own: impl FnOnce() -> c_int) -> c_int {
    if PREPARED.load(Ordering::Acquire) > 0
        && let Some(session) = session::current()
    {
        // SAFETY: the program's variable.
        let handle = unsafe { session.mpi.abi().read_handle(request) };
        session::inside(|| session.requests.unprepare(handle));
    }
    own()
}

/// MPI has no way to take a collective back.
fn cancelled(request: Place, own: impl FnOnce() -> c_int) -> c_int {
    if (any() || PREPARED.load(Ordering::Acquire) > 0)
        && let Some(session) = session::current()
    {
        // SAFETY: the program's variable.
        let handle = unsafe { session.mpi.abi().read_handle(request) };
        if session::inside(|| session.requests.ours(handle)) == Some(true) {
            let code = session.mpi.constants().errors.request;
            eprintln!("allhands: MPI_Cancel: a collective cannot be cancelled; wait for it");
            // SAFETY: a communicator of MPI's.
            unsafe { (session.mpi.raw().comm_call_errhandler)(session.mpi.world(), code) };
            return code;
        }
    }
    own()
}

impl Requests {
    /// A persistent request goes.
    fn unprepare(&self, request: Handle) {
        let Some(prepared) = lock(&self.prepared).remove(&request) else { return };
        PREPARED.fetch_sub(1, Ordering::AcqRel);
        prepared.member.free_line(prepared.line);
        lock(&self.marks).free(prepared.mark);
    }
}
