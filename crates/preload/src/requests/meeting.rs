//! Functions on windows and files, and some that make communicators, in which all ranks may wait for each other while runs of ours
//! are under way.
//!
//! **With a meeting.** Where all ranks of a communicator know that runs may be under way (`Member::requests`), a window or a file that
//! is made on it gets a communicator of ours for meetings. A function that waits for all its ranks begins with a barrier there,
//! which moves runs on. When that is over all ranks are in the function, so it waits for no rank that waits for a run. (The
//! program's own communicator would not do: MPI lets ranks call functions on a window and collectives in different orders.)
//!
//! **Without one**, on windows and files that are older than the first request of their communicator, and where no communicator has
//! just the ranks that are waited for, ranks cannot agree on a barrier: runs get up to a second to be through ([`linger`]). A rank
//! that waits for a run before it comes lets it be through as soon as it does so. To wait for that as long as it takes would be
//! wrong: MPI lets ranks begin their part of the run after the function, if that is on another communicator. So the limit is: where
//! a rank comes to complete a run more than a second after the others have come here, they wait for ever. Where a rank comes to
//! begin it only afterwards, the second is lost, once for each run.
//!
//! Locks, and what completes or starts an access to another rank's window, are not ours: they wait for a rank only if that is in
//! the way, and to linger there would cost what a program gains by them.

// Functions have as many arguments as MPI's.
#![allow(clippy::too_many_arguments)]

use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_longlong, c_void};
use std::ptr::null_mut;
use std::sync::{LazyLock, Mutex};

use allhands_mpi::Handle;

use super::blocking::{alone, arrive, awaited, linger, until};
use super::{any, lock, requested};
use crate::entries::{function, narrowed, native};
use crate::session::{self, Session};

type Place = *mut c_void;
type Offset = isize;

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Window,
    File,
}

impl Kind {
    /// The handle in a word of the program's: MPICH's files are addresses, all else is as wide as a communicator.
    fn handle(self, session: &Session, word: Handle) -> (Kind, Handle) {
        match self {
            Kind::Window => (self, session.mpi.abi().handle(word)),
            Kind::File => (self, word),
        }
    }

    /// The same of a variable of the program's.
    ///
    /// # Safety
    /// It holds a handle of this kind.
    unsafe fn read(self, session: &Session, place: Place) -> (Kind, Handle) {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                Kind::Window => (self, session.mpi.abi().read_handle(place)),
                Kind::File => (self, place.cast::<Handle>().read()),
            }
        }
    }
}

/// How the ranks of a window or a file meet.
#[derive(Clone, Copy)]
enum Meeting {
    /// There is nobody to meet.
    Alone,
    /// In barriers on a communicator of ours.
    On(Handle),
}

impl Meeting {
    fn end(self, session: &Session) {
        if let Meeting::On(comm) = self {
            let _ = session.mpi.comm_free(comm);
        }
    }
}

/// Those who can.
static MEETINGS: LazyLock<Mutex<HashMap<(Kind, Handle), Meeting>>> = LazyLock::new(Mutex::default);

/// A window or a file is made on a communicator.
fn made(kind: Kind, comm: Handle, new: Place, own: impl FnOnce() -> c_int) -> c_int {
    let Some(session) = session::current() else { return own() };
    let comm = session.mpi.abi().handle(comm);
    // Before the function, in which ranks may fail alone.
    let meeting = match agreed(session, comm) {
        Ok(meeting) => meeting,
        Err(code) => return code,
    };
    let code = own();
    match meeting {
        Some(meeting) if code == 0 => {
            // SAFETY: MPI has written the handle there.
            let key = unsafe { kind.read(session, new) };
            lock(&MEETINGS).insert(key, meeting);
        }
        Some(meeting) => meeting.end(session),
        None => {}
    }
    code
}

