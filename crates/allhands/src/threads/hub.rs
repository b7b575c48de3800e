//! What the ranks of one plan share: its wires, meetings and shared memory, each made by whoever needs it first.

use std::alloc::Layout;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::meeting::Meeting;
use super::wire::Wire;

pub(crate) struct Hub {
    first: usize,
    asked: String,
    operation: u64,
    wires: Mutex<HashMap<(usize, usize, usize), Arc<Wire>>>,
    meetings: Mutex<HashMap<(usize, usize), Arc<Meeting>>>,
    nodes: Mutex<HashMap<usize, Node>>,
}

/// The shared memory of a node: two segments that runs use in turn, made when all its ranks have said what they need.
#[derive(Default)]
struct Node {
    said: usize,
    bytes: usize,
    segments: Option<Arc<[Buffer; 2]>>,
}

impl Hub {
    pub(crate) fn new(first: usize, asked: String, operation: u64) -> Hub {
        Hub { first, asked, operation, wires: Mutex::default(), meetings: Mutex::default(), nodes: Mutex::default() }
    }

    /// The rank that came first.
    pub(crate) fn first(&self) -> usize {
        self.first
    }

    /// What it asked for.
    pub(crate) fn asked(&self) -> &str {
        &self.asked
    }

    pub(crate) fn operation(&self) -> u64 {
        self.operation
    }

    /// The wire of the nth message from one rank to another.
    pub(crate) fn wire(&self, from: usize, to: usize, nth: usize, bytes: usize) -> Arc<Wire> {
        let mut wires = self.wires.lock().unwrap_or_else(PoisonError::into_inner);
        wires.entry((from, to, nth)).or_insert_with(|| Arc::new(Wire::new(bytes))).clone()
    }

    pub(crate) fn meeting(&self, level: usize, region: usize, size: usize) -> Arc<Meeting> {
        let mut meetings = self.meetings.lock().unwrap_or_else(PoisonError::into_inner);
        meetings.entry((level, region)).or_insert_with(|| Arc::new(Meeting::new(size))).clone()
    }

    /// Says how much shared memory a rank of a node touches.
    pub(crate) fn need_shared(&self, node: usize, ranks: usize, bytes: usize) {
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        let node = nodes.entry(node).or_default();
        node.said += 1;
        node.bytes = node.bytes.max(bytes);
        if node.said == ranks {
            node.segments = Some(Arc::new([Buffer::new(node.bytes), Buffer::new(node.bytes)]));
        }
    }

    /// The segments, when everybody has said.
    pub(crate) fn shared(&self, node: usize) -> Option<Arc<[Buffer; 2]>> {
        let nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        nodes.get(&node)?.segments.clone()
    }
}

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
        let layout = Layout::from_size_align(bytes.max(1), 64).expect("a size that fits into memory");
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
