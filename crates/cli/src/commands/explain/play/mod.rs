//! `allhands explain --format html`: one file in which schedules play, two of them side by side.
//!
//! Everything is computed here, by the code behind every other format: schedules are proved right, times are simulated. The page shows
//! what it is given, needs no network, and counts messages itself, which a test compares with `--format json`.

mod code;
mod score;
#[cfg(test)]
mod tests;

use allhands_model::{Allowance, Amount, Bound, Machine};
use allhands_schedule::{Choice, Collective, Graph, Prepared, Problem, Topology, algorithms};
use rayon::prelude::*;
use serde::Serialize;

use self::score::Score;
use crate::failure::{Failure, Result};

/// More ranks than this have no place side by side, and schedules that make the page heavy.
pub(super) const MOST_RANKS: usize = 64;

/// Settings of an algorithm, besides the one that was asked for.
const MOST_SETTINGS: usize = 6;

/// Shapes to change to: one node, one rank a node, a prime number of ranks, uneven nodes, sockets, and more of all.
const SHAPES: [&str; 12] = ["1x8", "8x1", "7x1", "2x4", "4x2", "3,5,4", "3x5", "4x4", "2x2x4", "8x4", "4x2x4", "8x8"];

/// The sizes to change to, in factors of 8.
const SIZES: [u64; 7] = [8, 64, 512, 4 << 10, 32 << 10, 256 << 10, 2 << 20];

/// What the page begins with.
pub(super) struct FirstView<'a> {
    pub(super) problem: &'a Problem,
    /// The topology as it was written.
    pub(super) shape: String,
    /// None: the fastest.
    pub(super) choice: Option<&'a Choice>,
    pub(super) bytes: Option<u64>,
    pub(super) allowance: Allowance,
    pub(super) machine: &'a Machine,
}

