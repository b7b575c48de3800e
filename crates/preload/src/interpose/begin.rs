//! Calls that begin a collective, or prepare one that is begun many times.

use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use allhands_call::failure::{fault, raise};
use allhands_call::{Caller, Outcome, Unserved};
use allhands_mpi::Handle;

use super::session::{self, Session};
use crate::groups::Form;
use crate::job::inside;
use crate::observe::{By, Served};
use crate::requests::{Member, Origin};

/// A call that returns a request.
pub(super) struct Asked {
    /// MPI's name for it, and that of the report.
    pub(super) function: &'static str,
    pub(super) name: &'static str,
    pub(super) comm: Handle,
    /// Where the program wants it.
    pub(super) request: *mut c_void,
}

/// Begins a collective, or hands it to the MPI's own function.
pub(super) fn begin(asked: Asked, read: impl FnOnce(Caller<'_>) -> Outcome, own: impl FnOnce() -> c_int) -> c_int {
    asked.attend(own, |asked, session| {
        let member = asked.member(session)?;
        let task = match session.observers.listen() {
            false => session.read(&member, None, Form::NonBlocking, read),
            true => {
                let (announced, task) = session.announced(&member, asked.function, Form::NonBlocking, read);
                session.observers.begin(&announced)?;
                task
            }
        };
        session.requests.moved()?;
        session.requests.begin(&session.job, &member, task?, asked.origin(session))
    })
}

/// Prepares a collective, or hands it to the MPI's own function. Ranks may wait for each other here.
pub(super) fn prepare(asked: Asked, read: impl FnOnce(Caller<'_>) -> Outcome, own: impl FnOnce() -> c_int) -> c_int {
    asked.attend(own, |asked, session| {
        let member = asked.member(session)?;
        let task = match session.observers.listen() {
            false => session.read(&member, None, Form::Persistent, read)?,
            true => {
                let (announced, task) = session.announced(&member, asked.function, Form::Persistent, read);
                let _stays = session.observers.arrive(&announced, &|| _ = session.requests.progress())?;
                task?
            }
        };
        session.requests.moved()?;
        session.requests.prepare(&session.job, member, task, asked.origin(session))
    })
}

impl Asked {
    /// Gives the program the request of ours that comes out of `act`, or hands the call on.
    fn attend(
        self,
        own: impl FnOnce() -> c_int,
        act: impl FnOnce(&Asked, &'static Session) -> Result<Handle, Unserved>,
    ) -> c_int {
        let Some(session) = session::current() else { return own() };
        let mpi = session.job.mpi;
        let began = session.observers.time().then(Instant::now);
        let asked = Asked { comm: mpi.abi().handle(self.comm), ..self };
        match inside(|| act(&asked, session)) {
            Some(Ok(request)) => {
                // SAFETY: the program's variable for it.
                unsafe { mpi.abi().write_handle(asked.request, request) };
                0
            }
            Some(Err(Unserved::Fallback(reason))) => {
                let code = own();
                if let Some(began) = began {
                    let (by, time) = (reason.to_string(), began.elapsed());
                    let by = By::Theirs(&by);
                    session.observers.served(&Served { name: asked.name, bytes: None, by, time, turn: None });
                }
                code
            }
            Some(Err(Unserved::Failed(error))) => raise(mpi, asked.function, asked.comm, &error),
            None => fault(mpi, asked.function, asked.comm),
        }
    }

    /// The communicator, from now on one with requests.
    fn member(&self, session: &Session) -> Result<Arc<Member>, Unserved> {
        let member = session.comms.member(self.comm)?;
        if let Some(refusal) = member.refusal() {
            return Err(refusal);
        }
        member.has_requests.store(true, Ordering::Release);
        Ok(member)
    }

    fn origin(&self, session: &Session) -> Origin {
        let began = session.observers.time().then(Instant::now);
        Origin { function: self.function, name: self.name, comm: self.comm, began }
    }
}
