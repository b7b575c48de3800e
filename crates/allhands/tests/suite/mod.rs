//! Cases of collectives, how each is run, and what must come out: the same on thread ranks and on MPI.
//!
//! `tests/conformance.rs` makes a world of thread ranks for every case; `examples/conformance.rs` serves many cases inside one
//! running job, whatever its ranks are.

mod barrier;
pub(crate) mod case;
pub(crate) mod job;
#[allow(dead_code)] // only jobs of MPI ranks can
pub(crate) mod joins;
#[allow(dead_code)] // only jobs of MPI ranks can
pub(crate) mod library;
#[allow(dead_code)] // only jobs of MPI ranks learn
pub(crate) mod one_offs;
pub(crate) mod player;
pub(crate) mod sample;
mod seats;
