//! What must hold before a program is run: the engine reads and writes what instructions say without looking again.
//!
//! Schedules are proved on the shapes that were swept. On any other shape it is this page that keeps a mistake from touching memory that is not the
//! plan's: [`schedule`] looks at spans before anything is made from them, [`program`] at every run of bytes of every instruction. Both take time
//! in proportion to what they look at. Whether the right bytes move is not asked here: that is the verifier's.

use allhands_schedule::{Local, Prepared, Schedule, Space, Span};

use super::{Buffers, Instruction, Memory, Message, Program, Segment};
use crate::layout::{Amount, known};

/// No span has more positions: a schedule with so many would not fit into memory either.
const MOST_POSITIONS: usize = u32::MAX as usize;

/// A plan takes a segment of shared memory twice, with meetings before it, and all of that has a length.
const MOST_SHARED: usize = isize::MAX as usize / 4;

/// Whether the spans, peers and meetings of a schedule exist; otherwise what does not.
pub(super) fn schedule(prepared: &Prepared, schedule: &Schedule, amount: &Amount) -> Result<(), String> {
    let (problem, blocks) = (prepared.problem(), prepared.blocks());
    let (ranks, depth) = (problem.ranks(), problem.topology.depth());
    if schedule.rank >= ranks {
        return Err(format!("it is the schedule of rank {}, and there are {ranks}", schedule.rank));
    }
    if let Amount::Listed(counts) = amount
        && counts.len() * problem.pieces(blocks) != blocks
    {
        return Err(format!("it cuts the data into {blocks} blocks, but there are counts for {}", counts.len()));
    }
    if let Amount::Own { given, gotten, .. } = amount {
        let extents = [Space::Input, Space::Output].map(|space| problem.extent(space, schedule.rank, blocks));
        if extents != [given.len(), gotten.len()] {
            let [input, output] = extents;
            let (given, gotten) = (given.len(), gotten.len());
            return Err(format!(
                "it gives {input} blocks and gets {output}, but there are counts for {given} and {gotten}"
            ));
        }
    }
    for (number, round) in schedule.rounds.iter().enumerate() {
        let wrong = |fact: String| Err(format!("in round {number} {fact}"));
        let peers = round.sends.iter().map(|send| send.to).chain(round.recvs.iter().map(|recv| recv.from));
        for peer in peers {
            if peer >= ranks {
                return wrong(format!("a message is for or from rank {peer}, and there are {ranks}"));
            }
        }
        for (span, written) in round.spans() {
            let Span { space, first, count } = span;
            let extent = match space {
                Space::Scratch | Space::Shared if blocks == 0 => 0,
                _ => problem.extent(space, schedule.rank, blocks),
            };
            if count > MOST_POSITIONS || first.checked_add(count).is_none_or(|end| count > 0 && end > extent) {
                return wrong(format!("{count} blocks from {first} on lie outside of {space}, which has {extent}"));
            }
            if written && space == Space::Input && count > 0 {
                return wrong(format!("block {first} of the input is written"));
            }
            if let Amount::Own { carried, .. } = amount {
                let known = |position: usize| known(carried, position % blocks).is_some();
                let unknown = match space {
                    Space::Scratch => !(first..first + count).all(known),
                    space => space == Space::Shared,
                };
                if unknown {
                    return wrong("blocks of other ranks are carried, whose sizes this rank does not know".into());
                }
            }
            if space == Space::Shared && !prepared.shares() {
                return wrong("memory is shared, which the algorithm's settings do not say".into());
            }
        }
        let combines = round.recvs.iter().any(|recv| recv.combine.is_some())
            || round.locals.iter().any(|local| matches!(local, Local::Combine { .. }));
        if combines && !problem.collective.reduces() {
            return wrong("something is combined, and there is no operation".into());
        }
        for local in &round.locals {
            match *local {
                Local::Meet { level } if !prepared.shares() || level > depth => {
                    return wrong(format!("ranks meet at level {level}, where there is no meeting"));
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// Whether a program keeps to its memory; otherwise what does not.
pub(super) fn program(program: &Program, element: usize, buffers: Buffers) -> Result<(), String> {
    if program.scratch > isize::MAX as usize {
        return Err("its scratch is longer than memory can be".into());
    }
    let limits = Limits {
        input: if buffers == Buffers::Apart { program.input * element } else { 0 },
        output: match buffers {
            Buffers::Apart => program.output * element,
            Buffers::InPlace => program.input.max(program.output) * element,
        },
        scratch: program.scratch,
        shared: MOST_SHARED,
    };
    for message in &program.sends {
        limits.message(message)?;
    }
    for message in &program.takes {
        limits.message(message)?;
        message.parts.iter().try_for_each(writable)?;
    }
    for instruction in &program.code {
        match instruction {
            Instruction::TakeWith { message, others, .. } => {
                others.iter().try_for_each(|other| limits.inside(other))?;
                let parts = &program.takes[*message].parts;
                if !others.iter().map(|other| other.len).eq(parts.iter().map(|part| part.len)) {
                    return Err("operands are not cut as the message is that they are combined with".into());
                }
            }
            Instruction::Copy { from, to } => limits.pair(from, to)?,
            Instruction::Combine { from, into, .. } => {
                limits.pair(from, into)?;
                if from.overlaps(into) {
                    return Err(format!("{from} is combined with {into}, of which it is a part"));
                }
            }
            Instruction::Post(_)
            | Instruction::Send(_)
            | Instruction::Take(_)
            | Instruction::TakeCombine(..)
            | Instruction::Settle(_)
            | Instruction::Arrive { .. }
            | Instruction::Await { .. } => {}
        }
    }
    Ok(())
}

/// Whether two programs of a schedule can be run by an engine that was connected for the first.
pub(crate) fn alike(first: &Program, second: &Program) -> bool {
    let envelopes =
        |one: &[Message], other: &[Message]| one.iter().map(Message::envelope).eq(other.iter().map(Message::envelope));
    envelopes(&first.sends, &second.sends)
        && envelopes(&first.takes, &second.takes)
        && second.shared <= first.shared
        && (first.input, first.output) == (second.input, second.output)
}

/// Bytes of each memory.
struct Limits {
    input: usize,
    output: usize,
    scratch: usize,
    shared: usize,
}

impl Limits {
    fn inside(&self, segment: &Segment) -> Result<(), String> {
        let (name, limit) = match segment.memory {
            Memory::Input => ("the input", self.input),
            Memory::Output => ("the output", self.output),
            Memory::Scratch => ("scratch", self.scratch),
            Memory::Shared => ("shared memory", self.shared),
        };
        match segment.at.checked_add(segment.len) {
            Some(end) if end <= limit => Ok(()),
            _ => Err(format!("{segment} lies outside of {name}, which has {limit} bytes")),
        }
    }

    fn message(&self, message: &Message) -> Result<(), String> {
        message.parts.iter().try_for_each(|part| self.inside(part))?;
        match message.parts.iter().try_fold(0usize, |sum, part| sum.checked_add(part.len)) {
            Some(sum) if sum == message.bytes => Ok(()),
            _ => Err(format!("a message of {} bytes has parts of another length", message.bytes)),
        }
    }

    fn pair(&self, from: &Segment, to: &Segment) -> Result<(), String> {
        self.inside(from)?;
        self.inside(to)?;
        writable(to)?;
        if from.len != to.len {
            return Err(format!("{from} and {to} are not of one length"));
        }
        Ok(())
    }
}

fn writable(segment: &Segment) -> Result<(), String> {
    match segment.memory {
        Memory::Input => Err(format!("{segment} is written, but the input is only read")),
        Memory::Output | Memory::Scratch | Memory::Shared => Ok(()),
    }
}
