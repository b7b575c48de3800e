//! What one rank lets the others of its node know about itself.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use super::wakeup::Wakeup;

/// All zeros is a seat that nobody has taken yet.
#[repr(C, align(128))]
pub(crate) struct Seat {
    pub(crate) wakeup: Wakeup,
    state: AtomicU32,
    process: AtomicU32,
    /// The core it was last seen on, by its number and one.
    core: AtomicU32,
    /// The cores it may run on.
    cores: [AtomicU64; CORES / 64],
    /// What it waits in, while it sleeps.
    text: [AtomicU8; TEXT],
}

const TAKEN: u32 = 1;
const LEFT: u32 = 2;
/// Cores beyond these are not counted.
const CORES: usize = 1024;
const TEXT: usize = 160;

impl Seat {
    pub(super) fn take(&self) {
        self.process.store(std::process::id(), Ordering::Relaxed);
        if let Ok(cores) = rustix::thread::sched_getaffinity(None) {
            for core in (0..CORES).filter(|core| cores.is_set(*core)) {
                self.cores[core / 64].fetch_or(1 << (core % 64), Ordering::Relaxed);
            }
        }
        self.state.store(TAKEN, Ordering::Release);
    }

    pub(super) fn leave(&self) {
        self.state.store(LEFT, Ordering::Release);
    }

    /// Whether its rank has ended in an orderly way.
    pub(crate) fn left(&self) -> bool {
        self.state.load(Ordering::Acquire) == LEFT
    }

    pub(crate) fn process(&self) -> u32 {
        self.process.load(Ordering::Relaxed)
    }

    /// Whether its process has ended without saying so.
    pub(crate) fn dead(&self) -> bool {
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{}/stat", self.process())) else { return true };
        // After the name in parentheses: Z and X are dead.
        stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with(['Z', 'X']))
    }

    /// Says what this rank waits in, or that it waits no longer.
    pub(crate) fn say(&self, text: &str) {
        let bytes = text.bytes().chain(std::iter::once(0)).take(TEXT);
        self.text.iter().zip(bytes).for_each(|(place, byte)| place.store(byte, Ordering::Relaxed));
    }

    /// What it waits in.
    pub(crate) fn doing(&self) -> String {
        let bytes = self.text.iter().map(|byte| byte.load(Ordering::Relaxed)).take_while(|byte| *byte != 0);
        String::from_utf8_lossy(&bytes.collect::<Vec<_>>()).into_owned()
    }

    /// Says which core its rank runs on, of which [`Core::here`] knows.
    pub(super) fn runs_on(&self, core: Core) {
        self.core.store(core.0, Ordering::Relaxed);
    }

    /// Whether its rank was last seen on a core.
    pub(crate) fn ran_on(&self, core: Core) -> bool {
        core != Core::UNKNOWN && self.core.load(Ordering::Relaxed) == core.0
    }

    /// How many cores some ranks may run on together.
    pub(crate) fn cores<'a>(seats: impl Iterator<Item = &'a Seat> + Clone) -> usize {
        let word = |index: usize| seats.clone().fold(0, |all, seat| all | seat.cores[index].load(Ordering::Relaxed));
        (0..CORES / 64).map(|index| word(index).count_ones() as usize).sum()
    }

    /// How many cores it may run on.
    fn choice(&self) -> usize {
        self.cores.iter().map(|word| word.load(Ordering::Relaxed).count_ones() as usize).sum()
    }

    /// Whether it may run only where another may, too.
    fn is_within(&self, other: &Seat) -> bool {
        let mine = self.cores.iter().zip(&other.cores);
        mine.fold(true, |within, (mine, other)| {
            within & (mine.load(Ordering::Relaxed) & !other.load(Ordering::Relaxed) == 0)
        })
    }

    /// Whether the ranks that may run only where it may outnumber those cores.
    pub(crate) fn is_crowded<'a>(&self, mut seats: impl Iterator<Item = &'a Seat>) -> bool {
        let cores = self.choice();
        // None: the kernel did not say.
        cores > 0 && seats.by_ref().filter(|seat| seat.is_within(self)).count() > cores
    }
}

/// A core, by its number and one; 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Core(u32);

impl Core {
    const UNKNOWN: Core = Core(0);

    /// Where this thread runs.
    #[inline]
    pub(crate) fn here() -> Core {
        // SAFETY: it takes nothing and changes nothing.
        Core(u32::try_from(unsafe { libc::sched_getcpu() } + 1).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seats(masks: &[u64]) -> Vec<Seat> {
        let seat = |mask: &u64| {
            // SAFETY: all zeros is a seat that nobody has taken.
            let seat: Seat = unsafe { std::mem::zeroed() };
            seat.cores[3].store(*mask, Ordering::Relaxed);
            seat
        };
        masks.iter().map(seat).collect()
    }

    #[test]
    fn ranks_are_crowded_where_those_that_may_run_nowhere_else_outnumber_the_cores() {
        let crowded = |masks: &[u64]| {
            let seats = seats(masks);
            seats.iter().map(|seat| seat.is_crowded(seats.iter())).collect::<Vec<_>>()
        };
        assert_eq!(crowded(&[0b11, 0b11]), [false, false]);
        assert_eq!(crowded(&[0b11, 0b11, 0b11]), [true; 3]);
        // Each has a core, although all may run on few.
        assert_eq!(crowded(&[0b01, 0b10]), [false, false]);
        // Two are bound to one core; the third and fourth have cores enough.
        assert_eq!(crowded(&[0b0001, 0b0001, 0b1100, 0b1100]), [true, true, false, false]);
        // One is bound to a core where another may run, who has another.
        assert_eq!(crowded(&[0b01, 0b11]), [false, false]);
        // Nobody knows.
        assert_eq!(crowded(&[0, 0, 0]), [false; 3]);
    }

    #[test]
    fn a_rank_is_seen_where_it_says_it_runs() {
        let seat = &seats(&[1])[0];
        assert!(!seat.ran_on(Core::UNKNOWN) && !seat.ran_on(Core(1)), "it has not said so yet");
        seat.runs_on(Core(1));
        assert!(seat.ran_on(Core(1)) && !seat.ran_on(Core(2)));
        assert_ne!(Core::here(), Core::UNKNOWN);
    }
}
