//! One rank a node acts for its node: the phases before and after any allreduce among nodes. (Jocksch et al. 2021.)
//!
//! ```text
//! 2 nodes x 3      0 1 2 | 3 4 5     operands come to 0 and 3, by messages or through shared memory
//!                  0 <-------> 3     the allreduce among nodes
//!                  0 1 2 | 3 4 5     the result goes to all
//! ```

use super::whole::home;
use crate::algorithms::node::{Reduction, Region};
use crate::algorithms::rooted::binomial_bcast;
use crate::compose::{embed, reverse};
use crate::math::ceil_log;
use crate::registry::Cost;
use crate::schedule::push_span;
use crate::{InlineVec, Problem, Round, Space, Span, Topology};

/// Where a vector lives: each a full set of positions.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum VectorHome {
    Input,
    Output,
    /// A line of scratch. The first belongs to the phases before and after.
    Line(usize),
    /// A line of the node's shared memory.
    Shared(usize),
}

impl VectorHome {
    /// Positions of a vector cut into `blocks`, in this place.
    pub(super) fn span(self, blocks: usize, first: usize, count: usize) -> Span {
        match self {
            VectorHome::Input => Span::input(first, count),
            VectorHome::Output => Span::output(first, count),
            VectorHome::Line(line) => Span::scratch(line * blocks + first, count),
            VectorHome::Shared(line) => Span::new(Space::Shared, line * blocks + first, count),
        }
    }
}

/// The rounds of a node, from one place to another, where nodes are these ranks.
pub(super) type Rounds<'a> = dyn Fn((VectorHome, VectorHome), usize, &dyn Fn(usize) -> usize) -> Vec<Round> + 'a;

/// An allreduce of a vector of so many blocks among so many nodes.
pub(super) struct Among<'a> {
    pub(super) nodes: usize,
    pub(super) blocks: usize,
    pub(super) rounds: &'a Rounds<'a>,
}

impl Among<'_> {
    /// A rank's rounds: every rank is a node, or one of each node acts for it. `shared`: through memory, reduced like this.
    pub(super) fn all(&self, topology: &Topology, shared: Option<Reduction>, rank: usize) -> Vec<Round> {
        match shared {
            _ if self.nodes == topology.ranks() => {
                (self.rounds)((VectorHome::Input, VectorHome::Output), rank, &|node| node)
            }
            None => self.by_messages(topology, rank),
            Some(reduction) => self.through_memory(topology, reduction, rank),
        }
    }

    /// The others send the one that acts their vectors before and get the result after.
    fn by_messages(&self, topology: &Topology, rank: usize) -> Vec<Round> {
        let (node, seats, me) = home(topology, 1, rank);
        let member = |member: usize| topology.rank_at(seats.start + member);
        let bcast = embed(binomial_bcast(seats.len(), me, self.blocks), member, |span, spans| push_span(spans, span));
        let keep = [Span::output(0, if me == 0 { self.blocks } else { 0 })];
        // The node's sum grows in the first line of scratch, so that the output is free for the result.
        let to_scratch = |span: Span, spans: &mut InlineVec<Span>| {
            let space = if span.space == Space::Output { Space::Scratch } else { span.space };
            push_span(spans, Span { space, ..span });
        };
        let mut rounds = embed(reverse(bcast.clone(), rank, &keep), |rank| rank, to_scratch);
        if me == 0 {
            let master = |node: usize| topology.rank_at(topology.region(1, node).start);
            rounds.extend((self.rounds)((VectorHome::Line(0), VectorHome::Output), node, &master));
        }
        rounds.extend(bcast);
        rounds
    }

    /// All reduce, slice by slice, onto the first shared line; one takes it to the second; all copy that out.
    fn through_memory(&self, topology: &Topology, reduction: Reduction, rank: usize) -> Vec<Round> {
        let (node, _, me) = home(topology, 1, rank);
        let region = Region::new(topology, 1, rank);
        let master = |node: usize| topology.rank_at(topology.region(1, node).start);
        if region.size == 1 {
            return (self.rounds)((VectorHome::Input, VectorHome::Output), node, &master);
        }
        let mut rounds = region.reduce(self.blocks, reduction);
        let result = usize::from(self.nodes > 1);
        if me == 0 && self.nodes > 1 {
            rounds.extend((self.rounds)((VectorHome::Shared(0), VectorHome::Shared(result)), node, &master));
        }
        region.copy_out(&mut rounds, region.whole_line(result, self.blocks));
        rounds.retain(|round| !round.is_empty());
        rounds
    }
}

/// What an allreduce costs with the phases before and after, of which only messages count.
pub(super) fn cost(problem: &Problem, nodes: usize, blocks: usize, shared: bool, among: Cost) -> Cost {
    if nodes == problem.ranks() || shared {
        return among;
    }
    let near = ceil_log(2, problem.topology.region_sizes(1).1);
    among.then(Cost::at_most(2 * near, near, near * blocks))
}
