//! How much memory a choice takes beside the caller's buffers.

use allhands_schedule::{Prepared, Round, Schedule, Space, Span};

use crate::Amount;
use crate::sizes::Sizes;

/// Runs of memory in all schedules that are looked at, about.
const MOST_RUNS: usize = 1 << 20;
/// So many ranks are looked at in any case, and no more than this.
const RANKS: std::ops::RangeInclusive<usize> = 4..=256;
/// Shared memory comes twice: runs use two segments by turns.
const SEGMENTS: u64 = 2;

/// Bytes that the rank with most takes beside the caller's input and output: its scratch, and an even share of what its node shares.
///
/// All ranks are looked at if they are few or their schedules short; of more, those at both ends of the machine, of its largest
/// node, the root and its neighbours, and some evenly between. A plan whose input is in the output may keep a copy of the input
/// besides, where the algorithm needs it longer.
///
/// ```
/// use allhands_model::{Amount, memory};
/// use allhands_schedule::{Choice, Collective, Problem, Topology};
/// let problem = Problem::new(Collective::Allreduce, Topology::flat(23)?);
/// let needs = |name| {
///     let prepared = Choice::parse(Collective::Allreduce, name)?.prepare(&problem)?;
///     Ok::<u64, allhands_schedule::Error>(memory(&prepared, Amount::bytes(1000)))
/// };
/// assert_eq!(needs("addition-chain")?, 5000); // lines of 2, 3, 5, 10 and 20 ranks
/// assert_eq!(needs("ring")?, 0);
/// # Ok::<(), allhands_schedule::Error>(())
/// ```
pub fn memory(prepared: &Prepared, amount: Amount) -> u64 {
    let sizes = Sizes::new(prepared.problem(), prepared.blocks(), amount);
    let topology = &prepared.problem().topology;
    let (mut most, mut shared) = (0, 0);
    for rank in looked_at(prepared) {
        let schedule = prepared.rank(rank);
        let bytes = |spans: &[Span]| sizes.weight(rank, spans) * sizes.unit;
        most = most.max(bytes(&merged(&schedule)));
        let end = touched(&schedule, Space::Shared).map(|span| span.end()).max().unwrap_or(0);
        let ranks = topology.region(1, topology.region_of(1, rank)).len() as u64;
        shared = shared.max((SEGMENTS * bytes(&[Span::new(Space::Shared, 0, end)])).div_ceil(ranks));
    }
    most + shared
}

/// The ranks whose schedules are made: as many as are quick to make.
fn looked_at(prepared: &Prepared) -> Vec<usize> {
    let (problem, cost) = (prepared.problem(), prepared.cost());
    let (topology, ranks) = (&problem.topology, problem.ranks());
    let each = (cost.messages + cost.blocks).max(1);
    let wanted = (MOST_RUNS / each).clamp(*RANKS.start(), *RANKS.end());
    if ranks <= wanted {
        return (0..ranks).collect();
    }
    let quarter = wanted / 4;
    let root = topology.seat_of(problem.root);
    let mut seats: Vec<usize> = (0..quarter).chain(ranks - quarter..ranks).collect();
    seats.extend((root.saturating_sub(1)..=root + 1).filter(|&seat| seat < ranks).take(quarter));
    seats.extend((0..quarter).map(|index| index * (ranks / quarter) + ranks / quarter / 2));
    if let Some(largest) = largest_node(prepared) {
        seats.extend(topology.region(1, largest).take(quarter));
    }
    let mut looked_at: Vec<usize> = seats.into_iter().map(|seat| topology.rank_at(seat)).collect();
    looked_at.sort_unstable();
    looked_at.dedup();
    looked_at
}

/// The node with most ranks, where they differ.
fn largest_node(prepared: &Prepared) -> Option<usize> {
    let topology = &prepared.problem().topology;
    let (smallest, largest) = topology.region_sizes(1);
    (smallest < largest).then(|| (0..topology.regions(1)).find(|&node| topology.region(1, node).len() == largest))?
}

fn touched(schedule: &Schedule, space: Space) -> impl Iterator<Item = Span> {
    schedule.rounds.iter().flat_map(Round::spans).map(|(span, _)| span).filter(move |span| span.space == space)
}

/// The scratch of a rank, every position once.
fn merged(schedule: &Schedule) -> Vec<Span> {
    let mut spans: Vec<Span> = touched(schedule, Space::Scratch).collect();
    spans.sort_unstable_by_key(|span| span.first);
    let mut merged: Vec<Span> = Vec::new();
    for span in spans {
        match merged.last_mut() {
            Some(last) if span.first <= last.end() => last.count = last.count.max(span.end() - last.first),
            _ => merged.push(span),
        }
    }
    merged
}
