//! What collective algorithms cost.
#![forbid(unsafe_code)]

mod error;
mod flat;
mod machine;
mod simulate;
mod sizes;
mod symmetry;

pub use error::{Error, Result};
pub use machine::{Crowd, Level, Links, Machine, Protocol};
pub use simulate::{Estimate, Mode, Noise, Simulator, simulate};
pub use sizes::Amount;
