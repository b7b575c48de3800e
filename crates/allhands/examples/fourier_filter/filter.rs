//! The Fourier filter of section 6 of Jocksch et al. (2021), as far as it communicates.
//!
//! A field lies in planes around a torus, some on each rank. Of its toroidal Fourier modes two are kept. Every rank transforms its own
//! planes into these two modes; a **reduce_scatter** adds up what the ranks have and leaves each mode with one rank, which solves for it; an
//! **allgatherv** gives the results to all ranks, and each transforms them back onto its planes.
//!
//! ```text
//! planes of rank 0 ──┐                      ┌── mode 1 on rank p-2: solve ──┐                  ┌── planes of rank 0
//!        ...         ├──► reduce_scatter ──►┤                               ├──► allgatherv ──►┤        ...
//! planes of rank p-1 ┘                      └── mode 2 on rank p-1: solve ──┘                  └── planes of rank p-1
//! ```
//!
//! A mode has 11 poloidal modes (the paper's Δm = 5) at 512 + 2 radial coefficients, complex numbers of 16 bytes: 90,464 bytes, the size that the
//! paper prints. All other ranks' blocks are empty. The modes lie on the last two ranks, which is the paper's worst order, sorted by
//! size; with `order=sizes` the algorithm reorders the ranks so that small messages are paired with large ones.
//!
//! What is left out: the transform in poloidal direction, which needs no communication, and the field solver, here a factor.

use std::time::Instant;

use allhands::{Comm, Op, Options, Plan, Result};

/// Complex values of a mode in a plane.
pub(crate) const VALUES: usize = 11 * (512 + 2);
/// Numbers of a mode, real and imaginary parts in turns.
pub(crate) const NUMBERS: usize = 2 * VALUES;
/// Toroidal modes that are kept; 0 and 3 are in the field too, and must go.
const KEPT: [usize; 2] = [1, 2];
const PRESENT: [usize; 4] = [0, 1, 2, 3];
/// Planes on each rank: with one rank already enough to tell the modes apart.
const PLANES: usize = 4;
/// What the field solver makes of every mode.
const SOLVER: f64 = 0.5;

/// Who carries the messages of a run.
pub(crate) const REORDERED: &str = "reordered";
pub(crate) const AS_RANKED: &str = "not reordered";
pub(crate) const NATIVE: &str = "the MPI's own";

/// Microseconds of each run, the slowest rank's.
pub(crate) struct Times {
    /// Who.
    pub(crate) name: &'static str,
    /// By run.
    pub(crate) reduce_scatter: Vec<f64>,
    /// By run.
    pub(crate) allgatherv: Vec<f64>,
}

/// How many numbers each rank has: two modes on the last ranks, nothing elsewhere.
pub(crate) fn counts(ranks: usize) -> Vec<usize> {
    let mut counts = vec![0; ranks];
    counts[ranks - 1] += NUMBERS;
    counts[ranks.saturating_sub(2)] += NUMBERS;
    counts
}

/// Filters so many times in each way, by turns, and checks every result; with `native` also by the MPI library's own collectives.
/// Gives the same to all ranks.
pub(crate) fn measure(comm: &Comm, runs: usize, native: bool) -> Result<Vec<Times>> {
    let mut ways = vec![Way::new(comm, AS_RANKED, "cyclic-shift", "bruck")?];
    ways.push(Way::new(comm, REORDERED, "cyclic-shift:order=sizes", "bruck:order=sizes")?);
    if native {
        ways.push(Way::new(comm, NATIVE, "mpi", "mpi")?);
    }
    let field = Field::new(comm.rank(), comm.size());
    for run in 0..=runs {
        for turn in 0..ways.len() {
            let way = (run + turn) % ways.len();
            let times = ways[way].filter(comm, &field)?;
            // The first run of each warms up.
            if run > 0 {
                ways[way].times.extend(times);
            }
        }
    }
    ways.into_iter().map(|way| way.slowest(comm)).collect()
}

/// Plans for one way to carry the messages, and how long this rank took: reduce_scatter and allgatherv in turns.
struct Way {
    name: &'static str,
    add: Plan<f64>,
    spread: Plan<f64>,
    /// What this rank has of the modes, and all of them: memory that is there before time counts.
    modes: Vec<f64>,
    all: Vec<f64>,
    times: Vec<f64>,
}

impl Way {
    fn new(comm: &Comm, name: &'static str, reduce_scatter: &str, allgatherv: &str) -> Result<Way> {
        let counts = counts(comm.size());
        let add = comm.reduce_scatter_plan_with(&counts, Op::sum(), &Options::new().algorithm(reduce_scatter))?;
        let spread = comm.allgatherv_plan_with(&counts, &Options::new().algorithm(allgatherv))?;
        let (modes, all) = (vec![0.0; counts[comm.rank()]], vec![0.0; KEPT.len() * NUMBERS]);
        Ok(Way { name, add, spread, modes, all, times: Vec::new() })
    }

