//! The dynamic linker: opening libraries, finding symbols and the files behind them.

use std::ffi::{CStr, CString, OsStr, c_int, c_void};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use libc::{RTLD_DEFAULT, RTLD_GLOBAL, RTLD_NOLOAD, RTLD_NOW};

/// A library in the process. It is never closed: MPI libraries do not survive that, and handlers may live in it.
#[derive(Debug)]
pub(crate) struct Library {
    handle: *mut c_void,
}

impl Library {
    /// Loads a library, a path or a soname, and its symbols for all that is loaded later (Open MPI 4's plugins look for
    /// these there). The error is the linker's.
    pub(crate) fn open(name: &OsStr) -> Result<Library, String> {
        Library::dlopen(name, RTLD_NOW | RTLD_GLOBAL)
    }

    /// A library that is loaded already; its symbols stay as visible as its owner has made them.
    pub(crate) fn loaded(name: &OsStr) -> Result<Library, String> {
        Library::dlopen(name, RTLD_NOW | RTLD_NOLOAD)
    }

    fn dlopen(name: &OsStr, flags: c_int) -> Result<Library, String> {
        let name = CString::new(name.as_bytes()).map_err(|_| "the name has a zero byte".to_owned())?;
        // SAFETY: the name ends in a zero byte; what the library's constructors do is its own affair.
        let handle = unsafe { libc::dlopen(name.as_ptr(), flags) };
        if !handle.is_null() {
            return Ok(Library { handle });
        }
        // SAFETY: dlerror has no requirements, and its text lives until this thread's next call of the linker.
        let text = unsafe { libc::dlerror() };
        if text.is_null() {
            return Err("it is not loaded".into());
        }
        // SAFETY: not null, and ends in a zero byte.
        Err(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
    }

    /// The executable itself, with all that it was started with.
    pub(crate) fn program() -> Library {
        // SAFETY: a null name is the program, which always opens.
        Library { handle: unsafe { libc::dlopen(std::ptr::null(), RTLD_NOW) } }
    }

    /// A symbol of this library or of one that it depends on; null where there is none.
    pub(crate) fn symbol(&self, name: &CStr) -> *mut c_void {
        // SAFETY: the handle is open and the name ends in a zero byte.
        unsafe { libc::dlsym(self.handle, name.as_ptr()) }
    }
}

/// The symbol that a program's own references reach; null where there is none.
pub(crate) fn global_symbol(name: &CStr) -> *mut c_void {
    // SAFETY: the name ends in a zero byte.
    unsafe { libc::dlsym(RTLD_DEFAULT, name.as_ptr()) }
}

/// The file that an address of this process was loaded from, as the dynamic linker has found it.
///
/// ```
/// let here = std::env::current_exe as fn() -> _ as *const std::ffi::c_void;
/// assert!(allhands_mpi::file_of(here).is_some());
/// assert!(allhands_mpi::file_of(std::ptr::null()).is_none());
/// ```
// The linker reads nothing behind it.
#[allow(clippy::not_unsafe_ptr_arg_deref)]
pub fn file_of(address: *const c_void) -> Option<PathBuf> {
    let mut info = MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: dladdr reads no memory behind the address and fills the info when it returns other than 0.
    if address.is_null() || unsafe { libc::dladdr(address, info.as_mut_ptr()) } == 0 {
        return None;
    }
    // SAFETY: filled, as said.
    let name = unsafe { info.assume_init() }.dli_fname;
    if name.is_null() {
        return None;
    }
    // SAFETY: not null, and ends in a zero byte.
    let name = unsafe { CStr::from_ptr(name) };
    Some(Path::new(OsStr::from_bytes(name.to_bytes())).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbol_leads_back_to_its_file() {
        let malloc = global_symbol(c"malloc");
        assert!(!malloc.is_null());
        assert!(file_of(malloc).unwrap().to_string_lossy().contains("libc"));
        assert!(global_symbol(c"no_such_symbol_anywhere").is_null());
        assert!(!Library::program().symbol(c"malloc").is_null());
    }

    #[test]
    fn what_is_not_a_library_is_said() {
        let reason = Library::open(OsStr::new("/dev/null")).unwrap_err();
        assert!(reason.contains("/dev/null"), "{reason}");
        assert!(Library::loaded(OsStr::new("libno_such_library.so.7")).is_err());
        assert_eq!(Library::open(OsStr::from_bytes(b"a\0b")).unwrap_err(), "the name has a zero byte");
    }
}
