//! The functions that programs call instead of MPI's: what each does with its arguments is written below, in `groups` and `requests`.

mod begin;
mod caller;
mod collectives;
mod complete;
mod creation;
mod freed;
mod init;
mod messages;
mod narrow;
mod own;
mod quirks;
mod recent;
mod repeat_call_cache;
mod serve;
mod session;
mod status;
mod theirs;
