//! Memory on a device, which the processor is not to touch.
//!
//! A program that computes on GPUs may pass their memory to a collective, on some ranks and not on others, whatever its MPI makes of it. We
//! look at no pointer ourselves: where a driver is loaded in the process, it is asked, and what it calls its own goes through a copy in
//! host memory, made by the driver's own functions, on this rank alone. Nobody else has to know.
//!
//! | driver | library | asked by | copied by |
//! | --- | --- | --- | --- |
//! | CUDA | `libcuda.so.1` | `cuPointerGetAttribute` | `cuMemcpyDtoH`, `cuMemcpyHtoD`, in the memory's context |
//! | HIP | `libamdhip64.so` | `hipPointerGetAttributes` | `hipMemcpy` |
//! | Level Zero | `libze_loader.so.1` | `zeMemGetAllocProperties` | an immediate command list of the memory's device |
//!
//! Nothing is linked: functions are looked up in what the program has loaded. Memory of a device and memory that moves between it and the host
//! (managed, shared) is copied; page-locked memory of the host is used as it is. Everything that a copy is made of must be there when
//! the collective is called, as MPIs that know of devices ask, too: kernels that write the buffer have ended.
//!
//! **Where there is no driver** this costs a look at a table. A driver may be loaded at any time, mostly after `MPI_Init`, so an address
//! on a page that was not seen before has the list of loaded libraries looked at, if that has changed since: the linker counts. A page that was
//! host memory while there was no driver is taken to be host memory until there is one. (It would have to be given back, be taken by a
//! driver that is loaded later, and come back as a device's before a buffer on any other page is seen.)

mod cuda;
mod driver;
mod hip;
mod level_zero;

use std::ffi::{CStr, CString, c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use allhands::Error;

use driver::{Driver, Library, Way};

/// The drivers, by the beginning of their files' names.
static DRIVERS: [(&str, Slot); 3] = [
    ("libcuda.so", Slot::new(cuda::open)),
    ("libamdhip64.so", Slot::new(hip::open)),
    ("libze_loader.so", Slot::new(level_zero::open)),
];

/// A driver, once it was seen.
struct Slot {
    open: fn(Library) -> Option<Box<dyn Driver>>,
    /// `None` where it lacks what we need.
    opened: OnceLock<Option<Box<dyn Driver>>>,
}

impl Slot {
    const fn new(open: fn(Library) -> Option<Box<dyn Driver>>) -> Slot {
        Slot { open, opened: OnceLock::new() }
    }
}

/// Whether there is one.
static PRESENT: AtomicBool = AtomicBool::new(false);
/// How many libraries had been loaded at the last look at them.
static LOOKED: AtomicU64 = AtomicU64::new(0);
/// Pages that are host memory as long as there is no driver.
static HOST: [AtomicUsize; 1024] = [const { AtomicUsize::new(0) }; 1024];
/// No device has memory on a page of the host.
const PAGE: usize = 4096;

/// Memory of a device.
#[derive(Clone, Copy)]
pub struct Device {
    driver: &'static dyn Driver,
    place: usize,
}

/// The device that an address belongs to, if the processor is not to touch it.
#[inline]
pub fn of(at: *const u8) -> Option<Device> {
    let page = at as usize / PAGE;
    let known = &HOST[page % HOST.len()];
    if !PRESENT.load(Ordering::Acquire) {
        if known.load(Ordering::Relaxed) == page {
            return None;
        }
        look();
        if !PRESENT.load(Ordering::Acquire) {
            known.store(page, Ordering::Relaxed);
            return None;
        }
    }
    asked(at)
}

/// Whether a driver was seen so far: without one, an address that was host memory still is.
#[inline]
pub fn seen() -> bool {
    PRESENT.load(Ordering::Acquire)
}

/// Whether a driver is loaded.
pub fn any() -> bool {
    if !PRESENT.load(Ordering::Acquire) {
        look();
    }
    PRESENT.load(Ordering::Acquire)
}

#[cold]
fn asked(at: *const u8) -> Option<Device> {
    let mut loaded = DRIVERS.iter().filter_map(|(_, slot)| slot.opened.get()?.as_deref());
    loaded.find_map(|driver| driver.place(at).map(|place| Device { driver, place }))
}

impl Device {
    /// Copies from the device.
    ///
    /// # Safety
    /// So many bytes are there and belong together; `to` is host memory that has room for them.
    pub unsafe fn to_host(self, from: *const u8, to: *mut u8, bytes: usize) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe { self.copy(Way::ToHost, to, from, bytes) }
    }

    /// Copies to the device.
    ///
    /// # Safety
    /// So many bytes are there and belong together; `from` is host memory that has as many.
    pub unsafe fn to_device(self, from: *const u8, to: *mut u8, bytes: usize) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe { self.copy(Way::ToDevice, to, from, bytes) }
    }

    unsafe fn copy(self, way: Way, to: *mut u8, from: *const u8, bytes: usize) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe { self.driver.copy(self.place, way, to, from, bytes) }.map_err(|reason| self.error(reason))
    }

    /// What went wrong with its memory.
    pub fn error(self, reason: String) -> Error {
        Error::Device { driver: self.driver.name(), reason }
    }
}

