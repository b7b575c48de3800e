//! A channel carries the messages of one rank to another of its node, one after the other, whatever plans they belong to.
//!
//! **Slots.** Letter number n goes into slot `n mod SLOTS`. The sender may write a slot when the receiver has consumed what
//! was in it SLOTS letters ago; it writes the key of the plan, the length and the payload, then stores `seq = n`. The
//! receiver waits for `seq == n`, reads, and stores `consumed = n` every SLOTS/2 letters, and after each that may be part of
//! a long message: as much of the next one as the slots hold then finds room. Slot and payload have one writer each, and up
//! to 48 bytes travel in the cache line of their flag, 64 more in the line that is fetched with it. Longer payloads lie in
//! the slot's body; messages longer than a body are several letters.
//!
//! Memory ordering: `seq` is stored with Release after the payload and loaded with Acquire before it is read, so the reader
//! sees the payload. `consumed` is stored with Release after reading and loaded with Acquire before a slot is written again,
//! so a payload is never overwritten while it is read. Letters are numbered modulo 2^32; `seq == n` is compared for equality
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

use super::sync::{AtomicU32, Ordering, UnsafeCell, spin_loop, yield_now};

#[cfg(not(loom))]
pub(crate) const SLOTS: usize = 16;
/// Few, so that reuse is reached within a model's bounds.
#[cfg(loom)]
pub(crate) const SLOTS: usize = 2;
/// Payloads up to this many bytes travel in the line of their flag, or in the one beside it.
pub(crate) const INLINE: usize = 112;
const REFERENCES: usize = 32;

const IDLE: u32 = 0;
const PUBLISHED: u32 = 1;
const READING: u32 = 2;
const REVOKED: u32 = 3;

/// What ranks of a node share for one channel; the bodies of the slots follow it in memory. All zeros is an empty channel.
#[repr(C, align(128))]
pub(crate) struct Channel {
    consumed: PaddedCounter,
    references: [AtomicU32; REFERENCES],
    slots: [Slot; SLOTS],
}

#[repr(C, align(128))]
struct PaddedCounter(AtomicU32);

/// Lines are fetched in pairs: a slot has one. In this order, flag and short payloads are in the same line.
#[repr(C, align(128))]
struct Slot {
    seq: AtomicU32,
    /// Length, key (two words), and the payload.
    line: UnsafeCell<[u32; 3 + INLINE / 4]>,
}

/// The sender's side of a channel.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outgoing {
    sent: u32,
    /// What the receiver had consumed when last looked.
    seen: u32,
    referred: u32,
}

/// The receiver's side.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Incoming {
    taken: u32,
}

/// A letter that has arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Letter {
    pub(crate) key: u64,
    /// Its length, with [`REFERENCE`] set if the payload is a reference.
    pub(crate) length: u32,
    pub(crate) payload: *const u8,
}

/// Marks the length of a reference.
pub(crate) const REFERENCE: u32 = 1 << 31;

/// The sender gave up.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Revoked;

/// At most so much of the next letter's body is asked for ahead.
const SOON: usize = 4096;

/// Asks for a line, which the receiver read last, to be ours by the time the next letter is written: the letter is then visible
/// at once.
#[inline]
fn own_soon(line: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(loom)))]
    // SAFETY: a hint, which changes nothing that can be seen; processors without it do nothing.
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) line, options(nostack, preserves_flags));
    }
    #[cfg(not(all(target_arch = "x86_64", not(loom))))]
    let _ = line;
}

impl Channel {
    #[inline]
    fn slot(&self, number: u32) -> &Slot {
        &self.slots[number as usize % SLOTS]
    }

    /// Whether there is room for a letter.
    #[inline]
    pub(crate) fn room(&self, outgoing: &mut Outgoing) -> bool {
        let next = outgoing.sent.wrapping_add(1);
        let free = |consumed: u32| next.wrapping_sub(consumed) <= SLOTS as u32;
        if !free(outgoing.seen) {
            outgoing.seen = self.consumed.0.load(Ordering::Acquire);
        }
        free(outgoing.seen)
    }

