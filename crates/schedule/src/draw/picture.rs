//! What a drawing shows: the messages of each step, and what every position holds after it.

use std::collections::BTreeMap;

use crate::schedule::blocks_in;
use crate::verify::Write;
use crate::{Collective, Ensemble, Fault, Matching, Problem, Report, Space, verify_watched};

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
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// Contributions to a reduction: runs of ranks, first and one past last.
    Combined(Vec<(u32, u32)>),
}

impl Picture {
    /// Runs an ensemble, or names its first fault.
    pub fn new(ensemble: &Ensemble) -> Result<Picture, Fault> {
        let mut writes = Vec::new();
        let drawable = ensemble.problem.ranks() <= MOST_COLUMNS;
        let report = verify_watched(ensemble, |write| {
            if drawable {
                let place = (write.space, write.position, write.rank);
                writes.push((write.rank, write.round, place, Cell::new(&ensemble.problem, &write)));
            }
        })?;
        let mut steps = vec![Step::default(); report.timing.steps + 1];
        let step_of = |rank: usize, round: usize| report.timing.step[rank][round];
        let matching = Matching::new(&ensemble.schedules)?;
        for message in messages(ensemble) {
            let end = matching.receiver[message.from][message.round][message.index];
            steps[step_of(end.rank, end.round)].messages.push(message);
        }
        for (rank, round, place, cell) in writes {
            steps[step_of(rank, round)].written.insert(place, cell);
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

impl Cell {
    fn new(problem: &Problem, write: &Write<'_>) -> Cell {
        match problem.collective.family() {
            _ if problem.collective.reduces() => Cell::Combined(write.contributors.into()),
            Collective::Alltoall => {
                Cell::Pair { source: write.block / problem.ranks(), destination: write.block % problem.ranks() }
            }
            Collective::NeighborAlltoall => match problem.graph.as_ref().map(|graph| graph.edge(write.block)) {
                Some(edge) => Cell::Pair { source: edge.from, destination: edge.to },
                None => Cell::Block(write.block),
            },
            _ => Cell::Block(write.block),
        }
    }
}

/// A reduction from more than two runs of ranks shows only how many they are.
impl std::fmt::Display for Cell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let run = |&(first, end): &(u32, u32)| {
            if end == first + 1 { first.to_string() } else { format!("{first}-{}", end - 1) }
        };
        match self {
            Cell::Block(block) => write!(f, "{block}"),
            Cell::Pair { source, destination } => write!(f, "{source}>{destination}"),
            Cell::Combined(runs) if runs.len() <= 2 => f.write_str(&runs.iter().map(run).collect::<Vec<_>>().join(",")),
            Cell::Combined(runs) => write!(f, "x{}", runs.iter().map(|run| run.1 - run.0).sum::<u32>()),
        }
    }
}
