//! Waiting: spin briefly, yield, then sleep until somebody rings.
//!
//! A rank that waits looks at one word that another rank will write. The protocol of falling asleep is Dekker's:
//!
//! ```text
//! sleeper: asleep = true;   fence(SeqCst);  look at the word;  if not yet: sleep
//! ringer:  write the word;  fence(SeqCst);  look at asleep;    if true:    wake
//! ```
//!
//! Memory ordering: the two fences have one order that everybody sees. If the sleeper's comes first, the ringer's look sees
//! asleep and wakes it, and a bed whose owner was woken before it slept lets it sleep no longer. Otherwise the sleeper's look
//! sees the word written, and it does not sleep. So no wake-up is lost. A stale ring only makes a later sleep end early, and
//! every wait looks again. The word itself is written with Release and read with Acquire, for the data behind it: a plain
//! store, which commits together with that data; a locked store in place of the fence would let a spinning reader take the
//! line away between the two.

use super::sync::{AtomicBool, Bed, Ordering, fence, spin_loop, yield_now};

/// One rank's bell.
#[repr(align(128))]
pub(crate) struct Bell {
    asleep: AtomicBool,
    bed: Bed,
}

/// How long to try before sleeping.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    pub(crate) spins: u32,
    pub(crate) yields: u32,
}

impl Patience {
    /// For so many ranks on this machine: where they outnumber the cores, spinning only keeps the others from running.
    pub(crate) fn for_ranks(ranks: usize) -> Patience {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        if ranks <= cores { Patience { spins: 3_000, yields: 50 } } else { Patience { spins: 30, yields: 30 } }
    }
}

impl Bell {
    /// For the thread that calls.
    pub(crate) fn mine() -> Bell {
        Bell { asleep: AtomicBool::new(false), bed: Bed::mine() }
    }

    /// To be called after writing the word that the owner may be waiting for.
    #[inline]
    pub(crate) fn ring(&self) {
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) {
            self.bed.wake();
        }
    }

    /// Waits, as the owner, until `ready`; every time it has slept, `slept` may name a reason to give up.
    pub(crate) fn wait<E>(
        &self,
        patience: Patience,
        mut ready: impl FnMut() -> bool,
        mut slept: impl FnMut() -> Option<E>,
    ) -> Result<(), E> {
        for spin in 0..patience.spins {
            if ready() {
                return Ok(());
            }
            // A pause takes as long as a message: the first looks follow each other closely.
            if spin > 40 {
                spin_loop();
            }
        }
        for _ in 0..patience.yields {
            if ready() {
                return Ok(());
            }
            yield_now();
        }
        loop {
            self.asleep.store(true, Ordering::Relaxed);
            fence(Ordering::SeqCst);
            let done = ready();
            if !done {
                self.bed.sleep();
            }
            self.asleep.store(false, Ordering::Relaxed);
            if done || ready() {
                return Ok(());
            }
            // What made the reason true may have made us ready just before.
            if let Some(reason) = slept() {
                return if ready() { Ok(()) } else { Err(reason) };
            }
        }
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
            let bell = Arc::new(Bell::mine());
            let ringer = loom::thread::spawn({
                let (word, bell) = (word.clone(), bell.clone());
                move || {
                    word.store(1, Ordering::Release);
                    bell.ring();
                }
            });
            let patience = Patience { spins: 0, yields: 0 };
            bell.wait(patience, || word.load(Ordering::Acquire) == 1, || None::<()>).unwrap();
            ringer.join().unwrap();
        });
    }
}
