//! A job that is tried: an MPI program that knows nothing of us, in every rank of it, under the library of `allhands exec`.
//!
//! The doctor without a launcher starts one with 2 ranks of itself, and waits for it no longer than a limit; ranks end themselves then, too. A
//! rank first becomes itself once more, with the library before its MPI. The first rank tells what came of it.

use std::convert::Infallible;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::channel;
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

use allhands_mpi::{Launcher, Mpi, Program};
use allhands_report::Whole;
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

use super::facts::{Facts, Job, Launch, Library, Outcome, Report};
use super::{exec, show};
use crate::failure::{Failure, Result};
use crate::job;

/// Where the library writes its report.
pub(super) const REPORT: &str = "ALLHANDS_REPORT";

/// More than any MPI needs to start on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);
/// For ranks that end themselves at the limit, and for a launcher that is asked to end.
const GRACE: Duration = Duration::from_secs(5);

/// What begins the line of the first rank.
const TELLS: &str = "allhands-doctor ";

/// Words of a vector that is summed: from one message to long ones.
const WORDS: [usize; 4] = [1, 64, 4096, 128 * 1024];

/// What the first rank tells.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Told {
    pub(super) mpi: Option<Library>,
    pub(super) job: Job,
}

/// Becomes a rank that has the library before its MPI; an error if there is none.
pub(super) fn with_library(told: bool) -> Result<Infallible> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["doctor", "--rank"]).args(told.then_some("--told")).env_remove(REPORT);
    if job::first() {
        let file = format!("allhands-doctor-{}.json", std::process::id());
        command.env(REPORT, std::env::temp_dir().join(file));
    }
    exec::under_library(command)
}

/// This rank's part of the job. The first shows or tells what came of it.
pub(super) fn as_rank(launcher: &Launcher, told: bool) -> Result<()> {
    let (first, kind, size) = (job::first(), launcher.kind, launcher.size);
    let tell = move |job: Job| -> Result<()> {
        if !first {
            return Ok(());
        }
        if told {
            let mpi = allhands_mpi::load().ok().map(Library::of);
            let line = serde_json::to_string(&Told { mpi, job }).unwrap_or_default();
            // In one piece, on a line of its own.
            std::io::Write::write_all(&mut std::io::stdout().lock(), format!("\n{TELLS}{line}\n").as_bytes())?;
            return Ok(());
        }
        show(&Facts::here(Launch::By { name: kind.to_string(), ranks: size }, job))
    };
    let (done, is_done) = channel::<()>();
    spawn(move || {
        if is_done.recv_timeout(LIMIT) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            let _ = tell(Job::Hung { seconds: LIMIT.as_secs() });
            std::process::exit(1);
        }
    });
    let ran = allhands_mpi::load().and_then(sums);
    let _ = done.send(());
    match ran {
        Ok((ranks, right)) => tell(Job::Ran(Outcome { launched: size, ranks, right, report: report() })),
        Err(error) => {
            tell(Job::Ended { code: None, said: Some(error.to_string()) })?;
            Err(Failure::Printed)
        }
    }
}

/// A program: it sums vectors. How many ranks it has, and whether all sums were right on all of them.
fn sums(mpi: &'static Mpi) -> allhands_mpi::Result<(usize, bool)> {
    let program = Program::new(mpi)?;
    program.init()?;
    let (me, ranks) = (mpi.comm_rank(mpi.world())? as u64, mpi.comm_size(mpi.world())? as u64);
    let mut wrong = 0;
    for words in WORDS.into_iter().cycle().take(2 * WORDS.len()) {
        let mine: Vec<u64> = (0..words as u64).map(|word| word + me).collect();
        let sums = program.sum(&mine)?;
        let right = |(word, sum): (usize, &u64)| *sum == ranks * word as u64 + ranks * (ranks - 1) / 2;
        wrong += u64::from(!sums.iter().enumerate().all(right));
    }
    let wrong = program.sum(&[wrong])?;
    program.finalize()?;
    Ok((ranks as usize, wrong == [0]))
}

