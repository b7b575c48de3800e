//! Memory that ranks of a node use together for a plan, and where it is kept when the plan is gone.
//!
//! Making memory and mapping it in every process takes longer than everything else about a plan, so the first of the ranks, who
//! makes it, uses again what all have let go of. A header counts the ranks that use it. What is small and concerns one node alone is
//! a chunk of the node's memory instead (`node::board`), for which nobody waits.
//!
//! Memory ordering: the maker sets the count to all ranks before it tells them; each takes one off with Release when its plan is gone,
//! after its last touch, whether or not it has ever run. The maker who reads 0 with Acquire therefore comes after every touch, and
//! nobody touches the memory again before he is told, through a channel, which orders what the maker did before it. A rank that never
//! heard, failed or died leaves the count above 0: its memory is not used again.

use std::cell::RefCell;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::node::memory::{Address, Mapping};
use crate::node::sync::{AtomicU32, Ordering};
use crate::node::{Chunk, PeerMemory};
use crate::world::World;

/// Memory that this rank uses together with others, until it is dropped.
pub(crate) enum SegmentLease {
    /// Of its own.
    Mapped(Mapped),
    /// A piece of the node's.
    Chunk(Chunk),
}

/// What was made for one plan, or used again.
pub(crate) struct Mapped {
    memory: Arc<Mapping>,
}

/// What the memory begins with; all zeros when it is new.
#[repr(C, align(128))]
struct Header {
    users: AtomicU32,
}

/// What has been shared, most of it by plans that are gone.
#[derive(Default)]
pub(crate) struct SegmentPool {
    kept: RefCell<Vec<PooledSegment>>,
}

struct PooledSegment {
    /// The place of the rank that made it, and that rank's number for it.
    maker: usize,
    number: u64,
    places: Box<[usize]>,
    memory: Arc<Mapping>,
}

/// More is not kept, nor are longer ones: their pages cost more than their making.
const MOST_KEPT: usize = 64;
const LONGEST_KEPT: usize = 1 << 20;

/// A need is told together with a number in the bits above.
const NUMBER: u32 = 48;

impl SegmentLease {
    /// Where the memory begins, on a line of its own.
    pub(crate) fn as_ptr(&self) -> *mut u8 {
        match self {
            // SAFETY: what is shared begins with a header.
            SegmentLease::Mapped(mapped) => unsafe { mapped.memory.as_ptr().add(size_of::<Header>()) },
            SegmentLease::Chunk(chunk) => chunk.as_ptr(),
        }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        header(&self.memory).users.fetch_sub(1, Ordering::Release);
    }
}

fn header(memory: &Mapping) -> &Header {
    // SAFETY: what is shared is mapped, longer than a header, and begins with one.
    unsafe { &*memory.as_ptr().cast() }
}

impl SegmentPool {
    /// What these ranks have all let go of, if it is long enough.
    fn free(&self, places: &[usize], bytes: usize) -> Option<(u64, Arc<Mapping>)> {
        let free = |kept: &&PooledSegment| {
            *kept.places == *places
                && kept.memory.len() >= bytes
                && header(&kept.memory).users.load(Ordering::Acquire) == 0
        };
        self.kept.borrow().iter().find(free).map(|kept| (kept.number, kept.memory.clone()))
    }

    /// Keeps what this rank has made, if it is worth it: its number, or 0.
    fn keep(&self, maker: usize, places: &[usize], memory: &Arc<Mapping>) -> u64 {
        let mut kept = self.kept.borrow_mut();
        if kept.len() >= MOST_KEPT || memory.len() > LONGEST_KEPT {
            return 0;
        }
        let number = kept.len() as u64 + 1;
        kept.push(PooledSegment { maker, number, places: places.into(), memory: memory.clone() });
        number
    }

    /// Keeps what another rank has made, and will call by this number.
    fn remember(&self, maker: usize, number: u64, memory: &Arc<Mapping>) {
        if number > 0 {
            self.kept.borrow_mut().push(PooledSegment { maker, number, places: [].into(), memory: memory.clone() });
        }
    }

    fn known(&self, maker: usize, number: u64) -> Option<Arc<Mapping>> {
        let kept = self.kept.borrow();
        kept.iter().find(|kept| (kept.maker, kept.number) == (maker, number)).map(|kept| kept.memory.clone())
    }
}

/// What ranks ask for together.
pub(crate) struct Need<'a> {
    /// Whose failure ends the making.
    pub(crate) scope: u64,
    pub(crate) operation: &'a str,
    pub(crate) key: u64,
    /// Of the ranks, the maker first.
    pub(crate) places: &'a [usize],
    /// Bytes that this rank needs.
    pub(crate) bytes: usize,
    /// So many bytes are zero at first.
    pub(crate) clear: usize,
    /// What is done while others are waited for.
    pub(crate) on_idle: &'a dyn Fn(),
}

