//! Reading what another rank's reference names.

use std::cell::RefCell;

use super::{Piece, Reference};

/// How this rank reads the memory of others of its node.
pub(crate) enum PeerMemory {
    /// They are threads of this process.
    Here,
    /// They are processes whose memory the kernel copies for us.
    Kernel {
        /// The process of each rank.
        processes: Vec<u32>,
        /// Pieces pass through here on their way to a kernel that combines them.
        bounce: RefCell<Vec<u128>>,
    },
    /// They are processes whose memory we may not read: every message goes through slots.
    Nowhere,
}

/// Long enough to be worth a system call, short enough to stay in the cache.
const BOUNCE: usize = 128 * 1024;

/// The kernel refused, or the process is gone.
#[derive(Debug)]
pub(crate) struct Unreadable(pub(crate) std::io::Error);

impl PeerMemory {
    pub(crate) fn kernel(processes: Vec<u32>) -> PeerMemory {
        PeerMemory::Kernel { processes, bounce: RefCell::new(vec![0; BOUNCE / 16]) }
    }

    /// Hands what a reference of rank `from` names to `place`, piece by piece. If everything goes to one run of memory as it is,
    /// `whole` says where.
    ///
    /// # Safety
    /// The reference is being read (its [`Reading`](super::channel::Reading) lives), and `whole` has room for all of it.
    pub(crate) unsafe fn read(
        &self,
        from: usize,
        reference: &Reference,
        whole: Option<*mut u8>,
        mut place: impl FnMut(Piece),
    ) -> Result<(), Unreadable> {
        let (processes, bounce) = match self {
            PeerMemory::Here => {
                let one = [reference.piece];
                let pieces = match reference.pieces {
                    1 => &one[..],
                    // SAFETY: the sender keeps the list while it is read.
                    count => unsafe { std::slice::from_raw_parts(reference.piece.at.cast(), count as usize) },
                };
                pieces.iter().for_each(|piece| place(*piece));
                return Ok(());
            }
            PeerMemory::Kernel { processes, bounce } => (processes, bounce),
            PeerMemory::Nowhere => unreachable!("nobody refers to memory that cannot be read"),
        };
        let process = processes[from];
        let mut bounce = bounce.borrow_mut();
        let bounce = bounce.as_mut_ptr().cast::<u8>();
        let mut one = |piece: Piece, offset: &mut usize| -> Result<(), Unreadable> {
            if let Some(whole) = whole {
                // SAFETY: `whole` has room for all pieces one after the other.
                unsafe { copy(process, piece, whole.add(*offset))? };
                *offset += piece.len;
                return Ok(());
            }
            let mut done = 0;
            while done < piece.len {
                let len = (piece.len - done).min(BOUNCE);
                // SAFETY: inside the piece; `len` fits into the bounce buffer.
                unsafe { copy(process, Piece { at: piece.at.add(done), len }, bounce)? };
                place(Piece { at: bounce, len });
                done += len;
            }
            Ok(())
        };
        let mut offset = 0;
        if reference.pieces == 1 {
            return one(reference.piece, &mut offset);
        }
        let count = reference.pieces as usize;
        for first in (0..count).step_by(LIST) {
            let mut list = [Piece { at: std::ptr::null(), len: 0 }; LIST];
            let len = LIST.min(count - first);
            // SAFETY: the list has `count` pieces, and the copy has room for `len`.
            unsafe {
                let at = reference.piece.at.add(first * size_of::<Piece>());
                copy(process, Piece { at, len: len * size_of::<Piece>() }, list.as_mut_ptr().cast())?;
            }
            list[..len].iter().try_for_each(|piece| one(*piece, &mut offset))?;
        }
        Ok(())
    }
}

/// So many pieces of a list are fetched at once.
const LIST: usize = 64;

/// Copies a piece of another process's memory.
///
/// # Safety
/// `to` has room for it.
pub(crate) unsafe fn copy(process: u32, piece: Piece, to: *mut u8) -> Result<(), Unreadable> {
    let mut done = 0;
    while done < piece.len {
        let len = piece.len - done;
        // SAFETY: inside the piece and its destination. The remote address is only named: the kernel checks it.
        let copied = unsafe {
            let local = libc::iovec { iov_base: to.add(done).cast(), iov_len: len };
            let remote = libc::iovec { iov_base: piece.at.add(done).cast_mut().cast(), iov_len: len };
            libc::process_vm_readv(process as libc::pid_t, &local, 1, &remote, 1, 0)
        };
        match copied {
            ..=0 => return Err(Unreadable(std::io::Error::last_os_error())),
            copied => done += copied as usize,
        }
    }
    Ok(())
}
