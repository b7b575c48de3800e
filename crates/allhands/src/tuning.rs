//! Tuning files: what was measured where, and which algorithm that makes the best.
//!
//! A file holds cells: a collective on a shape (nodes x ranks a node) at a size, with the times of the algorithms that were
//! measured there, best first. What it says about other places follows from the cells [`around`] them.

mod around;
mod logs;

use std::collections::BTreeMap;
use std::fmt;

use allhands_schedule::{Collective, Topology};
use serde::{Deserialize, Serialize};
use thiserror::Error;

pub(crate) use self::around::Near;
pub(crate) use self::logs::{exp, ln};
use crate::server::Server;

/// The version of the format.
const SCHEMA: u32 = 1;

/// A tuning file.
///
/// ```
/// use allhands::Tuning;
/// let tuning: Tuning = r#"
///     schema = 1
///     transport = "threads"
///     cells = 1
///     [[cell]]
///     collective = "allreduce"
///     nodes = 2
///     ranks_per_node = 4
///     bytes = 1024
///     times = [{ algorithm = "nap", median_us = 3.0, p10_us = 2.9, p90_us = 3.3, samples = 40 }]
/// "#.parse()?;
/// assert_eq!(tuning.cells[0].times[0].algorithm, "nap");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tuning {
    schema: u32,
    /// What carried the messages: `threads`, or the version of an MPI library.
    pub transport: String,
    /// How many cells follow: a file that was cut short has fewer.
    #[serde(rename = "cells")]
    count: usize,
    /// Where and when it was measured, in words.
    #[serde(default)]
    pub about: BTreeMap<String, String>,
    /// What was measured.
    #[serde(default, rename = "cell")]
    pub cells: Vec<Cell>,
}

/// The algorithms of one collective on one shape at one size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// The collective's name.
    pub collective: String,
    /// Nodes.
    pub nodes: usize,
    /// Ranks on the fullest of them.
    pub ranks_per_node: usize,
    /// Bytes of a block, or of the vector.
    pub bytes: usize,
    /// Times of the algorithms, best first.
    pub times: Vec<Time>,
}

/// How long an algorithm took.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Time {
    /// Its name with parameters; `mpi` is the MPI library's own.
    pub algorithm: String,
    /// The median.
    pub median_us: f64,
    /// One in ten was faster.
    pub p10_us: f64,
    /// One in ten was slower.
    pub p90_us: f64,
    /// How often it was measured.
    pub samples: usize,
}

/// What is wrong with a tuning file.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum TuningError {
    /// It is no tuning file, or a damaged one.
    #[error("this is not a tuning file: {reason}; make one with `allhands tune`")]
    Unreadable {
        /// What the parser said, in one line.
        reason: String,
    },
    /// It is of another version.
    #[error(
        "this tuning file has schema {found}, but this version reads schema {SCHEMA}; make it anew with `allhands tune`"
    )]
    Schema {
        /// The file's.
        found: u32,
    },
    /// It was cut short, or edited.
    #[error(
        "this tuning file says that it has {said} cells, but {found} are there; go on with `allhands tune`, or correct the number"
    )]
    Count {
        /// What it says.
        said: usize,
        /// What is there.
        found: usize,
    },
    /// Something in it makes no sense.
    #[error("cell {number} of this tuning file ({what}): {fact}; make it anew with `allhands tune`")]
    Cell {
        /// Counted from 1.
        number: usize,
        /// Which it is.
        what: String,
        /// What is wrong.
        fact: String,
    },
    /// Files of different transports.
    #[error("tuning files of different transports cannot be merged: {one} and {other}; keep one file for each")]
    Transports {
        /// One.
        one: String,
        /// The other.
        other: String,
    },
}

impl std::str::FromStr for Tuning {
    type Err = TuningError;

    fn from_str(text: &str) -> Result<Tuning, TuningError> {
        // The version first: a newer file may have keys that this version does not know.
        #[derive(Deserialize)]
        struct Head {
            schema: u32,
        }
        let unreadable = |error: toml::de::Error| {
            let line = error.span().map(|span| text[..span.start.min(text.len())].lines().count().max(1));
            let place = line.map_or(String::new(), |line| format!("line {line}: "));
            TuningError::Unreadable { reason: format!("{place}{}", error.message().lines().next().unwrap_or_default()) }
        };
        let head: Head = toml::from_str(text).map_err(unreadable)?;
        if head.schema != SCHEMA {
            return Err(TuningError::Schema { found: head.schema });
        }
        let tuning: Tuning = toml::from_str(text).map_err(unreadable)?;
        if tuning.count != tuning.cells.len() {
            return Err(TuningError::Count { said: tuning.count, found: tuning.cells.len() });
        }
        tuning.check()?;
        Ok(tuning)
    }
}

impl fmt::Display for Tuning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "# Written by `allhands tune`: which algorithm was the fastest, where and by how much.")?;
        let counted = Tuning { count: self.cells.len(), ..self.clone() };
        f.write_str(&toml::to_string(&counted).map_err(|_| fmt::Error)?)
    }
}

impl Tuning {
    /// An empty file for a transport.
    pub fn new(transport: &str) -> Tuning {
        Tuning { schema: SCHEMA, transport: transport.into(), ..Tuning::default() }
    }

