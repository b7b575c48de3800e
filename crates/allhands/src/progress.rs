//! A thread that moves a rank's runs on while the rank computes, on request (`ALLHANDS_PROGRESS=thread`).
//!
//! It goes through the rank's [gate](crate::gate) like any other thread, once for each of its rounds. It ends, and is waited
//! for, before the state is dropped.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::rank::RankState;

/// Between two rounds of the helper: it shares the cores with the ranks that compute.
const PAUSE: Duration = Duration::from_micros(20);

/// The helper, as its rank sees it.
pub(crate) struct Helper {
    desk: Arc<Desk>,
    thread: Option<JoinHandle<()>>,
}

struct Desk {
    /// How many runs are under way. Locked for a moment only, also by those inside the gate; never held while the gate is entered.
    runs: Mutex<usize>,
    work: Condvar,
    stop: AtomicBool,
}

/// The address of a rank's state, for the helper.
struct Of(*const RankState);

// SAFETY: the helper touches the state inside its gate only, and has ended before the state is dropped.
unsafe impl Send for Of {}

impl Helper {
    /// # Safety
    /// The state stays where it is, with a gate for several threads, until the helper is dropped.
    pub(crate) unsafe fn new(rank: *const RankState) -> Helper {
        let desk = Arc::new(Desk { runs: Mutex::new(0), work: Condvar::new(), stop: AtomicBool::new(false) });
        let (rank, theirs) = (Of(rank), desk.clone());
        let help = move || {
            let rank = rank;
            theirs.help(rank.0);
        };
        // Without a thread runs move on in test and wait, as they do without a helper.
        let thread = std::thread::Builder::new().name("allhands progress".into()).spawn(help).ok();
        Helper { desk, thread }
    }

    /// Says how many runs are under way.
    pub(crate) fn runs(&self, runs: usize) {
        *self.desk.runs.lock().unwrap_or_else(PoisonError::into_inner) = runs;
        self.desk.work.notify_one();
    }
}

impl Desk {
    fn help(&self, rank: *const RankState) {
        // SAFETY: the state lives until we have ended.
        let rank = unsafe { &*rank };
        loop {
            let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
            while *runs == 0 && !self.stop.load(Ordering::Acquire) {
                runs = self.work.wait(runs).unwrap_or_else(PoisonError::into_inner);
            }
            drop(runs);
            if self.stop.load(Ordering::Acquire) {
                return;
            }
            rank.help();
            std::thread::sleep(PAUSE);
        }
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        {
            // Between the helper's look and its sleep the word would be missed: it holds the lock there.
            let _runs = self.desk.runs.lock().unwrap_or_else(PoisonError::into_inner);
            self.desk.stop.store(true, Ordering::Release);
        }
        self.desk.work.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
