//! Who may touch a rank's state: one thread, or one at a time.
//!
//! The state of a rank (its side of channels, its runs under way, the counts and cells in them) is made for one thread. Where MPI lets
//! any thread call at any time (`MPI_THREAD_MULTIPLE`), and where a helper moves runs on, several threads come to it: then each goes
//! through the gate, by [`RankState::enter`](crate::rank::RankState::enter) at the top of every public function of communicators and
//! plans, and is inside until the outermost of its calls returns. So no two threads touch the state at once, and the gate's lock
//! orders what one did before what the next one does. Below that level MPI itself demands that calls, ours included, are made by
//! one thread at a time; the gate then costs a branch.
//!
//! **Who waits lets others in.** A thread that waits for another rank is inside only while it looks: between two looks it goes
//! [away](Gate::away), or lets those in who stand before the gate ([`Gate::breathe`]). So two threads of each process may wait for
//! two collectives in opposite orders: whichever of them is inside, the other gets in before the first one's next look, at the
//! latest while that one sleeps. What is looked at is complete whenever a thread goes away: nobody goes away in the middle of a change. Calls
//! that wait inside MPI (its own collectives, the making of communicators) are made away from the state, too.
//!
//! **Several threads sleep on one futex word.** They are counted, inside; a wake reaches all of them, and each looks at what it waits for. A
//! thread that wakes clears the mark only if nobody else sleeps, else a waker would take the others for awake. One wake can
//! still be missed: it comes when one thread has left the gate and is not asleep yet, finds nobody to wake and clears the mark, and a
//! second thread sets the mark before the first one falls asleep. The first one then sleeps for one nap, which is never longer
//! than a millisecond where there are several threads, and looks again.

use std::cell::{Cell, UnsafeCell};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

pub(crate) struct Gate {
    /// Whether several threads may come.
    shared: bool,
    lock: Mutex<()>,
    /// The thread that is inside, by its token; 0: none. A thread finds its own token here only if it is inside.
    owner: AtomicUsize,
    /// What the thread inside holds, and how often it has entered.
    inside: UnsafeCell<Option<MutexGuard<'static, ()>>>,
    depth: Cell<usize>,
    /// How many stand before the gate.
    waiting: AtomicU32,
    /// How many sleep, to be changed inside.
    asleep: Cell<usize>,
}

// SAFETY: what is not atomic is touched by the thread that holds the lock only.
unsafe impl Sync for Gate {}
// SAFETY: a gate that moves is borrowed by nobody, so nobody is inside, and it holds no guard.
unsafe impl Send for Gate {}

impl Gate {
    /// `shared`: whether several threads may come.
    pub(crate) fn new(shared: bool) -> Gate {
        Gate {
            shared,
            lock: Mutex::new(()),
            owner: AtomicUsize::new(0),
            inside: UnsafeCell::new(None),
            depth: Cell::new(0),
            waiting: AtomicU32::new(0),
            asleep: Cell::new(0),
        }
    }

    #[inline]
    pub(crate) fn is_shared(&self) -> bool {
        self.shared
    }

    /// Waits until this thread is inside, once more if it is already. Each needs its [`leave`](Gate::leave).
    pub(crate) fn enter(&self) {
        if self.owner.load(Ordering::Relaxed) == token() {
            self.depth.set(self.depth.get() + 1);
        } else {
            self.lock(1);
        }
    }

    /// The same, if no other thread is inside.
    pub(crate) fn try_enter(&self) -> bool {
        if self.owner.load(Ordering::Relaxed) == token() {
            self.depth.set(self.depth.get() + 1);
            return true;
        }
        self.try_lock(1)
    }

    pub(crate) fn leave(&self) {
        match self.depth.get() {
            1 => drop(self.unlock()),
            depth => self.depth.set(depth - 1),
        }
    }

    /// Whether a thread stands before the gate.
    #[inline]
    pub(crate) fn is_wanted(&self) -> bool {
        self.shared && self.waiting.load(Ordering::Relaxed) > 0
    }

    /// As the thread inside, between two looks: lets others in who stand before the gate.
    #[inline]
    pub(crate) fn breathe(&self) {
        if self.is_wanted() {
            self.let_others_in();
        }
    }

    #[cold]
    fn let_others_in(&self) {
        let before = self.waiting.load(Ordering::Relaxed);
        self.away(|| {
            // A few turns, so that whoever was woken by the lock finds it free.
            for _ in 0..64 {
                std::thread::yield_now();
                if self.waiting.load(Ordering::Relaxed) != before {
                    break;
                }
            }
        });
    }

    /// As the thread inside: does something that takes time and does not touch the state, while others may enter.
    #[inline]
    pub(crate) fn away<R>(&self, act: impl FnOnce() -> R) -> R {
        if !self.shared || self.owner.load(Ordering::Relaxed) != token() {
            return act();
        }
        let _back = Back { gate: self, depth: self.unlock() };
        act()
    }

