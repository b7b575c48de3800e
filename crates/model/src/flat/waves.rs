//! Steps in waves: both ends of every message in the same one, a rank's steps in ascending ones.
//!
//! Where there are such waves, ranks can go through them together, and nobody has to be asked whether he has come yet. The n-th
//! steps of all ranks are such waves in many schedules. Where ranks are idle in some rounds, later steps move to later waves until
//! both ends of every message agree. Ranks that go on while others wait for them may never agree: then there are none.

use super::{Flat, NO_MEETING};

/// After so many times through all messages, there are no waves.
const MOST_SWEEPS: usize = 12;

#[derive(Debug)]
pub(crate) struct Waves {
    /// Steps by wave; none: they lie so already.
    order: Option<Vec<u32>>,
    /// Where each wave begins, and the end.
    starts: Vec<u32>,
}

impl Waves {
    /// `starts`: where each n-th step begins, and the end.
    pub(super) fn new(flat: &Flat, starts: Vec<u32>) -> Option<Waves> {
        if flat.works.iter().any(|work| work.meeting != NO_MEETING) {
            return None;
        }
        if in_step(flat, &starts) {
            return Some(Waves { order: None, starts });
        }
        settle(flat, &starts).map(|levels| Waves::by(&levels))
    }

    /// Sorts steps by level.
    fn by(levels: &[u32]) -> Waves {
        let count = levels.iter().max().map_or(0, |last| *last as usize + 1);
        let mut starts = vec![0; count + 1];
        levels.iter().for_each(|&level| starts[level as usize + 1] += 1);
        (0..count).for_each(|level| starts[level + 1] += starts[level]);
        let mut next = starts.clone();
        let mut order = vec![0; levels.len()];
        for (step, &level) in levels.iter().enumerate() {
            order[next[level as usize] as usize] = step as u32;
            next[level as usize] += 1;
        }
        Waves { order: Some(order), starts }
    }

    /// How many waves there are.
    pub(crate) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether waves are others than the n-th steps of all.
    #[cfg(test)]
    pub(crate) fn reordered(&self) -> bool {
        self.order.is_some()
    }

    /// The steps of a wave.
    pub(crate) fn steps(&self, wave: usize) -> impl Iterator<Item = usize> + '_ {
        let places = self.starts[wave] as usize..self.starts[wave + 1] as usize;
        places.map(|place| self.order.as_ref().map_or(place, |order| order[place] as usize))
    }
}

/// Whether the n-th messages are received in n-th steps.
fn in_step(flat: &Flat, starts: &[u32]) -> bool {
    starts.windows(2).all(|wave| {
        let (first, end) = (&flat.steps[wave[0] as usize], &flat.steps[wave[1] as usize]);
        let slots = first.first_slot..end.first_slot;
        let messages = &flat.messages[first.first_message as usize..end.first_message as usize];
        messages.iter().all(|message| slots.contains(&message.slot))
    })
}

/// A level for each step, the lowest ones that fit, if some are found soon.
fn settle(flat: &Flat, starts: &[u32]) -> Option<Vec<u32>> {
    let mut levels = vec![0; flat.who.len()];
    for (level, wave) in starts.windows(2).enumerate() {
        levels[wave[0] as usize..wave[1] as usize].fill(level as u32);
    }
    let receiving = receiving_steps(flat);
    // Ranks by turns in ascending and in descending order: chains of ranks settle in one of the two.
    let settled = (0..MOST_SWEEPS).any(|sweep| {
        let mut moved = false;
        for wave in starts.windows(2) {
            for offset in 0..wave[1] - wave[0] {
                let step = if sweep % 2 == 0 { wave[0] + offset } else { wave[1] - 1 - offset };
                moved |= lift(flat, &receiving, &mut levels, step as usize);
            }
        }
        !moved
    });
    settled.then_some(levels)
}

/// The step that receives each message.
fn receiving_steps(flat: &Flat) -> Vec<u32> {
    let mut step_of_slot = vec![0; flat.message_of.len()];
    for (step, pair) in flat.steps.windows(2).enumerate() {
        step_of_slot[pair[0].first_slot as usize..pair[1].first_slot as usize].fill(step as u32);
    }
    flat.messages.iter().map(|message| step_of_slot[message.slot as usize]).collect()
}

/// Lifts a step and those that receive its messages to the highest level among them, and the next one above it. Whether any moved.
fn lift(flat: &Flat, receiving: &[u32], levels: &mut [u32], step: usize) -> bool {
    let (this, next) = (&flat.steps[step], &flat.steps[step + 1]);
    let (mut level, mut moved) = (levels[step], false);
    for &other in &receiving[this.first_message as usize..next.first_message as usize] {
        let other = &mut levels[other as usize];
        moved |= *other != level;
        level = level.max(*other);
        *other = level;
    }
    levels[step] = level;
    if let Some(following) = levels.get_mut(this.next as usize) {
        moved |= *following <= level;
        *following = (*following).max(level + 1);
    }
    moved
}
