//! The functions that programs call instead of MPI's.

// One text serves two widths of counts, and functions have as many arguments as MPI's.
#![allow(clippy::useless_conversion, clippy::too_many_arguments)]

use std::ffi::{CStr, c_char, c_int, c_longlong, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use allhands_mpi::Handle;
use allhands_schedule::Collective;

use crate::again::Plain;
use crate::narrow;
use crate::requests::{Asked, begin, prepare};
use crate::serve::serve;
use crate::session;

type Send = *const c_void;
type Receive = *mut c_void;

/// The MPI's own function of a name, looked up once; null if there is none.
pub(crate) struct Own {
    name: &'static CStr,
    found: AtomicPtr<c_void>,
    lacking: AtomicBool,
}

impl Own {
    pub(crate) const fn new(name: &'static str) -> Own {
        let name = match CStr::from_bytes_with_nul(name.as_bytes()) {
            Ok(name) => name,
            Err(_) => c"",
        };
        Own { name, found: AtomicPtr::new(null_mut()), lacking: AtomicBool::new(false) }
    }

    pub(crate) fn address(&self) -> *mut c_void {
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
    pub(crate) fn missing(&self) -> c_int {
        eprintln!("allhands: the MPI of this program has no {}", self.name.to_string_lossy());
        allhands_mpi::load().map_or(1, |mpi| mpi.constants().errors.unsupported_operation)
    }
}

/// A function under both of its names, which may come in parts; `$own` calls the MPI's own, and `$lacking` is what is done where
/// there is none.
macro_rules! function {
    ($($name:literal)+ ($($arg:ident: $type:ty),*), $own:ident => $body:expr, $lacking:expr) => {
        $crate::entries::exported! { "MPI_" "PMPI_" $($name)+ ($($arg: $type),*), $own => $body, $lacking }
    };
}

/// The same with these prefixes.
macro_rules! exported {
    ($prefix:literal $profiling:literal $($name:literal)+ ($($arg:ident: $type:ty),*), $own:ident => $body:expr,
     $lacking:expr) => {
        const _: () = {
            // An error handler of the program's may throw a C++ exception through us.
            unsafe extern "C-unwind" fn ours($($arg: $type),*) -> std::ffi::c_int {
                let $own = || {
                    static OWN: $crate::entries::Own =
                        $crate::entries::Own::new(concat!($profiling, $($name,)+ "\0"));
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

            #[unsafe(export_name = concat!($prefix, $($name),+))]
            unsafe extern "C-unwind" fn plain($($arg: $type),*) -> std::ffi::c_int {
                // SAFETY: the program's arguments.
                unsafe { ours($($arg),*) }
            }

            #[unsafe(export_name = concat!($profiling, $($name),+))]
            unsafe extern "C-unwind" fn profiling($($arg: $type),*) -> std::ffi::c_int {
                // SAFETY: the program's arguments.
                unsafe { ours($($arg),*) }
            }
        };
    };
}

/// Calls the MPI's own function of a name, if there is one, with arguments of the types that it takes.
macro_rules! native {
    (@any $arg:expr) => { _ };
    ($($name:literal)+ ($($arg:expr),* $(,)?)) => {{
        static OWN: $crate::entries::Own = $crate::entries::Own::new(concat!("PMPI_", $($name,)+ "\0"));
        let address = OWN.address();
        (!address.is_null()).then(|| {
            // SAFETY: MPI's function of this name, whose C signature this is.
            let function = unsafe {
                std::mem::transmute::<
                    *mut std::ffi::c_void,
                    unsafe extern "C-unwind" fn($($crate::entries::native!(@any $arg)),*) -> std::ffi::c_int,
                >(address)
            };
            // SAFETY: the program's arguments, or ours that fit them.
            unsafe { function($($arg),*) }
        })
    }};
}

/// Calls the MPI's function with `int` counts where it has none with large ones; `None` if some count does not fit. Arrays have so many
/// numbers, and are kept for the request that comes to an address, if there is one.
macro_rules! narrowed {
    ($($name:literal)+ ($($arg:ident: $type:ty),*) arrays $length:expr, request $request:expr) => {
        (|| {
            use $crate::narrow::Narrow;
            let _length = $length;
            // SAFETY: the program's arguments.
            $(let $arg = unsafe { $arg.held(_length)? };)*
            let code = $crate::entries::native!($($name)+ ($(<$type as Narrow>::given(&$arg)),*));
            let arrays = [$(<$type as Narrow>::array($arg)),*].into_iter().flatten().collect();
            $crate::narrow::keep(arrays, code, $request);
            code
        })()
    };
}

pub(crate) use {exported, function, native};

/// A collective with `int` counts, and with large ones.
macro_rules! collective {
    ($collective:ident $name:literal $lower:literal ($($arg:ident: $type:ty),*) on $comm:ident, $caller:ident => $task:expr
     $(, plain $plain:expr)?) => {
        const _: () = {
            #[allow(dead_code)]
            type Count = c_int;
            #[allow(dead_code)]
            type Counts = *const c_int;
            #[allow(dead_code)]
            type Places = *const c_int;
            forms! { $collective $name $lower "" ($($arg: $type),*) on $comm, $caller => $task $(, plain $plain)? }
            // Open MPI 4.1 has the persistent ones under names of its own.
            exported! { "MPIX_" "PMPIX_" $name "_init" ($($arg: $type,)* info: Handle, request: Receive), own => {
                prepare(asked(Collective::$collective, concat!("MPIX_", $name, "_init"), concat!($lower, "_init"), $comm, request),
                    |$caller| $task, own)
            }, None }
        };
        const _: () = {
            #[allow(dead_code)]
            type Count = c_longlong;
            #[allow(dead_code)]
            type Counts = *const c_longlong;
            #[allow(dead_code)]
            type Places = *const isize;
            forms! { $collective $name $lower "_c" ($($arg: $type),*) on $comm, $caller => $task $(, plain $plain)? }
        };
    };
}

/// The blocking, the non-blocking and the persistent form.
macro_rules! forms {
    ($collective:ident $name:literal $lower:literal $width:tt
     ($($arg:ident: $type:ty),*) on $comm:ident, $caller:ident => $task:expr $(, plain $plain:expr)?) => {
        function! { $name $width ($($arg: $type),*), own => {
            serve(Collective::$collective, concat!("MPI_", $name, $width), $comm, plain!($($plain)?), |$caller| $task, own)
        }, lacking!($width $name ($($arg: $type),*) arrays length(Collective::$collective, $comm), request null_mut()) }
        function! { "I" $lower $width ($($arg: $type,)* request: Receive), own => {
            begin(asked(Collective::$collective, concat!("MPI_I", $lower, $width), concat!("i", $lower), $comm, request),
                |$caller| $task, own)
        }, lacking!($width "I" $lower ($($arg: $type,)* request: Receive) arrays length(Collective::$collective, $comm), request request) }
        function! { $name "_init" $width ($($arg: $type,)* info: Handle, request: Receive), own => {
            prepare(asked(Collective::$collective, concat!("MPI_", $name, "_init", $width), concat!($lower, "_init"), $comm, request),
                |$caller| $task, own)
        }, lacking!($width $name "_init" ($($arg: $type,)* info: Handle, request: Receive)
            arrays length(Collective::$collective, $comm), request request) }
    };
}

/// The arguments, if they are plain.
macro_rules! plain {
    () => {
        None
    };
    ($plain:expr) => {
        Some($plain)
    };
}

/// What is done where the MPI has no function of this width.
macro_rules! lacking {
    ("" $($rest:tt)*) => { None };
    ("_c" $($rest:tt)*) => { narrowed!($($rest)*) };
}

/// How many numbers the arrays of a vector collective have.
fn length(collective: Collective, comm: Handle) -> usize {
    allhands_mpi::load().map_or(0, |mpi| narrow::length(mpi, collective, mpi.abi().handle(comm)))
}

/// Two buffers of blocks.
fn blocks(
    (send, sent, send_type): (Send, usize, Handle),
    (receive, received, receive_type): (Receive, usize, Handle),
) -> Plain {
    Plain { numbers: [sent, send_type, received, receive_type], types: [send_type, receive_type], send, receive }
}

/// What is combined, and where to.
fn reduction(send: Send, receive: Receive, count: usize, datatype: Handle, op: Handle) -> Plain {
    Plain { numbers: [count, datatype, op, 0], types: [datatype, datatype], send, receive }
}

fn asked(collective: Collective, function: &'static str, name: &'static str, comm: Handle, request: Receive) -> Asked {
    Asked { collective, function, name, comm, request }
}

function! { "Init" "" (count: *mut c_int, words: *mut *mut *mut c_char), own => {
    let mut provided: c_int = 0;
    begun(|| match session::level() {
        Some(level) => native!("Init_thread" (count, words, level, &raw mut provided)).unwrap_or_else(own),
        None => own(),
    })
}, None }
function! { "Init_thread" ""
(count: *mut c_int, words: *mut *mut *mut c_char, required: c_int, provided: *mut c_int), own => {
    begun(|| match session::level() {
        Some(level) => native!("Init_thread" (count, words, level, provided)).unwrap_or_else(own),
        None => own(),
    })
}, None }
function! { "Finalize" "" (), own => {
    session::end();
    own()
}, None }

function! { "Barrier" "" (comm: Handle), own => {
    serve(Collective::Barrier, "MPI_Barrier", comm, None, |caller| caller.barrier(), own)
}, None }
function! { "Ibarrier" "" (comm: Handle, request: Receive), own => {
    begin(asked(Collective::Barrier, "MPI_Ibarrier", "ibarrier", comm, request), |caller| caller.barrier(), own)
}, None }
function! { "Barrier_init" "" (comm: Handle, info: Handle, request: Receive), own => {
    prepare(asked(Collective::Barrier, "MPI_Barrier_init", "barrier_init", comm, request), |caller| caller.barrier(), own)
}, None }
exported! { "MPIX_" "PMPIX_" "Barrier_init" (comm: Handle, info: Handle, request: Receive), own => {
    prepare(asked(Collective::Barrier, "MPIX_Barrier_init", "barrier_init", comm, request), |caller| caller.barrier(), own)
}, None }
collective! { Bcast "Bcast" "bcast" (buffer: Receive, count: Count, datatype: Handle, root: c_int, comm: Handle) on comm,
caller => caller.bcast(buffer, count.into(), datatype, root) }
collective! { Allgather "Allgather" "allgather"
(send: Send, sent: Count, send_type: Handle, receive: Receive, received: Count, receive_type: Handle, comm: Handle) on comm,
caller => caller.allgather((send, sent.into(), send_type), (receive, received.into(), receive_type)),
plain blocks((send, sent as usize, send_type), (receive, received as usize, receive_type)) }
collective! { Alltoall "Alltoall" "alltoall"
(send: Send, sent: Count, send_type: Handle, receive: Receive, received: Count, receive_type: Handle, comm: Handle) on comm,
caller => caller.alltoall((send, sent.into(), send_type), (receive, received.into(), receive_type)),
plain blocks((send, sent as usize, send_type), (receive, received as usize, receive_type)) }
collective! { Allgatherv "Allgatherv" "allgatherv"
(send: Send, sent: Count, send_type: Handle, receive: Receive, counts: Counts, places: Places, receive_type: Handle,
 comm: Handle) on comm,
// SAFETY: the program's arrays have a number for each rank.
caller => unsafe {
    caller.allgatherv((send, sent.into(), send_type), receive, counts.into(), places.into(), receive_type)
} }
collective! { Alltoallv "Alltoallv" "alltoallv"
(send: Send, sent: Counts, from: Places, send_type: Handle, receive: Receive, received: Counts, to: Places,
 receive_type: Handle, comm: Handle) on comm,
// SAFETY: the program's arrays have a number for each rank.
caller => unsafe {
    caller.alltoallv((send, sent.into(), from.into(), send_type), (receive, received.into(), to.into(), receive_type))
} }
collective! { Allreduce "Allreduce" "allreduce"
(send: Send, receive: Receive, count: Count, datatype: Handle, op: Handle, comm: Handle) on comm,
caller => caller.allreduce(send, receive, count.into(), datatype, op),
plain reduction(send, receive, count as usize, datatype, op) }
collective! { Reduce "Reduce" "reduce"
(send: Send, receive: Receive, count: Count, datatype: Handle, op: Handle, root: c_int, comm: Handle) on comm,
caller => caller.reduce(send, receive, count.into(), datatype, op, root) }
collective! { ReduceScatterBlock "Reduce_scatter_block" "reduce_scatter_block"
(send: Send, receive: Receive, count: Count, datatype: Handle, op: Handle, comm: Handle) on comm,
caller => caller.reduce_scatter_block(send, receive, count.into(), datatype, op),
plain reduction(send, receive, count as usize, datatype, op) }
collective! { ReduceScatter "Reduce_scatter" "reduce_scatter"
(send: Send, receive: Receive, counts: Counts, datatype: Handle, op: Handle, comm: Handle) on comm,
// SAFETY: the program's array has a count for each rank.
caller => unsafe { caller.reduce_scatter(send, receive, counts.into(), datatype, op) } }

/// MPI is initialised.
fn begun(own: impl FnOnce() -> c_int) -> c_int {
    session::announce();
    let code = own();
    if code == 0 {
        session::begin();
    }
    code
}
