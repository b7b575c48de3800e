//! The Bine tree: a root's whole vector goes to the others by the [Bine butterfly](crate::algorithms::bine), the farthest first. (De Sensi
//! et al. 2025.) Reversed, a reduce.
//!
//! ```text
//! p = 8, root 0   0->3    0->7 3->4    0->1 3->2 4->5 7->6
//! ```
//!
//! *Any p.* The leaves of the next power of two that are too many are left out: ranks are in cells of one or two, as many as the power of
//! two below, the first of each is in the tree, and sends to the second last. Distances are counted from the root, around the end.
//!
//! ceil(log2 p) rounds, the whole vector in each

use super::from_root;
use crate::algorithms::bine::Butterfly;
use crate::math::{part, part_of};
use crate::registry::{Parameters, Recipe};
use crate::{Problem, Result, Round, Span};

pub(crate) fn bine(problem: &Problem, _: &Parameters) -> Result<Recipe> {
    let (p, root) = (problem.ranks(), problem.root);
    Ok(Recipe { blocks: 1, make: Box::new(move |rank| from_root(p, root, rank, |me| tree(p, me))) })
}

fn tree(p: usize, me: usize) -> Vec<Round> {
    let cells = 1 << p.ilog2();
    let cell = part_of(p, cells, me);
    let (first, members) = part(p, cells, cell);
    let whole = || [Span::output(0, 1)];
    let mut last = Round::default();
    if me != first {
        last.recv(first, whole(), None);
        return vec![last];
    }
    let (steps, position) = (cells.ilog2() as usize, Butterfly::Bine.position(cells, cell));
    let step = |index: usize| {
        let mut round = Round::default();
        let peer = part(p, cells, Butterfly::Bine.partner(cells, cell, steps - 1 - index)).0;
        match position >> index {
            0 => round.send(peer, whole()),
            1 => round.recv(peer, whole(), None),
            _ => {}
        }
        round
    };
    let mut rounds: Vec<Round> = (0..steps).map(step).collect();
    if members == 2 {
        last.send(first + 1, whole());
        rounds.push(last);
    }
    rounds
}
