//! Sleeping until another rank wakes this one.
//!
//! A rank that waits looks at one word that another rank will write. The protocol of falling asleep is Dekker's:
//!
//! ```text
//! sleeper: mark the futex word;  fence(SeqCst);  look at the word;        if not yet: sleep
//! waker:   write the word;       fence(SeqCst);  look at the futex word;  if marked: wake
//! ```
//!
//! Memory ordering: the two fences have one order that everybody sees. If the sleeper's comes first, the waker's look sees
//! the futex word marked: it clears the mark and wakes, and the kernel lets nobody sleep on a word without the mark. Otherwise the sleeper's look
//! sees the word written, and it does not sleep. So no wake-up is lost. A stale wake only makes a later sleep end early, and
//! every wait looks again. The word itself is written with Release and read with Acquire, for the data behind it: a plain
//! store, which commits together with that data; a locked store in place of the fence would let a spinning reader take the
//! line away between the two. An owner of several threads is dealt with in [`gate`](crate::gate).

use std::time::Duration;

use super::sync::{FutexWord, Ordering, fence};
use crate::gate::Gate;

/// Where one rank sleeps and others wake it, in memory that all ranks of the node see. All zeros is nobody asleep.
#[cfg_attr(not(loom), derive(Default))]
#[repr(C, align(128))]
pub(crate) struct Wakeup {
    futex_word: FutexWord,
}

impl Wakeup {
    /// To be called after writing the word that the owner may be waiting for.
    #[inline]
    pub(crate) fn wake(&self) {
        fence(Ordering::SeqCst);
        if self.futex_word.marked() {
            self.futex_word.wake();
        }
    }

    /// As a thread of the owner's inside its gate: sleeps until somebody wakes it, or for so long, unless it is `ready`; whether it is.
    pub(crate) fn sleep(&self, gate: &Gate, nap: Duration, mut ready: impl FnMut() -> bool) -> bool {
        self.futex_word.mark_asleep();
        fence(Ordering::SeqCst);
        let done = ready();
        if !done {
            gate.asleep(|| self.futex_word.sleep(nap));
        }
        if !gate.others_sleep() {
            self.futex_word.clear_mark();
        }
        done || ready()
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::super::sync::AtomicU32;
    use super::*;
    use loom::sync::Arc;

    #[test]
    fn no_ring_is_lost() {
        loom::model(|| {
            let word = Arc::new(AtomicU32::new(0));
            let wakeup = Arc::new(Wakeup { futex_word: FutexWord::new() });
            let waker = loom::thread::spawn({
                let (word, wakeup) = (word.clone(), wakeup.clone());
                move || {
                    word.store(1, Ordering::Release);
                    wakeup.wake();
                }
            });
            while !wakeup.sleep(&Gate::new(false), Duration::MAX, || word.load(Ordering::Acquire) == 1) {}
            waker.join().unwrap();
        });
    }
}
