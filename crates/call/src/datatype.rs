//! Datatypes: how many bytes they have, and how far apart their elements lie.

use allhands_mpi::Handle;

use crate::derived;
use crate::failure::{Reason, Unserved};
use crate::types::Types;

/// Larger blocks are the MPI's, where all ranks know how large they are. Buffers of many blocks may be longer.
pub(crate) const MOST: usize = 1 << 30;

/// A datatype.
#[derive(Clone, Copy)]
pub struct Datatype {
    /// What the program calls it.
    pub handle: Handle,
    /// Bytes of data.
    pub size: usize,
    /// From one element to the next.
    pub extent: isize,
    /// Whether its data are one run of bytes without gaps.
    pub(crate) dense: bool,
}

impl Datatype {
    /// What a handle stands for.
    #[inline]
    pub fn of(types: &Types, handle: Handle) -> Result<Datatype, Unserved> {
        if let Some(basic) = types.basic(handle) {
            let dense = basic.size == basic.extent;
            return Ok(Datatype { handle, size: basic.size, extent: basic.extent as isize, dense });
        }
        derived::of(types.mpi(), handle)
    }

    /// Elements of a reduction, which are taken as they lie, gaps included.
    #[inline]
    pub fn element(handle: Handle, bytes: usize) -> Datatype {
        Datatype { handle, size: bytes, extent: bytes as isize, dense: true }
    }

    /// The bytes of so many.
    #[inline]
    pub fn bytes(&self, count: usize) -> usize {
        self.size.saturating_mul(count)
    }

    /// The bytes of a block of so many, or of the vector of a reduction, of which all ranks know the bytes.
    #[inline]
    pub fn block(&self, count: usize) -> Result<usize, Unserved> {
        match self.bytes(count) {
            bytes if bytes <= MOST => Ok(bytes),
            _ => Err(Reason::TooLarge.into()),
        }
    }

    /// Elements of so many blocks.
    #[inline]
    pub fn times(&self, count: usize, blocks: usize) -> usize {
        // Of elements without data there may be more than can be counted, and none of them matters.
        if self.size == 0 { 0 } else { count.saturating_mul(blocks) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_limited() {
        let word = Datatype::element(0, 4);
        assert_eq!(word.block(MOST / 4).ok(), Some(MOST));
        assert!(matches!(word.block(MOST / 4 + 1), Err(Unserved::Fallback(Reason::TooLarge))));
        assert!(word.block(usize::MAX).is_err());
        assert_eq!(word.times(MOST / 4, 1100), 1100 * (MOST / 4), "buffers of many blocks are not");
        assert_eq!(Datatype::element(0, 0).times(usize::MAX, 2), 0);
    }
}
