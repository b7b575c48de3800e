//! What one rank lets the others of its node know about itself.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use super::bell::Bell;

/// All zeros is a seat that nobody has taken yet.
#[repr(C, align(128))]
pub(crate) struct Seat {
    pub(crate) bell: Bell,
    state: AtomicU32,
    process: AtomicU32,
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

    /// How many cores some ranks may run on together.
    pub(crate) fn cores<'a>(seats: impl Iterator<Item = &'a Seat> + Clone) -> usize {
        let word = |index: usize| seats.clone().fold(0, |all, seat| all | seat.cores[index].load(Ordering::Relaxed));
        (0..CORES / 64).map(|index| word(index).count_ones() as usize).sum()
    }
}
