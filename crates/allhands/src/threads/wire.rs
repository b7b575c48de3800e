//! A wire carries one message of a plan from one rank to another, run after run.
//!
//! **Small messages** go through slots. Run `e` uses slot `e mod n`. The sender may write a slot when the receiver has
//! consumed what was in it n runs ago; it copies the payload, then stores `seq = e`. The receiver waits for `seq == e`,
//! reads, and every n/2 runs stores `consumed = e`. Slot and payload have one writer each, and up to 56 bytes travel in the
//! cache line of their flag.
//!
//! Memory ordering: `seq` is stored with Release after the payload and loaded with Acquire before it is read, so the reader
//! sees the payload. `consumed` is stored with Release after reading and loaded with Acquire before a slot is written again,
//! so a payload is never overwritten while it is read. Runs are numbered modulo 2^32; `seq == e` is compared for equality
//! within n runs, `consumed` by distance.
//!
//! Progress: acknowledging only every n/2 runs blocks nobody for ever. A sender in run r waits only for receives of runs
//! before r, whose messages it has sent; and the rank in the earliest run of all finds that its receivers, which are in that
//! run or later, have acknowledged at least up to n/2 runs before.
//!
//! **Large messages** are read by the receiver straight from the sender's memory:
//!
//! ```text
//!            publish            begin              finish
//! IDLE ────────────► PUBLISHED ───────► READING ────────► IDLE        the sender waits for IDLE before it goes on
//!                        │ revoke (sender gives up)
//!                        └───────► REVOKED                            the receiver gets an error
//! ```
//!
//! The sender writes the list of pieces, then stores PUBLISHED (Release). The receiver moves PUBLISHED to READING (Acquire),
//! reads, stores IDLE (Release). The sender sees IDLE (Acquire): all reads of its memory happened before. A sender that gives
//! up moves PUBLISHED to REVOKED by compare-exchange; if that fails because the receiver is READING, it waits for IDLE, which
//! a running receiver always stores, also when it unwinds. So when the sender returns, nobody reads its memory.

use super::sync::{AtomicU32, Ordering, UnsafeCell, spin_loop};

/// Messages up to this many bytes are copied through a slot; larger ones are read from the sender's memory.
pub(crate) const SMALL: usize = 2048;
const INLINE: usize = 56;

/// A run of bytes somewhere in this process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) at: *const u8,
    pub(crate) len: usize,
}

pub(crate) enum Wire {
    Small(Small),
    Large(Large),
}

// SAFETY: pieces are addresses that the protocol hands from sender to receiver; see the page above.
unsafe impl Send for Wire {}
// SAFETY: as above: every cell has one writer at a time, and readers only between the stores the protocol names.
unsafe impl Sync for Wire {}

/// Lines are fetched in pairs: a slot has one to itself. In this order, flag and payload are in the same line.
#[repr(C, align(128))]
struct Slot {
    seq: AtomicU32,
    inline: UnsafeCell<[u64; INLINE / 8]>,
    /// Payloads that do not fit into the line.
    body: UnsafeCell<Box<[u64]>>,
}

pub(crate) struct Small {
    slots: Box<[Slot]>,
    bytes: usize,
    consumed: Consumed,
}

#[repr(align(128))]
struct Consumed(AtomicU32);

#[repr(align(128))]
pub(crate) struct Large {
    state: AtomicU32,
    pieces: UnsafeCell<Vec<Piece>>,
}

const IDLE: u32 = 0;
const PUBLISHED: u32 = 1;
const READING: u32 = 2;
const REVOKED: u32 = 3;

/// The sender gave up.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Revoked;

impl Wire {
    pub(crate) fn new(bytes: usize) -> Wire {
        if bytes > SMALL {
            return Wire::Large(Large { state: AtomicU32::new(IDLE), pieces: UnsafeCell::new(Vec::new()) });
        }
        let (slots, words) = if bytes <= INLINE { (16, 0) } else { (2, bytes.div_ceil(8)) };
        let slot = |_| Slot {
            seq: AtomicU32::new(0),
            inline: UnsafeCell::new([0; INLINE / 8]),
            body: UnsafeCell::new(vec![0; words].into()),
        };
        Wire::Small(Small { slots: (0..slots).map(slot).collect(), bytes, consumed: Consumed(AtomicU32::new(0)) })
    }

