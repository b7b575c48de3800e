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
mod notebook;
mod peer_memory;
mod seat;
mod shelf;
pub(crate) mod sync;
pub(crate) mod wakeup;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use board::{Board, CHUNKS};
use channel::{Body, Channel, INLINE, Incoming, Letter, Outgoing, REFERENCE, Reading, Revoked};
use memory::Mapping;
pub(crate) use notebook::Notebook;
pub(crate) use peer_memory::{PeerMemory, Runs};
use seat::{Core, Seat};
pub(crate) use shelf::Payload;
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
    outgoing: Box<[ChannelEnd<Outgoing>]>,
    incoming: Box<[ChannelEnd<Incoming>]>,
    /// The bodies that are this rank's, of those it has with each other rank.
    shelves: Box<[Shelf]>,
    /// Letters of plans that nobody asked about yet, by sender, and how many there are.
    aside: Box<[RefCell<VecDeque<LetterAside>>]>,
    kept: Cell<usize>,
    /// Where this rank has said that it runs.
    core: Cell<Core>,
}

/// A letter that was put aside.
struct LetterAside {
    key: u64,
    length: u32,
    /// Aligned for every element type.
    payload: Box<[u128]>,
}

/// A message, or a piece of one, on its way to where it belongs.
pub(crate) enum Arrived<'a> {
    /// Bytes that can be read now.
    Bytes(Payload),
    /// Bytes in the sender's memory, to be read while `Reading` lives.
    Reference(Reference, Result<Reading<'a>, Revoked>),
}

/// What the letter of a reference says: one piece, or the address of a list of them, in the sender's memory.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Reference {
    number: u32,
    pub(crate) pieces: u32,
    pub(crate) piece: Piece,
    /// Of all pieces together.
    pub(crate) bytes: usize,
}

const REFERENCE_LENGTH: u32 = size_of::<Reference>() as u32 | REFERENCE;
const _: () = assert!(size_of::<Reference>() <= INLINE);

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

/// This rank's end of a channel: where it lies, at hand for every letter, and how far it is.
struct ChannelEnd<S> {
    channel: *const Channel,
    side: Cell<S>,
}

impl<S> ChannelEnd<S> {
    #[inline]
    fn channel(&self) -> &Channel {
        // SAFETY: it lies in the memory of the node, which holds it.
        unsafe { &*self.channel }
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
        let end = |from: usize, to: usize| Node::channel(&memory, (ranks, body), from, to);
        let outgoing = (0..ranks).map(|to| ChannelEnd { channel: end(me, to), side: Cell::default() }).collect();
        let incoming = (0..ranks).map(|from| ChannelEnd { channel: end(from, me), side: Cell::default() }).collect();
        let shelf = |other: usize| {
            let (lower, higher) = (me.min(other), me.max(other));
            // The bodies follow the channel.
            let bodies = |from: usize, to: usize| end(from, to).wrapping_add(1).cast::<u8>().cast_mut();
            Shelf::new([bodies(lower, higher), bodies(higher, lower)], body, usize::from(me > other))
        };
        let shelves = (0..ranks).map(shelf).collect();
        let node = Node {
            memory,
            ranks,
            me,
            body,
            peer_memory,
            outgoing,
            incoming,
            shelves,
            aside: (0..ranks).map(|_| RefCell::default()).collect(),
            kept: Cell::new(0),
            core: Cell::default(),
        };
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
        // SAFETY: seats follow the board; as above.
        unsafe { &*self.memory.as_ptr().add(size_of::<Board>()).cast::<Seat>().add(rank) }
    }

    /// A channel, which its sender's first bodies follow. Zeros are an empty one.
    fn channel(memory: &Mapping, (ranks, body): (usize, usize), from: usize, to: usize) -> *const Channel {
        let before = size_of::<Board>() + ranks * size_of::<Seat>();
        let at = before + (from * ranks + to) * channel_bytes(body);
        // SAFETY: channels follow the seats, each with its bodies.
        unsafe { memory.as_ptr().add(at).cast() }
    }

    /// Wakes a rank that may be asleep, after something it may be waiting for was written.
    #[inline]
    pub(crate) fn wake(&self, rank: usize) {
        self.seat(rank).wakeup.wake();
    }

    pub(crate) fn ring_all(&self) {
        (0..self.ranks).for_each(|rank| self.wake(rank));
    }

    /// Sends a letter of `bytes`, at most [`body`](Node::body), which `fill` writes; `false` if there is no room. It is the message's `last` letter, or
    /// the next one is written at once.
    #[inline(always)]
    pub(crate) fn send(&self, to: usize, key: u64, bytes: usize, last: bool, fill: impl FnOnce(*mut u8)) -> bool {
        let (end, shelf) = (&self.outgoing[to], &self.shelves[to]);
        let (channel, mut outgoing) = (end.channel(), end.side.get());
        let room = channel.room(&mut outgoing, shelf, bytes > INLINE);
        if room {
            debug_assert!(bytes <= self.body.max(INLINE));
            // The next message is often as long.
            let ahead = if last { bytes } else { 0 };
            // SAFETY: this rank sends, there is room, and the letter fits.
            unsafe { channel.send(&mut outgoing, shelf, key, bytes as u32, ahead, fill) };
        }
        end.side.set(outgoing);
        if room {
            self.wake(to);
        }
        room
    }

