//! Arrays in the library's own layout: requests and statuses.

use std::ffi::c_int;

use crate::{Abi, Handle, Mpi, RawStatus, Status};

/// Handles side by side, as wide as the library's.
#[derive(Clone, Debug)]
pub struct Handles {
    abi: Abi,
    length: usize,
    words: Vec<u64>,
}

impl Handles {
    /// `length` times `MPI_REQUEST_NULL`.
    pub fn new(mpi: &Mpi, length: usize) -> Handles {
        Handles::filled(mpi.abi(), length, mpi.request_null())
    }

    /// `length` times this handle.
    pub fn filled(abi: Abi, length: usize, handle: Handle) -> Handles {
        let word = if abi.handle_bytes() == 4 { (handle as u64 & 0xffff_ffff) * 0x1_0000_0001 } else { handle as u64 };
        Handles { abi, length, words: vec![word; (length * abi.handle_bytes()).div_ceil(8)] }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The handle at an index, which must be below the length.
    #[inline]
    pub fn get(&self, index: usize) -> Handle {
        assert!(index < self.length, "handle {index} of {}", self.length);
        // SAFETY: in bounds, and the words are aligned for either width.
        unsafe { self.abi.read_handle(self.words.as_ptr().byte_add(index * self.abi.handle_bytes()).cast()) }
    }

    /// Puts a handle at an index, which must be below the length.
    #[inline]
    pub fn set(&mut self, index: usize, handle: Handle) {
        assert!(index < self.length, "handle {index} of {}", self.length);
        // SAFETY: in bounds, and the words are aligned for either width.
        unsafe {
            self.abi.write_handle(self.words.as_mut_ptr().byte_add(index * self.abi.handle_bytes()).cast(), handle);
        }
    }

    /// The address for the library.
    #[inline]
    pub fn as_mut_ptr(&mut self) -> *mut Handle {
        self.words.as_mut_ptr().cast()
    }

    /// The address for the library, to read from.
    #[inline]
    pub fn as_ptr(&self) -> *const Handle {
        self.words.as_ptr().cast()
    }

    /// The length as MPI counts. An array of more handles than that would not fit into a process' requests.
    #[inline]
    pub(crate) fn count(&self) -> c_int {
        self.length as c_int
    }
}

/// Statuses side by side, as long as the library's.
#[derive(Clone, Debug)]
pub struct Statuses {
    stride: usize,
    length: usize,
    words: Vec<u64>,
}

impl Statuses {
    /// Room for this many.
    pub fn new(mpi: &Mpi, length: usize) -> Statuses {
        let stride = mpi.constants().integers.status_bytes as usize;
        // One status more than asked for, as the last is copied out as a whole `RawStatus`.
        Statuses { stride, length, words: vec![0; (length * stride + size_of::<RawStatus>()).div_ceil(8)] }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The status at an index, which must be below the length.
    pub fn get(&self, mpi: &Mpi, index: usize) -> Status {
        assert!(index < self.length, "status {index} of {}", self.length);
        // SAFETY: in bounds, for there is room for a whole `RawStatus` after the last.
        let raw = unsafe { self.words.as_ptr().byte_add(index * self.stride).cast::<RawStatus>().read_unaligned() };
        mpi.status(&raw)
    }

    /// The address for the library.
    pub fn as_mut_ptr(&mut self) -> *mut RawStatus {
        self.words.as_mut_ptr().cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_lie_at_the_library_s_stride() {
        for abi in Abi::ALL {
            let mut handles = Handles::filled(abi, 3, 0x2c00_0000);
            assert_eq!((handles.len(), handles.is_empty()), (3, false));
            handles.set(1, 0x8c00_0001);
            assert_eq!([0, 1, 2].map(|index| handles.get(index)), [0x2c00_0000, 0x8c00_0001, 0x2c00_0000]);
            // SAFETY: the second handle lies there.
            let second = unsafe { abi.read_handle(handles.as_ptr().byte_add(abi.handle_bytes()).cast()) };
            assert_eq!(second, 0x8c00_0001);
        }
        assert!(Handles::filled(Abi::Mpich, 0, 0).is_empty());
    }
}
