//! Atomics, cells and parking: the standard library's, or loom's when a model is checked.

#[cfg(loom)]
pub(crate) use loom::{
    cell::UnsafeCell,
    hint::spin_loop,
    sync::atomic::{AtomicBool, AtomicU32, Ordering, fence},
    thread::yield_now,
};

#[cfg(not(loom))]
pub(crate) use std::{
    hint::spin_loop,
    sync::atomic::{AtomicBool, AtomicU32, Ordering, fence},
    thread::yield_now,
};

/// The bed of one thread: sleeping there ends when somebody wakes it, or has done so since it last slept.
#[cfg(not(loom))]
pub(crate) struct Bed(std::thread::Thread);

#[cfg(not(loom))]
impl Bed {
    /// For the thread that calls.
    pub(crate) fn mine() -> Bed {
        Bed(std::thread::current())
    }

    pub(crate) fn wake(&self) {
        self.0.unpark();
    }

    /// Sleeps on a futex, as the owner; gets up from time to time to see whether a rank has failed or left.
    pub(crate) fn sleep(&self) {
        std::thread::park_timeout(std::time::Duration::from_millis(20));
    }
}

/// The same, made of what loom can model.
#[cfg(loom)]
pub(crate) struct Bed {
    woken: loom::sync::Mutex<bool>,
    changed: loom::sync::Condvar,
}

#[cfg(loom)]
impl Bed {
    pub(crate) fn mine() -> Bed {
        Bed { woken: loom::sync::Mutex::new(false), changed: loom::sync::Condvar::new() }
    }

    pub(crate) fn wake(&self) {
        *self.woken.lock().unwrap() = true;
        self.changed.notify_one();
    }

    pub(crate) fn sleep(&self) {
        let mut woken = self.woken.lock().unwrap();
        while !*woken {
            woken = self.changed.wait(woken).unwrap();
        }
        *woken = false;
    }
}

/// loom's interface on the standard cell: every access says whether it writes.
#[cfg(not(loom))]
#[derive(Debug)]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> UnsafeCell<T> {
    pub(crate) fn new(value: T) -> UnsafeCell<T> {
        UnsafeCell(std::cell::UnsafeCell::new(value))
    }

    #[inline]
    pub(crate) fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        read(self.0.get())
    }

    #[inline]
    pub(crate) fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        write(self.0.get())
    }
}
