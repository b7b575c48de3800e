//! The functions that programs call instead of MPI's.

// One text serves two widths of counts, and functions have as many arguments as MPI's.
#![allow(clippy::useless_conversion, clippy::too_many_arguments)]

use std::ffi::{CStr, c_char, c_int, c_longlong, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use allhands_mpi::Handle;
use allhands_schedule::Collective;

use crate::narrow::{self, Narrow};
use crate::serve::serve;
use crate::session;

type Send = *const c_void;
type Receive = *mut c_void;

/// The MPI's own function of a name, looked up once; null if there is none.
struct Own {
    name: &'static CStr,
    found: AtomicPtr<c_void>,
    lacking: AtomicBool,
}

impl Own {
    const fn new(name: &'static str) -> Own {
        let name = match CStr::from_bytes_with_nul(name.as_bytes()) {
            Ok(name) => name,
            Err(_) => c"",
        };
        Own { name, found: AtomicPtr::new(null_mut()), lacking: AtomicBool::new(false) }
    }

    fn address(&self) -> *mut c_void {
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
    fn missing(&self) -> c_int {
        eprintln!("allhands: the MPI of this program has no {}", self.name.to_string_lossy());
        allhands_mpi::load().map_or(1, |mpi| mpi.constants().errors.unsupported_operation)
    }
}

/// A function under both of its names; `$own` calls the MPI's own, and `$lacking` is what is done where there is none.
macro_rules! function {
    ($name:literal $suffix:literal ($($arg:ident: $type:ty),*), $own:ident => $body:expr, $lacking:expr) => {
        const _: () = {
            unsafe extern "C" fn ours($($arg: $type),*) -> c_int {
                let $own = || {
                    static OWN: Own = Own::new(concat!("PMPI_", $name, $suffix, "\0"));
                    let address = OWN.address();
                    if address.is_null() {
                        return $lacking.unwrap_or_else(|| OWN.missing());
                    }
                    // SAFETY: MPI's function of this name, whose C signature this is, with what the program gave us for it.
                    unsafe {
                        std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($type),*) -> c_int>(address)($($arg),*)
                    }
                };
                $body
            }

            #[unsafe(export_name = concat!("MPI_", $name, $suffix))]
            unsafe extern "C" fn plain($($arg: $type),*) -> c_int {
                // SAFETY: the program's arguments.
                unsafe { ours($($arg),*) }
            }

            #[unsafe(export_name = concat!("PMPI_", $name, $suffix))]
            unsafe extern "C" fn profiling($($arg: $type),*) -> c_int {
                // SAFETY: the program's arguments.
                unsafe { ours($($arg),*) }
            }
        };
    };
}

/// A collective with `int` counts, and with large ones.
macro_rules! collective {
    ($collective:ident $name:literal ($($arg:ident: $type:ty),*) on $comm:ident, $caller:ident => $task:expr) => {
        const _: () = {
            #[allow(dead_code)]
            type Count = c_int;
            #[allow(dead_code)]
            type Counts = *const c_int;
            #[allow(dead_code)]
            type Places = *const c_int;
            function! { $name "" ($($arg: $type),*), own => {
                serve(Collective::$collective, concat!("MPI_", $name), $comm, |$caller| $task, own)
            }, None }
        };
        const _: () = {
            #[allow(dead_code)]
            type Count = c_longlong;
            #[allow(dead_code)]
            type Counts = *const c_longlong;
            #[allow(dead_code)]
            type Places = *const isize;
            /// The same with `int` counts; `None` if some count does not fit.
            fn narrow($($arg: $type),*) -> Option<c_int> {
                static OWN: Own = Own::new(concat!("PMPI_", $name, "\0"));
                let mpi = allhands_mpi::load().ok()?;
                let _length = narrow::length(mpi, Collective::$collective, mpi.abi().handle($comm));
                // SAFETY: the program's arguments.
                $(let $arg = unsafe { $arg.held(_length)? };)*
                let address = OWN.address();
                if address.is_null() {
                    return None;
                }
                // SAFETY: MPI's function of this name, whose C signature this is.
                let function = unsafe {
                    std::mem::transmute::<*mut c_void, unsafe extern "C" fn($(<$type as Narrow>::Narrow),*) -> c_int>(address)
                };
                // SAFETY: the program's arguments, in other widths.
                Some(unsafe { function($(<$type as Narrow>::given(&$arg)),*) })
            }
            function! { $name "_c" ($($arg: $type),*), own => {
                serve(Collective::$collective, concat!("MPI_", $name, "_c"), $comm, |$caller| $task, own)
            }, narrow($($arg),*) }
        };
    };
}

function! { "Init" "" (count: *mut c_int, words: *mut *mut *mut c_char), own => begun(own()), None }
function! { "Init_thread" ""
(count: *mut c_int, words: *mut *mut *mut c_char, required: c_int, provided: *mut c_int), own => begun(own()), None }
function! { "Finalize" "" (), own => {
    session::end();
    own()
}, None }

function! { "Barrier" "" (comm: Handle), own => {
    serve(Collective::Barrier, "MPI_Barrier", comm, |caller| caller.barrier(), own)
}, None }
collective! { Bcast "Bcast" (buffer: Receive, count: Count, datatype: Handle, root: c_int, comm: Handle) on comm,
caller => caller.bcast(buffer, count.into(), datatype, root) }
collective! { Allgather "Allgather"
(send: Send, sent: Count, send_type: Handle, receive: Receive, received: Count, receive_type: Handle, comm: Handle) on comm,
caller => caller.allgather((send, sent.into(), send_type), (receive, received.into(), receive_type)) }
collective! { Alltoall "Alltoall"
(send: Send, sent: Count, send_type: Handle, receive: Receive, received: Count, receive_type: Handle, comm: Handle) on comm,
caller => caller.alltoall((send, sent.into(), send_type), (receive, received.into(), receive_type)) }
collective! { Allgatherv "Allgatherv"
(send: Send, sent: Count, send_type: Handle, receive: Receive, counts: Counts, places: Places, receive_type: Handle,
 comm: Handle) on comm,
// SAFETY: the program's arrays have a number for each rank.
caller => unsafe {
    caller.allgatherv((send, sent.into(), send_type), receive, counts.into(), places.into(), receive_type)
} }
collective! { Alltoallv "Alltoallv"
(send: Send, sent: Counts, from: Places, send_type: Handle, receive: Receive, received: Counts, to: Places,
 receive_type: Handle, comm: Handle) on comm,
// SAFETY: the program's arrays have a number for each rank.
caller => unsafe {
    caller.alltoallv((send, sent.into(), from.into(), send_type), (receive, received.into(), to.into(), receive_type))
} }
collective! { Allreduce "Allreduce"
(send: Send, receive: Receive, count: Count, datatype: Handle, op: Handle, comm: Handle) on comm,
caller => caller.allreduce(send, receive, count.into(), datatype, op) }
collective! { Reduce "Reduce"
(send: Send, receive: Receive, count: Count, datatype: Handle, op: Handle, root: c_int, comm: Handle) on comm,
caller => caller.reduce(send, receive, count.into(), datatype, op, root) }
collective! { ReduceScatterBlock "Reduce_scatter_block"
(send: Send, receive: Receive, count: Count, datatype: Handle, op: Handle, comm: Handle) on comm,
caller => caller.reduce_scatter_block(send, receive, count.into(), datatype, op) }
collective! { ReduceScatter "Reduce_scatter"
(send: Send, receive: Receive, counts: Counts, datatype: Handle, op: Handle, comm: Handle) on comm,
// SAFETY: the program's array has a count for each rank.
caller => unsafe { caller.reduce_scatter(send, receive, counts.into(), datatype, op) } }

fn begun(code: c_int) -> c_int {
    if code == 0 {
        session::begin();
    }
    code
}