    /// Whether the message of run `run` has come, or never will.
    #[inline]
    pub(crate) fn arrived(&self, run: u32) -> bool {
        match self {
            Wire::Small(small) => small.slot(run).seq.load(Ordering::Acquire) == run,
            Wire::Large(large) => matches!(large.state.load(Ordering::Acquire), PUBLISHED | REVOKED),
        }
    }

    /// Whether the sender may be waiting for this run to be taken.
    #[inline]
    pub(crate) fn tells_sender(&self, run: u32) -> bool {
        match self {
            Wire::Small(small) => small.acknowledges(run),
            Wire::Large(_) => true,
        }
    }

    /// Hands the message, which has arrived, to `read`, piece by piece.
    ///
    /// # Safety
    /// The receiver calls it, once for each run, after [`arrived`](Wire::arrived).
    pub(crate) unsafe fn take(&self, run: u32, mut read: impl FnMut(Piece)) -> Result<(), Revoked> {
        match self {
            Wire::Small(small) => {
                let slot = small.slot(run);
                if small.bytes <= INLINE {
                    slot.inline.with(|payload| read(Piece { at: payload.cast(), len: small.bytes }));
                } else {
                    // SAFETY: the sender does not touch the box again before `consumed` says so.
                    slot.body.with(|body| read(Piece { at: unsafe { (*body).as_ptr() }.cast(), len: small.bytes }));
                }
                if small.acknowledges(run) {
                    small.consumed.0.store(run, Ordering::Release);
                }
                Ok(())
            }
            Wire::Large(large) => {
                let begun = large.state.compare_exchange(PUBLISHED, READING, Ordering::AcqRel, Ordering::Acquire);
                begun.map_err(|_| Revoked)?;
                let _finish = Finish(large);
                // SAFETY: READING: the sender wrote the list before PUBLISHED and will not touch it before IDLE.
                large.pieces.with(|pieces| unsafe { (*pieces).iter().for_each(|piece| read(*piece)) });
                Ok(())
            }
        }
    }
}

/// Gives the sender its memory back, also when reading unwinds.
struct Finish<'a>(&'a Large);

impl Drop for Finish<'_> {
    fn drop(&mut self) {
        self.0.state.store(IDLE, Ordering::Release);
    }
}

impl Small {
    #[inline]
    fn slot(&self, run: u32) -> &Slot {
        &self.slots[run as usize % self.slots.len()]
    }

    /// Whether the receiver tells the sender that it has consumed this run.
    #[inline]
    fn acknowledges(&self, run: u32) -> bool {
        (run as usize).is_multiple_of(self.slots.len() / 2)
    }

    /// Whether the slot of run `run` is free; `seen` remembers what the receiver had consumed when last looked.
    #[inline]
    pub(crate) fn free(&self, run: u32, seen: &mut u32) -> bool {
        let free = |consumed: u32| run.wrapping_sub(consumed) <= self.slots.len() as u32;
        if !free(*seen) {
            *seen = self.consumed.0.load(Ordering::Acquire);
        }
        free(*seen)
    }

    /// Sends the pieces.
    ///
    /// # Safety
    /// The sender calls it, once for each run, when the slot is [`free`](Small::free); the pieces hold as many bytes as the
    /// wire was made for and are readable.
    #[inline]
    pub(crate) unsafe fn send(&self, run: u32, pieces: impl Iterator<Item = Piece>) {
        let slot = self.slot(run);
        let copy = |mut to: *mut u8| {
            for piece in pieces {
                // SAFETY: the caller's pieces are readable and together as long as the slot.
                unsafe {
                    match piece.len {
                        // The most frequent size of all, without a call.
                        8 => std::ptr::copy_nonoverlapping(piece.at, to, 8),
                        len => std::ptr::copy_nonoverlapping(piece.at, to, len),
                    }
                    to = to.add(piece.len);
                }
            }
        };
        if self.bytes <= INLINE {
            slot.inline.with_mut(|payload| copy(payload.cast()));
        } else {
            // SAFETY: the slot is free: the receiver has stored `consumed` after its last read.
            slot.body.with_mut(|body| copy(unsafe { (*body).as_mut_ptr() }.cast()));
        }
        slot.seq.store(run, Ordering::Release);
    }
}

