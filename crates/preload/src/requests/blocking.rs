//! Calls that wait for other ranks, while runs of ours are under way: these move on meanwhile.

// One text serves two widths of counts, and functions have as many arguments as MPI's.
#![allow(clippy::too_many_arguments)]

use std::ffi::{c_int, c_longlong, c_void};
use std::ptr::null_mut;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use allhands_mpi::Handle;

use super::{any, lock, requested};
use crate::entries::{function, narrowed, native};
use crate::failure::fault;
use crate::session::{self, Session};

/// Between two looks: first at once, then letting others run, then asleep.
#[derive(Default)]
pub(super) struct Patience {
    looks: u32,
}

const SPINS: u32 = 20;
const YIELDS: u32 = 500;
const NAP: Duration = Duration::from_micros(50);

impl Patience {
    pub(super) fn pause(&mut self) {
        self.looks += 1;
        if self.looks < SPINS {
            std::hint::spin_loop();
        } else if self.looks < YIELDS {
            std::thread::yield_now();
        } else {
            std::thread::sleep(NAP);
        }
    }
}

/// Tries until there is a code, moving runs on; when none is under way any more, the MPI's own function may wait.
pub(super) fn until(
    session: &Session,
    own: impl FnOnce() -> c_int,
    mut attempt: impl FnMut() -> Option<c_int>,
) -> c_int {
    let mut patience = Patience::default();
    loop {
        if session::inside(|| session.requests.progress(session)).is_none() {
            return fault(session.mpi, "progress", session.mpi.world());
        }
        if let Some(code) = attempt() {
            return code;
        }
        if !any() {
            return own();
        }
        patience.pause();
    }
}

/// A call that blocks: with runs under way, its non-blocking form and a loop.
fn patiently(
    status: *mut c_void,
    own: impl FnOnce() -> c_int,
    begin: impl FnOnce(*mut c_void) -> Option<c_int>,
) -> c_int {
    if !any() {
        return own();
    }
    match session::current() {
        Some(session) => awaited(session, status, own, begin),
        None => own(),
    }
}

/// The same, for a call that has begun to wait for others.
pub(super) fn awaited(
    session: &Session,
    status: *mut c_void,
    own: impl FnOnce() -> c_int,
    begin: impl FnOnce(*mut c_void) -> Option<c_int>,
) -> c_int {
    let mut request = session.mpi.request_null();
    match begin((&raw mut request).cast()) {
        None => {
            linger(session);
            own()
        }
        Some(0) => finished(session, &mut request, status),
        Some(code) => code,
    }
}

/// Waits for one request of MPI's.
fn finished(session: &Session, request: &mut Handle, status: *mut c_void) -> c_int {
    let (raw, request) = (session.mpi.raw(), &raw mut *request);
    // SAFETY: a request of MPI's, and the program's status.
    let wait = || unsafe { (raw.wait)(request, status.cast()) };
    until(session, wait, || {
        let mut flag = 0;
        // SAFETY: as above.
        let code = unsafe { (raw.test)(request, &mut flag, status.cast()) };
        (code != 0 || flag != 0).then_some(code)
    })
}

/// The MPI's own blocking collective: its non-blocking form where every rank of the communicator knows that runs may be under way.
pub(crate) fn instead(
    session: &Session,
    comm: Handle,
    own: impl FnOnce() -> c_int,
    begin: impl FnOnce(*mut c_void) -> Option<c_int>,
) -> c_int {
    if !requested() {
        return own();
    }
    if session.comms.has_requests(comm) {
        return awaited(session, session.mpi.status_ignore().cast(), own, begin);
    }
    if !alone(session, comm) {
        linger(session);
    }
    own()
}

/// Whether a communicator has no other rank to wait for.
pub(super) fn alone(session: &Session, comm: Handle) -> bool {
    let mpi = session.mpi;
    comm != mpi.constants().handles.comm_null && mpi.comm_size(comm) == Ok(1) && mpi.comm_test_inter(comm) == Ok(false)
}

/// Waits until all ranks of a communicator are in a call, where they know alike that runs may be under way; else gives runs a while.
/// The code of what went wrong.
pub(super) fn arrive(session: &Session, comm: Handle) -> c_int {
    instead(session, comm, || 0, |request| native!("Ibarrier"(comm, request)))
}

