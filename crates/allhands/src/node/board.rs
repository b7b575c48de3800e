//! The board of a node: plans in the making, and the first failure.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// All zeros is an empty board.
#[repr(C, align(128))]
pub(crate) struct Board {
    /// Set last by the maker of memory that processes share: a mapping without it is of something else.
    _stamp: AtomicU64,
    failed: AtomicU32,
    lock: AtomicU32,
    notes: UnsafeCell<Notes>,
}

/// What the lock guards.
#[repr(C)]
struct Notes {
    failure: Text<2048>,
    failed_rank: u32,
    joining: [Joining; PLANS],
}

/// So many plans can be in the making at once; calls of more are not compared.
const PLANS: usize = 256;

/// A plan that some but not all ranks of the node have made; key 0: none.
#[repr(C)]
struct Joining {
    key: u64,
    missing: u32,
    first: u32,
    /// Of all that is asked for, which may be longer than the text.
    hash: u64,
    asked: Text<240>,
}

#[repr(C)]
struct Text<const N: usize> {
    len: u32,
    bytes: [u8; N],
}

impl<const N: usize> Text<N> {
    fn set(&mut self, text: &str) {
        let len = text.floor_char_boundary(N);
        self.bytes[..len].copy_from_slice(&text.as_bytes()[..len]);
        self.len = len as u32;
    }

    fn get(&self) -> String {
        String::from_utf8_lossy(&self.bytes[..self.len as usize]).into_owned()
    }
}

// SAFETY: the notes are touched only under the lock.
unsafe impl Sync for Board {}

impl Board {
    /// The lock is held for the time of a comparison; a process that dies with it takes its whole job along.
    fn locked<R>(&self, act: impl FnOnce(&mut Notes) -> R) -> R {
        while self.lock.compare_exchange_weak(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
            std::thread::yield_now();
        }
        // SAFETY: we hold the lock, and `act` cannot keep the reference.
        let result = act(unsafe { &mut *self.notes.get() });
        self.lock.store(0, Ordering::Release);
        result
    }

    /// Notes a failure, if it is the first.
    pub(crate) fn fail(&self, rank: usize, reason: &str) {
        self.locked(|notes| {
            if self.failed.load(Ordering::Relaxed) == 0 {
                notes.failed_rank = rank as u32;
                notes.failure.set(reason);
                self.failed.store(1, Ordering::Release);
            }
        });
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire) != 0
    }

    /// The first failure: who, and why.
    pub(crate) fn failure(&self) -> Option<(usize, String)> {
        if !self.has_failed() {
            return None;
        }
        Some(self.locked(|notes| (notes.failed_rank as usize, notes.failure.get())))
    }

    /// Joins the plan that `ranks` of the node make together, as rank `me`; or says who asked for what else.
    pub(crate) fn join(&self, key: u64, ranks: usize, me: usize, text: &str) -> Result<(), (usize, String)> {
        if ranks <= 1 {
            return Ok(());
        }
        let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325, mix);
        self.locked(|notes| {
            let place = notes.joining.iter().position(|joining| joining.key == key);
            let Some(place) = place.or_else(|| notes.joining.iter().position(|joining| joining.key == 0)) else {
                return Ok(());
            };
            let joining = &mut notes.joining[place];
            if joining.key == 0 {
                let asked = Text { len: 0, bytes: [0; 240] };
                *joining = Joining { key, missing: ranks as u32, first: me as u32, hash, asked };
                joining.asked.set(text);
            }
            let (first, same) = (joining.first as usize, joining.hash == hash);
            let expected = if same { String::new() } else { joining.asked.get() };
            joining.missing -= 1;
            if joining.missing == 0 {
                joining.key = 0;
            }
            if same { Ok(()) } else { Err((first, expected)) }
        })
    }
}
