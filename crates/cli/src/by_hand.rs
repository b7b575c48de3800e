//! Schedules that a person wrote: read from a file or the standard input, and proved right before anything is done with them.

use std::io::Read;
use std::path::Path;

use allhands_schedule::{Ensemble, Fault, Report, Space, line_of, verify};

use crate::args::read;
use crate::failure::{Failure, Result};

/// More positions than this are a slip of the finger: a gigabyte of symbols.
const MOST_POSITIONS: usize = 1 << 26;

/// Reads a schedule and verifies it; `-` is the standard input.
pub(crate) fn verified(file: &Path) -> Result<(Ensemble, Report)> {
    let (name, text) = text(file)?;
    let refused = |fact: String| Failure::Usage(format!("{name}: {fact}"));
    let ensemble: Ensemble = text.parse().map_err(|error| Failure::Usage(format!("{name}, {error}")))?;
    let Ensemble { problem, blocks, .. } = &ensemble;
    let extents = (0..problem.ranks()).map(|rank| problem.extent(Space::Output, rank, *blocks));
    if extents.fold(0, usize::saturating_add) > MOST_POSITIONS {
        let fact = format!("{} ranks with {blocks} blocks are more than can be verified", problem.ranks());
        return Err(refused(format!("{fact}; use fewer blocks")));
    }
    let rounds = ensemble.schedules.iter().flat_map(|schedule| &schedule.rounds);
    let touched = rounds.flat_map(|round| round.spans()).map(|(span, _)| span.count).fold(0, usize::saturating_add);
    if touched > 2 * MOST_POSITIONS {
        let fact = format!("{touched} positions are touched, more than can be verified");
        return Err(refused(format!("{fact}; use fewer or shorter spans")));
    }
    let report = verify(&ensemble).map_err(|fault| wrong(&name, &text, &fault))?;
    Ok((ensemble, report))
}

/// The text, and what it is called.
fn text(file: &Path) -> Result<(String, String)> {
    if file != Path::new("-") {
        return Ok((file.display().to_string(), read(file, "schedule file")?));
    }
    let mut text = String::new();
    let name = "the standard input".to_string();
    match std::io::stdin().read_to_string(&mut text) {
        Ok(_) => Ok((name, text)),
        Err(error) => Err(Failure::Usage(format!("{name} cannot be read: {error}; pipe a schedule into it"))),
    }
}

/// The line at which the blame begins: that of the round, or of the rank.
fn wrong(name: &str, text: &str, fault: &Fault) -> Failure {
    let line = fault.place().and_then(|(rank, round)| line_of(text, rank, round));
    let line = line.map_or(String::new(), |line| format!(", line {line}"));
    Failure::Wrong(format!("{name}{line} is wrong: {fault}"))
}
