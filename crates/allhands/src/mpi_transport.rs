//! Messages to ranks that no shared memory reaches: MPI's point-to-point messages, on a communicator of our own.
//!
//! Between two ranks the messages of a plan have one tag, by the plan's number, and are sent and received in the same order,
//! which MPI keeps. A message whose bytes lie in one piece goes out from there, and comes in there unless it is to be
//! combined; so does one of several long pieces, as a derived datatype; short pieces are packed. A message whose bytes are
//! where they were last time gets a persistent request, unless it is short: plans that are run on the same buffers reuse their
//! requests, one-off calls use `Isend` and `Irecv`.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use allhands_mpi::{Abi, Class, Handle, Mpi};

use crate::error::{Error, Result};
use crate::node::Piece;

/// The MPI job that a rank belongs to.
pub(crate) struct Job {
    /// Of all ranks of the world. Kept while this rank may wait, also when only parts of the world are left.
    lane: Arc<Lane>,
    /// MPI's group of it.
    group: Handle,
    /// What other communicators send their messages on, as long as one of them is there, by the ranks that they have in this order.
    lanes: Mutex<HashMap<Box<[usize]>, Weak<Lane>>>,
}

/// An MPI communicator of ours whose tags are divided among the communicators of the program's that have the same ranks in the
/// same order: MPI has few thousand communicators, but millions of tags.
pub(crate) struct Lane {
    pub(crate) communicator: Arc<Communicator>,
    /// The first tag that is free, as the first rank counts.
    next: AtomicU64,
}

impl Lane {
    /// A lane of which nothing is taken.
    pub(crate) fn new(communicator: Arc<Communicator>) -> Arc<Lane> {
        Arc::new(Lane { communicator, next: AtomicU64::new(0) })
    }

    /// How many tags a communicator takes: there are plans for each, and more where there are more tags.
    pub(crate) fn share(&self) -> u64 {
        (self.communicator.tags / 256).clamp(4096, 1 << 20).min(self.communicator.tags)
    }

    /// As the first rank: the first tag of a share of them, if there is one left. The greatest is no message's.
    pub(crate) fn draw(&self) -> Option<u64> {
        let share = self.share();
        let taken = |next: u64| (next + share <= self.communicator.tags).then_some(next + share);
        self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken).ok()
    }
}

impl Job {
    pub(crate) fn new(communicator: Arc<Communicator>) -> Result<Job> {
        let group = communicator.mpi.comm_group(communicator.handle)?;
        let lane = Lane::new(communicator);
        // The world's own.
        lane.draw();
        Ok(Job { lane, group, lanes: Mutex::default() })
    }

    pub(crate) fn mpi(&self) -> &'static Mpi {
        self.lane.communicator.mpi
    }

    /// That of all ranks.
    pub(crate) fn lane(&self) -> &Arc<Lane> {
        &self.lane
    }

    /// That of these ranks in this order, if there is one on this rank: another may have dropped it.
    pub(crate) fn lane_of(&self, members: &[usize], ranks: usize) -> Option<Arc<Lane>> {
        if members.len() == ranks && members.iter().enumerate().all(|(place, &rank)| place == rank) {
            return Some(self.lane.clone());
        }
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner).get(members)?.upgrade()
    }

    /// From now on that of these ranks is this one.
    pub(crate) fn remember(&self, members: &[usize], lane: &Arc<Lane>) {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        lanes.retain(|_, lane| lane.strong_count() > 0);
        lanes.insert(members.into(), Arc::downgrade(lane));
    }

    /// MPI's group of all ranks.
    pub(crate) fn group(&self) -> Handle {
        self.group
    }

    /// A new communicator of some ranks of the world, in this order. Collective over them; calls of several threads at once need
    /// different numbers.
    pub(crate) fn communicator_of(&self, members: &[usize], number: u64) -> Result<Arc<Communicator>> {
        let mpi = self.mpi();
        let ranks: Vec<i32> = members.iter().map(|&rank| rank as i32).collect();
        let group = mpi.group_incl(self.group, &ranks)?;
        // Every MPI has these tags.
        let made = mpi.comm_create_group(self.lane.communicator.handle, group, (number % 32_767) as i32);
        mpi.group_free(group)?;
        Communicator::own(mpi, made?)
    }

    /// Lets MPI move messages, ours and the program's: by looking for one that is never sent, since MPI looks no further where it finds one.
    pub(crate) fn progress(&self) {
        let Communicator { mpi, handle, tags } = &*self.lane.communicator;
        let (any, tag) = (mpi.constants().integers.any_source, *tags as i32);
        // An error here is one of a message, and is found where that message is waited for.
        let _ = mpi.iprobe(any, tag, *handle);
    }

    /// Whether a look for a message keeps the core when nothing comes. In Open MPI, where ranks outnumber the cores, it does not.
    pub(crate) fn keeps_the_core(&self) -> bool {
        self.mpi().abi() != Abi::OpenMpi
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if self.mpi().finalized() == Ok(false) {
            let _ = self.mpi().group_free(self.group);
        }
    }
}

