//! What was measured near a place where nothing was: the cells around it.

use allhands_schedule::{Collective, Topology};

use super::logs::{ln, log2};
use super::{Cell, Tuning};

/// A cell near a place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Near<'a> {
    pub(crate) cell: &'a Cell,
    /// The nearer it is, the more it counts.
    pub(crate) weight: f64,
}

/// Sizes, nodes and ranks up to this factor outside of what was measured are still near.
const REACH: f64 = 4.0;
/// So many shapes count where none is just the one.
const SHAPES: usize = 2;

impl Tuning {
    /// The cells around a place: on the nearest shapes, at the next sizes below and above. None where nothing is near.
    pub(crate) fn around(&self, collective: Collective, topology: &Topology, bytes: usize) -> Vec<Near<'_>> {
        let (nodes, ranks) = (topology.regions(1), topology.region_sizes(1).1);
        let away = |cell: &Cell| {
            let step = |one: usize, other: usize| log2(one as f64 / other as f64).abs();
            step(cell.nodes, nodes) + step(cell.ranks_per_node, ranks)
        };
        // One node and many nodes are different machines.
        let near = |cell: &&Cell| {
            cell.collective == collective.name() && (cell.nodes == 1) == (nodes == 1) && away(cell) <= log2(REACH)
        };
        let mut cells: Vec<&Cell> = self.cells.iter().filter(near).collect();
        cells.sort_by(|one, other| away(one).total_cmp(&away(other)).then(one.place().cmp(&other.place())));
        let shapes: Vec<Vec<Near<'_>>> = cells
            .chunk_by(|one, other| (one.nodes, one.ranks_per_node) == (other.nodes, other.ranks_per_node))
            .map(|cells| at_size(cells, bytes))
            .filter(|cells| !cells.is_empty())
            .collect();
        let exact = shapes.first().is_some_and(|cells| away(cells[0].cell) == 0.0);
        let shapes = shapes.into_iter().take(if exact { 1 } else { SHAPES });
        let mut near: Vec<Near<'_>> = shapes.flatten().collect();
        near.iter_mut().for_each(|near| near.weight /= away(near.cell) + 1e-9);
        near
    }
}

/// Of the cells of a shape, by their sizes, the next below and above a size.
fn at_size<'a>(cells: &[&'a Cell], bytes: usize) -> Vec<Near<'a>> {
    let size = |bytes: usize| ln(bytes.max(1) as f64);
    let below = cells.iter().rev().find(|cell| cell.bytes <= bytes);
    let above = cells.iter().find(|cell| cell.bytes >= bytes);
    match (below, above) {
        (Some(low), Some(high)) if low.bytes < high.bytes => {
            let part = (size(bytes) - size(low.bytes)) / (size(high.bytes) - size(low.bytes));
            vec![Near { cell: low, weight: 1.0 - part }, Near { cell: high, weight: part }]
        }
        (Some(cell), Some(_)) => vec![Near { cell, weight: 1.0 }],
        (Some(cell), None) | (None, Some(cell)) if (size(bytes) - size(cell.bytes)).abs() <= ln(REACH) + 1e-9 => {
            vec![Near { cell, weight: 1.0 }]
        }
        _ => vec![],
    }
}
