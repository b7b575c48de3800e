//! Which algorithm serves a call that names none: rules of thumb, until machines are measured.
//!
//! Short messages get the fewest steps, long ones the least data; an operation that does not commute, or a caller who wants
//! identical bits, narrows the choice to algorithms that promise it.

use allhands_schedule::{Choice, Collective, Problem, Result};

/// Below this many bytes the number of messages matters, above it their size.
const LONG: usize = 16 * 1024;

/// Whether to cut a vector up so that every rank sends less of it. Two ranks send no less for it, and save only combining:
/// measured on two processes of one node, whole vectors are faster up to half a megabyte.
fn cut(collective: Collective, ranks: usize, bytes: usize) -> bool {
    match (collective, ranks) {
        (Collective::Bcast, ..=2) => false,
        (Collective::Allreduce, ..=2) => bytes > 32 * LONG,
        _ => bytes > LONG,
    }
}

/// The algorithm, and why.
pub(crate) fn choose(problem: &Problem, bytes: usize) -> Result<(Choice, String)> {
    let long = cut(problem.collective.family(), problem.ranks(), bytes);
    let candidates: &[&str] = match (problem.collective.family(), long) {
        (Collective::Allgather, false) => &["bruck"],
        (Collective::Allgather, true) => &["ring"],
        (Collective::Alltoall, false) if bytes <= 256 => &["modified-bruck"],
        (Collective::Alltoall, _) => &["spread-out"],
        (Collective::Allreduce, false) => &["recursive-doubling"],
        (Collective::Allreduce, true) if problem.ranks().is_power_of_two() => &["rabenseifner", "circulant"],
        (Collective::Allreduce, true) => &["circulant", "rabenseifner"],
        (Collective::ReduceScatter, _) => &["circulant", "linear"],
        (Collective::Bcast, false) => &["binomial"],
        (Collective::Bcast, true) => &["scatter-allgather"],
        (Collective::Reduce, false) => &["binomial"],
        (Collective::Reduce, true) => &["reduce-scatter-gather", "binomial"],
        _ => &["dissemination"],
    };
    let size = if long { "long" } else { "short" };
    let mut refused = None;
    for name in candidates {
        let choice = Choice::parse(problem.collective, name)?;
        match choice.prepare(problem) {
            Ok(_) => {
                let why = format!("a rule of thumb for {size} messages ({bytes} bytes), not a measurement");
                return Ok((choice, why));
            }
            Err(error) => refused = Some(error),
        }
    }
    Err(refused.expect("there is a candidate for every collective"))
}
