//! Memory that two ranks hand each other: the bodies of their long letters.
//!
//! Two ranks have [`BODIES`] bodies together, and each body is one rank's at any time: half of them each at first. A sender writes into a body of
//! its own, and with the letter the body becomes the receiver's. A receiver that has sent of its own keeps it, and writes its next letter there:
//! a cache line then goes to the other core once for what it carries, asked for [as the receiver's own](Payload::each) when it is read. Memory that
//! one of them always writes has to be asked for twice, to be read and to be written again. By hand, two cores exchange 64 KiB in 6.4 us this way and
//! in 10.1 the other; where copies and sums are made beside, a sixth less. Letters of up to 1 KiB gain nothing: their sender asks for the
//! lines while it has nothing else to do. Whoever receives only gives bodies back, in the line where it says what it has consumed.
//!
//! **A sender is never out of bodies for good.** A rank holds what lies on its shelf, what is in letters of its own that have not been read, and
//! what was given back to it and not fetched. It keeps a body only if fewer than `ENOUGH` lie on its shelf, and whenever it looks how far its
//! letters have been consumed it fetches what was given back: of the bodies of its letters those whose fate it does not know are in the
//! last SLOTS ones. So it never holds more than ENOUGH + SLOTS, and the other always at least BODIES - ENOUGH - SLOTS = [`SPARE`]:
//! when all letters of that one have been read, at least so many lie on its shelf or come back.
//!
//! **Nor does it sleep for ever for want of one.** Having found an empty shelf and nothing given back, it holds SPARE bodies or more in letters
//! that have yet to be read; as many as that are given back once they are, and it is woken at every SPARE-th.

use std::cell::Cell;

use super::channel::SLOTS;

/// Of two ranks together.
pub(crate) const BODIES: usize = 3 * SLOTS;
/// Of each of them at first.
pub(crate) const HALF: usize = BODIES / 2;
/// With as many on its shelf a rank keeps no more.
const ENOUGH: usize = HALF;
/// What each of them holds at least.
pub(crate) const SPARE: usize = BODIES - ENOUGH - SLOTS;

/// A rank's bodies of those it has with another, the one to be written next on top.
pub(crate) struct Shelf {
    /// Where body 0 lies, and where it would lie if all were in the place where the higher rank's were at first.
    memory: [*mut u8; 2],
    /// Bytes of a body.
    each: usize,
    bodies: [Cell<OnShelf>; BODIES],
    count: Cell<usize>,
}

#[derive(Clone, Copy)]
struct OnShelf {
    number: u8,
    /// Whether this rank's core has it as its own: it read it last, or has asked for it.
    here: bool,
}

impl Shelf {
    /// As it is at first. `memory` has half of the bodies in each place, of so many bytes `each`; those in `mine` are this rank's.
    pub(crate) fn new(memory: [*mut u8; 2], each: usize, mine: usize) -> Shelf {
        // As they lie in memory, from the top on: whoever only sends goes through it from the beginning to the end.
        let first = |place: usize| OnShelf { number: (mine * HALF + HALF - 1 - place % HALF) as u8, here: false };
        let bodies = std::array::from_fn(|place| Cell::new(first(place)));
        let memory = [memory[0], memory[1].wrapping_sub(HALF * each)];
        Shelf { memory, each, bodies, count: Cell::new(HALF) }
    }

    /// Whose bodies cannot be touched, one byte each.
    #[cfg(test)]
    pub(crate) fn nowhere(mine: usize) -> Shelf {
        let first = std::ptr::without_provenance_mut::<u8>(4096);
        Shelf::new([first, first.wrapping_add(HALF)], 1, mine)
    }

    /// Where a body lies.
    #[inline]
    pub(crate) fn at(&self, number: u8) -> *mut u8 {
        let number = (number as usize).min(BODIES - 1);
        self.memory[usize::from(number >= HALF)].wrapping_add(number * self.each)
    }

    /// Whether one that comes with so many bytes is to be kept.
    #[inline]
    pub(crate) fn wants(&self, bytes: usize) -> bool {
        bytes > STRETCH && self.count.get() < ENOUGH
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.count.get() == 0
    }

