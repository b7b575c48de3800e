//! From `MPI_Init` to `MPI_Finalize`: what is known in between, and whether there is an in between.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use allhands_call::locks::try_lock;
use allhands_call::{CallDescription, Caller, Outcome, Unserved};
use allhands_mpi::{Handle, Mpi};
use allhands_schedule::{Collective, Topology};

use crate::groups::{Comms, Form};
use crate::job::{Job, Moved, inside, is_inside, is_interruptible};
use crate::observe::{Announced, Choices, JobLessons, Observers};
use crate::requests::{self, Member, PlanQueues, Requests};

/// What calls are served with.
pub(super) struct Session {
    pub(super) job: Job,
    pub(super) observers: Arc<Observers>,
    pub(super) comms: Comms<PlanQueues>,
    pub(super) requests: Requests,
    /// When what was learned was kept last; of the world's first rank only, which keeps it.
    kept: Option<Mutex<Instant>>,
}

/// What is learned is kept so often: a job may end before it finalises MPI.
const KEPT_EVERY: Duration = Duration::from_secs(180);

static SESSION: OnceLock<Session> = OnceLock::new();
/// The same while the program's calls are ours to serve; else null.
static RUNNING: AtomicPtr<Session> = AtomicPtr::new(null_mut());

/// Whether somebody wants to know how long calls take.
static TIMES: AtomicBool = AtomicBool::new(false);

/// Makes a call that is no collective but takes its time; how long, if somebody wants to know.
#[inline]
pub(super) fn spent(call: impl FnOnce() -> c_int) -> c_int {
    if !TIMES.load(Ordering::Relaxed) {
        return call();
    }
    let Some(session) = current() else { return call() };
    let began = Instant::now();
    let code = call();
    inside(|| session.observers.spend(began.elapsed()));
    code
}

/// The session, if there is one now and the program is calling.
#[inline]
pub(super) fn current() -> Option<&'static Session> {
    running().filter(|_| !is_inside())
}

#[inline]
fn running() -> Option<&'static Session> {
    // SAFETY: null, or what the cell holds, which stays there.
    unsafe { RUNNING.load(Ordering::Acquire).as_ref() }
}

/// Moves runs on for the MPI's progress, which calls from this thread: the program is in a function of the MPI, or we wait in one.
fn moving() -> Option<Moved> {
    let session = running().filter(|_| is_interruptible())?;
    let through = if requests::any() { inside(|| session.requests.progress())? } else { 0 };
    Some(Moved { through, left: requests::any() })
}

/// MPI was initialised. `choices`: what this MPI needs.
pub(super) fn begin(choices: fn(&Mpi) -> Choices) {
    inside(|| match Session::new(choices) {
        Ok(None) => {}
        Ok(Some(session)) => {
            if SESSION.set(session).is_ok()
                && let Some(session) = SESSION.get()
            {
                TIMES.store(session.observers.time(), Ordering::Relaxed);
                RUNNING.store((&raw const *session).cast_mut(), Ordering::Release);
                // The world's collectives may begin without waiting from now on.
                if let Err(fact) = session.prepare() {
                    refuse(&fact);
                }
            }
        }
        Err(fact) => refuse(&fact),
    });
}

/// Ends the job. All ranks find the same: the first says it, before the others end.
fn refuse(fact: &str) {
    let Ok(mpi) = allhands_mpi::load() else {
        allhands::raw::say(fact);
        return;
    };
    match mpi.comm_rank(mpi.world()) {
        Ok(1..) => std::thread::sleep(Duration::from_secs(1)),
        _ => {
            // Some launchers forget what a job says when it ends.
            allhands::raw::say(fact);
            std::thread::sleep(Duration::from_millis(200));
        }
    }
    mpi.abort(mpi.world(), 2);
}

/// MPI is about to be finalised.
pub(super) fn end() {
    if let Some(session) = current() {
        inside(|| {
            RUNNING.store(null_mut(), Ordering::Release);
            let lessons = session.comms.lessons();
            session.observers.learned(&lessons);
            session.observers.publish();
            if session.kept.is_some() {
                session.keep(&lessons);
            }
            session.requests.end(session.job.mpi);
            session.comms.end();
            session.observers.end();
        });
    }
}

