//! How a rank waits: it looks, hands its core over or keeps it, and sleeps.
//!
//! There are three worlds. Who has to act for the wait to end decides what is right in each:
//!
//! - **A core for every rank.** The rank that is waited for runs, or will as soon as it can: nothing is gained by giving the core away, and
//!   microseconds are lost by sleeping. So keep looking, for as long as a scheduler's slice.
//! - **More ranks than cores.** The rank that is waited for may need this one's core: hand it over at once, and again, until the wait is
//!   over. Looking for a microsecond first, in case it runs on another core, made calls up to 64 KiB of 4 and 8 ranks on 2 cores a
//!   fifth to a quarter slower. A yield takes a microsecond where everybody on the core does the same. It is the same where there are cores enough but the
//!   one that is waited for was last seen on this very core, which every rank says of itself every few runs.
//! - **Cores that others use.** A yield gives the core to a program that computes, for milliseconds: where there is a core for every rank
//!   nobody yields, and who keeps the core for his slice goes on as soon as both run. Where ranks outnumber cores, one yield that took
//!   so long shows it: then they sleep instead for a while. A sleeper is woken by the ring and goes before those who compute.
//!
//! **Why no wait is lost.** The last rung is sleep on the futex word of `wakeup`, whose protocol loses no wake (see [`wakeup`](super::wakeup)); all rungs
//! before it only look. What decides between rungs (counts, clocks, who was seen where) is this rank's alone and may be wrong without harm:
//! it changes when this rank looks, never what it finds.
//!
//! **MPI goes on meanwhile**, for the program's messages and because nobody wakes a rank for it, but not before a wait has lasted for
//! a while, and so that waiting is mostly looking: after each call of MPI's it is left alone for several times as long as that call took.
//! Some MPIs yield in it.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::sync::{spin_loop, yield_now};
use super::wakeup::Wakeup;
use crate::gate::Gate;

/// A pause takes as long as a message: the first looks follow each other closely, where there is a core for every rank.
const CLOSE_LOOKS: u32 = 40;
/// Looks with a pause after each between two looks at the clock: some five microseconds.
const LOOKS: u32 = 100;
/// How long the core is kept: as long as a scheduler lets somebody run who shares it.
const SLICE: Duration = Duration::from_millis(4);
/// Who has handed his core over for so long had better sleep.
const YIELDING: Duration = Duration::from_micros(100);
/// No yield among ranks that wait takes so long.
const SLOW_YIELD: Duration = Duration::from_millis(1);
/// After such a yield so many waits go without.
const WITHOUT: u32 = 32;
/// A sleep that nobody ends lasts so long at first, then twice as long each time.
const FIRST_NAP: Duration = Duration::from_micros(50);
/// Handing over and looking by turns for a message that MPI brings.
const TURNS_FOR_MPI: u32 = 100;
/// The longest sleep while MPI, which wakes nobody, brings what is waited for.
const NAP_FOR_MPI: Duration = Duration::from_micros(100);

/// How one rank waits.
#[derive(Debug)]
pub(crate) struct Ladder {
    /// Whether ranks outnumber the cores they may run on.
    crowded: bool,
    /// The longest sleep.
    nap: Duration,
    /// So many waits are yet to go without yields.
    without: Cell<u32>,
}

/// What a rank waits for, and does meanwhile.
pub(crate) trait Wait {
    /// Why a wait is given up.
    type Reason;
    /// Looks, and does what can be done; whether the wait is over.
    fn ready(&mut self) -> bool;
    /// Whether MPI brings what is waited for now, so that looking moves MPI on.
    fn far(&self) -> bool;
    /// Whether a rank that has to act was last seen on this rank's core.
    fn beside(&self) -> bool;
    /// Moves MPI on.
    fn progress(&mut self);
    /// After a sleep: a reason to give up.
    fn slept(&mut self) -> Option<Self::Reason>;
}

impl Ladder {
    pub(crate) fn new(crowded: bool, nap: Duration) -> Ladder {
        Ladder { crowded, nap, without: Cell::new(0) }
    }

    /// The same for a rank that is a process.
    pub(crate) fn of_process(crowded: bool, nap: Duration) -> Ladder {
        CROWDED.store(crowded, Ordering::Relaxed);
        Ladder::new(crowded, nap)
    }

    /// Whether ranks outnumber the cores they may run on.
    pub(crate) fn crowded(&self) -> bool {
        self.crowded
    }

    /// Waits as a thread of the sleeper's owner, inside its gate, which other threads of it may enter between two looks.
    pub(crate) fn wait<W: Wait>(&self, wakeup: &Wakeup, gate: &Gate, wait: &mut W) -> Result<(), W::Reason> {
        let mut kind = WaitedFor::default();
        while !kind.done {
            kind.far = wait.far();
            if !self.stand(gate, wait, &mut kind) {
                self.sleep(wakeup, gate, wait, &mut kind)?;
            }
        }
        Ok(())
    }

