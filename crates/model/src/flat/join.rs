//! Parts laid side by side, wave after wave, and each message led to its slot.

use super::kinds::Kinds;
use super::part::{Awaited, Part, Wave};
use super::{END, Flat, Message, Step};
use crate::crew::Crew;
use crate::{Error, Result};

/// Among so many receives of a rank a message is looked for one by one.
const FEW: usize = 32;

impl Flat {
    /// Lays the waves of all parts one after the other, and lets messages find their slots. Where each wave begins, and the end.
    pub(super) fn join(&mut self, parts: Vec<Part>, crew: Crew) -> Result<Vec<u32>> {
        let total = |count: fn(&Wave) -> usize| parts.iter().flat_map(|part| &part.waves).map(count).sum::<usize>();
        let (steps, messages, slots) =
            (total(|wave| wave.steps.len()), total(|wave| wave.messages.len()), total(|wave| wave.awaited.len()));
        if steps.max(messages).max(slots) >= u32::MAX as usize {
            return Err(Error::TooLarge { messages: messages as u64 });
        }
        let (mut loads, mut works) = (Kinds::default(), Kinds::default());
        let loads_of: Vec<Vec<u32>> = parts.iter().map(|part| loads.numbers_of(&part.loads)).collect();
        let works_of: Vec<Vec<u32>> = parts.iter().map(|part| works.numbers_of(&part.works)).collect();
        (self.loads, self.works) = (loads.into_all(), works.into_all());
        let load = |part: usize, load: u32| loads_of[part][load as usize];
        let lay_messages = || {
            let message = |part, message: &Message| Message { load: load(part, message.load), ..*message };
            let awaiting = |part, awaited: &Awaited| Awaited { load: load(part, awaited.load), ..*awaited };
            let messages = concat(&parts, messages, |wave| &wave.messages, message);
            (messages, concat(&parts, slots, |wave| &wave.awaited, awaiting))
        };
        let (starts, (messages, awaited)) =
            crew.if_worth(parts.len() > 1).beside(|| self.lay_steps(&parts, &works_of, steps), lay_messages);
        drop(parts);
        self.messages = messages;
        self.message_of = vec![END; slots];
        if !self.match_near(&awaited) {
            self.match_all(&awaited, crew)?;
        }
        Ok(starts)
    }

    /// Everybody's first steps, then everybody's second ones; where each of these waves begins, and the end.
    fn lay_steps(&mut self, parts: &[Part], works: &[Vec<u32>], count: usize) -> Vec<u32> {
        let lengths: Vec<u32> = parts.iter().flat_map(|part| part.lengths.iter().copied()).collect();
        // The step at which each participant is, and those who have one more.
        let mut at = vec![END; self.len()];
        let mut going: Vec<u32> = (0..self.len() as u32).collect();
        let mut starts = vec![0];
        let (mut messages, mut slots) = (0, 0);
        self.steps.reserve_exact(count + 1);
        self.who.reserve_exact(count);
        for wave in 0..longest(parts) {
            going.retain(|&participant| lengths[participant as usize] as usize > wave);
            let first = self.steps.len();
            for (wave, works) in waves(parts, wave).map(|(part, wave)| (wave, &works[part])) {
                self.steps.extend(wave.steps.iter().map(|step| Step {
                    first_message: step.first_message + messages,
                    first_slot: step.first_slot + slots,
                    next: END,
                    work: works[step.work as usize],
                }));
                messages += wave.messages.len() as u32;
                slots += wave.awaited.len() as u32;
            }
            for (step, &participant) in (first as u32..).zip(&going) {
                match std::mem::replace(&mut at[participant as usize], step) {
                    END => self.first_step[participant as usize] = step,
                    last => self.steps[last as usize].next = step,
                }
            }
            self.who.extend_from_slice(&going);
            starts.push(self.steps.len() as u32);
        }
        self.steps.push(Step { first_message: messages, first_slot: slots, next: END, work: 0 });
        starts
    }

