//! Compositions in the making, for whoever looks for good ones.

use super::knowledge::{Done, Knowledge, count};
use super::steps::{Grid, Step, written};
use super::sums::{Added, Sums};

/// Steps of `composed` or `composed-sums`, as far as they go: step after step until nothing is lacking.
///
/// ```
/// use allhands_schedule::{Composition, Grid, Step};
/// let read = |step: &str| step.parse::<Step>().unwrap();
/// let mut composition = Composition::of_blocks(Grid { regions: 4, seats: 4 }, false);
/// for step in ["near1", "near2", "fan1", "near1"] {
///     composition.then(&read(step))?;
/// }
/// assert_eq!(composition.lacking(), 8);
/// let messages = composition.then(&read("near2"))?;
/// assert!(messages.len() == 4 && messages.iter().all(|message| !message.far));
/// assert_eq!((composition.lacking(), composition.setting()), (0, "near1,near2,fan1,near1,near2".to_string()));
/// # Ok::<(), &'static str>(())
/// ```
#[derive(Clone, Debug)]
pub struct Composition {
    grid: Grid,
    steps: Vec<Step>,
    state: State,
}

/// What ranks have so far.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum State {
    Blocks(Knowledge),
    Sums(Sums),
}

/// A message of one region's ranks, in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The seat of who sends it; if it is far, in every region.
    pub from: usize,
    /// The seat of who receives it.
    pub to: usize,
    /// Whether it is for another region.
    pub far: bool,
    /// How many blocks it carries.
    pub blocks: usize,
}

impl Composition {
    /// Of an allgather: everybody has his block.
    pub fn of_blocks(grid: Grid, shares: bool) -> Composition {
        Composition { grid, steps: Vec::new(), state: State::Blocks(Knowledge::new(grid, shares)) }
    }

    /// Of an allreduce of whole vectors: everybody has his own.
    pub fn of_sums(grid: Grid) -> Composition {
        Composition { grid, steps: Vec::new(), state: State::Sums(Sums::new(grid)) }
    }

    /// Does a step, and says which messages it takes.
    ///
    /// # Errors
    /// If it would add something twice.
    pub fn then(&mut self, step: &Step) -> Result<Vec<Message>, &'static str> {
        let mut messages = Vec::new();
        match &mut self.state {
            State::Blocks(knowledge) => {
                if let Done::Talk(fetches) = knowledge.step(step) {
                    for (to, fetch) in
                        fetches.iter().enumerate().flat_map(|(to, of)| of.iter().map(move |one| (to, one)))
                    {
                        let (from, far, blocks) = (fetch.seat, fetch.region != 0, count(&fetch.blocks));
                        messages.push(Message { from, to, far, blocks });
                    }
                }
            }
            State::Sums(sums) => {
                if let Added::Talk(additions) = sums.step(step)? {
                    for (to, addition) in additions.iter().enumerate() {
                        let given = addition.given.iter();
                        messages.extend(given.map(|&(on, from)| Message { from, to, far: on != 0, blocks: 1 }));
                    }
                }
            }
        }
        self.steps.push(step.clone());
        Ok(messages)
    }

    /// How many blocks, or contributions, who has the fewest lacks.
    pub fn lacking(&self) -> usize {
        match &self.state {
            State::Blocks(knowledge) => knowledge.lacking(),
            State::Sums(sums) => sums.lacking(),
        }
    }

    /// What ranks have so far, as a number: different steps can lead to the same.
    pub fn fingerprint(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        self.state.hash(&mut hasher);
        hasher.finish()
    }

    /// The steps so far.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The regions that they are for.
    pub fn grid(&self) -> Grid {
        self.grid
    }

    /// The steps as the setting of the parameter `steps`.
    pub fn setting(&self) -> String {
        written(&self.steps)
    }
}
