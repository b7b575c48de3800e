//! A thread that moves a rank's runs on while the rank computes, on request (`ALLHANDS_PROGRESS=thread`).
//!
//! A rank's state is made for one thread. With a helper there are two, and a lock that one of them holds whenever it
//! touches that state: the helper during each of its rounds; the rank's own thread from the moment it enters a public
//! function of a plan or communicator until it leaves the outermost one. Reference counts, cells and channels are therefore
//! never touched by both at once, and the lock orders what one does before the other. The helper ends, and is waited for,
//! before the state is dropped.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::rank::RankState;

/// Between two rounds of the helper: it shares the cores with the ranks that compute.
const PAUSE: Duration = Duration::from_micros(20);

/// The helper, as its rank sees it.
pub(crate) struct Helper {
    desk: Arc<Desk>,
    /// What the rank's thread holds while it is inside, and how often it has entered.
    inside: RefCell<Option<MutexGuard<'static, usize>>>,
    depth: Cell<usize>,
    thread: Option<JoinHandle<()>>,
}

struct Desk {
    /// How many runs are under way; locked while the rank's state is touched.
    runs: Mutex<usize>,
    work: Condvar,
    stop: AtomicBool,
}

/// The address of a rank's state, for the helper.
struct Of(*const RankState);

// SAFETY: the helper touches the state only under the lock, and has ended before the state is dropped.
unsafe impl Send for Of {}

impl Helper {
    pub(crate) fn new(rank: *const RankState) -> Helper {
        let desk = Arc::new(Desk { runs: Mutex::new(0), work: Condvar::new(), stop: AtomicBool::new(false) });
        let (rank, theirs) = (Of(rank), desk.clone());
        let help = move || {
            let rank = rank;
            theirs.help(rank.0);
        };
        // Without a thread runs move on in test and wait, as they do without a helper.
        let thread = std::thread::Builder::new().name("allhands progress".into()).spawn(help).ok();
        Helper { desk, inside: RefCell::default(), depth: Cell::new(0), thread }
    }

    /// As the rank's thread: keeps the helper off until the result, and all others of this thread, are dropped.
    pub(crate) fn enter(&self) -> Entered {
        if self.depth.get() == 0 {
            let guard = self.desk.runs.lock().unwrap_or_else(PoisonError::into_inner);
            // SAFETY: the desk lives as long as `self`, and the guard is dropped before it: in `Entered::drop`, or in
            // `Helper::drop`.
            let guard: MutexGuard<'static, usize> = unsafe { std::mem::transmute(guard) };
            *self.inside.borrow_mut() = Some(guard);
        }
        self.depth.set(self.depth.get() + 1);
        Entered(self)
    }

    /// As the rank's thread, inside: says how many runs are under way.
    pub(crate) fn runs(&self, runs: usize) {
        if let Some(guard) = &mut *self.inside.borrow_mut() {
            **guard = runs;
        }
        self.desk.work.notify_one();
    }
}

/// The rank's thread is inside.
pub(crate) struct Entered(*const Helper);

impl Drop for Entered {
    fn drop(&mut self) {
        // SAFETY: made by `enter` of a helper that its rank keeps while it is inside.
        let helper = unsafe { &*self.0 };
        helper.depth.set(helper.depth.get() - 1);
        if helper.depth.get() == 0 {
            *helper.inside.borrow_mut() = None;
        }
    }
}

impl Desk {
    fn help(&self, rank: *const RankState) {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if self.stop.load(Ordering::Acquire) {
                return;
            }
            if *runs == 0 {
                runs = self.work.wait(runs).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            // SAFETY: we hold the lock, so the rank's thread is outside; the state lives until we have ended.
            unsafe { &*rank }.progress_all();
            drop(runs);
            std::thread::sleep(PAUSE);
            runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        *self.inside.borrow_mut() = None;
        self.desk.stop.store(true, Ordering::Release);
        self.desk.work.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