    /// Sends a letter whose payload `fill` writes. `bodies` are those of the slots, `body` bytes each. `ahead`: how many bytes a body will
    /// have, if the next letter has one and there is time until then.
    ///
    /// # Safety
    /// The sender calls it when there is [`room`](Channel::room). The payload is at most `body` bytes.
    #[inline]
    pub(crate) unsafe fn send(
        &self,
        outgoing: &mut Outgoing,
        (bodies, body): (*mut u8, usize),
        key: u64,
        length: u32,
        ahead: usize,
        fill: impl FnOnce(*mut u8),
    ) {
        let number = outgoing.sent.wrapping_add(1);
        outgoing.sent = number;
        let slot = self.slot(number);
        slot.line.with_mut(|line| {
            let line = line.cast::<u32>();
            // SAFETY: the slot is free: the receiver has stored `consumed` after its last read; the words are inside the line,
            // and the body of the slot is behind the channel.
            unsafe {
                line.write(length);
                line.add(1).cast::<u64>().write_unaligned(key);
                fill(match length & !REFERENCE <= INLINE as u32 {
                    true => line.add(3).cast(),
                    false => bodies.add(number as usize % SLOTS * body),
                });
            }
        });
        slot.seq.store(number, Ordering::Release);
        let next = number.wrapping_add(1);
        let slot = std::ptr::from_ref(self.slot(next)).cast::<u8>();
        own_soon(slot);
        // The next letter is often as long.
        if length > 48 && length <= INLINE as u32 {
            own_soon(slot.wrapping_add(64));
        } else if length & !REFERENCE > INLINE as u32 {
            let body = bodies.wrapping_add(next as usize % SLOTS * body);
            (0..ahead.min(SOON)).step_by(64).for_each(|at| own_soon(body.wrapping_add(at)));
        }
    }

    /// Whether the next letter has arrived.
    #[inline]
    pub(crate) fn has_come(&self, incoming: &Incoming) -> bool {
        let number = incoming.taken.wrapping_add(1);
        self.slot(number).seq.load(Ordering::Acquire) == number
    }

    /// The next letter, if it has arrived.
    ///
    /// # Safety
    /// The receiver calls it. The letter's payload is readable until [`consume`](Channel::consume).
    #[inline]
    pub(crate) unsafe fn next(&self, incoming: &Incoming, (bodies, body): (*mut u8, usize)) -> Option<Letter> {
        if !self.has_come(incoming) {
            return None;
        }
        let number = incoming.taken.wrapping_add(1);
        let slot = self.slot(number);
        Some(slot.line.with(|line| {
            let line = line.cast::<u32>();
            // SAFETY: the sender wrote the line before `seq`, and does not touch it again before `consumed` says so.
            unsafe {
                let length = line.read();
                let payload = match length & !REFERENCE <= INLINE as u32 {
                    true => line.add(3).cast(),
                    false => bodies.add(number as usize % SLOTS * body).cast_const(),
                };
                Letter { key: line.add(1).cast::<u64>().read_unaligned(), length, payload }
            }
        }))
    }

    /// Gives the slot of the letter that was read back, which may be part of a long message; whether the sender, which may wait for room, is to be
    /// woken.
    #[inline]
    pub(crate) fn consume(&self, incoming: &mut Incoming, part: bool) -> bool {
        incoming.taken = incoming.taken.wrapping_add(1);
        let wake = (incoming.taken as usize).is_multiple_of(SLOTS / 2);
        if wake || part {
            self.consumed.0.store(incoming.taken, Ordering::Release);
        }
        wake
    }

    #[inline]
    fn reference(&self, number: u32) -> &AtomicU32 {
        &self.references[number as usize % REFERENCES]
    }

