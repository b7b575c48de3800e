//! What a driver does for us, and the library that it comes in.

use std::ffi::{CStr, c_int, c_void};

/// What a driver does for us.
pub(super) trait Driver: Send + Sync {
    fn name(&self) -> &'static str;

    /// Where an address lies, if it is this driver's and the processor is not to touch it: what its copies need to know.
    fn place(&self, at: *const u8) -> Option<usize>;

    /// Copies so many bytes, and returns when they are there; or what the driver says.
    ///
    /// # Safety
    /// One side is memory of this place, the other of the host, and both have as many bytes.
    unsafe fn copy(&self, place: usize, way: Way, to: *mut u8, from: *const u8, bytes: usize) -> Result<(), String>;
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Way {
    ToHost,
    ToDevice,
}

/// A library that is loaded, and stays: memory of its driver may come at any time.
pub(super) struct Library(*mut c_void);

impl Library {
    /// Opens what is there; nothing is loaded.
    pub(super) fn open(file: &CStr) -> Option<Library> {
        // SAFETY: a text; no code of the library runs, since it is loaded.
        let handle = unsafe { libc::dlopen(file.as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_LAZY) };
        (!handle.is_null()).then_some(Library(handle))
    }

    /// A function of the library.
    ///
    /// # Safety
    /// `F` is the type of a pointer to it.
    pub(super) unsafe fn function<F: Copy>(&self, name: &CStr) -> Option<F> {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        // SAFETY: an open library and a text.
        let address = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        // SAFETY: the caller's promise; both are as large.
        (!address.is_null()).then(|| unsafe { std::mem::transmute_copy(&address) })
    }
}

/// Functions of a driver, by their names there.
macro_rules! functions {
    ($(#[$doc:meta])* $table:ident { $($name:ident $symbol:literal ($($argument:ty),*);)* }) => {
        $(#[$doc])*
        struct $table {
            $($name: unsafe extern "C" fn($($argument),*) -> std::ffi::c_int,)*
        }

        impl $table {
            fn of(library: &super::driver::Library) -> Option<$table> {
                // SAFETY: the signatures of the driver's interface.
                unsafe { Some($table { $($name: library.function($symbol)?,)* }) }
            }
        }
    };
}
pub(super) use functions;

/// What a driver's code means.
pub(super) fn outcome(function: &str, code: c_int) -> Result<(), String> {
    match code {
        0 => Ok(()),
        code => Err(format!("{code:#x} in {function}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_drivers_are_said_with_their_function() {
        assert_eq!(outcome("cuMemcpyDtoH", 0), Ok(()));
        assert_eq!(outcome("zeInit", 0x7800_0001).unwrap_err(), "0x78000001 in zeInit");
    }
}
