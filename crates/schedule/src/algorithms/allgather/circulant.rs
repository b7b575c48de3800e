//! Allgather and reduce_scatter on a circulant graph, in as few rounds as there can be. (Träff 2024.)
//!
//! With one block a rank these are growing windows. With `blocks` the block of each rank is cut into as many pieces, and all ranks broadcast theirs at
//! once, by the n-block bcast on that graph: in every round everybody sends one message a skip up, with one piece at most of each other rank. No block
//! is longer on its way than its pieces follow one another, however much longer than the others it is: that is what it is for.
//!
//! ```text
//! p = 3, skips 1 2, rank r has ra rb   0->2 0a      1->0 1a      2->1 2a
//!                                      0->1 0b      1->2 1b      2->0 2b
//!                                      0->2 0b 1a   1->0 1b 2a   2->1 2b 0a
//! ```
//!
//! n - 1 + ceil(log2 p) rounds · as many messages · (p - 1) n pieces · any p · reduce_scatter: reversed

use super::windows;
use crate::algorithms::reorder::ORDER;
use crate::algorithms::rooted::circulant::Circulant;
use crate::algorithms::rooted::pipeline::MOST_BLOCKS;
use crate::registry::{Cost, Make1, Parameter, Parameters, Recipe, in_pieces};
use crate::schedule::push_span;
use crate::{InlineVec, Problem, Result, Round, Span};

pub(crate) const PARAMETERS: &[Parameter] = &[
    ORDER,
    Parameter { name: "blocks", values: "1..=4096, in the order of ranks: pieces of a rank's block", default: "1" },
];

fn pieces(parameters: &Parameters) -> Result<usize> {
    Ok(parameters.number("blocks", 1..=MOST_BLOCKS)?.unwrap_or(1))
}

pub(crate) fn circulant(problem: &Problem, parameters: &Parameters) -> Result<Recipe> {
    let pieces = pieces(parameters)?;
    let movement = match pieces {
        1 => windows::circulant(problem, parameters)?,
        _ if parameters.word("order", &["ranks", "sizes"])? == "sizes" => {
            return Err(parameters.wrong("order", "is given beside blocks", "one of the two"));
        }
        _ => all_at_once(problem.ranks(), pieces),
    };
    Ok(in_pieces(problem, pieces, movement))
}

/// A bcast from each rank, all round by round together.
fn all_at_once(p: usize, pieces: usize) -> Make1 {
    let graph = Circulant::new(p, pieces);
    // What comes to the members after the root, each counted from it.
    let received: Vec<Vec<isize>> = (1..p).map(|member| graph.received(member)).collect();
    Box::new(move |rank| {
        let arriving = |rank: usize, round: usize| {
            let of_root = |(before, blocks): (usize, &Vec<isize>)| {
                let root = (rank + p - before - 1) % p;
                Some(root * pieces + graph.block(blocks, round)?)
            };
            let mut positions: Vec<usize> = received.iter().enumerate().filter_map(of_root).collect();
            positions.sort_unstable();
            let mut spans = InlineVec::new();
            positions.into_iter().for_each(|position| push_span(&mut spans, Span::output(position, 1)));
            spans
        };
        let one = |round: usize| {
            let skip = graph.skip(round);
            let (to, from) = ((rank + skip) % p, (rank + p - skip) % p);
            let mut now = Round::default();
            now.send(to, arriving(to, round));
            now.recv(from, arriving(rank, round), None);
            now
        };
        graph.rounds().map(one).collect()
    })
}

pub(crate) fn cost(problem: &Problem, parameters: &Parameters) -> Cost {
    let (p, pieces) = (problem.ranks(), pieces(parameters).unwrap_or(1));
    let rounds = Circulant::new(p, pieces).rounds().len();
    Cost::exact(rounds, rounds, (p - 1) * pieces)
}

/// How many pieces pay depends on how unequal blocks are, and on their length, which the model knows.
pub(crate) fn variants(_: &Problem) -> Vec<String> {
    vec![String::new(), "blocks=3".into()]
}
