//! From a call of the program to a plan of ours, or to the MPI's own function.

use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::time::Instant;

use allhands::Error;
use allhands_mpi::Handle;
use allhands_schedule::Collective;

use crate::collectives::{Caller, Task};
use crate::comms::Chosen;
use crate::failure::{Unserved, raise};
use crate::report::By;
use crate::requests;
use crate::session::{self, Session};

/// A call of the program.
struct Call<'a> {
    session: &'a Session,
    collective: Collective,
    comm: Handle,
    /// Known once its arguments are read.
    bytes: Option<usize>,
}

/// Serves a call, or hands it to the MPI's own function.
pub(crate) fn serve(
    collective: Collective,
    function: &str,
    comm: Handle,
    read: impl FnOnce(Caller<'_>) -> Result<Task, Unserved>,
    own: impl FnOnce() -> c_int,
    begin: impl FnOnce(*mut c_void) -> Option<c_int>,
) -> c_int {
    let Some(session) = session::current() else { return own() };
    let began = session.report.as_ref().map(|_| Instant::now());
    let comm = session.mpi.abi().handle(comm);
    let mut call = Call { session, collective, comm, bytes: None };
    let outcome = session::inside(|| call.attempt(read));
    let note = |by: By<'_>| {
        if let (Some(report), Some(began)) = (&session.report, began) {
            report.note(collective.name(), call.bytes, &by, began.elapsed());
        }
    };
    match outcome {
        Some(Ok(chosen)) => {
            let chosen = chosen.as_deref();
            note(By::Ours {
                algorithm: chosen.map_or("nothing", |chosen| &chosen.algorithm),
                why: chosen.map_or("there is nothing to move", |chosen| &chosen.why),
            });
            0
        }
        Some(Err(Unserved::Passed(reason))) => {
            let code = requests::instead(session, comm, own, begin);
            note(By::Theirs(&reason));
            code
        }
        Some(Err(Unserved::Failed(error))) => raise(session.mpi, function, comm, &error),
        None => {
            let message = "a fault of this library, reported above".into();
            raise(session.mpi, function, comm, &Error::Panicked { rank: 0, message })
        }
    }
}

impl Call<'_> {
    /// The algorithm that served it; none where there was nothing to do.
    fn attempt(
        &mut self,
        read: impl FnOnce(Caller<'_>) -> Result<Task, Unserved>,
    ) -> Result<Option<Arc<Chosen>>, Unserved> {
        let session = self.session;
        let member = session.comms.member(session, self.comm)?;
        if let Some(refusal) = member.refusal() {
            return Err(refusal);
        }
        let mut task = read(Caller { session, member: &member })?;
        self.bytes = Some(task.bytes);
        // As many everywhere: no rank waits for this one.
        if task.bytes == 0 && !matches!(self.collective, Collective::Barrier | Collective::Alltoallv) {
            return Ok(None);
        }
        if member.made().is_none() {
            requests::linger(session);
        }
        let mut group = member.group()?;
        if self.collective == Collective::Alltoallv {
            task.agree(session, member.rank, &mut group)?;
        }
        let (plan, chosen, lines) = group.plan(session, &task.call, session.settings.forced(self.collective))?;
        // SAFETY: the memory is as the program says.
        unsafe {
            match requests::any() {
                false => task.run(session.mpi, plan)?,
                true => requests::beside(session, &task, plan, lines)?,
            }
        }
        // Counted for the report only.
        Ok(session.report.as_ref().map(|_| chosen.clone()))
    }
}