    /// Before sleep; whether something has changed.
    fn stand<W: Wait>(&self, gate: &Gate, wait: &mut W, kind: &mut WaitedFor) -> bool {
        if kind.far && self.crowded {
            return self.take_turns(gate, wait, kind);
        }
        if !kind.far && !self.crowded {
            for _ in 0..CLOSE_LOOKS {
                if kind.changed(wait) {
                    return true;
                }
                gate.breathe();
            }
        }
        let begun = Instant::now();
        let mut mpi = Pace::new(begun, self.crowded);
        let mut yields = match self.without.get() {
            0 => true,
            waits => {
                self.without.set(waits - 1);
                false
            }
        };
        loop {
            let now;
            if !kind.far && (self.crowded || wait.beside()) {
                if !yields {
                    return false;
                }
                let before = Instant::now();
                gate.away(yield_now);
                now = Instant::now();
                if now - before > SLOW_YIELD {
                    self.without.set(WITHOUT);
                }
                yields = now - begun < YIELDING;
                if kind.changed(wait) {
                    return true;
                }
            } else {
                // There are several looks in one for what MPI brings.
                for _ in 0..if kind.far { LOOKS / 20 } else { LOOKS } {
                    if kind.changed(wait) {
                        return true;
                    }
                    gate.breathe();
                    spin_loop();
                }
                now = Instant::now();
                if now - begun > SLICE {
                    return false;
                }
            }
            // Some MPIs yield in it.
            if !kind.far && mpi.progress(now, wait) && kind.changed(wait) {
                return true;
            }
        }
    }

    /// Where ranks outnumber cores and MPI brings what is waited for. It has just been looked for: others go first.
    fn take_turns<W: Wait>(&self, gate: &Gate, wait: &mut W, kind: &mut WaitedFor) -> bool {
        gate.away(yield_now);
        for _ in 0..TURNS_FOR_MPI {
            if kind.changed(wait) {
                return true;
            }
            gate.away(yield_now);
        }
        false
    }

    fn sleep<W: Wait>(
        &self,
        wakeup: &Wakeup,
        gate: &Gate,
        wait: &mut W,
        kind: &mut WaitedFor,
    ) -> Result<(), W::Reason> {
        let longest = if kind.far { NAP_FOR_MPI.min(self.nap) } else { self.nap };
        let mut nap = FIRST_NAP.min(longest);
        let mut mpi = Pace::new(Instant::now(), self.crowded);
        loop {
            if wakeup.sleep(gate, nap, || kind.changed(wait)) {
                return Ok(());
            }
            nap = (nap * 2).min(longest);
            // What made the reason true may have made us ready just before.
            if let Some(reason) = wait.slept() {
                return if kind.changed(wait) { Ok(()) } else { Err(reason) };
            }
            if !kind.far {
                mpi.progress(Instant::now(), wait);
            }
        }
    }
}

/// Whether ranks of this process's node outnumber its cores, for those who wait beside the ladder.
static CROWDED: AtomicBool = AtomicBool::new(false);

/// Between two looks at something for which nobody wakes, and which the caller moves on by looking: a request of MPI's, or several plans
/// at once. The same ladder, as far as that allows.
///
/// ```
/// let mut pauses = allhands::raw::Pauses::default();
/// let mut looks = 0;
/// while looks < 3 { // until what is waited for is there
///     looks += 1;
///     pauses.pause();
/// }
/// ```
#[derive(Debug, Default)]
pub struct Pauses {
    looks: u32,
    begun: Option<Instant>,
}

impl Pauses {
    /// Lets some time pass: none at first; then others go first where ranks outnumber cores, or the core is kept for a while; then asleep.
    pub fn pause(&mut self) {
        self.looks = self.looks.saturating_add(1);
        if self.looks <= LOOKS / 5 {
            return spin_loop();
        }
        let waited = self.begun.get_or_insert_with(Instant::now).elapsed();
        match CROWDED.load(Ordering::Relaxed) {
            true if waited < YIELDING => yield_now(),
            false if waited < SLICE => spin_loop(),
            _ => std::thread::sleep(FIRST_NAP),
        }
    }
}

/// What is being waited for. After something of another kind it is waited for from the beginning of the ladder.
#[derive(Default)]
struct WaitedFor {
    far: bool,
    done: bool,
}

impl WaitedFor {
    #[inline]
    fn changed<W: Wait>(&mut self, wait: &mut W) -> bool {
        self.done = wait.ready();
        self.done || wait.far() != self.far
    }
}

