//! What is done because one MPI of one version behaves in its own way. Nothing else of this library knows an MPI's version.

use std::ffi::c_int;

use allhands::raw::Pauses;
use allhands_mpi::{Handle, Mpi};

use super::own::{function, native};
use super::session;
use crate::job::inside;
use crate::observe::Choices;
use crate::requests;

/// Intel MPI 2021.18 loses messages between two groups of which one has made more communicators than the other, on what is duplicated
/// of their intercommunicator. Where we make some (`ALLHANDS_CHECK`), each communicator of the program gets one: groups that call alike
/// shall not differ because of us.
pub(super) fn choices(mpi: &Mpi) -> Choices {
    Choices { private_for_one_rank: mpi.library_version().is_ok_and(|version| version.contains("Intel")) }
}

// MPICH 5.0.2 looks before it moves messages on, and a collective of ours has not moved them: what others completed on a window
// before such a collective is there at the second look.
function! { "Win_test" "" (window: Handle, flag: *mut c_int), own => {
    let code = own();
    // SAFETY: the program's variable, in which MPI has just written.
    let repeat_call = code == 0 && session::current().is_some() && unsafe { flag.read() } == 0;
    if repeat_call { own() } else { code }
}, None }

// MPICH 5.0.2 waits here without its progress engine: collectives that are under way, its own as well, stand still.
function! { "Win_wait" "" (window: Handle), own => {
    let mut pauses = Pauses::default();
    while let (true, Some(session)) = (requests::any(), session::current()) {
        inside(|| session.requests.progress());
        let mut flag: c_int = 0;
        match native!("Win_test" (window, &raw mut flag)) {
            Some(0) if flag == 0 => pauses.pause(),
            Some(code) => return code,
            None => break,
        }
    }
    own()
}, None }
