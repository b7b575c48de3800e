//! `cargo xtask cluster`: builds the program that has the emulated cluster, and becomes it.

use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::{Result, build};

pub(crate) fn run(words: &[&str]) -> Result<()> {
    let program = build::program(&["--release", "--package", "allhands-cluster"])?;
    Err(format!("{} cannot be started: {}", program.display(), Command::new(&program).args(words).exec()))
}
