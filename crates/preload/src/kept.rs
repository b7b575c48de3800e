//! Operations and datatypes of the program's that runs use, and that it frees before these are through.
//!
//! MPI lets a program free them at any time: a collective that is under way keeps them. Ours are called when their run gets there, by
//! the handles that the program gave, for its function may look at the datatype. So `MPI_Op_free` and `MPI_Type_free` of
//! what a run uses take the program's handle and no more; the object goes with the last run, or with the persistent
//! request, that uses it. Until then MPI gives its handle to nothing else.

use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use allhands_mpi::{Handle, Mpi};

use crate::entries::function;
use crate::session;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Operation,
    Datatype,
}

/// What runs use.
static USED: LazyLock<Mutex<Used>> = LazyLock::new(Mutex::default);
/// How many there are.
static COUNT: AtomicUsize = AtomicUsize::new(0);

#[derive(Default)]
struct Used(HashMap<(Kind, Handle), Uses>);

#[derive(Default)]
struct Uses {
    by: usize,
    /// Whether the program has freed it.
    freed: bool,
}

impl Used {
    fn add(&mut self, what: (Kind, Handle)) {
        self.0.entry(what).or_default().by += 1;
    }

    /// Notes that the program has freed it; whether that has to wait.
    fn free(&mut self, what: (Kind, Handle)) -> bool {
        self.0.get_mut(&what).is_some_and(|uses| !std::mem::replace(&mut uses.freed, true))
    }

    /// Ends a use; whether it is to be freed now.
    fn end(&mut self, what: (Kind, Handle)) -> bool {
        let Some(uses) = self.0.get_mut(&what) else { return false };
        uses.by -= 1;
        let (last, freed) = (uses.by == 0, uses.freed);
        if last {
            self.0.remove(&what);
        }
        last && freed
    }
}

fn used() -> MutexGuard<'static, Used> {
    USED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A use of something that the program may free meanwhile.
pub(crate) struct Kept {
    mpi: &'static Mpi,
    what: (Kind, Handle),
}

impl Kept {
    pub(crate) fn new(mpi: &'static Mpi, kind: Kind, handle: Handle) -> Kept {
        COUNT.fetch_add(1, Ordering::AcqRel);
        used().add((kind, handle));
        Kept { mpi, what: (kind, handle) }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // Freeing may call functions of the program's: not while the table is locked.
        let free = used().end(self.what);
        COUNT.fetch_sub(1, Ordering::AcqRel);
        if free {
            let _ = match self.what {
                (Kind::Operation, op) => self.mpi.op_free(op),
                (Kind::Datatype, datatype) => self.mpi.type_free(datatype),
            };
        }
    }
}

function! { "Op_free" "" (op: *mut c_void), own => freed(Kind::Operation, op, own), None }
function! { "Type_free" "" (datatype: *mut c_void), own => freed(Kind::Datatype, datatype, own), None }

fn freed(kind: Kind, place: *mut c_void, own: impl FnOnce() -> c_int) -> c_int {
    if COUNT.load(Ordering::Acquire) == 0 {
        return own();
    }
    let Some(session) = session::current() else { return own() };
    let (abi, handles) = (session.mpi.abi(), &session.mpi.constants().handles);
    // SAFETY: the program's variable.
    let handle = unsafe { abi.read_handle(place) };
    if !used().free((kind, handle)) {
        return own();
    }
    let null = match kind {
        Kind::Operation => handles.op_null,
        Kind::Datatype => handles.datatype_null,
    };
    // SAFETY: the same.
    unsafe { abi.write_handle(place, null) };
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_is_freed_after_its_last_use_and_once() {
        let (mut used, what) = (Used::default(), (Kind::Operation, 7));
        assert!(!used.free(what), "nobody uses it: the MPI frees it at once");
        used.add(what);
        used.add(what);
        assert!(!used.free((Kind::Datatype, 7)), "another kind");
        assert!(used.free(what));
        assert!(!used.free(what), "freed already: that is for the MPI to judge");
        assert!(!used.end(what));
        assert!(used.end(what), "the last one");
        assert!(used.0.is_empty() && !used.end(what));
        used.add(what);
        assert!(!used.end(what), "a handle that is used again has not been freed");
    }
}
