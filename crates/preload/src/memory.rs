//! The memory that a program hands to a collective: parts of it, somewhere, of a datatype.

use std::ffi::{c_int, c_longlong};
use std::ptr::{copy_nonoverlapping, null_mut};

use allhands_mpi::{Handle, Mpi};

use crate::failure::{REFUSED, Unserved, passed};
use crate::session::Session;

/// Larger blocks are the MPI's: its counts end there, and so do those of packing.
pub(crate) const MOST: usize = 1 << 30;
pub(crate) const TOO_LARGE: Unserved = passed(TOO_LARGE_TEXT);
pub(crate) const TOO_LARGE_TEXT: &str = "more than 1 GiB";

/// A datatype.
#[derive(Clone, Copy)]
pub(crate) struct Datatype {
    pub(crate) handle: Handle,
    /// Bytes of data.
    pub(crate) size: usize,
    /// From one element to the next.
    pub(crate) extent: isize,
    /// Whether its data are one run of bytes without gaps.
    dense: bool,
}

impl Datatype {
    #[inline]
    pub(crate) fn of(session: &Session, handle: Handle) -> Result<Datatype, Unserved> {
        if let Some(basic) = session.types.basic(handle) {
            let dense = basic.size == basic.extent;
            return Ok(Datatype { handle, size: basic.size, extent: basic.extent as isize, dense });
        }
        Datatype::derived(session, handle)
    }

    fn derived(session: &Session, handle: Handle) -> Result<Datatype, Unserved> {
        if handle == session.mpi.constants().handles.datatype_null {
            return Err(REFUSED);
        }
        let mut size = 0;
        // SAFETY: the program's handle, and the size is writable.
        if unsafe { (session.mpi.raw().type_size)(handle, &mut size) } != 0 {
            return Err(REFUSED);
        }
        // More bytes than an `int` counts: those of other ranks are as many.
        let size = usize::try_from(size).map_err(|_| TOO_LARGE)?;
        let (_, extent) = session.mpi.type_extent(handle)?;
        Ok(Datatype { handle, size, extent, dense: false })
    }

    /// Elements of a reduction, which are taken as they lie, gaps included.
    #[inline]
    pub(crate) fn element(handle: Handle, bytes: usize) -> Datatype {
        Datatype { handle, size: bytes, extent: bytes as isize, dense: true }
    }

    /// The bytes of so many.
    #[inline]
    pub(crate) fn bytes(&self, count: usize) -> Result<usize, Unserved> {
        self.size.checked_mul(count).filter(|bytes| *bytes <= MOST).ok_or(TOO_LARGE)
    }
}

/// Counts or places, as wide as the function has them.
#[derive(Clone, Copy)]
pub(crate) enum Numbers {
    Narrow(*const c_int),
    Wide(*const c_longlong),
}

impl From<*const c_int> for Numbers {
    fn from(at: *const c_int) -> Numbers {
        Numbers::Narrow(at)
    }
}

impl From<*const c_longlong> for Numbers {
    fn from(at: *const c_longlong) -> Numbers {
        Numbers::Wide(at)
    }
}

impl From<*const isize> for Numbers {
    fn from(at: *const isize) -> Numbers {
        Numbers::Wide(at.cast())
    }
}

impl Numbers {
    /// The first `length` of them; none where the program gave none.
    ///
    /// # Safety
    /// The address is null or that of an array of `length` numbers.
    pub(crate) unsafe fn read(self, length: usize) -> Result<Vec<i64>, Unserved> {
        // SAFETY: the caller's promise.
        match self {
            Numbers::Narrow(at) if !at.is_null() => Ok((0..length).map(|i| unsafe { *at.add(i) }.into()).collect()),
            Numbers::Wide(at) if !at.is_null() => Ok((0..length).map(|i| unsafe { *at.add(i) }).collect()),
            _ => Err(REFUSED),
        }
    }
}

/// A count of the program's.
#[inline]
pub(crate) fn count(number: i64) -> Result<usize, Unserved> {
    usize::try_from(number).map_err(|_| REFUSED)
}

/// Counts of the program's.
///
/// # Safety
/// As for [`Numbers::read`].
pub(crate) unsafe fn counts(numbers: Numbers, length: usize) -> Result<Vec<usize>, Unserved> {
    // SAFETY: the caller's promise.
    unsafe { numbers.read(length)? }.into_iter().map(count).collect()
}

/// Memory of the program.
pub(crate) struct Region {
    at: *mut u8,
    datatype: Datatype,
    parts: Parts,
    /// What the address is to be a multiple of.
    align: usize,
    /// A datatype of ours that is like the program's, which may be freed.
    held: Option<Held>,
}

