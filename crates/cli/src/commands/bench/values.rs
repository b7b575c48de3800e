//! What goes into a collective and what must come out of it: small whole numbers, whose sums are exact in every order.

use std::sync::Arc;

use allhands::{Comm, Op, Options, Plan};
use allhands_schedule::{Collective, Graph, Problem, Topology};

/// What is called: a collective, from or to a root, among neighbours.
#[derive(Clone)]
pub(in crate::commands) struct Called {
    pub(in crate::commands) collective: Collective,
    root: usize,
    /// Who talks to whom; neighbours on a square unless given.
    graph: Option<Arc<Graph>>,
}

impl Called {
    /// From or to rank 0.
    pub(in crate::commands) fn new(collective: Collective) -> Called {
        Called { collective, root: 0, graph: None }
    }

    /// As a problem has it.
    pub(super) fn of(problem: &Problem) -> Called {
        Called { collective: problem.collective, root: problem.root, graph: problem.graph.clone() }
    }

    /// What is asked of ranks that sit like this.
    pub(super) fn problem(&self, topology: &Topology) -> Problem {
        let graph = self.collective.has_graph().then(|| self.graph(topology.ranks()));
        Problem { root: self.root, graph, ..Problem::new(self.collective, topology.clone()) }
    }

    fn graph(&self, ranks: usize) -> Arc<Graph> {
        self.graph.clone().unwrap_or_else(|| Arc::new(Graph::square(ranks)))
    }
}

/// The two element types of a bench: doubles, or bytes where the size is no multiple of eight.
pub(super) trait Value: allhands::kernels::Element + PartialEq {
    fn of(number: usize) -> Self;
    /// Another value.
    fn spoilt(self) -> Self;
    fn barrier(comm: &Comm, options: &Options) -> allhands::Result<Plan<Self>>;
}

impl Value for f64 {
    fn of(number: usize) -> f64 {
        number as f64
    }

    fn spoilt(self) -> f64 {
        -1.0 - self
    }

    fn barrier(_: &Comm, _: &Options) -> allhands::Result<Plan<f64>> {
        unreachable!("a barrier has 0 bytes, which are counted in bytes")
    }
}

impl Value for u8 {
    fn of(number: usize) -> u8 {
        number as u8
    }

    fn spoilt(self) -> u8 {
        !self
    }

    fn barrier(comm: &Comm, options: &Options) -> allhands::Result<Plan<u8>> {
        comm.barrier_plan_with(options)
    }
}

/// A plan of so many elements in each block, or in the whole vector.
pub(super) fn plan<T: Value>(
    called: &Called,
    comm: &Comm,
    count: usize,
    options: &Options,
) -> allhands::Result<Plan<T>> {
    let counts = || vec![count; comm.size()];
    let (root, graph) = (called.root, || called.graph(comm.size()));
    match called.collective {
        Collective::Allgather => comm.allgather_plan_with(count, options),
        Collective::Allgatherv => comm.allgatherv_plan_with(&counts(), options),
        Collective::Alltoall => comm.alltoall_plan_with(count, options),
        Collective::Alltoallv => comm.alltoallv_plan_with(&counts(), options),
        Collective::Allreduce => comm.allreduce_plan_with(count, Op::sum(), options),
        Collective::ReduceScatter => comm.reduce_scatter_plan_with(&counts(), Op::sum(), options),
        Collective::ReduceScatterBlock => comm.reduce_scatter_block_plan_with(count, Op::sum(), options),
        Collective::Bcast => comm.bcast_plan_with(count, root, options),
        Collective::Reduce => comm.reduce_plan_with(count, Op::sum(), root, options),
        Collective::Gather => comm.gather_plan_with(count, root, options),
        Collective::Gatherv => comm.gatherv_plan_with(count, root, options),
        Collective::Scatter => comm.scatter_plan_with(count, root, options),
        Collective::Scatterv => comm.scatterv_plan_with(count, root, options),
        Collective::Scan => comm.scan_plan_with(count, Op::sum(), options),
        Collective::Exscan => comm.exscan_plan_with(count, Op::sum(), options),
        Collective::NeighborAllgather => comm.neighbor_allgather_plan_with(&graph(), count, options),
        Collective::NeighborAllgatherv => comm.neighbor_allgatherv_plan_with(&graph(), &counts(), options),
        Collective::NeighborAlltoall => comm.neighbor_alltoall_plan_with(&graph(), count, options),
        Collective::NeighborAlltoallv => {
            let graph = graph();
            comm.neighbor_alltoallv_plan_with(&graph, &vec![count; graph.edges()], options)
        }
        Collective::Barrier => T::barrier(comm, options),
    }
}

/// What a rank gives.
pub(super) fn input<T: Value>(called: &Called, ranks: usize, rank: usize, count: usize) -> Vec<T> {
    let len = match called.collective.family() {
        Collective::Alltoall | Collective::ReduceScatter => count * ranks,
        Collective::Bcast | Collective::Scatter if rank != called.root => 0,
        Collective::Scatter => count * ranks,
        Collective::NeighborAlltoall => count * called.graph(ranks).outgoing(rank).len(),
        Collective::Barrier => 0,
        _ => count,
    };
    (0..len).map(|index| T::of(given(rank, index))).collect()
}

/// What it must get.
pub(super) fn wanted<T: Value>(called: &Called, ranks: usize, me: usize, count: usize) -> Vec<T> {
    let root = called.root;
    let block = |rank: usize, first: usize| (first..first + count).map(move |index| T::of(given(rank, index)));
    let sum_of = |ranks: usize, first: usize| -> Vec<T> {
        (first..first + count).map(|index| T::of((0..ranks).map(|rank| given(rank, index)).sum())).collect()
    };
    let sum = |first: usize| sum_of(ranks, first);
    match called.collective.family() {
        Collective::Allgather => (0..ranks).flat_map(|rank| block(rank, 0)).collect(),
        Collective::Alltoall => (0..ranks).flat_map(|rank| block(rank, me * count)).collect(),
        Collective::Allreduce => sum(0),
        Collective::ReduceScatter => sum(me * count),
        Collective::Bcast => block(root, 0).collect(),
        Collective::Reduce if me == root => sum(0),
        Collective::Gather if me == root => (0..ranks).flat_map(|rank| block(rank, 0)).collect(),
        Collective::Scatter => block(root, me * count).collect(),
        Collective::Scan => sum_of(me + 1, 0),
        Collective::Exscan if me > 0 => sum_of(me, 0),
        Collective::NeighborAllgather => called.graph(ranks).sources(me).flat_map(|rank| block(rank, 0)).collect(),
        Collective::NeighborAlltoall => {
            let graph = called.graph(ranks);
            let edges = graph.incoming(me).iter().map(|&edge| graph.edge(edge));
            edges.flat_map(|edge| block(edge.from, edge.out * count)).collect()
        }
        _ => vec![],
    }
}

fn given(rank: usize, index: usize) -> usize {
    rank * 3 + index % 5
}