impl World {
    /// Memory that the neighbours at some places use together: each says how much it needs, the first makes or finds `size` of the
    /// greatest need. That need, and the memory.
    pub(crate) fn share(&self, need: &Need<'_>, size: impl Fn(usize) -> usize) -> Result<(usize, SegmentLease)> {
        let size = |most: usize| size_of::<Header>() + size(most);
        let shared = match need.places[0] == self.node.me() {
            true => self.offer(need, size),
            false => self.accept(need, size),
        };
        // The others wait for what this rank did not tell them.
        let (most, memory) = shared.inspect_err(|error| self.fail(need.scope, &error.to_string()))?;
        Ok((most, SegmentLease::Mapped(Mapped { memory })))
    }

    fn accept(&self, need: &Need<'_>, size: impl Fn(usize) -> usize) -> Result<(usize, Arc<Mapping>)> {
        let Need { places: &[maker, ..], .. } = *need else { unreachable!("there is a maker") };
        self.tell(need, maker, [need.bytes as u64, 0])?;
        let [place, told] = self.hear(need, maker)?;
        let (number, most) = (told >> NUMBER, (told & ((1 << NUMBER) - 1)) as usize);
        if matches!(self.node.peer_memory, PeerMemory::Here) {
            // SAFETY: the maker, a thread of this process, made this reference for us.
            return Ok((most, unsafe { Arc::from_raw(place as *const Mapping) }));
        }
        if place == 0 {
            let known = self.segment_pool.known(maker, number);
            return known.map(|memory| (most, memory)).ok_or_else(|| refused(&"what was kept is not known"));
        }
        let address = Address { process: (place >> 32) as u32, descriptor: place as u32 };
        let memory = Arc::new(Mapping::attach(address, size(most)).map_err(|error| refused(&error))?);
        self.segment_pool.remember(maker, number, &memory);
        self.tell(need, maker, [0, 0])?;
        Ok((most, memory))
    }

    fn offer(&self, need: &Need<'_>, size: impl Fn(usize) -> usize) -> Result<(usize, Arc<Mapping>)> {
        let Need { places, clear, .. } = *need;
        let (maker, others) = places.split_first().expect("this rank is among them");
        let mut most = need.bytes;
        for &place in others {
            most = most.max(self.hear(need, place)?[0] as usize);
        }
        let tell_all = |word: &dyn Fn() -> u64, number: u64| {
            others.iter().try_for_each(|&place| self.tell(need, place, [word(), number << NUMBER | most as u64]))
        };
        let use_it = |memory: &Mapping| header(memory).users.store(places.len() as u32, Ordering::Relaxed);
        let threads = matches!(self.node.peer_memory, PeerMemory::Here);
        if let Some((number, memory)) = self.segment_pool.free(places, size(most)) {
            use_it(&memory);
            // SAFETY: all have let go of it, and it is at least as long.
            unsafe { std::ptr::write_bytes(memory.as_ptr().add(size_of::<Header>()), 0, clear) };
            let word = || if threads { Arc::into_raw(memory.clone()) as u64 } else { 0 };
            tell_all(&word, number)?;
            return Ok((most, memory));
        }
        if threads {
            let memory = Arc::new(Mapping::private(size(most)).map_err(|error| refused(&error))?);
            use_it(&memory);
            self.segment_pool.keep(*maker, places, &memory);
            tell_all(&|| Arc::into_raw(memory.clone()) as u64, 0)?;
            return Ok((most, memory));
        }
        let (memory, offer) = Mapping::offered(size(most)).map_err(|error| refused(&error))?;
        let memory = Arc::new(memory);
        use_it(&memory);
        let Address { process, descriptor } = offer.address();
        let number = self.segment_pool.keep(*maker, places, &memory);
        tell_all(&|| u64::from(process) << 32 | u64::from(descriptor), number)?;
        for &place in others {
            self.hear(need, place)?;
        }
        Ok((most, memory))
    }
}

fn refused(reason: &dyn std::fmt::Display) -> Error {
    Error::Memory { reason: reason.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again_when_all_have_let_go() {
        let segment_pool = SegmentPool::default();
        let memory = Arc::new(Mapping::private(5000).unwrap());
        header(&memory).users.store(2, Ordering::Relaxed);
        assert_eq!(segment_pool.keep(0, &[0, 1], &memory), 1);
        let users = [(); 2].map(|()| Mapped { memory: memory.clone() });
        let free = |places: &[usize], bytes| segment_pool.free(places, bytes).is_some();
        let [one, other] = users;
        drop(one);
        assert!(!free(&[0, 1], 100));
        drop(other);
        assert!(free(&[0, 1], 100) && free(&[0, 1], 8192));
        assert!(!free(&[0, 1], 8193) && !free(&[0, 2], 100));
        assert!(segment_pool.known(0, 1).is_some() && segment_pool.known(1, 1).is_none());
        let long = Arc::new(Mapping::private(LONGEST_KEPT + 1).unwrap());
        assert_eq!(segment_pool.keep(0, &[0, 1], &long), 0);
    }
}
