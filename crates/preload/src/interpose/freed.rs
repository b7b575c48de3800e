//! What the program frees: operations and datatypes that runs still use go after them, and what we have for a communicator after it.

use std::ffi::{c_int, c_void};

use allhands_call::Object;

use super::own::function;
use super::session;
use crate::job::inside;
use crate::requests::{any_used, defers};

function! { "Op_free" "" (op: *mut c_void), own => freed(Object::Operation, op, own), None }
function! { "Type_free" "" (datatype: *mut c_void), own => freed(Object::Datatype, datatype, own), None }

function! { "Comm_free" "" (comm: *mut c_void), own => buried(own), None }
function! { "Comm_disconnect" "" (comm: *mut c_void), own => buried(own), None }

fn buried(own: impl FnOnce() -> c_int) -> c_int {
    let code = own();
    if let Some(session) = session::current() {
        inside(|| session.comms.bury());
    }
    code
}

fn freed(kind: fn(usize) -> Object, place: *mut c_void, own: impl FnOnce() -> c_int) -> c_int {
    if !any_used() {
        return own();
    }
    let Some(session) = session::current() else { return own() };
    let (abi, handles) = (session.job.mpi.abi(), &session.job.mpi.constants().handles);
    // SAFETY: the program's variable.
    let object = kind(unsafe { abi.read_handle(place) });
    if !defers(object) {
        return own();
    }
    let null = match object {
        Object::Operation(_) => handles.op_null,
        Object::Datatype(_) => handles.datatype_null,
    };
    // SAFETY: the same.
    unsafe { abi.write_handle(place, null) };
    0
}
