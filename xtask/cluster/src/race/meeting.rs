//! Where the ranks of a race agree when to start: a file that all of them map, since all nodes are one machine with one clock.
//!
//! Messages would not do: whoever hears of the start later starts later, by as much as is to be measured.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::thread::{ClockId, NanosleepRelativeResult};

use crate::system::Urgent;

/// Between the last rank's arrival and the start: the others look so often that all of them know by then.
const LEAD: Duration = Duration::from_micros(600);
const PAUSE: Duration = Duration::from_micros(50);

/// One word each: how many have come, the start, when each rank began and when it had finished.
pub(crate) struct Meeting {
    words: *mut AtomicU64,
    ranks: usize,
    me: usize,
    met: u64,
}

/// A run, by everybody's clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    /// From the agreed start to the last finish.
    pub(crate) time: Duration,
    /// From the agreed start to the last beginning.
    pub(crate) late: Duration,
}

const COME: usize = 0;
const START: usize = 1;
const FIRST: usize = 2;

fn bytes(ranks: usize) -> usize {
    (FIRST + 2 * ranks) * size_of::<AtomicU64>()
}

fn now() -> u64 {
    let time = rustix::time::clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

impl Meeting {
    /// A file for so many ranks, all zeros.
    pub(crate) fn prepare(place: &Path, ranks: usize) -> io::Result<()> {
        File::create(place)?.set_len(bytes(ranks) as u64)
    }

    pub(crate) fn join(place: &Path, me: usize, ranks: usize) -> io::Result<Meeting> {
        let file = File::options().read(true).write(true).open(place)?;
        if file.metadata()?.len() != bytes(ranks) as u64 {
            return Err(io::Error::other("the file is for another number of ranks"));
        }
        let (read_write, shared) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: a new mapping at a place of the kernel's choice.
        let words = unsafe { mmap(std::ptr::null_mut(), bytes(ranks), read_write, shared, &file, 0)? };
        Ok(Meeting { words: words.cast(), ranks, me, met: 0 })
    }

    fn word(&self, index: usize) -> &AtomicU64 {
        debug_assert!(index < FIRST + 2 * self.ranks);
        // SAFETY: the mapping has that many words and lives as long as `self`; everybody uses them as atomics.
        unsafe { &*self.words.add(index) }
    }

    /// Waits until everybody has come; whether this rank was the last.
    fn come(&mut self) -> bool {
        self.met += 1;
        let all = self.met * self.ranks as u64;
        if self.word(COME).fetch_add(1, Ordering::AcqRel) + 1 == all {
            return true;
        }
        while self.word(COME).load(Ordering::Acquire) < all {
            sleep(PAUSE);
        }
        false
    }

    /// Does something at the same time on every rank; `urgent`: before everything else that runs on this machine.
    pub(crate) fn run<E>(&mut self, urgent: bool, act: impl FnOnce() -> Result<(), E>) -> Result<Run, E> {
        // Nobody reads the start of the run before any more.
        let before = self.word(START).load(Ordering::Acquire);
        if self.come() {
            self.word(START).store(now() + LEAD.as_nanos() as u64, Ordering::Release);
        }
        let start = loop {
            let start = self.word(START).load(Ordering::Acquire);
            if start != before {
                break start;
            }
            sleep(PAUSE);
        };
        let urgency = urgent.then(Urgent::new);
        sleep(Duration::from_nanos(start.saturating_sub(now())));
        let began = now();
        act()?;
        let finished = now();
        drop(urgency);
        self.word(FIRST + self.me).store(began, Ordering::Release);
        self.word(FIRST + self.ranks + self.me).store(finished, Ordering::Release);
        self.come();
        let last = |first: usize| (0..self.ranks).map(|rank| self.word(first + rank).load(Ordering::Acquire)).max();
        let since = |time: Option<u64>| Duration::from_nanos(time.unwrap_or(start).saturating_sub(start));
        let run = Run { time: since(last(FIRST + self.ranks)), late: since(last(FIRST)) };
        // Nobody writes the times of the next run before all have read these.
        self.come();
        Ok(run)
    }
}

impl Drop for Meeting {
    fn drop(&mut self) {
        // SAFETY: made by `join`, and no reference into it is left.
        let _ = unsafe { munmap(self.words.cast(), bytes(self.ranks)) };
    }
}

fn sleep(time: Duration) {
    let mut left = rustix::time::Timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() };
    while let NanosleepRelativeResult::Interrupted(rest) = rustix::thread::nanosleep(&left) {
        left = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ranks_see_the_same_run() {
        let place = std::env::temp_dir().join(format!("allhands-meeting-{}", std::process::id()));
        Meeting::prepare(&place, 3).unwrap();
        assert!(Meeting::join(&place, 0, 4).is_err());
        let runs: Vec<Vec<Run>> = std::thread::scope(|scope| {
            let rank = |me: usize| {
                let place = &place;
                move || {
                    let mut meeting = Meeting::join(place, me, 3).unwrap();
                    let nap = Duration::from_millis(if me == 1 { 3 } else { 0 });
                    let act = || {
                        sleep(nap);
                        Ok::<(), ()>(())
                    };
                    (0..20).map(|_| meeting.run(false, act).unwrap()).collect()
                }
            };
            let ranks: Vec<_> = (0..3).map(|me| scope.spawn(rank(me))).collect();
            ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
        });
        std::fs::remove_file(&place).unwrap();
        for runs in runs[0].iter().zip(&runs[1]).zip(&runs[2]) {
            let ((one, other), third) = runs;
            assert_eq!((one.time, one.late), (other.time, other.late));
            assert_eq!((one.time, one.late), (third.time, third.late));
            assert!(one.time >= Duration::from_millis(3), "the slowest rank counts");
        }
    }
}
