//! What the engine has in its queue.

/// What happens next; at the same time, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventKind {
    /// A rank comes to its next step.
    Post,
    /// Everybody who comes to a step at this moment has come: the messages of a rank may start.
    Start,
    /// The receiver for which a message has waited has come.
    Ready,
    /// A message comes to what its node shares.
    Inject,
    /// Flows have begun or end.
    Share,
}

/// What happens, and to which rank or message: one number, so that sorting is quick.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Event(u64);

impl Event {
    pub(super) fn new(kind: EventKind, of: usize) -> Event {
        Event((kind as u64) << 32 | of as u64)
    }

    pub(super) fn kind(self) -> EventKind {
        use EventKind::{Inject, Post, Ready, Share, Start};
        [Post, Start, Ready, Inject, Share][(self.0 >> 32) as usize]
    }

    pub(super) fn of(self) -> usize {
        self.0 as u32 as usize
    }
}
