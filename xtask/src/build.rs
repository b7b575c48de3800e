//! Programs that are built once and then launched.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Mutex;

use crate::Result;

/// The command, and the libraries, with the features that all packages together have: as the workspace is built for its
/// tests, so that nothing is compiled twice.
pub(crate) fn command() -> Result<PathBuf> {
    program(&["--workspace", "--lib", "--bin", "allhands"])
}

/// What is installed: the command, and both libraries beside it.
pub(crate) const INSTALLED: [&str; 7] =
    ["--release", "--package", "allhands-cli", "--package", "allhands-preload", "--package", "allhands-capi"];

/// That, built for this machine.
pub(crate) fn installed() -> Result<PathBuf> {
    program(&INSTALLED)
}

/// `cargo build` with these arguments, which name one program; where cargo put it. Cargo is asked once: who asks again while it
/// compiles something else would wait for that.
pub(crate) fn program(arguments: &[&str]) -> Result<PathBuf> {
    static BUILT: Mutex<BTreeMap<String, PathBuf>> = Mutex::new(BTreeMap::new());
    let line = arguments.join(" ");
    if let Some(place) = BUILT.lock().ok().and_then(|built| built.get(&line).cloned()) {
        return Ok(place);
    }
    let mut cargo = Command::new(env!("CARGO"));
    cargo.arg("build");
    let place = built(cargo, arguments)?;
    if let Ok(mut built) = BUILT.lock() {
        built.insert(line, place.clone());
    }
    Ok(place)
}

/// The same by another command than `cargo build`.
pub(crate) fn built(mut cargo: Command, arguments: &[&str]) -> Result<PathBuf> {
    cargo.args(arguments).args(["--message-format", "json-render-diagnostics"]).stderr(Stdio::inherit());
    let built = cargo.output().map_err(|error| format!("cargo cannot be started: {error}"))?;
    let said = String::from_utf8_lossy(&built.stdout).into_owned();
    let place = said.lines().rev().find_map(|line| {
        let (_, rest) = line.split_once(r#""executable":""#)?;
        Some(PathBuf::from(rest.split_once('"')?.0))
    });
    place.filter(|_| built.status.success()).ok_or_else(|| format!("failed: cargo build {}", arguments.join(" ")))
}

/// Runs a compiler of C, C++ or Fortran; what it says if it refuses.
pub(crate) fn compile(mut command: Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let ended = command.output().map_err(|error| format!("{name} cannot be started ({error}); install it"))?;
    match ended.status.success() {
        true => Ok(()),
        false => Err(format!("failed: {command:?}\n{}", String::from_utf8_lossy(&ended.stderr))),
    }
}