/// All that the page knows.
#[derive(Serialize)]
struct Data {
    collective: &'static str,
    reduces: bool,
    /// Whether a size is that of a vector which is cut up, not of a block.
    cut: bool,
    rooted: bool,
    machine: String,
    machine_says: String,
    version: &'static str,
    sizes: Vec<u64>,
    /// The index of the size to begin with.
    size: usize,
    /// The algorithm and setting to begin with, if one was asked for.
    asked: Option<[String; 2]>,
    /// Where each algorithm comes from.
    sources: Vec<[&'static str; 2]>,
    /// The first is the one that was asked for.
    shapes: Vec<Shape>,
}

#[derive(Serialize)]
struct Shape {
    name: String,
    ranks: usize,
    root: usize,
    /// Of each rank from whom it gets blocks, in a neighbourhood.
    sources: Option<Vec<Vec<usize>>>,
    /// Ranks by seat, in lists that are nested as regions are.
    regions: Topology,
    /// The lower bound in microseconds for each size: where only messages move data, and where ranks of a node share memory.
    bounds: [Vec<f64>; 2],
    scores: Vec<Score>,
}

/// The page.
pub(super) fn page(view: &FirstView<'_>) -> Result<String> {
    let data = serde_json::to_string(&data(view)?).map_err(std::io::Error::from)?;
    let scripts =
        [include_str!("data.js"), include_str!("stage.js"), include_str!("chart.js"), include_str!("page.js")];
    Ok(include_str!("page.html")
        .replace("{collective}", view.problem.collective.name())
        .replace("{style}", include_str!("page.css"))
        .replace("{script}", &scripts.concat())
        // Last, so that nothing in it is taken for a place; and no text can end the element it stands in.
        .replace("{data}", &data.replace('<', "\\u003c")))
}

fn data(view: &FirstView<'_>) -> Result<Data> {
    let Problem { collective, .. } = *view.problem;
    let sizes = sizes(collective, view.bytes);
    let begin = view.bytes.unwrap_or(SIZES[3]);
    let shapes = problems(view)?.into_iter().enumerate().map(|(index, (name, problem))| {
        let asked = view.choice.filter(|_| index == 0);
        shape(view, name, &problem, asked, &sizes)
    });
    Ok(Data {
        collective: collective.name(),
        reduces: collective.reduces(),
        cut: collective.cuts(),
        rooted: collective.rooted(),
        machine: view.machine.name.clone(),
        machine_says: view.machine.description.clone(),
        version: env!("CARGO_PKG_VERSION"),
        size: sizes.iter().position(|&size| size >= begin).unwrap_or(0),
        asked: view.choice.map(|choice| {
            let (name, text) = (choice.algorithm.name, choice.to_string());
            [name.into(), text[name.len()..].trim_start_matches(':').into()]
        }),
        sources: algorithms(collective).map(|algorithm| [algorithm.name, algorithm.source]).collect(),
        shapes: shapes.collect::<Result<_>>()?,
        sizes,
    })
}

fn sizes(collective: Collective, asked: Option<u64>) -> Vec<u64> {
    if collective == Collective::Barrier {
        return vec![0];
    }
    let mut sizes: Vec<u64> = SIZES.into_iter().chain(asked).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// What was asked, and the same on other shapes. Counts belong to one number of ranks, as does a graph, a root to those that have it.
fn problems(view: &FirstView<'_>) -> Result<Vec<(String, Problem)>> {
    let mut problems = vec![(view.shape.clone(), view.problem.clone())];
    let Problem { collective, ref graph, ref counts, reduction, .. } = *view.problem;
    if !counts.is_empty() || graph.as_deref().is_some_and(|graph| *graph != Graph::square(graph.ranks())) {
        return Ok(problems);
    }
    let sequential = SHAPES.into_iter().map(|text| Ok((text.to_string(), text.parse()?)));
    let dealt = Topology::regular(4, 4).map(|topology| ("4x4, cyclic".to_string(), topology.cyclic()));
    for shape in sequential.chain([dealt.map_err(Failure::from)]) {
        let (name, topology): (String, Topology) = shape?;
        let root = if view.problem.root < topology.ranks() { view.problem.root } else { 0 };
        if problems.iter().all(|(_, problem)| problem.topology != topology) {
            problems.push((name, Problem::new(collective, topology).with_root(root)?.with_reduction(reduction)));
        }
    }
    Ok(problems)
}

fn shape(
    view: &FirstView<'_>,
    name: String,
    problem: &Problem,
    asked: Option<&Choice>,
    sizes: &[u64],
) -> Result<Shape> {
    let prepared = choices(problem, asked).into_iter().filter_map(|choice| choice.prepare(problem).ok());
    let amount = Amount::bytes(view.bytes.unwrap_or(0));
    let allowed: Vec<Prepared> = prepared.filter(|prepared| view.allowance.check(prepared, amount).is_ok()).collect();
    let score = |prepared: &Prepared| {
        let wrong = |fault| Failure::Wrong(format!("{} {} is wrong: {fault}", problem.collective, prepared.name()));
        Score::new(prepared, view.machine, sizes).map_err(wrong)
    };
    let bound = |shares| {
        let seconds = |&bytes: &u64| Bound::new(problem, view.machine, Amount::bytes(bytes), shares).seconds();
        sizes.iter().map(|bytes| microseconds(seconds(bytes))).collect()
    };
    Ok(Shape {
        name,
        ranks: problem.ranks(),
        root: problem.root,
        sources: problem
            .graph
            .as_ref()
            .map(|graph| (0..graph.ranks()).map(|rank| graph.sources(rank).collect()).collect()),
        regions: problem.topology.clone(),
        bounds: [bound(false), bound(true)],
        scores: allowed.par_iter().map(score).collect::<Result<_>>()?,
    })
}

/// Each algorithm with some of its settings: the first few by messages alone, and the default through shared memory.
fn choices(problem: &Problem, asked: Option<&Choice>) -> Vec<Choice> {
    let mut choices = Vec::new();
    for algorithm in algorithms(problem.collective) {
        let variants = Choice::variants(algorithm, problem);
        let through_memory = |choice: &Choice| choice.parameters.get("local").is_some();
        let (memory, messages): (Vec<_>, Vec<_>) = variants.into_iter().partition(through_memory);
        let default = format!("{}:local=shared", algorithm.name);
        choices.extend(messages.into_iter().take(MOST_SETTINGS));
        choices.extend(memory.into_iter().filter(|choice| choice.to_string() == default));
    }
    if let Some(asked) = asked.filter(|asked| choices.iter().all(|known| known.to_string() != asked.to_string())) {
        choices.push(asked.clone());
    }
    choices
}

/// Rounded to what a model can tell, and a page can bear: five digits.
fn microseconds(seconds: f64) -> f64 {
    let us = seconds * 1e6;
    format!("{us:.4e}").parse().unwrap_or(us)
}
