//! A channel carries the messages of one rank to another of its node, one after the other, whatever plans they belong to.
//!
//! **Slots.** Letter number n goes into slot `n mod SLOTS`. The sender may write a slot when the receiver has consumed what
//! was in it SLOTS letters ago; it writes the key of the plan, the length and the payload, then stores `seq = n`. The
//! receiver waits for `seq == n`, reads, and stores `consumed = n` every SLOTS/2 letters, and after each that may be part of
//! a long message: as much of the next one as the slots hold then finds room. Slot and payload have one writer each, and up
//! to 48 bytes travel in the cache line of their flag, 64 more in the line that is fetched with it. Longer payloads lie in
//! a body, whose number the letter has, and which is the receiver's from then on (see [`shelf`](super::shelf)); messages longer than a body are
//! several letters. A receiver that gives a body back writes its number into `returned` and counts it in `given`.
//!
//! Memory ordering: `seq` is stored with Release after the payload and loaded with Acquire before it is read, so the reader
//! sees the payload. `consumed` is stored with Release after reading and loaded with Acquire before a slot is written again,
//! so a payload is never overwritten while it is read. `given` is stored with Release after the body was read and its number
//! written, and loaded with Acquire before either is used; it is stored before the `consumed` of its letter and loaded after it, so
//! that who knows a letter consumed knows of its body. Letters are numbered modulo 2^32; `seq == n` is compared for equality
//! within SLOTS letters, `consumed` by distance.
//!
//! Progress: a sender that finds no room goes on with its program and tries again, so no order of sends can block; only at
//! the end of a round it waits. A receiver that waits for a letter of one plan puts letters of other plans aside, so they
//! block nobody. Waking the sender only every SLOTS/2 letters leaves nobody asleep for ever: one that sleeps for want of room
//! has seen less consumed than the next multiple of SLOTS/2, whose letter is in the slots, and the receiver has yet to take it.
//!
//! **References.** A letter may say where a long message lies in the sender's memory, to be read from there. Reference i has
//! a state of its own:
//!
//! ```text
//!            publish            begin              finish
//! IDLE ────────────► PUBLISHED ───────► READING ────────► IDLE        the sender waits for IDLE before it goes on
//!                        │ revoke (sender gives up)
//!                        └───────► REVOKED                            the receiver gets an error
//! ```
//!
//! The sender stores PUBLISHED, then sends the letter (Release). The receiver moves PUBLISHED to READING (Acquire), reads,
//! stores IDLE (Release). The sender sees IDLE (Acquire): all reads of its memory happened before. A sender that gives up
//! moves PUBLISHED to REVOKED by compare-exchange; if that fails because the receiver is READING, it waits for IDLE, which a
//! running receiver always stores, also when it unwinds; a process that is gone reads no more. So when the sender returns, nobody reads its memory. The state
//! carries the number of the reference, so that a letter put aside cannot be taken for a later one.

use std::cell::Cell;

use super::shelf::{BODIES, Payload, SPARE, Shelf, own_line_soon};
use super::sync::{AtomicU8, AtomicU32, Ordering, UnsafeCell, spin_loop, yield_now};

#[cfg(not(loom))]
pub(crate) const SLOTS: usize = 16;
/// Few, so that reuse is reached within a model's bounds.
#[cfg(loom)]
pub(crate) const SLOTS: usize = 2;
/// Payloads up to this many bytes travel in the line of their flag, or in the one beside it.
pub(crate) const INLINE: usize = 112;
const REFERENCES: usize = 32;
/// All bodies at once, and a divisor of 2^32.
const RETURNED: usize = BODIES.next_power_of_two();

const IDLE: u32 = 0;
const PUBLISHED: u32 = 1;
const READING: u32 = 2;
const REVOKED: u32 = 3;

/// What ranks of a node share for one channel; the bodies that are its sender's at first follow it in memory. All zeros is an empty channel.
#[repr(C, align(128))]
pub(crate) struct Channel {
    back: Back,
    references: [AtomicU32; REFERENCES],
    slots: [Slot; SLOTS],
}

/// What the receiver writes.
#[repr(C, align(128))]
struct Back {
    consumed: AtomicU32,
    /// How many bodies were given back, and the numbers of the last ones.
    given: AtomicU32,
    returned: [AtomicU8; RETURNED],
}

