//! Memory of one rank: scratch, and what a plan owns.

use std::alloc::Layout;

/// Zeroed memory, aligned for every element type and to cache lines.
pub(crate) struct Buffer {
    at: *mut u8,
    layout: Layout,
}

// SAFETY: a buffer is plain memory; who may touch which part when is decided by the programs that use it, which the verifier
// has shown to be free of races.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

impl Buffer {
    pub(crate) fn new(bytes: usize) -> Buffer {
        // What is shorter than a line need not begin one, but must not cross into the next.
        let align = bytes.max(1).checked_next_power_of_two().map_or(64, |power| power.clamp(16, 64));
        let layout = Layout::from_size_align(bytes.max(1), align).expect("a size that fits into memory");
        // SAFETY: the size is not zero.
        let at = unsafe { std::alloc::alloc_zeroed(layout) };
        if at.is_null() {
            std::alloc::handle_alloc_error(layout);
        }
        Buffer { at, layout }
    }

    pub(crate) fn as_ptr(&self) -> *mut u8 {
        self.at
    }

    pub(crate) fn len(&self) -> usize {
        self.layout.size()
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout.
        unsafe { std::alloc::dealloc(self.at, self.layout) };
    }
}
