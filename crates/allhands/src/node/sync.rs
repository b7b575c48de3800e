//! Atomics, cells and sleeping. Where models of what ranks share are checked, `allhands-models` has loom's in their place.

pub(crate) use std::{
    hint::spin_loop,
    sync::atomic::{AtomicU8, AtomicU32, Ordering, fence},
    thread::yield_now,
};

use std::time::Duration;

/// Where one rank sleeps: a word that others can see, and a futex on it that works across processes. All zeros is a word on which
/// nobody sleeps.
#[derive(Default)]
#[repr(C)]
pub(crate) struct FutexWord {
    marked: AtomicU32,
}

impl FutexWord {
    /// As the owner: from now on [`wake`](FutexWord::wake) has somebody to wake.
    pub(crate) fn mark_asleep(&self) {
        self.marked.store(1, Ordering::Relaxed);
    }

    /// As the owner: until woken since the mark was set, or for so long.
    pub(crate) fn sleep(&self, at_most: Duration) {
        let timeout =
            rustix::thread::Timespec { tv_sec: at_most.as_secs() as i64, tv_nsec: at_most.subsec_nanos().into() };
        // Woken, timed out, interrupted or never asleep: the owner looks again in every case.
        let _ = rustix::thread::futex::wait(&self.marked, rustix::thread::futex::Flags::empty(), 1, Some(&timeout));
    }

    /// As the owner.
    pub(crate) fn clear_mark(&self) {
        self.marked.store(0, Ordering::Relaxed);
    }

    pub(crate) fn marked(&self) -> bool {
        self.marked.load(Ordering::Relaxed) != 0
    }

    /// Wakes the owner: every thread of its that sleeps here.
    pub(crate) fn wake(&self) {
        self.marked.store(0, Ordering::Relaxed);
        let _ = rustix::thread::futex::wake(&self.marked, rustix::thread::futex::Flags::empty(), i32::MAX as u32);
    }
}

/// loom's interface on the standard cell: every access says whether it writes.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    #[inline]
    pub(crate) fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        read(self.0.get())
    }

    #[inline]
    pub(crate) fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        write(self.0.get())
    }
}