/// Lines are fetched in pairs: a slot has one. In this order, flag and short payloads are in the same line.
#[repr(C, align(128))]
struct Slot {
    seq: AtomicU32,
    /// Length, key (two words), and the payload.
    line: UnsafeCell<[u32; 3 + INLINE / 4]>,
}

/// The sender's side of a channel. Cells, each of which is written when it changes: a copy of all of them would be read before it is there.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    sent: Cell<u32>,
    /// What the receiver had consumed when last looked.
    seen: Cell<u32>,
    /// How many bodies it had given back, which are on the shelf.
    fetched: Cell<u32>,
    referred: Cell<u32>,
}

/// The receiver's side.
#[derive(Debug, Default)]
pub(crate) struct Incoming {
    taken: Cell<u32>,
    given: Cell<u32>,
}

/// A letter that has arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Letter {
    pub(crate) key: u64,
    /// Its length, with [`REFERENCE`] set if the payload is a reference.
    pub(crate) length: u32,
    pub(crate) payload: *const u8,
    pub(crate) body: Option<Body>,
}

/// What lies in a letter's line: all of it but for a body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    pub(crate) key: u64,
    /// As in [`Letter`].
    pub(crate) length: u32,
    /// Where the payload is, or the body's number.
    pub(crate) inside: *const u8,
}

/// The body that a letter came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Body {
    number: u8,
    /// Whether it stays here.
    kept: bool,
}

impl Letter {
    /// Its bytes, unless it is a reference.
    #[inline]
    pub(crate) fn payload(&self) -> Payload {
        let ours = self.body.is_some_and(|body| body.kept);
        Payload { at: self.payload, len: (self.length & !REFERENCE) as usize, ours }
    }
}

/// Marks the length of a reference.
pub(crate) const REFERENCE: u32 = 1 << 31;

/// The sender gave up.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Revoked;

/// At most so much of the next letter's body is asked for ahead.
const SOON: usize = 4096;

/// Whether a letter lies in a body.
#[inline]
fn is_long(length: u32) -> bool {
    length & !REFERENCE > INLINE as u32
}

impl Channel {
    #[inline]
    fn slot(&self, number: u32) -> &Slot {
        &self.slots[number as usize % SLOTS]
    }

    /// Whether there is room for a letter, in a body if it is a long one.
    #[inline]
    pub(crate) fn room(&self, outgoing: &Outgoing, shelf: &Shelf, long: bool) -> bool {
        let next = outgoing.sent.get().wrapping_add(1);
        let free = || next.wrapping_sub(outgoing.seen.get()) <= SLOTS as u32 && !(long && shelf.is_empty());
        free() || {
            self.look(outgoing, shelf);
            free()
        }
    }

    /// Looks how far the receiver is, and fetches what it has given back.
    #[inline(never)]
    fn look(&self, outgoing: &Outgoing, shelf: &Shelf) {
        outgoing.seen.set(self.back.consumed.load(Ordering::Acquire));
        let given = self.back.given.load(Ordering::Acquire);
        let before = outgoing.fetched.replace(given);
        let new = (0..given.wrapping_sub(before)).map(|later| before.wrapping_add(later));
        shelf.fetch(new.map(|count| self.back.returned[count as usize % RETURNED].load(Ordering::Relaxed)));
    }

    /// Sends a letter whose payload `fill` writes. `ahead`: how many bytes the next one will have, if it is a long one and there is time until
    /// then.
    ///
    /// # Safety
    /// The sender calls it when there is [`room`](Channel::room). The payload fits into a body, and is a reference only if it needs none.
    #[inline(always)]
    pub(crate) unsafe fn send(
        &self,
        outgoing: &Outgoing,
        shelf: &Shelf,
        key: u64,
        length: u32,
        ahead: usize,
        fill: impl FnOnce(*mut u8),
    ) {
        if !is_long(length) {
            // SAFETY: the caller's promise.
            return unsafe { self.send_line(outgoing, key, length, fill) };
        }
        let body = shelf.take().expect("there is room");
        // Before the line, which the receiver has looked at: stores are seen in order, and that one takes a while.
        fill(shelf.at(body));
        let number = |line: *mut u8| {
            // SAFETY: the first word of the payload, which has room for several.
            unsafe { line.cast::<u32>().write(body.into()) };
        };
        // SAFETY: the caller's promise.
        unsafe { self.send_line(outgoing, key, length, number) };
        if ahead > 0 {
            // What came back lies on top; the next letter would look for it otherwise.
            if outgoing.sent.get().wrapping_sub(outgoing.seen.get()) >= SLOTS as u32 {
                self.look(outgoing, shelf);
            }
            shelf.ask_for_next(ahead.min(SOON));
        }
    }

