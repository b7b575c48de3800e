//! Tuning files: what was measured where, and which algorithm that makes the best.
//!
//! A file holds cells: a collective on a shape (nodes x ranks a node) at a size, with the times of the algorithms that were
//! measured there, best first. Between cells the time of an algorithm is interpolated, straight lines through the logarithms
//! of sizes, nodes and ranks a node, and corrected where it sends more or less than such a line says; the algorithm with the least
//! is chosen. Far outside of what was measured a file is silent.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use allhands_schedule::{Choice, Collective, Problem, Topology};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The version of the format.
const SCHEMA: u32 = 1;

/// A tuning file.
///
/// ```
/// use allhands::Tuning;
/// use allhands_schedule::{Collective, Topology};
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
/// let advice = tuning.advice(Collective::Allreduce, &Topology::regular(2, 4)?, 1500);
/// assert_eq!(advice[0].algorithm, "nap");
/// assert!(tuning.advice(Collective::Allreduce, &Topology::regular(2, 4)?, 1 << 20).is_empty(), "silent so far away");
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

/// What a file says about a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Advice {
    /// An algorithm.
    pub algorithm: String,
    /// Its time there, measured or interpolated, in microseconds.
    pub microseconds: f64,
    /// From how many cells.
    pub cells: usize,
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

/// Sizes up to this factor outside of what was measured are still served by the nearest.
const REACH: f64 = 4.0;

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
                if time.algorithm != crate::native::NAME
                    && let Err(error) = Choice::parse(collective, &time.algorithm)
                {
                    return wrong(error.to_string());
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
        for cell in other.cells {
            match self.cells.iter_mut().find(|known| known.place() == cell.place()) {
                Some(known) => known.pool(cell.times),
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

    /// What is advised for a call, fastest first; nothing where the file is silent.
    pub fn advice(&self, collective: Collective, topology: &Topology, bytes: usize) -> Vec<Advice> {
        let shape = shape(topology);
        let distance = |cell: &Cell| {
            let step = |one: usize, other: usize| (one as f64 / other as f64).log2().abs();
            step(cell.nodes, shape.0) + step(cell.ranks_per_node, shape.1)
        };
        let mine = || self.cells.iter().filter(|cell| cell.collective == collective.name());
        // The shapes nearest to this one: itself, or one on each side.
        let mut shapes: Vec<(usize, usize, f64)> = Vec::new();
        for cell in mine() {
            let (nodes, ranks, away) = (cell.nodes, cell.ranks_per_node, distance(cell));
            // One node and many nodes are different machines.
            if (nodes == 1) == (shape.0 == 1) && away <= REACH.log2() && !shapes.contains(&(nodes, ranks, away)) {
                shapes.push((nodes, ranks, away));
            }
        }
        shapes.sort_by(|one, other| one.2.total_cmp(&other.2));
        shapes.truncate(if shapes.first().is_some_and(|nearest| nearest.2 == 0.0) { 1 } else { 2 });
        // Each algorithm's time on each shape at this size; the nearer the shape is, the more it counts.
        let (mut between, mut lists) = (Vec::new(), Vec::new());
        for &(nodes, ranks, away) in &shapes {
            let cells = mine().filter(|cell| (cell.nodes, cell.ranks_per_node) == (nodes, ranks));
            let mut times = at_size(cells.collect(), bytes);
            // Numbers that were right for a shape say nothing about another.
            times.retain(|known| away == 0.0 || !numbered(known.0));
            if !times.is_empty() {
                let weight = 1.0 / (away + 1e-9);
                between.push(Weighted { shape: (nodes, ranks), weight });
                lists.push((weight, times));
            }
        }
        let known = blend(&lists);
        let unlike = known.iter().map(|known| unlike(collective, known.0, topology, bytes, &between));
        let unlike: Vec<Option<f64>> = unlike.collect();
        // What nobody can look into, the MPI's own, is taken for the average of what can be.
        let seen: Vec<f64> = unlike.iter().flatten().map(|factor| factor.ln()).collect();
        let average = (seen.iter().sum::<f64>() / seen.len().max(1) as f64).exp();
        let corrected = |((algorithm, time, cells), unlike): (Known<'_>, Option<f64>)| Advice {
            algorithm: algorithm.into(),
            microseconds: time * unlike.unwrap_or(average),
            cells,
        };
        let mut advice: Vec<Advice> = known.into_iter().zip(unlike).map(corrected).collect();
        advice.sort_by(|one, other| one.microseconds.total_cmp(&other.microseconds));
        advice
    }
}

/// What is known of an algorithm at some place: its name, its time, and from how many cells.
type Known<'a> = (&'a str, f64, usize);

/// Whether an algorithm's settings have numbers: one of many settings, each of which was measured here and there.
fn numbered(algorithm: &str) -> bool {
    algorithm.split_once(':').is_some_and(|(_, settings)| settings.contains(|letter: char| letter.is_ascii_digit()))
}

/// Times between some places, which count as they are weighted: the mean of logarithms, for every algorithm that is known at any; with
/// numbers in its settings, at all.
fn blend<'a>(lists: &[(f64, Vec<Known<'a>>)]) -> Vec<Known<'a>> {
    let everywhere = |name: &str| lists.iter().all(|(_, list)| list.iter().any(|known| known.0 == name));
    let algorithms = lists.iter().flat_map(|(_, list)| list.iter().map(|known| known.0));
    let algorithms: BTreeSet<&str> = algorithms.filter(|name| !numbered(name) || everywhere(name)).collect();
    let weights: f64 = lists.iter().map(|(weight, _)| weight).sum();
    let blended = |algorithm: &'a str| {
        let (mut logs, mut cells) = (0.0, 0);
        for (weight, list) in lists {
            let listed = list.iter().find(|known| known.0 == algorithm);
            logs += weight * listed.map_or_else(|| guess(algorithm, list, lists), |known| known.1.ln());
            cells += listed.map_or(0, |known| known.2);
        }
        (algorithm, (logs / weights).exp(), cells)
    };
    algorithms.into_iter().map(blended).collect()
}

