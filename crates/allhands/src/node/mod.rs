//! Ranks that share memory: threads of one process, or processes of one machine.
//!
//! The memory of a node holds a board, a seat for every rank, a channel from every rank to every other, chunks that plans use and a notebook. [`Node`] is one
//! rank's view of it, with its own side of its channels. `channel`, `wakeup`, `meeting` and `notebook` state their protocols with a
//! memory-ordering argument, and loom checks models of them; `ladder` says how a rank waits.

pub(crate) mod board;
pub(crate) mod channel;
pub(crate) mod ladder;
pub(crate) mod meeting;
pub(crate) mod memory;
mod neighbour;
mod notebook;
mod peer_memory;
mod seat;
mod shelf;
pub(crate) mod sync;
pub(crate) mod wakeup;

use std::cell::Cell;
use std::io;
use std::sync::Arc;

use board::{Board, CHUNKS};
use channel::Channel;
pub(crate) use channel::INLINE;
use memory::Mapping;
pub(crate) use neighbour::{Arrived, Neighbour, Reference};
pub(crate) use notebook::Notebook;
pub(crate) use peer_memory::{PeerMemory, Runs};
use seat::{Core, Seat};
use shelf::{HALF, Shelf};

/// A run of bytes in the memory of the rank that names it.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub(crate) struct Piece {
    pub(crate) at: *const u8,
    pub(crate) len: usize,
}

/// One rank's view of its node.
pub(crate) struct Node {
    memory: Arc<Mapping>,
    ranks: usize,
    me: usize,
    /// Bytes of a body.
    body: usize,
    pub(crate) peer_memory: PeerMemory,
    /// By place. They lie in the memory.
    neighbours: Box<[Neighbour]>,
    /// Where this rank has said that it runs.
    core: Cell<Core>,
}

/// Bytes of a chunk: enough for the meetings of a few dozen ranks and short vectors.
const CHUNK: usize = 16 * 1024;

/// A piece of the node's memory that some of its ranks use together, until each has dropped its own.
pub(crate) struct Chunk {
    memory: Arc<Mapping>,
    at: usize,
    number: usize,
}

impl Chunk {
    pub(crate) const BYTES: usize = CHUNK;

    pub(crate) fn as_ptr(&self) -> *mut u8 {
        // SAFETY: the memory holds all chunks.
        unsafe { self.memory.as_ptr().add(self.at) }
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        // SAFETY: the memory of a node begins with its board.
        unsafe { &*self.memory.as_ptr().cast::<Board>() }.let_go(self.number);
    }
}

/// Bytes of one channel with the bodies that are its sender's at first.
fn channel_bytes(body: usize) -> usize {
    size_of::<Channel>() + HALF * body
}

impl Node {
    /// How much memory a node of so many ranks has.
    pub(crate) fn bytes(ranks: usize, body: usize) -> usize {
        Node::after_chunks(ranks, body) + Notebook::BYTES
    }

    fn after_chunks(ranks: usize, body: usize) -> usize {
        Node::first_chunk(ranks, body) + CHUNKS * CHUNK
    }

    /// What ranks have thought about, for the others.
    pub(crate) fn notebook(&self) -> Notebook {
        Notebook::new(&self.memory, Node::after_chunks(self.ranks, self.body))
    }

    /// Where chunks begin, after the board, the seats and the channels. All of it is there only as far as it is touched.
    fn first_chunk(ranks: usize, body: usize) -> usize {
        let before = size_of::<Board>() + ranks * size_of::<Seat>() + ranks * ranks * channel_bytes(body);
        before.next_multiple_of(4096)
    }

    /// Joins a plan of `ranks` ranks on the board: see [`Board::join`]. With `clear`, they get a chunk whose first so many bytes are
    /// zeros, if one is left.
    pub(crate) fn join(
        &self,
        key: u64,
        ranks: usize,
        text: &str,
        clear: Option<usize>,
    ) -> Result<Option<Chunk>, (usize, String)> {
        let at = |number: usize| Node::first_chunk(self.ranks, self.body) + number * CHUNK;
        let zero = |number: usize| {
            let bytes = clear.unwrap_or_default().min(CHUNK);
            // SAFETY: the memory holds all chunks, and nobody uses this one.
            unsafe { self.memory.as_ptr().add(at(number)).write_bytes(0, bytes) };
        };
        let zero: Option<&dyn Fn(usize)> = if clear.is_some() { Some(&zero) } else { None };
        let number = self.board().join(key, ranks, self.me, text, zero)?;
        Ok(number.map(|number| Chunk { memory: self.memory.clone(), at: at(number), number }))
    }