/// All ranks of a communicator come, and agree on how to meet from now on, if they can; or the code of what went wrong.
fn agreed(session: &Session, comm: Handle) -> Result<Option<Meeting>, c_int> {
    if alone(session, comm) {
        return Ok(Some(Meeting::Alone));
    }
    let meets = session.comms.has_requests(comm);
    let arrived = arrive(session, comm);
    if arrived != 0 {
        return Err(arrived);
    }
    let split = || session.mpi.comm_split(comm, Some(0), 0).ok().flatten();
    Ok(meets.then(|| session::inside(split).flatten()).flatten().map(Meeting::On))
}

/// All ranks of a window or a file come to a function.
fn together(kind: Kind, word: Handle, own: impl FnOnce() -> c_int) -> c_int {
    if !requested() {
        return own();
    }
    let Some(session) = session::current() else { return own() };
    match met(session, kind.handle(session, word)) {
        0 => own(),
        code => code,
    }
}

/// A window or a file ends.
fn ended(kind: Kind, place: Place, own: impl FnOnce() -> c_int) -> c_int {
    let Some(session) = session::current() else { return own() };
    // SAFETY: the program's variable.
    let key = unsafe { kind.read(session, place) };
    let arrived = met(session, key);
    if arrived != 0 {
        return arrived;
    }
    let code = own();
    let meeting = (code == 0).then(|| lock(&MEETINGS).remove(&key)).flatten();
    if let Some(meeting) = meeting {
        meeting.end(session);
    }
    code
}

/// Waits until all ranks are here, if they have agreed to meet; else gives runs a while. The code of what went wrong.
fn met(session: &Session, key: (Kind, Handle)) -> c_int {
    let meeting = lock(&MEETINGS).get(&key).copied();
    match meeting {
        Some(Meeting::Alone) => 0,
        Some(Meeting::On(comm)) => {
            awaited(session, session.mpi.status_ignore().cast(), || 0, |request| native!("Ibarrier"(comm, request)))
        }
        None => {
            linger(session);
            0
        }
    }
}

/// Before a function that waits for ranks of which no communicator knows: gives runs a while.
fn apart(own: impl FnOnce() -> c_int) -> c_int {
    if any()
        && let Some(session) = session::current()
    {
        linger(session);
    }
    own()
}

macro_rules! makes {
    ($($kind:ident $name:literal ($($arg:ident: $type:ty),*) on $comm:ident to $new:ident;)*) => {$(
        function! { $name "" ($($arg: $type),*), own => made(Kind::$kind, $comm, $new, own), None }
    )*};
}

makes! {
    Window "Win_create" (base: Place, size: isize, unit: c_int, info: Handle, comm: Handle, new: Place) on comm to new;
    Window "Win_allocate" (size: isize, unit: c_int, info: Handle, comm: Handle, base: Place, new: Place) on comm to new;
    Window "Win_allocate_shared" (size: isize, unit: c_int, info: Handle, comm: Handle, base: Place, new: Place) on comm to new;
    Window "Win_create_dynamic" (info: Handle, comm: Handle, new: Place) on comm to new;
    File "File_open" (comm: Handle, name: *const c_char, mode: c_int, info: Handle, new: Place) on comm to new;
}

macro_rules! meets {
    ($($kind:ident $name:literal ($($arg:ident: $type:ty),*) of $of:ident;)*) => {$(
        function! { $name "" ($($arg: $type),*), own => together(Kind::$kind, $of, own), None }
    )*};
}

meets! {
    Window "Win_fence" (assert: c_int, window: Handle) of window;
    File "File_set_view"
        (file: Handle, offset: Offset, element: Handle, datatype: Handle, form: *const c_char, info: Handle) of file;
    File "File_set_size" (file: Handle, size: Offset) of file;
    File "File_preallocate" (file: Handle, size: Offset) of file;
    File "File_set_atomicity" (file: Handle, atomic: c_int) of file;
    File "File_seek_shared" (file: Handle, offset: Offset, whence: c_int) of file;
    File "File_sync" (file: Handle) of file;
    File "File_read_all_end" (file: Handle, buffer: Place, status: Place) of file;
    File "File_write_all_end" (file: Handle, buffer: Place, status: Place) of file;
    File "File_read_at_all_end" (file: Handle, buffer: Place, status: Place) of file;
    File "File_write_at_all_end" (file: Handle, buffer: Place, status: Place) of file;
    File "File_read_ordered_end" (file: Handle, buffer: Place, status: Place) of file;
    File "File_write_ordered_end" (file: Handle, buffer: Place, status: Place) of file;
}