/// What is left of the time that runs may take before a call that does not move them on.
static GRACE: Mutex<Duration> = Mutex::new(Duration::ZERO);
const MOST_GRACE: Duration = Duration::from_secs(1);

/// A run has begun: it may take its time.
pub(super) fn grant() {
    *lock(&GRACE) = MOST_GRACE;
}

/// Before a call that does not move runs on: gives them a while to be through. Those that need what a rank does after it, are not.
pub(crate) fn linger(session: &Session) {
    if !any() {
        return;
    }
    let (began, grace, mut patience) = (Instant::now(), *lock(&GRACE), Patience::default());
    while any() && began.elapsed() < grace {
        if session::inside(|| session.requests.progress(session)).is_none() {
            return;
        }
        patience.pause();
    }
    let mut left = lock(&GRACE);
    *left = left.saturating_sub(began.elapsed());
}

/// A function with `int` counts, and with large ones, whose non-blocking form takes these arguments and a request.
macro_rules! blocking {
    ($name:literal ($($arg:ident: $type:ty),*) as $begun:literal ($($given:ident),*), $status:expr) => {
        const _: () = {
            #[allow(dead_code)]
            type Count = c_int;
            function! { $name "" ($($arg: $type),*), own => {
                patiently($status, own, |request| native!($begun "" ($($given,)* request)))
            }, None }
        };
        const _: () = {
            #[allow(dead_code)]
            type Count = c_longlong;
            function! { $name "_c" ($($arg: $type),*), own => {
                patiently($status, own, |request| native!($begun "_c" ($($given,)* request)))
            }, narrowed!($name ($($arg: $type),*) arrays 0, request null_mut()) }
        };
    };
}

/// `MPI_STATUS_IGNORE`
fn ignored() -> *mut c_void {
    allhands_mpi::load().map_or(null_mut(), |mpi| mpi.status_ignore().cast())
}

blocking! { "Send" (buffer: *const c_void, count: Count, datatype: Handle, to: c_int, tag: c_int, comm: Handle)
as "Isend" (buffer, count, datatype, to, tag, comm), ignored() }
blocking! { "Ssend" (buffer: *const c_void, count: Count, datatype: Handle, to: c_int, tag: c_int, comm: Handle)
as "Issend" (buffer, count, datatype, to, tag, comm), ignored() }
blocking! { "Rsend" (buffer: *const c_void, count: Count, datatype: Handle, to: c_int, tag: c_int, comm: Handle)
as "Irsend" (buffer, count, datatype, to, tag, comm), ignored() }
blocking! { "Recv"
(buffer: *mut c_void, count: Count, datatype: Handle, from: c_int, tag: c_int, comm: Handle, status: *mut c_void)
as "Irecv" (buffer, count, datatype, from, tag, comm), status }
blocking! { "Mrecv" (buffer: *mut c_void, count: Count, datatype: Handle, message: *mut c_void, status: *mut c_void)
as "Imrecv" (buffer, count, datatype, message), status }
blocking! { "Sendrecv_replace"
(buffer: *mut c_void, count: Count, datatype: Handle, to: c_int, sent: c_int, from: c_int, received: c_int, comm: Handle,
 status: *mut c_void)
as "Isendrecv_replace" (buffer, count, datatype, to, sent, from, received, comm), status }

function! { "Sendrecv" ""
(send: *const c_void, count: c_int, datatype: Handle, to: c_int, tag: c_int, receive: *mut c_void, room: c_int, element: Handle,
 from: c_int, expected: c_int, comm: Handle, status: *mut c_void), own => {
    exchanged(status, own,
        |request| native!("Irecv" (receive, room, element, from, expected, comm, request)),
        |request| native!("Isend" (send, count, datatype, to, tag, comm, request)))
}, None }
function! { "Sendrecv" "_c"
(send: *const c_void, count: c_longlong, datatype: Handle, to: c_int, tag: c_int, receive: *mut c_void, room: c_longlong,
 element: Handle, from: c_int, expected: c_int, comm: Handle, status: *mut c_void), own => {
    exchanged(status, own,
        |request| native!("Irecv_c" (receive, room, element, from, expected, comm, request)),
        |request| native!("Isend_c" (send, count, datatype, to, tag, comm, request)))
}, narrowed!("Sendrecv" (send: *const c_void, count: c_longlong, datatype: Handle, to: c_int, tag: c_int, receive: *mut c_void,
    room: c_longlong, element: Handle, from: c_int, expected: c_int, comm: Handle, status: *mut c_void) arrays 0, request null_mut()) }

