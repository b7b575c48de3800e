//! Collective communication as data.
#![forbid(unsafe_code)]

mod algorithms;
mod blockset;
mod bounds;
mod collective;
mod compose;
mod count;
pub mod draw;
mod error;
mod json;
mod matching;
mod math;
mod registry;
mod schedule;
mod text;
mod topology;
mod verify;

pub use bounds::{Bounds, ports};
pub use collective::{Collective, Problem, Reduction};
pub use count::{Counts, Traffic};
pub use error::{Error, Result};
pub use json::Document;
pub use matching::{End, Matching, Timing};
pub use registry::{Algorithm, Choice, Cost, Parameter, Parameters, Prepared, Promise, algorithms};
pub use schedule::{Combine, Ensemble, Local, Recv, Round, Schedule, Send, Space, Span};
pub use topology::Topology;
pub use verify::{Fault, Report, Symbol, Write, verify, verify_watched};
