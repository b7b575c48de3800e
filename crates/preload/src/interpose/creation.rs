//! Functions that make communicators from others.
//!
//! A communicator that they make gets its number here: see [`Comms::created`](crate::groups::Comms::created). Where a non-blocking or persistent collective was called on a communicator before, which all its ranks know alike, a new one that is
//! made from it gets one of ours at once, so that its collectives can begin without waiting.

// Functions have as many arguments as MPI's.
#![allow(clippy::too_many_arguments)]

use std::ffi::{c_int, c_void};
use std::sync::atomic::Ordering;

use allhands_call::Unserved;
use allhands_call::failure::{fault, raise};
use allhands_mpi::Handle;

use super::own::function;
use super::session;
use crate::groups::Form;
use crate::job::inside;

macro_rules! creation {
    ($name:literal ($($arg:ident: $type:ty),*) from $comm:ident to $new:ident) => {
        creation! { $name ($($arg: $type),*) from $comm to $new by Ranks::Others }
    };
    ($name:literal ($($arg:ident: $type:ty),*) from $comm:ident to $new:ident by $ranks:expr) => {
        function! { $name "" ($($arg: $type),*), own => created(concat!("MPI_", $name), $comm, $new, $ranks, own), None }
    };
}

/// What a new communicator has of the one that it is made from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ranks {
    /// The same ranks in the same order.
    Same,
    /// Other ranks, or in another order, for all that is known.
    Others,
}

type Untyped = *mut c_void;
type List = *const c_int;

creation! { "Comm_dup" (comm: Handle, new: Untyped) from comm to new by Ranks::Same }
creation! { "Comm_dup_with_info" (comm: Handle, info: Handle, new: Untyped) from comm to new by Ranks::Same }
creation! { "Comm_split" (comm: Handle, color: c_int, key: c_int, new: Untyped) from comm to new }
creation! { "Comm_split_type" (comm: Handle, kind: c_int, key: c_int, info: Handle, new: Untyped) from comm to new }
creation! { "Comm_create" (comm: Handle, group: Handle, new: Untyped) from comm to new }
creation! { "Cart_create" (comm: Handle, dimensions: c_int, sizes: List, periods: List, reorder: c_int, new: Untyped)
from comm to new }
creation! { "Cart_sub" (comm: Handle, kept: List, new: Untyped) from comm to new }
creation! { "Graph_create" (comm: Handle, nodes: c_int, index: List, edges: List, reorder: c_int, new: Untyped) from comm to new }
function! { "Dist_graph_create" ""
(comm: Handle, count: c_int, sources: List, degrees: List, targets: List, weights: List, info: Handle, reorder: c_int, new: Untyped),
own => distributed("MPI_Dist_graph_create", comm, new, own), None }
function! { "Dist_graph_create_adjacent" ""
(comm: Handle, inward: c_int, sources: List, source_weights: List, outward: c_int, targets: List, target_weights: List,
 info: Handle, reorder: c_int, new: Untyped),
own => distributed("MPI_Dist_graph_create_adjacent", comm, new, own), None }

/// A communicator whose ranks know their own neighbours: where they sit on several nodes they tell each other all of them now, so that collectives
/// among them can begin without waiting.
fn distributed(function: &str, comm: Handle, new: Untyped, own: impl FnOnce() -> c_int) -> c_int {
    let code = created(function, comm, new, Ranks::Others, own);
    let Some(session) = session::current().filter(|_| code == 0) else { return code };
    let mpi = session.job.mpi;
    // SAFETY: MPI has written the communicator there.
    let made = unsafe { mpi.abi().read_handle(new) };
    if made != mpi.constants().handles.comm_null {
        inside(|| {
            let world = session.comms.member(mpi.world()).ok()?;
            let apart = world.group(mpi).ok()?.parts().0.is_apart();
            let member = session.comms.member(made).ok().filter(|member| apart && member.refusal().is_none())?;
            // What cannot be learned is found again at the first call.
            let _ = member.neighborhood(mpi, Form::Persistent);
            Some(())
        });
    }
    code
}

fn created(function: &str, comm: Handle, new: Untyped, ranks: Ranks, own: impl FnOnce() -> c_int) -> c_int {
    let code = own();
    let Some(session) = session::current().filter(|_| code == 0) else { return code };
    let mpi = session.job.mpi;
    let comm = mpi.abi().handle(comm);
    // SAFETY: MPI has written the communicator there.
    let made = unsafe { mpi.abi().read_handle(new) };
    let numbered = inside(|| {
        session.comms.created(comm, made, ranks == Ranks::Same)?;
        if session.comms.has_requests(comm)
            && let Some(member) = session.comms.prepare(made)
        {
            member.has_requests.store(true, Ordering::Release);
        }
        Ok(())
    });
    match numbered {
        Some(Err(Unserved::Failed(error))) => raise(mpi, function, comm, &error),
        None => fault(mpi, function, comm),
        Some(_) => code,
    }
}
