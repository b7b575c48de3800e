//! What collective algorithms cost: machines, cost models, lower bounds in seconds, and a simulator that walks the schedules themselves.
//!
//! A [`Machine`] says what messages, copies and combines cost. [`simulate`](simulate()) runs an algorithm's schedules on it;
//! [`Bound`] is what no algorithm can beat there; [`best_choices`] searches for the best algorithm and its
//! parameters, [`rank_choices`] puts given ones in order; [`formulas`] are the models as the papers
//! print them, beside their corrected forms; [`export`] writes schedules for other simulators.
//!
//! ```
//! use allhands_model::{Amount, Bound, Machine, simulate};
//! use allhands_schedule::{Choice, Collective, Problem, Topology};
//!
//! let problem = Problem::new(Collective::Allreduce, Topology::regular(2048, 16)?);
//! let machine = Machine::shipped("blue-waters")?;
//! let nap = Choice::parse(Collective::Allreduce, "nap")?.prepare(&problem)?;
//! let time = simulate(&nap, &machine, Amount::bytes(8))?.seconds;
//! assert!(time > 19e-6 && time < 21e-6);
//! assert!(time > Bound::new(&problem, &machine, Amount::bytes(8), false).seconds());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The model, exactly
//!
//! A rank goes through its rounds by its own clock. When it comes to a round it posts all sends and receives.
//!
//! **A message** of s bytes costs by the level of its two ranks and by the protocol of its size. It *starts* when it is ready and a port of
//! its sender is free, and *arrives* `latency + s · per_byte` later, if nothing shared is in its way.
//! - Short and eager messages are ready when their sender comes to the round; the sender is done with one when its port is free again.
//! - A rendezvous message is ready when both ranks have come; the sender is done with it when it arrives.
//! - It keeps a port of its sender for `overhead + s · per_byte`, and then one of its receiver for as long: a receiver takes messages round after
//!   round, those of a round by arrival, each when it has arrived and a port has been free for as long as it keeps it. With
//!   `overhead = latency` and one port this is the postal model; with less, LogGP with the gap of a message in place of its overhead.
//! - Latency and time per byte lie on the line through what was measured with one and with a crowd of ranks sending, at as many ranks of the
//!   sender's node as send far messages anywhere in the schedule. That is counted, not simulated.
//! - A far message of more than two runs of memory, empty blocks left out, is copied before it leaves and after it has arrived (not if
//!   it is combined).
//!
//! A port carries the bytes of one message after those of another. Where every message is a flow of its own, as in SimGrid, bytes of one rank's messages travel side by
//! side: leave `ports` out of such a machine. Then their overheads pass side by side, too, which there they do not: many short messages of one rank
//! seem quicker than they are.
//!
//! **What ranks share**: the injection limit of a node lets one message start after the other, `s · injection` apart, in the order
//! in which they come to it; far and near messages have a limit each. Where a machine has links, a far message passes its node's link, the
//! two links of the core if its leaf is another one, and the receiving node's link, holding each for the time of its bytes from when it gets
//! there. *Approximated*: links further on are given in the order in which messages leave their node, not in which they reach the link.
//!
//! **After its messages** a round copies and combines; **a meeting** ends a fixed time after the last rank of the region has come.
//! A flat topology has one rank a node: all its messages are far.
//!
//! *Not modelled*: more ranks than cores (but for [`Machine::crowded`]), routes of a torus or dragonfly, caches, overlap of a rank's own work with its messages,
//! messages of other jobs.
//!
//! # Two modes
//!
//! Where nothing shared can make a rank wait for another, arrivals depend only on when the two ends come to a message, so rounds run in
//! any order that respects messages, many at once; otherwise events run in the order of time, simultaneous ones in the order of ranks. If every node does the
//! same up to rotation, the ranks of one node stand for all ([`Mode::Symmetric`]). That is checked by comparing every rank's schedule, up to
//! 131,072 ranks; beyond, those of 512 nodes, from both ends and evenly between. Machines with links, and random delays,
//! are always simulated rank by rank.
#![forbid(unsafe_code)]

mod bound;
mod choices;
mod crew;
mod error;
pub mod export;
mod flat;
pub mod formulas;
mod machine;
mod memory;
mod quick_estimate;
mod simulate;
mod sizes;
mod symmetry;

pub use bound::Bound;
pub use choices::{Allowance, HOPELESS, Ranked, best_choices, rank_choices};
pub use error::{Error, Result};
pub use machine::{Crowd, Fit, Level, Links, Machine, Measured, Protocol};
pub use memory::memory;
pub use simulate::{Estimate, Mode, Noise, Simulator, simulate};
pub use sizes::Amount;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
