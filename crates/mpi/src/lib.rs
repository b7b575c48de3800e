//! A thin binding to whichever MPI is there when the program runs.
//!
//! Nothing of MPI is needed to build: [`load`] finds a library (the one already in the process, the one that
//! `ALLHANDS_MPI` names, the launcher's, the system's), tells which binary interface it speaks, picks that interface's
//! [`Constants`] and binds its functions to their `PMPI_` names. [`Mpi`] then has one method per MPI call, with the error
//! code turned into [`Error::Call`].
//!
//! # One handle type for three binary interfaces
//!
//! [`Handle`] is a `usize`. Open MPI's handles are pointers and the standard interface's are pointer-wide integers, so for
//! these it is the handle. MPICH's (and Intel's) are 4-byte integers, kept here zero-extended, and this is why one set of
//! function signatures serves them too, on 64-bit little-endian Linux:
//!
//! - *By value.* Both the System V x86-64 and the AArch64 procedure call standards pass a 4-byte integer in the low half of
//!   a 64-bit register or of an 8-byte stack slot, and the callee may not rely on the upper half. A `usize` whose low half
//!   is the handle is therefore passed in the same place, and later arguments keep theirs.
//! - *By pointer.* The library reads and writes 4 bytes at the address: the low half of a little-endian `usize`. The upper
//!   half is zero before the call (every out-parameter here starts as 0) and nobody writes it, so the value read back is
//!   the handle, zero-extended.
//! - *As a result.* The upper half of the result register is undefined: [`Abi::handle`] clears it. The same holds for
//!   handles that a library or a program hands to a callback by value.
//! - *In arrays.* The stride is the library's own: [`Handles`] keeps it, and [`Abi::read_handle`] reads one through a pointer.

#[cfg(not(all(target_os = "linux", target_pointer_width = "64", target_endian = "little")))]
compile_error!("allhands-mpi passes MPI handles in a way that holds on 64-bit little-endian Linux only");

mod abi;
mod arrays;
mod collectives;
mod communicators;
mod constants;
mod datatypes;
mod environment;
mod error;
mod find;
mod functions;
mod launcher;
mod library;
mod mpi;
mod point_to_point;
mod program;
mod topologies;

pub use abi::{Abi, Handle};
pub use arrays::{Handles, Statuses};
pub use communicators::Comparison;
pub use constants::{Addresses, Constant, Constants, ErrorClasses, Integers, Ops, Predefined, Types, constants};
pub use datatypes::UserFunction;
pub use environment::ThreadLevel;
pub use error::{Class, Error, Result};
pub use find::{How, launchers_in_path};
pub use functions::{CopyFunction, DeleteFunction, Functions};
pub use launcher::{Launcher, LauncherKind};
pub use library::file_of;
pub use mpi::{Mpi, load};
pub use point_to_point::{RawStatus, Status};
pub use program::Program;
pub use topologies::Neighborhood;
