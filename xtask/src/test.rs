//! `cargo xtask test`: everything that has to pass.

use std::fmt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::conformance::{self, Args};
use crate::{Result, browser, build, capi, diagnostics, failures, fuzz, header, mpi, preload};

const STEPS: [&[&str]; 7] = [
    &["fmt", "--all", "--check"],
    &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"],
    // Some tests run examples as jobs.
    &["build", "--workspace", "--examples"],
    &["test", "--workspace", "--lib", "--bins", "--tests"],
    &["test", "--workspace", "--doc"],
    // The preload's library has the name of ours.
    &["doc", "--workspace", "--exclude", "allhands-preload", "--exclude", "allhands-capi", "--no-deps", "--lib"],
    // loom replaces the atomics of what threads share.
    &["test", "--package", "allhands", "--lib", "--features", "loom", "models"],
];

/// Stops at the first part that fails, and says which; in the end, how long each took.
pub(crate) fn test(args: &Args) -> Result<()> {
    let mut parts = Parts(Vec::new());
    parts.time("installing MPIs", mpi::install)?;
    parts.time("the header", header::check)?;
    for arguments in STEPS {
        parts.time(&format!("cargo {}", arguments[0]), || cargo(arguments))?;
    }
    parts.time("verify", || verify(&build::command()?))?;
    let program = conformance::build()?;
    let libraries = args.libraries()?;
    parts.time("conformance", || conformance::run(&program, &libraries, args))?;
    parts.time("failures", || failures::run(&program, &libraries))?;
    parts.time("preload", || preload::run(&libraries))?;
    parts.time("fuzz", || fuzz::run(&libraries))?;
    parts.time("capi", || capi::run(&libraries))?;
    parts.time("diagnostics", || diagnostics::run(&libraries))?;
    parts.time("browser", browser::run)?;
    let names: Vec<&str> = libraries.iter().map(|library| library.name).collect();
    eprintln!("xtask: all passed, with {}; {parts}", names.join(", "));
    Ok(())
}

/// What was done, and how long it took.
struct Parts(Vec<(String, Duration)>);

impl Parts {
    fn time<T>(&mut self, name: &str, part: impl FnOnce() -> Result<T>) -> Result<T> {
        let began = Instant::now();
        let outcome = part()?;
        self.0.push((name.into(), began.elapsed()));
        Ok(outcome)
    }
}

impl fmt::Display for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Duration = self.0.iter().map(|(_, time)| time).sum();
        let told = self.0.iter().filter(|(_, time)| time.as_secs() > 0);
        let told: Vec<String> = told.map(|(name, time)| format!("{name} {}", time.as_secs())).collect();
        write!(f, "seconds: {} in all; {}", all.as_secs(), told.join(", "))
    }
}

fn cargo(arguments: &[&str]) -> Result<()> {
    let line = arguments.join(" ");
    eprintln!("xtask: cargo {line}");
    let mut command = Command::new(env!("CARGO"));
    command.args(arguments).env("RUSTDOCFLAGS", "-D warnings");
    // Some tests compile against these, and run on them.
    command.env("ALLHANDS_TEST_MPI", mpi::root().join(".mpi"));
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(format!("failed: cargo {line}")),
        Err(error) => Err(format!("cargo cannot be started: {error}")),
    }
}

/// A sweep of the command itself.
fn verify(command: &Path) -> Result<()> {
    let arguments = ["verify", "--ranks", "1..24"];
    let line = arguments.join(" ");
    eprintln!("xtask: allhands {line}");
    match Command::new(command).args(arguments).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(format!("failed: allhands {line}")),
        Err(error) => Err(format!("{} cannot be started: {error}", command.display())),
    }
}
