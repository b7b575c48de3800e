//! What a rank has with another one of its node: the channels between them, their bodies, and where the other one sleeps.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use super::Piece;
use super::channel::{Body, Channel, INLINE, Incoming, Letter, Outgoing, REFERENCE, Reading, Revoked};
use super::shelf::{Payload, Shelf};
use super::wakeup::Wakeup;

/// In this order, all that short letters need lies in one line.
#[repr(C, align(64))]
pub(crate) struct Neighbour {
    /// The channel to it and the one from it, and how far this rank is in both.
    to: *const Channel,
    from: *const Channel,
    outgoing: Outgoing,
    incoming: Incoming,
    wakeup: *const Wakeup,
    /// How many letters of its are put aside.
    kept: Cell<usize>,
    /// The bodies that are this rank's.
    shelf: Shelf,
    /// Its letters of plans that nobody asked about yet.
    aside: RefCell<VecDeque<LetterAside>>,
}

/// A letter that was put aside.
struct LetterAside {
    key: u64,
    length: u32,
    /// Aligned for every element type.
    payload: Box<[u128]>,
}

/// A message, or a piece of one, on its way to where it belongs.
pub(crate) enum Arrived<'a> {
    /// Bytes that can be read now.
    Bytes(Payload),
    /// Bytes in the sender's memory, to be read while `Reading` lives.
    Reference(Reference, Result<Reading<'a>, Revoked>),
}

/// What the letter of a reference says: one piece, or the address of a list of them, in the sender's memory.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Reference {
    pub(super) number: u32,
    pub(crate) pieces: u32,
    pub(crate) piece: Piece,
    /// Of all pieces together.
    pub(crate) bytes: usize,
}

const REFERENCE_LENGTH: u32 = size_of::<Reference>() as u32 | REFERENCE;
const _: () = assert!(size_of::<Reference>() <= INLINE);

impl Neighbour {
    /// # Safety
    /// They are in memory that outlives it, which is zeros at first.
    pub(super) unsafe fn new(
        to: *const Channel,
        from: *const Channel,
        wakeup: *const Wakeup,
        shelf: Shelf,
    ) -> Neighbour {
        let (outgoing, incoming, kept) = (Outgoing::default(), Incoming::default(), Cell::new(0));
        Neighbour { to, from, outgoing, incoming, wakeup, kept, shelf, aside: RefCell::default() }
    }

    #[inline(always)]
    fn to(&self) -> &Channel {
        // SAFETY: as `new` was promised.
        unsafe { &*self.to }
    }

    #[inline(always)]
    fn from(&self) -> &Channel {
        // SAFETY: as above.
        unsafe { &*self.from }
    }

    /// Wakes it, if it is asleep, after something it may be waiting for was written.
    #[inline]
    pub(crate) fn wake(&self) {
        // SAFETY: as above.
        unsafe { &*self.wakeup }.wake();
    }

    /// Sends a letter of `bytes`, at most [`body`](super::Node::body), which `fill` writes; `false` if there is no room. It is the message's `last`
    /// letter, or the next one is written at once.
    #[inline(always)]
    pub(crate) fn send(&self, key: u64, bytes: usize, last: bool, fill: impl FnOnce(*mut u8)) -> bool {
        let Neighbour { outgoing, shelf, .. } = self;
        let room = self.to().room(outgoing, shelf, bytes > INLINE);
        if room {
            // The next message is often as long.
            let ahead = if last { bytes } else { 0 };
            // SAFETY: this rank sends, there is room, and the letter fits.
            unsafe { self.to().send(outgoing, shelf, key, bytes as u32, ahead, fill) };
            self.wake();
        }
        room
    }

    /// The same for one of at most [`INLINE`] bytes.
    #[inline(always)]
    pub(crate) fn send_line(&self, key: u64, bytes: usize, fill: impl FnOnce(*mut u8)) -> bool {
        let Neighbour { outgoing, shelf, .. } = self;
        let room = self.to().room(outgoing, shelf, false);
        if room {
            // SAFETY: as above.
            unsafe { self.to().send_line(outgoing, key, bytes as u32, fill) };
            self.wake();
        }
        room
    }

    /// What its next letter says, if it has come and is a message of so many bytes of a plan, which lie in its line. Then it is to be
    /// [given back](Neighbour::line_taken).
    #[inline(always)]
    pub(crate) fn line(&self, key: u64, bytes: usize) -> Option<*const u8> {
        // SAFETY: this rank receives.
        let line = unsafe { self.from().next_line(&self.incoming) }?;
        (line.key == key && line.length as usize == bytes && self.kept.get() == 0).then_some(line.inside)
    }

    #[inline(always)]
    pub(crate) fn line_taken(&self) {
        self.give_back(None, false);
    }

