//! Waiting: spin briefly, yield, then sleep until somebody rings.
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

use std::time::{Duration, Instant};

use super::sync::{Bed, Ordering, fence, spin_loop, yield_now};
use crate::gate::Gate;

/// One rank's bell, in memory that all ranks of the node see. All zeros is a bell at rest.
#[repr(C, align(128))]
pub(crate) struct Bell {
    bed: Bed,
}

/// How long to try before sleeping, and how long to sleep at most before looking around.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    pub(crate) spins: u32,
    pub(crate) yields: u32,
    /// Yields end after this, however few they were: who gives the core away for so long had better sleep.
    pub(crate) yielding: Duration,
    pub(crate) nap: Duration,
}

/// Longer than a few yields take where nobody else has much to do.
const LONG: Duration = Duration::from_micros(100);

impl Patience {
    /// Where ranks crowd the cores, spinning only keeps the others from running. Where they do not, somebody else may still
    /// sit on the core of the rank that is waited for: after some 50 us of spinning, yields let it go on.
    pub(crate) fn new(crowded: bool, nap: Duration) -> Patience {
        let (spins, yields) = if crowded { (30, 30) } else { (1_000, 1_000) };
        Patience { spins, yields, yielding: if crowded { LONG } else { Duration::MAX }, nap }
    }
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

    /// Waits, as a thread of the owner's inside its gate, until `ready`, which may do work, after which something of another `kind` may
    /// be waited for: with the patience for that, from its beginning.
    pub(crate) fn wait_for<E>(
        &self,
        gate: &Gate,
        kind: impl Fn() -> bool,
        patience: impl Fn(bool) -> Patience,
        mut ready: impl FnMut() -> bool,
        mut meanwhile: impl FnMut(),
        mut slept: impl FnMut() -> Option<E>,
    ) -> Result<(), E> {
        let mut done = false;
        while !done {
            let now = kind();
            let changed = || {
                done = ready();
                done || kind() != now
            };
            self.wait(gate, patience(now), changed, &mut meanwhile, &mut slept)?;
        }
        Ok(())
    }

    /// Waits until `ready`. Now and then it does what `meanwhile` does; every time it has slept, `slept` may name a reason to give
    /// up. Other threads of the owner's may enter the gate between two looks.
    fn wait<E>(
        &self,
        gate: &Gate,
        patience: Patience,
        mut ready: impl FnMut() -> bool,
        mut meanwhile: impl FnMut(),
        mut slept: impl FnMut() -> Option<E>,
    ) -> Result<(), E> {
        for spin in 0..patience.spins {
            if ready() {
                return Ok(());
            }
            gate.breathe();
            // A pause takes as long as a message: the first looks follow each other closely.
            if spin > 40 {
                spin_loop();
            }
            if spin % 128 == 127 {
                meanwhile();
            }
        }
        let bounded = (patience.yields > 0 && patience.yielding < Duration::MAX).then(Instant::now);
        for _ in 0..patience.yields {
            if ready() {
                return Ok(());
            }
            meanwhile();
            gate.away(yield_now);
            if bounded.is_some_and(|began| began.elapsed() > patience.yielding) {
                break;
            }
        }
        let mut nap = patience.nap.min(Duration::from_micros(50));
        loop {
            meanwhile();
            self.bed.lie_down();
            fence(Ordering::SeqCst);
            let done = ready();
            if !done {
                gate.asleep(|| self.bed.sleep(nap));
            }
            if !gate.others_sleep() {
                self.bed.get_up();
            }
            if done || ready() {
                return Ok(());
            }
            nap = (nap * 2).min(patience.nap);
            // What made the reason true may have made us ready just before.
            if let Some(reason) = slept() {
                return if ready() { Ok(()) } else { Err(reason) };
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// What nobody rings for is looked for soon, also if something else was waited for first.
    #[test]
    fn patience_is_that_of_what_is_waited_for() {
        // Naps double: after so many looks they would last for hours.
        const LOOKS: u32 = 61;
        let bell = Bell { bed: Bed::default() };
        let (looks, far) = (Cell::new(0), Cell::new(false));
        let ready = || {
            looks.set(looks.get() + 1);
            far.set(looks.get() >= 2);
            looks.get() == LOOKS
        };
        let patience = |far: bool| {
            let nap = if far { Duration::from_micros(1) } else { Duration::from_secs(3600) };
            Patience { spins: 1, yields: 1, yielding: Duration::MAX, nap }
        };
        let naps = Cell::new(0);
        let slept = || {
            naps.set(naps.get() + 1);
            None::<()>
        };
        bell.wait_for(&Gate::new(false), || far.get(), patience, ready, || (), slept).unwrap();
        assert_eq!(looks.get(), LOOKS);
        assert!(naps.get() > 0, "it slept, and only short");
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
            let bell = Arc::new(Bell { bed: Bed::new() });
            let ringer = loom::thread::spawn({
                let (word, bell) = (word.clone(), bell.clone());
                move || {
                    word.store(1, Ordering::Release);
                    bell.ring();
                }
            });
            let patience = Patience { spins: 0, yields: 0, yielding: Duration::MAX, nap: Duration::MAX };
            bell.wait(&Gate::new(false), patience, || word.load(Ordering::Acquire) == 1, || (), || None::<()>).unwrap();
            ringer.join().unwrap();
        });
    }
}
