//! Time against size as a picture that stands alone: both axes logarithmic, one line an algorithm, the lower bound dashed.

use std::collections::BTreeMap;

use allhands_model::Machine;
use allhands_schedule::Collective;

use super::SimulatedTime;
use allhands_plot::{self as plot, Axis, Chart, Unit};

/// Draws simulated times.
pub(super) fn svg(lines: &[SimulatedTime], machine: &Machine) -> String {
    let mut algorithms: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
    let mut bound: BTreeMap<u64, f64> = BTreeMap::new();
    for line in lines {
        algorithms.entry(&line.kind).or_default().push((line.bytes.max(1) as f64, line.time_us));
        bound.insert(line.bytes, line.bound_us);
    }
    let bound = bound.into_iter().filter(|(_, time)| *time > 0.0).map(|(bytes, time)| (bytes.max(1) as f64, time));
    let mut drawn = vec![plot::Curve::bound(bound.collect())];
    drawn.extend(algorithms.into_iter().map(|(name, points)| plot::Curve::new(name, points)));
    let told =
        |first: &SimulatedTime| (format!("{} on {}, {}", first.collective, machine.name, first.topology), first.ranks);
    let (title, ranks) = lines.first().map(told).unwrap_or_default();
    let collective = lines.first().and_then(|line| line.collective.parse().ok()).unwrap_or(Collective::Barrier);
    Chart {
        title,
        subtitle: format!("{ranks} ranks; simulated time until the last rank is through; dashed: the lower bound"),
        x: plot::size_axis(collective),
        y: Axis::logarithmic("", Unit::Microseconds, 10),
        lines: drawn,
    }
    .svg()
}