/// The logarithm of an algorithm's time at a place where it was not measured: from where it was, by what the algorithms did that were
/// measured at both places. It was not measured because it promised little: it took as long as half of those listed at least.
fn guess(algorithm: &str, list: &[Known<'_>], lists: &[(f64, Vec<Known<'_>>)]) -> f64 {
    let mut logs: Vec<f64> = list.iter().map(|known| known.1.ln()).collect();
    logs.sort_by(f64::total_cmp);
    let elsewhere = lists.iter().filter_map(|(_, other)| {
        let there = other.iter().find(|known| known.0 == algorithm)?.1.ln();
        let change = |here: &Known<'_>| Some(here.1.ln() - other.iter().find(|known| known.0 == here.0)?.1.ln());
        let changes: Vec<f64> = list.iter().filter_map(change).collect();
        (!changes.is_empty()).then(|| there + changes.iter().sum::<f64>() / changes.len() as f64)
    });
    let elsewhere: Vec<f64> = elsewhere.collect();
    match elsewhere.is_empty() {
        true => logs.last().copied().unwrap_or(0.0),
        false => (elsewhere.iter().sum::<f64>() / elsewhere.len() as f64).max(logs[logs.len() / 2]),
    }
}

/// A shape that was measured, and how much it counts.
#[derive(Clone, Copy)]
struct Weighted {
    shape: (usize, usize),
    weight: f64,
}

/// So many bytes of a message cost about as much as the message itself: a round number between what machines have.
const BYTES_OF_A_STEP: f64 = 4096.0;

