//! The [Bine butterfly](crate::algorithms::bine) as an allreduce. (De Sensi et al. 2025.)
//!
//! - `vector=pieces`: as [Rabenseifner's](super::rabenseifner), for long vectors. Members own the blocks of their position, so that
//!   all that one sends at once is one run, which it is not in the allgather.
//! - `vector=whole`: as [recursive doubling](super::whole), for short ones; the farthest first.
//!
//! Any p, by their folds: the first ranks fold in pairs, and the spare ones get the result at the end. Operands do not meet in rank order.

use super::{rabenseifner, whole};
use crate::algorithms::bine::Butterfly;
use crate::registry::{Cost, Parameter, Parameters, Recipe};
use crate::{Problem, Result};

pub(crate) const PARAMETERS: &[Parameter] = &[Parameter {
    name: "vector",
    values: "pieces: reduce_scatter, then allgather; whole: all of it in every step",
    default: "pieces",
}];

pub(crate) fn bine(problem: &Problem, parameters: &Parameters) -> Result<Recipe> {
    Ok(match parameters.word("vector", &["pieces", "whole"])? {
        "whole" => whole::by(Butterfly::Bine, problem),
        _ => rabenseifner::by(Butterfly::Bine, problem, 1),
    })
}

pub(crate) fn cost(problem: &Problem, parameters: &Parameters) -> Cost {
    match parameters.get("vector") {
        Some("whole") => whole::recursive_doubling_cost(problem, parameters),
        _ => rabenseifner::cost(problem, parameters),
    }
}

pub(crate) fn variants(_: &Problem) -> Vec<String> {
    vec!["vector=pieces".into(), "vector=whole".into()]
}
