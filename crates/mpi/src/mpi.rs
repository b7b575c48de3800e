//! The library, bound.

use std::ffi::{c_int, c_void};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::abi::detect;
use crate::find::{Found, How, find, telling_name};
use crate::library::{Library, global_symbol};
use crate::{Abi, Class, Constants, Error, Functions, Handle, RawStatus, Result};

/// An MPI library: its functions, its constants, and a method for each call.
///
/// Errors are returned only where the communicator says so ([`Mpi::comm_errors_return`]); elsewhere MPI ends the program.
#[derive(Debug)]
pub struct Mpi {
    abi: Abi,
    constants: Constants,
    functions: Functions,
    path: PathBuf,
    how: How,
    library: Library,
    /// The handle that makes errors return, or 0 before it is known.
    errors_return: AtomicUsize,
}

// SAFETY: the table of functions and constants is never written after it was made; the linker's handle is only given to
// dlsym, which any thread may call. What MPI itself allows threads to do is its thread level, which a C program has to
// respect as well: the calls that this matters for are those on communicators, and `Mpi::ensure` checks the level.
unsafe impl Send for Mpi {}
// SAFETY: as above.
unsafe impl Sync for Mpi {}

/// The MPI of this process, found and bound at the first call that succeeds. A failure is not remembered: a program may
/// load an MPI later.
pub fn load() -> Result<&'static Mpi> {
    static MPI: OnceLock<Mpi> = OnceLock::new();
    static SEARCH: Mutex<()> = Mutex::new(());
    if let Some(mpi) = MPI.get() {
        return Ok(mpi);
    }
    // One search at a time, so that two threads do not load two libraries.
    let _searching = SEARCH.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(mpi) = MPI.get() {
        return Ok(mpi);
    }
    let mpi = Mpi::bind(find()?)?;
    Ok(MPI.get_or_init(|| mpi))
}

impl Mpi {
    fn bind(Found { library, path, how }: Found) -> Result<Mpi> {
        let missing = |symbol: String| Error::MissingSymbol { path: path.clone(), symbol };
        let has = |name: &std::ffi::CStr| !library.symbol(name).is_null();
        if !has(c"PMPI_Init") && !has(c"MPI_Init") {
            return Err(missing("MPI_Init".into()));
        }
        let abi = detect(&telling_name(&path), has).ok_or_else(|| Error::UnknownAbi { path: path.clone() })?;
        // Open MPI's predefined handles are variables. A program that is not position-independent has its own copy of
        // each that it names, and the library uses that copy: so the global name first, the library's own second.
        let constants = Constants::new(abi, |name| {
            [global_symbol(name), library.symbol(name)]
                .into_iter()
                .find(|address| !address.is_null())
                .map(|address| address as Handle)
        })
        .map_err(|name| missing(name.to_string_lossy().into_owned()))?;
        // SAFETY: the library is an MPI of that interface.
        let functions =
            unsafe { Functions::bind(|name| library.symbol(name)) }.map_err(|name| missing(name.to_owned()))?;
        Ok(Mpi { abi, constants, functions, path, how, library, errors_return: AtomicUsize::new(0) })
    }

    /// The binary interface.
    #[inline]
    pub fn abi(&self) -> Abi {
        self.abi
    }

    /// The library's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How it was found.
    pub fn how(&self) -> &How {
        &self.how
    }

    /// The constants.
    #[inline]
    pub fn constants(&self) -> &Constants {
        &self.constants
    }

    /// The raw functions.
    #[inline]
    pub fn raw(&self) -> &Functions {
        &self.functions
    }

    /// A symbol of the library, beyond those in [`Functions`]; `None` where there is none.
    pub fn symbol(&self, name: &std::ffi::CStr) -> Option<*mut c_void> {
        let address = self.library.symbol(name);
        (!address.is_null()).then_some(address)
    }

    /// `MPI_COMM_WORLD`
    #[inline]
    pub fn world(&self) -> Handle {
        self.constants.handles.comm_world
    }

    /// `MPI_COMM_SELF`
    #[inline]
    pub fn comm_self(&self) -> Handle {
        self.constants.handles.comm_self
    }

    /// `MPI_REQUEST_NULL`
    #[inline]
    pub fn request_null(&self) -> Handle {
        self.constants.handles.request_null
    }

    /// `MPI_IN_PLACE`
    #[inline]
    pub fn in_place(&self) -> *mut c_void {
        self.constants.addresses.in_place as *mut c_void
    }

    /// `MPI_STATUS_IGNORE`
    #[inline]
    pub fn status_ignore(&self) -> *mut RawStatus {
        self.constants.addresses.status_ignore as *mut RawStatus
    }

    /// `MPI_STATUSES_IGNORE`
    #[inline]
    pub fn statuses_ignore(&self) -> *mut RawStatus {
        self.constants.addresses.statuses_ignore as *mut RawStatus
    }

    /// The result of a call of `function`. `MPI_SUCCESS` is 0 in every MPI.
    #[inline]
    pub fn check(&self, function: &'static str, code: c_int) -> Result<()> {
        if code == 0 { Ok(()) } else { Err(self.failed(function, code)) }
    }

    #[cold]
    pub(crate) fn failed(&self, function: &'static str, code: c_int) -> Error {
        let message = self.error_string(code).unwrap_or_else(|_| "no text is available".into());
        Error::Call { function, code, class: self.class(code), message }
    }

    /// The class of an error code.
    pub fn class(&self, code: c_int) -> Class {
        let mut number = code;
        // SAFETY: any code may be asked about, and the class is writable.
        if unsafe { (self.functions.error_class)(code, &mut number) } != 0 {
            return Class::Library(code);
        }
        Class::from_number(number, &self.constants.errors)
    }

    /// The handle that makes errors return.
    ///
    /// Libraries with the standard ABI disagree on it: MPI_ERRORS_RETURN and MPI_ERRORS_ABORT are 0x143 and 0x142 in
    /// MPICH's, and the other way round in Intel's 2021.18, where the table's value would end the program at the first
    /// error. MPI itself offers a probe: the error handler that files start with is MPI_ERRORS_RETURN, and that of
    /// MPI_FILE_NULL is the one they start with. A program that has changed this default to MPI_ERRORS_ABORT, of all
    /// handlers, would mislead the probe. A library that does not answer it is asked for its name.
    pub(crate) fn errors_return(&self) -> Handle {
        let known = self.errors_return.load(Ordering::Relaxed);
        if known != 0 {
            return known;
        }
        let table = self.constants.handles.errors_return;
        let handle = if self.abi == Abi::Standard { self.probe_errors_return(table) } else { table };
        // Every thread finds the same, so it does not matter who is first.
        self.errors_return.store(handle, Ordering::Relaxed);
        handle
    }

    fn probe_errors_return(&self, table: Handle) -> Handle {
        const SWAPPED: Handle = 0x142;
        if let Some(file_get_errhandler) = self.functions.file_get_errhandler {
            let mut handle = 0;
            // SAFETY: MPI_FILE_NULL is allowed here, and the handle is writable.
            let code = unsafe { file_get_errhandler(self.constants.handles.file_null, &mut handle) };
            if code == 0 && (handle == table || handle == SWAPPED) {
                return handle;
            }
        }
        match self.library_version() {
            Ok(version) if version.contains("Intel") => SWAPPED,
            _ => table,
        }
    }
}
