//! What two-level algorithms share: blocks named by seats, and the level that counts as near.

use std::ops::Range;

use crate::algorithms::node::either_way;
use crate::compose::placing;
use crate::registry::{Parameter, Parameters};
use crate::schedule::push_span;
use crate::{InlineVec, Span, Topology};

/// From which size on blocks go to their ranks by themselves.
pub(crate) const STRAIGHT: Parameter =
    Parameter { name: "straight", values: "units of the counts, 1 or more", default: "no block" };

/// What it is set to; larger than any block where it is not.
pub(crate) fn straight(parameters: &Parameters) -> crate::Result<usize> {
    Ok(parameters.number("straight", 1..=usize::MAX)?.unwrap_or(usize::MAX))
}

pub(crate) const LEVEL: Parameter =
    Parameter { name: "level", values: "1..=depth: whose regions are near (1 nodes, 2 sockets)", default: "1" };

/// The output blocks of the ranks on some runs of seats.
pub(crate) fn output_of(topology: &Topology, runs: &[Range<usize>]) -> InlineVec<Span> {
    let mut spans = InlineVec::new();
    runs.iter().for_each(|seats| push_output_of(topology, seats.clone(), &mut spans));
    spans
}

pub(crate) fn push_output_of(topology: &Topology, seats: Range<usize>, spans: &mut InlineVec<Span>) {
    if topology.is_sequential() {
        return push_span(spans, Span::output(seats.start, seats.len()));
    }
    for run in topology.rank_runs(seats) {
        push_span(spans, Span::output(run.start, run.len()));
    }
}

/// For a group each of whose runs of blocks is a run of seats.
pub(crate) fn placing_seats<'a>(
    topology: &'a Topology,
    seats_of: impl Fn(Range<usize>) -> Range<usize> + 'a,
) -> impl Fn(Span, &mut InlineVec<Span>) + 'a {
    placing(move |of, spans| push_output_of(topology, seats_of(of), spans))
}

/// The level parameter's legal values, either way, for the sweep.
pub(crate) fn level_variants(problem: &crate::Problem) -> Vec<String> {
    either_way(levels(problem))
}

/// The level parameter's legal values; the first is the default.
pub(crate) fn levels(problem: &crate::Problem) -> Vec<String> {
    let others = (2..=problem.topology.depth()).map(|level| format!("level={level}"));
    std::iter::once(String::new()).chain(others).collect()
}
