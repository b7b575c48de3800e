//! Functions under MPI's names, and the MPI's own functions behind them.

use std::ffi::{CStr, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

/// The MPI's own function of a name, looked up once; null if there is none.
pub(super) struct Own {
    name: &'static CStr,
    found: AtomicPtr<c_void>,
    lacking: AtomicBool,
}

impl Own {
    pub(super) const fn new(name: &'static str) -> Own {
        let name = match CStr::from_bytes_with_nul(name.as_bytes()) {
            Ok(name) => name,
            Err(_) => c"",
        };
        Own { name, found: AtomicPtr::new(null_mut()), lacking: AtomicBool::new(false) }
    }

    pub(super) fn address(&self) -> *mut c_void {
        let known = self.found.load(Ordering::Relaxed);
        if !known.is_null() || self.lacking.load(Ordering::Relaxed) {
            return known;
        }
        let address = allhands_mpi::load().ok().and_then(|mpi| mpi.symbol(self.name)).unwrap_or(null_mut());
        self.lacking.store(address.is_null(), Ordering::Relaxed);
        self.found.store(address, Ordering::Relaxed);
        address
    }

    /// The error code of a call that cannot be made.
    pub(super) fn missing(&self) -> c_int {
        allhands::raw::say(format_args!("the MPI of this program has no {}", self.name.to_string_lossy()));
        allhands_mpi::load().map_or(1, |mpi| mpi.constants().errors.unsupported_operation)
    }
}

/// A function under both of its names, which may come in parts; `$own` calls the MPI's own, and `$lacking` is what is done where
/// there is none. `$quick` comes before all that, and may have the call's code already.
macro_rules! function {
    ($($name:literal)+ ($($arg:ident: $type:ty),*), $own:ident => $body:expr, $lacking:expr $(, quick $quick:expr)?) => {
        $crate::interpose::own::exported! {
            "MPI_" "PMPI_" $($name)+ ($($arg: $type),*), $own => $body, $lacking $(, quick $quick)?
        }
    };
}

/// The same with these prefixes.
macro_rules! exported {
    (@whole $prefix:literal $profiling:literal $($name:literal)+ ($($arg:ident: $type:ty),*), $own:ident => $body:expr,
     $lacking:expr, $(#[$inline:meta])* $whole:ident $(and $quick:item)?) => {
        const _: () = {
            $($quick)?
            // An error handler of the program's may throw a C++ exception through us.
            $(#[$inline])*
            unsafe extern "C-unwind" fn $whole($($arg: $type),*) -> std::ffi::c_int {
                let $own = || {
                    static OWN: $crate::interpose::own::Own =
                        $crate::interpose::own::Own::new(concat!($profiling, $($name,)+ "\0"));
                    let address = OWN.address();
                    if address.is_null() {
                        return $lacking.unwrap_or_else(|| OWN.missing());
                    }
                    // SAFETY: MPI's function of this name, whose C signature this is, with what the program gave us for it.
                    unsafe {
                        std::mem::transmute::<
                            *mut std::ffi::c_void,
                            unsafe extern "C-unwind" fn($($type),*) -> std::ffi::c_int,
                        >(address)($($arg),*)
                    }
                };
                $body
            }

            $crate::interpose::caller::entry! { $prefix $($name)+ ($($arg: $type),*) => ours }
            $crate::interpose::caller::entry! { $profiling $($name)+ ($($arg: $type),*) => ours }
        };
    };
    ($prefix:literal $profiling:literal $($name:literal)+ ($($arg:ident: $type:ty),*), $own:ident => $body:expr,
     $lacking:expr, quick $quick:expr) => {
        $crate::interpose::own::exported! {
            @whole $prefix $profiling $($name)+ ($($arg: $type),*), $own => $body, $lacking,
            // What it keeps on the stack would be in the way of the quick one.
            #[inline(never)]
            whole and
            unsafe extern "C-unwind" fn ours($($arg: $type),*) -> std::ffi::c_int {
                match $quick {
                    Some(code) => code,
                    // SAFETY: the program's arguments.
                    None => unsafe { whole($($arg),*) },
                }
            }
        }
    };
    ($prefix:literal $profiling:literal $($name:literal)+ ($($arg:ident: $type:ty),*), $own:ident => $body:expr,
     $lacking:expr) => {
        $crate::interpose::own::exported! {
            @whole $prefix $profiling $($name)+ ($($arg: $type),*), $own => $body, $lacking, ours
        }
    };
}

/// Calls the MPI's own function of a name, if there is one, with arguments of the types that it takes.
macro_rules! native {
    (@any $arg:expr) => { _ };
    ($($name:literal)+ ($($arg:expr),* $(,)?)) => {{
        static OWN: $crate::interpose::own::Own = $crate::interpose::own::Own::new(concat!("PMPI_", $($name,)+ "\0"));
        let address = OWN.address();
        (!address.is_null()).then(|| {
            // SAFETY: MPI's function of this name, whose C signature this is.
            let function = unsafe {
                std::mem::transmute::<
                    *mut std::ffi::c_void,
                    unsafe extern "C-unwind" fn($($crate::interpose::own::native!(@any $arg)),*) -> std::ffi::c_int,
                >(address)
            };
            // SAFETY: the program's arguments, or ours that fit them.
            unsafe { function($($arg),*) }
        })
    }};
}

pub(super) use {exported, function, native};
