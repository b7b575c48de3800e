//! Tuning files and machine files on disk: reading, writing, merging, and what they hold.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use allhands::{Comm, Tuning};
use allhands_schedule::Collective;

use crate::failure::{Failure, Result};
use crate::screen;

/// The machine file that belongs to a tuning file: `here.machine.toml` beside `here.toml`.
pub(super) fn machine_file(tuning: &Path) -> PathBuf {
    tuning.with_extension("machine.toml")
}

/// What the system calls this host.
pub(super) fn host() -> Option<String> {
    std::fs::read_to_string("/proc/sys/kernel/hostname").ok().map(|text| text.trim().to_string())
}

/// Where and when, as far as the system tells.
pub(super) fn about(comm: &Comm) -> BTreeMap<String, String> {
    let file = |path: &str| std::fs::read_to_string(path).map(|text| text.trim().to_string());
    let mut about = BTreeMap::new();
    about.insert("topology".into(), comm.topology().to_string());
    about.insert("command".into(), std::env::args().collect::<Vec<_>>().join(" "));
    if let Some(host) = host() {
        about.insert("host".into(), host);
    }
    if let Ok(load) = file("/proc/loadavg") {
        about.insert("load".into(), load);
    }
    if let Ok(since) = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH) {
        about.insert("seconds_since_1970".into(), since.as_secs().to_string());
    }
    about
}

pub(super) fn read(file: &Path) -> Result<Tuning> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| Failure::Usage(format!("{} cannot be read: {error}; name a tuning file", file.display())))?;
    text.parse().map_err(|error| Failure::Usage(format!("{}: {error}", file.display())))
}

/// Through a file beside it, so that whoever reads it finds a whole one.
pub(super) fn write(file: &Path, text: &str) -> Result<()> {
    let beside = file.with_extension("part");
    std::fs::write(&beside, text).and_then(|()| std::fs::rename(&beside, file)).map_err(|error| {
        Failure::Usage(format!("{} cannot be written: {error}; name another --output", file.display()))
    })
}

pub(super) fn check(file: &Path) -> Result<()> {
    let tuning = read(file)?;
    summary(file, &tuning, 0)
}

/// What a file holds: for every collective, how often each algorithm is the fastest.
pub(super) fn summary(file: &Path, tuning: &Tuning, left: usize) -> Result<()> {
    let mut out = screen::stdout();
    writeln!(out, "{}: {} cells for {}", file.display(), tuning.cells.len(), tuning.transport)?;
    let mut table = screen::table(&["collective", "cells", "fastest, and in how many cells"]);
    for collective in Collective::ALL {
        let cells = tuning.cells.iter().filter(|cell| cell.collective == collective.name());
        let mut wins = BTreeMap::<&str, usize>::new();
        cells.clone().filter_map(|cell| cell.times.first()).for_each(|time| {
            *wins.entry(time.algorithm.as_str()).or_default() += 1;
        });
        let mut wins: Vec<(&str, usize)> = wins.into_iter().collect();
        wins.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        if !wins.is_empty() {
            let list: Vec<String> = wins.iter().map(|(name, count)| format!("{name} {count}")).collect();
            table.add_row([collective.name().into(), cells.count().to_string(), list.join(", ")]);
        }
    }
    writeln!(out, "{}", screen::shown(table))?;
    let machine = machine_file(file);
    if machine.exists() {
        writeln!(out, "{}: what messages cost there, for `allhands simulate --machine`", machine.display())?;
    }
    if left > 0 {
        writeln!(out, "the budget is spent; {left} cells are left: start it again with the same file to go on")?;
    }
    Ok(())
}

/// Merges tuning files of one transport into another.
pub(super) fn merge(files: &[PathBuf], output: &Path) -> Result<()> {
    let mut merged: Option<Tuning> = None;
    for file in files {
        let next = read(file)?;
        match &mut merged {
            None => merged = Some(next),
            Some(known) => known
                .merge(next)
                .map_err(|error| Failure::Usage(format!("{} cannot be merged: {error}", file.display())))?,
        }
    }
    let merged = merged.unwrap_or_default();
    write(output, &merged.to_string())?;
    summary(output, &merged, 0)
}

/// What rank 0 has to say, on every rank.
pub(super) fn agreed(comm: &Comm, text: Option<String>) -> allhands::Result<String> {
    let mut bytes = text.unwrap_or_default().into_bytes();
    let mut length = [bytes.len() as u64];
    comm.bcast(&mut length, 0)?;
    bytes.resize(length[0] as usize, 0);
    comm.bcast(&mut bytes, 0)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
