//! Messages to ranks that no shared memory reaches: MPI's point-to-point messages, on a communicator of our own.
//!
//! Between two ranks the messages of a plan have one tag, the plan's number, and are sent and received in the same order,
//! which MPI keeps. A message whose bytes lie in one piece goes out from there, and comes in there unless it is to be
//! combined; others are packed. A message that was sent from the same address twice gets a persistent request the second
//! time: plans that are run on the same buffers reuse their requests, one-off calls use `Isend` and `Irecv`.

use std::rc::Rc;
use std::time::{Duration, Instant};

use allhands_mpi::{Class, Handle, Mpi};

use crate::error::{Error, Result};
use crate::node::Piece;

/// The MPI job that a rank belongs to.
pub(crate) struct Job {
    /// Kept while this rank may wait, also when only parts of it are left.
    communicator: Rc<Communicator>,
}

impl Job {
    pub(crate) fn new(communicator: Rc<Communicator>) -> Job {
        Job { communicator }
    }

    /// Lets MPI move messages, ours and the program's.
    pub(crate) fn progress(&self) {
        let Communicator { mpi, handle, .. } = &*self.communicator;
        let (any, tag) = (mpi.constants().integers.any_source, 0);
        // An error here is one of a message, and is found where that message is waited for.
        let _ = mpi.iprobe(any, tag, *handle);
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
    pub(crate) fn own(mpi: &'static Mpi, handle: Handle) -> Result<Rc<Communicator>> {
        mpi.comm_errors_return(handle)?;
        Ok(Rc::new(Communicator { mpi, handle, tags: mpi.tag_ub(handle)? as u64 }))
    }

    /// A duplicate.
    pub(crate) fn duplicate(&self) -> Result<Rc<Communicator>> {
        Communicator::own(self.mpi, self.mpi.comm_dup(self.handle)?)
    }

    /// The ranks of the same color, ordered by key.
    pub(crate) fn split(&self, color: usize, key: usize) -> Result<Rc<Communicator>> {
        let part = self.mpi.comm_split(self.handle, Some(color as i32), key as i32)?;
        Communicator::own(self.mpi, part.expect("a color was given"))
    }

    /// The greatest tag.
    pub(crate) fn tags(&self) -> u64 {
        self.tags
    }

    pub(crate) fn mpi(&self) -> &'static Mpi {
        self.mpi
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
pub(crate) struct Link {
    communicator: Rc<Communicator>,
    tag: i32,
    /// This rank of the world, for messages.
    me: usize,
}

/// A message that goes out.
pub(crate) struct Outbound {
    peer: i32,
    request: Request,
    packed: Vec<u128>,
}

/// A message that comes in.
pub(crate) struct Inbound {
    peer: i32,
    request: Request,
    unpacked: Vec<u128>,
    staged: bool,
}

/// A request of one message, run after run.
#[derive(Default)]
struct Request {
    handle: Handle,
    /// The address it was last used with.
    at: usize,
    persistent: bool,
    active: bool,
}

impl Outbound {
    pub(crate) fn new(peer: usize) -> Outbound {
        Outbound { peer: peer as i32, request: Request::default(), packed: Vec::new() }
    }
}

impl Inbound {
    pub(crate) fn new(peer: usize) -> Inbound {
        Inbound { peer: peer as i32, request: Request::default(), unpacked: Vec::new(), staged: false }
    }
}

/// How long a failed run waits for its messages before it ends the job.
const LAST_WAIT: Duration = Duration::from_secs(5);

impl Link {
    pub(crate) fn new(communicator: Rc<Communicator>, plan: u64, me: usize) -> Link {
        Link { communicator, tag: plan as i32, me }
    }

    fn mpi(&self) -> &'static Mpi {
        self.communicator.mpi
    }

    /// Begins a message: by the request of last time if the address is the same again, by a new one otherwise.
    fn begin(
        &self,
        request: &mut Request,
        at: usize,
        once: impl FnOnce() -> allhands_mpi::Result<Handle>,
        prepare: impl FnOnce() -> allhands_mpi::Result<Handle>,
    ) -> Result<()> {
        let again = request.at == at;
        if request.persistent && !again {
            self.mpi().request_free(&mut request.handle)?;
            request.persistent = false;
        }
        if again {
            if !request.persistent {
                request.handle = prepare()?;
                request.persistent = true;
            }
            // SAFETY: the caller of `send` or `post` vouches for the memory.
            unsafe { self.mpi().start(&mut request.handle)? };
        } else {
            request.handle = once()?;
            request.at = at;
        }
        request.active = true;
        Ok(())
    }

    /// Sends pieces.
    ///
    /// # Safety
    /// The pieces must stay readable and unwritten until [`sent`](Link::sent) or [`abandon`](Link::abandon).
    pub(crate) unsafe fn send(
        &self,
        outbound: &mut Outbound,
        mut pieces: impl Iterator<Item = Piece>,
        count: usize,
        bytes: usize,
    ) -> Result<()> {
        let at: *const u8 = match count {
            0 => std::ptr::dangling(),
            1 => pieces.next().map_or(std::ptr::null(), |piece| piece.at),
            _ => {
                outbound.packed.resize(bytes.div_ceil(16), 0);
                let mut to = outbound.packed.as_mut_ptr().cast::<u8>();
                for piece in pieces {
                    // SAFETY: the pieces are readable, and together as long as the message.
                    unsafe {
                        std::ptr::copy_nonoverlapping(piece.at, to, piece.len);
                        to = to.add(piece.len);
                    }
                }
                outbound.packed.as_ptr().cast()
            }
        };
        let (peer, tag, comm) = (outbound.peer, self.tag, self.communicator.handle);
        // SAFETY: the caller keeps the pieces, and the outbound message its packed copy, until the send is through.
        let once = || unsafe { self.mpi().isend(at, bytes, peer, tag, comm) };
        // SAFETY: as above, whenever it is started.
        let prepare = || unsafe { self.mpi().send_init(at, bytes, peer, tag, comm) };
        self.begin(&mut outbound.request, at as usize, once, prepare)
    }

    /// Whether a message has been sent and its memory is ours again.
    #[inline]
    pub(crate) fn sent(&self, outbound: &mut Outbound) -> Result<bool> {
        let request = &mut outbound.request;
        if request.active && self.mpi().test_done(&mut request.handle)? {
            request.active = false;
        }
        Ok(!request.active)
    }

    /// Lets a message come in, straight to an address or to be taken from where it arrives.
    ///
    /// # Safety
    /// The address has room for the message and is touched by nobody else until [`arrived`](Link::arrived) or
    /// [`abandon`](Link::abandon).
    pub(crate) unsafe fn post(&self, inbound: &mut Inbound, to: Option<*mut u8>, bytes: usize) -> Result<()> {
        inbound.staged = to.is_none();
        let at = match to {
            Some(at) => at,
            None => {
                inbound.unpacked.resize(bytes.div_ceil(16), 0);
                inbound.unpacked.as_mut_ptr().cast()
            }
        };
        let (peer, tag, comm) = (inbound.peer, self.tag, self.communicator.handle);
        // SAFETY: the caller keeps the address, and the inbound message its own memory, until the message has arrived.
        let once = || unsafe { self.mpi().irecv(at, bytes, peer, tag, comm) };
        // SAFETY: as above, whenever it is started.
        let prepare = || unsafe { self.mpi().recv_init(at, bytes, peer, tag, comm) };
        self.begin(&mut inbound.request, at as usize, once, prepare)
    }

    /// Whether a message has arrived and, if it is not in place already, where it is.
    #[inline]
    pub(crate) fn arrived(&self, inbound: &mut Inbound, bytes: usize) -> Result<Option<Option<*const u8>>> {
        let size = |came: usize| Error::Size { rank: self.me, other: inbound.peer as usize, expected: bytes, came };
        let status = match self.mpi().test(&mut inbound.request.handle) {
            Ok(None) => return Ok(None),
            Ok(Some(status)) => status,
            Err(error) => {
                inbound.request.active = false;
                return Err(match &error {
                    allhands_mpi::Error::Call { class: Class::Truncate, .. } => size(usize::MAX),
                    _ => error.into(),
                });
            }
        };
        inbound.request.active = false;
        if status.bytes != bytes {
            return Err(size(status.bytes));
        }
        Ok(Some(inbound.staged.then_some(inbound.unpacked.as_ptr().cast())))
    }

    /// Takes messages back. What cannot be taken back and is not fetched soon ends the job: memory that MPI may still read
    /// must not be given away.
    pub(crate) fn abandon<'a>(
        &self,
        outbound: impl Iterator<Item = &'a mut Outbound>,
        inbound: impl Iterator<Item = &'a mut Inbound>,
    ) {
        let mpi = self.mpi();
        let receives = inbound.map(|inbound| &mut inbound.request).filter(|request| request.active);
        for request in receives {
            let _ = mpi.cancel(&mut request.handle).and_then(|()| mpi.wait(&mut request.handle));
            request.active = false;
        }
        let began = Instant::now();
        for request in outbound.map(|outbound| &mut outbound.request).filter(|request| request.active) {
            let _ = mpi.cancel(&mut request.handle);
            while mpi.test_done(&mut request.handle) == Ok(false) {
                if began.elapsed() > LAST_WAIT {
                    eprintln!(
                        "allhands: rank {} gave up a collective whose messages were not received; the job ends here",
                        self.me
                    );
                    mpi.abort(self.communicator.handle, 1);
                }
                std::thread::yield_now();
            }
            request.active = false;
        }
    }

    pub(crate) fn free_outbound(&self, outbound: &mut Outbound) {
        self.free(&mut outbound.request);
    }

    pub(crate) fn free_inbound(&self, inbound: &mut Inbound) {
        self.free(&mut inbound.request);
    }

    fn free(&self, request: &mut Request) {
        if request.persistent && self.mpi().finalized() == Ok(false) {
            let _ = self.mpi().request_free(&mut request.handle);
        }
        request.persistent = false;
    }
}
