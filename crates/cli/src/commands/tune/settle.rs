//! One cell: candidates by turns, fewer and fewer of them and longer and longer, until it is settled which is the fastest.

use std::collections::BTreeMap;

use allhands::{Cell, Comm, Time};
use allhands_schedule::Collective;
use indicatif::ProgressBar;

use super::Stop;
use crate::commands::bench::measure::{Job, Measured};
use crate::commands::bench::report::Line;

/// Iterations of a round, and how many candidates may go on to the next.
const ROUNDS: [(usize, usize); 3] = [(5, 5), (15, 3), (40, 2)];

/// What took so much longer than the best at first sight is not looked at again.
const HOPELESS: f64 = 3.0;

/// Measures candidates of a collective at a size, on all ranks of a communicator: the times of all that are not hopeless, the same
/// on every rank; of those that were dropped, from the round that dropped them.
pub(super) fn settle(comm: &Comm, collective: Collective, bytes: usize, candidates: Vec<String>) -> Result<Cell, Stop> {
    let mut candidates = screened(comm, collective, bytes, candidates)?;
    let mut known: BTreeMap<String, Time> = BTreeMap::new();
    for (iterations, keep) in ROUNDS {
        let lines = measured(comm, collective, bytes, &candidates, iterations, 2)?;
        known.extend(lines.iter().map(|line| (line.algorithm.clone(), time(line))));
        candidates = contenders(&lines).take(keep).map(|line| line.algorithm.clone()).collect();
        if candidates.len() < 2 {
            break;
        }
    }
    let mut times: Vec<Time> = known.into_values().collect();
    times.sort_by(|one, other| one.median_us.total_cmp(&other.median_us));
    let topology = comm.topology();
    let (nodes, ranks_per_node) = (topology.regions(1), topology.region_sizes(1).1);
    Ok(Cell { collective: collective.name().into(), nodes, ranks_per_node, bytes, times })
}

/// Candidates that are worth measuring, after a first look.
pub(super) fn screened(
    comm: &Comm,
    collective: Collective,
    bytes: usize,
    candidates: Vec<String>,
) -> Result<Vec<String>, Stop> {
    let lines = measured(comm, collective, bytes, &candidates, 2, 1)?;
    let best = lines.first().map_or(0.0, |best| best.min_us);
    let able = lines.into_iter().filter(|line| line.min_us <= HOPELESS * best);
    Ok(able.map(|line| line.algorithm).collect())
}

/// The times of some candidates, best first.
pub(super) fn measured(
    comm: &Comm,
    collective: Collective,
    bytes: usize,
    names: &[String],
    iterations: usize,
    warm_up: usize,
) -> Result<Vec<Line>, Stop> {
    let (transport, bar) = (comm.transport(), ProgressBar::hidden());
    let job = Job {
        collective,
        transport: &transport,
        names,
        sizes: &[bytes],
        iterations: Some(iterations),
        warm_up,
        bar: &bar,
    };
    let mut lines = match job.rank(comm)? {
        Measured::Lines(lines) => lines,
        Measured::Wrong(reason) => return Err(Stop::Wrong(Some(reason))),
        Measured::WrongElsewhere => return Err(Stop::Wrong(None)),
    };
    lines.sort_by(|one, other| one.median_us.total_cmp(&other.median_us));
    Ok(lines)
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
