//! Drawings of schedules: as text, step by step with filling buffers, and as SVG.

mod picture;
mod size;
mod svg;
mod text;

pub use picture::{Cell, Message, Picture, Step};
pub use size::Sizes;
pub use svg::svg;
pub use text::{Drawing, Ink};
