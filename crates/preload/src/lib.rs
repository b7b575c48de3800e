//! `liballhands.so`: MPI's collectives under programs that nobody has to change.
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

mod again;
mod agreement;
mod capi;
mod check;
mod collectives;
mod comms;
mod device;
mod entries;
mod failure;
mod handles;
mod kept;
mod layout;
mod memory;
mod narrow;
mod operations;
mod preloaded;
mod presence;
mod quirks;
mod reductions;
mod report;
mod requests;
mod roll;
mod said;
mod serve;
mod session;
mod settings;
mod task;
mod turns;
mod types;
mod watch;
