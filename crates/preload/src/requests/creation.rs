//! Functions that make communicators from others.
//!
//! A communicator that they make gets its number here: see [`Comms::created`](crate::comms::Comms::created). Where a non-blocking or persistent collective was called on a communicator before, which all its ranks know alike, a new one that is
//! made from it gets one of ours at once, so that its collectives can begin without waiting.

// Functions have as many arguments as MPI's.
#![allow(clippy::too_many_arguments)]

use std::ffi::{c_int, c_void};
use std::sync::atomic::Ordering;

use allhands_mpi::Handle;

use crate::entries::function;
use crate::failure::{Unserved, fault, raise};
use crate::session;

macro_rules! creation {
    ($name:literal ($($arg:ident: $type:ty),*) from $comm:ident to $new:ident) => {
        function! { $name "" ($($arg: $type),*), own => created(concat!("MPI_", $name), $comm, $new, own), None }
    };
}

type Place = *mut c_void;
type List = *const c_int;

creation! { "Comm_dup" (comm: Handle, new: Place) from comm to new }
creation! { "Comm_dup_with_info" (comm: Handle, info: Handle, new: Place) from comm to new }
creation! { "Comm_split" (comm: Handle, color: c_int, key: c_int, new: Place) from comm to new }
creation! { "Comm_split_type" (comm: Handle, kind: c_int, key: c_int, info: Handle, new: Place) from comm to new }
creation! { "Comm_create" (comm: Handle, group: Handle, new: Place) from comm to new }
creation! { "Cart_create" (comm: Handle, dimensions: c_int, sizes: List, periods: List, reorder: c_int, new: Place)
from comm to new }
creation! { "Cart_sub" (comm: Handle, kept: List, new: Place) from comm to new }
creation! { "Graph_create" (comm: Handle, nodes: c_int, index: List, edges: List, reorder: c_int, new: Place) from comm to new }
creation! { "Dist_graph_create"
(comm: Handle, count: c_int, sources: List, degrees: List, targets: List, weights: List, info: Handle, reorder: c_int, new: Place)
from comm to new }
creation! { "Dist_graph_create_adjacent"
(comm: Handle, inward: c_int, sources: List, source_weights: List, outward: c_int, targets: List, target_weights: List,
 info: Handle, reorder: c_int, new: Place) from comm to new }

fn created(function: &str, comm: Handle, new: Place, own: impl FnOnce() -> c_int) -> c_int {
    let code = own();
    let Some(session) = session::current().filter(|_| code == 0) else { return code };
    let comm = session.mpi.abi().handle(comm);
    // SAFETY: MPI has written the communicator there.
    let made = unsafe { session.mpi.abi().read_handle(new) };
    let numbered = session::inside(|| {
        session.comms.created(session, comm, made)?;
        if session.comms.has_requests(comm)
            && let Some(member) = session.comms.prepare(session, made)
        {
            member.requests.store(true, Ordering::Release);
        }
        Ok(())
    });
    match numbered {
        Some(Err(Unserved::Failed(error))) => raise(session.mpi, function, comm, &error),
        None => fault(session.mpi, function, comm),
        Some(_) => code,
    }
}
