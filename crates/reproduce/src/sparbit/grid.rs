//! All times of Figure 5 and of the tables: every algorithm, number of ranks and size on a cluster with a placement.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use allhands_model::Estimate;
use allhands_schedule::{Collective, Topology};
use rayon::prelude::*;

use super::super::figure::Effort;
use super::super::timed::{estimates, machine};
use crate::error::{Error, Result};

pub(super) const ALGORITHMS: [&str; 5] = ["sparbit", "ring", "neighbor-exchange", "bruck", "recursive-doubling"];
pub(super) const SPARBIT: usize = 0;

/// A cluster and how ranks are placed on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Case {
    pub(super) cluster: &'static str,
    pub(super) cyclic: bool,
    nodes: usize,
    cores: usize,
    /// The most ranks: two a core.
    most: usize,
}

/// Figures 5a to 5d.
pub(super) const CASES: [Case; 4] = [
    Case { cluster: "yahoo", cyclic: false, nodes: 16, cores: 8, most: 256 },
    Case { cluster: "yahoo", cyclic: true, nodes: 16, cores: 8, most: 256 },
    Case { cluster: "cervino", cyclic: false, nodes: 5, cores: 32, most: 320 },
    Case { cluster: "cervino", cyclic: true, nodes: 5, cores: 32, most: 320 },
];

impl Case {
    pub(super) fn placement(&self) -> &'static str {
        if self.cyclic { "cyclic" } else { "sequential" }
    }

    /// Ranks on nodes: dealt out one by one; or node after node, each filled up to its cores, and all alike when there are more.
    fn spread(&self, ranks: usize) -> Result<Topology> {
        let Case { cyclic, nodes, cores, .. } = *self;
        if ranks <= nodes * cores && !cyclic {
            let sizes: Vec<usize> = (0..ranks).step_by(cores).map(|first| cores.min(ranks - first)).collect();
            return Ok(Topology::uneven(&sizes)?);
        }
        let (each, more) = (ranks / nodes, ranks % nodes);
        let sizes = (0..nodes).map(|node| each + usize::from(node < more)).filter(|&size| size > 0);
        let topology = Topology::uneven(&sizes.collect::<Vec<_>>())?;
        Ok(if cyclic { topology.cyclic() } else { topology })
    }
}

/// Which of the three numbers that the benchmark reports: over ranks, of when they are through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Metric {
    Minimum,
    Average,
    Maximum,
}

impl Metric {
    pub(super) const ALL: [Metric; 3] = [Metric::Minimum, Metric::Average, Metric::Maximum];

    fn of(self, estimate: &Estimate) -> f64 {
        match self {
            Metric::Minimum => estimate.first_seconds,
            Metric::Average => estimate.mean_seconds,
            Metric::Maximum => estimate.seconds,
        }
    }
}

/// One number of ranks and one size.
pub(super) struct Cell {
    pub(super) ranks: usize,
    pub(super) bytes: u64,
    /// By algorithm; none if it cannot serve so many ranks.
    estimates: [Option<Estimate>; ALGORITHMS.len()],
}

impl Cell {
    /// Seconds of an algorithm; infinite if it cannot serve.
    pub(super) fn time(&self, algorithm: usize, metric: Metric) -> f64 {
        self.estimates[algorithm].as_ref().map_or(f64::INFINITY, |estimate| metric.of(estimate))
    }

    /// The fastest of these algorithms.
    pub(super) fn best(&self, among: impl Iterator<Item = usize>, metric: Metric) -> usize {
        let faster = |a: &usize, b: &usize| self.time(*a, metric).total_cmp(&self.time(*b, metric));
        among.min_by(faster).unwrap_or(SPARBIT)
    }

    /// By how many per cent Sparbit is faster than the best of the others, if it is.
    pub(super) fn improvement(&self, metric: Metric) -> Option<f64> {
        let second = self.time(self.best(1..ALGORITHMS.len(), metric), metric);
        let sparbit = self.time(SPARBIT, metric);
        (sparbit < second * (1.0 - 1e-9)).then(|| 100.0 * (1.0 - sparbit / second))
    }
}

/// Columns by number of ranks, in each the sizes.
pub(super) struct Grid {
    pub(super) ranks: Vec<usize>,
    pub(super) sizes: Vec<u64>,
    columns: Vec<Vec<Cell>>,
}

impl Grid {
    pub(super) fn cells(&self) -> impl Iterator<Item = &Cell> {
        self.columns.iter().flatten()
    }

    pub(super) fn cell(&self, column: usize, row: usize) -> &Cell {
        &self.columns[column][row]
    }

    /// Per cent of the cells.
    pub(super) fn share(&self, holds: impl Fn(&Cell) -> bool) -> f64 {
        let all = self.cells().count().max(1);
        100.0 * self.cells().filter(|cell| holds(cell)).count() as f64 / all as f64
    }
}

/// The times of a case, computed once however many figures ask for them.
pub(super) fn grid(case: Case, effort: Effort) -> Result<Arc<Grid>> {
    static KEPT: Mutex<BTreeMap<(Case, Effort), Arc<Grid>>> = Mutex::new(BTreeMap::new());
    // Not held while computing: a thread that waits for its share of the work may take up another figure.
    let kept = || KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(grid) = kept().get(&(case, effort)) {
        return Ok(grid.clone());
    }
    let grid = Arc::new(compute(case, effort)?);
    kept().insert((case, effort), grid.clone());
    Ok(grid)
}

fn compute(case: Case, effort: Effort) -> Result<Grid> {
    let machine = machine(case.cluster)?;
    let every = effort.either(8, 1);
    let ranks: Vec<usize> = (1..=case.most / 8).step_by(every).flat_map(|step| [8 * step - 3, 8 * step]).collect();
    let sizes: Vec<u64> = (0..=20).step_by(effort.either(4, 1)).map(|power| 1 << power).collect();
    let column = |&ranks: &usize| -> Result<Vec<Cell>> {
        let topology = case.spread(ranks)?;
        let mut cells: Vec<Cell> =
            sizes.iter().map(|&bytes| Cell { ranks, bytes, estimates: Default::default() }).collect();
        for (index, name) in ALGORITHMS.iter().enumerate() {
            let times = match estimates(&machine, Collective::Allgather, &topology, name, &sizes) {
                // Some refuse odd numbers, or those that are no power of two.
                Err(Error::Request(_)) => continue,
                times => times?,
            };
            cells.iter_mut().zip(times).for_each(|(cell, estimate)| cell.estimates[index] = Some(estimate));
        }
        Ok(cells)
    };
    let columns = ranks.par_iter().map(column).collect::<Result<_>>()?;
    Ok(Grid { ranks, sizes, columns })
}
