//! Tuning files and machine files on disk: reading, writing, merging, and what they hold.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use allhands::{Cell, Comm, Server, Tuning};
use allhands_schedule::Collective;

use crate::commands::bench::measure::NOTICED;
use crate::commands::bench::verdict;
use crate::failure::{Failure, Result};
use crate::screen;

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

/// That a file can be written, before anything is measured for it.
pub(super) fn writable(file: &Path) -> Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.is_dir() {
        let (file, folder) = (file.display(), folder.display());
        return Err(Failure::Usage(format!(
            "{file} cannot be written: there is no folder {folder}; make it, or name another --output"
        )));
    }
    let beside = file.with_extension("part");
    let tried = std::fs::write(&beside, "").and_then(|()| std::fs::remove_file(&beside));
    tried.map_err(|error| unwritten(file, &error))
}

fn unwritten(file: &Path, error: &std::io::Error) -> Failure {
    Failure::Usage(format!("{} cannot be written: {error}; name another --output", file.display()))
}

/// What rank 0 has done, on every rank: all end if it has failed, which rank 0 says. Only rank 0 does it.
pub(super) fn told(comm: &Comm, done: impl FnOnce() -> Result<()>) -> allhands::Result<Result<()>> {
    let done = if comm.rank() == 0 { done() } else { Ok(()) };
    let mut failed = [u8::from(done.is_err())];
    comm.bcast(&mut failed, 0)?;
    Ok(if comm.rank() > 0 && failed[0] > 0 { Err(Failure::Elsewhere) } else { done })
}

/// Through a file beside it, so that whoever reads it finds a whole one.
pub(super) fn write(file: &Path, text: &str) -> Result<()> {
    let beside = file.with_extension("part");
    std::fs::write(&beside, text).and_then(|()| std::fs::rename(&beside, file)).map_err(|error| unwritten(file, &error))
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
        let cells: Vec<&Cell> =
            tuning.cells.iter().filter(|cell| cell.collective == collective.name() && !cell.times.is_empty()).collect();
        let ties = cells.iter().filter(|cell| ties(cell)).count();
        let mut wins = BTreeMap::<&str, usize>::new();
        for cell in cells.iter().filter(|cell| !self::ties(cell)) {
            *wins.entry(cell.times[0].algorithm.as_str()).or_default() += 1;
        }
        let mut wins: Vec<(&str, usize)> = wins.into_iter().collect();
        wins.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        wins.extend((ties > 0).then_some(("ties", ties)));
        if !cells.is_empty() {
            let list: Vec<String> = wins.iter().map(|(name, count)| format!("{name} {count}")).collect();
            table.add_row([collective.name().into(), cells.len().to_string(), list.join(", ")]);
        }
    }
    writeln!(out, "{}", screen::shown(table))?;
    let machine = allhands::machine_file(file);
    if machine.exists() {
        writeln!(out, "{}: what messages cost there, for `allhands simulate --machine`", machine.display())?;
    }
    if left > 0 {
        writeln!(out, "the budget is spent; {left} cells are left: start it again with the same file to go on")?;
    }
    if let Some(worth) = worth(&tuning.cells) {
        writeln!(out, "{}", screen::wrapped(&worth))?;
    }
    Ok(())
}

/// Whether the fastest is no winner: the next algorithm takes less longer than anybody would notice.
fn ties(cell: &Cell) -> bool {
    let kind = |name: &str| name.split(':').next().unwrap_or(name).to_string();
    let [first, rest @ ..] = &cell.times[..] else { return false };
    let next = rest.iter().find(|time| kind(&time.algorithm) != kind(&first.algorithm));
    next.is_some_and(|next| next.median_us < NOTICED * first.median_us)
}

/// What a program gains that follows the cells, beside the MPI's own, if that was measured. Where the MPI's own is the fastest it serves.
fn worth(cells: &[Cell]) -> Option<String> {
    let mpi = Server::Library.to_string();
    let of_mpi = |cell: &Cell| cell.times.iter().find(|time| time.algorithm == mpi).map(|time| time.median_us);
    let times: Vec<f64> = cells.iter().filter_map(|cell| Some(of_mpi(cell)? / cell.times.first()?.median_us)).collect();
    let own = cells.iter().filter(|cell| cell.times.first().is_some_and(|time| time.algorithm == mpi)).count();
    let serves =
        if own > 0 { format!(": in {own} of {} cells the MPI's own serves", times.len()) } else { String::new() };
    (!times.is_empty()).then(|| {
        format!("What it is worth: calls are on average {}{serves}.", verdict::worth(&times, "your MPI's own", &[]))
    })
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

#[cfg(test)]
mod tests {
    use super::*;
    use allhands::Time;

    fn cell(times: &[(&str, f64)]) -> Cell {
        let time = |&(algorithm, median_us): &(&str, f64)| Time {
            algorithm: algorithm.into(),
            median_us,
            p10_us: median_us,
            p90_us: median_us,
            samples: 9,
        };
        let times = times.iter().map(time).collect();
        Cell { collective: "bcast".into(), nodes: 2, ranks_per_node: 2, bytes: 8, times }
    }

    #[test]
    fn a_percent_makes_no_winner() {
        assert!(ties(&cell(&[("ring", 1.0), ("tree", 1.01)])));
        assert!(!ties(&cell(&[("ring", 1.0), ("tree", 1.1)])) && !ties(&cell(&[("ring", 1.0)])));
        // Another setting of the winner is no rival.
        assert!(!ties(&cell(&[("bruck:radix=4", 1.0), ("bruck", 1.001), ("ring", 1.5)])));
    }

    #[test]
    fn the_worth_is_beside_the_mpi() {
        assert_eq!(worth(&[cell(&[("ring", 1.0)])]), None);
        let cells = [cell(&[("ring", 1.0), ("mpi", 2.56)]), cell(&[("mpi", 1.0), ("ring", 3.0)])];
        assert_eq!(
            worth(&cells).unwrap(),
            "What it is worth: calls are on average 1.60 times as fast as your MPI's own, and slower nowhere: in 1 of 2 cells the \
             MPI's own serves."
        );
    }
}
