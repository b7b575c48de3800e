//! Collectives that return before they are through: the non-blocking and the persistent ones, and what completes them.
//!
//! **The handle that a program holds is a request of its MPI**, which MPI itself completes: a receive, of nothing, from this rank, on
//! a communicator of ours that has no other rank. When a run of ours is through, an empty message to ourselves completes it. So
//! statuses, null and inactive requests, indices, translation to Fortran and mixed arrays stay the MPI's own business: a call that
//! completes requests moves our runs on and then calls the MPI's own function, whatever is in its array. A persistent collective
//! is a persistent receive. (A generalized request would serve non-blocking runs as well, but MPI has no persistent ones, and
//! one kind is simpler than two.) With no run under way, each of these calls costs one look at a counter.
//!
//! **Beginning waits for nobody**, as MPI promises: a rank may begin a collective before another rank does what it has to do first to let
//! it come there. So a non-blocking call never makes a communicator of ours, and its plans use algorithms without memory in common
//! (`Options::unshared`), which are made without the others. The world has a communicator of ours from `MPI_Init` on; others get
//! theirs with their first blocking or persistent collective, or when they are made from one on which a non-blocking or persistent
//! collective was called before: all of these are calls in which MPI lets ranks wait for each other, and which come in the same
//! order on every rank. Until then non-blocking calls are the MPI's.
//!
//! **One plan for a shape, one run after the other.** Ranks call the collectives of a communicator in the same order, but complete them
//! whenever they like. Whether an earlier run is through therefore must not decide which plan serves the next: it is always the same,
//! and a run that finds it busy waits in its line, not in the call. All ranks thus run the same sequence on the same plan. A
//! run that waits in line depends on runs begun earlier only, which every rank has begun or will without waiting for this one, and
//! every call that moves anything on moves all on: no circle can close. Alltoallvs, of which no rank knows all counts when it begins
//! one, have one line for all their shapes (`exchange`).
//!
//! **Progress is the MPI's**: `mover` lets the MPI call us whenever it makes progress, in whatever function the program is. So nothing
//! else of MPI needs to be intercepted for it, and no time limit decides anything. What waits here itself, a blocking collective of
//! ours, moves all other runs on as it waits.
//!
//! **Threads**: whoever waits moves everything on that no other thread holds. The lock of a communicator is held across a wait only by
//! a blocking collective on it, which moves the communicator's other runs on, too.

mod deferred_free;
mod exchange;
mod plan_queues;
mod proxies;
mod run;
mod under_way;

pub(crate) use deferred_free::{any_used, defers};
pub(crate) use plan_queues::PlanQueues;
pub(crate) use run::{Failure, Origin, any_failed};
pub(crate) use under_way::{Group, Member, Requests, any, any_prepared, preference};