    /// Publishes a reference, for the letter to be sent next; none while too many are under way.
    pub(crate) fn refer(&self, outgoing: &mut Outgoing) -> Option<u32> {
        let number = (outgoing.referred + 1) & (u32::MAX >> 2);
        let state = self.reference(number);
        if matches!(state.load(Ordering::Acquire) & 3, PUBLISHED | READING) {
            return None;
        }
        outgoing.referred = number;
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
            consumed: PaddedCounter(AtomicU32::new(0)),
            references: std::array::from_fn(|_| AtomicU32::new(0)),
            slots: std::array::from_fn(|_| slot()),
        })
    }

    const NO_BODIES: (*mut u8, usize) = (std::ptr::null_mut(), 0);

    #[test]
    fn slots_deliver_every_letter_and_are_not_overwritten() {
        loom::model(|| {
            let channel = channel();
            let sender = thread::spawn({
                let channel = channel.clone();
                move || {
                    let mut outgoing = Outgoing::default();
                    for number in 1..=3u64 {
                        while !channel.room(&mut outgoing) {
                            thread::yield_now();
                        }
                        // SAFETY: there is room, and eight bytes fit into the line.
                        unsafe {
                            channel.send(&mut outgoing, NO_BODIES, 99, 8, 0, |to| to.cast::<u64>().write(number * 10));
                        }
                    }
                }
            });
            let mut incoming = Incoming::default();
            for number in 1..=3u64 {
                let letter = loop {
                    // SAFETY: this thread receives.
                    match unsafe { channel.next(&incoming, NO_BODIES) } {
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
                channel.consume(&mut incoming, false);
            }
            sender.join().unwrap();
        });
    }

    #[test]
    fn a_reference_is_read_or_revoked_but_never_both() {
        loom::model(|| {
            let channel = channel();
            let memory = Arc::new(UnsafeCell::new(7u64));
            let mut outgoing = Outgoing::default();
            let number = channel.refer(&mut outgoing).unwrap();
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
        const NO_BODIES: (*mut u8, usize) = (std::ptr::null_mut(), 0);
        let begin = u32::MAX - 5 * SLOTS as u32;
        let channel = channel();
        channel.consumed.0.store(begin, Ordering::Relaxed);
        let mut outgoing = Outgoing { sent: begin, seen: begin, referred: 0 };
        let mut incoming = Incoming { taken: begin };
        let (mut sent, mut taken) = (0u64, 0u64);
        while taken < 20 * SLOTS as u64 {
            // As many as fit, then fewer than that.
            while channel.room(&mut outgoing) {
                // SAFETY: there is room, and eight bytes fit into the line.
                unsafe { channel.send(&mut outgoing, NO_BODIES, 9, 8, 0, |to| to.cast::<u64>().write(sent)) };
                sent += 1;
            }
            assert!(sent - taken <= SLOTS as u64, "a letter was overwritten");
            for _ in 0..1 + taken % SLOTS as u64 {
                // SAFETY: this thread receives; the payload has eight bytes.
                let Some(letter) = (unsafe { channel.next(&incoming, NO_BODIES) }) else { break };
                // SAFETY: as above.
                assert_eq!(unsafe { letter.payload.cast::<u64>().read_unaligned() }, taken);
                channel.consume(&mut incoming, taken % 3 == 0);
                taken += 1;
            }
        }
        assert!(outgoing.sent < begin);
        // An empty channel has nothing to give, whatever was in its slots before.
        while unsafe { channel.next(&incoming, NO_BODIES) }.is_some() {
            channel.consume(&mut incoming, false);
            taken += 1;
        }
        assert_eq!(sent, taken);
    }

    /// Whatever came before it: then it need not wait in the middle.
    #[test]
    fn after_parts_of_a_long_message_there_is_room_in_all_slots() {
        const NO_BODIES: (*mut u8, usize) = (std::ptr::null_mut(), 0);
        for before in 0..3 * SLOTS {
            for part in [true, false] {
                let channel = channel();
                let (mut outgoing, mut incoming) = (Outgoing::default(), Incoming::default());
                let mut send = || {
                    let room = channel.room(&mut outgoing);
                    if room {
                        // SAFETY: there is room, and eight bytes fit into the line.
                        unsafe { channel.send(&mut outgoing, NO_BODIES, 9, 8, 0, |to| to.cast::<u64>().write(0)) };
                    }
                    room
                };
                for _ in 0..before {
                    assert!(send());
                    channel.consume(&mut incoming, part);
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
        let mut outgoing = Outgoing { sent: 0, seen: 0, referred: (u32::MAX >> 2) - 40 };
        let mut last = None;
        for round in 0..100 {
            let number = channel.refer(&mut outgoing).unwrap();
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
        assert!(outgoing.referred < 100);
        // No more at once than there are places for.
        let all: Vec<Option<u32>> = (0..=REFERENCES).map(|_| channel.refer(&mut outgoing)).collect();
        assert!(all[..REFERENCES].iter().all(Option::is_some) && all[REFERENCES].is_none());
    }

    #[test]
    fn a_reader_that_is_gone_is_not_waited_for() {
        let channel = channel();
        let number = channel.refer(&mut Outgoing::default()).unwrap();
        std::mem::forget(channel.begin(number).unwrap());
        let mut asked = 0;
        channel.revoke(number, || {
            asked += 1;
            asked == 3
        });
        assert_eq!(asked, 3);
    }
}