/// A receive and a send at once.
fn exchanged(
    status: *mut c_void,
    own: impl FnOnce() -> c_int,
    receive: impl FnOnce(*mut c_void) -> Option<c_int>,
    send: impl FnOnce(*mut c_void) -> Option<c_int>,
) -> c_int {
    let (true, Some(session)) = (any(), session::current()) else { return own() };
    let mut requests = [session.mpi.request_null(); 2];
    let [inbound, outbound] = &mut requests;
    match receive((&raw mut *inbound).cast()) {
        None => return own(),
        Some(0) => {}
        Some(code) => return code,
    }
    let sent = match send((&raw mut *outbound).cast()) {
        Some(0) => finished(session, outbound, ignored()),
        Some(code) => code,
        None => session.mpi.constants().errors.unsupported_operation,
    };
    match finished(session, inbound, status) {
        0 => sent,
        code => code,
    }
}

function! { "Probe" "" (from: c_int, tag: c_int, comm: Handle, status: *mut c_void), own => {
    probed(own, |flag| native!("Iprobe" (from, tag, comm, flag, status)))
}, None }
function! { "Mprobe" "" (from: c_int, tag: c_int, comm: Handle, message: *mut c_void, status: *mut c_void), own => {
    probed(own, |flag| native!("Improbe" (from, tag, comm, flag, message, status)))
}, None }

/// Looks for a message until one is there.
fn probed(own: impl FnOnce() -> c_int, look: impl Fn(*mut c_int) -> Option<c_int>) -> c_int {
    let (true, Some(session)) = (any(), session::current()) else { return own() };
    until(session, own, || {
        let mut flag = 0;
        let code = look(&mut flag)?;
        (code != 0 || flag != 0).then_some(code)
    })
}

/// A collective that is always the MPI's own.
macro_rules! theirs {
    ($name:literal $begun:literal ($($arg:ident: $type:ty),*) on $comm:ident) => {
        function! { $name "" ($($arg: $type),*), own => {
            match session::current() {
                Some(session) => instead(session, session.mpi.abi().handle($comm), own, |request| {
                    native!($begun ($($arg,)* request))
                }),
                None => own(),
            }
        }, None }
    };
}

type Send = *const c_void;
type Receive = *mut c_void;

theirs! { "Gather" "Igather"
(send: Send, sent: c_int, send_type: Handle, receive: Receive, received: c_int, receive_type: Handle, root: c_int, comm: Handle) on comm }
theirs! { "Gatherv" "Igatherv"
(send: Send, sent: c_int, send_type: Handle, receive: Receive, counts: Send, places: Send, receive_type: Handle, root: c_int,
 comm: Handle) on comm }
theirs! { "Scatter" "Iscatter"
(send: Send, sent: c_int, send_type: Handle, receive: Receive, received: c_int, receive_type: Handle, root: c_int, comm: Handle) on comm }
theirs! { "Scatterv" "Iscatterv"
(send: Send, counts: Send, places: Send, send_type: Handle, receive: Receive, received: c_int, receive_type: Handle, root: c_int,
 comm: Handle) on comm }
theirs! { "Scan" "Iscan" (send: Send, receive: Receive, count: c_int, datatype: Handle, op: Handle, comm: Handle) on comm }
theirs! { "Exscan" "Iexscan" (send: Send, receive: Receive, count: c_int, datatype: Handle, op: Handle, comm: Handle) on comm }
theirs! { "Alltoallw" "Ialltoallw"
(send: Send, sent: Send, from: Send, send_types: Send, receive: Receive, received: Send, to: Send, receive_types: Send,
 comm: Handle) on comm }
