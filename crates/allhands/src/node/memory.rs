//! Memory that several ranks see: of one process, or mapped by several and named nowhere.
//!
//! Memory for processes is an anonymous file (`memfd`): the maker tells the others its process and descriptor number, they
//! open it through `/proc` and map it. It has no name in any file system, so nothing is left behind however a process ends:
//! the kernel keeps the pages until the last mapping is gone. Pages exist once somebody touches them.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use rustix::process::{Resource, getrlimit};

/// A run of zeroed pages.
#[derive(Debug)]
pub(crate) struct Mapping {
    at: NonNull<u8>,
    len: usize,
}

// SAFETY: a mapping is plain memory; who may touch which part when is decided by the protocols on it, and by programs that
// the verifier has shown to be free of races.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

/// Memory that this process lets others map, as long as it holds this.
#[derive(Debug)]
pub(crate) struct Offer {
    file: File,
}

/// Where another process finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) process: u32,
    pub(crate) descriptor: u32,
}

impl Mapping {
    /// For the threads of this process.
    pub(crate) fn private(len: usize) -> io::Result<Mapping> {
        let len = len.max(1).next_multiple_of(4096);
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new mapping at an address that the kernel chooses.
        let at = unsafe { mmap_anonymous(std::ptr::null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, flags)? };
        Ok(Mapping::of(at.cast(), len))
    }

    /// For other processes too, which map it with [`attach`](Mapping::attach) while the offer is held.
    pub(crate) fn offered(len: usize) -> io::Result<(Mapping, Offer)> {
        let len = len.max(1).next_multiple_of(4096);
        // Who makes a file longer than its limit gets a signal, of which it dies.
        if longest_file().is_some_and(|most| (len as u64) > most) {
            return Err(rustix::io::Errno::FBIG.into());
        }
        let file = File::from(memfd_create("allhands", MemfdFlags::CLOEXEC)?);
        ftruncate(&file, len as u64)?;
        Ok((Mapping::shared(&file, len)?, Offer { file }))
    }

    /// What another process offers.
    pub(crate) fn attach(address: Address, len: usize) -> io::Result<Mapping> {
        let Address { process, descriptor } = address;
        let file = File::options().read(true).write(true).open(format!("/proc/{process}/fd/{descriptor}"))?;
        let len = len.max(1).next_multiple_of(4096);
        if file.metadata()?.len() != len as u64 {
            return Err(io::Error::other("not the memory that was offered"));
        }
        Mapping::shared(&file, len)
    }

    fn shared(file: impl AsFd, len: usize) -> io::Result<Mapping> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address that the kernel chooses, of a file that is as long.
        let at = unsafe { mmap(std::ptr::null_mut(), len, protection, MapFlags::SHARED, file, 0)? };
        Ok(Mapping::of(at.cast(), len))
    }

    fn of(at: *mut u8, len: usize) -> Mapping {
        Mapping { at: NonNull::new(at).expect("the kernel maps nothing at address 0"), len }
    }

    pub(crate) fn as_ptr(&self) -> *mut u8 {
        self.at.as_ptr()
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The same as words; whoever shares it touches it atomically.
    pub(crate) fn words(&self) -> &[AtomicU64] {
        // SAFETY: pages, so aligned, of this length, and zeros or whatever words are stored there.
        unsafe { std::slice::from_raw_parts(self.at.as_ptr().cast(), self.len / size_of::<AtomicU64>()) }
    }
}

/// How long this process may make files, if there is a limit.
pub(crate) fn longest_file() -> Option<u64> {
    getrlimit(Resource::Fsize).current
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by us, and whoever used it held a reference to `self`.
        let _ = unsafe { munmap(self.at.as_ptr().cast(), self.len) };
    }
}

impl Offer {
    pub(crate) fn address(&self) -> Address {
        Address { process: std::process::id(), descriptor: self.file.as_raw_fd() as u32 }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_one_mapping_writes_the_other_reads() {
        let (mine, offer) = Mapping::offered(5000).unwrap();
        let theirs = Mapping::attach(offer.address(), 5000).unwrap();
        drop(offer);
        // SAFETY: both mappings have 8192 bytes, and nobody else touches them.
        unsafe {
            mine.as_ptr().add(4999).write(7);
            assert_eq!(theirs.as_ptr().add(4999).read(), 7);
        }
        assert_eq!(theirs.len(), 8192);
    }

    #[test]
    fn an_offer_that_is_gone_or_of_another_size_is_refused() {
        let (_mine, offer) = Mapping::offered(5000).unwrap();
        assert!(Mapping::attach(offer.address(), 50_000).is_err());
        let address = offer.address();
        drop(offer);
        assert!(Mapping::attach(Address { descriptor: 999_999, ..address }, 5000).is_err());
    }
}