    /// One filter: microseconds of both collectives.
    fn filter(&mut self, comm: &Comm, field: &Field) -> Result<[f64; 2]> {
        let partial = field.forward();
        self.modes.fill(f64::NAN);
        self.all.fill(f64::NAN);
        comm.barrier()?;
        let begun = Instant::now();
        self.add.run(&partial, &mut self.modes)?;
        let added = begun.elapsed();
        self.modes.iter_mut().for_each(|number| *number *= SOLVER);
        comm.barrier()?;
        let begun = Instant::now();
        self.spread.run(&self.modes, &mut self.all)?;
        let spread = begun.elapsed();
        // Ranks may share cores: nobody computes while others still communicate.
        comm.barrier()?;
        field.check(&field.backward(&self.all));
        Ok([added, spread].map(|time| time.as_secs_f64() * 1e6))
    }

    fn slowest(mut self, comm: &Comm) -> Result<Times> {
        comm.allreduce_in_place(&mut self.times, Op::max())?;
        let of = |first: usize| self.times.iter().skip(first).step_by(2).copied().collect();
        Ok(Times { name: self.name, reduce_scatter: of(0), allgatherv: of(1) })
    }
}

/// The planes of one rank, each with its values, complex numbers in two parts.
struct Field {
    /// This rank's first plane, and how many there are on all ranks.
    first: usize,
    all: usize,
    planes: Vec<Vec<f64>>,
}

impl Field {
    fn new(rank: usize, ranks: usize) -> Field {
        let (first, all) = (rank * PLANES, ranks * PLANES);
        let plane = |index: usize| superposed(&PRESENT, first + index, all, 1.0, amplitude);
        Field { first, all, planes: (0..PLANES).map(plane).collect() }
    }

    /// What this rank's planes have in each mode that is kept.
    fn forward(&self) -> Vec<f64> {
        let mut modes = vec![0.0; KEPT.len() * NUMBERS];
        for (index, plane) in self.planes.iter().enumerate() {
            for (mode, sums) in KEPT.into_iter().zip(modes.chunks_exact_mut(NUMBERS)) {
                let (cos, sin) = turned(mode, self.first + index, self.all);
                let share = 1.0 / self.all as f64;
                for (value, sum) in plane.chunks_exact(2).zip(sums.chunks_exact_mut(2)) {
                    sum[0] += share * (value[0] * cos + value[1] * sin);
                    sum[1] += share * (value[1] * cos - value[0] * sin);
                }
            }
        }
        modes
    }

    /// This rank's planes from all modes that are kept.
    fn backward(&self, modes: &[f64]) -> Vec<Vec<f64>> {
        let plane = |index: usize| {
            superposed(&KEPT, self.first + index, self.all, 1.0, |mode, value| {
                let place = KEPT.iter().position(|kept| *kept == mode).unwrap_or(0) * NUMBERS + 2 * value;
                (modes[place], modes[place + 1])
            })
        };
        (0..PLANES).map(plane).collect()
    }

    /// Nothing but the kept modes, solved, may be in the filtered planes.
    fn check(&self, filtered: &[Vec<f64>]) {
        for (index, plane) in filtered.iter().enumerate() {
            let expected = superposed(&KEPT, self.first + index, self.all, SOLVER, amplitude);
            let right = |(value, expected): (&f64, &f64)| (value - expected).abs() <= 1e-9;
            let wrong = plane.iter().zip(&expected).position(|pair| !right(pair));
            assert_eq!(wrong, None, "plane {} is filtered wrongly from there on", self.first + index);
        }
    }
}

/// A plane as the sum of modes, each turned by as much as it turns up to that plane.
fn superposed(
    modes: &[usize],
    plane: usize,
    planes: usize,
    factor: f64,
    amplitude: impl Fn(usize, usize) -> (f64, f64),
) -> Vec<f64> {
    let mut values = vec![0.0; NUMBERS];
    for &mode in modes {
        let (cos, sin) = turned(mode, plane, planes);
        for (index, value) in values.chunks_exact_mut(2).enumerate() {
            let (real, imaginary) = amplitude(mode, index);
            value[0] += factor * (real * cos - imaginary * sin);
            value[1] += factor * (real * sin + imaginary * cos);
        }
    }
    values
}

/// Cosine and sine of the angle of a mode in a plane.
fn turned(mode: usize, plane: usize, planes: usize) -> (f64, f64) {
    let angle = std::f64::consts::TAU * (mode * plane % planes) as f64 / planes as f64;
    (angle.cos(), angle.sin())
}

/// The field that is made up: another number for every mode and value.
fn amplitude(mode: usize, value: usize) -> (f64, f64) {
    let seed = (mode * 7919 + value * 31) % 1009;
    (seed as f64 / 1009.0, 1.0 - (seed * 13 % 1009) as f64 / 1009.0)
}

/// The value below which a share of the times lies.
pub(crate) fn quantile(times: &[f64], share: f64) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(((sorted.len() - 1) as f64 * share).round() as usize).copied().unwrap_or(f64::NAN)
}
