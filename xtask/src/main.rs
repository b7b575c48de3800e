//! What developers run: `cargo xtask test` checks everything that CI checks.
#![forbid(unsafe_code)]

use std::process::{Command, ExitCode};

const HELP: &str = "usage: cargo xtask test

  test   format, lints, every test, the documentation's examples, loom's models of what threads share, and a sweep of
         the command itself";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["test"] => test(),
        _ => {
            eprintln!("{HELP}");
            ExitCode::from(2)
        }
    }
}

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
    plain(&["test", "--workspace", "--lib", "--bins", "--tests"]),
    plain(&["test", "--workspace", "--doc"]),
    plain(&["doc", "--workspace", "--no-deps", "--lib"]),
    // loom replaces the atomics of the thread ranks: a build of its own, in a folder of its own.
    Step {
        arguments: &["test", "--package", "allhands", "--lib", "--release", "--target-dir", "target/loom", "models"],
        rustflags: Some("--cfg loom"),
    },
    plain(&["run", "--package", "allhands-cli", "--", "verify", "--ranks", "1..24"]),
];

/// Stops at the first step that fails, and says which.
fn test() -> ExitCode {
    for Step { arguments, rustflags } in STEPS {
        let line = arguments.join(" ");
        eprintln!("xtask: cargo {line}");
        let mut command = Command::new(env!("CARGO"));
        command.args(arguments).env("RUSTDOCFLAGS", "-D warnings");
        if let Some(flags) = rustflags {
            command.env("RUSTFLAGS", flags);
        }
        match command.status() {
            Ok(status) if status.success() => {}
            Ok(_) => {
                eprintln!("xtask: failed: cargo {line}");
                return ExitCode::FAILURE;
            }
            Err(error) => {
                eprintln!("xtask: cargo cannot be started: {error}");
                return ExitCode::FAILURE;
            }
        }
    }
    eprintln!("xtask: all passed");
    ExitCode::SUCCESS
}
