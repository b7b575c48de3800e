//! One cell: candidates by turns, fewer and fewer of them and longer and longer, until it is settled which is the fastest.

use std::collections::BTreeMap;

use allhands::{Cell, Comm, Time};
use allhands_schedule::Collective;
use indicatif::ProgressBar;

use crate::commands::bench::measure::{Job, Measured};
use crate::commands::bench::report::Line;

/// Iterations of a round, and how many candidates may go on to the next.
const ROUNDS: [(usize, usize); 3] = [(5, 5), (15, 3), (40, 2)];

/// What came of a cell.
pub(super) enum Settled {
    /// The times of all candidates, the same on every rank; of those that were dropped, from the round that dropped them.
    Cell(Cell),
    /// A collective gave a wrong result, on this rank or on another.
    Wrong(Option<String>),
}

/// Measures candidates of a collective at a size, on all ranks of a communicator.
pub(super) fn settle(
    comm: &Comm,
    collective: Collective,
    bytes: usize,
    mut candidates: Vec<String>,
) -> allhands::Result<Settled> {
    let (transport, bar) = (comm.transport(), ProgressBar::hidden());
    let mut known: BTreeMap<String, Time> = BTreeMap::new();
    for (iterations, keep) in ROUNDS {
        let job = Job {
            collective,
            transport: &transport,
            names: &candidates,
            sizes: &[bytes],
            iterations: Some(iterations),
            bar: &bar,
        };
        let mut lines = match job.rank(comm)? {
            Measured::Lines(lines) => lines,
            Measured::Wrong(reason) => return Ok(Settled::Wrong(Some(reason))),
            Measured::WrongElsewhere => return Ok(Settled::Wrong(None)),
        };
        lines.sort_by(|one, other| one.median_us.total_cmp(&other.median_us));
        known.extend(lines.iter().map(|line| (line.algorithm.clone(), time(line))));
        candidates = contenders(&lines).take(keep).map(|line| line.algorithm.clone()).collect();
        if candidates.len() < 2 {
            break;
        }
    }
    let mut times: Vec<Time> = known.into_values().collect();
    times.sort_by(|one, other| one.median_us.total_cmp(&other.median_us));
    let topology = comm.topology();
    Ok(Settled::Cell(Cell {
        collective: collective.name().into(),
        nodes: topology.regions(1),
        ranks_per_node: topology.region_sizes(1).1,
        bytes,
        times,
    }))
}

/// Those that the fastest cannot be told apart from, best first: half of their batches overlap with half of the best's.
fn contenders(lines: &[Line]) -> impl Iterator<Item = &Line> {
    let limit = lines.first().map_or(0.0, |best| best.p90_us.max(1.05 * best.median_us));
    lines.iter().filter(move |line| line.p10_us <= limit)
}

fn time(line: &Line) -> Time {
    Time {
        algorithm: line.algorithm.clone(),
        median_us: line.median_us,
        p10_us: line.p10_us,
        p90_us: line.p90_us,
        samples: line.iterations * line.runs,
    }
}
