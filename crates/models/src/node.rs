//! The sources of `allhands`, and in the place of its `sync` that of loom.

#[path = "../../allhands/src/node/channel.rs"]
mod channel;
#[path = "../../allhands/src/node/meeting.rs"]
mod meeting;
#[path = "../../allhands/src/node/memory.rs"]
mod memory;
#[path = "../../allhands/src/node/notebook.rs"]
mod notebook;
#[path = "../../allhands/src/node/shelf.rs"]
mod shelf;
#[path = "sync.rs"]
mod sync;
#[path = "../../allhands/src/node/wakeup.rs"]
mod wakeup;
