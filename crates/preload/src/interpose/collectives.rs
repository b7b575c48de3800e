//! MPI's collectives, as programs call them: a new one is one `collective!` here.

// One text serves two widths of counts, and functions have as many arguments as MPI's.
#![allow(clippy::useless_conversion, clippy::too_many_arguments)]

use std::ffi::{c_int, c_longlong};
use std::ptr::{null, null_mut};

use allhands_call::{Numbers, Receive, Send};
use allhands_mpi::Handle;
use allhands_schedule::Collective;

use super::begin::{RequestCall, begin, prepare};
use super::narrow::{self, InBytes, Outgoing, narrowed};
use super::own::{exported, function};
use super::repeat_call_cache::{Plain, repeat_call};
use super::serve::serve;

/// A collective with `int` counts, and with large ones.
macro_rules! collective {
    ($collective:ident $name:literal $lower:literal ($($arg:ident: $type:ty),*) on $comm:ident $(from $root:ident)?,
     $caller:ident => $task:expr $(, plain $plain:expr)?) => {
        const _: () = {
            #[allow(dead_code)]
            type Count = c_int;
            #[allow(dead_code)]
            type Counts = *const c_int;
            #[allow(dead_code)]
            type Places = *const c_int;
            forms! { $collective $name $lower "" ($($arg: $type),*) on $comm $(from $root)?, $caller => $task
                $(, plain $plain)? }
            // Open MPI 4.1 has the persistent ones under names of its own.
            exported! { "MPIX_" "PMPIX_" $name "_init" ($($arg: $type,)* info: Handle, request: Receive), own => {
                prepare(asked(concat!("MPIX_", $name, "_init"), concat!($lower, "_init"), $comm, request),
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
            forms! { $collective $name $lower "_c" ($($arg: $type),*) on $comm $(from $root)?, $caller => $task
                $(, plain $plain)? }
        };
    };
}

/// The blocking, the non-blocking and the persistent form.
macro_rules! forms {
    ($collective:ident $name:literal $lower:literal $width:tt
     ($($arg:ident: $type:ty),*) on $comm:ident $(from $root:ident)?, $caller:ident => $task:expr
     $(, plain $plain:expr)?) => {
        function! { $name $width ($($arg: $type),*), own => {
            serve(Collective::$collective, (concat!("MPI_", $name, $width), $lower), $comm, plain!($($plain)?),
                |$caller| $task, own)
        }, lacking!($width $name ($($arg: $type),*) arrays length!($collective, $comm $(, $root)?), request null_mut())
            $(, quick repeat_call(Collective::$collective, concat!("MPI_", $name, $width), $comm, $plain))? }
        function! { "I" $lower $width ($($arg: $type,)* request: Receive), own => {
            begin(asked(concat!("MPI_I", $lower, $width), concat!("i", $lower), $comm, request),
                |$caller| $task, own)
        }, lacking!($width "I" $lower ($($arg: $type,)* request: Receive) arrays length!($collective, $comm $(, $root)?), request request) }
        function! { $name "_init" $width ($($arg: $type,)* info: Handle, request: Receive), own => {
            prepare(asked(concat!("MPI_", $name, "_init", $width), concat!($lower, "_init"), $comm, request),
                |$caller| $task, own)
        }, lacking!($width $name "_init" ($($arg: $type,)* info: Handle, request: Receive)
            arrays length!($collective, $comm $(, $root)?), request request) }
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

/// How many numbers the arrays of a vector collective have; of one with a root only the root's have any.
macro_rules! length {
    ($collective:ident, $comm:ident) => {
        allhands_mpi::load().map_or(narrow::Lengths::default(), |mpi| {
            narrow::length(mpi, Collective::$collective, mpi.abi().handle($comm))
        })
    };
    ($collective:ident, $comm:ident, $root:ident) => {
        allhands_mpi::load()
            .map_or(narrow::Lengths::default(), |mpi| narrow::length_at_root(mpi, $root, mpi.abi().handle($comm)))
    };
}

/// Two buffers of blocks.
fn blocks(
    (send, sent, send_type): (Send, usize, Handle),
    (receive, received, receive_type): (Receive, usize, Handle),
) -> Plain<'static> {
    let types = Some([send_type, receive_type]);
    Plain { numbers: [sent, send_type, received, receive_type, 0], arrays: &[], types, send, receive }
}

/// The same to or from a root. What other ranks need not give counts for nothing, but is the same in the next call like it.
fn rooted(plain: Plain<'_>, root: c_int) -> Plain<'_> {
    let [sent, send_type, received, receive_type, _] = plain.numbers;
    Plain { numbers: [sent, send_type, received, receive_type, root as usize], ..plain }
}

/// The same with arrays.
fn arrays<'a>(plain: Plain<'_>, arrays: &'a [Numbers]) -> Plain<'a> {
    Plain { arrays, ..plain }
}

/// Datatypes, one for each rank.
fn types(at: Send) -> Numbers {
    // Without an MPI no call is served.
    allhands_mpi::load().map_or(Numbers::Wide(null()), |mpi| Numbers::Handles(at, mpi.abi()))
}

/// What is combined, and where to; the root, or 0 if there is none.
fn reduction(send: Send, receive: Receive, count: usize, datatype: Handle, op: Handle, root: c_int) -> Plain<'static> {
    let (numbers, types) = ([count, datatype, op, root as usize, 0], Some([datatype, datatype]));
    Plain { numbers, arrays: &[], types, send, receive }
}

/// One buffer, from or to which everybody's data go.
fn single(buffer: Receive, count: usize, datatype: Handle, root: c_int) -> Plain<'static> {
    let types = Some([datatype, datatype]);
    Plain { numbers: [count, datatype, root as usize, 0, 0], arrays: &[], types, send: null(), receive: buffer }
}

/// No buffer.
const NONE: Plain<'static> = Plain { numbers: [0; 5], arrays: &[], types: None, send: null(), receive: null_mut() };

fn asked(function: &'static str, name: &'static str, comm: Handle, request: Receive) -> RequestCall {
    RequestCall { function, name, comm, request }
}

function! { "Barrier" "" (comm: Handle), own => {
    serve(Collective::Barrier, ("MPI_Barrier", "barrier"), comm, Some(NONE), |caller| caller.barrier(), own)
}, None, quick repeat_call(Collective::Barrier, "MPI_Barrier", comm, NONE) }
function! { "Ibarrier" "" (comm: Handle, request: Receive), own => {
    begin(asked("MPI_Ibarrier", "ibarrier", comm, request), |caller| caller.barrier(), own)
}, None }
function! { "Barrier_init" "" (comm: Handle, info: Handle, request: Receive), own => {
    prepare(asked("MPI_Barrier_init", "barrier_init", comm, request), |caller| caller.barrier(), own)
}, None }
exported! { "MPIX_" "PMPIX_" "Barrier_init" (comm: Handle, info: Handle, request: Receive), own => {
    prepare(asked("MPIX_Barrier_init", "barrier_init", comm, request), |caller| caller.barrier(), own)
}, None }
collective! { Bcast "Bcast" "bcast" (buffer: Receive, count: Count, datatype: Handle, root: c_int, comm: Handle) on comm,
caller => caller.bcast(buffer, count.into(), datatype, root),
plain single(buffer, count as usize, datatype, root) }
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
},
plain arrays(blocks((send, sent as usize, send_type), (receive, 0, receive_type)), &[counts.into(), places.into()]) }
collective! { Alltoallv "Alltoallv" "alltoallv"
(send: Send, sent: Counts, from: Places, send_type: Handle, receive: Receive, received: Counts, to: Places,
 receive_type: Handle, comm: Handle) on comm,
// SAFETY: the program's arrays have a number for each rank.
caller => unsafe {
    caller.alltoallv((send, sent.into(), from.into(), send_type), (receive, received.into(), to.into(), receive_type))
},
plain arrays(blocks((send, 0, send_type), (receive, 0, receive_type)),
    &[sent.into(), from.into(), received.into(), to.into()]) }
collective! { Allreduce "Allreduce" "allreduce"
(send: Send, receive: Receive, count: Count, datatype: Handle, op: Handle, comm: Handle) on comm,
caller => caller.allreduce(send, receive, count.into(), datatype, op),
plain reduction(send, receive, count as usize, datatype, op, 0) }
collective! { Reduce "Reduce" "reduce"
(send: Send, receive: Receive, count: Count, datatype: Handle, op: Handle, root: c_int, comm: Handle) on comm,
caller => caller.reduce(send, receive, count.into(), datatype, op, root),
plain reduction(send, receive, count as usize, datatype, op, root) }
collective! { ReduceScatterBlock "Reduce_scatter_block" "reduce_scatter_block"
(send: Send, receive: Receive, count: Count, datatype: Handle, op: Handle, comm: Handle) on comm,
caller => caller.reduce_scatter_block(send, receive, count.into(), datatype, op),
plain reduction(send, receive, count as usize, datatype, op, 0) }
collective! { ReduceScatter "Reduce_scatter" "reduce_scatter"
(send: Send, receive: Receive, counts: Counts, datatype: Handle, op: Handle, comm: Handle) on comm,
// SAFETY: the program's array has a count for each rank.
caller => unsafe { caller.reduce_scatter(send, receive, counts.into(), datatype, op) },
plain arrays(reduction(send, receive, 0, datatype, op, 0), &[counts.into()]) }
collective! { Alltoallv "Alltoallw" "alltoallw"
(send: Send, sent: Counts, from: Places, send_types: Send, receive: Receive, received: Counts, to: Places,
 receive_types: Send, comm: Handle) on comm,
// SAFETY: the program's arrays have a number, or a datatype, for each rank.
caller => unsafe {
    caller.alltoallw((send, sent.into(), from.into(), send_types), (receive, received.into(), to.into(), receive_types))
},
plain arrays(Plain { types: None, ..blocks((send, 0, 0), (receive, 0, 0)) },
    &[sent.into(), from.into(), types(send_types), received.into(), to.into(), types(receive_types)]) }
collective! { Gather "Gather" "gather"
(send: Send, sent: Count, send_type: Handle, receive: Receive, received: Count, receive_type: Handle, root: c_int,
 comm: Handle) on comm,
caller => caller.gather((send, sent.into(), send_type), (receive, received.into(), receive_type), root),
plain rooted(blocks((send, sent as usize, send_type), (receive, received as usize, receive_type)), root) }
collective! { Scatter "Scatter" "scatter"
(send: Send, sent: Count, send_type: Handle, receive: Receive, received: Count, receive_type: Handle, root: c_int,
 comm: Handle) on comm,
caller => caller.scatter((send, sent.into(), send_type), (receive, received.into(), receive_type), root),
plain rooted(blocks((send, sent as usize, send_type), (receive, received as usize, receive_type)), root) }
collective! { Gatherv "Gatherv" "gatherv"
(send: Send, sent: Count, send_type: Handle, receive: Receive, counts: Counts, places: Places, receive_type: Handle,
 root: c_int, comm: Handle) on comm from root,
// SAFETY: the program's arrays have a number for each rank at the root.
caller => unsafe {
    caller.gatherv((send, sent.into(), send_type), receive, counts.into(), places.into(), receive_type, root)
},
plain arrays(rooted(blocks((send, sent as usize, send_type), (receive, 0, receive_type)), root),
    &[counts.into(), places.into()]) }
collective! { Scatterv "Scatterv" "scatterv"
(send: Send, counts: Counts, places: Places, send_type: Handle, receive: Receive, received: Count,
 receive_type: Handle, root: c_int, comm: Handle) on comm from root,
// SAFETY: the program's arrays have a number for each rank at the root.
caller => unsafe {
    caller.scatterv(send, counts.into(), places.into(), send_type, (receive, received.into(), receive_type), root)
},
plain arrays(rooted(blocks((send, 0, send_type), (receive, received as usize, receive_type)), root),
    &[counts.into(), places.into()]) }
collective! { Scan "Scan" "scan"
(send: Send, receive: Receive, count: Count, datatype: Handle, op: Handle, comm: Handle) on comm,
caller => caller.scan(send, receive, count.into(), datatype, op),
plain reduction(send, receive, count as usize, datatype, op, 0) }
collective! { Exscan "Exscan" "exscan"
(send: Send, receive: Receive, count: Count, datatype: Handle, op: Handle, comm: Handle) on comm,
caller => caller.exscan(send, receive, count.into(), datatype, op),
plain reduction(send, receive, count as usize, datatype, op, 0) }
collective! { NeighborAllgather "Neighbor_allgather" "neighbor_allgather"
(send: Send, sent: Count, send_type: Handle, receive: Receive, received: Count, receive_type: Handle, comm: Handle) on comm,
caller => caller.neighbor_allgather((send, sent.into(), send_type), (receive, received.into(), receive_type)),
plain blocks((send, sent as usize, send_type), (receive, received as usize, receive_type)) }
collective! { NeighborAlltoall "Neighbor_alltoall" "neighbor_alltoall"
(send: Send, sent: Count, send_type: Handle, receive: Receive, received: Count, receive_type: Handle, comm: Handle) on comm,
caller => caller.neighbor_alltoall((send, sent.into(), send_type), (receive, received.into(), receive_type)),
plain blocks((send, sent as usize, send_type), (receive, received as usize, receive_type)) }
collective! { NeighborAllgatherv "Neighbor_allgatherv" "neighbor_allgatherv"
(send: Send, sent: Count, send_type: Handle, receive: Receive, counts: Counts, places: Places, receive_type: Handle,
 comm: Handle) on comm,
// SAFETY: the program's arrays have a number for each neighbour.
caller => unsafe {
    caller.neighbor_allgatherv((send, sent.into(), send_type), (receive, counts.into(), places.into(), receive_type))
},
plain arrays(blocks((send, sent as usize, send_type), (receive, 0, receive_type)), &[counts.into(), places.into()]) }
collective! { NeighborAlltoallv "Neighbor_alltoallv" "neighbor_alltoallv"
(send: Send, sent: Outgoing<Counts>, from: Outgoing<Places>, send_type: Handle, receive: Receive, received: Counts,
 to: Places, receive_type: Handle, comm: Handle) on comm,
// SAFETY: the program's arrays have a number for each neighbour.
caller => unsafe {
    caller.neighbor_alltoallv(
        (send, sent.into(), from.into(), send_type), (receive, received.into(), to.into(), receive_type))
},
plain arrays(blocks((send, 0, send_type), (receive, 0, receive_type)),
    &[sent.into(), from.into(), received.into(), to.into()]) }
collective! { NeighborAlltoallv "Neighbor_alltoallw" "neighbor_alltoallw"
(send: Send, sent: Outgoing<Counts>, from: InBytes, send_types: Send, receive: Receive, received: Counts, to: InBytes,
 receive_types: Send, comm: Handle) on comm,
// SAFETY: the program's arrays have a number, or a datatype, for each neighbour.
caller => unsafe {
    caller.neighbor_alltoallw(
        (send, sent.into(), from.into(), send_types), (receive, received.into(), to.into(), receive_types))
},
plain arrays(Plain { types: None, ..blocks((send, 0, 0), (receive, 0, 0)) },
    &[sent.into(), from.into(), types(send_types), received.into(), to.into(), types(receive_types)]) }