    /// Sends a reference to pieces; its number, or none if there is no room. The pieces must stay readable and unwritten until
    /// the reference is [`settled`](Node::settled) or [`revoke`](Node::revoke) has returned, and so must the list.
    pub(crate) fn refer(&self, to: usize, key: u64, pieces: &[Piece]) -> Option<u32> {
        let (end, shelf) = (&self.outgoing[to], &self.shelves[to]);
        let (channel, mut outgoing) = (end.channel(), end.side.get());
        let number = channel.room(&mut outgoing, shelf, false).then(|| channel.refer(&mut outgoing)).flatten();
        if let Some(number) = number {
            let piece = match pieces {
                [one] => *one,
                list => Piece { at: list.as_ptr().cast(), len: list.len() },
            };
            let bytes = pieces.iter().map(|piece| piece.len).sum();
            let reference = Reference { number, pieces: pieces.len() as u32, piece, bytes };
            // SAFETY: this rank sends, there is room, and a reference fits into a line.
            unsafe {
                channel.send(&mut outgoing, shelf, key, REFERENCE_LENGTH, 0, |to| {
                    to.cast::<Reference>().write_unaligned(reference);
                });
            }
        }
        end.side.set(outgoing);
        if number.is_some() {
            self.wake(to);
        }
        number
    }

    /// Whether the receiver is through with a reference.
    #[inline]
    pub(crate) fn settled(&self, to: usize, number: u32) -> bool {
        self.outgoing[to].channel().settled(number)
    }

    /// Takes a reference back: nobody reads what it names when this returns.
    pub(crate) fn revoke(&self, to: usize, number: u32) {
        let mut turns = 0u32;
        self.outgoing[to].channel().revoke(number, || {
            turns = turns.wrapping_add(1);
            turns.is_multiple_of(4096) && matches!(self.peer_memory, PeerMemory::Kernel { .. }) && self.seat(to).dead()
        });
    }

    /// Hands the next letter of a plan from a rank to `read`; `None` if none has come. Letters of other plans are put aside.
    #[inline]
    pub(crate) fn take<R>(&self, from: usize, key: u64, read: impl FnOnce(Arrived<'_>) -> R) -> Option<R> {
        if self.kept.get() > 0
            && let Some(kept) = self.fetch(from, key)
        {
            let letter = Letter { key, length: kept.length, payload: kept.payload.as_ptr().cast(), body: None };
            return Some(self.hand_over(from, letter, read));
        }
        let end = &self.incoming[from];
        let channel = end.channel();
        loop {
            // SAFETY: this rank receives.
            let letter = unsafe { channel.next(&end.side.get(), &self.shelves[from]) }?;
            if letter.key == key {
                if letter.body.is_some() {
                    channel.look_ahead(&end.side.get());
                }
                let result = self.hand_over(from, letter, read);
                self.give_back(from, letter.body, letter.body.is_some());
                return Some(result);
            }
            self.keep(from, letter);
            self.give_back(from, letter.body, false);
        }
    }

    /// Hands the next letter of a plan from a rank to `read`, if it has come and is a message of so many bytes; whether it was.
    #[inline(always)]
    pub(crate) fn take_whole(&self, from: usize, key: u64, bytes: usize, read: impl FnOnce(Payload)) -> bool {
        let end = &self.incoming[from];
        // SAFETY: this rank receives.
        let Some(letter) = (unsafe { end.channel().next(&end.side.get(), &self.shelves[from]) }) else { return false };
        // One of this plan may have been put aside before it.
        let next = letter.key == key && letter.length as usize == bytes && self.kept.get() == 0;
        if next {
            read(letter.payload());
            self.give_back(from, letter.body, false);
        }
        next
    }

    /// The letter that was handed over has been read. It may be `part` of a long message.
    #[inline(always)]
    fn give_back(&self, from: usize, body: Option<Body>, part: bool) {
        let end = &self.incoming[from];
        let mut incoming = end.side.get();
        let wake = end.channel().consume(&mut incoming, &self.shelves[from], body, part);
        end.side.set(incoming);
        if wake {
            self.wake(from);
        }
    }

    /// Whether a letter from a rank waits to be taken, of whatever plan; those that were put aside do not count.
    #[inline]
    pub(crate) fn has_come(&self, from: usize) -> bool {
        let end = &self.incoming[from];
        end.channel().has_come(&end.side.get())
    }

    #[inline]
    fn hand_over<R>(&self, from: usize, letter: Letter, read: impl FnOnce(Arrived<'_>) -> R) -> R {
        if letter.length & REFERENCE == 0 {
            return read(Arrived::Bytes(letter.payload()));
        }
        // SAFETY: the sender wrote a reference.
        let reference = unsafe { letter.payload.cast::<Reference>().read_unaligned() };
        let channel = self.incoming[from].channel();
        let result = read(Arrived::Reference(reference, channel.begin(reference.number)));
        self.wake(from);
        result
    }

    #[cold]
    fn keep(&self, from: usize, letter: Letter) {
        let bytes = (letter.length & !REFERENCE) as usize;
        let mut payload = vec![0u128; bytes.div_ceil(16)].into_boxed_slice();
        // SAFETY: as many bytes as the letter has.
        unsafe { std::ptr::copy_nonoverlapping(letter.payload, payload.as_mut_ptr().cast::<u8>(), bytes) };
        self.aside[from].borrow_mut().push_back(LetterAside { key: letter.key, length: letter.length, payload });
        self.kept.set(self.kept.get() + 1);
    }

    #[cold]
    fn fetch(&self, from: usize, key: u64) -> Option<LetterAside> {
        let mut aside = self.aside[from].borrow_mut();
        let place = aside.iter().position(|kept| kept.key == key)?;
        self.kept.set(self.kept.get() - 1);
        aside.remove(place)
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
