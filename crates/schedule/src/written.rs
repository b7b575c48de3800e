//! Schedules that somebody wrote, or a search found: read from their text form, and proved right before anything is done with them.

use std::fmt;
use std::sync::Arc;

use crate::registry::Recipe;
use crate::{Cost, Counts, Ensemble, Error, Local, Prepared, Problem, Report, Result, Space, line_of, verify};

/// More positions than this are a slip of the finger: a gigabyte of symbols.
const MOST_POSITIONS: usize = 1 << 26;

/// What stands before the name of a file where an algorithm is named.
const MARK: char = '@';
/// The file that stands for the standard input.
const STANDARD_INPUT: &str = "-";

/// A schedule in a file, which serves as algorithms do: `@FILE` where they have names. It is right, since nothing else is made into one.
///
/// ```
/// use allhands_schedule::{Choice, Collective, Problem, Topology, Written};
/// let problem = Problem::new(Collective::Allgather, Topology::flat(3)?);
/// let text = Choice::parse(Collective::Allgather, "ring")?.prepare(&problem)?.ensemble().to_string();
/// let written = Written::parse("mine.txt", &text)?;
/// let prepared = written.prepare(&problem)?;
/// assert_eq!((prepared.name(), prepared.cost().steps), ("@mine.txt".into(), 2));
/// let larger = Problem::new(Collective::Allgather, Topology::flat(4)?);
/// let refused = "@mine.txt is a schedule of allgather on 3 ranks, but the call is on 4; run it there, or name another algorithm";
/// assert_eq!(written.prepare(&larger).err().unwrap().to_string(), refused);
/// # Ok::<(), allhands_schedule::Error>(())
/// ```
#[derive(Clone)]
pub struct Written {
    file: String,
    text: String,
    ensemble: Arc<Ensemble>,
    report: Report,
}

/// The same text in the same file.
impl PartialEq for Written {
    fn eq(&self, other: &Written) -> bool {
        (&self.file, &self.text) == (&other.file, &other.text)
    }
}

impl Written {
    /// Reads a schedule and proves it right, or names the line that is to blame.
    pub fn parse(file: &str, text: &str) -> Result<Written> {
        let called = Written::called(file);
        let refused = |fact: String| Error::Unreadable { file: called.into(), fact: format!(": {fact}") };
        let unread = |error: Error| Error::Unreadable { file: called.into(), fact: format!(", {error}") };
        let ensemble: Ensemble = text.parse().map_err(unread)?;
        let Ensemble { problem, blocks, .. } = &ensemble;
        let extents = (0..problem.ranks()).map(|rank| problem.extent(Space::Output, rank, *blocks));
        if extents.fold(0, usize::saturating_add) > MOST_POSITIONS {
            let fact = format!("{} ranks with {blocks} blocks are more than can be verified", problem.ranks());
            return Err(refused(format!("{fact}; use fewer blocks")));
        }
        let rounds = ensemble.schedules.iter().flat_map(|schedule| &schedule.rounds);
        let touched = rounds.flat_map(|round| round.spans()).map(|(span, _)| span.count).fold(0, usize::saturating_add);
        if touched > 2 * MOST_POSITIONS {
            let fact = format!("{touched} positions are touched, more than can be verified");
            return Err(refused(format!("{fact}; use fewer or shorter spans")));
        }
        let report = verify(&ensemble).map_err(|fault| {
            // The line at which the blame begins: that of the round, or of the rank.
            let line = fault.place().and_then(|(rank, round)| line_of(text, rank, round));
            Error::Wrong { file: called.into(), line, fault: fault.to_string() }
        })?;
        Ok(Written { file: file.into(), text: text.into(), ensemble: Arc::new(ensemble), report })
    }

    /// The file that is named where an algorithm could be.
    ///
    /// ```
    /// use allhands_schedule::Written;
    /// assert_eq!(Written::file_of("@mine.txt"), Some("mine.txt"));
    /// assert_eq!(Written::file_of("ring"), None);
    /// ```
    pub fn file_of(algorithm: &str) -> Option<&str> {
        algorithm.strip_prefix(MARK)
    }

    /// What a file is called in words: `-` is the standard input.
    pub fn called(file: &str) -> &str {
        if file == STANDARD_INPUT { "the standard input" } else { file }
    }

    /// What the text says.
    pub fn ensemble(&self) -> &Ensemble {
        &self.ensemble
    }

    /// What the verifier found out about it.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// As it was read.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Checks that it is a schedule for the problem, and gets it ready as an algorithm's would be. Where ranks sit matters if they share memory.
    pub fn prepare(&self, problem: &Problem) -> Result<Prepared> {
        let own = &self.ensemble.problem;
        let misfit = |is: String, asked: String| {
            let file = self.to_string();
            Err(Error::Misfit { file, collective: own.collective.name(), is, asked })
        };
        if own.collective.family() != problem.collective.family() {
            return misfit(String::new(), format!("is a {}", problem.collective));
        }
        if own.ranks() != problem.ranks() {
            return misfit(format!(" on {} ranks", own.ranks()), format!("is on {}", problem.ranks()));
        }
        if self.shares() && own.topology != problem.topology {
            let is = format!(" that shares memory on nodes, of which there are {}", own.topology.regions(1));
            return misfit(is, "is on ranks that sit otherwise".into());
        }
        if own.collective.rooted() && own.root != problem.root {
            return misfit(format!(" with root {}", own.root), format!("has root {}", problem.root));
        }
        if own.graph != problem.graph {
            return misfit(" on a graph".into(), "is on another".into());
        }
        if own.collective.reduces() && !problem.reduction.commutative && !self.report.ordered {
            return misfit(" that does not combine in rank order".into(), "has a non-commutative operation".into());
        }
        if own.collective.reduces() && problem.reduction.identical && !self.report.identical {
            let is = " that gives ranks different expressions".into();
            return misfit(is, "asks for identical bits on every rank".into());
        }
        // Sizes that the file gives are an example, unless ranks would pass on what only these make fit.
        let mut asked = (*self.ensemble).clone();
        asked.problem = problem.clone();
        if asked.problem.counts != own.counts {
            let line = |fault: crate::Fault| fault.place().and_then(|(rank, round)| line_of(&self.text, rank, round));
            verify(&asked).map_err(|fault| Error::Wrong {
                file: self.to_string(),
                fault: fault.to_string(),
                line: line(fault),
            })?;
        }
        let ensemble = self.ensemble.clone();
        let recipe =
            Recipe { blocks: ensemble.blocks, make: Box::new(move |rank| ensemble.schedules[rank].rounds.clone()) };
        Ok(Prepared::written(problem, self.to_string(), self.shares(), self.cost(), recipe))
    }

    /// Whether ranks of a region share memory in it, or meet.
    fn shares(&self) -> bool {
        self.ensemble.schedules.iter().flat_map(|schedule| &schedule.rounds).any(|round| {
            round.locals.iter().any(|local| matches!(local, Local::Meet { .. }))
                || round.spans().any(|(span, _)| span.space == Space::Shared)
        })
    }

    fn cost(&self) -> Cost {
        let counts = Counts::maxima(&self.ensemble);
        Cost::exact(self.report.timing.steps, counts.sent.messages, counts.sent.blocks)
    }
}

/// As it is named among algorithms.
impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{MARK}{}", self.file)
    }
}

impl fmt::Debug for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Written({self})")
    }
}