    /// A rank's view of memory that is zero at first, of [`bytes`](Node::bytes).
    pub(crate) fn new(memory: Arc<Mapping>, ranks: usize, me: usize, body: usize, peer_memory: PeerMemory) -> Node {
        assert!(memory.len() >= Node::bytes(ranks, body) && me < ranks && body.is_multiple_of(128));
        let channel = |from: usize, to: usize| Node::channel(&memory, (ranks, body), from, to);
        let neighbour = |other: usize| {
            let (lower, higher) = (me.min(other), me.max(other));
            // The bodies follow the channel.
            let bodies = |from: usize, to: usize| channel(from, to).wrapping_add(1).cast::<u8>().cast_mut();
            let shelf = Shelf::new([bodies(lower, higher), bodies(higher, lower)], body, usize::from(me > other));
            // SAFETY: the memory has a seat for each rank; the node holds it.
            let seat = unsafe { &*Node::seats(&memory).add(other) };
            // SAFETY: as above, and two channels for each two ranks.
            unsafe { Neighbour::new(channel(me, other), channel(other, me), &raw const seat.wakeup, shelf) }
        };
        let neighbours = (0..ranks).map(neighbour).collect();
        let node = Node { memory, ranks, me, body, peer_memory, neighbours, core: Cell::default() };
        node.seat(me).take();
        node
    }

    pub(crate) fn ranks(&self) -> usize {
        self.ranks
    }

    pub(crate) fn me(&self) -> usize {
        self.me
    }

    /// How many cores its ranks, which have all taken their seats, may run on.
    pub(crate) fn cores(&self) -> usize {
        Seat::cores((0..self.ranks).map(|rank| self.seat(rank)))
    }

    /// Whether this rank may have no core to itself, as far as its ranks, which have all taken their seats, are bound to cores.
    pub(crate) fn is_crowded(&self) -> bool {
        self.seat(self.me).is_crowded((0..self.ranks).map(|rank| self.seat(rank)))
    }

    /// Lets the others know which core this rank runs on.
    #[inline]
    pub(crate) fn be_seen(&self) {
        let here = Core::here();
        if self.core.replace(here) != here {
            self.seat(self.me).runs_on(here);
        }
    }

    /// Whether a rank was last seen on this rank's core.
    pub(crate) fn beside(&self, rank: usize) -> bool {
        rank != self.me && self.seat(rank).ran_on(Core::here())
    }

    /// The longest message that is one letter.
    pub(crate) fn body(&self) -> usize {
        self.body
    }

    pub(crate) fn board(&self) -> &Board {
        // SAFETY: the memory begins with a board, for which zeros are valid; it is only changed through atomics and cells.
        unsafe { &*self.memory.as_ptr().cast() }
    }

    pub(crate) fn seat(&self, rank: usize) -> &Seat {
        assert!(rank < self.ranks);
        // SAFETY: as above.
        unsafe { &*Node::seats(&self.memory).add(rank) }
    }

    /// Seats follow the board.
    fn seats(memory: &Mapping) -> *const Seat {
        memory.as_ptr().cast_const().wrapping_add(size_of::<Board>()).cast()
    }

    /// A channel, which its sender's first bodies follow. Zeros are an empty one.
    fn channel(memory: &Mapping, (ranks, body): (usize, usize), from: usize, to: usize) -> *const Channel {
        let before = size_of::<Board>() + ranks * size_of::<Seat>();
        let at = before + (from * ranks + to) * channel_bytes(body);
        // SAFETY: channels follow the seats, each with its bodies.
        unsafe { memory.as_ptr().add(at).cast() }
    }

    /// What this rank has with another of the node, or with itself.
    #[inline]
    pub(crate) fn neighbour(&self, place: usize) -> &Neighbour {
        &self.neighbours[place]
    }

    pub(crate) fn ring_all(&self) {
        self.neighbours.iter().for_each(Neighbour::wake);
    }

    /// Takes a reference back: nobody reads what it names when this returns.
    pub(crate) fn revoke(&self, to: usize, number: u32) {
        let mut turns = 0u32;
        self.neighbours[to].revoke(number, || {
            turns = turns.wrapping_add(1);
            turns.is_multiple_of(4096) && matches!(self.peer_memory, PeerMemory::Kernel { .. }) && self.seat(to).dead()
        });
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.seat(self.me).leave();
        self.ring_all();
    }
}

/// Whether the kernel lets this process read a word of another's memory, which should be `wanted`; or why not.
pub(crate) fn readable(process: u32, address: usize, wanted: u64) -> io::Result<()> {
    let mut word = 0u64;
    let piece = Piece { at: address as *const u8, len: 8 };
    // SAFETY: a word has room for eight bytes.
    unsafe { peer_memory::copy(process, piece, (&raw mut word).cast()) }
        .map_err(|peer_memory::Unreadable(error)| error)?;
    if word == wanted { Ok(()) } else { Err(io::Error::other("the number is another process's")) }
}

/// The memory of a node of threads.
pub(crate) fn of_threads(ranks: usize) -> io::Result<(Arc<Mapping>, usize)> {
    // Longer messages are read straight from the sender's memory.
    let body = if ranks <= 64 { 2048 } else { 512 };
    Ok((Arc::new(Mapping::private(Node::bytes(ranks, body))?), body))
}
