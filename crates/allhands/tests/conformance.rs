//! Every algorithm of every collective on thread ranks equals a naive reference, bit for bit: random machines, counts (unequal,
//! zero), types and operations; in place or not; blocking, non-blocking with interleaved tests, persistent.

use allhands::kernels::{Element, Pair};
use allhands::{Comm, Op, Options, Plan, Result, Topology};
use allhands_schedule::{Algorithm, Choice, Collective, Problem, Reduction, algorithms};

/// A small generator: the tests are the same on every machine.
#[derive(Clone)]
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % limit.max(1)
    }

    fn pick<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())].clone()
    }
}

/// Elements that any order of additions leaves exact.
trait Sample: Element + PartialEq + std::fmt::Debug {
    fn sample(seed: usize) -> Self;
}

macro_rules! samples {
    ($($type:ty),*) => { $(impl Sample for $type {
        fn sample(seed: usize) -> $type { (seed.wrapping_mul(2654435761) >> 7 & 63) as $type }
    })* };
}
samples!(u8, i8, i16, u16, i32, u32, i64, u64, f32, f64);

impl Sample for half::f16 {
    fn sample(seed: usize) -> half::f16 {
        half::f16::from_f32(f32::sample(seed))
    }
}

impl Sample for num_complex::Complex<f32> {
    fn sample(seed: usize) -> num_complex::Complex<f32> {
        num_complex::Complex::new(f32::sample(seed), f32::sample(seed + 1))
    }
}

impl Sample for bool {
    fn sample(seed: usize) -> bool {
        u8::sample(seed) % 2 == 1
    }
}

impl Sample for Pair<f64> {
    fn sample(seed: usize) -> Pair<f64> {
        Pair { value: f64::sample(seed) % 4.0, index: i32::sample(seed / 3) }
    }
}

/// The least value, and the lowest index at which it is found.
fn min_loc(left: Pair<f64>, right: Pair<f64>) -> Pair<f64> {
    match left.value.total_cmp(&right.value) {
        std::cmp::Ordering::Less => left,
        std::cmp::Ordering::Greater => right,
        std::cmp::Ordering::Equal => Pair { value: left.value, index: left.index.min(right.index) },
    }
}

#[derive(Clone)]
struct Case {
    topology: Topology,
    collective: Collective,
    algorithm: String,
    root: usize,
    /// One for each block, or one for all.
    counts: Vec<usize>,
    commutative: bool,
}

fn topology(random: &mut Random, most: usize) -> Topology {
    let shape = match random.below(4) {
        0 => Topology::flat(1 + random.below(most)).unwrap(),
        1 => Topology::regular(1 + random.below(6), 1 + random.below(5)).unwrap(),
        2 => Topology::uneven(&(0..1 + random.below(5)).map(|_| 1 + random.below(6)).collect::<Vec<_>>()).unwrap(),
        _ => Topology::nested(&[1 + random.below(3), 1 + random.below(3), 1 + random.below(3)]).unwrap(),
    };
    if random.below(3) == 0 { shape.cyclic() } else { shape }
}

/// `None` where the algorithm does not serve the machine that was drawn.
fn case(random: &mut Random, collective: Collective, algorithm: &'static Algorithm, commutative: bool) -> Option<Case> {
    let topology = topology(random, 32);
    let p = topology.ranks();
    let size = random.pick(&[0, 1, 2, 3, 8, 33, 257, 700]);
    let counts = match collective {
        Collective::Allgatherv | Collective::ReduceScatter => (0..p).map(|_| random.below(size + 2)).collect(),
        Collective::Alltoallv => (0..p * p).map(|_| random.below(size.min(40) + 2)).collect(),
        Collective::Alltoall => vec![size.min(257)],
        Collective::Barrier => vec![0],
        _ => vec![size],
    };
    let root = if collective.rooted() { random.below(p) } else { 0 };
    let reduction = Reduction { commutative, identical: false };
    let problem = Problem::new(collective, topology.clone()).with_root(root).unwrap().with_reduction(reduction);
    let choice = random.pick(&Choice::variants(algorithm, &problem));
    choice.prepare(&problem).ok()?;
    Some(Case { topology, collective, algorithm: choice.to_string(), root, counts, commutative })
}

