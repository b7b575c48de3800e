//! Elements that are more than their data: where these lie, and memory in which they lie so.

use allhands_mpi::{Handle, Mpi};

use crate::failure::Unserved;

/// How elements lie that are more than their data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Layout {
    /// From one element to the next.
    pub(crate) extent: isize,
    /// Where an element's data begin, and how far they reach.
    pub(crate) lower: isize,
    pub(crate) reach: isize,
}

/// Elements are spread so many bytes at a time.
const SPREAD: usize = 256 * 1024;

impl Layout {
    /// How the elements of a datatype lie.
    pub(crate) fn of(mpi: &Mpi, handle: Handle, extent: isize) -> Result<Layout, Unserved> {
        let (lower, reach) = mpi.type_true_extent(handle)?;
        Ok(Layout { extent, lower, reach })
    }

    /// Whether elements are their data, so many bytes each, one after the other.
    pub(crate) fn together(&self, size: usize) -> bool {
        let size = size as isize;
        self.lower == 0 && self.reach == size && self.extent == size
    }

    /// How many elements are spread at a time.
    pub(crate) fn elements_at_once(&self) -> usize {
        (SPREAD / self.extent.unsigned_abs().max(1)).max(1)
    }

    /// Where the data of so many elements begin, and how many bytes they span, seen from the first.
    pub(crate) fn span(&self, count: usize) -> (isize, usize) {
        let last = (count as isize - 1) * self.extent;
        let (first, end) = (last.min(0) + self.lower, last.max(0) + self.lower + self.reach);
        (first, (end - first) as usize)
    }

    /// Memory for so many elements; none if there is not enough.
    pub(crate) fn room(&self, count: usize) -> Option<Room> {
        let (first, bytes) = self.span(count);
        let mut memory = Vec::new();
        memory.try_reserve_exact(bytes.checked_add(2 * Room::ALIGN)?).ok()?;
        memory.resize(bytes + 2 * Room::ALIGN, 0);
        Some(Room { memory, first })
    }
}

/// Memory for some elements.
pub(crate) struct Room {
    memory: Vec<u8>,
    /// Where the first byte lies, seen from the first element.
    first: isize,
}

impl Room {
    /// As well aligned as any element may ask for.
    const ALIGN: usize = 64;

    /// The address of the first element, which may be outside.
    pub(crate) fn origin(&mut self) -> *mut u8 {
        let start = self.memory.as_mut_ptr();
        let origin = start.wrapping_offset(-self.first);
        let off = (origin as usize).wrapping_neg() % Room::ALIGN;
        origin.wrapping_add(off)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_data_of_all_elements_have_room() {
        let layouts = [(16, 0, 12), (8, 4, 100), (-24, -3, 20), (0, 1 << 40, 8), (40, -8, 40)];
        for (extent, lower, reach) in layouts {
            let layout = Layout { extent, lower, reach };
            for count in [1, 2, 7] {
                let mut room = layout.room(count).unwrap();
                let (origin, start) = (room.origin() as isize, room.memory.as_ptr() as isize);
                assert_eq!(origin as usize % Room::ALIGN, 0);
                for element in 0..count as isize {
                    let data = origin + element * extent + lower - start;
                    let inside = data >= 0 && (data + reach) as usize <= room.memory.len();
                    assert!(inside, "element {element} of {count} of {layout:?} at {data}");
                }
            }
        }
    }

    #[test]
    fn elements_are_spread_a_few_at_a_time() {
        let of = |extent| Layout { extent, lower: 0, reach: 8 }.elements_at_once();
        assert_eq!([16, -1024, 0, 1 << 30].map(of), [SPREAD / 16, SPREAD / 1024, SPREAD, 1]);
    }
}
