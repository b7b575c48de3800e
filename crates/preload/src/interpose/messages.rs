//! Point-to-point: the MPI's own functions, timed where a report is wanted.

use std::ffi::{c_int, c_longlong};

use allhands_call::{Receive, Send};
use allhands_mpi::Handle;

use super::own::{function, native};
use super::session::spent;

/// Where the MPI writes a status, a request or a flag.
type Out = Receive;

/// An argument of a function with large counts, as the one with `int` counts takes it.
trait Narrow {
    type Narrowed;
    fn narrowed(self) -> Option<Self::Narrowed>;
}

impl Narrow for c_longlong {
    type Narrowed = c_int;
    fn narrowed(self) -> Option<c_int> {
        c_int::try_from(self).ok()
    }
}

/// What is the same in both.
macro_rules! alike {
    ($($type:ty),*) => {
        $(impl Narrow for $type {
            type Narrowed = $type;
            fn narrowed(self) -> Option<$type> {
                Some(self)
            }
        })*
    };
}

alike!(c_int, Handle, Send, Receive);

/// A function with `int` counts, and with large ones; where the MPI has none with these, what fits goes to the other.
macro_rules! message {
    ($name:literal ($($arg:ident: $type:ty),*)) => {
        const _: () = {
            type Count = c_int;
            function! { $name "" ($($arg: $type),*), own => spent(own), None }
        };
        const _: () = {
            type Count = c_longlong;
            function! { $name "_c" ($($arg: $type),*), own => spent(own), {
                (|| {
                    $(let $arg = $arg.narrowed()?;)*
                    native!($name ($($arg),*))
                })()
            } }
        };
    };
}

message! { "Send" (buffer: Send, count: Count, datatype: Handle, to: c_int, tag: c_int, comm: Handle) }
message! { "Bsend" (buffer: Send, count: Count, datatype: Handle, to: c_int, tag: c_int, comm: Handle) }
message! { "Ssend" (buffer: Send, count: Count, datatype: Handle, to: c_int, tag: c_int, comm: Handle) }
message! { "Rsend" (buffer: Send, count: Count, datatype: Handle, to: c_int, tag: c_int, comm: Handle) }
message! { "Isend" (buffer: Send, count: Count, datatype: Handle, to: c_int, tag: c_int, comm: Handle, request: Out) }
message! { "Ibsend" (buffer: Send, count: Count, datatype: Handle, to: c_int, tag: c_int, comm: Handle, request: Out) }
message! { "Issend" (buffer: Send, count: Count, datatype: Handle, to: c_int, tag: c_int, comm: Handle, request: Out) }
message! { "Irsend" (buffer: Send, count: Count, datatype: Handle, to: c_int, tag: c_int, comm: Handle, request: Out) }
message! { "Recv" (buffer: Receive, count: Count, datatype: Handle, from: c_int, tag: c_int, comm: Handle, status: Out) }
message! { "Irecv" (buffer: Receive, count: Count, datatype: Handle, from: c_int, tag: c_int, comm: Handle, request: Out) }
message! { "Mrecv" (buffer: Receive, count: Count, datatype: Handle, message: Out, status: Out) }
message! { "Imrecv" (buffer: Receive, count: Count, datatype: Handle, message: Out, request: Out) }
message! { "Sendrecv" (send: Send, sent: Count, send_type: Handle, to: c_int, send_tag: c_int, receive: Receive,
received: Count, receive_type: Handle, from: c_int, receive_tag: c_int, comm: Handle, status: Out) }
message! { "Sendrecv_replace" (buffer: Receive, count: Count, datatype: Handle, to: c_int, send_tag: c_int, from: c_int,
receive_tag: c_int, comm: Handle, status: Out) }
function! { "Probe" "" (from: c_int, tag: c_int, comm: Handle, status: Out), own => spent(own), None }
function! { "Iprobe" "" (from: c_int, tag: c_int, comm: Handle, flag: Out, status: Out), own => spent(own), None }
function! { "Mprobe" "" (from: c_int, tag: c_int, comm: Handle, message: Out, status: Out), own => spent(own), None }
function! { "Improbe" "" (from: c_int, tag: c_int, comm: Handle, flag: Out, message: Out, status: Out),
own => spent(own), None }