/// Times between shapes lie on a smooth line only if the algorithm does the same there: one that folds the ranks beyond a power of two
/// takes more steps with 6 ranks than with 4 or 8. So many times more, by the closed forms of what it sends, than between the shapes
/// that were measured; nothing where that cannot be told.
fn unlike(
    collective: Collective,
    algorithm: &str,
    topology: &Topology,
    bytes: usize,
    between: &[Weighted],
) -> Option<f64> {
    if between.iter().any(|known| known.shape == shape(topology)) {
        return Some(1.0);
    }
    let choice = Choice::parse(collective, algorithm).ok()?;
    let cost = |topology: Topology| {
        let prepared = choice.prepare(&Problem::new(collective, topology)).ok()?;
        let cut = matches!(collective.family(), Collective::Allreduce | Collective::Bcast | Collective::Reduce);
        let block = bytes as f64 / if cut { prepared.blocks().max(1) as f64 } else { 1.0 };
        let cost = prepared.cost();
        // One more for what is no message: copies, meetings. Messages at once are no single one: a rank sends one after the other.
        let messages = cost.steps.max(cost.messages) as f64;
        Some((1.0 + messages + cost.blocks as f64 * block / BYTES_OF_A_STEP).ln())
    };
    let (mut logs, mut weights) = (0.0, 0.0);
    for Weighted { shape: (nodes, ranks), weight } in between {
        logs += weight * cost(Topology::regular(*nodes, *ranks).ok()?)?;
        weights += weight;
    }
    Some((cost(topology.clone())? - logs / weights).exp())
}

/// Nodes, and ranks on the fullest of them.
pub(crate) fn shape(topology: &Topology) -> (usize, usize) {
    (topology.regions(1), topology.region_sizes(1).1)
}

/// The times of algorithms at a size, on one shape, from the cells below and above it; and from how many cells.
fn at_size(mut cells: Vec<&Cell>, bytes: usize) -> Vec<Known<'_>> {
    cells.sort_by_key(|cell| cell.bytes);
    let size = |bytes: usize| (bytes.max(1) as f64).ln();
    let below = cells.iter().rev().find(|cell| cell.bytes <= bytes);
    let above = cells.iter().find(|cell| cell.bytes >= bytes);
    let (Some(low), Some(high)) = (below.or(above), above.or(below)) else { return vec![] };
    let outside = |cell: &Cell| (size(bytes) - size(cell.bytes)).abs() > REACH.ln() + 1e-9;
    if low.bytes == high.bytes {
        let alone = below.is_none() || above.is_none();
        if alone && outside(low) {
            return vec![];
        }
        return low.known();
    }
    let part = (size(bytes) - size(low.bytes)) / (size(high.bytes) - size(low.bytes));
    blend(&[(1.0 - part, low.known()), (part, high.known())])
}