    /// Gives every message its slot if that is among the next few of its receiver, as in most schedules; false if one is not,
    /// or a slot is left over.
    fn match_near(&mut self, awaited: &[Awaited]) -> bool {
        // Each participant's first step with a slot that no message has found.
        let mut open = self.first_step.clone();
        for index in 0..self.messages.len() {
            let message = self.messages[index];
            let Some(slot) = self.find_near(&message, &mut open[message.to as usize], awaited) else { return false };
            if awaited[slot as usize].load != message.load {
                return false;
            }
            self.message_of[slot as usize] = index as u32;
            self.messages[index].slot = slot;
        }
        self.messages.len() == awaited.len()
    }

    /// The first free slot that waits for a message, among the next few from step `open` on, which moves on over full steps.
    fn find_near(&self, message: &Message, open: &mut u32, awaited: &[Awaited]) -> Option<u32> {
        let (mut at, mut seen, mut full) = (*open, 0, true);
        while at != END {
            let (step, next) = (&self.steps[at as usize], &self.steps[at as usize + 1]);
            for slot in step.first_slot..next.first_slot {
                if self.message_of[slot as usize] != END {
                    continue;
                }
                full = false;
                let wanted = &awaited[slot as usize];
                if (wanted.from, wanted.via) == (message.from, message.slot) {
                    return Some(slot);
                }
                seen += 1;
            }
            if seen > FEW {
                return None;
            }
            if full {
                *open = step.next;
            }
            at = step.next;
        }
        None
    }

    /// Gives every message its slot: the n-th from a to b goes to the n-th receive that b posts for a.
    fn match_all(&mut self, awaited: &[Awaited], crew: Crew) -> Result<()> {
        let mut wanted: Vec<(u32, u64, u32)> = Vec::with_capacity(awaited.len());
        let key = |via: u32, from: u32| u64::from(via) << 32 | u64::from(from);
        for participant in 0..self.len() {
            let mut step = self.first_step[participant];
            while step != END {
                let (this, next) = (&self.steps[step as usize], &self.steps[step as usize + 1]);
                for slot in this.first_slot..next.first_slot {
                    let Awaited { from, via, .. } = awaited[slot as usize];
                    wanted.push((participant as u32, key(via, from), slot));
                }
                step = this.next;
            }
        }
        // A message that has found its slot already knows its displacement from there.
        let via = |message: &Message, index: usize| {
            let found = self.message_of.get(message.slot as usize).is_some_and(|&found| found as usize == index);
            if found { awaited[message.slot as usize].via } else { message.slot }
        };
        let mut sent: Vec<(u32, u64, u32)> = (self.messages.iter().enumerate())
            .map(|(index, message)| (message.to, key(via(message, index), message.from), index as u32))
            .collect();
        crew.sort(&mut wanted);
        crew.sort(&mut sent);
        let unmatched = |receiver: u32| Err(Error::Unmatched { rank: receiver as usize });
        for (&(to, by, index), &(receiver, of, slot)) in sent.iter().zip(&wanted) {
            if (to, by) != (receiver, of) {
                return unmatched(receiver.min(to));
            }
            let message = &mut self.messages[index as usize];
            if message.load != awaited[slot as usize].load {
                return unmatched(receiver);
            }
            message.slot = slot;
            self.message_of[slot as usize] = index;
        }
        match sent.len().cmp(&wanted.len()) {
            std::cmp::Ordering::Equal => Ok(()),
            std::cmp::Ordering::Greater => unmatched(sent[wanted.len()].0),
            std::cmp::Ordering::Less => unmatched(wanted[sent.len()].0),
        }
    }
}

/// What all parts have of something, wave after wave.
fn concat<T>(parts: &[Part], count: usize, of: fn(&Wave) -> &Vec<T>, in_all: impl Fn(usize, &T) -> T) -> Vec<T> {
    let mut all = Vec::with_capacity(count);
    for wave in 0..longest(parts) {
        for (part, wave) in waves(parts, wave) {
            all.extend(of(wave).iter().map(|one| in_all(part, one)));
        }
    }
    all
}

/// The n-th waves of all parts that have so many, with the number of the part.
fn waves(parts: &[Part], wave: usize) -> impl Iterator<Item = (usize, &Wave)> {
    parts.iter().enumerate().filter_map(move |(index, part)| Some((index, part.waves.get(wave)?)))
}

fn longest(parts: &[Part]) -> usize {
    parts.iter().map(|part| part.waves.len()).max().unwrap_or(0)
}
