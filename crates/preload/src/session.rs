//! From `MPI_Init` to `MPI_Finalize`: what is known in between, and whether there is an in between.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use allhands_mpi::{Handle, Mpi};
use allhands_schedule::Collective;

use crate::agreement::{Agreed, agree};
use crate::check::Check;
use crate::comms::Comms;
use crate::preloaded::preloaded;
use crate::presence;
use crate::report::Report;
use crate::requests::{Mover, Requests};
use crate::settings::{PROGRESS, Settings};
use crate::types::Types;
use crate::watch::Watch;

/// What calls are served with.
pub(crate) struct Session {
    pub(crate) mpi: &'static Mpi,
    pub(crate) types: Types,
    pub(crate) settings: Settings,
    pub(crate) comms: Comms,
    /// What is under way.
    pub(crate) requests: Requests,
    /// What moves it on, on every rank; without it requests are the MPI's.
    pub(crate) mover: Option<Mover>,
    /// What was called, if the user wants to know.
    pub(crate) report: Option<Report>,
    /// Whether ranks agree on what they call, if the user wants to know.
    pub(crate) check: Option<Check>,
    /// Who is late, if the user wants to know.
    pub(crate) watch: Option<Watch>,
}

static SESSION: OnceLock<Session> = OnceLock::new();
/// Whether the program's calls are ours to serve.
static RUNNING: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Whether this thread is in our code: what MPI calls from there is not the program's.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
    /// Whether it waits there for other ranks in a function of the MPI, with nothing of ours half done.
    static WAITING: Cell<bool> = const { Cell::new(false) };
}

/// The session, if there is one now and the program is calling.
#[inline]
pub(crate) fn current() -> Option<&'static Session> {
    if !RUNNING.load(Ordering::Acquire) || INSIDE.get() {
        return None;
    }
    SESSION.get()
}

/// The session, if the MPI's progress, which calls from this thread, may move its runs on: the program is in a function of the MPI,
/// or we wait in one.
pub(crate) fn interruptible() -> Option<&'static Session> {
    if !RUNNING.load(Ordering::Acquire) || INSIDE.get() && !WAITING.get() {
        return None;
    }
    SESSION.get()
}

/// Does what is ours to do; `None` if it panicked, which must not reach the program.
#[inline]
pub(crate) fn inside<R>(act: impl FnOnce() -> R) -> Option<R> {
    struct Outside(bool, bool);
    impl Drop for Outside {
        fn drop(&mut self) {
            INSIDE.set(self.0);
            WAITING.set(self.1);
        }
    }
    let _outside = Outside(INSIDE.replace(true), WAITING.replace(false));
    catch_unwind(AssertUnwindSafe(act)).ok()
}

/// Waits for other ranks in a function of the MPI. They may first wait for runs of this rank, which its progress moves on meanwhile.
pub(crate) fn waiting<R>(act: impl FnOnce() -> R) -> R {
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            WAITING.set(self.0);
        }
    }
    let _before = Before(WAITING.replace(true));
    act()
}

/// The thread level that MPI is to be initialised with, whatever the program asks for: a thread of ours will call it.
pub(crate) fn level() -> Option<c_int> {
    let thread = preloaded() && std::env::var(PROGRESS).as_deref() == Ok("thread");
    let mpi = allhands_mpi::load().ok().filter(|_| thread)?;
    Some(mpi.constants().integers.thread_multiple)
}

/// MPI is about to be initialised.
pub(crate) fn announce() {
    if preloaded() {
        inside(presence::announce);
    }
}

/// MPI was initialised. A program that is linked with this library, for plans of its own, keeps its MPI's collectives.
pub(crate) fn begin() {
    if !preloaded() {
        return;
    }
    inside(|| match Session::new() {
        Ok(None) => {}
        Ok(Some(session)) => {
            if SESSION.set(session).is_ok() {
                RUNNING.store(true, Ordering::Release);
                // The world's collectives may begin without waiting from now on.
                if let Some(session) = SESSION.get() {
                    session.comms.prepare(session, session.mpi.world());
                }
            }
        }
        Err(fact) => refuse(&fact),
    });
}

