//! Collective communication that knows where ranks sit: plans, reductions and thread ranks.
//!
//! ```
//! use allhands::{Op, Topology};
//!
//! let sums = allhands::threads(Topology::regular(2, 4)?, |comm| {
//!     let mut plan = comm.allreduce_plan::<f64>(1024, Op::sum())?; // persistent: chosen and compiled once
//!     let mut x = vec![1.0; 1024];
//!     plan.run_in_place(&mut x)?;
//!     let mut all = [0; 8];
//!     comm.allgather(&[comm.rank()  as u32], &mut all)?; // one call; plans are cached by shape
//!     assert_eq!(all, [0, 1, 2, 3, 4, 5, 6, 7]);
//!     assert!(plan.explain().contains("allreduce on 8 ranks"));
//!     Ok(x[0])
//! })?;
//! assert_eq!(sums, [8.0; 8]);
//! # Ok::<(), allhands::Error>(())
//! ```

mod buffer;
#[forbid(unsafe_code)]
mod choose;
#[forbid(unsafe_code)]
mod comm;
mod company;
mod engine;
#[forbid(unsafe_code)]
mod error;
mod gate;
mod job;
pub mod kernels;
#[forbid(unsafe_code)]
mod layout;
#[forbid(unsafe_code)]
pub mod learn;
#[forbid(unsafe_code)]
mod log;
mod mpi_transport;
mod native;
mod node;
mod op;
mod plan;
#[forbid(unsafe_code)]
mod program;
mod progress;
mod rank;
pub mod raw;
mod reproducible;
mod scheduled;
mod segment_pool;
mod server;
#[forbid(unsafe_code)]
pub mod stats;
#[forbid(unsafe_code)]
mod store;
mod switch;
mod threads;
#[forbid(unsafe_code)]
mod tuning;
mod world;

pub use allhands_schedule::{Graph, Topology};
pub use choose::{Decision, Evidence, Grounds, Why, machine_file};
pub use comm::{Comm, read_schedule};
pub use error::{Error, Result};
pub use job::mpi;
pub use op::Op;
pub use plan::{Options, Pending, Plan, UnderWay};
pub use server::Server;
pub use threads::{Threads, threads};
pub use tuning::{Cell, Time, Tuning, TuningError};

/// The program that a rank would run, one instruction a line: `count` elements of `element` bytes in each block (or in the
/// whole vector of an allreduce, a bcast or a reduce), or as many units as the problem's counts say.
///
/// ```
/// use allhands_schedule::{Choice, Collective, Problem, Topology};
/// let problem = Problem::new(Collective::Allreduce, Topology::flat(2)?);
/// let choice = Choice::parse(Collective::Allreduce, "recursive-doubling")?.prepare(&problem)?;
/// let text = allhands::program_text(&choice, 0, 4, 8)?;
/// assert!(text.contains("send          to 1, 32 bytes"));
/// # Ok::<(), allhands::Error>(())
/// ```
pub fn program_text(
    prepared: &allhands_schedule::Prepared,
    rank: usize,
    count: usize,
    element: usize,
) -> Result<String> {
    let problem = prepared.problem();
    let amount = match problem.counts.is_empty() {
        true => layout::Amount::Each(count),
        false => layout::Amount::Listed(problem.counts.iter().map(|units| units.saturating_mul(count)).collect()),
    };
    let schedule = prepared.rank(rank);
    Ok(program::compile(prepared, &schedule, element, &amount, program::Buffers::Apart)?.to_string())
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
