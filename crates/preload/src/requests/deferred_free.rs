//! Operations and datatypes of the program's that runs use, and that it frees before these are through.
//!
//! MPI lets a program free them at any time: a collective that is under way keeps them. Ours are called when their run gets there, by
//! the handles that the program gave, for its function may look at the datatype. So `MPI_Op_free` and `MPI_Type_free` of
//! what a run uses take the program's handle and no more; the object goes with the last run, or with the persistent
//! request, that uses it. Until then MPI gives its handle to nothing else.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex};

use allhands_call::{Object, Task, Types, Unserved};
use allhands_mpi::Mpi;

use allhands_call::locks::lock;

/// What runs use.
static USED: LazyLock<Mutex<Used>> = LazyLock::new(Mutex::default);
/// How many there are.
static COUNT: AtomicUsize = AtomicUsize::new(0);

#[derive(Default)]
struct Used(HashMap<Object, Uses>);

#[derive(Default)]
struct Uses {
    by: usize,
    /// Whether the program has freed it.
    freed: bool,
}

impl Used {
    fn add(&mut self, what: Object) {
        self.0.entry(what).or_default().by += 1;
    }

    /// Notes that the program has freed it; whether that has to wait.
    fn free(&mut self, what: Object) -> bool {
        self.0.get_mut(&what).is_some_and(|uses| !std::mem::replace(&mut uses.freed, true))
    }

    /// Ends a use; whether it is to be freed now.
    fn end(&mut self, what: Object) -> bool {
        let Some(uses) = self.0.get_mut(&what) else { return false };
        uses.by -= 1;
        let (last, freed) = (uses.by == 0, uses.freed);
        if last {
            self.0.remove(&what);
        }
        last && freed
    }
}

/// Whether some run uses something that the program may free.
pub(crate) fn any_used() -> bool {
    COUNT.load(Ordering::Acquire) > 0
}

/// The program frees something: whether that is done later, by us.
pub(crate) fn defers(what: Object) -> bool {
    lock(&USED).free(what)
}

/// A use of something that the program may free meanwhile.
struct Use {
    mpi: &'static Mpi,
    what: Object,
}

impl Use {
    fn new(mpi: &'static Mpi, what: Object) -> Use {
        COUNT.fetch_add(1, Ordering::AcqRel);
        lock(&USED).add(what);
        Use { mpi, what }
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        // Freeing may call functions of the program's: not while the table is locked.
        let free = lock(&USED).end(self.what);
        COUNT.fetch_sub(1, Ordering::AcqRel);
        if free {
            let _ = match self.what {
                Object::Operation(op) => self.mpi.op_free(op),
                Object::Datatype(datatype) => self.mpi.type_free(datatype),
            };
        }
    }
}

/// A task that outlasts the call that it came with.
pub(crate) struct Lasting {
    pub(crate) task: Task,
    _uses: Vec<Use>,
}

impl Lasting {
    /// From now on the program may free its operation and datatypes.
    pub(crate) fn new(types: &Types, mut task: Task) -> Result<Lasting, Unserved> {
        task.hold(types.mpi())?;
        let objects = task.called.iter().flat_map(|called| called.objects(types));
        let uses = objects.map(|object| Use::new(types.mpi(), object)).collect();
        Ok(Lasting { task, _uses: uses })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_is_freed_after_its_last_use_and_once() {
        let (mut used, what) = (Used::default(), Object::Operation(7));
        assert!(!used.free(what), "nobody uses it: the MPI frees it at once");
        used.add(what);
        used.add(what);
        assert!(!used.free(Object::Datatype(7)), "another kind");
        assert!(used.free(what));
        assert!(!used.free(what), "freed already: that is for the MPI to judge");
        assert!(!used.end(what));
        assert!(used.end(what), "the last one");
        assert!(used.0.is_empty() && !used.end(what));
        used.add(what);
        assert!(!used.end(what), "a handle that is used again has not been freed");
    }
}