    /// Sends a letter of which `fill` writes what lies in the line.
    ///
    /// # Safety
    /// As for [`send`](Channel::send).
    #[inline(always)]
    pub(crate) unsafe fn send_line(&self, outgoing: &Outgoing, key: u64, length: u32, fill: impl FnOnce(*mut u8)) {
        let number = outgoing.sent.get().wrapping_add(1);
        outgoing.sent.set(number);
        let slot = self.slot(number);
        slot.line.with_mut(|line| {
            let line = line.cast::<u32>();
            // SAFETY: the slot is free: the receiver has stored `consumed` after its last read; the words are inside the line.
            unsafe {
                fill(line.add(3).cast());
                line.write(length);
                line.add(1).cast::<u64>().write_unaligned(key);
            }
        });
        slot.seq.store(number, Ordering::Release);
        // The receiver read these lines last: they are to be ours by the time the next letter is written, which is then visible at once.
        let next = std::ptr::from_ref(self.slot(number.wrapping_add(1))).cast::<u8>();
        own_line_soon(next);
        // The next letter is often as long.
        if length > 48 && !is_long(length) {
            own_line_soon(next.wrapping_add(64));
        }
    }

    /// Whether the next letter has arrived.
    #[inline]
    pub(crate) fn has_come(&self, incoming: &Incoming) -> bool {
        let number = incoming.taken.get().wrapping_add(1);
        self.slot(number).seq.load(Ordering::Acquire) == number
    }

    /// The next letter, if it has arrived.
    ///
    /// # Safety
    /// The receiver calls it. The letter's payload is readable until [`consume`](Channel::consume).
    #[inline(always)]
    pub(crate) unsafe fn next(&self, incoming: &Incoming, shelf: &Shelf) -> Option<Letter> {
        // SAFETY: the caller's promise.
        let Line { key, length, inside } = unsafe { self.next_line(incoming) }?;
        // SAFETY: of a long letter the first word of the line is the body's number.
        let number = || unsafe { inside.cast::<u32>().read() } as u8;
        let body = is_long(length).then(|| Body { number: number(), kept: shelf.wants(length as usize) });
        let payload = body.map_or(inside, |body| shelf.at(body.number).cast_const());
        Some(Letter { key, length, payload, body })
    }

    /// What lies in the line of the next letter, if that has arrived.
    ///
    /// # Safety
    /// As for [`next`](Channel::next).
    #[inline(always)]
    pub(crate) unsafe fn next_line(&self, incoming: &Incoming) -> Option<Line> {
        if !self.has_come(incoming) {
            return None;
        }
        let slot = self.slot(incoming.taken.get().wrapping_add(1));
        Some(slot.line.with(|line| {
            let line = line.cast::<u32>();
            // SAFETY: the sender wrote the line before `seq`, and does not touch it again before `consumed` says so.
            unsafe {
                let key = line.add(1).cast::<u64>().read_unaligned();
                Line { key, length: line.read(), inside: line.add(3).cast() }
            }
        }))
    }

    /// Asks for the next letter's line while this one is being read: only with it is known where the payload lies.
    #[inline]
    pub(crate) fn look_ahead(&self, incoming: &Incoming) {
        let line = std::ptr::from_ref(self.slot(incoming.taken.get().wrapping_add(2)));
        #[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
        // SAFETY: a hint, which changes nothing that can be seen.
        unsafe {
            std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(line.cast());
        }
        #[cfg(not(all(target_arch = "x86_64", not(loom), not(miri))))]
        let _ = line;
    }

