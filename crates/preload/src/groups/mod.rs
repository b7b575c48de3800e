//! The program's communicators, ours for them with their plans, and who serves a call and why.
//!
//! What is under way on a communicator is kept with it, but is not known here: it is the queue `Q`.

mod comms;
mod group;
mod member;
mod own_counts;
mod policy;

pub(crate) use comms::Comms;
pub(crate) use group::{Beside, Found, FoundPlan, Group, Way};
pub(crate) use member::{Form, Member};
pub(crate) use own_counts::OwnCounts;
pub(crate) use policy::{Chosen, MOST_WEIGHT, PlanPreference};
