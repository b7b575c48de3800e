//! Whether a thread is in the program's code or in ours: what MPI calls from ours is not the program's.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
    /// Whether this thread waits in our code for other ranks, in a function of the MPI, with nothing of ours half done.
    static WAITING: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is in our code.
#[inline]
pub(crate) fn is_inside() -> bool {
    INSIDE.get()
}

/// Whether the MPI's progress, which calls from this thread, finds nothing of ours half done there.
pub(crate) fn is_interruptible() -> bool {
    !INSIDE.get() || WAITING.get()
}

/// Does what is ours to do; `None` if it panicked, which must not reach the program.
#[inline]
pub(crate) fn inside<R>(act: impl FnOnce() -> R) -> Option<R> {
    struct Outside(bool, bool);
    impl Drop for Outside {
        fn drop(&mut self) {
            INSIDE.set(self.0);
            WAITING.set(self.1);
        }
    }
    let _outside = Outside(INSIDE.replace(true), WAITING.replace(false));
    catch_unwind(AssertUnwindSafe(act)).ok()
}

/// Waits for other ranks in a function of the MPI. They may first wait for runs of this rank, which its progress moves on meanwhile.
pub(crate) fn waiting<R>(act: impl FnOnce() -> R) -> R {
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            WAITING.set(self.0);
        }
    }
    let _before = Before(WAITING.replace(true));
    act()
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
