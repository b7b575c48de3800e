//! A meeting of the ranks of a region: nobody leaves before everybody has come, meeting after meeting.
//!
//! `arrived` counts; the last to come sets it back and opens the gate by advancing `gate`. A rank remembers which gate it
//! waits for.
//!
//! Memory ordering: everybody adds to `arrived` with AcqRel, so the last one has seen all that the others did before; it
//! advances `gate` with Release and the others read it with Acquire, so they see it too. `arrived` is set back before the
//! gate opens, and nobody comes to the next meeting before he has seen the gate open: counts of two meetings never mix.

use super::sync::{AtomicU32, Ordering};

/// In memory that all ranks of the node see; all zeros before the first meeting.
#[repr(C, align(128))]
pub(crate) struct Meeting {
    arrived: AtomicU32,
    gate: AtomicU32,
}

impl Meeting {
    /// Comes to the meeting of `size` ranks; the gate to wait for, and whether this rank opened it.
    pub(crate) fn arrive(&self, size: u32) -> (u32, bool) {
        let gate = self.gate.load(Ordering::Relaxed).wrapping_add(1);
        let last = self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == size;
        if last {
            self.arrived.store(0, Ordering::Relaxed);
            self.gate.store(gate, Ordering::Release);
        }
        (gate, last)
    }

    /// Whether a gate is open.
    #[inline]
    pub(crate) fn open(&self, gate: u32) -> bool {
        self.gate.load(Ordering::Acquire) == gate
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::super::sync::UnsafeCell;
    use super::*;
    use loom::sync::Arc;
    use loom::thread;

    #[test]
    fn what_was_done_before_is_seen_after() {
        loom::model(|| {
            let meeting = Arc::new(Meeting { arrived: AtomicU32::new(0), gate: AtomicU32::new(0) });
            let cells = Arc::new([UnsafeCell::new(0u32), UnsafeCell::new(0u32)]);
            let rank = |me: usize, meeting: Arc<Meeting>, cells: Arc<[UnsafeCell<u32>; 2]>| {
                for round in 1..=2 {
                    // SAFETY: between two meetings only `me` touches cell `me`; loom checks it.
                    cells[me].with_mut(|cell| unsafe { *cell = round });
                    let meet = || {
                        let (gate, _) = meeting.arrive(2);
                        while !meeting.open(gate) {
                            thread::yield_now();
                        }
                    };
                    meet();
                    // SAFETY: between the two meetings of a round everybody only reads; loom checks it.
                    cells[1 - me].with(|cell| assert_eq!(unsafe { *cell }, round));
                    // After the last round nothing comes that a meeting could keep apart.
                    if round < 2 {
                        meet();
                    }
                }
            };
            let other = thread::spawn({
                let (meeting, cells) = (meeting.clone(), cells.clone());
                move || rank(1, meeting, cells)
            });
            rank(0, meeting, cells);
            other.join().unwrap();
        });
    }
}
