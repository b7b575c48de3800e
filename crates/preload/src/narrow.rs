//! Functions with large counts, of which Open MPI 5.0 has none: programs that find ours there get the ones with `int` counts.

use std::ffi::{c_int, c_longlong, c_void};

use allhands_mpi::{Handle, Mpi};
use allhands_schedule::Collective;

/// An argument of a function with large counts, and of the one with `int` counts.
pub(crate) trait Narrow: Copy {
    type Held;
    type Narrow;

    /// What the argument is there, if it can be: arrays have `length` numbers.
    ///
    /// # Safety
    /// As MPI asks of the argument.
    unsafe fn held(self, length: usize) -> Option<Self::Held>;

    fn given(held: &Self::Held) -> Self::Narrow;
}

/// The call that arguments were held for has returned; `kept`: MPI still uses them.
pub(crate) fn called<T>(held: T, kept: bool) {
    if kept {
        std::mem::forget(held);
    }
}

macro_rules! as_they_are {
    ($($type:ty),*) => {$(
        impl Narrow for $type {
            type Held = $type;
            type Narrow = $type;

            unsafe fn held(self, _length: usize) -> Option<$type> {
                Some(self)
            }

            fn given(held: &$type) -> $type {
                *held
            }
        }
    )*};
}

as_they_are!(c_int, Handle, *const c_void, *mut c_void);

impl Narrow for c_longlong {
    type Held = c_int;
    type Narrow = c_int;

    unsafe fn held(self, _length: usize) -> Option<c_int> {
        c_int::try_from(self).ok()
    }

    fn given(held: &c_int) -> c_int {
        *held
    }
}

macro_rules! arrays {
    ($($type:ty),*) => {$(
        impl Narrow for *const $type {
            type Held = Vec<c_int>;
            type Narrow = *const c_int;

            unsafe fn held(self, length: usize) -> Option<Vec<c_int>> {
                if self.is_null() {
                    return Some(Vec::new());
                }
                // SAFETY: the caller's array has that many numbers.
                (0..length).map(|index| c_int::try_from(unsafe { *self.add(index) }).ok()).collect()
            }

            fn given(held: &Vec<c_int>) -> *const c_int {
                if held.is_empty() { std::ptr::null() } else { held.as_ptr() }
            }
        }
    )*};
}

arrays!(c_longlong, isize);

/// How many numbers the arrays of a vector collective have: between two groups, one for each rank of the other.
pub(crate) fn length(mpi: &Mpi, collective: Collective, comm: Handle) -> usize {
    let remote = matches!(collective, Collective::Allgatherv | Collective::Alltoallv);
    if !remote || mpi.comm_test_inter(comm) != Ok(true) {
        return mpi.comm_size(comm).unwrap_or(0);
    }
    mpi.comm_remote_size(comm).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_that_fit_become_narrow() {
        let counts = [1i64, 2, 3];
        // SAFETY: an array of three, or none.
        unsafe {
            assert_eq!(counts.as_ptr().held(3), Some(vec![1, 2, 3]));
            assert_eq!([1i64 << 31].as_ptr().held(1), None);
            assert_eq!(std::ptr::null::<isize>().held(3), Some(Vec::new()));
            assert_eq!((7i64.held(0), (1i64 << 31).held(0)), (Some(7), None));
        }
        assert!(<*const i64 as Narrow>::given(&Vec::new()).is_null());
    }
}
