//! A few words of each thread, which every call looks at.
//!
//! A library that comes with a program finds a variable of the thread by calling a function, several times a call; so these words lie where
//! the loader has put them at the program's start, at a distance from the thread's own address that is read from the library's table.

use std::cell::Cell;
use std::ffi::c_void;

/// What a thread has at hand. All zeros at first.
#[repr(C)]
pub(crate) struct ThreadWords {
    /// Where the last call of a function under MPI's names returns to: what such a function begins with stores it here. See `interpose::caller`.
    pub(crate) caller: Cell<usize>,
    /// Whose code the thread is in. See `inside`.
    pub(super) whose: Cell<usize>,
    /// The calls that it has made, as far as they are known. See `interpose::repeat_call_cache`.
    pub(crate) calls: Cell<*mut c_void>,
}

#[cfg(target_arch = "x86_64")]
std::arch::global_asm!(
    ".pushsection .tbss.allhands_thread,\"awT\",@nobits",
    ".hidden allhands_thread",
    ".globl allhands_thread",
    ".type allhands_thread,@object",
    ".size allhands_thread,24",
    ".p2align 3",
    "allhands_thread:",
    ".zero 24",
    ".popsection",
);

/// The words of this thread.
#[inline(always)]
pub(crate) fn with_words<R>(act: impl FnOnce(&ThreadWords) -> R) -> R {
    #[cfg(target_arch = "x86_64")]
    {
        let words: *const ThreadWords;
        // SAFETY: computes an address, from the library's table and what the thread keeps its own address in.
        unsafe {
            std::arch::asm!(
                "mov {0}, qword ptr [rip + allhands_thread@GOTTPOFF]",
                "add {0}, qword ptr fs:[0]",
                out(reg) words,
                options(pure, readonly, nostack),
            );
        }
        // SAFETY: every thread has the variable from its start to its end: the library is there before the first of them, or
        // its few bytes are in what the loader keeps for those that come later. Zeros are valid, and only this thread comes here.
        act(unsafe { &*words })
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        thread_local! {
            static WORDS: ThreadWords =
                const { ThreadWords { caller: Cell::new(0), whose: Cell::new(0), calls: Cell::new(std::ptr::null_mut()) } };
        }
        WORDS.with(act)
    }
}

const _: () = assert!(size_of::<ThreadWords>() == 24);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thread_has_words_of_its_own() {
        let number = || with_words(|words| words.caller.replace(words.caller.get() + 1));
        assert_eq!((number(), number()), (0, 1));
        std::thread::scope(|scope| assert_eq!(scope.spawn(|| (number(), number())).join().unwrap(), (0, 1)));
        assert_eq!(number(), 2);
    }
}
