//! One case: a collective, an algorithm with its parameters, counts, a type and an operation; what goes in and what must come out.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use allhands::kernels::{Element, Pair};
use allhands::{Comm, Op, Options, Plan, Result, Topology};
use allhands_schedule::{Algorithm, Choice, Collective, Graph, Problem, Reduction};
use half::f16;
use num_complex::Complex;

use super::player::{Play, Player};
use super::sample::{Random, Sample, compose, min_loc};

/// A type of elements with an operation, at which only reductions look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    SumI32,
    SumU32,
    SumU8,
    ProductI16,
    XorU64,
    MinI64,
    SumF64,
    MaxF32,
    OrU16,
    MaxI8,
    AndU32,
    UserSumF64,
    SumF16,
    SumComplex,
    XorBool,
    MinLocF64,
    SumI64,
    /// The user's own, which does not commute.
    ComposeU64,
}

/// Those whose operands may be combined in any order.
const COMMUTATIVE: [Kind; 17] = [
    Kind::SumI32,
    Kind::SumU32,
    Kind::SumU8,
    Kind::ProductI16,
    Kind::XorU64,
    Kind::MinI64,
    Kind::SumF64,
    Kind::MaxF32,
    Kind::OrU16,
    Kind::MaxI8,
    Kind::AndU32,
    Kind::UserSumF64,
    Kind::SumF16,
    Kind::SumComplex,
    Kind::XorBool,
    Kind::MinLocF64,
    Kind::SumI64,
];

impl Kind {
    pub(crate) fn draw(random: &mut Random) -> Kind {
        random.pick(&COMMUTATIVE)
    }

    /// How many bytes an element has.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Kind::SumU8 | Kind::MaxI8 | Kind::XorBool => 1,
            Kind::ProductI16 | Kind::OrU16 | Kind::SumF16 => 2,
            Kind::SumI32 | Kind::SumU32 | Kind::MaxF32 | Kind::AndU32 => 4,
            Kind::MinLocF64 => size_of::<Pair<f64>>(),
            _ => 8,
        }
    }
}

#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) topology: Topology,
    pub(crate) collective: Collective,
    pub(crate) algorithm: String,
    root: usize,
    graph: Option<Arc<Graph>>,
    /// One for each block, or one for all.
    counts: Vec<usize>,
    kind: Kind,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Case { topology, collective, algorithm, root, counts, kind, .. } = self;
        write!(f, "{collective} {algorithm} on {topology} with {counts:?}, root {root}, {kind:?}")
    }
}

/// Vectors of more elements are shared out among the blocks; of fewer, they are what every block has.
const LARGE: usize = 700;

impl Case {
    /// A setting, counts of about `size` and a root; `None` where no setting that was drawn serves the machine.
    pub(crate) fn draw(
        random: &mut Random,
        topology: Topology,
        collective: Collective,
        algorithm: &'static Algorithm,
        kind: Kind,
        size: usize,
    ) -> Option<Case> {
        let p = topology.ranks();
        let block = if size > LARGE { size / p } else { size };
        let degree = random.below(6);
        let graph = collective.has_graph().then(|| Arc::new(Graph::random(p, degree, random.below(1 << 20) as u64)));
        let edges = graph.as_ref().map_or(0, |graph| graph.edges());
        let counts = match collective {
            Collective::Allgatherv | Collective::ReduceScatter | Collective::Gatherv | Collective::Scatterv => {
                (0..p).map(|_| random.below(block + 2)).collect()
            }
            Collective::NeighborAllgatherv => (0..p).map(|_| random.below(block + 2)).collect(),
            Collective::NeighborAlltoallv => (0..edges).map(|_| random.below(block + 2)).collect(),
            Collective::Alltoallv if size > LARGE => (0..p * p).map(|_| random.below(block + 2)).collect(),
            Collective::Alltoallv => (0..p * p).map(|_| random.below(size.min(40) + 2)).collect(),
            Collective::Alltoall if size <= LARGE => vec![size.min(257)],
            Collective::Barrier => vec![0],
            _ if collective.cuts() => vec![size],
            _ => vec![block],
        };
        let root = if collective.rooted() { random.below(p) } else { 0 };
        let reduction = Reduction { commutative: kind != Kind::ComposeU64, identical: false };
        let problem = Problem::new(collective, topology.clone()).with_root(root).ok()?.with_reduction(reduction);
        let problem = match &graph {
            Some(graph) => problem.with_graph(graph.clone()).ok()?,
            None => problem,
        };
        let mut choices = Choice::variants(algorithm, &problem);
        // Few settings use shared memory, and they are the ones that differ most between transports.
        if random.below(3) == 0 && choices.iter().any(shares) {
            choices.retain(shares);
        }
        let choice = random.pick(&choices);
        choice.prepare(&problem).ok()?;
        Some(Case { topology, collective, algorithm: choice.to_string(), root, graph, counts, kind })
    }