/// What the library has written, which nobody else will read.
fn report() -> Option<Report> {
    let path = PathBuf::from(std::env::var_os(REPORT)?);
    let text = std::fs::read_to_string(&path).ok()?;
    let _ = std::fs::remove_file(path);
    let whole = Whole::parse(&text).ok()?;
    let (ours, calls) = whole.calls();
    Some(Report {
        ours,
        calls,
        reasons: whole.reasons().into_iter().map(String::from).collect(),
        off: whole.is_off(),
        hosts: whole.hosts().to_vec(),
        obstacles: whole.obstacles().to_vec(),
    })
}

/// Starts a job of two ranks, and tells what came of it.
pub(super) fn start(launcher: &Path) -> Told {
    let ended = |said: String| Told { mpi: None, job: Job::Ended { code: None, said: Some(said) } };
    let command = match std::env::current_exe() {
        Ok(command) => command,
        Err(error) => return ended(error.to_string()),
    };
    let mut job = Command::new(launcher);
    job.args(["-n", "2"]).arg(command).args(["doctor", "--told"]);
    job.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = match job.spawn() {
        Ok(child) => child,
        Err(error) => return ended(error.to_string()),
    };
    let (out, err) = (all_of(child.stdout.take()), all_of(child.stderr.take()));
    let status = wait(&mut child);
    let Some(status) = status else { return Told { mpi: None, job: Job::Hung { seconds: LIMIT.as_secs() } } };
    let (out, err) = (out.join().unwrap_or_default(), err.join().unwrap_or_default());
    let told = out.lines().find_map(|line| serde_json::from_str(line.split_once(TELLS)?.1.trim()).ok());
    told.unwrap_or_else(|| Told { mpi: None, job: Job::Ended { code: status.code(), said: said(&err, &out) } })
}

/// Waits until the limit, then ends the job: a launcher that is asked to end ends its ranks.
fn wait(child: &mut Child) -> Option<ExitStatus> {
    if let Some(status) = ends_within(child, LIMIT + GRACE) {
        return Some(status);
    }
    let _ = Pid::from_raw(child.id().cast_signed()).map(|process| kill_process(process, Signal::TERM));
    if ends_within(child, GRACE).is_none() {
        let _ = child.kill();
        let _ = child.wait();
    }
    None
}

fn ends_within(child: &mut Child, most: Duration) -> Option<ExitStatus> {
    let began = Instant::now();
    while began.elapsed() < most {
        if let Some(status) = child.try_wait().ok()? {
            return Some(status);
        }
        sleep(Duration::from_millis(5));
    }
    None
}

/// What comes out of a pipe, read while the job runs so that it never blocks.
fn all_of(pipe: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// What a job has said that failed: our own sentence, else a signal, else the first line with words in it.
fn said(err: &str, out: &str) -> Option<String> {
    let ours = err.lines().find_map(|line| Some(line.split_once("allhands: ")?.1.trim().to_owned()));
    let all = || err.lines().chain(out.lines());
    let found =
        |is: fn(&&str) -> bool| all().find(is).map(|line| line.trim().trim_start_matches("= ").trim().to_owned());
    let signal = || found(|line| line.to_ascii_lowercase().contains("signal"));
    ours.or_else(signal).or_else(|| found(|line| line.chars().any(char::is_alphabetic)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_sentence_comes_before_the_launchers() {
        let err = "-----\nmpirun has found a fault.\n-----\nallhands: there is no variable ALLHANDS_REPROT\n";
        assert_eq!(said(err, "").as_deref(), Some("there is no variable ALLHANDS_REPROT"));
        assert_eq!(said("-----\n  one fault. \n", "").as_deref(), Some("one fault."));
        let hydra = "= BAD TERMINATION\n=   KILLED BY SIGNAL: 25 (File size limit exceeded)\n";
        assert_eq!(said("", hydra).as_deref(), Some("KILLED BY SIGNAL: 25 (File size limit exceeded)"));
        assert_eq!((said("", "said here\n").as_deref(), said("---\n", "")), (Some("said here"), None));
    }
}
