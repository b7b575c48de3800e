//! Whether a thread is in the program's code or in ours: what MPI calls from ours is not the program's.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::thread::{ThreadWords, with_words};

/// Where a thread is: in the program's code, which it is at first,
const PROGRAM: usize = 0;
/// in our code,
const OURS: usize = 1;
/// or there, waiting for other ranks in a function of the MPI, with nothing of ours half done.
const WAITING: usize = 2;

/// Whether this thread is in our code.
#[inline]
pub(crate) fn is_inside() -> bool {
    with_words(|words| words.whose.get() != PROGRAM)
}

/// Whether the MPI's progress, which calls from this thread, finds nothing of ours half done there.
pub(crate) fn is_interruptible() -> bool {
    with_words(|words| words.whose.get() != OURS)
}

/// Does what is ours to do; `None` if it panicked, which must not reach the program.
#[inline]
pub(crate) fn inside<R>(act: impl FnOnce() -> R) -> Option<R> {
    with_words(|words| {
        let _back = Back(words, words.whose.replace(OURS));
        catch_unwind(AssertUnwindSafe(act)).ok()
    })
}

/// Waits for other ranks in a function of the MPI. They may first wait for runs of this rank, which its progress moves on meanwhile.
pub(crate) fn waiting<R>(act: impl FnOnce() -> R) -> R {
    with_words(|words| {
        let _back = Back(words, words.whose.replace(WAITING));
        act()
    })
}

/// Goes back to where the thread was.
struct Back<'a>(&'a ThreadWords, usize);

impl Drop for Back<'_> {
    fn drop(&mut self) {
        self.0.whose.set(self.1);
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