    /// The same by another algorithm.
    pub(crate) fn by(self, algorithm: &str) -> Case {
        Case { algorithm: algorithm.into(), ..self }
    }

    /// A plan for the case with everything that is needed to run it and to check what it gives.
    pub(crate) fn player(&self, comm: &Comm) -> Result<Box<dyn Play>> {
        match self.kind {
            Kind::SumI32 => self.bind::<i32>(comm, Op::sum(), i32::wrapping_add),
            Kind::SumU32 => self.bind::<u32>(comm, Op::sum(), u32::wrapping_add),
            Kind::SumU8 => self.bind::<u8>(comm, Op::sum(), u8::wrapping_add),
            Kind::ProductI16 => self.bind::<i16>(comm, Op::product(), i16::wrapping_mul),
            Kind::XorU64 => self.bind::<u64>(comm, Op::bit_xor(), |a, b| a ^ b),
            Kind::MinI64 => self.bind::<i64>(comm, Op::min(), i64::min),
            Kind::SumF64 => self.bind::<f64>(comm, Op::sum(), |a, b| a + b),
            Kind::MaxF32 => self.bind::<f32>(comm, Op::max(), f32::max),
            Kind::OrU16 => self.bind::<u16>(comm, Op::bit_or(), |a, b| a | b),
            Kind::MaxI8 => self.bind::<i8>(comm, Op::max(), i8::max),
            Kind::AndU32 => self.bind::<u32>(comm, Op::logical_and(), |a, b| u32::from(a != 0 && b != 0)),
            Kind::UserSumF64 => self.bind::<f64>(comm, Op::user(true, |a, b| a + b), |a, b| a + b),
            Kind::SumF16 => self.bind::<f16>(comm, Op::sum(), |a, b| a + b),
            Kind::SumComplex => self.bind::<Complex<f32>>(comm, Op::sum(), |a, b| a + b),
            Kind::XorBool => self.bind::<bool>(comm, Op::logical_xor(), |a, b| a != b),
            Kind::MinLocF64 => self.bind::<Pair<f64>>(comm, Op::min_loc(), min_loc),
            Kind::SumI64 => self.bind::<i64>(comm, Op::sum(), i64::wrapping_add),
            Kind::ComposeU64 => self.bind::<u64>(comm, Op::user(false, compose), compose),
        }
    }

    fn bind<T: Sample>(&self, comm: &Comm, op: Op<T>, combine: fn(T, T) -> T) -> Result<Box<dyn Play>> {
        Ok(Box::new(Player::new(self.clone(), comm.rank(), self.plan(comm, op.clone())?, op, combine)))
    }