impl Case {
    fn plan<T: Element>(&self, comm: &Comm, op: Op<T>) -> Result<Plan<T>> {
        let options = Options::new().algorithm(&self.algorithm).identical(false);
        let (count, p, me) = (self.counts[0], comm.size(), comm.rank());
        match self.collective {
            Collective::Allgather => comm.allgather_plan_with(count, &options),
            Collective::Allgatherv => comm.allgatherv_plan_with(&self.counts, &options),
            Collective::Alltoall => comm.alltoall_plan_with(count, &options),
            Collective::Alltoallv => comm.alltoallv_plan_with(&self.counts[me * p..(me + 1) * p], &options),
            Collective::Allreduce => comm.allreduce_plan_with(count, op, &options),
            Collective::ReduceScatter => comm.reduce_scatter_plan_with(&self.counts, op, &options),
            Collective::ReduceScatterBlock => comm.reduce_scatter_block_plan_with(count, op, &options),
            Collective::Bcast => comm.bcast_plan_with(count, self.root, &options),
            Collective::Reduce => comm.reduce_plan_with(count, op, self.root, &options),
            Collective::Barrier => unreachable!("a barrier moves nothing"),
        }
    }

    /// What every rank passes.
    fn input<T: Sample>(&self, rank: usize, run: usize) -> Vec<T> {
        let p = self.topology.ranks();
        let count = self.counts[0];
        let len = match self.collective {
            Collective::Allgatherv => self.counts[rank],
            Collective::Alltoall | Collective::ReduceScatterBlock => count * p,
            Collective::Alltoallv => self.counts[rank * p..(rank + 1) * p].iter().sum(),
            Collective::ReduceScatter => self.counts.iter().sum(),
            Collective::Bcast if rank != self.root => 0,
            _ => count,
        };
        (0..len).map(|index| T::sample(rank * 7919 + index * 31 + run * 104729)).collect()
    }

    /// What every rank should get.
    fn wanted<T: Sample>(&self, rank: usize, run: usize, combine: impl Fn(T, T) -> T) -> Vec<T> {
        let p = self.topology.ranks();
        let inputs: Vec<Vec<T>> = (0..p).map(|other| self.input(other, run)).collect();
        let reduced = || -> Vec<T> {
            let column =
                |index: usize| inputs[1..].iter().fold(inputs[0][index], |left, input| combine(left, input[index]));
            (0..inputs[0].len()).map(column).collect()
        };
        let count = self.counts[0];
        match self.collective {
            Collective::Allgather | Collective::Allgatherv => inputs.concat(),
            Collective::Alltoall => {
                inputs.iter().flat_map(|input| input[rank * count..(rank + 1) * count].to_vec()).collect()
            }
            Collective::Alltoallv => {
                let part = |source: usize| {
                    let row = &self.counts[source * p..(source + 1) * p];
                    let start: usize = row[..rank].iter().sum();
                    inputs[source][start..start + row[rank]].to_vec()
                };
                (0..p).flat_map(part).collect()
            }
            Collective::Allreduce => reduced(),
            Collective::ReduceScatter => {
                let start: usize = self.counts[..rank].iter().sum();
                reduced()[start..start + self.counts[rank]].to_vec()
            }
            Collective::ReduceScatterBlock => reduced()[rank * count..(rank + 1) * count].to_vec(),
            Collective::Bcast => inputs[self.root].clone(),
            Collective::Reduce if rank == self.root => reduced(),
            Collective::Reduce | Collective::Barrier => vec![],
        }
    }

    /// The input where it goes when it shares a buffer with the output.
    fn in_place<T: Sample>(&self, rank: usize, input: &[T], output: usize) -> Vec<T> {
        let mut buffer = vec![T::sample(1); input.len().max(output)];
        let start = match self.collective {
            Collective::Allgather => rank * input.len(),
            Collective::Allgatherv => self.counts[..rank].iter().sum(),
            _ => 0,
        };
        buffer[start..start + input.len()].copy_from_slice(input);
        buffer
    }

    fn check<T: Sample>(&self, op: Op<T>, combine: impl Fn(T, T) -> T + Sync + Copy) {
        self.check_runs(7, op, combine);
    }

    fn check_runs<T: Sample>(&self, runs: usize, op: Op<T>, combine: impl Fn(T, T) -> T + Sync + Copy) {
        let Case { topology, collective, algorithm, counts, root, .. } = self;
        let say = || format!("{collective} {algorithm} on {topology} with {counts:?}, root {root}");
        let outcome = allhands::threads(topology.clone(), |comm| {
            let me = comm.rank();
            let mut plan = self.plan(comm, op.clone())?;
            for run in 0..runs {
                let (input, wanted) = (self.input::<T>(me, run), self.wanted(me, run, combine));
                let mut output = vec![T::sample(3); wanted.len()];
                let mut buffer = self.in_place(me, &input, wanted.len());
                match run % 5 {
                    0 | 3 => plan.run(&input, &mut output)?,
                    1 => {
                        plan.run_in_place(&mut buffer)?;
                        output.copy_from_slice(&buffer[..wanted.len()]);
                    }
                    2 => {
                        let mut pending = plan.start(&input, &mut output)?;
                        for _ in 0..me % 3 {
                            pending.test()?;
                        }
                        pending.wait()?;
                    }
                    _ => {
                        plan.start_in_place(&mut buffer)?.wait()?;
                        output.copy_from_slice(&buffer[..wanted.len()]);
                    }
                }
                assert_eq!(output, wanted, "{}, rank {me}, run {run}", say());
            }
            Ok(())
        });
        outcome.unwrap_or_else(|error| panic!("{}: {error}", say()));
    }
}

