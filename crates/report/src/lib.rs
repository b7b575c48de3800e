//! What the ranks of a job called, who served it, and what that was worth.
//!
//! Every rank brings a [`Part`]; the first makes a [`Whole`] of them, which is text, a page, or JSON that is read again
//! ([`Whole::parse`]) and put beside another job's ([`Against`]).
//!
//! **Times.** A rank's time in a blocking collective is from its call to its return, waiting for others included. What a job's
//! collectives took is the mean of all its ranks. A request is under way while its rank does something else, so it has no time of its
//! own: what its calls take counts with point-to-point.
//!
//! **How sure a sum is.** A sum of `n` calls is `n` times their mean. Its interval holds the true one in about 95 of 100 cases, as
//! far as calls differ by chance: by Student's t, from the deviation of the calls of a rank. Ranks wait for each other, so several of
//! them are no surer than one.
#![forbid(unsafe_code)]

mod against;
mod bottom;
mod compared;
mod host;
mod html;
mod learning;
mod sites;
mod spread;
mod table;
mod units;
mod waits;
mod whole;

pub use against::Against;
pub use compared::{Compared, Side};
pub use host::{Host, Obstacle, RankHost};
pub use learning::{Learning, Lesson, Tried};
pub use sites::{Site, SiteCalls};
pub use spread::Spread;
pub use units::{class, size};
pub use whole::{Communicator, FORM, Job, Key, Part, Row, Served, Tally, Unreadable, Whole};

#[cfg(test)]
mod tests;
