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

    /// Hands what a reference of rank `from` names to `place`, piece by piece; or, where it is the kernel that copies, puts it as it is into
    /// `runs` of memory, one after the other, if there are any.
    ///
    /// # Safety
    /// The reference is being read (its [`Reading`](super::channel::Reading) lives), and the runs have room for all of it.
    pub(crate) unsafe fn read(
        &self,
        from: usize,
        reference: &Reference,
        mut runs: Option<Runs<impl Fn(usize) -> Option<(*mut u8, usize)>>>,
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
        let mut one = |piece: Piece| -> Result<(), Unreadable> {
            if let Some(runs) = &mut runs {
                // SAFETY: the runs have room for all pieces.
                return unsafe { runs.fill(process, piece) };
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
        if reference.pieces == 1 {
            return one(reference.piece);
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
            list[..len].iter().try_for_each(|piece| one(*piece))?;
        }
        Ok(())
    }
}

/// So many pieces of a list are fetched at once, and so many runs of memory are written at once.
const LIST: usize = 64;

/// Copies a piece of another process's memory.
///
/// # Safety
/// `to` has room for it.
pub(crate) unsafe fn copy(process: u32, piece: Piece, to: *mut u8) -> Result<(), Unreadable> {
    // SAFETY: the caller's promise.
    unsafe { Runs::new(|index| (index == 0).then_some((to, piece.len))).fill(process, piece) }
}

/// Runs of this process's memory, which are written one after the other.
pub(crate) struct Runs<F> {
    /// Where each begins, and how long it is.
    run: F,
    /// The first that is not full, and how many of its bytes are written.
    first: usize,
    written: usize,
}

impl<F: Fn(usize) -> Option<(*mut u8, usize)>> Runs<F> {
    pub(crate) fn new(run: F) -> Runs<F> {
        Runs { run, first: 0, written: 0 }
    }

    /// Copies a piece of another process's memory to where the last one ended, with as few system calls as there are lists of runs.
    ///
    /// # Safety
    /// There is room for it.
    unsafe fn fill(&mut self, process: u32, piece: Piece) -> Result<(), Unreadable> {
        let mut done = 0;
        while done < piece.len {
            let mut list = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; LIST];
            let (mut count, mut room) = (0, 0);
            while count < LIST
                && room < piece.len - done
                && let Some((at, len)) = (self.run)(self.first + count)
            {
                let written = if count == 0 { self.written } else { 0 };
                list[count] = libc::iovec { iov_base: at.wrapping_add(written).cast(), iov_len: len - written };
                room += len - written;
                count += 1;
            }
            // SAFETY: the runs are writable, and the kernel ends with the shorter side. The remote address is only named: the kernel checks it.
            let copied = unsafe {
                let remote = libc::iovec { iov_base: piece.at.add(done).cast_mut().cast(), iov_len: piece.len - done };
                libc::process_vm_readv(process as libc::pid_t, list.as_ptr(), count as libc::c_ulong, &remote, 1, 0)
            };
            match copied {
                ..=0 => return Err(Unreadable(std::io::Error::last_os_error())),
                copied => {
                    done += copied as usize;
                    self.written += copied as usize;
                }
            }
            while let Some((_, len)) = (self.run)(self.first)
                && self.written >= len
            {
                (self.first, self.written) = (self.first + 1, self.written - len);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever sends and takes cuts as it likes, in more pieces than go into one list.
    #[test]
    fn pieces_go_to_runs_that_are_cut_otherwise() {
        let (mine, mut read) = ([7], [0]);
        // SAFETY: a byte each.
        if unsafe { copy(std::process::id(), Piece { at: mine.as_ptr(), len: 1 }, read.as_mut_ptr()) }.is_err() {
            eprintln!("skipped: the kernel lets no process read another's memory here");
            return;
        }
        let from: Vec<u8> = (0..10_000u32).map(|index| ((index * index) >> 5) as u8).collect();
        let cut = |every: usize| (0..from.len()).step_by(every).map(move |at| (at, every.min(10_000 - at)));
        for (sent, taken) in [(10_000, 10_000), (10_000, 37), (37, 10_000), (100, 101), (7, 3), (64, 256)] {
            let mut to = vec![0; from.len()];
            let at = to.as_mut_ptr();
            let cuts: Vec<(usize, usize)> = cut(taken).collect();
            let run = |index: usize| cuts.get(index).map(|&(start, len)| (at.wrapping_add(start), len));
            let pieces: Vec<Piece> = cut(sent).map(|(start, len)| Piece { at: from[start..].as_ptr(), len }).collect();
            let piece = match &pieces[..] {
                [one] => *one,
                list => Piece { at: list.as_ptr().cast(), len: 0 },
            };
            let reference = Reference { number: 0, piece, pieces: pieces.len() as u32, bytes: from.len() };
            let memory = PeerMemory::kernel(vec![std::process::id()]);
            // SAFETY: everything lives until it is read, and the runs are as long together.
            unsafe { memory.read(0, &reference, Some(Runs::new(run)), |_| unreachable!()) }.unwrap();
            assert_eq!(to, from, "{sent} {taken}");
        }
    }
}