/// An MPI communicator of our own; freed with its last user.
pub(crate) struct Communicator {
    mpi: &'static Mpi,
    handle: Handle,
    /// The greatest tag.
    tags: u64,
}

impl Communicator {
    /// Takes over a communicator that was made for us.
    pub(crate) fn own(mpi: &'static Mpi, handle: Handle) -> Result<Arc<Communicator>> {
        mpi.comm_errors_return(handle)?;
        Ok(Arc::new(Communicator { mpi, handle, tags: mpi.tag_ub(handle)? as u64 }))
    }

    /// A duplicate.
    pub(crate) fn duplicate(&self) -> Result<Arc<Communicator>> {
        Communicator::own(self.mpi, self.mpi.comm_dup(self.handle)?)
    }

    /// The greatest tag.
    pub(crate) fn tags(&self) -> u64 {
        self.tags
    }

    pub(crate) fn handle(&self) -> Handle {
        self.handle
    }
}

impl Drop for Communicator {
    fn drop(&mut self) {
        if self.mpi.finalized() == Ok(false) {
            let _ = self.mpi.comm_free(self.handle);
        }
    }
}

/// One plan's messages by MPI.
#[derive(Clone)]
pub(crate) struct MpiTransport {
    communicator: Arc<Communicator>,
    /// Kept while its tags are in use.
    _lane: Arc<Lane>,
    tag: i32,
    /// This rank of the world, for messages.
    me: usize,
}

/// One end of a message, run after run.
pub(crate) struct Message {
    peer: i32,
    handle: Handle,
    /// Where its bytes are, and where they were last time.
    pieces: Vec<Piece>,
    bound: Vec<Piece>,
    /// The bytes, where they are packed.
    packed: Vec<u128>,
    staged: bool,
    persistent: bool,
    active: bool,
}

impl Message {
    pub(crate) fn new(peer: usize) -> Message {
        Message {
            peer: peer as i32,
            handle: 0,
            pieces: Vec::new(),
            bound: Vec::new(),
            packed: Vec::new(),
            staged: false,
            persistent: false,
            active: false,
        }
    }

    /// The bytes go through memory of the message's own.
    fn stage(&mut self, bytes: usize) {
        self.packed.resize(bytes.div_ceil(16), 0);
        self.pieces.clear();
        self.pieces.push(Piece { at: self.packed.as_ptr().cast(), len: bytes });
        self.staged = true;
    }
}

/// Messages up to this size are begun anew every time: see [`MpiTransport::anew`].
const SHORT: usize = 256;

/// Pieces of this length on average are worth a derived datatype; shorter ones are packed. See `overheads`.
const LONG_PIECES: usize = 4 * 1024;

/// How long a failed run waits for its messages before it ends the job.
const LAST_WAIT: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, PartialEq)]
enum Direction {
    Out,
    In,
}

impl MpiTransport {
    pub(crate) fn new(lane: &Arc<Lane>, tag: u64, me: usize) -> MpiTransport {
        MpiTransport { communicator: lane.communicator.clone(), _lane: lane.clone(), tag: tag as i32, me }
    }

