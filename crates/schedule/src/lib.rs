//! Collective communication as data: algorithms that make schedules, and a verifier that proves them.
//!
//! A [`Problem`] says what is asked. A [`Choice`] is an algorithm with its parameters; [`Choice::prepare`] checks that it
//! can serve the problem. The [`Prepared`] makes the [`Schedule`] of any rank, alone, or the [`Ensemble`] of all of them,
//! which [`verify`] proves right and [`Counts`], [`Bounds`] and [`draw`] describe.
//!
//! ```
//! use allhands_schedule::{Choice, Collective, Counts, Problem, Topology, verify};
//!
//! let problem = Problem::new(Collective::Allgather, Topology::regular(4, 4)?);
//! let prepared = Choice::parse(Collective::Allgather, "loc-bruck")?.prepare(&problem)?;
//! let ensemble = prepared.ensemble();
//! assert!(verify(&ensemble).is_ok());
//! assert_eq!(Counts::maxima(&ensemble).far_sent.messages, 1);
//! # Ok::<(), allhands_schedule::Error>(())
//! ```
#![forbid(unsafe_code)]

mod algorithms;
mod blockset;
mod bounds;
mod collective;
mod compose;
mod count;
pub mod draw;
mod error;
mod expression;
mod graph;
mod hash;
mod inline_vec;
mod json;
mod matching;
mod math;
mod registry;
mod schedule;
mod setting;
mod text;
mod topology;
mod verify;
mod written;

pub use algorithms::composed::{Composition, Grid, Kind, Message, Move, Step};
pub use bounds::{Bounds, ports};
pub use collective::{Collective, Problem, Reduction};
pub use count::{Counts, Traffic};
pub use error::{Error, Result};
pub use expression::Expression;
pub use graph::{Edge, Graph, Pairing};
pub use hash::hash;
pub use inline_vec::InlineVec;
pub use json::Document;
pub use matching::{End, Matching, Timing};
pub use registry::{Algorithm, Choice, Cost, Knowledge, Parameter, Parameters, Prepared, Promise, algorithms};
pub use schedule::{Combine, Ensemble, Local, Recv, Round, Schedule, Send, Space, Span};
pub use setting::{Factor, Setting};
pub use text::line_of;
pub use topology::Topology;
pub use verify::{Fault, Report, Write, verify, verify_watched};
pub use written::Written;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