/// The session for plans of the C API, whoever has initialised MPI: one in which nobody's calls are served is made where there is
/// none. Not collective.
pub(crate) fn for_plans(mpi: &'static Mpi) -> allhands_mpi::Result<&'static Session> {
    static MAKING: Mutex<()> = Mutex::new(());
    let _making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    match SESSION.get() {
        Some(session) => Ok(session),
        None => {
            let session = Session::with(mpi, Settings::default())?;
            Ok(SESSION.get_or_init(|| session))
        }
    }
}

/// MPI is being finalised: communicators that are left end.
pub(crate) fn forget() {
    if let Some(session) = SESSION.get() {
        session.comms.end();
    }
}

/// Ends the job. All ranks find the same: the first says it, before the others end.
fn refuse(fact: &str) {
    let Ok(mpi) = allhands_mpi::load() else {
        eprintln!("allhands: {fact}");
        return;
    };
    match mpi.comm_rank(mpi.world()) {
        Ok(1..) => std::thread::sleep(Duration::from_secs(1)),
        _ => eprintln!("allhands: {fact}"),
    }
    mpi.abort(mpi.world(), 2);
}

/// MPI is about to be finalised.
pub(crate) fn end() {
    if let Some(session) = current() {
        inside(|| {
            RUNNING.store(false, Ordering::Release);
            if let (Some(report), Some(wanted)) = (&session.report, &session.settings.report)
                && let Err(error) = report.publish(session.mpi, wanted)
            {
                eprintln!("allhands: there is no report: {error}");
            }
            session.requests.end(session.mpi, session.mover);
            session.comms.end();
            if let Some(watch) = &session.watch {
                watch.end();
            }
            if let Some(check) = &session.check {
                check.end(session.mpi);
            }
        });
    }
}

impl Session {
    /// None if the MPI serves this job.
    fn new() -> Result<Option<Session>, String> {
        let mpi = allhands_mpi::load().map_err(|error| error.to_string())?;
        let Agreed::Serve { mover } = agree(mpi)? else { return Ok(None) };
        let settings = Settings::agreed(mpi)?;
        let check = settings.check.then(|| Check::new(mpi)).transpose().map_err(|error| error.to_string())?;
        let watch = settings.timeout.map(|most| Watch::new(mpi, most)).transpose()?;
        let session = Session::with(mpi, settings).map_err(|error| error.to_string())?;
        Ok(Some(Session { check, watch, mover, ..session }))
    }

    /// Whether the MPI serves a collective anyway, and nobody wants to know more about its calls.
    #[inline]
    pub(crate) fn leaves(&self, collective: Collective) -> bool {
        !self.told() && !self.settings.log && self.settings.forced(collective) == Some("mpi")
    }

    /// Whether somebody wants to know of every call.
    pub(crate) fn told(&self) -> bool {
        self.report.is_some() || self.listens() || self.settings.compare
    }

    /// Whether somebody wants to know what calls say, before they are served.
    pub(crate) fn listens(&self) -> bool {
        self.check.is_some() || self.watch.is_some()
    }

    fn with(mpi: &'static Mpi, settings: Settings) -> allhands_mpi::Result<Session> {
        // SAFETY: the function does what MPI asks of it, at any time.
        let key = unsafe { mpi.comm_keyval(gone)? };
        let report = settings.report.as_ref().map(|_| Report::new());
        Ok(Session {
            mpi,
            types: Types::new(mpi),
            settings,
            comms: Comms::new(key),
            requests: Requests::default(),
            mover: None,
            report,
            check: None,
            watch: None,
        })
    }
}

/// A communicator of the program is freed.
unsafe extern "C" fn gone(comm: Handle, _: c_int, _: *mut c_void, _: *mut c_void) -> c_int {
    if let Some(session) = SESSION.get() {
        inside(|| session.comms.remove(session.mpi.abi().handle(comm)));
    }
    0
}
