//! What collective algorithms cost.
#![forbid(unsafe_code)]

mod bound;
mod choices;
mod error;
pub mod export;
mod flat;
pub mod formulas;
mod machine;
mod simulate;
mod sizes;
mod symmetry;

pub use bound::Bound;
pub use choices::{Ranked, rank_choices};
pub use error::{Error, Result};
pub use machine::{Crowd, Level, Links, Machine, Protocol};
pub use simulate::{Estimate, Mode, Noise, Simulator, simulate};
pub use sizes::Amount;
