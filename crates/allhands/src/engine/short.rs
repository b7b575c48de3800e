//! Programs of short messages between ranks of one node, which is what most calls of programs come to.
//!
//! Such a program is kept a second time, with everything resolved that does not change from run to run: [`Short`]s name who it is, where
//! in which memory, and how many bytes, and what needs nothing done there (to say that a message may come, to settle a letter) is left out.
//! They are run from the beginning as far as letters come and find room in a moment; at the first that does not, the engine goes on with the
//! same instruction of the program itself, as if it had executed those before. So nothing is decided here, and whoever waits does so there.
//!
//! What is done between a program's call and its letter, and between the other one's letter and the program's next line, is most of what such a call
//! takes. So letters that lie in their line are dealt with on the spot, and those that have a body by functions of their own.

use allhands_schedule::Combine;

use super::{Engine, Inlet, Outlet, copy_run};
use crate::node::{INLINE, Neighbour, Node};
use crate::program::{Buffers, Instruction, Message, Program, Segment};

/// An instruction of a program, and what it comes to.
pub(super) struct Short {
    /// In the node of the engine's world; null for a copy.
    neighbour: *const Neighbour,
    /// What is read: the message, what is copied, or the other operand.
    from: Place,
    into: Place,
    bytes: usize,
    /// Where in the program it is.
    at: usize,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    Send,
    Take,
    /// What comes is combined with what is there, on this side of it.
    TakeCombine(Combine),
    /// It is combined with what is elsewhere.
    TakeWith(Combine),
    Copy,
}

/// The beginning of a run of bytes, in one of an engine's memories.
#[derive(Clone, Copy)]
struct Place {
    base: usize,
    at: usize,
}

impl Place {
    const NOWHERE: Place = Place { base: 0, at: 0 };

    fn of(segment: &Segment) -> Place {
        Place { base: segment.memory as usize, at: segment.at }
    }

    #[inline(always)]
    fn address(self, bases: &[*mut u8; 4]) -> *mut u8 {
        // As in `address`: programs stay inside their memories, which nothing leaves where there are no bytes.
        bases[self.base % bases.len()].wrapping_add(self.at)
    }
}

/// A message that is one letter and one run of bytes, or none.
fn run_of(message: &Message, node: &Node) -> Option<(Place, usize)> {
    match &message.parts[..] {
        _ if message.bytes > node.body() => None,
        [] => Some((Place::NOWHERE, 0)),
        [part] => Some((Place::of(part), part.len)),
        _ => None,
    }
}

/// A whole program, if it is of short messages only; else nothing.
pub(super) fn shortened(program: &Program, sends: &[Outlet], takes: &[Inlet], node: &Node) -> Option<Box<[Short]>> {
    let taken = |message: usize| match takes[message] {
        Inlet::Near { from } => {
            run_of(&program.takes[message], node).map(|(into, bytes)| (&raw const *node.neighbour(from), into, bytes))
        }
        Inlet::Far(_) => None,
    };
    let mut shorts = Vec::with_capacity(program.code.len());
    for (at, instruction) in program.code.iter().enumerate() {
        shorts.push(match instruction {
            // Nothing to be done for letters.
            Instruction::Post(message) if matches!(takes[*message], Inlet::Near { .. }) => continue,
            Instruction::Settle(message) if matches!(sends[*message], Outlet::Letters { .. }) => continue,
            Instruction::Send(message) => {
                let Outlet::Letters { to, .. } = sends[*message] else { return None };
                let (from, bytes) = run_of(&program.sends[*message], node)?;
                Short { neighbour: node.neighbour(to), from, into: Place::NOWHERE, bytes, at, kind: Kind::Send }
            }
            Instruction::Take(message) => {
                let (neighbour, into, bytes) = taken(*message)?;
                Short { neighbour, from: Place::NOWHERE, into, bytes, at, kind: Kind::Take }
            }
            Instruction::TakeCombine(message, side) => {
                let (neighbour, into, bytes) = taken(*message)?;
                Short { neighbour, from: into, into, bytes, at, kind: Kind::TakeCombine(*side) }
            }
            Instruction::TakeWith { message, others, side } => {
                let (neighbour, into, bytes) = taken(*message)?;
                let [other] = &others[..] else { return None };
                Short { neighbour, from: Place::of(other), into, bytes, at, kind: Kind::TakeWith(*side) }
            }
            Instruction::Copy { from, to } => {
                let (neighbour, bytes) = (std::ptr::null(), from.len);
                Short { neighbour, from: Place::of(from), into: Place::of(to), bytes, at, kind: Kind::Copy }
            }
            _ => return None,
        });
    }
    Some(shorts.into())
}