impl Session {
    /// None if the MPI serves this job.
    fn new(choices: fn(&Mpi) -> Choices) -> Result<Option<Session>, String> {
        let Some(job) = Job::agreed()? else { return Ok(None) };
        let mpi = job.mpi;
        let observers = Arc::new(Observers::new(&job, &choices(mpi))?);
        // SAFETY: the function does what MPI asks of it, at any time.
        let key = unsafe { mpi.comm_keyval(gone) }.map_err(|error| error.to_string())?;
        let comms = Comms::new(&job, observers.clone(), key);
        let requests = Requests::new(&job, observers.clone(), moving);
        let kept = (mpi.comm_rank(mpi.world()) == Ok(0)).then(|| Mutex::new(Instant::now()));
        Ok(Some(Session { job, observers, comms, requests, kept }))
    }

    /// Makes ours for the world; or what the user wants and cannot have, which is the same on every rank. Collective.
    fn prepare(&self) -> Result<(), String> {
        if !self.job.serves {
            // Communicators that are made from it are told apart from now on.
            let _ = self.comms.member(self.job.mpi.world());
            return Ok(());
        }
        let world = self.comms.prepare(self.job.mpi.world());
        let group = world.as_ref().map(|member| member.group(self.job.mpi));
        match group {
            Some(Ok(mut group)) => self.job.settings.serve(group.parts().0.topology()),
            Some(Err(Unserved::Fallback(reason))) => {
                if self.job.mpi.comm_rank(self.job.mpi.world()) == Ok(0) {
                    allhands::raw::say(format_args!("the MPI serves this job: {reason}"));
                }
                Ok(())
            }
            Some(Err(Unserved::Failed(error))) => Err(error.to_string()),
            // One rank, which has nobody to talk to.
            None => self.job.settings.serve(&Topology::flat(1).map_err(|error| error.to_string())?),
        }
    }

    /// Something may have been learned: keeps it, if that was not done for some minutes.
    pub(super) fn learned(&self) {
        let Some(mut kept) = self.kept.as_ref().and_then(try_lock) else { return };
        if kept.elapsed() >= KEPT_EVERY {
            *kept = Instant::now();
            self.keep(&self.comms.lessons());
        }
    }

    /// Keeps what was learned for the next job, as far as this rank took part in it.
    fn keep(&self, lessons: &JobLessons) {
        let machine = lessons.facts.as_ref().and_then(|facts| facts.machine.as_ref());
        lessons.learned.keep(&self.job.settings.learn, &allhands::raw::transport(self.job.mpi), machine);
    }

    /// Whether the MPI serves a collective anyway, and nobody wants to know more about its calls.
    #[inline]
    pub(super) fn leaves(&self, collective: Collective) -> bool {
        let settings = &self.job.settings;
        !self.observers.any() && !settings.log && settings.leaves(collective)
    }

    /// Reads the arguments of a call.
    #[inline]
    pub(super) fn read(
        &self,
        member: &Member,
        said: Option<&CallDescription>,
        form: Form,
        read: impl FnOnce(Caller<'_>) -> Outcome,
    ) -> Outcome {
        let neighborhood = || member.neighborhood(self.job.mpi, form);
        read(Caller { types: &self.job.types, comm: &member.comm, said, neighborhood: &neighborhood })
    }

    /// How much a call moves on a communicator whose calls are not ours, if somebody wants to know. Between two groups arguments mean
    /// something else.
    pub(super) fn bytes_of_refused(
        &self,
        member: &Member,
        form: Form,
        read: impl FnOnce(Caller<'_>) -> Outcome,
    ) -> Option<usize> {
        let wanted = self.observers.time() && !member.comm.between_groups;
        wanted.then(|| self.read(member, None, form, read).ok().map(|task| task.bytes)).flatten()
    }

    /// Reads the arguments of a call, and puts them into words.
    pub(super) fn announced<'a>(
        &self,
        member: &'a Member,
        function: &str,
        form: Form,
        read: impl FnOnce(Caller<'_>) -> Outcome,
    ) -> (Announced<'a>, Outcome) {
        let said = CallDescription::default();
        let task = self.read(member, Some(&said), form, read);
        let refused = task.as_ref().is_err_and(Unserved::refused);
        (Announced::new(&member.comm, function, said, refused), task)
    }
}

/// A communicator of the program is freed.
unsafe extern "C" fn gone(comm: Handle, _: c_int, _: *mut c_void, _: *mut c_void) -> c_int {
    if let Some(session) = SESSION.get() {
        inside(|| session.comms.gone(session.job.mpi.abi().handle(comm)));
    }
    0
}
