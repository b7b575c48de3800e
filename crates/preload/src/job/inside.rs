//! Whether a thread is in the program's code or in ours: what MPI calls from ours is not the program's.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Where a thread is.
#[derive(Clone, Copy, PartialEq)]
enum Whose {
    Program,
    /// In our code.
    Ours,
    /// There, waiting for other ranks in a function of the MPI, with nothing of ours half done.
    Waiting,
}

thread_local! {
    static WHOSE: Cell<Whose> = const { Cell::new(Whose::Program) };
}

/// Whether this thread is in our code.
#[inline]
pub(crate) fn is_inside() -> bool {
    WHOSE.get() != Whose::Program
}

/// Whether the MPI's progress, which calls from this thread, finds nothing of ours half done there.
pub(crate) fn is_interruptible() -> bool {
    WHOSE.get() != Whose::Ours
}

/// Does what is ours to do; `None` if it panicked, which must not reach the program.
#[inline]
pub(crate) fn inside<R>(act: impl FnOnce() -> R) -> Option<R> {
    // The variable is looked up once: in a library that takes a call.
    WHOSE.with(|place| {
        let _back = Back(place, place.replace(Whose::Ours));
        catch_unwind(AssertUnwindSafe(act)).ok()
    })
}

/// Waits for other ranks in a function of the MPI. They may first wait for runs of this rank, which its progress moves on meanwhile.
pub(crate) fn waiting<R>(act: impl FnOnce() -> R) -> R {
    WHOSE.with(|place| {
        let _back = Back(place, place.replace(Whose::Waiting));
        act()
    })
}

/// Goes back to where the thread was.
struct Back<'a>(&'a Cell<Whose>, Whose);

impl Drop for Back<'_> {
    fn drop(&mut self) {
        self.0.set(self.1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_inside_until_it_returns_or_panics_and_waits_inside_only_while_it_says_so() {
        assert!(!is_inside() && is_interruptible());
        let seen = inside(|| {
            assert!(is_inside() && !is_interruptible());
            let nested = waiting(|| (is_interruptible(), inside(is_interruptible)));
            (nested, is_interruptible())
        });
        assert_eq!(seen, Some(((true, Some(false)), false)));
        assert_eq!(inside(|| panic!("a panic of this test")), None::<()>);
        assert!(!is_inside() && is_interruptible());
    }
}
