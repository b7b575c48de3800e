//! `cargo xtask browser`: the pages that we make, in a real browser.

mod chromium;
mod play;
mod reports;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use self::chromium::Chromium;
use crate::launch::launch;
use crate::{Result, build, debian, mpi};

/// What Chromium is called.
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

pub(crate) fn run() -> Result<()> {
    let Some(program) = chromium() else {
        eprintln!("xtask: skipped: no Chromium, so no page was looked at");
        return Ok(());
    };
    let begun = Instant::now();
    let exec = build::command()?;
    let folder = mpi::root().join("target/browser");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let built = begun.elapsed();
    let profile = folder.join(format!("profile-{}", std::process::id()));
    let mut chromium = Chromium::start(&program, profile)?;
    play::check(&mut chromium, &exec, &folder)?;
    reports::preload(&mut chromium, &exec, &folder)?;
    reports::reproduce(&mut chromium, &exec, &folder)?;
    eprintln!("xtask: pages in a browser in {:.0} s", (begun.elapsed() - built).as_secs_f64());
    Ok(())
}

/// The browser, installed first where we may.
fn chromium() -> Option<PathBuf> {
    installed().or_else(|| {
        if let Err(fault) = debian::install(&["chromium", "fonts-dejavu-core"]) {
            eprintln!("xtask: {fault}");
        }
        installed()
    })
}

fn installed() -> Option<PathBuf> {
    let folders: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH")?).collect();
    NAMES.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name))).find(|path| path.is_file())
}

/// Runs the command, and what it prints.
fn allhands(exec: &Path, words: &[String]) -> Result<String> {
    let mut command = Command::new(exec);
    command.args(words).env_remove("ALLHANDS_TUNING").env_remove("ALLHANDS_MACHINE");
    let ended = launch(command, Duration::from_secs(60))?;
    match ended.status {
        Some(status) if status.success() => Ok(ended.out),
        _ => Err(ended.fault("the command fails")),
    }
}
