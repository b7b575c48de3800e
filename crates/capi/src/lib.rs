//! `liballhands.so`, the C API: plans on any MPI communicator, for programs that are linked with this library.
//!
//! It exports no function of MPI's: what a configure script finds in the program's MPI is what the MPI has. The preload is another library,
//! and a program may have both.
//!
//! `include/allhands.h` is made from these files by `cargo xtask header`: functions, types and their documentation are what is
//! public here. Handles of MPI are declared there as `MPI_Comm`, `MPI_Datatype` and `MPI_Op` of the program's own `mpi.h`, and
//! arrive here as words, whatever they are there: see the documentation of `allhands-mpi` for why.
//!
//! Nothing unwinds into the program, and nothing that it passes is trusted where it can be checked: plans are numbers that look
//! like pointers, so that one that was freed is known.

// The names are C's, and the functions are public for those who read them only.
#![allow(
    non_camel_case_types,
    non_upper_case_globals,
    unreachable_pub,
    clippy::missing_safety_doc,
    clippy::too_many_arguments
)]

mod abi;
mod arguments;
mod communicators;
mod error;
mod fortran;
mod functions;
mod init;
mod neighbors;
mod plan;
mod stage;
