//! Starting and ending MPI, and what it says about itself.

use std::ffi::{c_char, c_int};
use std::fmt;
use std::ptr::null_mut;

use crate::{Error, Handle, Mpi, Result};

/// What threads may do with MPI, from least to most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ThreadLevel {
    /// There is one thread.
    Single,
    /// Only the thread that initialised MPI calls it.
    Funneled,
    /// One thread at a time calls it.
    Serialized,
    /// Any thread calls it at any time.
    Multiple,
}

impl fmt::Display for ThreadLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ThreadLevel::Single => "MPI_THREAD_SINGLE",
            ThreadLevel::Funneled => "MPI_THREAD_FUNNELED",
            ThreadLevel::Serialized => "MPI_THREAD_SERIALIZED",
            ThreadLevel::Multiple => "MPI_THREAD_MULTIPLE",
        })
    }
}

impl Mpi {
    /// Whether `MPI_Init` was called.
    pub fn initialized(&self) -> Result<bool> {
        let mut flag = 0;
        // SAFETY: callable at any time; the flag is writable.
        self.check("MPI_Initialized", unsafe { (self.raw().initialized)(&mut flag) })?;
        Ok(flag != 0)
    }

    /// Whether `MPI_Finalize` was called.
    pub fn finalized(&self) -> Result<bool> {
        let mut flag = 0;
        // SAFETY: callable at any time; the flag is writable.
        self.check("MPI_Finalized", unsafe { (self.raw().finalized)(&mut flag) })?;
        Ok(flag != 0)
    }

    /// Initialises MPI and tells which level it gave, which may be lower or higher than the one asked for.
    pub fn init(&self, level: ThreadLevel) -> Result<ThreadLevel> {
        if self.finalized()? {
            return Err(Error::Finalized);
        }
        let mut provided = 0;
        // SAFETY: null for argc and argv is allowed since MPI-2; the level is writable.
        let code =
            unsafe { (self.raw().init_thread)(null_mut(), null_mut(), self.thread_number(level), &mut provided) };
        self.check("MPI_Init_thread", code)?;
        Ok(self.thread_level(provided))
    }

    /// The level that MPI was initialised with.
    pub fn query_thread(&self) -> Result<ThreadLevel> {
        let mut provided = 0;
        // SAFETY: the level is writable.
        self.check("MPI_Query_thread", unsafe { (self.raw().query_thread)(&mut provided) })?;
        Ok(self.thread_level(provided))
    }

    /// That MPI is running, with at least this level.
    pub fn ensure(&self, needed: ThreadLevel) -> Result<()> {
        if self.finalized()? {
            return Err(Error::Finalized);
        }
        if !self.initialized()? {
            return Err(Error::NotInitialized);
        }
        if needed == ThreadLevel::Single {
            return Ok(());
        }
        let provided = self.query_thread()?;
        if provided < needed { Err(Error::ThreadLevel { needed, provided }) } else { Ok(()) }
    }

    /// Ends MPI.
    pub fn finalize(&self) -> Result<()> {
        // SAFETY: no arguments.
        self.check("MPI_Finalize", unsafe { (self.raw().finalize)() })
    }

    /// Ends the processes of a communicator.
    pub fn abort(&self, comm: Handle, code: i32) -> ! {
        // SAFETY: the handle is MPI's (see `Handle`).
        unsafe { (self.raw().abort)(comm, code) };
        std::process::abort()
    }

    /// The library's description of itself; callable at any time.
    pub fn library_version(&self) -> Result<String> {
        self.text("MPI_Get_library_version", self.constants().integers.max_library_version_string, |text, length| {
            // SAFETY: the buffer has the length that the library asks for.
            unsafe { (self.raw().get_library_version)(text, length) }
        })
    }

    /// Version and subversion of the MPI standard that the library follows.
    pub fn version(&self) -> Result<(i32, i32)> {
        let (mut version, mut subversion) = (0, 0);
        // SAFETY: both numbers are writable.
        self.check("MPI_Get_version", unsafe { (self.raw().get_version)(&mut version, &mut subversion) })?;
        Ok((version, subversion))
    }

    /// What the library says about an error code, on one line.
    pub fn error_string(&self, code: c_int) -> Result<String> {
        self.text("MPI_Error_string", self.constants().integers.max_error_string, |text, length| {
            // SAFETY: the buffer has the length that the library asks for.
            unsafe { (self.raw().error_string)(code, text, length) }
        })
    }

    /// Text of up to `most` bytes that a call writes, with its lines joined.
    fn text(
        &self,
        function: &'static str,
        most: c_int,
        call: impl FnOnce(*mut c_char, *mut c_int) -> c_int,
    ) -> Result<String> {
        let mut bytes = vec![0_u8; most as usize + 1];
        let mut length = 0;
        let code = call(bytes.as_mut_ptr().cast(), &mut length);
        if code != 0 {
            // Without `check`: asking for the text of an error of asking for a text might never end.
            let message = "no text is available".into();
            return Err(Error::Call { function, code, class: self.class(code), message });
        }
        bytes.truncate(usize::try_from(length).unwrap_or_default());
        let text = String::from_utf8_lossy(&bytes);
        let lines = text.split(['\n', '\0']).map(str::trim).filter(|line| !line.is_empty());
        Ok(lines.collect::<Vec<_>>().join("; "))
    }

    fn thread_number(&self, level: ThreadLevel) -> c_int {
        let integers = &self.constants().integers;
        match level {
            ThreadLevel::Single => integers.thread_single,
            ThreadLevel::Funneled => integers.thread_funneled,
            ThreadLevel::Serialized => integers.thread_serialized,
            ThreadLevel::Multiple => integers.thread_multiple,
        }
    }

    /// The highest level that the number reaches: the standard only promises that the numbers are ordered.
    fn thread_level(&self, number: c_int) -> ThreadLevel {
        [ThreadLevel::Multiple, ThreadLevel::Serialized, ThreadLevel::Funneled]
            .into_iter()
            .find(|&level| number >= self.thread_number(level))
            .unwrap_or(ThreadLevel::Single)
    }
}