/// Opens drivers that were loaded since the last look.
fn look() {
    let loaded = loaded();
    if LOOKED.load(Ordering::Acquire) == loaded {
        return;
    }
    for file in files() {
        let path = file.to_string_lossy();
        let name = path.rsplit('/').next().unwrap_or_default();
        for (begins, slot) in &DRIVERS {
            if name.starts_with(begins) {
                let opened = slot.opened.get_or_init(|| Library::open(&file).and_then(slot.open));
                PRESENT.fetch_or(opened.is_some(), Ordering::AcqRel);
            }
        }
    }
    LOOKED.store(loaded, Ordering::Release);
}

/// How many libraries were loaded so far.
fn loaded() -> u64 {
    unsafe extern "C" fn first(info: *mut libc::dl_phdr_info, _: usize, loaded: *mut c_void) -> c_int {
        // SAFETY: the linker's description, and our number.
        unsafe { *loaded.cast::<u64>() = (*info).dlpi_adds };
        1
    }
    let mut loaded = 0u64;
    // SAFETY: the function is called here and now, with our number.
    unsafe { libc::dl_iterate_phdr(Some(first), (&raw mut loaded).cast()) };
    loaded
}

/// The files of the libraries that are loaded.
fn files() -> Vec<CString> {
    unsafe extern "C" fn each(info: *mut libc::dl_phdr_info, _: usize, files: *mut c_void) -> c_int {
        // SAFETY: the linker's description, whose name is a text, and our list.
        unsafe {
            if !(*info).dlpi_name.is_null() {
                (*files.cast::<Vec<CString>>()).push(CStr::from_ptr((*info).dlpi_name).into());
            }
        }
        0
    }
    let mut files = Vec::new();
    // SAFETY: the function is called here and now, with our list.
    unsafe { libc::dl_iterate_phdr(Some(each), (&raw mut files).cast()) };
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_driver_everything_is_host_memory() {
        let memory = [0u8; 64];
        for _ in 0..2 {
            assert!(memory.iter().all(|byte| of(byte).is_none()));
        }
        assert!(of(std::ptr::null()).is_none());
        assert!(!any());
    }

    #[test]
    fn the_linker_counts_and_names_what_is_loaded() {
        let (before, files) = (loaded(), files());
        assert!(before > 0 && before >= files.len() as u64);
        assert!(files.iter().any(|file| file.to_string_lossy().contains("libc.so")));
        let name = files.iter().find(|file| file.to_string_lossy().contains("libc.so")).unwrap();
        let library = Library::open(name).unwrap();
        // SAFETY: its signature.
        let getpid: unsafe extern "C" fn() -> c_int = unsafe { library.function(c"getpid") }.unwrap();
        // SAFETY: it takes nothing.
        assert_eq!(unsafe { getpid() } as u32, std::process::id());
        assert!(Library::open(c"liballhands-no-such.so").is_none());
    }
}
