//! Who was chosen, and why: for plans, for the report, and for the other ranks of a node.

use std::fmt;

use crate::server::Server;

/// How many algorithms a decision names.
const NAMED: usize = 6;

/// Who serves, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// The chosen one.
    pub server: Server,
    /// From what evidence, the runner-up, and by how much.
    pub why: Why,
    /// The best of every algorithm, with its time in microseconds, fastest first: the chosen one, the runner-up, a few more.
    pub best: Vec<(Server, f64)>,
}

/// Why somebody serves. Prints what follows "because of".
///
/// ```
/// use allhands::{Grounds, Why};
/// assert_eq!(Why::Asked.to_string(), "the caller's wish");
/// let grounds = Grounds::Tuning { cells: 2 };
/// let fastest = Why::Fastest { grounds, microseconds: 1.5, runner_up: None };
/// assert_eq!(fastest.to_string(), "the tuning file (2 cells): 1.50 us");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Why {
    /// The caller named it.
    Asked,
    /// It was learned while calls were served, or is to be; in words.
    Learned(String),
    /// It takes the least time.
    Fastest {
        /// Who says so.
        grounds: Grounds,
        /// The time.
        microseconds: f64,
        /// The next one, with its time in microseconds, if there is one.
        runner_up: Option<(Server, f64)>,
    },
}

/// What tells how long something takes.
#[derive(Clone, Debug, PartialEq)]
pub enum Grounds {
    /// A tuning file.
    Tuning {
        /// From so many of its cells.
        cells: usize,
    },
    /// What was learned while calls were served, in earlier jobs.
    Learned {
        /// From so many cells of the file that keeps it.
        cells: usize,
    },
    /// The model of a machine.
    Model {
        /// Its name.
        machine: String,
        /// The cores that ranks take turns on, where there are fewer of them.
        cores: Option<usize>,
        /// Whether the ranks were simulated; otherwise a few of them were glanced at.
        simulated: bool,
    },
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (grounds, microseconds, runner_up) = match self {
            Why::Asked => return f.write_str("the caller's wish"),
            Why::Learned(why) => return f.write_str(why),
            Why::Fastest { grounds, microseconds, runner_up } => (grounds, microseconds, runner_up),
        };
        write!(f, "{grounds}: {microseconds:.2} us")?;
        if let Some((second, more)) = runner_up {
            write!(f, "; runner-up {second}, {:.0} % more", 100.0 * (more / microseconds - 1.0).max(0.0))?;
        }
        Ok(())
    }
}

impl fmt::Display for Grounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Grounds::Tuning { cells } | Grounds::Learned { cells } => {
                let learned = matches!(self, Grounds::Learned { .. });
                let who = if learned { "what was learned earlier" } else { "the tuning file" };
                write!(f, "{who} ({cells} {})", if *cells == 1 { "cell" } else { "cells" })
            }
            Grounds::Model { machine, cores, simulated } => {
                write!(f, "the model of {machine}")?;
                if let Some(cores) = cores {
                    write!(f, ", on {cores} {}", if *cores == 1 { "core" } else { "cores" })?;
                }
                f.write_str(if *simulated { "" } else { " (too large to be simulated: a quick estimate)" })
            }
        }
    }
}

impl Decision {
    /// Seconds that it takes by what it was chosen from.
    pub(crate) fn promised(&self) -> Option<f64> {
        let chosen = self.best.iter().find(|(server, _)| *server == self.server)?;
        Some(chosen.1 * 1e-6)
    }

    /// For the one that the caller names, or that was learned, for a reason.
    pub(crate) fn asked(server: Server, learned: Option<&str>) -> Decision {
        let why = learned.map_or(Why::Asked, |why| Why::Learned(why.into()));
        Decision { server, why, best: vec![] }
    }

    /// In a form that [`Evidence::of_note`](super::Evidence) reads on another rank, which has the same evidence; none if it does not rest on any.
    pub(super) fn note(&self) -> Option<String> {
        let Why::Fastest { grounds, .. } = &self.why else { return None };
        let mut note = match grounds {
            Grounds::Model { simulated, .. } => format!("model {simulated}"),
            Grounds::Tuning { cells } => format!("tuning {cells}"),
            Grounds::Learned { cells } => format!("learned {cells}"),
        };
        for (server, time) in &self.best {
            note += &format!("\n{:x} {server}", time.to_bits());
        }
        Some(note)
    }

    /// For the fastest of some, if there are any, by their times in microseconds.
    pub(super) fn fastest(grounds: Grounds, mut all: Vec<(Server, f64)>) -> Option<Decision> {
        all.sort_by(|one, other| one.1.total_cmp(&other.1));
        Decision::first(grounds, all)
    }

    /// For the first of some, if there are any, which are given the best first.
    pub(super) fn first(grounds: Grounds, all: Vec<(Server, f64)>) -> Option<Decision> {
        let mut best: Vec<(Server, f64)> = Vec::new();
        for (server, time) in all {
            if best.len() < NAMED && best.iter().all(|(known, _)| kind(known) != kind(&server)) {
                best.push((server, time));
            }
        }
        let (server, microseconds) = best.first()?.clone();
        let why = Why::Fastest { grounds, microseconds, runner_up: best.get(1).cloned() };
        Some(Decision { server, why, best })
    }
}

/// What a decision names the best of: an algorithm, with messages or with shared memory, or the MPI's own.
fn kind(server: &Server) -> Option<(&'static str, bool)> {
    server.choice().map(|choice| (choice.algorithm.name, choice.shares()))
}
