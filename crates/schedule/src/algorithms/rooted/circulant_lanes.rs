//! Bcast and reduce in n blocks on circulant graphs of regions, one for each lane: the two-level form of `circulant`.
//!
//! As in a `pipeline` each of `lanes` is served by another rank, in every region, and what these get they pass on inside. Between regions there
//! is no tree: those who serve a lane get and send one piece in every round, so all regions forward alike, and the last is no farther than
//! in a binary tree, whose forwarding regions send two.
//!
//! ```text
//! 3x2, root 0, blocks=1:lanes=1   0->2 0->1    0->4 2->3    4->5
//! ```
//!
//! blocks - 1 + ceil(log2 R) rounds, ceil(log_radix q) at most inside, and 1 if the root hands out · any shape · shared: the pieces lie on the region's line,
//! with a meeting after every round that brings some · reduce: reversed

use super::far::Far;
use super::pipeline::{BLOCKS, LANES, Pipeline, RADIX, TURNS, regions_of};
use crate::algorithms::node::{LOCAL, either_way, shared, uses_memory};
use crate::algorithms::seats::LEVEL;
use crate::registry::{Cost, Parameter, Parameters, Recipe};
use crate::{Problem, Result};

pub(crate) const SPREAD: &[Parameter] = &[BLOCKS, LANES, RADIX, TURNS, LEVEL, LOCAL];
pub(crate) const COLLECT: &[Parameter] = &[BLOCKS, LANES, RADIX, TURNS, LEVEL];

fn pipeline(problem: &Problem, parameters: &Parameters) -> Result<Pipeline> {
    Pipeline::new(problem, parameters, 1, |regions, blocks| Ok(Far::circulant(regions, blocks)))
}

pub(crate) fn bcast(problem: &Problem, parameters: &Parameters) -> Result<Recipe> {
    Ok(pipeline(problem, parameters)?.bcast(shared(parameters)?))
}

/// The bcast by messages, to be reversed.
pub(crate) fn reduce(problem: &Problem, parameters: &Parameters) -> Result<Recipe> {
    Ok(pipeline(problem, parameters)?.movements())
}

pub(crate) fn cost(problem: &Problem, parameters: &Parameters) -> Cost {
    pipeline(problem, parameters).map_or(Cost::NOTHING, |pipeline| pipeline.cost(problem, uses_memory(parameters)))
}

/// How many blocks pay depends on the vector, which the model knows. With two regions they are chains, and with regions of one rank there are no lanes: there
/// `pipeline` and `circulant` serve.
pub(crate) fn variants(problem: &Problem) -> Vec<String> {
    either_way(by_messages(problem))
}

pub(crate) fn by_messages(problem: &Problem) -> Vec<String> {
    let Ok(topology) = regions_of(problem, false) else { return vec![String::new()] };
    let (regions, largest) = (topology.regions(1), topology.region_sizes(1).1);
    if regions < 3 || largest < 2 {
        return vec!["blocks=1:lanes=1".into()];
    }
    let settings = [(largest - 1, 4.min(largest), 1), (largest, largest, 2)];
    let text = |(lanes, radix, turns)| format!("blocks=4:lanes={lanes}:radix={radix}:turns={turns}");
    settings.into_iter().map(text).collect()
}
