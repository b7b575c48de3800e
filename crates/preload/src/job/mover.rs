//! What moves runs on while the program is in functions of its MPI, whichever these are.
//!
//! MPI lets a rank that is in any of its functions depend on collectives that were begun before, and a program may rely on it: a
//! rank that only polls `MPI_Iprobe` has to let the others complete theirs. Nothing outside of the MPI sees all of these functions,
//! so the MPI's own progress calls us:
//!
//! | MPI | by | when |
//! | --- | --- | --- |
//! | Open MPI 4.1 and 5 | `opal_progress_register` | in every round of its progress |
//! | MPICH 4.2 and later, below `MPI_THREAD_MULTIPLE` | `MPIX_Async_start` | the same |
//! | any, at `MPI_THREAD_MULTIPLE`, with `ALLHANDS_PROGRESS=thread` | a thread of ours | all the time |
//!
//! MPICH holds its locks around the call where several threads may be in MPI, and then takes no message from inside; Intel MPI has
//! nothing of the kind. Where there is no mover, non-blocking and persistent collectives are the MPI's own: all ranks know that, having
//! agreed in `MPI_Init`.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use allhands_mpi::{Abi, Mpi, ThreadLevel};

use allhands_call::locks::lock;

/// What calls us.
#[derive(Clone, Copy)]
pub(crate) enum Mover {
    OpenMpi { register: Registering, unregister: Registering },
    Mpich { start: Starting },
    Thread,
}

/// What is done at each of its calls; none if this thread is doing so already.
type Moving = fn() -> Option<Moved>;

/// What came of it.
pub(crate) struct Moved {
    /// How many runs are through now.
    pub(crate) through: c_int,
    /// Whether others are under way.
    pub(crate) left: bool,
}

type Called = unsafe extern "C" fn() -> c_int;
type Registering = unsafe extern "C" fn(Called) -> c_int;
type Polled = unsafe extern "C" fn(*mut c_void) -> c_int;
type Starting = unsafe extern "C" fn(Polled, *mut c_void, c_int) -> c_int;

/// `MPIX_STREAM_NULL`, as MPICH 4.2 to 5.0 have it.
const STREAM_NULL: c_int = 0x3c00_0000;
/// What MPICH is told: nothing to report, and call no more.
const NO_PROGRESS: c_int = 0;
const DONE: c_int = 1;

/// Between two rounds of the thread: it shares the cores with what computes.
const PAUSE: Duration = Duration::from_micros(20);

static MOVING: OnceLock<Moving> = OnceLock::new();
/// Whether the MPI calls us, or the thread is there.
static ENGAGED: AtomicBool = AtomicBool::new(false);
/// The session is ending.
static STOPPED: AtomicBool = AtomicBool::new(false);
static THREAD: OnceLock<Mutex<Option<JoinHandle<()>>>> = OnceLock::new();

impl Mover {
    /// What this rank has. `thread`: whether the user wants one.
    pub(crate) fn of(mpi: &Mpi, thread: bool) -> Option<Mover> {
        let several = mpi.query_thread() == Ok(ThreadLevel::Multiple);
        if thread && several {
            return Some(Mover::Thread);
        }
        let symbol = |name| mpi.symbol(name);
        match mpi.abi() {
            Abi::OpenMpi => {
                let (register, unregister) = (symbol(c"opal_progress_register")?, symbol(c"opal_progress_unregister")?);
                // SAFETY: Open MPI's functions of these names, whose C signature this is.
                Some(unsafe {
                    Mover::OpenMpi {
                        register: std::mem::transmute::<*mut c_void, Registering>(register),
                        unregister: std::mem::transmute::<*mut c_void, Registering>(unregister),
                    }
                })
            }
            Abi::Mpich if !several => {
                let start = symbol(c"PMPIX_Async_start")?;
                // SAFETY: MPICH's function of this name, whose C signature this is; its streams are handles of 32 bits.
                Some(Mover::Mpich { start: unsafe { std::mem::transmute::<*mut c_void, Starting>(start) } })
            }
            _ => None,
        }
    }

    /// A run has begun: from now on `moving` is called. It is always the same function.
    pub(crate) fn engage(self, moving: Moving) {
        let _ = MOVING.set(moving);
        if ENGAGED.swap(true, Ordering::AcqRel) {
            if let (Mover::Thread, Some(thread)) = (self, THREAD.get()) {
                lock(thread).as_ref().inspect(|thread| thread.thread().unpark());
            }
            return;
        }
        match self {
            // SAFETY: the function does what Open MPI asks of it, and is taken back before the session ends.
            Mover::OpenMpi { register, .. } => _ = unsafe { register(called) },
            // SAFETY: the function does what MPICH asks of it, and says when it is to be called no more.
            Mover::Mpich { start } => _ = unsafe { start(polled, std::ptr::null_mut(), STREAM_NULL) },
            Mover::Thread => {
                let rounds = move || {
                    while !STOPPED.load(Ordering::Acquire) {
                        match moving() {
                            Some(Moved { left: false, .. }) => std::thread::park(),
                            _ => std::thread::sleep(PAUSE),
                        }
                    }
                };
                let thread = std::thread::Builder::new().name("allhands progress".into()).spawn(rounds);
                let _ = THREAD.set(Mutex::new(thread.ok()));
            }
        }
    }

    /// The session ends.
    pub(crate) fn dismiss(self) {
        STOPPED.store(true, Ordering::Release);
        match self {
            Mover::OpenMpi { unregister, .. } if ENGAGED.load(Ordering::Acquire) => {
                // SAFETY: it was registered.
                unsafe { unregister(called) };
            }
            Mover::Thread => {
                let thread = THREAD.get().and_then(|thread| lock(thread).take());
                if let Some(thread) = thread {
                    thread.thread().unpark();
                    let _ = thread.join();
                }
            }
            _ => {}
        }
    }
}

/// Open MPI's progress calls; how many runs are through now.
unsafe extern "C" fn called() -> c_int {
    moved().map_or(0, |moved| moved.through)
}

/// MPICH's progress calls. Its `MPI_Finalize` waits until it needs to call no more.
unsafe extern "C" fn polled(_: *mut c_void) -> c_int {
    if STOPPED.load(Ordering::Acquire) {
        return DONE;
    }
    match moved() {
        Some(Moved { left: false, .. }) => {
            ENGAGED.store(false, Ordering::Release);
            DONE
        }
        _ => NO_PROGRESS,
    }
}

fn moved() -> Option<Moved> {
    MOVING.get().and_then(|moving| moving())
}
