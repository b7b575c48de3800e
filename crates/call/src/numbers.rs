//! Counts and places, as programs give them.

use std::ffi::{c_int, c_longlong, c_void};

use allhands_mpi::Abi;

use crate::failure::{Reason, Unserved};

/// Counts or places, as wide as the function has them.
#[derive(Clone, Copy)]
pub enum Numbers {
    /// `int`
    Narrow(*const c_int),
    /// `MPI_Count` or `MPI_Aint`
    Wide(*const c_longlong),
    /// Handles of an MPI with this interface.
    Handles(*const c_void, Abi),
}

impl From<*const c_int> for Numbers {
    fn from(at: *const c_int) -> Numbers {
        Numbers::Narrow(at)
    }
}

impl From<*const c_longlong> for Numbers {
    fn from(at: *const c_longlong) -> Numbers {
        Numbers::Wide(at)
    }
}

impl From<*const isize> for Numbers {
    fn from(at: *const isize) -> Numbers {
        Numbers::Wide(at.cast())
    }
}

impl Numbers {
    /// Whether the first of them are these.
    ///
    /// # Safety
    /// The address is null or that of an array of as many numbers.
    #[inline]
    pub unsafe fn are(self, known: &[i64]) -> bool {
        // SAFETY: the caller's promise.
        match self {
            Numbers::Narrow(at) => {
                !at.is_null() && known.iter().enumerate().all(|(i, known)| unsafe { i64::from(*at.add(i)) } == *known)
            }
            Numbers::Wide(at) => {
                !at.is_null() && known.iter().enumerate().all(|(i, known)| unsafe { *at.add(i) } == *known)
            }
            Numbers::Handles(at, abi) => {
                !at.is_null() && known.iter().enumerate().all(|(i, known)| unsafe { handle(at, abi, i) } == *known)
            }
        }
    }

    /// The first `length` of them; none where the program gave none.
    ///
    /// # Safety
    /// The address is null or that of an array of `length` numbers.
    pub unsafe fn read(self, length: usize) -> Result<Vec<i64>, Unserved> {
        // SAFETY: the caller's promise.
        match self {
            Numbers::Narrow(at) if !at.is_null() => Ok((0..length).map(|i| unsafe { *at.add(i) }.into()).collect()),
            Numbers::Wide(at) if !at.is_null() => Ok((0..length).map(|i| unsafe { *at.add(i) }).collect()),
            Numbers::Handles(at, abi) if !at.is_null() => {
                Ok((0..length).map(|i| unsafe { handle(at, abi, i) }).collect())
            }
            _ => Err(Reason::Refused.into()),
        }
    }
}

/// A handle of an array, as a number.
///
/// # Safety
/// There are as many.
unsafe fn handle(at: *const c_void, abi: Abi, index: usize) -> i64 {
    // SAFETY: the caller's promise.
    unsafe { abi.read_handle(at.byte_add(index * abi.handle_bytes())) as i64 }
}

/// A count of the program's.
#[inline]
pub(crate) fn count(number: i64) -> Result<usize, Unserved> {
    usize::try_from(number).map_err(|_| Reason::Refused.into())
}

/// Counts of the program's.
///
/// # Safety
/// As for [`Numbers::read`].
pub(crate) unsafe fn counts(numbers: Numbers, length: usize) -> Result<Vec<usize>, Unserved> {
    // SAFETY: the caller's promise.
    unsafe { numbers.read(length)? }.into_iter().map(count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_both_widths_are_read() {
        let (narrow, wide, places) = ([1i32, -2, 3], [1i64, 2, 1 << 40], [7isize, 8]);
        // SAFETY: arrays of these lengths.
        unsafe {
            assert_eq!(Numbers::from(narrow.as_ptr()).read(3).ok(), Some(vec![1, -2, 3]));
            assert_eq!(Numbers::from(wide.as_ptr()).read(3).ok(), Some(vec![1, 2, 1 << 40]));
            assert_eq!(Numbers::from(places.as_ptr()).read(2).ok(), Some(vec![7, 8]));
            assert!(counts(narrow.as_ptr().into(), 3).is_err());
            assert!(Numbers::from(narrow.as_ptr()).are(&[1, -2]) && !Numbers::from(narrow.as_ptr()).are(&[1, 2]));
            assert!(Numbers::from(wide.as_ptr()).are(&[1, 2, 1 << 40]) && !Numbers::from(wide.as_ptr()).are(&[2]));
            assert!(!Numbers::Narrow(std::ptr::null()).are(&[]));
        }
    }

    #[test]
    fn what_mpi_would_refuse_is_left_to_it() {
        let refused = |unserved| matches!(unserved, Some(Unserved::Fallback(Reason::Refused)));
        assert!(refused(count(-1).err()));
        // SAFETY: a null address stands for no array.
        assert!(refused(unsafe { counts(Numbers::Narrow(std::ptr::null()), 3) }.err()));
    }
}
