//! Collective communication that knows where ranks sit.