impl Cell {
    fn known(&self) -> Vec<Known<'_>> {
        self.times.iter().map(|time| (time.algorithm.as_str(), time.median_us, 1)).collect()
    }

    /// Takes in times that were measured elsewhere. Machines differ by a factor from day to day: before they are compared, those
    /// times are scaled by what the algorithms that both know took here and there.
    fn pool(&mut self, times: Vec<Time>) {
        let ratio = |time: &Time| {
            let known = self.times.iter().find(|known| known.algorithm == time.algorithm)?;
            Some((known.median_us / time.median_us).ln())
        };
        let common: Vec<f64> = times.iter().filter_map(ratio).collect();
        let samples = |times: &[Time]| times.iter().map(|time| time.samples).max().unwrap_or(0);
        let ours = samples(&self.times) > samples(&times);
        let scale = (common.iter().sum::<f64>() / common.len().max(1) as f64).exp();
        // The one that was measured more often stays as it is.
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

    fn place(&self) -> (&str, usize, usize, usize) {
        (&self.collective, self.nodes, self.ranks_per_node, self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(shape: (usize, usize), bytes: usize, times: &[(&str, f64)]) -> Cell {
        let time = |&(algorithm, median_us): &(&str, f64)| Time {
            algorithm: algorithm.into(),
            median_us,
            p10_us: median_us,
            p90_us: median_us,
            samples: 1,
        };
        Cell {
            collective: "allreduce".into(),
            nodes: shape.0,
            ranks_per_node: shape.1,
            bytes,
            times: times.iter().map(time).collect(),
        }
    }

    fn file(cells: &[Cell]) -> Tuning {
        Tuning { cells: cells.into(), ..Tuning::new("threads") }
    }

    fn best(tuning: &Tuning, nodes: usize, ranks: usize, bytes: usize) -> Option<(String, f64)> {
        let topology = Topology::regular(nodes, ranks).unwrap();
        let advice = tuning.advice(Collective::Allreduce, &topology, bytes);
        advice.first().map(|advice| (advice.algorithm.clone(), advice.microseconds))
    }

    #[test]
    fn a_file_survives_being_written_and_read() {
        let mut tuning = file(&[cell((2, 4), 8, &[("nap", 1.5), ("mpi", 2.0)]), cell((2, 4), 64, &[("ring", 3.0)])]);
        tuning.about.insert("date".into(), "2026-11-15".into());
        let read: Tuning = tuning.to_string().parse().unwrap();
        assert_eq!((read.cells, read.about, read.transport), (tuning.cells, tuning.about, tuning.transport));
    }

    #[test]
    fn what_was_measured_is_advised_and_between_sizes_lines_cross() {
        // nap grows by 4 over the range, tree by 16: they cross at 1 us * 4^x = 0.5 us * 16^x, a half of the way.
        let tuning = file(&[
            cell((2, 4), 16, &[("tree", 0.5), ("nap", 1.0)]),
            cell((2, 4), 256, &[("nap", 4.0), ("tree", 8.0)]),
        ]);
        assert_eq!(best(&tuning, 2, 4, 16), Some(("tree".into(), 0.5)));
        assert_eq!(best(&tuning, 2, 4, 256), Some(("nap".into(), 4.0)));
        assert_eq!(best(&tuning, 2, 4, 32).unwrap().0, "tree");
        assert_eq!(best(&tuning, 2, 4, 128).unwrap().0, "nap");
        assert!((best(&tuning, 2, 4, 64).unwrap().1 - 2.0).abs() < 1e-9);
    }

    #[test]
    fn an_algorithm_that_was_left_out_is_no_faster_than_half_of_the_others() {
        let tuning = file(&[cell((2, 4), 16, &[("tree", 1.0), ("nap", 9.0)]), cell((2, 4), 256, &[("nap", 4.0)])]);
        assert_eq!(best(&tuning, 2, 4, 17).unwrap().0, "tree");
        // Known at one end only: as the others changed, by a factor of 2, from 10 to 20, halfway at the square root of 200.
        let tuning = file(&[
            cell((2, 4), 16, &[("tree", 1.0), ("nap", 2.0), ("ring", 10.0)]),
            cell((2, 4), 64, &[("tree", 2.0), ("nap", 4.0)]),
        ]);
        let advice = tuning.advice(Collective::Allreduce, &Topology::regular(2, 4).unwrap(), 32);
        let ring = advice.iter().find(|advice| advice.algorithm == "ring").unwrap();
        assert!((ring.microseconds - 200.0f64.sqrt()).abs() < 1e-9 && ring.cells == 1, "{advice:?}");
        // One that nobody can be compared with is as slow as the slowest.
        let tuning = file(&[cell((2, 4), 16, &[("ring", 1.0)]), cell((2, 4), 64, &[("tree", 2.0), ("nap", 4.0)])]);
        let advice = tuning.advice(Collective::Allreduce, &Topology::regular(2, 4).unwrap(), 32);
        let ring = advice.iter().find(|advice| advice.algorithm == "ring").unwrap();
        assert!((ring.microseconds - 2.0).abs() < 1e-9, "{advice:?}");
    }

    #[test]
    fn shapes_in_between_are_interpolated_and_distant_ones_unknown() {
        let tuning = file(&[cell((2, 4), 8, &[("tree", 1.0)]), cell((8, 4), 8, &[("tree", 4.0)])]);
        assert!((best(&tuning, 4, 4, 8).unwrap().1 - 2.0).abs() < 0.1);
        assert_eq!(best(&tuning, 2, 4, 8), Some(("tree".into(), 1.0)));
        assert_eq!((best(&tuning, 64, 4, 8), best(&tuning, 1, 4, 8)), (None, None));
        assert_eq!((best(&tuning, 2, 4, 32).unwrap().0.as_str(), best(&tuning, 2, 4, 33)), ("tree", None));
    }

    #[test]
    fn numbers_in_settings_count_where_they_were_measured() {
        let at = |bytes, times: &[(&str, f64)]| cell((2, 4), bytes, times);
        let tuning = file(&[
            at(8, &[("nap", 3.0), ("ring", 4.0), ("cyclic-shift:ports=1,2", 1.0), ("cyclic-shift:ports=7", 2.0)]),
            at(128, &[("nap", 3.0), ("ring", 4.0), ("cyclic-shift:ports=7", 2.0)]),
            cell((2, 2), 8, &[("nap", 3.0), ("ring", 4.0), ("cyclic-shift:ports=7", 2.0)]),
        ]);
        assert_eq!(best(&tuning, 2, 4, 8).unwrap().0, "cyclic-shift:ports=1,2");
        assert_eq!(best(&tuning, 2, 4, 32).unwrap().0, "cyclic-shift:ports=7");
        assert!(["nap", "ring"].contains(&best(&tuning, 2, 3, 8).unwrap().0.as_str()));
    }

    #[test]
    fn an_algorithm_that_folds_is_not_taken_for_a_smooth_one() {
        // Recursive doubling takes 2 steps with 4 ranks, 3 with 8, and 4 with 6; a ring takes as many as the line says.
        let times = |doubling, ring| [("recursive-doubling", doubling), ("ring", ring)];
        let tuning = file(&[cell((2, 4), 8, &times(2.0, 2.4)), cell((2, 2), 8, &times(1.0, 1.2))]);
        let topology = Topology::regular(2, 3).unwrap();
        let advice = tuning.advice(Collective::Allreduce, &topology, 8);
        assert_eq!(advice[0].algorithm, "ring");
        let line = |at_8: f64, at_4: f64| {
            let part = (3.0f64 / 2.0).log2();
            (at_8.ln() * part + at_4.ln() * (1.0 - part)).exp()
        };
        // One more than the steps, and what the bytes add: 8 of them in each step.
        let byte = 8.0 / 4096.0;
        let unlike = (5.0 + 4.0 * byte) / line(4.0 + 3.0 * byte, 3.0 + 2.0 * byte);
        assert!((advice[1].microseconds / (line(2.0, 1.0) * unlike) - 1.0).abs() < 1e-6, "{advice:?}");
        assert_eq!(best(&tuning, 2, 4, 8).unwrap().0, "recursive-doubling");
        // What MPI does there nobody knows: as the others do.
        let known = |mpi, doubling| [("mpi", mpi), ("recursive-doubling", doubling)];
        let tuning = file(&[cell((2, 4), 8, &known(1.9, 2.0)), cell((2, 2), 8, &known(0.95, 1.0))]);
        let advice = tuning.advice(Collective::Allreduce, &topology, 8);
        assert_eq!(advice[0].algorithm, "mpi");
        assert!((advice[0].microseconds / (line(1.9, 0.95) * unlike) - 1.0).abs() < 1e-6, "{advice:?}");
    }

    #[test]
    fn what_only_one_shape_knows_is_no_faster_than_half_of_the_others_on_the_other() {
        let tuning = file(&[
            cell((2, 4), 8, &[("ring", 1.0), ("smp", 1.1), ("tree", 8.0)]),
            cell((2, 2), 8, &[("smp", 1.1), ("tree", 8.0)]),
        ]);
        assert_eq!(best(&tuning, 2, 3, 8).unwrap().0, "smp");
    }

    #[test]
    fn damaged_and_foreign_files_are_told_apart() {
        let said = |text: &str| text.parse::<Tuning>().unwrap_err().to_string();
        let good = file(&[cell((2, 4), 8, &[("nap", 1.5)])]).to_string();
        let half = &good[..good.len() / 2];
        assert!(said(half).starts_with("this is not a tuning file: line"), "{}", said(half));
        let two = file(&[cell((2, 4), 8, &[("nap", 1.5)]), cell((2, 4), 64, &[("ring", 3.0)])]).to_string();
        let one = &two[..two.rfind("[[cell]]").unwrap()];
        assert!(said(one).contains("says that it has 2 cells, but 1 are there"), "{}", said(one));
        assert!(said("hello").contains("make one with `allhands tune`"));
        assert!(said("").contains("schema"));
        assert!(said(&good.replace("schema = 1", "schema = 7")).contains("schema 7"));
        let nonsense = |from: &str, to: &str| {
            assert!(good.contains(from), "{good}");
            said(&good.replace(from, to))
        };
        assert!(nonsense("nap", "warp-drive").contains("cell 1 of this tuning file (allreduce on 2x4 at 8 bytes)"));
        assert!(nonsense("median_us = 1.5", "median_us = -1.0").contains("nap took -1 us"));
        assert!(nonsense("\"allreduce\"", "\"allsing\"").contains("there is no collective allsing"));
        assert!(nonsense("nodes = 2", "knots = 2").contains("knots"));
    }

    #[test]
    fn files_merge_and_the_later_one_wins_among_equals() {
        let mut one = file(&[cell((2, 4), 8, &[("nap", 1.0)]), cell((2, 4), 64, &[("nap", 2.0)])]);
        one.merge(file(&[cell((2, 4), 64, &[("nap", 1.5)]), cell((2, 4), 512, &[("ring", 3.0)])])).unwrap();
        assert_eq!(one.cells.len(), 3);
        assert_eq!(best(&one, 2, 4, 64), Some(("nap".into(), 1.5)));
        assert!(one.merge(Tuning::new("Open MPI")).unwrap_err().to_string().contains("threads and Open MPI"));
        let again: Tuning = one.to_string().parse().unwrap();
        assert_eq!(again.cells, one.cells);
    }

    #[test]
    fn more_samples_win_and_the_rest_is_scaled() {
        let mut sure = cell((2, 4), 64, &[("nap", 2.0), ("tree", 4.0)]);
        sure.times.iter_mut().for_each(|time| time.samples = 100);
        // A machine twice as slow that day; it alone knows ring and smp.
        let slow = cell((2, 4), 64, &[("ring", 3.0), ("nap", 4.0), ("tree", 8.0), ("smp", 10.0)]);
        for swapped in [false, true] {
            let (mut one, other) = (file(std::slice::from_ref(&sure)), file(std::slice::from_ref(&slow)));
            if swapped {
                let mut merged = other;
                merged.merge(one).unwrap();
                one = merged;
            } else {
                one.merge(other).unwrap();
            }
            let times: Vec<(&str, f64, usize)> =
                one.cells[0].times.iter().map(|time| (time.algorithm.as_str(), time.median_us, time.samples)).collect();
            assert_eq!(times, [("ring", 1.5, 1), ("nap", 2.0, 100), ("tree", 4.0, 100), ("smp", 5.0, 1)]);
        }
    }

    #[test]
    fn facts_of_merged_files_stand_side_by_side() {
        let told = |host: &str| {
            let mut tuning = Tuning::new("threads");
            tuning.about.insert("host".into(), host.into());
            tuning
        };
        let mut merged = told("a");
        for host in ["b", "a", "b"] {
            merged.merge(told(host)).unwrap();
        }
        assert_eq!(merged.about["host"], "a; b");
    }
}