/// Maps x -> m x + c modulo 2^32, packed: composing them is associative and does not commute.
fn compose(first: u64, second: u64) -> u64 {
    let parts = |map: u64| ((map >> 32) as u32, map as u32);
    let ((m1, c1), (m2, c2)) = (parts(first), parts(second));
    u64::from(m1.wrapping_mul(m2)) << 32 | u64::from(c1.wrapping_mul(m2).wrapping_add(c2))
}

fn run_case(case: &Case, random: &mut Random) {
    if !case.commutative {
        return case.check::<u64>(Op::user(false, compose), compose);
    }
    match random.below(16) {
        0 => case.check::<i32>(Op::sum(), i32::wrapping_add),
        1 => case.check::<u8>(Op::sum(), u8::wrapping_add),
        2 => case.check::<i16>(Op::product(), i16::wrapping_mul),
        3 => case.check::<u64>(Op::bit_xor(), |a, b| a ^ b),
        4 => case.check::<i64>(Op::min(), i64::min),
        5 => case.check::<f64>(Op::sum(), |a, b| a + b),
        6 => case.check::<f32>(Op::max(), f32::max),
        7 => case.check::<u16>(Op::bit_or(), |a, b| a | b),
        8 => case.check::<i8>(Op::max(), i8::max),
        9 => case.check::<u32>(Op::logical_and(), |a, b| u32::from(a != 0 && b != 0)),
        11 => case.check::<half::f16>(Op::sum(), |a, b| a + b),
        12 => case.check::<num_complex::Complex<f32>>(Op::sum(), |a, b| a + b),
        13 => case.check::<bool>(Op::logical_xor(), |a, b| a != b),
        14 => case.check::<Pair<f64>>(Op::min_loc(), min_loc),
        10 => case.check::<f64>(Op::user(true, |a, b| a + b), |a, b| a + b),
        _ => case.check::<i64>(Op::sum(), i64::wrapping_add),
    }
}

#[test]
fn every_algorithm_equals_the_reference() {
    let mut random = Random(2026);
    for collective in Collective::ALL.into_iter().filter(|collective| *collective != Collective::Barrier) {
        for algorithm in algorithms(collective) {
            let mut served = 0;
            for _ in 0..40 {
                if let Some(case) = case(&mut random, collective, algorithm, true) {
                    run_case(&case, &mut random);
                    served += 1;
                }
            }
            assert!(served > 4, "{collective} {} was hardly served", algorithm.name);
        }
    }
}

#[test]
fn a_plan_can_be_restarted_a_hundred_times() {
    let mut random = Random(100);
    for collective in Collective::ALL.into_iter().filter(|collective| *collective != Collective::Barrier) {
        for algorithm in algorithms(collective) {
            let mut cases =
                std::iter::repeat_with(|| case(&mut random, collective, algorithm, true)).take(60).flatten();
            let case = cases.find(|case| case.topology.ranks() > 1).expect("a machine it serves");
            case.check_runs::<u32>(100, Op::sum(), u32::wrapping_add);
        }
    }
}

#[test]
fn operations_that_do_not_commute_are_combined_in_rank_order() {
    let mut random = Random(7);
    let reductions =
        [Collective::Allreduce, Collective::ReduceScatter, Collective::ReduceScatterBlock, Collective::Reduce];
    for collective in reductions {
        let mut served = 0;
        for algorithm in algorithms(collective) {
            for _ in 0..30 {
                if let Some(case) = case(&mut random, collective, algorithm, false) {
                    run_case(&case, &mut random);
                    served += 1;
                }
            }
        }
        assert!(served > 20, "{collective}");
    }
}

#[test]
fn every_barrier_waits_for_everybody() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    let mut random = Random(3);
    for algorithm in algorithms(Collective::Barrier) {
        for _ in 0..40 {
            let Some(case) = case(&mut random, Collective::Barrier, algorithm, true) else { continue };
            let (came, p) = (AtomicUsize::new(0), case.topology.ranks());
            let barriers = allhands::threads(case.topology.clone(), |comm| {
                let mut plan = comm.barrier_plan_with(&Options::new().algorithm(&case.algorithm))?;
                for round in 1..=20 {
                    came.fetch_add(1, Ordering::SeqCst);
                    plan.run(&[], &mut [])?;
                    assert!(came.load(Ordering::SeqCst) >= round * p, "{} on {}", case.algorithm, case.topology);
                }
                Ok(())
            });
            barriers.unwrap();
        }
    }
}
