//! Beginning a collective, and preparing one that is begun many times.

use std::ffi::{c_int, c_void};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use allhands::Error;
use allhands_mpi::Handle;
use allhands_schedule::{Choice, Collective};

use super::lines::{Named, Run};
use super::{PREPARED, Prepared, lock};
use crate::collectives::Caller;
use crate::comms::{Member, Wish};
use crate::failure::{Reason, Unserved, raise};
use crate::report::By;
use crate::said::Heard;
use crate::session::{self, Session};
use crate::settings::IF_IT_CAN;
use crate::task::Task;

/// A call that returns a request.
pub(crate) struct Asked {
    pub(crate) collective: Collective,
    /// MPI's name for it, and that of the report.
    pub(crate) function: &'static str,
    pub(crate) name: &'static str,
    pub(crate) comm: Handle,
    /// Where the program wants it.
    pub(crate) request: *mut c_void,
}

/// Begins a collective, or hands it to the MPI's own function.
pub(crate) fn begin(
    asked: Asked,
    read: impl FnOnce(Caller<'_>) -> Result<Task, Unserved>,
    own: impl FnOnce() -> c_int,
) -> c_int {
    asked.attend(own, |asked, session| {
        let member = asked.member(session)?;
        let task = asked.announced(session, &member, read, false);
        moved(session)?;
        let Some(group) = member.made() else {
            return Err(Reason::NoCommunicator.into());
        };
        let mut task = task?;
        let wish = asked.wish(session, true)?;
        let mut group = lock(group);
        let (comm, lines) = group.parts();
        let line = match asked.collective {
            Collective::Alltoallv => lines.of_exchanges(comm, wish)?,
            _ if asked.moves(&task) => lines.of_shape(session, comm, &task.call, wish)?,
            _ => lines.of_nothing(),
        };
        task.hold(session)?;
        // SAFETY: the program's memory is as it says.
        let staged = unsafe { task.stage(session.mpi)? };
        let (request, mark) = lock(&session.requests.marks).make(session.mpi, false)?;
        let run = Run { task: Rc::new(task), staged, request, mark, call: asked.named(session, false), runs: false };
        lines.push(line, run);
        drop(group);
        asked.give(session, request);
        session.requests.enlist(session, &member);
        session.requests.progress(session);
        Ok(())
    })
}

/// Prepares a collective, or hands it to the MPI's own function. Ranks may wait for each other here.
pub(crate) fn prepare(
    asked: Asked,
    read: impl FnOnce(Caller<'_>) -> Result<Task, Unserved>,
    own: impl FnOnce() -> c_int,
) -> c_int {
    asked.attend(own, |asked, session| {
        let member = asked.member(session)?;
        let mut task = asked.announced(session, &member, read, true)?;
        moved(session)?;
        let wish = asked.wish(session, false)?;
        let mut group = member.group(session.mpi)?;
        if asked.collective == Collective::Alltoallv {
            task.agree(session, member.rank, &mut group)?;
        }
        task.hold(session)?;
        let wish = asked.moves(&task).then_some(wish);
        let (comm, lines) = group.parts();
        member.forget_lines(lines);
        let line = lines.of_request(session, comm, task, wish)?;
        let (request, mark) = lock(&session.requests.marks).make(session.mpi, true)?;
        drop(group);
        let call = asked.named(session, true);
        lock(&session.requests.prepared).insert(request, Prepared { member, line, mark, call });
        PREPARED.fetch_add(1, Ordering::AcqRel);
        asked.give(session, request);
        Ok(())
    })
}

/// Whether something moves requests on.
fn moved(session: &Session) -> Result<(), Unserved> {
    session.mover.map(|_| ()).ok_or_else(|| Reason::NobodyMoves.into())
}

impl Asked {
    fn attend(
        self,
        own: impl FnOnce() -> c_int,
        act: impl FnOnce(&Asked, &'static Session) -> Result<(), Unserved>,
    ) -> c_int {
        let Some(session) = session::current() else { return own() };
        let began = session.report.as_ref().map(|_| Instant::now());
        let asked = Asked { comm: session.mpi.abi().handle(self.comm), ..self };
        match session::inside(|| act(&asked, session)) {
            Some(Ok(())) => 0,
            Some(Err(Unserved::Fallback(reason))) => {
                let code = own();
                if let (Some(report), Some(began)) = (&session.report, began) {
                    report.note(asked.name, None, &By::Theirs(&reason.to_string()), began.elapsed());
                }
                code
            }
            Some(Err(Unserved::Failed(error))) => raise(session.mpi, asked.function, asked.comm, &error),
            None => {
                let message = "a fault of this library, reported above".into();
                raise(session.mpi, asked.function, asked.comm, &Error::Panicked { rank: 0, message })
            }
        }
    }

    /// The communicator, from now on one with requests.
    fn member(&self, session: &Session) -> Result<Arc<Member>, Unserved> {
        let member = session.comms.member(session, self.comm)?;
        if let Some(refusal) = member.refusal() {
            return Err(refusal);
        }
        member.requests.store(true, Ordering::Release);
        Ok(member)
    }

    /// Reads the arguments and, if the user wants that, compares them with the other ranks': now, or while the run is under way.
    fn announced(
        &self,
        session: &Session,
        member: &Member,
        read: impl FnOnce(Caller<'_>) -> Result<Task, Unserved>,
        now: bool,
    ) -> Result<Task, Unserved> {
        let Some(check) = &session.check else { return read(Caller { session, member, said: None }) };
        let Heard { task, said, words } = Heard::new(session, member, self.function, read);
        match now {
            true => check.compare(session, member, &words, &said)?,
            false => check.later(session, member, &words)?,
        }
        task
    }

    /// As many everywhere: if there is nothing, no rank waits for this one.
    fn moves(&self, task: &Task) -> bool {
        task.bytes > 0 || matches!(self.collective, Collective::Barrier | Collective::Alltoallv)
    }

    /// `alone`: whether the plan is to be made without waiting for others.
    fn wish<'a>(&self, session: &'a Session, unshared: bool) -> Result<Wish<'a>, Unserved> {
        let forced = session.settings.forced(self.collective);
        let shared = |name: &str| {
            let choice = Choice::parse(self.collective, name.trim_end_matches(IF_IT_CAN));
            choice.is_ok_and(|choice| choice.parameters.get("local") == Some("shared"))
        };
        if unshared && forced.is_some_and(shared) {
            return Err(Reason::MadeTogether.into());
        }
        Ok(Wish { forced, unshared })
    }

    fn named(&self, session: &Session, persistent: bool) -> Named {
        let began = session.report.as_ref().map(|_| Instant::now());
        Named { function: self.function, name: self.name, comm: self.comm, persistent, began }
    }

    fn give(&self, session: &Session, request: Handle) {
        // SAFETY: the program's variable for it.
        unsafe { session.mpi.abi().write_handle(self.request, request) };
    }
}

impl Prepared {
    /// Starts the run of a request that MPI has started.
    pub(super) fn start(&self, session: &'static Session, request: Handle) {
        let Prepared { member, line, mark, call } = self;
        let Some(mut group) = member.made().map(lock) else { return };
        let (_, lines) = group.parts();
        let Some(task) = lines.task(*line) else { return };
        let began = call.began.map(|_| Instant::now());
        // SAFETY: the program's memory is as it says.
        let (staged, failed) = match unsafe { task.stage(session.mpi) } {
            Ok(staged) => (staged, None),
            Err(unserved) => (Default::default(), Some(unserved)),
        };
        let call = Named { began, ..*call };
        let run = Run { task, staged, request, mark: *mark, call, runs: false };
        match failed {
            None => lines.push(*line, run),
            Some(unserved) => lines.refuse(session, run, unserved),
        }
        drop(group);
        session.requests.enlist(session, member);
    }
}
