//! Calls that begin a collective, or prepare one that is begun many times.

use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use allhands_call::failure::{fault, raise};
use allhands_call::{Caller, Communicator, Outcome, Unserved};
use allhands_mpi::Handle;

use super::session::{self, Session};
use super::theirs::{self, Prepared};
use crate::groups::Form;
use crate::job::inside;
use crate::observe::{By, Served};
use crate::requests::{Member, Origin};

/// A call that returns a request.
pub(super) struct RequestCall {
    /// MPI's name for it, and that of the report.
    pub(super) function: &'static str,
    pub(super) name: &'static str,
    pub(super) comm: Handle,
    /// Where the program wants it.
    pub(super) request: *mut c_void,
}

/// What is known of a call when it is served, or handed on.
#[derive(Default)]
struct Seen {
    comm: Option<Communicator>,
    bytes: Option<usize>,
}

/// Begins a collective, or hands it to the MPI's own function.
pub(super) fn begin(
    asked: RequestCall,
    read: impl FnOnce(Caller<'_>) -> Outcome,
    own: impl FnOnce() -> c_int,
) -> c_int {
    asked.attend(Form::NonBlocking, own, |asked, session, seen| {
        let (member, read) = asked.member(session, Form::NonBlocking, seen, read)?;
        let task = match session.observers.listen() {
            false => session.read(&member, None, Form::NonBlocking, read),
            true => {
                let (announced, task) = session.announced(&member, asked.function, Form::NonBlocking, read);
                session.observers.begin(&announced)?;
                task
            }
        };
        seen.bytes = task.as_ref().ok().map(|task| task.bytes);
        session.requests.moved()?;
        session.requests.begin(&session.job, &member, task?, asked.origin(session, &member.comm))
    })
}

/// Prepares a collective, or hands it to the MPI's own function. Ranks may wait for each other here.
pub(super) fn prepare(
    asked: RequestCall,
    read: impl FnOnce(Caller<'_>) -> Outcome,
    own: impl FnOnce() -> c_int,
) -> c_int {
    asked.attend(Form::Persistent, own, |asked, session, seen| {
        let (member, read) = asked.member(session, Form::Persistent, seen, read)?;
        let task = match session.observers.listen() {
            false => session.read(&member, None, Form::Persistent, read)?,
            true => {
                let (announced, task) = session.announced(&member, asked.function, Form::Persistent, read);
                let _stays = session.observers.arrive(&announced, &|| _ = session.requests.progress())?;
                task?
            }
        };
        seen.bytes = Some(task.bytes);
        session.requests.moved()?;
        let origin = asked.origin(session, &member.comm);
        session.requests.prepare(&session.job, member, task, origin)
    })
}

impl RequestCall {
    /// Gives the program the request of ours that comes out of `act`, or hands the call on.
    fn attend(
        self,
        form: Form,
        own: impl FnOnce() -> c_int,
        act: impl FnOnce(&RequestCall, &'static Session, &mut Seen) -> Result<Handle, Unserved>,
    ) -> c_int {
        let Some(session) = session::current() else { return own() };
        let mpi = session.job.mpi;
        let began = session.observers.time().then(Instant::now);
        let asked = RequestCall { comm: mpi.abi().handle(self.comm), ..self };
        let mut seen = Seen::default();
        match inside(|| act(&asked, session, &mut seen)) {
            Some(Ok(request)) => {
                // SAFETY: the program's variable for it.
                unsafe { mpi.abi().write_handle(asked.request, request) };
                if let Some(began) = began {
                    let by = By::Ours { algorithm: "prepared", why: "its starts have the algorithm" };
                    inside(|| asked.note(session, form, &seen, began, by));
                }
                0
            }
            Some(Err(Unserved::Fallback(reason))) => {
                let code = own();
                if let Some(began) = began {
                    let by = reason.to_string();
                    inside(|| {
                        asked.note(session, form, &seen, began, By::Theirs(&by));
                        asked.follow(session, form, seen, by, code);
                    });
                }
                code
            }
            Some(Err(Unserved::Failed(error))) => raise(mpi, asked.function, asked.comm, &error),
            None => fault(mpi, asked.function, asked.comm),
        }
    }

    /// Tells of the call: what is prepared has a time; what is begun has none, and ours are told of when they are through.
    fn note(&self, session: &Session, form: Form, seen: &Seen, began: Instant, by: By<'_>) {
        let took = began.elapsed();
        let prepared = form == Form::Persistent;
        if !prepared {
            session.observers.spend(took);
        }
        if prepared || matches!(by, By::Theirs(_)) {
            let (comm, bytes, time) = (seen.comm.as_ref(), seen.bytes, prepared.then_some(took));
            session.observers.served(&Served { name: self.name, comm, bytes, by, time, turn: None, from: None });
        }
    }

    /// A persistent request of the MPI's own, whose starts are to be told of.
    fn follow(&self, session: &Session, form: Form, seen: Seen, by: String, code: c_int) {
        if form == Form::Persistent && code == 0 {
            // SAFETY: the program's variable, in which the MPI has just written its request.
            let request = unsafe { session.job.mpi.abi().read_handle(self.request) };
            theirs::prepared(request, Prepared { name: self.name, comm: seen.comm, bytes: seen.bytes, by });
        }
    }

    /// The communicator, from now on one with requests; and what reads the arguments.
    fn member<R: FnOnce(Caller<'_>) -> Outcome>(
        &self,
        session: &Session,
        form: Form,
        seen: &mut Seen,
        read: R,
    ) -> Result<(Arc<Member>, R), Unserved> {
        let member = session.comms.member(self.comm)?;
        seen.comm = Some(member.comm);
        if let Some(refusal) = member.refusal() {
            seen.bytes = session.bytes_of_refused(&member, form, read);
            return Err(refusal);
        }
        member.has_requests.store(true, Ordering::Release);
        Ok((member, read))
    }

    fn origin(&self, session: &Session, on: &Communicator) -> Origin {
        let told = session.observers.time();
        Origin { function: self.function, name: self.name, comm: self.comm, on: *on, told }
    }
}
