//! Models of what the ranks of a node share, checked by loom: the protocols of `allhands` themselves, compiled with loom's atomics in place
//! of the real ones, and the tests that stand beside them as `mod models`.
//!
//! It is a crate of its own so that `allhands` has nothing of loom, and tests need not compile all of it a second time.
//! A model may take a second where a test takes a microsecond: few threads, few rounds, and rings of two slots.
#![cfg(test)]
#![allow(dead_code)] // a model needs a part of what it is a model of

#[path = "../../allhands/src/gate.rs"]
mod gate;
mod node;
