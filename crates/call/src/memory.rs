//! The memory that a program hands to a collective: parts of it, somewhere, of a datatype.

use std::ffi::c_int;
use std::ptr::{copy_nonoverlapping, null_mut};

use allhands::Error;
use allhands_mpi::{Handle, Mpi};

use crate::datatype::Datatype;
use crate::device::{self, Device};
use crate::failure::Unserved;
use crate::layout::{Layout, Room};

/// MPI packs so many bytes at a time: its counts end soon after.
const AT_ONCE: usize = 1 << 30;

/// Memory of the program.
pub struct Region {
    at: *mut u8,
    datatype: Datatype,
    parts: Parts,
    /// Whether the processor may touch it, as far as that decides whether it is used as it is.
    near: bool,
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
    /// Of a datatype each.
    Mixed(Vec<Region>),
}

impl Region {
    /// Nothing.
    pub fn none() -> Region {
        Region::of(null_mut(), Datatype::element(0, 1), Parts::One(0))
    }

    /// Room for so many bytes that the program does not get.
    pub fn room(bytes: usize) -> Region {
        Region { near: false, ..Region::of(null_mut(), Datatype::element(0, 1), Parts::One(bytes)) }
    }

    /// Several, of a datatype each. Where all of them are runs of bytes, so is the whole.
    pub fn mixed(regions: Vec<Region>) -> Region {
        let byte = Datatype::element(0, 1);
        let runs = |region: &Region| region.datatype.dense && matches!(region.parts, Parts::One(_));
        let first = regions.iter().find(|region| region.bytes() > 0).map_or(null_mut(), |region| region.at);
        if !regions.iter().all(runs) {
            return Region { near: false, ..Region::of(null_mut(), byte, Parts::Mixed(regions)) };
        }
        let place = |region: &Region| (region.at as isize).wrapping_sub(first as isize) as i64;
        let places: Vec<i64> = regions.iter().map(place).collect();
        let counts: Vec<usize> = regions.iter().map(Region::bytes).collect();
        Region::of(first, byte, parts_of(&counts, &places))
    }

    #[inline(always)]
    fn of(at: *mut u8, datatype: Datatype, parts: Parts) -> Region {
        let near = Region::is_near(at, &datatype, &parts);
        Region { at, datatype, parts, near, align: 1, held: None }
    }

    #[inline(always)]
    fn is_near(at: *mut u8, datatype: &Datatype, parts: &Parts) -> bool {
        let asked = datatype.dense && matches!(parts, Parts::One(1..));
        !asked || device::of(at).is_none()
    }

    /// So many elements.
    #[inline(always)]
    pub fn new(at: *mut u8, count: usize, datatype: Datatype) -> Result<Region, Unserved> {
        if at.is_null() && count > 0 && datatype.dense {
            return Err(Error::Null.into());
        }
        Ok(Region::of(at, datatype, Parts::One(count)))
    }

    /// Elements for each rank, where the program puts them.
    pub fn scattered(at: *mut u8, counts: &[usize], places: &[i64], datatype: Datatype) -> Result<Region, Unserved> {
        if at.is_null() && counts.iter().any(|count| *count > 0) && datatype.dense {
            return Err(Error::Null.into());
        }
        Ok(Region::of(at, datatype, parts_of(counts, places)))
    }

    /// Whether it is what the program's address and other arguments say, so that the same arguments with another address say the same
    /// [elsewhere](Region::move_to).
    pub fn begins_at(&self, at: *const u8) -> bool {
        let is_room = self.datatype.dense && self.at.is_null();
        self.bytes() == 0 || self.at.cast_const() == at && !is_room && !matches!(self.parts, Parts::Mixed(_))
    }

    /// The same at another address; false, and nothing has changed, where nothing can be.
    #[inline]
    pub fn move_to(&mut self, at: *mut u8) -> bool {
        let there = !at.is_null() || !self.datatype.dense || self.bytes() == 0;
        if there && self.bytes() > 0 {
            (self.at, self.near) = (at, Region::is_near(at, &self.datatype, &self.parts));
        }
        there
    }