    fn plan<T: Element>(&self, comm: &Comm, op: Op<T>) -> Result<Plan<T>> {
        let options = Options::new().algorithm(&self.algorithm).identical(false);
        let count = self.counts.first().copied().unwrap_or(0);
        match self.collective {
            Collective::Allgather => comm.allgather_plan_with(count, &options),
            Collective::Allgatherv => comm.allgatherv_plan_with(&self.counts, &options),
            Collective::Alltoall => comm.alltoall_plan_with(count, &options),
            Collective::Alltoallv => comm.alltoallv_plan_with(self.row(comm.rank()), &options),
            Collective::Allreduce => comm.allreduce_plan_with(count, op, &options),
            Collective::ReduceScatter => comm.reduce_scatter_plan_with(&self.counts, op, &options),
            Collective::ReduceScatterBlock => comm.reduce_scatter_block_plan_with(count, op, &options),
            Collective::Bcast => comm.bcast_plan_with(count, self.root, &options),
            Collective::Reduce => comm.reduce_plan_with(count, op, self.root, &options),
            Collective::Gather => comm.gather_plan_with(count, self.root, &options),
            Collective::Gatherv => comm.gatherv_plan_with(self.counts[comm.rank()], self.root, &options),
            Collective::Scatter => comm.scatter_plan_with(count, self.root, &options),
            Collective::Scatterv => comm.scatterv_plan_with(self.counts[comm.rank()], self.root, &options),
            Collective::Scan => comm.scan_plan_with(count, op, &options),
            Collective::Exscan => comm.exscan_plan_with(count, op, &options),
            Collective::NeighborAllgather => comm.neighbor_allgather_plan_with(self.graph(), count, &options),
            Collective::NeighborAllgatherv => comm.neighbor_allgatherv_plan_with(self.graph(), &self.counts, &options),
            Collective::NeighborAlltoall => comm.neighbor_alltoall_plan_with(self.graph(), count, &options),
            Collective::NeighborAlltoallv => comm.neighbor_alltoallv_plan_with(self.graph(), &self.counts, &options),
            Collective::Barrier => unreachable!("a barrier moves nothing"),
        }
    }

    /// The same collective as one call, of an algorithm that the library chooses.
    pub(crate) fn call<T: Element>(&self, comm: &Comm, input: &[T], output: &mut [T], op: Op<T>) -> Result<()> {
        match self.collective {
            Collective::Allgather => comm.allgather(input, output),
            Collective::Allgatherv => comm.allgatherv(input, output, &self.counts),
            Collective::Alltoall => comm.alltoall(input, output),
            Collective::Alltoallv => comm.alltoallv(input, self.row(comm.rank()), output),
            Collective::Allreduce => comm.allreduce(input, output, op),
            Collective::ReduceScatter => comm.reduce_scatter(input, output, &self.counts, op),
            Collective::ReduceScatterBlock => comm.reduce_scatter_block(input, output, op),
            Collective::Bcast => {
                if comm.rank() == self.root {
                    output.copy_from_slice(input);
                }
                comm.bcast(output, self.root)
            }
            Collective::Reduce => comm.reduce(input, output, op, self.root),
            Collective::Gather => comm.gather(input, output, self.root),
            Collective::Gatherv => comm.gatherv(input, output, self.root),
            Collective::Scatter => comm.scatter(input, output, self.root),
            Collective::Scatterv => comm.scatterv(input, output, self.root),
            Collective::Scan => comm.scan(input, output, op),
            Collective::Exscan => comm.exscan(input, output, op),
            Collective::NeighborAllgather => comm.neighbor_allgather(self.graph(), input, output),
            Collective::NeighborAllgatherv => comm.neighbor_allgatherv(self.graph(), input, output, &self.counts),
            Collective::NeighborAlltoall => comm.neighbor_alltoall(self.graph(), self.counts[0], input, output),
            Collective::NeighborAlltoallv => comm.neighbor_alltoallv(self.graph(), input, output, &self.counts),
            Collective::Barrier => unreachable!("a barrier moves nothing"),
        }
    }

    fn graph(&self) -> &Arc<Graph> {
        self.graph.as_ref().expect("a neighbourhood collective has a graph")
    }

    /// How many elements go along an edge.
    fn along(&self, edge: usize) -> usize {
        match self.collective {
            Collective::NeighborAllgatherv => self.counts[self.graph().edge(edge).from],
            Collective::NeighborAlltoallv => self.counts[edge],
            _ => self.counts[0],
        }
    }

    /// What a rank of an alltoallv sends to each other.
    fn row(&self, rank: usize) -> &[usize] {
        let p = self.topology.ranks();
        &self.counts[rank * p..(rank + 1) * p]
    }

    /// What a rank passes.
    pub(crate) fn input<T: Sample>(&self, rank: usize, run: usize) -> Vec<T> {
        let p = self.topology.ranks();
        let count = self.counts.first().copied().unwrap_or(0);
        let len = match self.collective {
            Collective::Allgatherv | Collective::Gatherv | Collective::NeighborAllgatherv => self.counts[rank],
            Collective::NeighborAlltoall | Collective::NeighborAlltoallv => {
                self.graph().outgoing(rank).map(|edge| self.along(edge)).sum()
            }
            Collective::Scatter | Collective::Scatterv if rank != self.root => 0,
            Collective::Alltoall | Collective::ReduceScatterBlock | Collective::Scatter => count * p,
            Collective::Alltoallv => self.row(rank).iter().sum(),
            Collective::ReduceScatter | Collective::Scatterv => self.counts.iter().sum(),
            Collective::Bcast if rank != self.root => 0,
            _ => count,
        };
        passed(rank, run, 0..len)
    }

