//! The messages of a run: how they go out and come in, and what becomes of their bytes.

use allhands_schedule::Combine;

use crate::mpi_transport;
use crate::node::{Node, PeerMemory, Piece};
use crate::op::Reducer;
use crate::program::{Beside, Memory, Message, Segment};

/// Between processes, messages that are longer are read from the sender's memory: up to what the slots hold, a system call, and the wait until the
/// reader is through, cost more than a second copy. Measured with isolated calls on 2 ranks, as are the exceptions; see ARCHITECTURE.md.
const REFER_BETWEEN_PROCESSES: usize = 128 * 1024;
/// Where operands are combined as they land, a second copy costs less: the first one is all there is beside the combining.
const REFER_OPERANDS: usize = 512 * 1024;
/// Messages are referred to only if their pieces are this long on average.
const LONG_PIECES: usize = 4 * 1024;

/// Where a message goes out.
pub(super) enum Outlet {
    Letters { to: usize, cursor: Cursor, done: bool },
    Reference { to: usize, pieces: Vec<Piece>, number: Option<u32> },
    Far(mpi_transport::Message),
}

/// Where a message comes in.
pub(super) enum Inlet {
    Near { from: usize },
    Far(mpi_transport::Message),
}

/// How far a message has been sent or taken.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cursor {
    pub(super) part: usize,
    /// Bytes of this part, and of the whole message.
    pub(super) in_part: usize,
    pub(super) in_all: usize,
}

/// Whether a message to a rank of the same node is read from the sender's memory.
pub(super) fn refers(node: &Node, message: &Message) -> bool {
    match node.peer_memory {
        PeerMemory::Here => message.bytes > node.body(),
        PeerMemory::Kernel { .. } => {
            let long = match message.beside {
                // Sender and receiver copy at the same time, each its half of the way.
                Beside::Nothing => false,
                Beside::Combining => message.bytes > REFER_OPERANDS,
                Beside::Moving => message.bytes > REFER_BETWEEN_PROCESSES,
            };
            long && message.bytes / message.parts.len() >= LONG_PIECES
        }
        PeerMemory::Nowhere => false,
    }
}

#[inline]
pub(super) fn address(bases: &[*mut u8; 4], segment: &Segment) -> *mut u8 {
    let base = bases[match segment.memory {
        Memory::Input => 0,
        Memory::Output => 1,
        Memory::Scratch => 2,
        Memory::Shared => 3,
    }];
    // SAFETY: programs stay inside the memory they were compiled for; `begin` was promised as much.
    unsafe { base.add(segment.at) }
}

/// # Safety
/// `len` bytes are readable at `from` and writable at `to`, and no byte is both.
#[inline(always)]
pub(super) unsafe fn copy_run(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        match len {
            // The most frequent size of all, and that of a barrier, without a call.
            8 => std::ptr::copy_nonoverlapping(from, to, 8),
            0 => {}
            len => std::ptr::copy_nonoverlapping(from, to, len),
        }
    }
}

/// Writes the next `bytes` of a message to `to`.
#[inline]
pub(super) fn fill(bases: &[*mut u8; 4], message: &Message, cursor: &mut Cursor, mut to: *mut u8, bytes: usize) {
    cursor.in_all += bytes;
    let mut left = bytes;
    while left > 0 {
        let part = &message.parts[cursor.part];
        let len = left.min(part.len - cursor.in_part);
        // SAFETY: inside the part; the destination has room for `bytes`.
        unsafe {
            copy_run(address(bases, part).add(cursor.in_part), to, len);
            to = to.add(len);
        }
        left -= len;
        cursor.in_part += len;
        if cursor.in_part == part.len {
            (cursor.part, cursor.in_part) = (cursor.part + 1, 0);
        }
    }
}

/// What becomes of a message that arrives.
pub(super) struct Destination<'a> {
    pub(super) bases: &'a [*mut u8; 4],
    pub(super) reducer: Option<&'a dyn Reducer>,
    pub(super) message: &'a Message,
    pub(super) side: Option<Combine>,
    pub(super) others: Option<&'a [Segment]>,
}

impl Destination<'_> {
    /// Puts a piece, which is not cut as the parts are, where it belongs.
    #[inline]
    pub(super) fn put(&self, cursor: &mut Cursor, mut piece: Piece) {
        // All of it at once, as most messages come.
        if self.message.parts.len() == 1 && piece.len == self.message.bytes {
            cursor.in_all = piece.len;
            // SAFETY: as below, at the beginning of the one part.
            return unsafe { self.put_run(&Cursor::default(), piece.at, piece.len) };
        }
        cursor.in_all += piece.len;
        while piece.len > 0 {
            let part = &self.message.parts[cursor.part];
            let len = piece.len.min(part.len - cursor.in_part);
            // SAFETY: the piece is readable while it is taken; the parts are inside this rank's memory and together as long
            // as the message.
            unsafe {
                self.put_run(cursor, piece.at, len);
                piece = Piece { at: piece.at.add(len), len: piece.len - len };
            }
            cursor.in_part += len;
            if cursor.in_part == part.len {
                (cursor.part, cursor.in_part) = (cursor.part + 1, 0);
            }
        }
    }

    /// # Safety
    /// `len` bytes are readable at `from`, and inside the part the cursor is at.
    #[inline]
    unsafe fn put_run(&self, cursor: &Cursor, from: *const u8, len: usize) {
        let reducer = || self.reducer.expect("a plan that combines has an operation");
        // SAFETY: the caller's promise; operands are cut as parts are, so both are inside this rank's memory.
        unsafe {
            let to = address(self.bases, &self.message.parts[cursor.part]).add(cursor.in_part);
            match (self.side, self.others) {
                (None, _) => copy_run(from, to, len),
                (Some(side), None) => reducer().combine(from, to, len, side),
                (Some(side), Some(others)) => {
                    let other = address(self.bases, &others[cursor.part]).add(cursor.in_part).cast_const();
                    let (left, right) = if side == Combine::After { (from, other) } else { (other, from) };
                    reducer().combine_into(left, right, to, len);
                }
            }
        }
    }
}