/// The same with `int` counts, and with large ones.
macro_rules! meets_counted {
    ($($name:literal ($file:ident: Handle $(, $arg:ident: $type:ty)*);)*) => {$(
        const _: () = {
            type Count = c_int;
            function! { $name "" ($file: Handle $(, $arg: $type)*), own => together(Kind::File, $file, own), None }
        };
        const _: () = {
            type Count = c_longlong;
            function! { $name "_c" ($file: Handle $(, $arg: $type)*), own => together(Kind::File, $file, own),
                narrowed!($name ($file: Handle $(, $arg: $type)*) arrays 0, request null_mut()) }
        };
    )*};
}

meets_counted! {
    "File_read_all" (file: Handle, buffer: Place, count: Count, datatype: Handle, status: Place);
    "File_write_all" (file: Handle, buffer: Place, count: Count, datatype: Handle, status: Place);
    "File_read_at_all" (file: Handle, offset: Offset, buffer: Place, count: Count, datatype: Handle, status: Place);
    "File_write_at_all" (file: Handle, offset: Offset, buffer: Place, count: Count, datatype: Handle, status: Place);
    "File_read_ordered" (file: Handle, buffer: Place, count: Count, datatype: Handle, status: Place);
    "File_write_ordered" (file: Handle, buffer: Place, count: Count, datatype: Handle, status: Place);
    "File_read_all_begin" (file: Handle, buffer: Place, count: Count, datatype: Handle);
    "File_write_all_begin" (file: Handle, buffer: Place, count: Count, datatype: Handle);
    "File_read_at_all_begin" (file: Handle, offset: Offset, buffer: Place, count: Count, datatype: Handle);
    "File_write_at_all_begin" (file: Handle, offset: Offset, buffer: Place, count: Count, datatype: Handle);
    "File_read_ordered_begin" (file: Handle, buffer: Place, count: Count, datatype: Handle);
    "File_write_ordered_begin" (file: Handle, buffer: Place, count: Count, datatype: Handle);
}

function! { "Win_free" "" (window: Place), own => ended(Kind::Window, window, own), None }
function! { "File_close" "" (file: Place), own => ended(Kind::File, file, own), None }

function! { "Comm_create_group" "" (comm: Handle, group: Handle, tag: c_int, new: Place), own => apart(own), None }
function! { "Intercomm_create" ""
(comm: Handle, leader: c_int, peer: Handle, remote: c_int, tag: c_int, new: Place), own => apart(own), None }
function! { "Intercomm_merge" "" (comm: Handle, high: c_int, new: Place), own => apart(own), None }

// The others complete what they do with this rank's window: that can be asked for.
function! { "Win_wait" "" (window: Handle), own => {
    let (true, Some(session)) = (any(), session::current()) else { return own() };
    until(session, own, || {
        let mut flag: c_int = 0;
        let code = native!("Win_test" (window, &raw mut flag))?;
        (code != 0 || flag != 0).then_some(code)
    })
}, None }

// MPICH looks before it moves messages on, and a collective of ours has not moved them: what others completed before such a
// collective is there at the second look.
function! { "Win_test" "" (window: Handle, flag: *mut c_int), own => {
    let code = own();
    // SAFETY: the program's variable, in which MPI has just written.
    let again = code == 0 && session::current().is_some() && unsafe { flag.read() } == 0;
    if again { own() } else { code }
}, None }
