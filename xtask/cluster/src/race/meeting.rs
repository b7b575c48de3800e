//! Where the ranks of a race agree when to start: a file that all of them map, since all nodes are one machine with one clock.
//!
//! Messages would not do: whoever hears of the start later starts later, by as much as is to be measured.

use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::thread::{ClockId, NanosleepRelativeResult};

use crate::system::Urgent;
use crate::words::Words;

/// Between the last rank's arrival and the start: so long for each rank, that all are awake by then.
const LEAD: Duration = Duration::from_micros(40);
const LEAST_LEAD: Duration = Duration::from_micros(300);

/// One word each: how many have come, the gate behind which they wait, the start, when each rank was ready and when it had finished.
pub(crate) struct Meeting {
    words: Words,
    ranks: usize,
    me: usize,
    met: u32,
}

/// A run, by everybody's clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Run {
    /// When it began.
    pub(crate) start: Duration,
    /// From the agreed start to the last finish.
    pub(crate) time: Duration,
    /// Whether some rank was not ready by then. That it is ready and waits for a core, since others work on all of them, is part of
    /// what is measured.
    pub(crate) late: bool,
}

const COME: usize = 0;
const GATE: usize = 1;
const START: usize = 2;
const FIRST: usize = 3;

fn words(ranks: usize) -> usize {
    FIRST + 2 * ranks
}

fn now() -> u64 {
    let time = rustix::time::clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

impl Meeting {
    /// A file for so many ranks.
    pub(crate) fn prepare(place: &Path, ranks: usize) -> io::Result<()> {
        Words::create(place, words(ranks)).map(|_| ())
    }

    pub(crate) fn join(place: &Path, me: usize, ranks: usize) -> io::Result<Meeting> {
        Ok(Meeting { words: Words::open(place, words(ranks))?, ranks, me, met: 0 })
    }

    /// Waits until everybody has come; the last does something before all go on.
    pub(crate) fn come(&mut self, last: impl FnOnce(&Words)) {
        self.come_while(None, last);
    }

    fn come_while(&mut self, on_idle: Option<&dyn Fn()>, last: impl FnOnce(&Words)) {
        self.met += 1;
        let all = u64::from(self.met) * self.ranks as u64;
        if self.words.number(COME).fetch_add(1, Ordering::AcqRel) + 1 == all {
            last(&self.words);
            self.words.open_gate(GATE, self.met);
        } else {
            self.words.pass(GATE, self.met, on_idle);
        }
    }

    /// Does something at the same time on every rank; `urgent`: before everything else that runs on this machine. Who is through does
    /// what `on_idle` does until all are: others may wait for messages that its MPI has taken but not sent.
    pub(crate) fn run<E>(
        &mut self,
        urgent: bool,
        act: impl FnOnce() -> Result<(), E>,
        on_idle: &dyn Fn(),
    ) -> Result<Run, E> {
        let lead = LEAST_LEAD + LEAD * self.ranks as u32;
        let urgency = urgent.then(Urgent::new);
        self.come(|words| words.number(START).store(now() + lead.as_nanos() as u64, Ordering::Release));
        let start = self.words.number(START).load(Ordering::Acquire);
        let ready = now();
        sleep(Duration::from_nanos(start.saturating_sub(ready)));
        act()?;
        let finished = now();
        drop(urgency);
        self.words.number(FIRST + self.me).store(ready, Ordering::Release);
        self.words.number(FIRST + self.ranks + self.me).store(finished, Ordering::Release);
        self.come_while(Some(on_idle), |_| ());
        let time = |index: usize| self.words.number(index).load(Ordering::Acquire);
        let last = |first: usize| (0..self.ranks).map(|rank| time(first + rank)).max().unwrap_or(start);
        let run = Run {
            start: Duration::from_nanos(start),
            time: Duration::from_nanos(last(FIRST + self.ranks).saturating_sub(start)),
            late: last(FIRST) > start,
        };
        // Nobody writes the times of the next run before all have read these.
        self.come(|_| ());
        Ok(run)
    }
}

pub(crate) fn sleep(time: Duration) {
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
                    (0..20).map(|_| meeting.run(false, act, &|| ()).unwrap()).collect()
                }
            };
            let ranks: Vec<_> = (0..3).map(|me| scope.spawn(rank(me))).collect();
            ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
        });
        std::fs::remove_file(&place).unwrap();
        for runs in runs[0].iter().zip(&runs[1]).zip(&runs[2]) {
            let ((one, other), third) = runs;
            assert_eq!((one, one), (other, third));
            assert!(one.time >= Duration::from_millis(3), "the slowest rank counts");
        }
        assert!(runs[0].windows(2).all(|pair| pair[0].start + pair[0].time <= pair[1].start), "one after the other");
    }
}