    fn check(&self) -> Result<(), TuningError> {
        for (index, cell) in self.cells.iter().enumerate() {
            let what = format!("{} on {}x{} at {} bytes", cell.collective, cell.nodes, cell.ranks_per_node, cell.bytes);
            let wrong = |fact: String| Err(TuningError::Cell { number: index + 1, what: what.clone(), fact });
            let Ok(collective) = cell.collective.parse::<Collective>() else {
                return wrong(format!("there is no collective {}", cell.collective));
            };
            if cell.nodes == 0 || cell.ranks_per_node == 0 {
                return wrong("a shape has at least one node of one rank".into());
            }
            if cell.times.is_empty() {
                return wrong("nothing was measured".into());
            }
            for time in &cell.times {
                if !(time.median_us.is_finite() && time.median_us > 0.0) {
                    return wrong(format!("{} took {} us", time.algorithm, time.median_us));
                }
                match Server::parse(collective, &time.algorithm) {
                    Ok(Server::Written(file)) => return wrong(format!("the file {file} is no algorithm")),
                    Ok(_) => {}
                    Err(error) => return wrong(error.to_string()),
                }
            }
        }
        Ok(())
    }

    /// Adds what another file knows. Where both know a cell, the one measured more often counts, the other file's if they are equal; times
    /// of algorithms that only one of them knows are scaled by what the common ones took. Facts that differ stand side by side.
    ///
    /// ```
    /// use allhands::Tuning;
    /// let mut threads = Tuning::new("threads");
    /// assert!(threads.merge(Tuning::new("threads")).is_ok());
    /// let refused = threads.merge(Tuning::new("Open MPI v5.0.11")).unwrap_err();
    /// assert!(refused.to_string().contains("of different transports"));
    /// ```
    pub fn merge(&mut self, other: Tuning) -> Result<(), TuningError> {
        if self.transport != other.transport {
            return Err(TuningError::Transports { one: self.transport.clone(), other: other.transport });
        }
        let samples = |times: &[Time]| times.iter().map(|time| time.samples).max().unwrap_or(0);
        for cell in other.cells {
            match self.cells.iter_mut().find(|known| known.place() == cell.place()) {
                Some(known) => {
                    let more = samples(&known.times) > samples(&cell.times);
                    known.pool(cell.times, more);
                }
                None => self.cells.push(cell),
            }
        }
        for (key, value) in other.about {
            match self.about.get_mut(&key) {
                Some(known) if !known.split("; ").any(|one| one == value) => *known += &format!("; {value}"),
                Some(_) => {}
                None => _ = self.about.insert(key, value),
            }
        }
        Ok(())
    }
}

impl Tuning {
    /// Takes in what was learned since: it counts, however often the same was measured before.
    pub(crate) fn learn(&mut self, cells: Vec<Cell>) {
        for cell in cells {
            match self.cells.iter_mut().find(|known| known.place() == cell.place()) {
                Some(known) => known.pool(cell.times, false),
                None => self.cells.push(cell),
            }
        }
    }

    /// What was measured at just this place.
    pub(crate) fn cell(&self, collective: Collective, topology: &Topology, bytes: usize) -> Option<&Cell> {
        let place = (collective.name(), topology.regions(1), topology.region_sizes(1).1, bytes);
        self.cells.iter().find(|cell| cell.place() == place)
    }
}

impl Cell {
    /// Takes in times that were measured elsewhere; `ours`: those that are known already stay as they are. Machines differ by a factor from day to
    /// day: before they are compared, the others are scaled by what the algorithms that both know took here and there.
    fn pool(&mut self, times: Vec<Time>, ours: bool) {
        let ratio = |time: &Time| {
            let known = self.times.iter().find(|known| known.algorithm == time.algorithm)?;
            Some(logs::ln(known.median_us / time.median_us))
        };
        let common: Vec<f64> = times.iter().filter_map(ratio).collect();
        let scale = logs::exp(common.iter().sum::<f64>() / common.len().max(1) as f64);
        let (mut kept, scaled, scale) = match ours {
            true => (std::mem::take(&mut self.times), times, scale),
            false => (times, std::mem::take(&mut self.times), 1.0 / scale),
        };
        for time in scaled {
            if !kept.iter().any(|known| known.algorithm == time.algorithm) {
                let [median_us, p10_us, p90_us] = [time.median_us, time.p10_us, time.p90_us].map(|us| us * scale);
                kept.push(Time { median_us, p10_us, p90_us, ..time });
            }
        }
        kept.sort_by(|one, other| one.median_us.total_cmp(&other.median_us));
        self.times = kept;
    }

    /// Who took how long, in microseconds. What is not known to this version is left out.
    pub(crate) fn known(&self) -> Vec<(Server, f64)> {
        let Ok(collective) = self.collective.parse() else { return vec![] };
        let known = |time: &Time| Some((Server::parse(collective, &time.algorithm).ok()?, time.median_us));
        self.times.iter().filter_map(known).collect()
    }

    fn place(&self) -> (&str, usize, usize, usize) {
        (&self.collective, self.nodes, self.ranks_per_node, self.bytes)
    }
}

#[cfg(test)]
mod tests;
