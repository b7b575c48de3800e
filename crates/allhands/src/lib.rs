//! Collective communication that knows where ranks sit.

pub mod kernels;
