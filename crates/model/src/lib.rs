//! What collective algorithms cost: machines, cost models, lower bounds in seconds, and a simulator that walks the schedules themselves.
//!
//! A [`Machine`] says what messages, copies and combines cost. [`simulate`](simulate()) runs an algorithm's schedules on it;
//! [`Bound`] is what no algorithm can beat there; [`best_choices`] searches for the best algorithm and its
//! parameters, [`rank_choices`] puts given ones in order; [`search_compositions`] looks
//! beyond what is registered; [`formulas`] are the models as the papers
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
//! A port carries the bytes of one message after those of another.
//!
//! **What ranks share**: the injection limit of a node lets one message start after the other, `s · injection` apart, in the order
//! in which they come to it; far and near messages have a limit each. Where a machine has links, a far message passes its node's link, the
//! two links of the core if its leaf is another one, and the receiving node's link, holding each for the time of its bytes from when it gets
//! there. *Approximated*: links further on are given in the order in which messages leave their node, not in which they reach the link.
//!
//! **Flows.** On a machine with `flows = true` every message is a flow of its own, as in SimGrid and wherever a rank's messages travel side by
//! side:
//! - A message keeps its rank for its overhead only, which is a rank's own time: it posts the sends of a round one after the other, also those
//!   that have to wait for their receivers, and takes in what it receives after that, by arrival. What has waited for its receiver costs that
//!   one no overhead.
//! - Once posted, and if it waits once its receiver has come, it flows, at `1 / per_byte` or less: the flows of a node share what it can
//!   inject, `1 / injection`, and as much that it can take in, as evenly as possible (max-min fairness); near messages share a limit of their
//!   own, if they have one. It arrives a latency, less the overhead of sending, after its last byte has left.
//!
//! **After its messages** a round copies and combines; **a meeting** ends a fixed time after the last rank of the region has come. A flat
//! topology has one rank a node: all its messages are far.
//!
//! *Not modelled*: more ranks than cores (but for [`Machine::crowded`]), routes of a torus or dragonfly, caches, overlap of a rank's own work
//! with its messages, messages of other jobs.
//!
//! # Beside SimGrid
//!
//! `tests/simgrid` compares with SimGrid's replay, from cases of a few messages whose times follow by hand up to all algorithms on a grid of
//! shapes and sizes. Where a description without flows (`ports = 1`) differed from it by more than 10 %, SimGrid was right about the network
//! that was described, in which nothing makes the bytes of one message wait for those of another:
//! - *Several messages of a rank* (`recursive-multiplying` with several ports, `hierarchical` bcasts in pieces, leaders of a `hierarchical`
//!   alltoall) had their bytes sent and received one after the other. Leaving out `ports` mends that, but lets overheads pass side by side, too.
//! - *Many short messages* (`node-aware` alltoall): one port sent while another one received; the overheads of both are one rank's own time.
//! - *Messages of several ranks of a node* started `s · injection` apart, so that four flows of a quarter of the node's rate took 1.75 times as
//!   long as one; they take as long as one.
//! - *Messages into a node* shared nothing; they share as much as those out of it. The two directions do not share with each other, and near
//!   messages not with far ones, in either simulator.
//! - *Eager or rendezvous*: a sender has its overhead behind it when a late receiver comes, and the receiver has none.
//!
//! What remains: SimGrid sends 16 more bytes with every message, whose time is in the latency of such a machine but which also take their share
//! of a full link (1 % at 1 KiB a message, and 4 % in 255 rounds of an alltoall in which every delay shifts the next round). By default SimGrid
//! lets the acknowledgements of a flow take 5 % of its rate the other way (`network/crosstraffic`), which is not modelled. Meetings in shared
//! memory cannot be expressed there, and packing of messages of several runs is not exported.
//!
//! # Two modes
//!
//! Where nothing shared can make a rank wait for another, arrivals depend only on when the two ends come to a message, so rounds run in
//! any order that respects messages, many at once; otherwise events run in the order of time, simultaneous ones in the order of ranks. If every node does the
//! same up to rotation, the ranks of one node stand for all ([`Mode::Symmetric`]). That is checked by comparing every rank's schedule, up to
//! 131,072 ranks; beyond, those of 512 nodes, from both ends and evenly between. Machines with links or flows, and random delays,
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
mod search;
mod simulate;
mod sizes;
mod symmetry;

pub use bound::Bound;
pub use choices::{Allowance, HOPELESS, Ranked, best_choices, rank_choices, search_settings};
pub use error::{Error, Result};
pub use machine::{Crowd, Fit, Level, Links, Machine, Measured, Protocol};
pub use memory::memory;
pub use search::{Found, search_compositions};
pub use simulate::{Estimate, Mode, Noise, Simulator, simulate};
pub use sizes::Amount;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