    /// Gives back the slot of the letter that was read, which may be `part` of a long message, and keeps its body or gives it back; whether the
    /// sender, which may wait for either, is to be woken.
    #[inline]
    pub(crate) fn consume(&self, incoming: &Incoming, shelf: &Shelf, body: Option<Body>, part: bool) -> bool {
        let taken = incoming.taken.get().wrapping_add(1);
        incoming.taken.set(taken);
        let mut wake = false;
        match body {
            Some(body) if body.kept => shelf.keep(body.number),
            Some(body) => {
                let before = incoming.given.get();
                let given = before.wrapping_add(1);
                incoming.given.set(given);
                self.back.returned[before as usize % RETURNED].store(body.number, Ordering::Relaxed);
                self.back.given.store(given, Ordering::Release);
                wake = (given as usize).is_multiple_of(SPARE);
            }
            None => {}
        }
        let half = (taken as usize).is_multiple_of(SLOTS / 2);
        if half || part {
            self.back.consumed.store(taken, Ordering::Release);
        }
        wake || half
    }

    #[inline]
    fn reference(&self, number: u32) -> &AtomicU32 {
        &self.references[number as usize % REFERENCES]
    }

    /// Publishes a reference, for the letter to be sent next; none while too many are under way.
    pub(crate) fn refer(&self, outgoing: &Outgoing) -> Option<u32> {
        let number = (outgoing.referred.get() + 1) & (u32::MAX >> 2);
        let state = self.reference(number);
        if matches!(state.load(Ordering::Acquire) & 3, PUBLISHED | READING) {
            return None;
        }
        outgoing.referred.set(number);
        state.store(number << 2 | PUBLISHED, Ordering::Release);
        Some(number)
    }

    /// Whether the receiver is through with what a reference names.
    #[inline]
    pub(crate) fn settled(&self, number: u32) -> bool {
        let state = self.reference(number).load(Ordering::Acquire);
        state >> 2 != number || matches!(state & 3, IDLE | REVOKED)
    }

    /// Takes a reference back, or waits until it has been read, or its reader is `gone`.
    pub(crate) fn revoke(&self, number: u32, mut gone: impl FnMut() -> bool) {
        loop {
            let (published, revoked) = (number << 2 | PUBLISHED, number << 2 | REVOKED);
            let outcome =
                self.reference(number).compare_exchange(published, revoked, Ordering::AcqRel, Ordering::Acquire);
            match outcome {
                Err(state) if state == number << 2 | READING && !gone() => spin_loop(),
                _ => return,
            }
            yield_now();
        }
    }

    /// As the receiver: what the reference names may be read while the result lives.
    pub(crate) fn begin(&self, number: u32) -> Result<Reading<'_>, Revoked> {
        let state = self.reference(number);
        let (published, reading) = (number << 2 | PUBLISHED, number << 2 | READING);
        state.compare_exchange(published, reading, Ordering::AcqRel, Ordering::Acquire).map_err(|_| Revoked)?;
        Ok(Reading { state, number })
    }
}

