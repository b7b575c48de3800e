//! Words that several processes of this machine share, in a file that all of them map.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::thread::futex;

/// A mapped file of words, each used by everybody as the same kind of atomic.
pub(crate) struct Words {
    first: *mut AtomicU64,
    count: usize,
}

impl Words {
    /// A file of so many words, all zeros.
    pub(crate) fn create(place: &Path, count: usize) -> io::Result<Words> {
        File::create(place)?.set_len((count * size_of::<AtomicU64>()) as u64)?;
        Words::open(place, count)
    }

    /// A file that somebody has made.
    pub(crate) fn open(place: &Path, count: usize) -> io::Result<Words> {
        let bytes = count * size_of::<AtomicU64>();
        let file = File::options().read(true).write(true).open(place)?;
        if file.metadata()?.len() != bytes as u64 {
            return Err(io::Error::other(format!("the file has not {count} words")));
        }
        let (read_write, shared) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: a new mapping at a place of the kernel's choice.
        let first = unsafe { mmap(std::ptr::null_mut(), bytes, read_write, shared, &file, 0)? };
        Ok(Words { first: first.cast(), count })
    }

    pub(crate) fn number(&self, index: usize) -> &AtomicU64 {
        assert!(index < self.count);
        // SAFETY: the mapping has that many words and lives as long as `self`; everybody uses them as atomics.
        unsafe { &*self.first.add(index) }
    }

    /// Waits until a gate, which only grows, is at `least`; now and then it does what `on_idle` does.
    pub(crate) fn pass(&self, gate: usize, least: u32, on_idle: Option<&dyn Fn()>) {
        let look = if on_idle.is_some() { Duration::from_micros(300) } else { Duration::from_millis(100) };
        let gate = self.gate(gate);
        loop {
            let now = gate.load(Ordering::Acquire);
            if now >= least {
                return;
            }
            let time = futex::Timespec { tv_sec: 0, tv_nsec: look.subsec_nanos().into() };
            // Called, timed out, interrupted or too late to sleep: it looks again.
            let _ = futex::wait(gate, futex::Flags::empty(), now, Some(&time));
            if let Some(on_idle) = on_idle {
                on_idle();
            }
        }
    }

    /// Lets those pass who wait for this.
    pub(crate) fn open_gate(&self, gate: usize, now: u32) {
        let gate = self.gate(gate);
        gate.store(now, Ordering::Release);
        let _ = futex::wake(gate, futex::Flags::empty(), i32::MAX as u32);
    }

    fn gate(&self, index: usize) -> &AtomicU32 {
        assert!(index < self.count);
        // SAFETY: as above; a gate is never used as a number, and half a word is as aligned as it needs to be.
        unsafe { &*self.first.add(index).cast() }
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        // SAFETY: made by `open`, and no reference into it is left.
        let _ = unsafe { munmap(self.first.cast(), self.count * size_of::<AtomicU64>()) };
    }
}

/// The delay of the network that is there, which a race turns while frames travel.
pub(crate) struct Dial(Words);

impl Dial {
    pub(crate) fn create(place: &Path, micros: u64) -> io::Result<Dial> {
        let dial = Dial(Words::create(place, 1)?);
        dial.set(micros);
        Ok(dial)
    }

    pub(crate) fn open(place: &Path) -> io::Result<Dial> {
        Ok(Dial(Words::open(place, 1)?))
    }

    pub(crate) fn set(&self, micros: u64) {
        self.0.number(0).store(micros, Ordering::Relaxed);
    }

    pub(crate) fn micros(&self) -> u64 {
        self.0.number(0).load(Ordering::Relaxed)
    }
}
