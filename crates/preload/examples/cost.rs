//! What the preload costs, inside one job: `mpirun -n 2 allhands exec target/release/examples/cost`.
//!
//! Batches of calls take turns in an order that is shuffled alike on every rank: an 8-byte allreduce through `MPI_Allreduce` of the
//! preload beside the same through the Rust API, and calls that are passed on beside the MPI's own function called by its address.
//! An argument is the number of batches of each kind, 1000 by default. `cargo xtask bench preload` runs it with the settings that it needs.

use std::error::Error;
use std::ffi::{CStr, c_int, c_void};
use std::time::Instant;

use allhands::{Comm, Op, Plan};
use allhands_mpi::{Handle, Mpi};

type Result<T> = std::result::Result<T, Box<dyn Error>>;
type Init = unsafe extern "C" fn(*mut c_int, *mut c_void) -> c_int;
type Allreduce = unsafe extern "C" fn(*const c_void, *mut c_void, c_int, Handle, Handle, Handle) -> c_int;
type Alltoall = unsafe extern "C" fn(*const c_void, c_int, Handle, *mut c_void, c_int, Handle, Handle) -> c_int;

const BATCH: usize = 200;

fn main() -> Result<()> {
    let mpi = allhands_mpi::load()?;
    // SAFETY: MPI's function of this name, as the program's linker would find it.
    unsafe {
        std::mem::transmute::<*mut c_void, Init>(preloaded(c"MPI_Init")?)(std::ptr::null_mut(), std::ptr::null_mut())
    };
    let world = mpi.world();
    let (me, own) = (mpi.comm_rank(world)?, mpi.symbol(c"PMPI_Allreduce").ok_or("no PMPI_Allreduce")?);
    if own == preloaded(c"MPI_Allreduce")? {
        return Err("the preload is not there; run this under `allhands exec`".into());
    }
    let mut subject = Subject::new(mpi)?;
    let rounds = std::env::args().nth(1).map_or(Ok(1000), |word| word.parse())?;
    let times = subject.measure(mpi, rounds)?;
    if me == 0 {
        report(&times);
    }
    let Subject { comm, plan, .. } = subject;
    drop(plan);
    drop(comm);
    // SAFETY: as above.
    unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> c_int>(preloaded(c"MPI_Finalize")?)() };
    Ok(())
}

/// A function as a program finds it.
fn preloaded(name: &CStr) -> Result<*mut c_void> {
    // SAFETY: a name that ends with a zero.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    if address.is_null() { Err(format!("no {}", name.to_string_lossy()).into()) } else { Ok(address) }
}

/// What takes turns.
const KINDS: [&str; 7] = [
    "allreduce, 8 bytes: preload",
    "allreduce, 8 bytes: Rust API, Comm::allreduce",
    "allreduce, 8 bytes: Rust API, Plan::run",
    "allreduce on one rank: passed on",
    "allreduce on one rank: MPI's own",
    "alltoall, 8 bytes, alltoall=mpi: passed on",
    "alltoall, 8 bytes, alltoall=mpi: MPI's own",
];

struct Subject {
    comm: Comm,
    plan: Plan<f64>,
    world: Handle,
    alone: Handle,
    double: Handle,
    sum: Handle,
    allreduce: [Allreduce; 2],
    alltoall: [Alltoall; 2],
}

impl Subject {
    fn new(mpi: &Mpi) -> Result<Subject> {
        let world = mpi.world();
        // SAFETY: the world, after MPI_Init.
        let comm = unsafe { Comm::from_mpi(world)? };
        let plan = comm.allreduce_plan::<f64>(1, Op::sum())?;
        let own = |name: &CStr| mpi.symbol(name).ok_or_else(|| format!("no {}", name.to_string_lossy()));
        // SAFETY: MPI's functions of these names, whose C signatures these are.
        let (allreduce, alltoall) = unsafe {
            use std::mem::transmute;
            let allreduce = [preloaded(c"MPI_Allreduce")?, own(c"PMPI_Allreduce")?];
            let alltoall = [preloaded(c"MPI_Alltoall")?, own(c"PMPI_Alltoall")?];
            (
                allreduce.map(|address| transmute::<*mut c_void, Allreduce>(address)),
                alltoall.map(|address| transmute::<*mut c_void, Alltoall>(address)),
            )
        };
        let (double, sum) = (mpi.constants().types.double, mpi.constants().ops.sum);
        Ok(Subject { comm, plan, world, alone: mpi.comm_self(), double, sum, allreduce, alltoall })
    }

