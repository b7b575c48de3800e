//! From a call of the program to a plan of ours, or to the MPI's own function.

use std::ffi::c_int;
use std::sync::Arc;
use std::time::Instant;

use allhands_mpi::Handle;
use allhands_schedule::Collective;

use crate::again::{Plain, again, remember};
use crate::collectives::Caller;
use crate::comms::{Chosen, Member};
use crate::failure::{Reason, Unserved, fault, raise};
use crate::report::By;
use crate::requests;
use crate::said::Heard;
use crate::session::{self, Session};
use crate::task::Task;
use crate::turns::Turn;
use crate::watch::Present;

/// A call of the program.
struct Call<'a> {
    session: &'a Session,
    collective: Collective,
    function: &'a str,
    comm: Handle,
    /// Known once its arguments are read.
    bytes: Option<usize>,
    /// When the serving began, if somebody wants to know.
    began: Option<Instant>,
    /// Whether there is a plan for it, be it that of calling the MPI's own; then that was logged.
    planned: bool,
    /// Whose turn it is, where ours and the MPI's own are compared.
    turn: Option<Turn>,
    /// While the others are to see this rank in it.
    present: Option<Present<'a>>,
}

/// Serves a call, or hands it to the MPI's own function.
pub(crate) fn serve(
    collective: Collective,
    function: &str,
    comm: Handle,
    plain: Option<Plain>,
    read: impl FnOnce(Caller<'_>) -> Result<Task, Unserved>,
    own: impl FnOnce() -> c_int,
) -> c_int {
    let Some(session) = session::current() else { return own() };
    let comm = session.mpi.abi().handle(comm);
    if let Some(code) = plain.as_ref().and_then(|plain| again(session, collective, function, comm, plain)) {
        return code;
    }
    if session.leaves(collective) {
        return own();
    }
    let began = session.report.as_ref().map(|_| Instant::now());
    let mut call =
        Call { session, collective, function, comm, bytes: None, began, planned: false, turn: None, present: None };
    match session::inside(|| call.attempt(plain, read)) {
        Some(Ok(chosen)) => {
            let chosen = chosen.as_deref();
            call.note(By::Ours {
                algorithm: chosen.map_or("nothing", |chosen| &chosen.algorithm),
                why: chosen.map_or("there is nothing to move", |chosen| &chosen.why),
            });
            0
        }
        Some(Err(Unserved::Fallback(reason))) => {
            // Without us nothing would have come before.
            if call.turn.is_some() {
                call.began = Some(Instant::now());
            }
            call.log(&reason);
            let code = own();
            if session.report.is_some() {
                call.note(By::Theirs(&reason.to_string()));
            }
            code
        }
        Some(Err(Unserved::Failed(error))) => raise(session.mpi, function, comm, &error),
        None => fault(session.mpi, function, comm),
    }
}

impl Call<'_> {
    /// The algorithm that served it; none where there was nothing to do.
    fn attempt(
        &mut self,
        plain: Option<Plain>,
        read: impl FnOnce(Caller<'_>) -> Result<Task, Unserved>,
    ) -> Result<Option<Arc<Chosen>>, Unserved> {
        let session = self.session;
        let member = session.comms.recent(session, self.comm)?;
        let mut task = match session.listens() && member.several() {
            false => match member.refusal() {
                Some(refusal) => return Err(refusal),
                None => read(Caller { session, member, said: None })?,
            },
            true => self.announced(member, read)?,
        };
        self.bytes = Some(task.bytes);
        // As many everywhere: no rank waits for this one.
        if task.bytes == 0 && !matches!(self.collective, Collective::Barrier | Collective::Alltoallv) {
            return Ok(None);
        }
        let mut group = member.group(session.mpi)?;
        if self.collective == Collective::Alltoallv {
            task.agree(session, member.rank, &mut group)?;
        }
        self.planned = true;
        let forced = session.settings.forced(self.collective);
        if session.settings.compare {
            group.plan(session, &task.call, forced)?;
            let fresh = group.fresh;
            let turn = group.turns.next(self.collective, task.bytes, fresh);
            self.turn = Some(turn);
            if !turn.ours {
                return Err(Reason::Turn.into());
            }
        }
        let (plan, chosen, lines) = group.plan(session, &task.call, forced)?;
        // SAFETY: the memory is as the program says.
        unsafe {
            match requests::any() {
                false => task.run(session.mpi, plan)?,
                true => requests::beside(session, &task, plan, lines)?,
            }
        }
        // Counted for the report only.
        let chosen = session.report.as_ref().map(|_| chosen.clone());
        if let Some(plain) = &plain {
            remember(session, self.comm, plain, member, &group, &task);
        }
        Ok(chosen)
    }

    /// Reads the arguments, lets the others see them, and compares them with theirs, before anything depends on them.
    fn announced(
        &mut self,
        member: &Member,
        read: impl FnOnce(Caller<'_>) -> Result<Task, Unserved>,
    ) -> Result<Task, Unserved> {
        let session = self.session;
        let Heard { task, said, words } = Heard::new(session, member, self.function, read);
        if let Some(watch) = &session.watch {
            self.present = member.attend(watch, session.mpi, &words.text);
        }
        if let Some(check) = &session.check {
            check.compare(session, member, &words, &said)?;
            // Waiting for the others is not this collective's time.
            self.began = self.began.map(|_| Instant::now());
        }
        member.refusal().map_or(task, Err)
    }

    /// Says why the MPI serves calls like this, at the first of them, where no plan has said it.
    #[inline]
    fn log(&self, reason: &Reason) {
        if !self.planned && self.session.settings.log {
            self.session.comms.log(self.session, self.comm, self.collective, self.bytes, &reason.to_string());
        }
    }

    fn note(&self, by: By<'_>) {
        let (Some(report), Some(began)) = (&self.session.report, self.began) else { return };
        let time = began.elapsed();
        report.note(self.collective.name(), self.bytes, &by, time);
        if let Some(Turn { ours, counts: true }) = self.turn {
            report.compared(self.collective, self.bytes, ours, time);
        }
    }
}