struct Held {
    mpi: &'static Mpi,
    datatype: Handle,
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.mpi.type_free(self.datatype);
    }
}

enum Parts {
    /// So many elements from the start.
    One(usize),
    /// For each, where it begins, in elements, and how many it has.
    Several(Vec<(isize, usize)>),
}

impl Region {
    /// Nothing.
    pub(crate) fn none() -> Region {
        Region { at: null_mut(), datatype: Datatype::element(0, 1), parts: Parts::One(0), align: 1, held: None }
    }

    /// So many elements.
    #[inline(always)]
    pub(crate) fn new(at: *mut u8, count: usize, datatype: Datatype) -> Result<Region, Unserved> {
        datatype.bytes(count)?;
        if at.is_null() && count > 0 && datatype.dense {
            return Err(REFUSED);
        }
        Ok(Region { at, datatype, parts: Parts::One(count), align: 1, held: None })
    }

    /// Elements for each rank, where the program puts them.
    pub(crate) fn scattered(
        at: *mut u8,
        counts: &[usize],
        places: &[i64],
        datatype: Datatype,
    ) -> Result<Region, Unserved> {
        let sum = counts.iter().try_fold(0usize, |sum, count| sum.checked_add(*count)).ok_or(TOO_LARGE)?;
        if at.is_null() && datatype.bytes(sum)? > 0 && datatype.dense {
            return Err(REFUSED);
        }
        let parts = places.iter().zip(counts).map(|(place, count)| (*place as isize, *count));
        let mut next = 0;
        let consecutive = parts.clone().all(|(place, count)| {
            let here = count == 0 || place == next;
            next += count as isize;
            here
        });
        let parts = if consecutive { Parts::One(next as usize) } else { Parts::Several(parts.collect()) };
        Ok(Region { at, datatype, parts, align: 1, held: None })
    }

    /// From now on the program may free its datatype.
    pub(crate) fn hold(&mut self, mpi: &'static Mpi) -> Result<(), Unserved> {
        if !self.datatype.dense && self.bytes() > 0 && self.held.is_none() {
            let datatype = mpi.type_contiguous(1, self.datatype.handle)?;
            self.held = Some(Held { mpi, datatype });
            mpi.type_commit(datatype)?;
            self.datatype.handle = datatype;
        }
        Ok(())
    }

    /// The same memory, which is used as it is only at multiples of this.
    #[inline(always)]
    pub(crate) fn aligned(self, align: usize) -> Region {
        Region { align, ..self }
    }

    /// What its address is to be a multiple of.
    pub(crate) fn align(&self) -> usize {
        self.align
    }

    /// Bytes of data.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        let count = match &self.parts {
            Parts::One(count) => *count,
            Parts::Several(parts) => parts.iter().map(|(_, count)| count).sum(),
        };
        count * self.datatype.size
    }

    /// Where it begins.
    pub(crate) fn at(&self) -> *mut u8 {
        self.at
    }

    /// The address, if the data lie there one after the other.
    #[inline]
    pub(crate) fn direct(&self) -> Option<*mut u8> {
        let together = self.datatype.dense && matches!(self.parts, Parts::One(_)) || self.bytes() == 0;
        (together && (self.at as usize).is_multiple_of(self.align)).then_some(self.at)
    }

    /// Copies the data to `to`, one after the other.
    ///
    /// # Safety
    /// The program's memory is as it says, and `to` has room.
    pub(crate) unsafe fn pack(&self, mpi: &Mpi, mut to: *mut u8) -> Result<(), Unserved> {
        for (from, count) in self.pieces() {
            let bytes = count * self.datatype.size;
            // SAFETY: the caller's promise; MPI is told how much room there is.
            unsafe {
                if self.datatype.dense {
                    copy_nonoverlapping(from, to, bytes);
                } else {
                    let (raw, room) = (mpi.raw(), bytes as c_int);
                    let code = with_an_address(mpi, from, count, self.datatype.handle, |from, count, handle| {
                        let from = from.cast_const().cast();
                        (raw.pack)(from, count, handle, to.cast(), room, &mut 0, mpi.comm_self())
                    })?;
                    mpi.check("MPI_Pack", code)?;
                }
                to = to.add(bytes);
            }
        }
        Ok(())
    }

    /// Copies data that lie one after the other to where the program wants them.
    ///
    /// # Safety
    /// The program's memory is as it says, and `from` has as many bytes.
    pub(crate) unsafe fn unpack(&self, mpi: &Mpi, mut from: *const u8) -> Result<(), Unserved> {
        for (to, count) in self.pieces() {
            let bytes = count * self.datatype.size;
            // SAFETY: the caller's promise.
            unsafe {
                if self.datatype.dense {
                    copy_nonoverlapping(from, to, bytes);
                } else {
                    let (raw, length) = (mpi.raw(), bytes as c_int);
                    let code = with_an_address(mpi, to, count, self.datatype.handle, |to, count, handle| {
                        (raw.unpack)(from.cast(), length, &mut 0, to.cast(), count, handle, mpi.comm_self())
                    })?;
                    mpi.check("MPI_Unpack", code)?;
                }
                from = from.add(bytes);
            }
        }
        Ok(())
    }

    /// The address and the number of elements of every part that has some.
    fn pieces(&self) -> Vec<(*mut u8, usize)> {
        let piece = |place: isize, count: usize| (self.at.wrapping_offset(place * self.datatype.extent), count);
        let mut pieces = match &self.parts {
            Parts::One(count) => vec![piece(0, *count)],
            Parts::Several(parts) => parts.iter().map(|(place, count)| piece(*place, *count)).collect(),
        };
        pieces.retain(|(_, count)| *count > 0);
        pieces
    }
}

