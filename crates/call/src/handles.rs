//! Tables by handle, asked in every call: hashing takes a multiplication.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use allhands_mpi::Handle;

/// A table by handle.
pub type Handles<T> = HashMap<Handle, T, BuildHasherDefault<Scatter>>;

/// Handles are addresses or small numbers that MPI gives out: nobody chooses them to collide.
#[derive(Default)]
pub struct Scatter(u64);

impl Hasher for Scatter {
    fn write_usize(&mut self, handle: usize) {
        // The table looks at the highest and the lowest bits.
        let product = (handle as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product ^ product >> 32;
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_usize((self.0 << 8) as usize ^ usize::from(*byte));
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_of_all_mpis_are_found_again() {
        // Open MPI's are addresses, MPICH's have their kind in the highest of 32 bits, the standard's are small.
        let addresses = (0..1000).map(|index| 0x7f12_3456_0000 + index * 0x140);
        let kinds = (0..1000).map(|index| 0x8400_0000 + index);
        let all: Vec<Handle> = addresses.chain(kinds).chain(0x101..0x200).collect();
        let table: Handles<usize> = all.iter().enumerate().map(|(index, handle)| (*handle, index)).collect();
        assert_eq!(table.len(), all.len());
        assert!(all.iter().enumerate().all(|(index, handle)| table[handle] == index));
        // Of the 128 lowest and highest values no one is crowded.
        for shift in [0, 57] {
            let mut crowd = [0; 128];
            for handle in &all {
                let mut hasher = Scatter::default();
                hasher.write_usize(*handle);
                crowd[(hasher.finish() >> shift) as usize & 127] += 1;
            }
            assert!(crowd.iter().max() < Some(&60), "{crowd:?}");
        }
    }
}