/// Gives the sender its memory back when it is dropped, also when reading unwinds.
pub(crate) struct Reading<'a> {
    state: &'a AtomicU32,
    number: u32,
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        self.state.store(self.number << 2 | IDLE, Ordering::Release);
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::sync::Arc;
    use loom::thread;

    fn channel() -> Arc<Channel> {
        let slot = || Slot { seq: AtomicU32::new(0), line: UnsafeCell::new([0; 3 + INLINE / 4]) };
        Arc::new(Channel {
            back: Back {
                consumed: AtomicU32::new(0),
                given: AtomicU32::new(0),
                returned: std::array::from_fn(|_| AtomicU8::new(0)),
            },
            references: std::array::from_fn(|_| AtomicU32::new(0)),
            slots: std::array::from_fn(|_| slot()),
        })
    }

    #[test]
    fn slots_deliver_every_letter_and_are_not_overwritten() {
        loom::model(|| {
            let channel = channel();
            let sender = thread::spawn({
                let channel = channel.clone();
                move || {
                    let (outgoing, shelf) = (Outgoing::default(), Shelf::nowhere(0));
                    for number in 1..=3u64 {
                        while !channel.room(&outgoing, &shelf, false) {
                            thread::yield_now();
                        }
                        // SAFETY: there is room, and eight bytes fit into the line.
                        unsafe {
                            channel.send(&outgoing, &shelf, 99, 8, 0, |to| to.cast::<u64>().write(number * 10));
                        }
                    }
                }
            });
            let (incoming, shelf) = (Incoming::default(), Shelf::nowhere(1));
            for number in 1..=3u64 {
                let letter = loop {
                    // SAFETY: this thread receives.
                    match unsafe { channel.next(&incoming, &shelf) } {
                        Some(letter) => break letter,
                        None => thread::yield_now(),
                    }
                };
                // Read through the cell, so that loom sees it.
                let value = channel.slot(number as u32).line.with(|line| {
                    // SAFETY: eight bytes of payload after three words.
                    unsafe { line.cast::<u32>().add(3).cast::<u64>().read_unaligned() }
                });
                assert_eq!((letter.key, letter.length, value), (99, 8, number * 10));
                channel.consume(&incoming, &shelf, None, false);
            }
            sender.join().unwrap();
        });
    }

    /// One rank of two that send each other long letters: the bodies are cells that loom watches.
    struct Side {
        mine: usize,
        channels: [Arc<Channel>; 2],
        bodies: Arc<Vec<UnsafeCell<u64>>>,
    }

    impl Side {
        /// Sends and takes so many letters, sending first where there is room.
        fn exchange(&self, mut to_send: u64, mut to_take: u64) {
            let Side { mine, channels, bodies } = self;
            let (ours, theirs) = (&channels[*mine], &channels[1 - *mine]);
            let (outgoing, incoming, shelf) = (Outgoing::default(), Incoming::default(), Shelf::nowhere(*mine));
            let number = |at: *const u8| at.addr() - shelf.at(0).addr();
            while to_send + to_take > 0 {
                let mut stuck = true;
                if to_send > 0 && ours.room(&outgoing, &shelf, true) {
                    // SAFETY: what the protocol promises; loom checks that nobody else uses the body.
                    let fill = |at: *mut u8| bodies[number(at)].with_mut(|body| unsafe { *body = to_send });
                    // SAFETY: there is room.
                    unsafe { ours.send(&outgoing, &shelf, 9, 2048, 0, fill) };
                    (to_send, stuck) = (to_send - 1, false);
                }
                // SAFETY: this thread receives.
                if let Some(letter) = unsafe { theirs.next(&incoming, &shelf) } {
                    // SAFETY: as for the fill.
                    bodies[number(letter.payload)].with(|body| assert_eq!(unsafe { *body }, to_take));
                    theirs.consume(&incoming, &shelf, letter.body, true);
                    (to_take, stuck) = (to_take - 1, false);
                }
                if stuck {
                    thread::yield_now();
                }
            }
        }
    }

    fn two_sides(there: u64, back: u64) {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(2);
        model.check(move || {
            let channels = [channel(), channel()];
            let bodies = Arc::new((0..BODIES).map(|_| UnsafeCell::new(0)).collect::<Vec<_>>());
            let side = |mine: usize| Side { mine, channels: channels.clone(), bodies: bodies.clone() };
            let (lower, higher) = (side(0), side(1));
            let other = thread::spawn(move || higher.exchange(back, there));
            lower.exchange(there, back);
            other.join().unwrap();
        });
    }

    #[test]
    fn a_body_is_one_ranks_at_a_time_where_both_send() {
        two_sides(2, 2);
    }

    #[test]
    fn a_body_is_one_ranks_at_a_time_where_it_comes_back() {
        two_sides(4, 0);
    }

    #[test]
    fn a_reference_is_read_or_revoked_but_never_both() {
        loom::model(|| {
            let channel = channel();
            let memory = Arc::new(UnsafeCell::new(7u64));
            let outgoing = Outgoing::default();
            let number = channel.refer(&outgoing).unwrap();
            let receiver = thread::spawn({
                let (channel, memory) = (channel.clone(), memory.clone());
                move || {
                    let _reading = channel.begin(number)?;
                    // SAFETY: what the protocol promises; loom checks that nobody writes it now.
                    memory.with(|value| assert_eq!(unsafe { *value }, 7));
                    Ok::<(), Revoked>(())
                }
            });
            channel.revoke(number, || false);
            // After revoke returned the memory is the sender's again.
            // SAFETY: what the protocol promises; loom would report a concurrent read.
            memory.with_mut(|value| unsafe { *value = 8 });
            assert!(channel.settled(number));
            let _ = receiver.join().unwrap();
        });
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn channel() -> Box<Channel> {
        // SAFETY: all zeros is an empty channel.
        unsafe { Box::new(std::mem::zeroed()) }
    }

    #[test]
    fn letters_are_numbered_beyond_the_last_number() {
        let begin = u32::MAX - 5 * SLOTS as u32;
        let channel = channel();
        channel.back.consumed.store(begin, Ordering::Relaxed);
        let outgoing = Outgoing { sent: begin.into(), seen: begin.into(), ..Outgoing::default() };
        let incoming = Incoming { taken: begin.into(), ..Incoming::default() };
        let (shelf, theirs) = (Shelf::nowhere(0), Shelf::nowhere(1));
        let (mut sent, mut taken) = (0u64, 0u64);
        while taken < 20 * SLOTS as u64 {
            // As many as fit, then fewer than that.
            while channel.room(&outgoing, &shelf, false) {
                // SAFETY: there is room, and eight bytes fit into the line.
                unsafe { channel.send(&outgoing, &shelf, 9, 8, 0, |to| to.cast::<u64>().write(sent)) };
                sent += 1;
            }
            assert!(sent - taken <= SLOTS as u64, "a letter was overwritten");
            for _ in 0..1 + taken % SLOTS as u64 {
                // SAFETY: this thread receives; the payload has eight bytes.
                let Some(letter) = (unsafe { channel.next(&incoming, &theirs) }) else { break };
                // SAFETY: as above.
                assert_eq!(unsafe { letter.payload.cast::<u64>().read_unaligned() }, taken);
                channel.consume(&incoming, &theirs, None, taken % 3 == 0);
                taken += 1;
            }
        }
        assert!(outgoing.sent.get() < begin);
        // An empty channel has nothing to give, whatever was in its slots before.
        while unsafe { channel.next(&incoming, &theirs) }.is_some() {
            channel.consume(&incoming, &theirs, None, false);
            taken += 1;
        }
        assert_eq!(sent, taken);
    }

    /// Whatever came before it: then it need not wait in the middle.
    #[test]
    fn after_parts_of_a_long_message_there_is_room_in_all_slots() {
        for before in 0..3 * SLOTS {
            for part in [true, false] {
                let channel = channel();
                let (outgoing, incoming) = (Outgoing::default(), Incoming::default());
                let (shelf, theirs) = (Shelf::nowhere(0), Shelf::nowhere(1));
                let send = || {
                    let room = channel.room(&outgoing, &shelf, false);
                    if room {
                        // SAFETY: there is room, and eight bytes fit into the line.
                        unsafe { channel.send(&outgoing, &shelf, 9, 8, 0, |to| to.cast::<u64>().write(0)) };
                    }
                    room
                };
                for _ in 0..before {
                    assert!(send());
                    channel.consume(&incoming, &theirs, None, part);
                }
                let room = (0..=SLOTS).take_while(|_| send()).count();
                let short_of = if part { 0 } else { before % (SLOTS / 2) };
                assert_eq!(room, SLOTS - short_of, "after {before} letters");
            }
        }
    }

    #[test]
    fn references_are_numbered_beyond_the_last_number() {
        let channel = channel();
        let outgoing = Outgoing { referred: ((u32::MAX >> 2) - 40).into(), ..Outgoing::default() };
        let mut last = None;
        for round in 0..100 {
            let number = channel.refer(&outgoing).unwrap();
            assert!(!channel.settled(number));
            if round % 3 == 0 {
                channel.revoke(number, || false);
                assert!(channel.begin(number).is_err());
            } else {
                drop(channel.begin(number).unwrap());
                assert_eq!(channel.begin(number).err(), Some(Revoked));
            }
            assert!(channel.settled(number) && last != Some(number));
            last = Some(number);
        }
        assert!(outgoing.referred.get() < 100);
        // No more at once than there are places for.
        let all: Vec<Option<u32>> = (0..=REFERENCES).map(|_| channel.refer(&outgoing)).collect();
        assert!(all[..REFERENCES].iter().all(Option::is_some) && all[REFERENCES].is_none());
    }

    #[test]
    fn a_reader_that_is_gone_is_not_waited_for() {
        let channel = channel();
        let number = channel.refer(&Outgoing::default()).unwrap();
        std::mem::forget(channel.begin(number).unwrap());
        let mut asked = 0;
        channel.revoke(number, || {
            asked += 1;
            asked == 3
        });
        assert_eq!(asked, 3);
    }
}