    fn mpi(&self) -> &'static Mpi {
        self.communicator.mpi
    }

    /// Whether a message gets no persistent request. Of short ones Open MPI's persistent sends take half as long again, its persistent
    /// receives less; on the others persistent sends are no faster, and Intel's persistent receives take a twentieth more.
    #[inline]
    fn anew(&self, bytes: usize, direction: Direction) -> bool {
        bytes <= SHORT && (direction == Direction::Out || self.mpi().abi() != Abi::OpenMpi)
    }

    /// Begins a message: by the request of last time if its bytes are where they were then, by a new one otherwise.
    ///
    /// # Safety
    /// The pieces stay as MPI asks until the message is through.
    unsafe fn begin(&self, message: &mut Message, bytes: usize, direction: Direction) -> Result<()> {
        let mpi = self.mpi();
        let anew = self.anew(bytes, direction);
        let again = !anew && message.bound == message.pieces;
        if message.persistent && !again {
            mpi.request_free(&mut message.handle)?;
            message.persistent = false;
        }
        if !message.persistent {
            // SAFETY: the caller's promise.
            message.handle = unsafe { self.request(message, bytes, direction, again)? };
            message.persistent = again;
        }
        if again {
            // SAFETY: the caller's promise.
            unsafe { mpi.start(&mut message.handle)? };
        } else {
            std::mem::swap(&mut message.bound, &mut message.pieces);
        }
        message.active = true;
        Ok(())
    }

    /// Sends once more from where the bytes were last time, if that needs nothing but a call.
    ///
    /// # Safety
    /// As for [`send`](Link::send), and the pieces are those of last time.
    #[inline]
    pub(crate) unsafe fn send_again(&self, message: &mut Message, bytes: usize) -> Result<bool> {
        if message.staged {
            return Ok(false);
        }
        // SAFETY: the caller's promise.
        unsafe { self.begin_again(message, bytes, Direction::Out) }
    }

    /// Lets a message come in where it came in last time, if that needs nothing but a call.
    ///
    /// # Safety
    /// As for [`post`](Link::post), and the places are those of last time.
    #[inline]
    pub(crate) unsafe fn post_again(&self, message: &mut Message, bytes: usize) -> Result<bool> {
        // SAFETY: the caller's promise; staged bytes are the message's own.
        unsafe { self.begin_again(message, bytes, Direction::In) }
    }

    /// Begins a message whose pieces are those of last time, if that needs nothing but a call.
    ///
    /// # Safety
    /// As for [`begin`](Link::begin).
    #[inline]
    unsafe fn begin_again(&self, message: &mut Message, bytes: usize, direction: Direction) -> Result<bool> {
        let (mpi, peer, tag, comm) = (self.mpi(), message.peer, self.tag, self.communicator.handle);
        // SAFETY: the caller's promise.
        unsafe {
            match (&*message.bound, direction) {
                _ if message.persistent => mpi.start(&mut message.handle)?,
                _ if !self.anew(bytes, direction) => return Ok(false),
                ([piece], Direction::Out) => {
                    message.handle = mpi.isend(piece.at, bytes, peer, tag, comm)?;
                }
                ([piece], Direction::In) => {
                    message.handle = mpi.irecv(piece.at.cast_mut(), bytes, peer, tag, comm)?;
                }
                _ => return Ok(false),
            }
        }
        message.active = true;
        Ok(true)
    }

    /// A new request for the message's pieces, to be started again and again or begun already.
    ///
    /// # Safety
    /// As for [`begin`](Link::begin).
    unsafe fn request(
        &self,
        message: &Message,
        bytes: usize,
        direction: Direction,
        persistent: bool,
    ) -> Result<Handle> {
        let (mpi, peer, tag, comm) = (self.mpi(), message.peer, self.tag, self.communicator.handle);
        let first = message.pieces.first().map_or(std::ptr::dangling(), |piece| piece.at);
        let to = first.cast_mut();
        if message.pieces.len() <= 1 {
            // SAFETY: the caller's promise.
            return Ok(unsafe {
                match (direction, persistent) {
                    (Direction::Out, false) => mpi.isend(first, bytes, peer, tag, comm),
                    (Direction::Out, true) => mpi.send_init(first, bytes, peer, tag, comm),
                    (Direction::In, false) => mpi.irecv(to, bytes, peer, tag, comm),
                    (Direction::In, true) => mpi.recv_init(to, bytes, peer, tag, comm),
                }?
            });
        }
        let lengths: Vec<i32> = message.pieces.iter().map(|piece| piece.len as i32).collect();
        let offsets: Vec<isize> = message.pieces.iter().map(|piece| piece.at as isize - first as isize).collect();
        let datatype = mpi.type_create_hindexed(&lengths, &offsets, mpi.constants().types.byte)?;
        let begun = mpi.type_commit(datatype).and_then(|()| {
            // SAFETY: the caller's promise.
            unsafe {
                match (direction, persistent) {
                    (Direction::Out, false) => mpi.isend_typed(first, datatype, peer, tag, comm),
                    (Direction::Out, true) => mpi.send_init_typed(first, datatype, peer, tag, comm),
                    (Direction::In, false) => mpi.irecv_typed(to, datatype, peer, tag, comm),
                    (Direction::In, true) => mpi.recv_init_typed(to, datatype, peer, tag, comm),
                }
            }
        });
        mpi.type_free(datatype)?;
        Ok(begun?)
    }

    /// Whether pieces are better described to MPI than packed.
    fn typed(pieces: &[Piece], bytes: usize) -> bool {
        bytes / pieces.len().max(1) >= LONG_PIECES && pieces.iter().all(|piece| piece.len <= i32::MAX as usize)
    }

    /// Sends pieces.
    ///
    /// # Safety
    /// The pieces must stay readable and unwritten until [`sent`](Link::sent) or [`abandon`](Link::abandon).
    pub(crate) unsafe fn send(
        &self,
        message: &mut Message,
        pieces: impl Iterator<Item = Piece> + Clone,
        bytes: usize,
    ) -> Result<()> {
        message.staged = false;
        message.pieces.clear();
        message.pieces.extend(pieces.clone());
        if message.pieces.len() > 1 && !MpiTransport::typed(&message.pieces, bytes) {
            message.stage(bytes);
            let mut to = message.packed.as_mut_ptr().cast::<u8>();
            for piece in pieces {
                // SAFETY: the pieces are readable, and together as long as the message.
                unsafe {
                    std::ptr::copy_nonoverlapping(piece.at, to, piece.len);
                    to = to.add(piece.len);
                }
            }
        }
        // SAFETY: the caller's promise; packed bytes are the message's own.
        unsafe { self.begin(message, bytes, Direction::Out) }
    }

    /// Whether a message has been sent and its memory is ours again.
    #[inline]
    pub(crate) fn sent(&self, message: &mut Message) -> Result<bool> {
        if message.active && self.mpi().test_done(&mut message.handle)? {
            message.active = false;
        }
        Ok(!message.active)
    }

    /// Lets a message come in: in place, if it is to be put there as it is, or to be taken from where it arrives.
    ///
    /// # Safety
    /// The places have room for the message and are touched by nobody else until [`arrived`](Link::arrived) or
    /// [`abandon`](Link::abandon).
    pub(crate) unsafe fn post(
        &self,
        message: &mut Message,
        places: Option<impl Iterator<Item = Piece>>,
        bytes: usize,
    ) -> Result<()> {
        message.pieces.clear();
        message.staged = false;
        message.pieces.extend(places.into_iter().flatten());
        let in_place = match message.pieces.len() {
            0 => bytes == 0,
            1 => true,
            _ => MpiTransport::typed(&message.pieces, bytes),
        };
        if !in_place {
            message.stage(bytes);
        }
        // SAFETY: the caller's promise; staged bytes are the message's own.
        unsafe { self.begin(message, bytes, Direction::In) }
    }

    /// Whether a message has arrived and, if it is not in place already, where it is. Looks for it up to `looks` times.
    #[inline]
    pub(crate) fn arrived(
        &self,
        message: &mut Message,
        bytes: usize,
        mut looks: u32,
    ) -> Result<Option<Option<*const u8>>> {
        let size = |came: usize| Error::Size { rank: self.me, other: message.peer as usize, expected: bytes, came };
        let came = loop {
            match self.mpi().test_bytes(&mut message.handle, bytes) {
                Ok(Some(came)) => break came,
                Ok(None) if looks > 1 => looks -= 1,
                Ok(None) => return Ok(None),
                Err(error) => {
                    message.active = false;
                    return Err(match &error {
                        allhands_mpi::Error::Call { class: Class::Truncate, .. } => size(usize::MAX),
                        _ => error.into(),
                    });
                }
            }
        };
        message.active = false;
        if came != bytes {
            return Err(size(came));
        }
        Ok(Some(message.staged.then_some(message.packed.as_ptr().cast())))
    }

    /// Takes messages back. What cannot be taken back and is not fetched soon ends the job: memory that MPI may still read
    /// must not be given away.
    pub(crate) fn abandon<'a>(
        &self,
        outbound: impl Iterator<Item = &'a mut Message>,
        inbound: impl Iterator<Item = &'a mut Message>,
    ) {
        let mpi = self.mpi();
        for message in inbound.filter(|message| message.active) {
            let _ = mpi.cancel(&mut message.handle).and_then(|()| mpi.wait(&mut message.handle));
            message.active = false;
        }
        let began = Instant::now();
        for message in outbound.filter(|message| message.active) {
            let _ = mpi.cancel(&mut message.handle);
            while mpi.test_done(&mut message.handle) == Ok(false) {
                if began.elapsed() > LAST_WAIT {
                    crate::log::say(format_args!(
                        "rank {} gave up a collective whose messages were not received; the job ends here",
                        self.me
                    ));
                    mpi.abort(self.communicator.handle, 1);
                }
                std::thread::yield_now();
            }
            message.active = false;
        }
    }

    /// Frees the request of a message that is not under way.
    pub(crate) fn free(&self, message: &mut Message) {
        if message.persistent && self.mpi().finalized() == Ok(false) {
            let _ = self.mpi().request_free(&mut message.handle);
        }
        message.persistent = false;
    }
}