    /// From now on the program may free its datatype.
    pub fn hold(&mut self, mpi: &'static Mpi) -> Result<(), Unserved> {
        if let Parts::Mixed(regions) = &mut self.parts {
            return regions.iter_mut().try_for_each(|region| region.hold(mpi));
        }
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
    pub fn aligned(self, align: usize) -> Region {
        Region { align, ..self }
    }

    /// What its address is to be a multiple of.
    pub fn align(&self) -> usize {
        self.align
    }

    /// Bytes of data.
    #[inline]
    pub fn bytes(&self) -> usize {
        let count = match &self.parts {
            Parts::One(count) => *count,
            Parts::Several(parts) => parts.iter().fold(0, |sum: usize, (_, count)| sum.saturating_add(*count)),
            Parts::Mixed(regions) => regions.iter().fold(0, |sum: usize, one| sum.saturating_add(one.bytes())),
        };
        self.datatype.bytes(count)
    }

    /// The address, if the data lie there one after the other, in memory of the host.
    #[inline]
    pub fn direct(&self) -> Option<*mut u8> {
        let together = self.datatype.dense && matches!(self.parts, Parts::One(_)) || self.bytes() == 0;
        (together && self.near && (self.at as usize).is_multiple_of(self.align)).then_some(self.at)
    }

    /// Whether two, both of which are [used as they are](Region::direct), have bytes in common.
    #[inline]
    pub fn overlaps(&self, other: &Region) -> bool {
        overlap((self.at as usize, self.bytes()), (other.at as usize, other.bytes()))
    }

    /// Copies the data to `to`, one after the other.
    ///
    /// # Safety
    /// The program's memory is as it says, and `to` has room.
    pub unsafe fn pack(&self, mpi: &Mpi, mut to: *mut u8) -> Result<(), Unserved> {
        if let Parts::Mixed(regions) = &self.parts {
            for region in regions {
                // SAFETY: the caller's promise: there is room for all of them.
                unsafe {
                    region.pack(mpi, to)?;
                    to = to.add(region.bytes());
                }
            }
            return Ok(());
        }
        for (from, count) in self.pieces()? {
            let bytes = count * self.datatype.size;
            // SAFETY: the caller's promise; MPI is told how much room there is, and a host copy is as long as the elements reach.
            unsafe {
                match (self.datatype.dense, self.device(mpi, from)?) {
                    (true, None) => copy_nonoverlapping(from, to, bytes),
                    (true, Some((device, _))) => device.to_host(from, to, bytes)?,
                    (false, None) => self.pack_elements(mpi, from, count, to)?,
                    (false, Some((device, layout))) => {
                        let (_room, origin) = fetched(device, layout, from, count)?;
                        self.pack_elements(mpi, origin, count, to)?;
                    }
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
    pub unsafe fn unpack(&self, mpi: &Mpi, mut from: *const u8) -> Result<(), Unserved> {
        if let Parts::Mixed(regions) = &self.parts {
            for region in regions {
                // SAFETY: the caller's promise: there are the bytes of all of them.
                unsafe {
                    region.unpack(mpi, from)?;
                    from = from.add(region.bytes());
                }
            }
            return Ok(());
        }
        for (to, count) in self.pieces()? {
            let bytes = count * self.datatype.size;
            // SAFETY: the caller's promise. What lies between the data goes back to a device as it came from there.
            unsafe {
                match (self.datatype.dense, self.device(mpi, to)?) {
                    (true, None) => copy_nonoverlapping(from, to, bytes),
                    (true, Some((device, _))) => device.to_device(from, to, bytes)?,
                    (false, None) => self.unpack_elements(mpi, to, count, from)?,
                    (false, Some((device, layout))) => {
                        let (_room, origin) = fetched(device, layout, to, count)?;
                        self.unpack_elements(mpi, origin, count, from)?;
                        let (first, span) = layout.span(count);
                        device.to_device(origin.wrapping_offset(first), to.wrapping_offset(first), span)?;
                    }
                }
                from = from.add(bytes);
            }
        }
        Ok(())
    }

    /// The device that elements lie on, if they do, and how they lie there.
    fn device(&self, mpi: &Mpi, at: *mut u8) -> Result<Option<(Device, Layout)>, Unserved> {
        let Datatype { handle, size, extent, dense } = self.datatype;
        if dense {
            let layout = Layout { extent, lower: 0, reach: size as isize };
            return Ok(device::of(at).map(|device| (device, layout)));
        }
        if !device::any() {
            return Ok(None);
        }
        let layout = Layout::of(mpi, handle, extent)?;
        Ok(device::of(at.wrapping_offset(layout.lower)).map(|device| (device, layout)))
    }

    /// Lets MPI pack so many elements.
    ///
    /// # Safety
    /// They are there, and `to` has room for their data.
    unsafe fn pack_elements(&self, mpi: &Mpi, from: *mut u8, count: usize, to: *mut u8) -> Result<(), Unserved> {
        let (raw, room) = (mpi.raw(), (count * self.datatype.size) as c_int);
        let code = with_an_address(mpi, from, count, self.datatype.handle, |from, count, handle| {
            // SAFETY: the caller's promise; MPI is told how much room there is.
            unsafe { (raw.pack)(from.cast_const().cast(), count, handle, to.cast(), room, &mut 0, mpi.comm_self()) }
        })?;
        Ok(mpi.check("MPI_Pack", code)?)
    }

    /// Lets MPI unpack so many elements.
    ///
    /// # Safety
    /// There is room for them, and `from` has their data.
    unsafe fn unpack_elements(&self, mpi: &Mpi, to: *mut u8, count: usize, from: *const u8) -> Result<(), Unserved> {
        let (raw, length) = (mpi.raw(), (count * self.datatype.size) as c_int);
        let code = with_an_address(mpi, to, count, self.datatype.handle, |to, count, handle| {
            // SAFETY: the caller's promise; MPI is told how much there is.
            unsafe { (raw.unpack)(from.cast(), length, &mut 0, to.cast(), count, handle, mpi.comm_self()) }
        })?;
        Ok(mpi.check("MPI_Unpack", code)?)
    }

    /// The address and the number of elements of every part that has some, cut where MPI packs no more at once.
    fn pieces(&self) -> Result<Vec<(*mut u8, usize)>, Unserved> {
        let Datatype { size, extent, dense, .. } = self.datatype;
        if !dense && size > c_int::MAX as usize {
            return Err(allhands_mpi::Error::TooLarge { function: "MPI_Pack", count: size }.into());
        }
        let most = if dense { usize::MAX } else { (AT_ONCE / size.max(1)).max(1) };
        let mut pieces = Vec::new();
        let mut add = |place: isize, count: usize| {
            let mut done = 0;
            while done < count && size > 0 {
                let part = most.min(count - done);
                pieces.push((self.at.wrapping_offset((place + done as isize) * extent), part));
                done += part;
            }
        };
        match &self.parts {
            Parts::One(count) => add(0, *count),
            Parts::Several(parts) => parts.iter().for_each(|(place, count)| add(*place, *count)),
            Parts::Mixed(_) => unreachable!("each is packed by itself"),
        }
        Ok(pieces)
    }
}

/// So many elements each, at places; one part where they follow each other from the start.
fn parts_of(counts: &[usize], places: &[i64]) -> Parts {
    let parts = places.iter().zip(counts).map(|(place, count)| (*place as isize, *count));
    let mut next = 0;
    let consecutive = parts.clone().all(|(place, count)| {
        let here = count == 0 || place == next;
        next = count.saturating_add_signed(next) as isize;
        here
    });
    if consecutive { Parts::One(next as usize) } else { Parts::Several(parts.collect()) }
}

/// A copy of so many elements of a device, with what lies between their data, and the address of the first.
///
/// # Safety
/// They are there.
unsafe fn fetched(device: Device, layout: Layout, from: *const u8, count: usize) -> Result<(Room, *mut u8), Unserved> {
    let (first, span) = layout.span(count);
    let missing = || device.error(format!("that there is no host memory for the {span} bytes that a datatype spans"));
    let mut room = layout.room(count).ok_or_else(missing)?;
    let origin = room.origin();
    // SAFETY: the caller's promise; the room spans as much.
    unsafe { device.to_host(from.wrapping_offset(first), origin.wrapping_offset(first), span)? };
    Ok((room, origin))
}

/// Whether two runs of memory, by address and bytes, have some in common.
#[inline]
pub fn overlap((one, bytes): (usize, usize), (other, others): (usize, usize)) -> bool {
    // As distances: the last byte that there is has no address after it.
    match one <= other {
        true => other - one < bytes && others > 0,
        false => one - other < others && bytes > 0,
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
    fn what_moves_says_the_same_elsewhere() {
        let mut memory = [0u32; 32];
        let at = memory.as_mut_ptr().cast::<u8>();
        let word = Datatype::element(0, 4);
        let mut all = Region::new(at, 3, word).unwrap().aligned(4);
        assert!(all.begins_at(at) && !all.begins_at(at.wrapping_add(4)));
        assert!(all.move_to(at.wrapping_add(8)) && all.direct() == Some(at.wrapping_add(8)));
        assert!(all.move_to(at.wrapping_add(9)) && all.direct().is_none(), "not where elements are to lie");
        assert!(!all.move_to(null_mut()) && all.begins_at(at.wrapping_add(9)), "nothing is at null");
        let mut apart = Region::scattered(at, &[1, 1], &[0, 5], word).unwrap();
        assert!(apart.move_to(at.wrapping_add(4)));
        let places: Vec<usize> =
            apart.pieces().unwrap().iter().map(|(place, _)| *place as usize - at as usize).collect();
        assert_eq!(places, [4, 24]);
        let mut none = Region::new(null_mut(), 0, word).unwrap();
        assert!(none.begins_at(at) && none.move_to(null_mut()) && none.move_to(at));
        let gaps = Datatype { handle: 0, size: 4, extent: 8, dense: false };
        let mixed = Region::mixed(vec![Region::new(at, 1, gaps).unwrap()]);
        assert!(!Region::room(8).begins_at(null_mut()), "nothing of the program's");
        assert!(!mixed.begins_at(at) && !mixed.begins_at(std::ptr::null()), "each has an address of its own");
    }

    #[test]
    fn memory_of_something_that_is_null_is_an_error() {
        let word = Datatype::element(0, 4);
        assert!(Region::new(null_mut(), 0, word).is_ok());
        let null = Region::new(null_mut(), 1, word).err();
        assert!(matches!(null, Some(Unserved::Failed(Error::Null))), "not every MPI refuses it");
    }

    #[test]
    fn what_is_packed_is_cut_where_an_int_counts_no_further() {
        let mut memory = 0u8;
        let at = &raw mut memory;
        let gaps = |size| Datatype { handle: 0, size, extent: 2 * size as isize, dense: false };
        let of = |region: Result<Region, Unserved>| -> Vec<(usize, usize)> {
            let pieces = region.and_then(|region| region.pieces()).unwrap_or_default();
            pieces.into_iter().map(|(from, count)| ((from as usize).wrapping_sub(at as usize), count)).collect()
        };
        let size = AT_ONCE / 2 + 1;
        assert_eq!(of(Region::new(at, 3, gaps(size))), [(0, 1), (2 * size, 1), (4 * size, 1)]);
        assert_eq!(of(Region::new(at, AT_ONCE / 4 + 5, gaps(4))), [(0, AT_ONCE / 4), (2 * AT_ONCE, 5)]);
        let parts = Region::scattered(at, &[AT_ONCE + 1, 0, 2], &[-1, 0, 7], gaps(1));
        let minus = (-2isize) as usize;
        assert_eq!(of(parts), [(minus, AT_ONCE), (minus.wrapping_add(2 * AT_ONCE), 1), (14, 2)]);
        assert_eq!(of(Region::new(at, AT_ONCE, Datatype::element(0, 8))), [(0, AT_ONCE)], "copied as it is");
        assert!(Region::new(at, 1, gaps(1 << 31)).is_ok_and(|region| region.pieces().is_err()));
        assert!(of(Region::new(at, 5, gaps(0))).is_empty());
    }

    #[test]
    fn runs_of_memory_overlap_where_they_have_a_byte_in_common() {
        assert!(overlap((100, 8), (100, 8)));
        assert!(overlap((100, 8), (107, 1)));
        assert!(overlap((104, 4), (100, 100)), "inside");
        assert!(overlap((100, 100), (104, 4)));
        assert!(!overlap((100, 8), (108, 8)), "side by side");
        assert!(!overlap((108, 8), (100, 8)));
        assert!(!overlap((100, 0), (100, 8)) && !overlap((104, 0), (100, 8)), "nothing is nowhere");
        assert!(!overlap((100, 8), (100, 0)) && !overlap((100, 8), (104, 0)));
        assert!(overlap((usize::MAX, 1), (usize::MAX - 1, 2)), "at the end of memory");
    }
}