    /// Takes the top one away.
    #[inline]
    pub(crate) fn take(&self) -> Option<u8> {
        let below = self.count.get().checked_sub(1)?;
        self.count.set(below);
        Some(self.bodies[below].get().number)
    }

    /// Asks for the beginning of the body that is to be written next, if the other rank's core read it last.
    #[inline]
    pub(crate) fn ask_for_next(&self, bytes: usize) {
        let Some(next) = self.count.get().checked_sub(1).map(|below| &self.bodies[below]) else { return };
        let OnShelf { number, here } = next.get();
        if !here {
            own_soon(self.at(number), bytes);
            next.set(OnShelf { number, here: true });
        }
    }

    /// Lays one on top that this rank has read.
    #[inline]
    pub(crate) fn keep(&self, number: u8) {
        self.put(OnShelf { number, here: true });
    }

    /// Lays those on top that the other rank has read and given back, the first of them to be written next.
    pub(crate) fn fetch(&self, numbers: impl DoubleEndedIterator<Item = u8>) {
        numbers.rev().for_each(|number| self.put(OnShelf { number, here: false }));
    }

    #[inline]
    fn put(&self, body: OnShelf) {
        self.bodies[self.count.get()].set(body);
        self.count.set(self.count.get() + 1);
    }
}

/// The bytes of a letter, and whether their memory is to be this rank's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Payload {
    pub(crate) at: *const u8,
    pub(crate) len: usize,
    pub(crate) ours: bool,
}

/// So much is read at a time while the next is on its way; a multiple of what messages are cut at.
const STRETCH: usize = 1024;

impl Payload {
    /// Hands the bytes to `read` in stretches, with where in the payload each begins. Memory that is to be ours is asked for as such, some way ahead.
    #[inline(always)]
    pub(crate) fn each(self, mut read: impl FnMut(usize, *const u8, usize)) {
        if !self.ours {
            return read(0, self.at, self.len);
        }
        own_soon(self.at, self.len.min(STRETCH));
        let mut begin = 0;
        while begin < self.len {
            let end = self.len.min(begin + STRETCH);
            own_soon(self.at.wrapping_add(end), (self.len - end).min(STRETCH));
            read(begin, self.at.wrapping_add(begin), end - begin);
            begin = end;
        }
    }
}

/// Asks for lines that another core has, to be ours by the time they are read and written.
#[inline]
fn own_soon(at: *const u8, bytes: usize) {
    (0..bytes).step_by(64).for_each(|line| own_line_soon(at.wrapping_add(line)));
}

#[inline]
pub(crate) fn own_line_soon(line: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
    // SAFETY: a hint, which changes nothing that can be seen; processors without it do nothing.
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) line, options(nostack, preserves_flags));
    }
    #[cfg(not(all(target_arch = "x86_64", not(loom), not(miri))))]
    let _ = line;
}

#[cfg(all(test, not(loom)))]
mod tests {
    use proptest::prelude::*;

    use super::super::channel::{Channel, Incoming, Outgoing};
    use super::*;

    const EACH: usize = 2048;

    /// Two ranks, which send each other their letters' numbers, in one thread.
    struct Pair {
        channels: [Box<Channel>; 2],
        shelves: [Shelf; 2],
        outgoing: [Outgoing; 2],
        incoming: [Incoming; 2],
        sent: [u64; 2],
        taken: [u64; 2],
        _memory: Box<[u128]>,
    }

    impl Pair {
        fn new() -> Pair {
            let mut memory = vec![0u128; BODIES * EACH / 16].into_boxed_slice();
            let first = memory.as_mut_ptr().cast::<u8>();
            let places = [first, first.wrapping_add(HALF * EACH)];
            // SAFETY: all zeros is an empty channel.
            let channel = || unsafe { Box::<Channel>::new(std::mem::zeroed()) };
            Pair {
                channels: [channel(), channel()],
                shelves: [Shelf::new(places, EACH, 0), Shelf::new(places, EACH, 1)],
                outgoing: Default::default(),
                incoming: Default::default(),
                sent: [0; 2],
                taken: [0; 2],
                _memory: memory,
            }
        }