/// When MPI is to be moved on next.
struct Pace {
    due: Instant,
    /// It is left alone for so long at most.
    most: Duration,
}

impl Pace {
    const LEAST: Duration = Duration::from_micros(10);

    /// Where ranks outnumber cores a call may have taken long because others ran meanwhile, who may wait for what it moves.
    fn new(now: Instant, crowded: bool) -> Pace {
        Pace { due: now + Pace::LEAST, most: if crowded { 2 * FIRST_NAP } else { Duration::from_millis(2) } }
    }

    /// Whether it was due.
    fn progress<W: Wait>(&mut self, now: Instant, wait: &mut W) -> bool {
        let due = now >= self.due;
        if due {
            wait.progress();
            let after = Instant::now();
            self.due = after + (8 * (after - now)).clamp(Pace::LEAST, self.most);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ready at the last of so many looks, or once it has slept.
    struct Looks {
        left: u32,
        far: bool,
        beside: bool,
        naps: u32,
        most_naps: u32,
        /// What is waited for comes during the first nap.
        comes_asleep: bool,
        progressed: u32,
    }

    impl Looks {
        fn new(left: u32) -> Looks {
            Looks { left, far: false, beside: false, naps: 0, most_naps: u32::MAX, comes_asleep: false, progressed: 0 }
        }
    }

    impl Wait for Looks {
        type Reason = &'static str;

        fn ready(&mut self) -> bool {
            self.left = self.left.saturating_sub(1);
            self.left == 0 || self.comes_asleep && self.naps > 0
        }

        fn far(&self) -> bool {
            self.far
        }

        fn beside(&self) -> bool {
            self.beside
        }

        fn progress(&mut self) {
            self.progressed += 1;
        }

        fn slept(&mut self) -> Option<&'static str> {
            self.naps += 1;
            (self.naps > self.most_naps).then_some("enough")
        }
    }

    fn waited(crowded: bool, nap: Duration, wait: &mut Looks) -> Result<(), &'static str> {
        Ladder::new(crowded, nap).wait(&Wakeup::default(), &Gate::new(false), wait)
    }

    const HOURS: Duration = Duration::from_secs(10 * 3600);

    #[test]
    fn what_mpi_brings_is_looked_for_soon_however_long_naps_may_be() {
        for crowded in [false, true] {
            // So many naps that double would last for years.
            let mut wait = Looks { far: true, most_naps: 60, ..Looks::new(u32::MAX) };
            assert_eq!(waited(crowded, HOURS, &mut wait), Err("enough"));
            assert_eq!((wait.naps, wait.progressed), (61, 0), "looking moves it on");
        }
    }

    #[test]
    fn who_is_ready_at_the_first_looks_calls_nobody() {
        for beside in [false, true] {
            let mut wait = Looks { beside, ..Looks::new(CLOSE_LOOKS) };
            assert_eq!(waited(false, HOURS, &mut wait), Ok(()));
            assert_eq!((wait.naps, wait.progressed), (0, 0));
        }
    }

    #[test]
    fn what_is_ready_in_the_end_is_not_given_up() {
        // The reason to give up is there after the first nap, and so is what was waited for, if it comes.
        for (crowded, comes_asleep, ended) in
            [(false, false, Err("enough")), (true, false, Err("enough")), (false, true, Ok(())), (true, true, Ok(()))]
        {
            let mut wait = Looks { most_naps: 0, comes_asleep, ..Looks::new(u32::MAX) };
            assert_eq!(waited(crowded, FIRST_NAP, &mut wait), ended);
            assert_eq!(wait.naps, 1);
        }
    }

    #[test]
    fn pauses_end_asleep() {
        let mut pauses = Pauses { looks: LOOKS, begun: Some(Instant::now() - 2 * SLICE) };
        let before = Instant::now();
        pauses.pause();
        assert!(before.elapsed() >= FIRST_NAP);
    }

    #[test]
    fn mpi_moves_on_while_a_rank_sleeps() {
        for crowded in [false, true] {
            let mut wait = Looks { most_naps: 8, ..Looks::new(u32::MAX) };
            assert_eq!(waited(crowded, Duration::from_millis(1), &mut wait), Err("enough"));
            assert!(wait.progressed > 0);
        }
    }

    #[test]
    fn after_a_yield_that_took_long_ranks_sleep_at_once() {
        let ladder = Ladder::new(true, Duration::from_micros(50));
        ladder.without.set(2);
        for left in [1, 0, 0] {
            let mut wait = Looks { most_naps: 1, ..Looks::new(u32::MAX) };
            let _ = ladder.wait(&Wakeup::default(), &Gate::new(false), &mut wait);
            assert!(ladder.without.get() == left || ladder.without.get() == WITHOUT);
        }
    }
}
