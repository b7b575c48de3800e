//! Jobs with a deadline: what they print is captured, and on expiry nothing of them is left.
//!
//! Launchers put ranks in process groups of their own, so a group does not hold a job together. A variable in the environment,
//! which every process of the job inherits, does.

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

use crate::Result;

const TAG: &str = "XTASK_LAUNCH";

static JOBS: AtomicUsize = AtomicUsize::new(0);

static IS_STOPPED: AtomicBool = AtomicBool::new(false);

/// What a job is refused with after [`stop`].
pub(crate) const STOPPED: &str = "stopped, since something else has failed";

/// From now on no job is started; whether this was the first to say so.
pub(crate) fn stop() -> bool {
    !IS_STOPPED.swap(true, Ordering::Relaxed)
}

/// How many jobs were started so far.
pub(crate) fn jobs() -> usize {
    JOBS.load(Ordering::Relaxed)
}

/// A command under way.
pub(crate) struct Job {
    line: String,
    tag: String,
    child: Child,
    begun: Instant,
    out: Capture,
    err: Capture,
}

/// How a job ended.
pub(crate) struct Ended {
    /// The command.
    pub(crate) line: String,
    /// Nothing if the deadline came first.
    pub(crate) status: Option<ExitStatus>,
    pub(crate) time: Duration,
    pub(crate) out: String,
    pub(crate) err: String,
    /// Processes that were still there when the launcher had ended; they were killed.
    pub(crate) left: Vec<u32>,
}

impl Job {
    pub(crate) fn start(mut command: Command) -> Result<Job> {
        if IS_STOPPED.load(Ordering::Relaxed) {
            return Err(STOPPED.into());
        }
        let tag = format!("{TAG}={}-{}", std::process::id(), JOBS.fetch_add(1, Ordering::Relaxed));
        let line = written(&command);
        command.env(TAG, &tag[TAG.len() + 1..]);
        // What jobs learn is not the developer's.
        command.env("XDG_CACHE_HOME", crate::mpi::root().join("target/cache"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("cannot be started ({error}): {line}"))?;
        let (out, err) = (Capture::of(child.stdout.take()), Capture::of(child.stderr.take()));
        Ok(Job { line, tag, child, begun: Instant::now(), out, err })
    }

    /// What it has printed so far.
    pub(crate) fn printed(&self) -> String {
        self.out.so_far()
    }

    /// What it has said on the standard error so far.
    pub(crate) fn said(&self) -> String {
        self.err.so_far()
    }

    /// The processes of the job, the launcher among them.
    fn members(&self) -> Vec<u32> {
        let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
        let numbers = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let ours = |process: &u32| {
            let environment = std::fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
            environment.split(|&byte| byte == 0).any(|variable| variable == self.tag.as_bytes())
        };
        numbers.filter(ours).collect()
    }

    /// Waits for the launcher, at most so long, and ends what is left of the job.
    pub(crate) fn wait(mut self, most: Duration) -> Ended {
        let deadline = Instant::now() + most;
        let mut status = None;
        while status.is_none() && Instant::now() < deadline {
            sleep(Duration::from_millis(5));
            status = self.child.try_wait().ok().flatten();
        }
        let time = self.begun.elapsed();
        // Helpers of the launcher may be on their way out.
        let grace = Instant::now() + Duration::from_secs(2);
        while status.is_some() && !self.members().is_empty() && Instant::now() < grace {
            sleep(Duration::from_millis(20));
        }
        let left = self.members();
        self.end();
        let _ = self.child.wait();
        Ended { line: self.line, status, time, out: self.out.all(), err: self.err.all(), left }
    }

    /// Kills every process of the job, and those that it starts meanwhile.
    fn end(&self) {
        for _ in 0..100 {
            let members = self.members();
            if members.is_empty() {
                return;
            }
            kill(&members);
            sleep(Duration::from_millis(20));
        }
    }
}

/// Runs a command to its end, at most so long.
pub(crate) fn launch(command: Command, most: Duration) -> Result<Ended> {
    Ok(Job::start(command)?.wait(most))
}

impl Ended {
    /// A failure, with all that the job printed.
    pub(crate) fn fault(&self, what: &str) -> String {
        let Ended { line, time, out, err, .. } = self;
        let status = self.status.map_or("still running".into(), |status| status.to_string());
        format!("{what} ({status} after {:.1} s): {line}\n{out}{err}", time.as_secs_f64())
    }
}

/// Ends processes at once. The shell has `kill` built in; the standard library has none.
pub(crate) fn kill(processes: &[u32]) {
    let numbers: Vec<String> = processes.iter().map(ToString::to_string).collect();
    let script = format!("kill -KILL {}", numbers.join(" "));
    let _ = Command::new("sh").args(["-c", &script]).stderr(Stdio::null()).status();
}

/// A command as one would type it.
fn written(command: &Command) -> String {
    let variables = command.get_envs().filter_map(|(name, value)| {
        let value = value?.to_string_lossy();
        Some(format!("{}={value}", name.to_string_lossy()))
    });
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    variables.chain(words.map(|word| word.to_string_lossy().into_owned())).collect::<Vec<_>>().join(" ")
}

/// What comes out of a pipe, read while the job runs so that it never blocks.
struct Capture {
    text: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Capture {
    fn of(pipe: Option<impl Read + Send + 'static>) -> Capture {
        let text = Arc::new(Mutex::new(Vec::new()));
        let store = text.clone();
        let read = move || {
            let Some(mut pipe) = pipe else { return };
            let mut chunk = [0; 4096];
            while let Ok(bytes @ 1..) = pipe.read(&mut chunk) {
                store.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&chunk[..bytes]);
            }
        };
        Capture { text, reader: spawn(read) }
    }

    fn so_far(&self) -> String {
        String::from_utf8_lossy(&self.text.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }

    fn all(self) -> String {
        let _ = self.reader.join();
        String::from_utf8_lossy(&self.text.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }
}
