//! Functions with large counts, of which Open MPI 5.0 has none: programs that find ours there get the ones with `int` counts.
//!
//! MPI reads the arrays of a collective until its request is complete, or, where it is persistent, freed. So long those that were
//! made for it are kept here, by the request's handle.

use std::collections::HashMap;
use std::ffi::{c_int, c_longlong, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard};

use allhands_call::neighborhood::Neighbors;
use allhands_call::{Communicator, Numbers};
use allhands_mpi::{Handle, Mpi};
use allhands_schedule::Collective;

use allhands_call::locks::lock;

/// An argument of a function with large counts, and of the one with `int` counts.
pub(super) trait Narrow: Copy {
    type Held;
    type Narrow;

    /// What the argument is there, if it can be: arrays have so many numbers.
    ///
    /// # Safety
    /// As MPI asks of the argument.
    unsafe fn held(self, lengths: Lengths) -> Option<Self::Held>;

    fn given(held: &Self::Held) -> Self::Narrow;

    /// The array that was made for it, if one was.
    fn array(_held: Self::Held) -> Option<Vec<c_int>> {
        None
    }
}

/// How many numbers arrays have: as a rule one for each rank, among neighbours one for each source, and for each destination.
#[derive(Clone, Copy, Default)]
pub(super) struct Lengths {
    all: usize,
    /// Of those that are [`Outgoing`].
    outgoing: usize,
}

impl Lengths {
    fn each(length: usize) -> Lengths {
        Lengths { all: length, outgoing: length }
    }
}

/// An array with a number for each destination of a rank.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct Outgoing<T>(T);

/// An array of places in bytes, which are the same in both functions.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct InBytes(*const isize);

impl<T: Into<Numbers>> From<Outgoing<T>> for Numbers {
    fn from(array: Outgoing<T>) -> Numbers {
        array.0.into()
    }
}

impl From<InBytes> for Numbers {
    fn from(array: InBytes) -> Numbers {
        array.0.into()
    }
}

impl<T: Narrow> Narrow for Outgoing<T> {
    type Held = T::Held;
    type Narrow = T::Narrow;

    unsafe fn held(self, Lengths { outgoing, .. }: Lengths) -> Option<T::Held> {
        // SAFETY: the caller's promise.
        unsafe { self.0.held(Lengths::each(outgoing)) }
    }

    fn given(held: &T::Held) -> T::Narrow {
        T::given(held)
    }

    fn array(held: T::Held) -> Option<Vec<c_int>> {
        T::array(held)
    }
}

/// The arrays of requests.
static KEPT: LazyLock<Mutex<HashMap<Handle, Vec<Vec<c_int>>>>> = LazyLock::new(Mutex::default);
/// How many requests have some.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Whether some request has arrays here.
#[inline]
pub(super) fn any() -> bool {
    COUNT.load(Ordering::Relaxed) > 0
}

fn kept() -> MutexGuard<'static, HashMap<Handle, Vec<Vec<c_int>>>> {
    lock(&KEPT)
}

/// Keeps arrays for the request that a call has written there; if it gave none, they go.
pub(super) fn keep(arrays: Vec<Vec<c_int>>, code: Option<c_int>, request: *mut c_void) {
    if code != Some(0) || request.is_null() || arrays.is_empty() {
        return;
    }
    let Ok(mpi) = allhands_mpi::load() else { return };
    // SAFETY: a call that has succeeded has written the request's handle there.
    let request = unsafe { mpi.abi().read_handle(request) };
    let mut kept = kept();
    kept.insert(request, arrays);
    COUNT.store(kept.len(), Ordering::Relaxed);
}

/// A request is complete, or freed.
pub(super) fn release(request: Handle) {
    let mut kept = kept();
    kept.remove(&request);
    COUNT.store(kept.len(), Ordering::Relaxed);
}

macro_rules! as_they_are {
    ($($type:ty),*) => {$(
        impl Narrow for $type {
            type Held = $type;
            type Narrow = $type;

            unsafe fn held(self, _: Lengths) -> Option<$type> {
                Some(self)
            }

            fn given(held: &$type) -> $type {
                *held
            }
        }
    )*};
}

as_they_are!(c_int, Handle, isize, *const c_void, *mut c_void, InBytes);