impl Large {
    /// Makes room for a list of pieces, so that publishing it allocates nothing.
    ///
    /// # Safety
    /// The sender calls it before it publishes anything.
    pub(crate) unsafe fn reserve(&self, pieces: usize) {
        // SAFETY: nothing has been published: the receiver is not looking at the list.
        self.pieces.with_mut(|list| unsafe { (*list).reserve_exact(pieces) });
    }

    /// Lets the receiver read the pieces.
    ///
    /// # Safety
    /// The sender calls it when the wire is [`settled`](Large::settled), and keeps the pieces readable and unwritten until it
    /// is again, or until [`revoke`](Large::revoke) returns.
    pub(crate) unsafe fn publish(&self, pieces: impl Iterator<Item = Piece>) {
        // SAFETY: IDLE: the receiver is not looking at the list.
        self.pieces.with_mut(|list| unsafe {
            (*list).clear();
            (*list).extend(pieces);
        });
        self.state.store(PUBLISHED, Ordering::Release);
    }

    /// Whether the receiver is through with the sender's memory.
    #[inline]
    pub(crate) fn settled(&self) -> bool {
        self.state.load(Ordering::Acquire) == IDLE
    }

    /// Takes a message back, or waits until it has been read.
    pub(crate) fn revoke(&self) {
        loop {
            match self.state.compare_exchange(PUBLISHED, REVOKED, Ordering::AcqRel, Ordering::Acquire) {
                Err(READING) => spin_loop(),
                _ => return,
            }
            #[cfg(loom)]
            loom::thread::yield_now();
        }
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::sync::Arc;
    use loom::thread;

    fn pieces(value: &u64) -> std::iter::Once<Piece> {
        std::iter::once(Piece { at: std::ptr::from_ref(value).cast(), len: 8 })
    }

    #[test]
    fn slots_deliver_every_run_and_are_not_overwritten() {
        loom::model(|| {
            // Two slots, so that reuse is reached within the model's bounds.
            let slot = |_| Slot {
                seq: AtomicU32::new(0),
                inline: UnsafeCell::new([0; 7]),
                body: UnsafeCell::new(Box::new([])),
            };
            let wire = Arc::new(Wire::Small(Small {
                slots: (0..2).map(slot).collect(),
                bytes: 8,
                consumed: Consumed(AtomicU32::new(0)),
            }));
            let sender = thread::spawn({
                let wire = wire.clone();
                move || {
                    let Wire::Small(small) = &*wire else { unreachable!() };
                    let mut seen = 0;
                    for run in 1..=3u32 {
                        while !small.free(run, &mut seen) {
                            thread::yield_now();
                        }
                        let value = u64::from(run) * 10;
                        // SAFETY: the slot is free and the value is alive.
                        unsafe { small.send(run, pieces(&value)) };
                    }
                }
            });
            for run in 1..=3u32 {
                while !wire.arrived(run) {
                    thread::yield_now();
                }
                let mut got = 0u64;
                // SAFETY: arrived.
                unsafe { wire.take(run, |piece| got = *piece.at.cast::<u64>()).unwrap() };
                assert_eq!(got, u64::from(run) * 10);
            }
            sender.join().unwrap();
        });
    }

    #[test]
    fn a_large_message_is_read_or_revoked_but_never_both() {
        loom::model(|| {
            let wire =
                Arc::new(Wire::Large(Large { state: AtomicU32::new(IDLE), pieces: UnsafeCell::new(Vec::new()) }));
            let memory = Arc::new(UnsafeCell::new(7u64));
            let receiver = thread::spawn({
                let (wire, memory) = (wire.clone(), memory.clone());
                move || {
                    while !wire.arrived(1) {
                        thread::yield_now();
                    }
                    // SAFETY: arrived. The cell stands for the sender's memory: loom checks that nobody writes it now.
                    unsafe { wire.take(1, |_| memory.with(|value| assert_eq!(*value, 7))) }
                }
            });
            let Wire::Large(large) = &*wire else { unreachable!() };
            let value = 0u64;
            // SAFETY: settled at first; the pieces are not dereferenced in this model.
            unsafe { large.publish(pieces(&value)) };
            large.revoke();
            // After revoke returned the memory is the sender's again.
            // SAFETY: what the protocol promises; loom would report a concurrent read.
            memory.with_mut(|value| unsafe { *value = 8 });
            let _ = receiver.join().unwrap();
        });
    }
}
