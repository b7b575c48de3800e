//! The communicator of a thread's last call, which the next one often has again.

use std::cell::Cell;
use std::ptr::null;
use std::sync::Arc;

use allhands_call::Unserved;
use allhands_mpi::Handle;

use super::session::Session;
use crate::requests::Member;

thread_local! {
    /// The communicator of this thread's last call, how many had been removed by then, and its place in the table.
    static RECENT: Cell<(u64, Handle, *const Member)> = const { Cell::new((0, 0, null())) };
}

/// A communicator as the program names it, for a call that is being made with it: who uses it is not counted.
#[inline]
pub(super) fn recent(session: &Session, handle: Handle) -> Result<&Member, Unserved> {
    // Before the table is asked: a removal in between is noticed at the next call.
    let removed = session.comms.removed();
    let (then, known, mut member) = RECENT.get();
    if then != removed || known != handle {
        member = Arc::as_ptr(&session.comms.member(handle)?);
        RECENT.set((removed, handle, member));
    }
    // SAFETY: nothing was removed from the table since it was seen there, or else the number had changed; it stays there until the
    // program frees the communicator, which it must not do, in any thread, before its call has returned.
    Ok(unsafe { &*member })
}