impl Narrow for c_longlong {
    type Held = c_int;
    type Narrow = c_int;

    unsafe fn held(self, _: Lengths) -> Option<c_int> {
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

            unsafe fn held(self, Lengths { all: length, .. }: Lengths) -> Option<Vec<c_int>> {
                if self.is_null() {
                    return Some(Vec::new());
                }
                // SAFETY: the caller's array has that many numbers.
                (0..length).map(|index| c_int::try_from(unsafe { *self.add(index) }).ok()).collect()
            }

            fn given(held: &Vec<c_int>) -> *const c_int {
                if held.is_empty() { std::ptr::null() } else { held.as_ptr() }
            }

            fn array(held: Vec<c_int>) -> Option<Vec<c_int>> {
                Some(held)
            }
        }
    )*};
}

arrays!(c_longlong, isize);

/// How many numbers the arrays of a vector collective have: between two groups, one for each rank of the other.
pub(super) fn length(mpi: &Mpi, collective: Collective, comm: Handle) -> Lengths {
    if collective.has_graph() {
        let neighbors = Communicator::of(mpi, comm, 0).ok();
        let neighbors = neighbors.and_then(|comm| Neighbors::of(mpi, &comm).ok());
        let lengths = |all: Neighbors| Lengths { all: all.sources.len(), outgoing: all.destinations.len() };
        return neighbors.map(lengths).unwrap_or_default();
    }
    let remote = matches!(collective, Collective::Allgatherv | Collective::Alltoallv);
    if !remote || mpi.comm_test_inter(comm) != Ok(true) {
        return Lengths::each(mpi.comm_size(comm).unwrap_or(0));
    }
    Lengths::each(mpi.comm_remote_size(comm).unwrap_or(0))
}

/// How many numbers the arrays have that only a root gives: none on other ranks, whose arrays are not to be looked at.
pub(super) fn length_at_root(mpi: &Mpi, root: c_int, comm: Handle) -> Lengths {
    let size = match mpi.comm_test_inter(comm) {
        Ok(true) if root == mpi.constants().integers.root => mpi.comm_remote_size(comm),
        Ok(false) if mpi.comm_rank(comm).ok() == usize::try_from(root).ok() => mpi.comm_size(comm),
        _ => Ok(0),
    };
    Lengths::each(size.unwrap_or(0))
}

/// Calls the MPI's function with `int` counts where it has none with large ones; `None` if some count does not fit. Arrays have so many
/// numbers, and are kept for the request that comes to an address, if there is one.
macro_rules! narrowed {
    ($($name:literal)+ ($($arg:ident: $type:ty),*) arrays $length:expr, request $request:expr) => {
        (|| {
            use $crate::interpose::narrow::Narrow;
            let _length = $length;
            // SAFETY: the program's arguments.
            $(let $arg = unsafe { $arg.held(_length)? };)*
            let code = $crate::interpose::own::native!($($name)+ ($(<$type as Narrow>::given(&$arg)),*));
            let arrays = [$(<$type as Narrow>::array($arg)),*].into_iter().flatten().collect();
            $crate::interpose::narrow::keep(arrays, code, $request);
            code
        })()
    };
}
pub(super) use narrowed;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_that_fit_become_narrow() {
        let counts = [1i64, 2, 3];
        // SAFETY: an array of three, or none.
        unsafe {
            let of = Lengths::each;
            assert_eq!(counts.as_ptr().held(of(3)), Some(vec![1, 2, 3]));
            assert_eq!(Outgoing(counts.as_ptr()).held(Lengths { all: 9, outgoing: 2 }), Some(vec![1, 2]));
            assert_eq!([1i64 << 31].as_ptr().held(of(1)), None);
            assert_eq!(std::ptr::null::<isize>().held(of(3)), Some(Vec::new()));
            assert_eq!((7i64.held(of(0)), (1i64 << 31).held(of(0))), (Some(7), None));
        }
        assert!(<*const i64 as Narrow>::given(&Vec::new()).is_null());
        assert_eq!(<*const i64 as Narrow>::array(vec![5]), Some(vec![5]));
        assert_eq!(<c_int as Narrow>::array(5), None);
    }
}
