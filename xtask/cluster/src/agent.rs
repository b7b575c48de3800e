//! The stand-in for ssh: launchers call it with a host and a command, which it runs on that node.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use crate::{Result, node, state};

/// A launcher wants the name of one file.
pub(crate) fn script() -> PathBuf {
    state::folder().join("agent")
}

pub(crate) fn write_script() -> Result<()> {
    let program = std::env::current_exe().map_err(|error| format!("this program cannot be found: {error}"))?;
    let text = format!("#!/bin/sh\nexec '{}' agent \"$@\"\n", program.display());
    let place = script();
    let written = fs::write(&place, text).and_then(|()| fs::set_permissions(&place, PermissionsExt::from_mode(0o755)));
    written.map_err(|error| format!("{} cannot be written: {error}", place.display()))
}

/// Becomes the command that the words name: `[-OPTION...] HOST COMMAND...`, as a shell there would read it.
pub(crate) fn enter(words: &[OsString]) -> Result<()> {
    let start = words.iter().position(|word| !word.as_encoded_bytes().starts_with(b"-"));
    let (host, line) = start.and_then(|start| words[start..].split_first()).ok_or("no host was named")?;
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(line.join(OsStr::new(" ")));
    node::enter(&host.to_string_lossy(), &mut shell)?;
    Err(format!("no shell can be started on {}: {}", host.to_string_lossy(), shell.exec()))
}