        /// Sends a letter; whether there was room.
        fn send(&mut self, rank: usize, long: bool) -> bool {
            let (channel, shelf, outgoing) = (&self.channels[rank], &self.shelves[rank], &self.outgoing[rank]);
            let room = channel.room(outgoing, shelf, long);
            if room {
                let (words, number) = (if long { EACH / 8 } else { 1 }, self.sent[rank]);
                // SAFETY: a body has room for as many words; a line for one.
                let fill =
                    |at: *mut u8| (0..words).for_each(|word| unsafe { at.cast::<u64>().add(word).write(number) });
                // SAFETY: there is room.
                unsafe { channel.send(outgoing, shelf, 9, words as u32 * 8, EACH, fill) };
                self.sent[rank] += 1;
            }
            room
        }

        /// Takes the other one's next letter, if there is one, and checks it; whether there was.
        fn take(&mut self, rank: usize) -> bool {
            let (channel, shelf, incoming) = (&self.channels[1 - rank], &self.shelves[rank], &self.incoming[rank]);
            // SAFETY: this rank receives.
            let Some(letter) = (unsafe { channel.next(incoming, shelf) }) else { return false };
            let mut read = 0;
            letter.payload().each(|begin, at, len| {
                assert_eq!(begin, read);
                for word in 0..len / 8 {
                    // SAFETY: inside the payload.
                    assert_eq!(unsafe { at.cast::<u64>().add(word).read_unaligned() }, self.taken[rank]);
                }
                read += len;
            });
            assert_eq!(read, letter.length as usize);
            channel.consume(incoming, shelf, letter.body, letter.body.is_some());
            self.taken[rank] += 1;
            true
        }

        /// How many long letters a rank can send before the other one reads.
        fn room(&mut self, rank: usize) -> usize {
            (0..).take_while(|_| self.send(rank, true)).count()
        }
    }

    proptest! {
        /// Whatever happened before: letters come as they were sent, and who has been read has room.
        #[test]
        fn a_sender_is_never_out_of_bodies_for_good(acts in prop::collection::vec((0..2usize, 0..5u8, 1..20usize), 0..200)) {
            let mut pair = Pair::new();
            for (rank, act, times) in acts {
                for _ in 0..times {
                    match act {
                        0 => pair.send(rank, false),
                        1 | 2 => pair.send(rank, true),
                        _ => pair.take(rank),
                    };
                }
            }
            for rank in [0, 1] {
                while pair.take(1 - rank) {}
                let room = pair.room(rank);
                prop_assert!((SPARE..=SLOTS).contains(&room), "{room}");
            }
            for rank in [0, 1] {
                while pair.take(rank) {}
                prop_assert_eq!(pair.taken[rank], pair.sent[1 - rank]);
            }
        }
    }

    #[test]
    fn who_sends_keeps_what_it_receives_and_who_only_receives_gives_it_back() {
        let mut pair = Pair::new();
        let numbers =
            |shelf: &Shelf| (0..shelf.count.get()).map(|place| shelf.bodies[place].get().number).collect::<Vec<_>>();
        for letters in [1, 8, 16] {
            for _ in 0..10 {
                (0..letters).for_each(|_| assert!(pair.send(0, true) && pair.send(1, true)));
                (0..letters).for_each(|_| assert!(pair.take(0) && pair.take(1)));
            }
            assert!(pair.shelves.iter().all(|shelf| shelf.count.get() == HALF));
        }
        let before = numbers(&pair.shelves[1]);
        for _ in 0..10 {
            assert_eq!(pair.room(0), SLOTS);
            while pair.take(1) {}
        }
        assert_eq!(numbers(&pair.shelves[1]), before);
    }

    #[test]
    fn short_letters_need_no_body() {
        let mut pair = Pair::new();
        assert_eq!(pair.room(0), SLOTS);
        assert!(!pair.send(0, false) && pair.send(1, false) && pair.take(0));
    }
}
