//! Waiting: spin briefly, yield, then sleep until somebody rings.
//!
//! A rank that waits looks at one word that another rank will write. The protocol of falling asleep is Dekker's:
//!
//! ```text
//! sleeper: asleep = true;  fence(SeqCst);  look at the word;  if not yet: park
//! ringer:  write the word; fence(SeqCst);  look at asleep;    if true:    unpark
//! ```
//!
//! Memory ordering: the two fences are totally ordered. If the sleeper's comes first, the ringer reads asleep = true and
//! unparks, and a token left by unpark before park makes park return at once. If the ringer's comes first, the sleeper's
//! look sees the word written and it does not park. So no wake-up is lost. `asleep` and the word need no ordering of
//! their own for this; the word is written with Release and read with Acquire for the data behind it. A stale ring only
//! makes a later park return early, and every wait looks again.

use super::sync::{AtomicBool, Ordering, Thread, current, fence, spin_loop, yield_now};

/// One rank's bell.
pub(crate) struct Bell {
    asleep: AtomicBool,
    owner: Thread,
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
        Bell { asleep: AtomicBool::new(false), owner: current() }
    }

    /// To be called after writing the word that the owner may be waiting for.
    pub(crate) fn ring(&self) {
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) {
            self.owner.unpark();
        }
    }

    /// Waits, as the owner, until `ready`; every time it has slept, `slept` may name a reason to give up.
    pub(crate) fn wait<E>(
        &self,
        patience: Patience,
        mut ready: impl FnMut() -> bool,
        mut slept: impl FnMut() -> Option<E>,
    ) -> Result<(), E> {
        for _ in 0..patience.spins {
            if ready() {
                return Ok(());
            }
            spin_loop();
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
                park();
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

/// Sleeps until rung; awakes from time to time to see whether a rank has failed or left.
#[cfg(not(loom))]
fn park() {
    std::thread::park_timeout(std::time::Duration::from_millis(20));
}

#[cfg(loom)]
fn park() {
    loom::thread::park();
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
