//! Locks that outlive a panic: it ends the call that it came in, not the program.

use std::cell::{Cell, UnsafeCell};
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// Locks, and waits for another thread that has it.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks what no other thread has.
pub fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// What one call of MPI's uses at a time. Where several threads may call at once it is behind a lock; below `MPI_THREAD_MULTIPLE` the program sees to
/// it that calls come one after the other, and a mark is enough.
///
/// ```
/// use allhands_call::locks::OneCall;
/// // SAFETY: there is one thread.
/// let calls = unsafe { OneCall::new(0, false) };
/// *calls.lock() += 1;
/// let held = calls.lock();
/// assert!(calls.try_lock().is_none());
/// assert_eq!(*held, 1);
/// ```
pub struct OneCall<T> {
    /// Whether several threads may call at once.
    several: bool,
    taken: Cell<bool>,
    lock: Mutex<()>,
    /// What the call that has it holds of the lock.
    guard: UnsafeCell<Option<MutexGuard<'static, ()>>>,
    value: UnsafeCell<T>,
}

// SAFETY: what is not the lock is touched by who has it, or, where there is none, by one thread after the other, as `new` was promised.
unsafe impl<T: Send> Sync for OneCall<T> {}
// SAFETY: one that moves is borrowed by nobody, so nobody has it, and it holds no guard.
unsafe impl<T: Send> Send for OneCall<T> {}

impl<T> OneCall<T> {
    /// # Safety
    /// Unless there may be `several` threads at once, they come here one after the other, and what one did happened before the next one comes.
    pub unsafe fn new(value: T, several: bool) -> OneCall<T> {
        let (lock, guard) = (Mutex::new(()), UnsafeCell::new(None));
        OneCall { several, taken: Cell::new(false), lock, guard, value: UnsafeCell::new(value) }
    }

    /// Takes it, and waits for another thread that has it. A thread that has it must not come again.
    #[inline]
    pub fn lock(&self) -> Held<'_, T> {
        if self.several {
            self.hold(lock(&self.lock));
        }
        self.held().expect("a call begins in the midst of another one of its thread")
    }

    /// Takes it, if nobody has it.
    pub fn try_lock(&self) -> Option<Held<'_, T>> {
        if self.several {
            self.hold(try_lock(&self.lock)?);
        }
        self.held()
    }

    #[inline]
    fn held(&self) -> Option<Held<'_, T>> {
        (!self.taken.replace(true)).then_some(Held(self))
    }

    #[cold]
    fn hold(&self, guard: MutexGuard<'_, ()>) {
        // SAFETY: it stays beside its lock, and `let_go` drops it on this thread: whoever has it borrows both.
        let guard: MutexGuard<'static, ()> = unsafe { std::mem::transmute(guard) };
        // SAFETY: we have the lock.
        unsafe { *self.guard.get() = Some(guard) };
    }

    #[cold]
    fn let_go(&self) {
        // SAFETY: we have the lock until the guard, which is out of the cell by then, is dropped.
        drop(unsafe { (*self.guard.get()).take() });
    }

    /// What was in it.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

/// It is this call's until this is dropped.
pub struct Held<'a, T>(&'a OneCall<T>);

impl<T> Deref for Held<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: whoever finds the mark set does not get it, so nobody else has a reference.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for Held<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for Held<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.0.taken.set(false);
        if self.0.several {
            self.0.let_go();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_threads_come_one_after_the_other() {
        // SAFETY: there may be several.
        let number = unsafe { OneCall::new(0, true) };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..1000).for_each(|_| *number.lock() += 1));
            }
        });
        assert_eq!(number.into_inner(), 4000);
    }

    #[test]
    fn it_is_free_again_after_a_panic() {
        for several in [false, true] {
            // SAFETY: there is one thread.
            let number = unsafe { OneCall::new(0, several) };
            let panics = || {
                let _held = number.lock();
                panic!("on purpose");
            };
            assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics)).is_err());
            assert_eq!(number.try_lock().map(|held| *held), Some(0));
        }
    }

    #[test]
    #[should_panic = "in the midst of another one"]
    fn who_has_it_does_not_get_it_twice() {
        // SAFETY: there is one thread.
        let number = unsafe { OneCall::new(0, false) };
        let _held = number.lock();
        number.lock();
    }
}