    /// Nanoseconds of a call, by kind and round: the slower rank's.
    fn measure(&mut self, mpi: &Mpi, rounds: usize) -> Result<Vec<Vec<f64>>> {
        let mut times = vec![Vec::with_capacity(rounds); KINDS.len()];
        let mut order: Vec<usize> = (0..KINDS.len()).collect();
        let mut seed = 1u64;
        for round in 0..rounds + 20 {
            for index in (1..order.len()).rev() {
                seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                order.swap(index, (seed >> 33) as usize % (index + 1));
            }
            for &kind in &order {
                mpi.barrier(self.world)?;
                let mut time = self.batch(kind)? / BATCH as f64;
                let constants = mpi.constants();
                // SAFETY: one number in place.
                unsafe {
                    let (own, at) = (mpi.in_place().cast_const(), (&raw mut time).cast());
                    mpi.allreduce(own, at, 1, constants.types.double, constants.ops.max, self.world)?;
                }
                if round >= 20 {
                    times[kind].push(time);
                }
            }
        }
        Ok(times)
    }

    fn batch(&mut self, kind: usize) -> Result<f64> {
        let (from, mut to) = ([1.0f64, 2.0], [0.0f64; 2]);
        let Subject { world, alone, double, sum, .. } = *self;
        let (source, target) = (from.as_ptr().cast(), to.as_mut_ptr().cast());
        let began = Instant::now();
        for _ in 0..BATCH {
            // SAFETY: as many numbers as the calls say.
            let code = unsafe {
                match kind {
                    0 => (self.allreduce[0])(source, target, 1, double, sum, world),
                    1 => {
                        self.comm.allreduce(&from[..1], &mut to[..1], Op::sum())?;
                        0
                    }
                    2 => {
                        self.plan.run(&from[..1], &mut to[..1])?;
                        0
                    }
                    3 | 4 => (self.allreduce[kind - 3])(source, target, 1, double, sum, alone),
                    _ => (self.alltoall[kind - 5])(source, 1, double, target, 1, double, world),
                }
            };
            if code != 0 {
                return Err("a call failed".into());
            }
        }
        Ok(began.elapsed().as_nanos() as f64)
    }
}

fn report(times: &[Vec<f64>]) {
    println!("{} batches of {BATCH} calls each, by turns; nanoseconds of a call: median (10 %, 90 %)", times[0].len());
    for (kind, times) in KINDS.iter().zip(times) {
        println!("{kind:46} {}", spread(times, 1));
    }
    let compared = |title: &str, one: usize, other: usize, relation: fn(f64, f64) -> f64, digits| {
        let all: Vec<f64> = times[one].iter().zip(&times[other]).map(|(one, other)| relation(*one, *other)).collect();
        println!("{title:60} {}", spread(&all, digits));
    };
    println!("\nround by round: median (10 %, 90 %)");
    compared("allreduce, preload / Comm::allreduce (at most 1.05)", 0, 1, |one, other| one / other, 3);
    compared("allreduce, preload / Plan::run", 0, 2, |one, other| one / other, 3);
    compared("one rank, passed on - MPI's own (at most 100 ns)", 3, 4, |one, other| one - other, 1);
    compared("alltoall=mpi, passed on - MPI's own (at most 100 ns)", 5, 6, |one, other| one - other, 1);
}

/// Median, and where the outer tenths begin.
fn spread(values: &[f64], digits: usize) -> String {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |part: f64| sorted[(part * (sorted.len() - 1) as f64).round() as usize];
    format!("{:8.digits$} ({:.digits$}, {:.digits$})", at(0.5), at(0.1), at(0.9))
}