    /// What a rank should get.
    pub(crate) fn wanted<T: Sample>(&self, rank: usize, run: usize, combine: fn(T, T) -> T) -> Vec<T> {
        let p = self.topology.ranks();
        let reduced_of = |ranks: usize, range: Range<usize>| -> Vec<T> {
            let mut reduced = passed(0, run, range.clone());
            for other in 1..ranks {
                let right = passed(other, run, range.clone());
                reduced.iter_mut().zip(right).for_each(|(left, right)| *left = combine(*left, right));
            }
            reduced
        };
        let reduced = |range: Range<usize>| reduced_of(p, range);
        let block_of = |source: usize, counts: &[usize], block: usize| -> Vec<T> {
            let start: usize = counts[..block].iter().sum();
            passed(source, run, start..start + counts[block])
        };
        let all = || (0..p).flat_map(|other| self.input::<T>(other, run)).collect();
        let count = self.counts.first().copied().unwrap_or(0);
        match self.collective {
            Collective::Allgather | Collective::Allgatherv => all(),
            Collective::NeighborAllgather | Collective::NeighborAllgatherv => {
                self.graph().sources(rank).flat_map(|source| self.input::<T>(source, run)).collect()
            }
            Collective::NeighborAlltoall | Collective::NeighborAlltoallv => {
                let block = |&edge: &usize| {
                    let source = self.graph().edge(edge).from;
                    let before =
                        (self.graph().outgoing(source).start..edge).map(|edge| self.along(edge)).sum::<usize>();
                    passed::<T>(source, run, before..before + self.along(edge))
                };
                self.graph().incoming(rank).iter().flat_map(block).collect()
            }
            Collective::Alltoall => {
                (0..p).flat_map(|source| passed::<T>(source, run, rank * count..(rank + 1) * count)).collect()
            }
            Collective::Alltoallv => (0..p).flat_map(|source| block_of(source, self.row(source), rank)).collect(),
            Collective::Allreduce => reduced(0..count),
            Collective::ReduceScatter => {
                let start: usize = self.counts[..rank].iter().sum();
                reduced(start..start + self.counts[rank])
            }
            Collective::ReduceScatterBlock => reduced(rank * count..(rank + 1) * count),
            Collective::Bcast => self.input(self.root, run),
            Collective::Reduce if rank == self.root => reduced(0..count),
            Collective::Gather | Collective::Gatherv if rank == self.root => all(),
            Collective::Scatter => passed(self.root, run, rank * count..(rank + 1) * count),
            Collective::Scatterv => block_of(self.root, &self.counts, rank),
            Collective::Scan => reduced_of(rank + 1, 0..count),
            Collective::Exscan if rank > 0 => reduced_of(rank, 0..count),
            Collective::Reduce | Collective::Gather | Collective::Gatherv => vec![],
            Collective::Exscan | Collective::Barrier => vec![],
        }
    }

    /// The input where it goes when it shares a buffer with the output.
    pub(crate) fn in_place<T: Sample>(&self, rank: usize, input: &[T], output: usize) -> Vec<T> {
        let mut buffer = vec![T::sample(1); input.len().max(output)];
        let start = match self.collective {
            Collective::Allgather => rank * input.len(),
            Collective::Allgatherv => self.counts[..rank].iter().sum(),
            Collective::Gather if rank == self.root => rank * input.len(),
            Collective::Gatherv if rank == self.root => self.counts[..rank].iter().sum(),
            _ => 0,
        };
        buffer[start..start + input.len()].copy_from_slice(input);
        buffer
    }
}

/// Some of what a rank passes to a run, whatever it passes before and after.
fn passed<T: Sample>(rank: usize, run: usize, range: Range<usize>) -> Vec<T> {
    range.map(|index| T::sample(rank * 7919 + index * 31 + run * 104729)).collect()
}

fn shares(choice: &Choice) -> bool {
    choice.parameters.get("local") == Some("shared")
}
