//! `cargo xtask test`: everything that has to pass.

use std::path::Path;
use std::process::Command;

use crate::conformance::{self, Wish};
use crate::{Result, browser, build, capi, failures, fuzz, header, mpi, preload, tells};

/// One command: its arguments, and the flags that rustc gets besides.
struct Step {
    arguments: &'static [&'static str],
    rustflags: Option<&'static str>,
}

const fn plain(arguments: &'static [&'static str]) -> Step {
    Step { arguments, rustflags: None }
}

const STEPS: [Step; 7] = [
    plain(&["fmt", "--all", "--check"]),
    plain(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]),
    // Some tests run examples as jobs.
    plain(&["build", "--workspace", "--examples"]),
    plain(&["test", "--workspace", "--lib", "--bins", "--tests"]),
    plain(&["test", "--workspace", "--doc"]),
    // The preload's library has the name of ours.
    plain(&["doc", "--workspace", "--exclude", "allhands-preload", "--exclude", "allhands-capi", "--no-deps", "--lib"]),
    // loom replaces the atomics of the thread ranks: a build of its own, in a folder of its own.
    Step {
        arguments: &["test", "--package", "allhands", "--lib", "--release", "--target-dir", "target/loom", "models"],
        rustflags: Some("--cfg loom"),
    },
];

/// Stops at the first step that fails, and says which.
pub(crate) fn test(wish: &Wish) -> Result<()> {
    mpi::install()?;
    header::check()?;
    for Step { arguments, rustflags } in STEPS {
        let line = arguments.join(" ");
        eprintln!("xtask: cargo {line}");
        let mut command = Command::new(env!("CARGO"));
        command.args(arguments).env("RUSTDOCFLAGS", "-D warnings");
        // Some tests compile against these, and run on them.
        command.env("ALLHANDS_TEST_MPI", mpi::root().join(".mpi"));
        if let Some(flags) = rustflags {
            command.env("RUSTFLAGS", flags);
        }
        match command.status() {
            Ok(status) if status.success() => {}
            Ok(_) => return Err(format!("failed: cargo {line}")),
            Err(error) => return Err(format!("cargo cannot be started: {error}")),
        }
    }
    verify(&build::command()?)?;
    let program = conformance::build()?;
    let libraries = wish.libraries()?;
    conformance::run(&program, &libraries, wish)?;
    failures::run(&program, &libraries)?;
    preload::run(&libraries)?;
    fuzz::run(&libraries)?;
    capi::run(&libraries)?;
    tells::run(&libraries)?;
    browser::run()?;
    eprintln!("xtask: all passed");
    Ok(())
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
