//! Programs of short messages between ranks of one node, which is what most calls of programs come to.
//!
//! Such a program is kept a second time, with everything resolved that does not change from run to run: [`Short`]s name the channel, where
//! in which memory, and how many bytes, and what needs nothing done there (to say that a message may come, to settle a letter) is left out.
//! They are run from the beginning as far as letters come and find room in a moment; at the first that does not, the engine goes on with the
//! same instruction of the program itself, as if it had executed those before. So nothing is decided here, and whoever waits does so there.

use allhands_schedule::Combine;

use super::{Engine, Inlet, Outlet, copy_run};
use crate::node::Node;
use crate::program::{Buffers, Instruction, Message, Program, Segment};

/// An instruction of a program, and what it comes to.
pub(super) struct Short {
    /// Where in the program it is.
    at: usize,
    act: Act,
}

enum Act {
    Send { to: usize, from: Place, len: usize },
    Take { from: usize, into: Place, len: usize },
    TakeCombine { from: usize, into: Place, len: usize, side: Combine },
    TakeWith { from: usize, other: Place, into: Place, len: usize, side: Combine },
    Copy { from: Place, into: Place, len: usize },
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
        bases[self.base].wrapping_add(self.at)
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
        Inlet::Near { from } => run_of(&program.takes[message], node).map(|(into, len)| (from, into, len)),
        Inlet::Far(_) => None,
    };
    let mut shorts = Vec::with_capacity(program.code.len());
    for (at, instruction) in program.code.iter().enumerate() {
        let act = match instruction {
            // Nothing to be done for letters.
            Instruction::Post(message) if matches!(takes[*message], Inlet::Near { .. }) => continue,
            Instruction::Settle(message) if matches!(sends[*message], Outlet::Letters { .. }) => continue,
            Instruction::Send(message) => {
                let Outlet::Letters { to, .. } = sends[*message] else { return None };
                let (from, len) = run_of(&program.sends[*message], node)?;
                Act::Send { to, from, len }
            }
            Instruction::Take(message) => {
                let (from, into, len) = taken(*message)?;
                Act::Take { from, into, len }
            }
            Instruction::TakeCombine(message, side) => {
                let (from, into, len) = taken(*message)?;
                Act::TakeCombine { from, into, len, side: *side }
            }
            Instruction::TakeWith { message, others, side } => {
                let (from, into, len) = taken(*message)?;
                let [other] = &others[..] else { return None };
                Act::TakeWith { from, other: Place::of(other), into, len, side: *side }
            }
            Instruction::Copy { from, to } => Act::Copy { from: Place::of(from), into: Place::of(to), len: from.len },
            _ => return None,
        };
        shorts.push(Short { at, act });
    }
    Some(shorts.into())
}

impl Engine {
    /// At the beginning of a run: executes what comes and finds room in a moment; whether that was all. `patient`: as for
    /// [`step`](Engine::step).
    #[inline]
    pub(super) fn run_short(&mut self, patient: bool) -> bool {
        let Some(shorts) = &self.shorts[self.buffers as usize] else { return false };
        let (node, bases) = (&self.world.node, &self.bases);
        for short in shorts {
            // SAFETY: runs of bytes are inside this rank's memories, as the program was promised; a letter has as many bytes as its message.
            let done = unsafe {
                match short.act {
                    Act::Send { to, from, len } => {
                        node.send(to, self.key, len, true, |at| copy_run(from.address(bases), at, len))
                    }
                    Act::Take { from, into, len } => self.take_short(patient, from, len, |begin, letter, len| {
                        copy_run(letter, into.address(bases).wrapping_add(begin), len);
                    }),
                    Act::TakeCombine { from, into, len, side } => {
                        self.take_short(patient, from, len, |begin, letter, len| {
                            self.reducer().combine(letter, into.address(bases).wrapping_add(begin), len, side);
                        })
                    }
                    Act::TakeWith { from, other, into, len, side } => {
                        self.take_short(patient, from, len, |begin, letter, len| {
                            let other = other.address(bases).wrapping_add(begin).cast_const();
                            let (left, right) = if side == Combine::After { (letter, other) } else { (other, letter) };
                            self.reducer().combine_into(left, right, into.address(bases).wrapping_add(begin), len);
                        })
                    }
                    Act::Copy { from, into, len } => {
                        let (from, into) = (from.address(bases), into.address(bases));
                        match len {
                            8 => into.cast::<u64>().write_unaligned(from.cast::<u64>().read_unaligned()),
                            len => std::ptr::copy(from, into, len),
                        }
                        true
                    }
                }
            };
            if !done {
                self.at = short.at;
                return false;
            }
        }
        let through = !shorts.is_empty();
        if through {
            self.at = usize::MAX;
        }
        through
    }

    /// Hands all of a message that has come, or comes in a moment, to `place`, in [stretches](crate::node::Payload::each); whether there was one.
    #[inline(always)]
    fn take_short(
        &self,
        patient: bool,
        from: usize,
        len: usize,
        place: impl Fn(usize, *const u8, usize) + Copy,
    ) -> bool {
        let (world, node) = (&*self.world, &self.world.node);
        let take = || node.take_whole(from, self.key, len, |payload| payload.each(place));
        take() || patient && world.arrives_soon(from) && take()
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
