//! What goes into a collective and what must come out of it: small whole numbers, whose sums are exact in every order.

use std::sync::Arc;

use allhands::{Comm, Op, Options, Plan};
use allhands_schedule::{Collective, Graph};

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
    collective: Collective,
    comm: &Comm,
    count: usize,
    options: &Options,
) -> allhands::Result<Plan<T>> {
    let counts = || vec![count; comm.size()];
    match collective {
        Collective::Allgather => comm.allgather_plan_with(count, options),
        Collective::Allgatherv => comm.allgatherv_plan_with(&counts(), options),
        Collective::Alltoall => comm.alltoall_plan_with(count, options),
        Collective::Alltoallv => comm.alltoallv_plan_with(&counts(), options),
        Collective::Allreduce => comm.allreduce_plan_with(count, Op::sum(), options),
        Collective::ReduceScatter => comm.reduce_scatter_plan_with(&counts(), Op::sum(), options),
        Collective::ReduceScatterBlock => comm.reduce_scatter_block_plan_with(count, Op::sum(), options),
        Collective::Bcast => comm.bcast_plan_with(count, 0, options),
        Collective::Reduce => comm.reduce_plan_with(count, Op::sum(), 0, options),
        Collective::Gather => comm.gather_plan_with(count, 0, options),
        Collective::Gatherv => comm.gatherv_plan_with(count, 0, options),
        Collective::Scatter => comm.scatter_plan_with(count, 0, options),
        Collective::Scatterv => comm.scatterv_plan_with(count, 0, options),
        Collective::Scan => comm.scan_plan_with(count, Op::sum(), options),
        Collective::Exscan => comm.exscan_plan_with(count, Op::sum(), options),
        Collective::NeighborAllgather => comm.neighbor_allgather_plan_with(&square(comm.size()), count, options),
        Collective::NeighborAllgatherv => comm.neighbor_allgatherv_plan_with(&square(comm.size()), &counts(), options),
        Collective::NeighborAlltoall => comm.neighbor_alltoall_plan_with(&square(comm.size()), count, options),
        Collective::NeighborAlltoallv => {
            let graph = square(comm.size());
            comm.neighbor_alltoallv_plan_with(&graph, &vec![count; graph.edges()], options)
        }
        Collective::Barrier => T::barrier(comm, options),
    }
}

/// What a rank gives.
pub(super) fn input<T: Value>(collective: Collective, ranks: usize, rank: usize, count: usize) -> Vec<T> {
    let len = match collective.family() {
        Collective::Alltoall | Collective::ReduceScatter => count * ranks,
        Collective::Bcast | Collective::Scatter if rank != 0 => 0,
        Collective::Scatter => count * ranks,
        Collective::NeighborAlltoall => count * square(ranks).outgoing(rank).len(),
        Collective::Barrier => 0,
        _ => count,
    };
    (0..len).map(|index| T::of(given(rank, index))).collect()
}

/// What it must get.
pub(super) fn wanted<T: Value>(collective: Collective, ranks: usize, me: usize, count: usize) -> Vec<T> {
    let block = |rank: usize, first: usize| (first..first + count).map(move |index| T::of(given(rank, index)));
    let sum_of = |ranks: usize, first: usize| -> Vec<T> {
        (first..first + count).map(|index| T::of((0..ranks).map(|rank| given(rank, index)).sum())).collect()
    };
    let sum = |first: usize| sum_of(ranks, first);
    match collective.family() {
        Collective::Allgather => (0..ranks).flat_map(|rank| block(rank, 0)).collect(),
        Collective::Alltoall => (0..ranks).flat_map(|rank| block(rank, me * count)).collect(),
        Collective::Allreduce => sum(0),
        Collective::ReduceScatter => sum(me * count),
        Collective::Bcast => block(0, 0).collect(),
        Collective::Reduce if me == 0 => sum(0),
        Collective::Gather if me == 0 => (0..ranks).flat_map(|rank| block(rank, 0)).collect(),
        Collective::Scatter => block(0, me * count).collect(),
        Collective::Scan => sum_of(me + 1, 0),
        Collective::Exscan if me > 0 => sum_of(me, 0),
        Collective::NeighborAllgather => square(ranks).sources(me).flat_map(|rank| block(rank, 0)).collect(),
        Collective::NeighborAlltoall => {
            let graph = square(ranks);
            let edges = graph.incoming(me).iter().map(|&edge| graph.edge(edge));
            edges.flat_map(|edge| block(edge.from, edge.out * count)).collect()
        }
        _ => vec![],
    }
}

/// Who talks to whom in a neighbourhood.
fn square(ranks: usize) -> Arc<Graph> {
    Arc::new(Graph::square(ranks))
}

fn given(rank: usize, index: usize) -> usize {
    rank * 3 + index % 5
}
