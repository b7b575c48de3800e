//! `liballhands_preload.so`: MPI's collectives under programs that nobody has to change.
//!
//! Preloaded, it stands before the MPI of the program, whichever that is: its functions have MPI's names, `MPI_` and `PMPI_`
//! (through which Open MPI's Fortran comes), and either serve a call or hand it to the MPI's own function. It links no MPI: the one that
//! the program has loaded is found at run time, and its functions are called by the addresses that they have there.
//!
//! **Which calls are ours** is decided from what MPI guarantees to be alike on every rank: the collective, the operation, the
//! element type of a reduction, and the bytes that its arguments amount to. Counts and datatypes of what is only moved may differ
//! between ranks, and so may the memory: bytes that do not lie together are packed, by this rank alone.
//!
//! **Nothing happens** before `MPI_Init` and after `MPI_Finalize`, or with `ALLHANDS=off`. A communicator of ours is made for the
//! world in `MPI_Init`, for others where they first have a collective to be served, and ends with them: MPI tells, by an attribute.
//! `requests` says what non-blocking and persistent collectives need besides.
//!
//! **Layers**, each of which knows only those before it: `allhands-call`, a crate of its own, reads what a call asks for; `job` is
//! what ranks have agreed on; `observe` are those who want to know of calls; `groups` are communicators, their plans, and who serves a
//! call; `requests` are the collectives that return before they are through; `interpose` are the exported functions.

mod groups;
mod interpose;
mod job;
mod observe;
mod requests;
