//! From a call of the program to a plan of ours, or to the MPI's own function.

use std::ffi::c_int;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Instant;

use allhands_call::failure::{fault, raise};
use allhands_call::{Caller, Communicator, Outcome, Reason, Task, Unserved};
use allhands_mpi::Handle;
use allhands_schedule::Collective;

use super::caller;
use super::recent::recent;
use super::repeat_call_cache::{Plain, remember};
use super::session::{self, Session};
use crate::groups::{Beside, Chosen, Form, Found};
use crate::job::{inside, waiting};
use crate::observe::{By, Served, Stay, Turn};
use crate::requests::{self, Group, Member, PlanQueues};
use allhands_call::locks::Held;

/// A call of the program.
struct Call<'a> {
    session: &'a Session,
    collective: Collective,
    /// MPI's name for the function, and that of the report.
    function: &'a str,
    name: &'static str,
    comm: Handle,
    /// Known where MPI knows it.
    on: Option<&'a Communicator>,
    /// Known once its arguments are read.
    bytes: Option<usize>,
    /// When the serving began, if somebody wants to know.
    began: Option<Instant>,
    /// Where in the program it returns to.
    from: Option<NonZeroUsize>,
    /// Whether there is a plan for it, be it that of calling the MPI's own; then that was logged.
    planned: bool,
    /// Whose turn it is, where ours and the MPI's own are compared.
    turn: Option<Turn>,
    /// On whose communicator the MPI's own is tried, so that its time is wanted.
    tried: Option<&'a Member>,
    /// Whether something may have been learned before it.
    told: bool,
    /// While the others are to see this rank in it.
    stays: Vec<Stay<'a>>,
}

/// Serves a call, or hands it to the MPI's own function.
pub(super) fn serve(
    collective: Collective,
    (function, name): (&str, &'static str),
    comm: Handle,
    plain: Option<Plain<'_>>,
    read: impl FnOnce(Caller<'_>) -> Outcome,
    own: impl FnOnce() -> c_int,
) -> c_int {
    let Some(session) = session::current() else { return own() };
    let comm = session.job.mpi.abi().handle(comm);
    if session.leaves(collective) {
        return own();
    }
    let began = session.observers.time().then(Instant::now);
    let mut call = Call {
        session,
        collective,
        function,
        name,
        comm,
        on: None,
        bytes: None,
        began,
        from: caller::address(),
        planned: false,
        turn: None,
        tried: None,
        told: false,
        stays: Vec::new(),
    };
    let code = match inside(|| call.attempt(plain, read)) {
        Some(Ok(chosen)) => {
            call.note(chosen.as_deref().map_or(By::Nobody, Chosen::as_server));
            0
        }
        Some(Err(Unserved::Fallback(reason))) => {
            // Without us nothing would have come before.
            if call.turn.is_some() || call.tried.is_some() || began.is_some() && !session.job.serves {
                call.began = Some(Instant::now());
            }
            call.log(&reason);
            let code = match call.tried {
                None => own(),
                Some(member) => {
                    let began = Instant::now();
                    let code = own();
                    let took = began.elapsed();
                    inside(|| member.made().map(|group| group.lock().took(took)));
                    code
                }
            };
            if call.began.is_some() {
                call.note(By::Theirs(&reason.to_string()));
            }
            code
        }
        Some(Err(Unserved::Failed(error))) => raise(session.job.mpi, function, comm, &error),
        None => fault(session.job.mpi, function, comm),
    };
    if call.told {
        inside(|| session.learned());
    }
    code
}

/// The plan for a call, why it runs what it runs, and what is under way beside it.
#[inline]
fn planned<'a>(session: &Session, group: &'a mut Group, task: &Task) -> Result<Found<'a, PlanQueues>, Unserved> {
    match task.knows_its_own() {
        false => {
            let settings = &session.job.settings;
            group.plan(&task.call, session.requests.way(settings.forced(task.call.collective), !settings.compare))
        }
        true => {
            let preference = requests::preference(&session.job, task.call.collective, true, task.hood.as_deref())?;
            group.plan_of_own_counts(&task.call, preference)
        }
    }
}