impl Engine {
    /// At the beginning of a run: executes what comes and finds room in a moment; whether that was all. `patient`: as for
    /// [`step`](Engine::step).
    #[inline(always)]
    pub(crate) fn run_short(&mut self, patient: bool) -> bool {
        let Some(shorts) = &self.shorts[self.buffers as usize] else { return false };
        if shorts.is_empty() {
            return false;
        }
        for short in shorts {
            let Short { bytes, kind, .. } = *short;
            let (from, into) = (short.from.address(&self.bases), short.into.address(&self.bases));
            // SAFETY: it lies in the world that the engine holds; not looked at by a copy, which has none.
            let neighbour = || unsafe { &*short.neighbour };
            // SAFETY: runs of bytes are inside this rank's memories, as the program was promised; a letter has as many bytes as its message.
            let done = unsafe {
                match kind {
                    Kind::Copy => {
                        match bytes {
                            8 => into.cast::<u64>().write_unaligned(from.cast::<u64>().read_unaligned()),
                            bytes => std::ptr::copy(from, into, bytes),
                        }
                        true
                    }
                    Kind::Send if bytes <= INLINE => {
                        neighbour().send_line(self.key, bytes, |line| copy_run(from, line, bytes))
                    }
                    Kind::Send => self.send_body(neighbour(), from, bytes),
                    _ if !self.comes(neighbour(), patient) => false,
                    kind if bytes <= INLINE => match neighbour().line(self.key, bytes) {
                        None => false,
                        Some(letter) => {
                            self.put_short(kind, letter, from, into, bytes);
                            neighbour().line_taken();
                            true
                        }
                    },
                    kind => self.take_body(neighbour(), kind, from, into, bytes),
                }
            };
            if !done {
                self.at = short.at;
                return false;
            }
        }
        self.at = usize::MAX;
        true
    }

    /// Whether a letter has come, or comes in a moment.
    #[inline(always)]
    fn comes(&self, neighbour: &Neighbour, patient: bool) -> bool {
        neighbour.has_come() || patient && self.world.arrives_soon(neighbour)
    }

    /// # Safety
    /// So many bytes can be read.
    #[inline(never)]
    unsafe fn send_body(&self, neighbour: &Neighbour, from: *const u8, bytes: usize) -> bool {
        // SAFETY: the caller's promise; the letter has room for them.
        neighbour.send(self.key, bytes, true, |body| unsafe { copy_run(from, body, bytes) })
    }

    /// # Safety
    /// As for [`put_short`](Engine::put_short).
    #[inline(never)]
    unsafe fn take_body(
        &self,
        neighbour: &Neighbour,
        kind: Kind,
        from: *const u8,
        into: *mut u8,
        bytes: usize,
    ) -> bool {
        let Some(letter) = neighbour.whole(self.key, bytes) else { return false };
        letter.payload().each(|begin, letter, len| {
            // SAFETY: the caller's promise, of a part of the bytes.
            unsafe { self.put_short(kind, letter, from.wrapping_add(begin), into.wrapping_add(begin), len) };
        });
        neighbour.give_back(letter.body, false);
        true
    }

    /// Puts what has come where it belongs.
    ///
    /// # Safety
    /// So many bytes can be read from the letter and, where they are combined with others, from there, and written.
    #[inline(always)]
    unsafe fn put_short(&self, kind: Kind, letter: *const u8, from: *const u8, into: *mut u8, bytes: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            match kind {
                Kind::TakeCombine(side) => self.reducer().combine(letter, into, bytes, side),
                Kind::TakeWith(Combine::After) => self.reducer().combine_into(letter, from, into, bytes),
                Kind::TakeWith(_) => self.reducer().combine_into(from, letter, into, bytes),
                _ => copy_run(letter, into, bytes),
            }
        }
    }

    /// Resolves a program for such buffers before its first run, once.
    pub(super) fn shorten(&mut self, buffers: Buffers, program: &Program) {
        let shorts = shortened(program, &self.sends, &self.takes, &self.world.node);
        self.shorts[buffers as usize] = Some(shorts.unwrap_or_default());
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::Cursor;
    use super::*;
    use crate::node::{PeerMemory, of_threads};
    use crate::program::{Beside, Memory};

    fn segment(at: usize, len: usize) -> Segment {
        Segment { memory: Memory::Output, at, len }
    }

    fn message(parts: Vec<Segment>) -> Message {
        let bytes = parts.iter().map(|part| part.len).sum();
        Message { peer: 1, bytes, parts, combined: false, beside: Beside::Nothing }
    }

    /// Where in an exchange, after which there may be more to do, something is done.
    fn places(sent: Message, taken: Message, inlet: Inlet, more: Option<Instruction>) -> Vec<usize> {
        let (memory, body) = of_threads(2).unwrap();
        let node = Node::new(memory, 2, 0, body, PeerMemory::Here);
        let mut code = vec![Instruction::Post(0), Instruction::Send(0), Instruction::Take(0), Instruction::Settle(0)];
        code.extend(more);
        let program = Program { code, sends: vec![sent], takes: vec![taken], ..Program::default() };
        let outlet = Outlet::Letters { to: 1, cursor: Cursor::default(), done: true };
        let shorts = shortened(&program, &[outlet], &[inlet], &node).unwrap_or_default();
        shorts.iter().map(|short| short.at).collect()
    }

    #[test]
    fn a_program_is_short_as_a_whole_or_not_at_all() {
        let one = || message(vec![segment(0, 8)]);
        let near = || Inlet::Near { from: 1 };
        assert_eq!(places(one(), one(), near(), None), [1, 2]);
        assert_eq!(places(message(Vec::new()), one(), near(), None), [1, 2]);
        let copy = Instruction::Copy { from: segment(0, 8), to: segment(8, 8) };
        assert_eq!(places(one(), one(), near(), Some(copy)), [1, 2, 4]);
        // Two runs of bytes, more than a letter, from another node, or something else to do.
        assert!(places(message(vec![segment(0, 8), segment(64, 8)]), one(), near(), None).is_empty());
        assert!(places(one(), message(vec![segment(0, 1 << 20)]), near(), None).is_empty());
        assert!(places(one(), one(), Inlet::Far(crate::mpi_transport::Message::new(1)), None).is_empty());
        assert!(places(one(), one(), near(), Some(Instruction::Arrive { level: 1 })).is_empty());
    }
}