    /// Sends a reference to pieces; its number, or none if there is no room. The pieces must stay readable and unwritten until
    /// the reference is [`settled`](Neighbour::settled) or [revoked](super::Node::revoke), and so must the list.
    pub(crate) fn refer(&self, key: u64, pieces: &[Piece]) -> Option<u32> {
        let Neighbour { outgoing, shelf, .. } = self;
        let number = self.to().room(outgoing, shelf, false).then(|| self.to().refer(outgoing)).flatten()?;
        let piece = match pieces {
            [one] => *one,
            list => Piece { at: list.as_ptr().cast(), len: list.len() },
        };
        let bytes = pieces.iter().map(|piece| piece.len).sum();
        let reference = Reference { number, pieces: pieces.len() as u32, piece, bytes };
        // SAFETY: this rank sends, there is room, and a reference fits into a line.
        unsafe {
            self.to().send(outgoing, shelf, key, REFERENCE_LENGTH, 0, |to| {
                to.cast::<Reference>().write_unaligned(reference);
            });
        }
        self.wake();
        Some(number)
    }

    /// Whether it is through with a reference.
    #[inline]
    pub(crate) fn settled(&self, number: u32) -> bool {
        self.to().settled(number)
    }

    /// Takes a reference back, or waits until it has been read, or its reader is `gone`.
    pub(super) fn revoke(&self, number: u32, gone: impl FnMut() -> bool) {
        self.to().revoke(number, gone);
    }

    /// Hands its next letter of a plan to `read`; `None` if none has come. Letters of other plans are put aside.
    #[inline]
    pub(crate) fn take<R>(&self, key: u64, read: impl FnOnce(Arrived<'_>) -> R) -> Option<R> {
        if self.kept.get() > 0
            && let Some(kept) = self.fetch(key)
        {
            let letter = Letter { key, length: kept.length, payload: kept.payload.as_ptr().cast(), body: None };
            return Some(self.hand_over(letter, read));
        }
        loop {
            // SAFETY: this rank receives.
            let letter = unsafe { self.from().next(&self.incoming, &self.shelf) }?;
            if letter.key == key {
                if letter.body.is_some() {
                    self.from().look_ahead(&self.incoming);
                }
                let result = self.hand_over(letter, read);
                self.give_back(letter.body, letter.body.is_some());
                return Some(result);
            }
            self.keep(letter);
            self.give_back(letter.body, false);
        }
    }

    /// Its next letter, if it has come and is a message of so many bytes of a plan. It is to be [given back](Neighbour::give_back).
    #[inline(always)]
    pub(crate) fn whole(&self, key: u64, bytes: usize) -> Option<Letter> {
        // SAFETY: this rank receives.
        let letter = unsafe { self.from().next(&self.incoming, &self.shelf) }?;
        // One of this plan may have been put aside before it.
        (letter.key == key && letter.length as usize == bytes && self.kept.get() == 0).then_some(letter)
    }

    /// The letter that was handed over has been read. It may be `part` of a long message.
    #[inline(always)]
    pub(crate) fn give_back(&self, body: Option<Body>, part: bool) {
        if self.from().consume(&self.incoming, &self.shelf, body, part) {
            self.wake();
        }
    }

    /// Whether a letter of its waits to be taken, of whatever plan; those that were put aside do not count.
    #[inline]
    pub(crate) fn has_come(&self) -> bool {
        self.from().has_come(&self.incoming)
    }

    #[inline]
    fn hand_over<R>(&self, letter: Letter, read: impl FnOnce(Arrived<'_>) -> R) -> R {
        if letter.length & REFERENCE == 0 {
            return read(Arrived::Bytes(letter.payload()));
        }
        // SAFETY: the sender wrote a reference.
        let reference = unsafe { letter.payload.cast::<Reference>().read_unaligned() };
        let result = read(Arrived::Reference(reference, self.from().begin(reference.number)));
        self.wake();
        result
    }

    #[cold]
    fn keep(&self, letter: Letter) {
        let bytes = (letter.length & !REFERENCE) as usize;
        let mut payload = vec![0u128; bytes.div_ceil(16)].into_boxed_slice();
        // SAFETY: as many bytes as the letter has.
        unsafe { std::ptr::copy_nonoverlapping(letter.payload, payload.as_mut_ptr().cast::<u8>(), bytes) };
        self.aside.borrow_mut().push_back(LetterAside { key: letter.key, length: letter.length, payload });
        self.kept.set(self.kept.get() + 1);
    }

    #[cold]
    fn fetch(&self, key: u64) -> Option<LetterAside> {
        let mut aside = self.aside.borrow_mut();
        let place = aside.iter().position(|kept| kept.key == key)?;
        self.kept.set(self.kept.get() - 1);
        aside.remove(place)
    }
}
