//! What a call of an MPI collective asks for: its arguments, datatypes, operations and memory.
//!
//! The preload, which gets its calls from unmodified programs, and the C API, which makes plans of the same arguments, both read
//! them here. A rank looks at its own arguments only ([`Caller`]) and comes to what MPI guarantees to be alike on every rank: a
//! [`Task`], or a [`Reason`] that all ranks have to leave the call to the MPI. What this rank alone knows, such as gaps in a
//! datatype, an input that overlaps the output or memory of a device, a task deals with by copies when it runs.
//!
//! Nothing here waits for another rank but [`Communicator::join`] and [`neighborhood`], and nothing knows who serves a call.

mod call_description;
mod collectives;
mod communicator;
pub mod counts;
mod datatype;
pub mod derived;
pub mod device;
pub mod failure;
pub mod handles;
mod layout;
pub mod locks;
mod memory;
pub mod neighborhood;
mod neighbors;
mod numbers;
mod operations;
mod reductions;
mod spare;
mod task;
mod types;

pub use call_description::CallDescription;
pub use collectives::{Caller, Receive, Send};
pub use communicator::Communicator;
pub use datatype::Datatype;
pub use failure::{Reason, Unserved};
pub use memory::{Region, overlap};
pub use neighborhood::Neighborhood;
pub use numbers::Numbers;
pub use operations::Object;
pub use task::{Direct, Outcome, Staged, Task};
pub use types::Types;

/// The examples of the project's own pages, which no published crate can hold.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
#[doc = include_str!("../../../docs/libraries.md")]
struct Pages;
