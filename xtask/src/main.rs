//! What developers run: `cargo xtask test` checks everything that CI checks.
#![forbid(unsafe_code)]

use std::process::{Command, ExitCode};

const HELP: &str = "usage: cargo xtask test

  test   format, lints, every test, the documentation's examples, and a sweep of the command itself";

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

/// Stops at the first step that fails, and says which.
fn test() -> ExitCode {
    let steps: [&[&str]; 6] = [
        &["fmt", "--all", "--check"],
        &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"],
        &["test", "--workspace", "--all-targets"],
        &["test", "--workspace", "--doc"],
        &["doc", "--workspace", "--no-deps", "--lib"],
        &["run", "--package", "allhands-cli", "--", "verify", "--ranks", "1..24"],
    ];
    for step in steps {
        eprintln!("xtask: cargo {}", step.join(" "));
        let status = Command::new(env!("CARGO")).args(step).env("RUSTDOCFLAGS", "-D warnings").status();
        match status {
            Ok(status) if status.success() => {}
            Ok(_) => {
                eprintln!("xtask: failed: cargo {}", step.join(" "));
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
