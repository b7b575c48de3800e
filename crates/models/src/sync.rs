//! Atomics, cells and sleeping as loom has them: it tries every order in which threads can take turns, and whatever they may read.

use std::time::Duration;

use loom::sync::{Condvar, Mutex};
pub(crate) use loom::{
    cell::UnsafeCell,
    hint::spin_loop,
    sync::atomic::{AtomicU8, AtomicU32, Ordering, fence},
    thread::yield_now,
};

/// Where one rank sleeps, made of what loom can model; it sleeps until woken, so that a lost wake-up shows.
pub(crate) struct FutexWord {
    marked: AtomicU32,
    asleep: Mutex<()>,
    woken: Condvar,
}

impl FutexWord {
    pub(crate) fn new() -> FutexWord {
        FutexWord { marked: AtomicU32::new(0), asleep: Mutex::new(()), woken: Condvar::new() }
    }

    pub(crate) fn mark_asleep(&self) {
        self.marked.store(1, Ordering::Relaxed);
    }

    pub(crate) fn sleep(&self, _at_most: Duration) {
        let mut asleep = self.asleep.lock().unwrap();
        while self.marked.load(Ordering::Relaxed) == 1 {
            asleep = self.woken.wait(asleep).unwrap();
        }
    }

    pub(crate) fn clear_mark(&self) {
        self.marked.store(0, Ordering::Relaxed);
    }

    pub(crate) fn marked(&self) -> bool {
        self.marked.load(Ordering::Relaxed) != 0
    }

    pub(crate) fn wake(&self) {
        // A futex compares its word under its own lock: so does this one.
        let _asleep = self.asleep.lock().unwrap();
        self.marked.store(0, Ordering::Relaxed);
        self.woken.notify_all();
    }
}
