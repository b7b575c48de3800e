//! Sleeping until somebody rings.
//!
//! A rank that waits looks at one word that another rank will write. The protocol of falling asleep is Dekker's:
//!
//! ```text
//! sleeper: lie down;        fence(SeqCst);  look at the word;  if not yet: sleep
//! ringer:  write the word;  fence(SeqCst);  look at the bed;   if occupied: wake
//! ```
//!
//! Memory ordering: the two fences have one order that everybody sees. If the sleeper's comes first, the ringer's look sees
//! the bed occupied and wakes it: it empties the bed, and nobody falls asleep in an empty bed. Otherwise the sleeper's look
//! sees the word written, and it does not sleep. So no wake-up is lost. A stale ring only makes a later sleep end early, and
//! every wait looks again. The word itself is written with Release and read with Acquire, for the data behind it: a plain
//! store, which commits together with that data; a locked store in place of the fence would let a spinning reader take the
//! line away between the two. An owner of several threads is dealt with in [`gate`](crate::gate).

use std::time::Duration;

use super::sync::{Bed, Ordering, fence};
use crate::gate::Gate;

/// One rank's bell, in memory that all ranks of the node see. All zeros is a bell at rest.
#[cfg_attr(not(feature = "loom"), derive(Default))]
#[repr(C, align(128))]
pub(crate) struct Bell {
    bed: Bed,
}

impl Bell {
    /// To be called after writing the word that the owner may be waiting for.
    #[inline]
    pub(crate) fn ring(&self) {
        fence(Ordering::SeqCst);
        if self.bed.occupied() {
            self.bed.wake();
        }
    }

    /// As a thread of the owner's inside its gate: sleeps until somebody rings, or for so long, unless it is `ready`; whether it is.
    pub(crate) fn sleep(&self, gate: &Gate, nap: Duration, mut ready: impl FnMut() -> bool) -> bool {
        self.bed.lie_down();
        fence(Ordering::SeqCst);
        let done = ready();
        if !done {
            gate.asleep(|| self.bed.sleep(nap));
        }
        if !gate.others_sleep() {
            self.bed.get_up();
        }
        done || ready()
    }
}

#[cfg(all(test, feature = "loom"))]
mod models {
    use super::super::sync::AtomicU32;
    use super::*;
    use loom::sync::Arc;

    #[test]
    fn no_ring_is_lost() {
        loom::model(|| {
            let word = Arc::new(AtomicU32::new(0));
            let bell = Arc::new(Bell { bed: Bed::new() });
            let ringer = loom::thread::spawn({
                let (word, bell) = (word.clone(), bell.clone());
                move || {
                    word.store(1, Ordering::Release);
                    bell.ring();
                }
            });
            while !bell.sleep(&Gate::new(false), Duration::MAX, || word.load(Ordering::Acquire) == 1) {}
            ringer.join().unwrap();
        });
    }
}