impl Call<'_> {
    /// The algorithm that served it; none where there was nothing to do.
    fn attempt(
        &mut self,
        plain: Option<Plain<'_>>,
        read: impl FnOnce(Caller<'_>) -> Outcome,
    ) -> Result<Option<Arc<Chosen>>, Unserved> {
        let session = self.session;
        let member = recent(session, self.comm)?;
        self.on = Some(&member.comm);
        let mut task = match session.observers.listen() && member.has_several() {
            false => match member.refusal() {
                Some(refusal) => {
                    self.bytes = session.bytes_of_refused(member, Form::Blocking, read);
                    return Err(refusal);
                }
                None => session.read(member, None, Form::Blocking, read)?,
            },
            true => {
                let (announced, task) = session.announced(member, self.function, Form::Blocking, read);
                self.stays = session.observers.arrive(&announced, &|| _ = session.requests.progress())?;
                // Waiting for the others is not this collective's time.
                self.began = self.began.map(|_| Instant::now());
                member.refusal().map_or(task, Err)?
            }
        };
        self.bytes = Some(task.bytes);
        if !task.moves() {
            return Ok(None);
        }
        let mut group = member.group(session.job.mpi)?;
        if let Err(unserved) = session.requests.tell_counts(&session.job, &mut task, &member.comm, &mut group) {
            (self.tried, self.told) = (group.tried.then_some(member), group.told);
            return Err(unserved);
        }
        // What ranks know alone is not logged when a plan is made.
        self.planned = !task.knows_its_own();
        if session.job.settings.compare {
            planned(session, &mut group, &task)?;
            let fresh = group.fresh;
            self.turn = session.observers.turn(&member.comm, self.collective, task.bytes, fresh);
            if self.turn.is_some_and(|turn| !turn.ours) {
                return Err(Reason::Turn.into());
            }
        }
        let planned = planned(session, &mut group, &task);
        let found = match planned {
            Ok(found) => found,
            Err(unserved) => {
                (self.tried, self.told) = (group.tried.then_some(member), group.told);
                return Err(unserved);
            }
        };
        let chosen = session.observers.time().then(|| found.chosen());
        let Found { plan, queue: lines, tried, began, fresh, .. } = found;
        // Without observers a call like an earlier one comes here at once: what they ask for before is not the collective's time.
        if !fresh {
            self.began = self.began.map(|_| Instant::now());
        }
        let began = tried.then(|| began.unwrap_or_else(Instant::now));
        // SAFETY: the memory is as the program says.
        unsafe { session.requests.run(session.job.mpi, &task, plan, lines)? };
        if let Some(began) = began {
            group.took(began.elapsed());
        } else if let Some(beside) = group.take_beside(&task.call, |lines| session.requests.on_idle(lines))? {
            group = self.try_beside(member, group, beside)?;
        }
        self.told = group.told;
        // Many communicators have one call.
        if let Some(plain) = plain.as_ref().filter(|_| !group.fresh) {
            remember(session, self.comm, plain, member, &group, task);
        }
        Ok(chosen)
    }

    /// Runs somebody who is tried beside the call.
    fn try_beside<'a>(
        &self,
        member: &'a Member,
        mut group: Held<'a, Group>,
        mut beside: Beside,
    ) -> Result<Held<'a, Group>, Unserved> {
        let (mpi, requests) = (self.session.job.mpi, &self.session.requests);
        let began = Instant::now();
        let outcome = match beside.plan.is_library() {
            false => beside.start().and_then(|()| requests.finish(&mut beside.plan, group.parts().1)),
            true => {
                // The MPI's progress moves on what is under way, here as well: others may have to wait for that before they come.
                drop(group);
                let outcome = waiting(|| beside.call_library());
                group = member.group(mpi)?;
                outcome
            }
        };
        group.tried_beside(beside, began.elapsed());
        outcome.map(|()| group)
    }

    /// Says why the MPI serves calls like this, at the first of them, where no plan has said it.
    #[inline]
    fn log(&self, reason: &Reason) {
        if !self.planned && self.session.job.settings.log {
            self.session.comms.log(self.comm, self.collective, self.bytes, &reason.to_string());
        }
    }

    fn note(&self, by: By<'_>) {
        let Some(began) = self.began else { return };
        let (time, turn) = (Some(began.elapsed()), self.turn.map(|turn| (self.collective, turn)));
        let call = Served { name: self.name, comm: self.on, bytes: self.bytes, by, time, turn, from: self.from };
        self.session.observers.served(&call);
    }
}
