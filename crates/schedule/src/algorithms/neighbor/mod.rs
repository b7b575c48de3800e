//! Neighbourhood collectives: blocks move along the edges of a graph. In an alltoall every edge has a block of its own, in an allgather a
//! rank's block goes along all of its edges.
//!
//! A block is in its rank's input, in the output of who gets it, and in the scratch of ranks between. Who gets the block of an allgather along
//! several edges takes it once, and copies it.

pub(crate) mod direct;
pub(crate) mod node_aware;

use std::sync::Arc;

use crate::registry::Recipe;
use crate::schedule::push_span;
use crate::{Collective, Graph, InlineVec, Problem, Round, Span};

/// What moves along the edges of a graph.
#[derive(Clone)]
pub(crate) struct Traffic {
    pub(crate) graph: Arc<Graph>,
    /// Whether a rank has one block for all.
    gathers: bool,
}

impl Traffic {
    pub(crate) fn of(problem: &Problem) -> Traffic {
        let graph = problem.graph.clone().unwrap_or_else(|| Arc::new(Graph::square(problem.ranks())));
        Traffic { graph, gathers: problem.collective.family() == Collective::NeighborAllgather }
    }

    /// The blocks that a rank has for others, each with those, in ascending order.
    pub(crate) fn leaving(&self, rank: usize) -> Vec<(usize, Vec<usize>)> {
        if self.gathers {
            let others = sorted(self.graph.destinations(rank).filter(|&other| other != rank).collect());
            return if others.is_empty() { Vec::new() } else { vec![(rank, others)] };
        }
        let edges = self.graph.outgoing(rank).map(|edge| (edge, self.graph.edge(edge).to));
        edges.filter(|&(_, to)| to != rank).map(|(edge, to)| (edge, vec![to])).collect()
    }

    /// The blocks that a rank gets from others, each with its source, in ascending order.
    pub(crate) fn arriving(&self, rank: usize) -> Vec<(usize, usize)> {
        let edges = self.graph.incoming(rank).iter().map(|&edge| (edge, self.graph.edge(edge).from));
        let block = |(edge, from)| (if self.gathers { from } else { edge }, from);
        let mut blocks: Vec<_> = edges.map(block).filter(|&(_, from)| from != rank).collect();
        blocks.sort_unstable();
        blocks.dedup();
        blocks
    }

    /// Where blocks are on a rank.
    pub(crate) fn post(&self, me: usize) -> Post<'_> {
        let mut first = Vec::new();
        if self.gathers {
            first = self.graph.sources(me).enumerate().map(|(position, from)| (from, position)).collect();
            first.sort_unstable();
            first.dedup_by_key(|(from, _)| *from);
        }
        Post { traffic: self, me, first }
    }

    /// How to make rounds of movements, in which blocks for the rank itself are missing.
    fn recipe(self, problem: &Problem, rounds: impl Fn(&Post) -> Vec<Round> + Send + Sync + 'static) -> Recipe {
        let make = move |me| {
            let post = self.post(me);
            let mut rounds = rounds(&post);
            rounds.retain(|round| !round.is_empty());
            post.finish(&mut rounds);
            rounds
        };
        Recipe { blocks: problem.blocks().unwrap_or(0), make: Box::new(make) }
    }
}

/// A rank, and where blocks are in its memory.
pub(crate) struct Post<'a> {
    traffic: &'a Traffic,
    pub(crate) me: usize,
    /// Of an allgather: by source, the first of the positions that its block goes to.
    first: Vec<(usize, usize)>,
}

impl Post<'_> {
    /// Where some blocks are.
    pub(crate) fn spans(&self, blocks: impl IntoIterator<Item = usize>) -> InlineVec<Span> {
        let mut spans = InlineVec::new();
        blocks.into_iter().for_each(|block| push_span(&mut spans, self.span(block)));
        spans
    }

    fn span(&self, block: usize) -> Span {
        if self.traffic.gathers && block == self.me {
            return Span::input(0, 1);
        }
        if self.traffic.gathers {
            let wanted = self.first.binary_search_by_key(&block, |(from, _)| *from);
            return wanted.map_or(Span::scratch(block, 1), |at| Span::output(self.first[at].1, 1));
        }
        let edge = self.traffic.graph.edge(block);
        match () {
            _ if edge.from == self.me => Span::input(edge.out, 1),
            _ if edge.to == self.me => Span::output(edge.into, 1),
            _ => Span::scratch(block, 1),
        }
    }

    /// What a rank has for itself, and blocks that it gets along several edges.
    fn finish(&self, rounds: &mut Vec<Round>) {
        let (graph, me) = (&self.traffic.graph, self.me);
        let mut copies = Vec::new();
        for (position, &number) in graph.incoming(me).iter().enumerate() {
            let edge = graph.edge(number);
            let from = match (edge.from == me, self.traffic.gathers) {
                (true, true) => Span::input(0, 1),
                (true, false) => Span::input(edge.out, 1),
                (false, true) => self.span(edge.from),
                (false, false) => continue,
            };
            if from != Span::output(position, 1) {
                copies.push((from, Span::output(position, 1)));
            }
        }
        if !copies.is_empty() && rounds.is_empty() {
            rounds.push(Round::default());
        }
        if let Some(last) = rounds.last_mut() {
            copies.into_iter().for_each(|(from, to)| last.copy(from, to));
        }
    }
}

/// Ascending, each once.
fn sorted(mut blocks: Vec<usize>) -> Vec<usize> {
    blocks.sort_unstable();
    blocks.dedup();
    blocks
}