/// Calls `act` with elements as they are, or, where their datatype says where they are in memory (`MPI_BOTTOM`), with the same
/// memory as seen from another address: MPICH packs nothing that begins at null.
fn with_an_address(
    mpi: &Mpi,
    at: *mut u8,
    count: usize,
    datatype: Handle,
    act: impl FnOnce(*mut u8, c_int, Handle) -> c_int,
) -> Result<c_int, Unserved> {
    const ELSEWHERE: usize = 4096;
    if !at.is_null() {
        return Ok(act(at, count as c_int, datatype));
    }
    let seen = mpi.type_create_hindexed(&[count as c_int], &[-(ELSEWHERE as isize)], datatype)?;
    mpi.type_commit(seen)?;
    let code = act(std::ptr::without_provenance_mut(ELSEWHERE), 1, seen);
    mpi.type_free(seen)?;
    Ok(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_as_it_is_where_data_lie_one_after_the_other() {
        let mut memory = [0u32; 16];
        let at = memory.as_mut_ptr().cast::<u8>();
        let word = Datatype::element(0, 4);
        let direct = |counts: &[usize], places: &[i64]| {
            Region::scattered(at, counts, places, word).is_ok_and(|region| region.direct() == Some(at))
        };
        assert!(direct(&[2, 3, 1], &[0, 2, 5]));
        assert!(direct(&[2, 0, 1], &[0, 77, 2]), "where nothing lies does not matter");
        assert!(!direct(&[2, 3, 1], &[0, 3, 6]), "a gap");
        assert!(!direct(&[2, 3, 1], &[1, 3, 6]), "not from the start");
        assert!(!direct(&[1, 1], &[1, 0]), "another order");
        let with_gaps = Datatype { handle: 0, size: 12, extent: 16, dense: false };
        assert!(Region::new(at, 2, with_gaps).is_ok_and(|region| region.direct().is_none() && region.bytes() == 24));
        let odd = Region::new(at.wrapping_add(1), 2, word).map(|region| region.aligned(4));
        assert!(odd.is_ok_and(|region| region.direct().is_none()));
    }

    #[test]
    fn what_mpi_would_refuse_is_left_to_it() {
        let word = Datatype::element(0, 4);
        assert!(Region::new(null_mut(), 1, word).is_err());
        assert!(Region::new(null_mut(), 0, word).is_ok());
        assert!(count(-1).is_err());
        assert!(Region::new(null_mut(), MOST, word).is_err());
        // SAFETY: a null address stands for no array.
        assert!(unsafe { counts(Numbers::Narrow(std::ptr::null()), 3) }.is_err());
    }

    #[test]
    fn numbers_of_both_widths_are_read() {
        let (narrow, wide, places) = ([1i32, -2, 3], [1i64, 2, 1 << 40], [7isize, 8]);
        // SAFETY: arrays of these lengths.
        unsafe {
            assert_eq!(Numbers::from(narrow.as_ptr()).read(3).ok(), Some(vec![1, -2, 3]));
            assert_eq!(Numbers::from(wide.as_ptr()).read(3).ok(), Some(vec![1, 2, 1 << 40]));
            assert_eq!(Numbers::from(places.as_ptr()).read(2).ok(), Some(vec![7, 8]));
            assert!(counts(narrow.as_ptr().into(), 3).is_err());
        }
    }
}