    /// As the thread inside: the same for a sleep, which is counted.
    #[inline]
    pub(crate) fn asleep(&self, sleep: impl FnOnce()) {
        self.asleep.set(self.asleep.get() + 1);
        self.away(sleep);
        self.asleep.set(self.asleep.get() - 1);
    }

    /// As the thread inside: whether another one sleeps.
    #[inline]
    pub(crate) fn others_sleep(&self) -> bool {
        self.asleep.get() > 0
    }

    fn lock(&self, depth: usize) {
        // Mostly nobody is there, and whoever comes at once has not stood before it.
        if !self.try_lock(depth) {
            self.waiting.fetch_add(1, Ordering::Relaxed);
            let guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            self.hold(guard, depth);
        }
    }

    fn try_lock(&self, depth: usize) -> bool {
        match self.lock.try_lock() {
            Ok(guard) => self.hold(guard, depth),
            Err(TryLockError::Poisoned(poisoned)) => self.hold(poisoned.into_inner(), depth),
            Err(TryLockError::WouldBlock) => return false,
        }
        true
    }

    fn hold(&self, guard: MutexGuard<'_, ()>, depth: usize) {
        // SAFETY: the guard stays in the gate beside its lock, and is dropped by `unlock` on this thread, which is the one inside.
        // Whoever is inside holds a reference to the gate, so the lock outlives the guard.
        let guard: MutexGuard<'static, ()> = unsafe { std::mem::transmute(guard) };
        self.owner.store(token(), Ordering::Relaxed);
        self.depth.set(depth);
        // SAFETY: we hold the lock.
        unsafe { *self.inside.get() = Some(guard) };
    }

    /// How often this thread had entered.
    fn unlock(&self) -> usize {
        let depth = self.depth.replace(0);
        self.owner.store(0, Ordering::Relaxed);
        // SAFETY: we hold the lock until the guard, which is out of the cell by then, is dropped.
        drop(unsafe { (*self.inside.get()).take() });
        depth
    }
}

/// Brings a thread back inside, also when what it did away panics.
struct Back<'a> {
    gate: &'a Gate,
    depth: usize,
}

impl Drop for Back<'_> {
    fn drop(&mut self) {
        self.gate.lock(self.depth);
    }
}

thread_local! {
    static HERE: u8 = const { 0 };
}

/// Tells this thread from all others that live; never 0.
#[inline]
fn token() -> usize {
    HERE.with(|here| std::ptr::from_ref(here) as usize)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[test]
    fn one_thread_is_inside_at_a_time_however_often_it_enters() {
        struct Counted(Gate, UnsafeCell<u64>);
        // SAFETY: the number is touched inside the gate only.
        unsafe impl Sync for Counted {}
        let counted = Counted(Gate::new(true), UnsafeCell::new(0));
        let counted = &counted;
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(move || {
                    for turn in 0..1000 {
                        counted.0.enter();
                        counted.0.enter();
                        // SAFETY: inside.
                        unsafe { *counted.1.get() += 1 };
                        counted.0.leave();
                        match turn % 3 {
                            0 => counted.0.breathe(),
                            1 => counted.0.away(std::thread::yield_now),
                            _ => {}
                        }
                        // SAFETY: inside.
                        unsafe { *counted.1.get() += 1 };
                        counted.0.leave();
                    }
                });
            }
        });
        counted.0.enter();
        // SAFETY: inside.
        assert_eq!(unsafe { *counted.1.get() }, 8000);
        counted.0.leave();
    }

    #[test]
    fn who_waits_lets_others_in() {
        let (gate, said, both) = (Gate::new(true), AtomicBool::new(false), Barrier::new(2));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                gate.enter();
                both.wait();
                // Never left but for the breaths: the other must get in by one of them.
                while !said.load(Ordering::Acquire) {
                    gate.breathe();
                }
                gate.leave();
            });
            both.wait();
            gate.enter();
            said.store(true, Ordering::Release);
            gate.leave();
        });
    }

    #[test]
    fn nobody_gets_in_beside_another_thread() {
        let gate = Gate::new(true);
        gate.enter();
        assert!(gate.try_enter(), "a thread may enter again");
        std::thread::scope(|scope| assert!(!scope.spawn(|| gate.try_enter()).join().unwrap()));
        gate.leave();
        gate.leave();
        let entered = || {
            let entered = gate.try_enter();
            gate.leave();
            entered
        };
        std::thread::scope(|scope| assert!(scope.spawn(entered).join().unwrap()));
    }

    #[test]
    fn a_panic_away_from_the_state_comes_back_inside() {
        let gate = Gate::new(true);
        gate.enter();
        let away = std::panic::AssertUnwindSafe(|| gate.away(|| panic!("on purpose")));
        assert!(std::panic::catch_unwind(away).is_err());
        std::thread::scope(|scope| assert!(!scope.spawn(|| gate.try_enter()).join().unwrap()));
        gate.leave();
    }
}
