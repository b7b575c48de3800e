//! What a drawing shows: the messages of each step, and what every position holds after it.

use std::collections::{BTreeMap, HashSet};

use crate::schedule::blocks_in;
use crate::verify::Write;
use crate::{Collective, Ensemble, Fault, Matching, Problem, Report, Space, Symbol, verify_watched};

/// No screen shows the buffers of more ranks, and all writes of thousands would fill the memory.
const MOST_COLUMNS: usize = 256;

/// A run of all ranks, step by step.
#[derive(Clone, Debug)]
pub struct Picture {
    /// What the verifier found.
    pub report: Report,
    /// The start, then one for each step of the critical path.
    pub steps: Vec<Step>,
}

/// What happens in one step, in all ranks.
#[derive(Clone, Debug, Default)]
pub struct Step {
    /// The messages that arrive, in the order of their senders.
    pub messages: Vec<Message>,
    /// What is new at the end of the step: space, position and rank, in this order, with what is there.
    /// Empty where there are more than 256 ranks.
    pub written: BTreeMap<(Space, usize, usize), Cell>,
}

/// A message of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The sender.
    pub from: usize,
    /// The sender's round.
    pub round: usize,
    /// The place among the sends of that round.
    pub index: usize,
    /// The receiver.
    pub to: usize,
    /// How many blocks it carries.
    pub blocks: usize,
    /// Whether it crosses the outermost regions.
    pub far: bool,
}

/// What one position holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell {
    /// A block that is moved: its number.
    Block(usize),
    /// A block of an alltoall.
    Pair {
        /// Whose.
        source: usize,
        /// For whom.
        destination: usize,
    },
    /// One rank's contribution to a reduction.
    Operand(usize),
    /// Some contributions to a reduction, combined.
    Partial,
    /// All contributions to a reduction, combined.
    Whole,
}

impl Picture {
    /// Runs an ensemble, or names its first fault.
    pub fn new(ensemble: &Ensemble) -> Result<Picture, Fault> {
        let mut writes = Vec::new();
        let drawable = ensemble.problem.ranks() <= MOST_COLUMNS;
        let report = verify_watched(ensemble, |write| writes.extend(drawable.then_some(write)))?;
        let mut steps = vec![Step::default(); report.timing.steps + 1];
        let step_of = |rank: usize, round: usize| report.timing.step[rank][round];
        let matching = Matching::new(&ensemble.schedules)?;
        for message in messages(ensemble) {
            let end = matching.receiver[message.from][message.round][message.index];
            steps[step_of(end.rank, end.round)].messages.push(message);
        }
        let results = results(ensemble, &writes);
        for write in writes {
            let cell = cell(&ensemble.problem, &results, write.value);
            let step = &mut steps[step_of(write.rank, write.round)];
            step.written.insert((write.space, write.position, write.rank), cell);
        }
        Ok(Picture { report, steps })
    }

    /// How many steps have a message between nodes.
    pub fn far_steps(&self) -> usize {
        self.steps.iter().filter(|step| step.messages.iter().any(|message| message.far)).count()
    }
}

fn messages(ensemble: &Ensemble) -> impl Iterator<Item = Message> + '_ {
    let topology = &ensemble.problem.topology;
    ensemble.schedules.iter().flat_map(move |schedule| {
        let from = schedule.rank;
        schedule.rounds.iter().enumerate().flat_map(move |(round, step)| {
            step.sends.iter().enumerate().map(move |(index, send)| Message {
                from,
                round,
                index,
                to: send.to,
                blocks: blocks_in(&send.spans),
                far: topology.far(from, send.to),
            })
        })
    })
}

/// What the outputs hold in the end: in a right ensemble, these and only these are whole.
fn results(ensemble: &Ensemble, writes: &[Write]) -> HashSet<Symbol> {
    let mut last = BTreeMap::new();
    if ensemble.problem.collective.reduces() {
        let outputs = writes.iter().filter(|write| write.space == Space::Output);
        last.extend(outputs.map(|write| ((write.rank, write.position), write.value)));
    }
    last.into_values().collect()
}

fn cell(problem: &Problem, results: &HashSet<Symbol>, value: Symbol) -> Cell {
    match (value.contribution(), problem.collective.family()) {
        (None, _) if results.contains(&value) => Cell::Whole,
        (None, _) => Cell::Partial,
        (Some((_, block)), Collective::Alltoall) => {
            Cell::Pair { source: block / problem.ranks(), destination: block % problem.ranks() }
        }
        (Some((rank, _)), _) if problem.collective.reduces() => Cell::Operand(rank),
        (Some((_, block)), _) => Cell::Block(block),
    }
}

impl std::fmt::Display for Cell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Cell::Block(block) => write!(f, "{block}"),
            Cell::Pair { source, destination } => write!(f, "{source}>{destination}"),
            Cell::Operand(rank) => write!(f, "{rank}"),
            Cell::Partial => f.write_str("*"),
            Cell::Whole => f.write_str("#"),
        }
    }
}
