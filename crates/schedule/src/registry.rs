//! The registry: one line per algorithm. The command, the verifier's sweep, the documentation and the choice read it.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::algorithms::LINES;
use crate::algorithms::node::Movement;
use crate::algorithms::rooted::pipeline::BLOCKS;
use crate::compose::{embed, emptied, reverse};
use crate::schedule::{Ensemble, push_span};
use crate::{Collective, Error, Problem, Result, Round, Schedule, Setting, Space, Span};

/// An algorithm for one family of collectives: what it is called, takes, needs, promises and costs.
pub struct Algorithm {
    /// The name on the command line.
    pub name: &'static str,
    /// The collective, in its plain form; its vector form uses the same schedules.
    pub collective: Collective,
    /// What can be set.
    pub parameters: &'static [Parameter],
    /// What it cannot do without.
    pub needs: &'static str,
    /// When operands are combined in rank order. The verifier proves it.
    pub ordered: Promise,
    /// When every rank gets the same bits. The verifier proves it.
    pub identical: Promise,
    /// Where it comes from.
    pub source: &'static str,
    pub(crate) make: Make,
    /// The closed form of a movement's cost, or of the whole where there is no movement.
    pub(crate) cost: fn(&Problem, &Parameters) -> Cost,
    /// Legal settings worth trying on this problem, as written on the command line. The first is the default.
    pub(crate) variants: fn(&Problem) -> Vec<String>,
}

/// Which sizes of blocks a rank must know to follow its schedule, where they differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Knowledge {
    /// Of those that it gives and gets: nobody carries what is for somebody else.
    Own,
    /// Of those that the ranks of its node give and get: what it carries is for one of them, or from one of them.
    Node,
    /// Of those that pass through it, from anybody to anybody. Blocks travel whole, by messages, and the same way whatever their sizes are: so the sizes can
    /// travel it first.
    Path,
    /// Of all.
    All,
}

impl Knowledge {
    /// Whether ranks have to be told sizes that are not their own, and can be without everybody's telling everybody.
    ///
    /// ```
    /// use allhands_schedule::Knowledge;
    ///
    /// assert!(Knowledge::Node.is_told() && Knowledge::Path.is_told());
    /// assert!(!Knowledge::Own.is_told() && !Knowledge::All.is_told());
    /// ```
    pub fn is_told(self) -> bool {
        matches!(self, Knowledge::Node | Knowledge::Path)
    }
}

/// Something that can be set.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// Its legal values, in words.
    pub values: &'static str,
    /// What holds when it is not given.
    pub default: &'static str,
}

/// A property that is claimed here and proved by the verifier.
#[derive(Clone, Copy)]
pub enum Promise {
    /// For every problem.
    Always,
    /// For none that has more than a few ranks.
    Never,
    /// Under a condition.
    When(&'static str, fn(&Problem, &Parameters) -> bool),
}

impl Promise {
    /// On a topology whose seats are in rank order.
    pub(crate) const SEQUENTIAL: Promise =
        Promise::When("with sequential placement", |problem, _| problem.topology.is_sequential());

    fn holds(&self, problem: &Problem, parameters: &Parameters) -> bool {
        match self {
            Promise::Always => true,
            Promise::Never => false,
            Promise::When(_, condition) => condition(problem, parameters),
        }
    }

    /// In words: "yes", "no", or the condition.
    pub fn words(&self) -> &'static str {
        match self {
            Promise::Always => "yes",
            Promise::Never => "no",
            Promise::When(words, _) => words,
        }
    }
}

/// What the busiest rank does, as a formula says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Messages one after the other on the critical path.
    pub steps: usize,
    /// Messages that the busiest sender sends.
    pub messages: usize,
    /// Blocks that the busiest sender sends.
    pub blocks: usize,
    /// Whether the three are exact; otherwise they are upper bounds.
    pub exact: bool,
}

impl Cost {
    pub(crate) const NOTHING: Cost = Cost { steps: 0, messages: 0, blocks: 0, exact: true };

    pub(crate) fn exact(steps: usize, messages: usize, blocks: usize) -> Cost {
        Cost { steps, messages, blocks, exact: true }
    }

    pub(crate) fn at_most(steps: usize, messages: usize, blocks: usize) -> Cost {
        Cost { steps, messages, blocks, exact: false }
    }

    /// One after the other.
    pub(crate) fn then(self, next: Cost) -> Cost {
        Cost {
            steps: self.steps + next.steps,
            messages: self.messages + next.messages,
            blocks: self.blocks + next.blocks,
            exact: self.exact && next.exact,
        }
    }

    pub(crate) fn roughly(self) -> Cost {
        Cost { exact: false, ..self }
    }
}

/// One rank's rounds.
pub(crate) type Make1 = Box<dyn Fn(usize) -> Vec<Round> + std::marker::Send + Sync>;

/// How an algorithm's schedules come about.
#[derive(Clone, Copy)]
pub(crate) enum Make {
    /// An allgather: a movement in which rank r begins with block r.
    Gather(fn(&Problem, &Parameters) -> Result<Make1>),
    /// A reduce_scatter: such a movement, reversed.
    Scatter(fn(&Problem, &Parameters) -> Result<Make1>),
    /// An allreduce: such a movement reversed, then forwards.
    Both(fn(&Problem, &Parameters) -> Result<Make1>),
    /// A barrier: such a movement with empty messages.
    Meet(fn(&Problem, &Parameters) -> Result<Make1>),
    /// A bcast: a movement in which the root begins with all of its blocks.
    Spread(fn(&Problem, &Parameters) -> Result<Recipe>),
    /// A reduce: such a movement, reversed.
    Collect(fn(&Problem, &Parameters) -> Result<Recipe>),
    /// An allgather of two levels: as it is, reversed, both, or with empty messages, as the collective asks.
    TwoLevel(fn(&Problem, &Parameters) -> Result<Movement>),
    /// Anything else.
    Direct(fn(&Problem, &Parameters) -> Result<Recipe>),
}

/// How to make any rank's rounds, and into how many blocks they cut the data.
pub(crate) struct Recipe {
    pub(crate) blocks: usize,
    pub(crate) make: Make1,
}

/// Parameters as given: names with values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Parameters {
    algorithm: &'static str,
    given: Vec<(&'static str, Setting)>,
}

impl Parameters {
    /// The value given for a parameter.
    ///
    /// ```
    /// use allhands_schedule::{Choice, Collective, Setting};
    /// let choice = Choice::parse(Collective::Allgather, "bruck:ports=3,3")?;
    /// assert_eq!(choice.parameters.setting("ports"), Some(&Setting::List(vec![3, 3])));
    /// assert_eq!(choice.parameters.setting("radix"), None);
    /// # Ok::<(), allhands_schedule::Error>(())
    /// ```
    pub fn setting(&self, name: &str) -> Option<&Setting> {
        self.given.iter().find(|(given, _)| *given == name).map(|(_, setting)| setting)
    }

    /// The word given for a parameter; nothing if what was given is no word.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.setting(name).and_then(Setting::word)
    }

    pub(crate) fn wrong(&self, parameter: &'static str, fact: impl fmt::Display, legal: impl fmt::Display) -> Error {
        let value = self.setting(parameter).map(ToString::to_string).unwrap_or_default();
        Error::Parameter {
            algorithm: self.algorithm,
            parameter,
            value,
            fact: fact.to_string(),
            legal: legal.to_string(),
        }
    }

    /// A number, if given, checked against its range.
    pub(crate) fn number(&self, name: &'static str, legal: std::ops::RangeInclusive<usize>) -> Result<Option<usize>> {
        let Some(setting) = self.setting(name) else { return Ok(None) };
        let range = || format!("{}..={}", legal.start(), legal.end());
        match *setting {
            Setting::Number(number) if legal.contains(&number) => Ok(Some(number)),
            Setting::Number(_) => Err(self.wrong(name, "is out of range", range())),
            _ => Err(self.wrong(name, "is not a number", range())),
        }
    }

    /// A list of numbers, if given, each at least `least`.
    pub(crate) fn list(&self, name: &'static str, least: usize) -> Result<Option<Vec<usize>>> {
        let Some(setting) = self.setting(name) else { return Ok(None) };
        let list = match setting {
            Setting::Number(number) => std::slice::from_ref(number),
            Setting::List(list) => list,
            Setting::Factors(_) | Setting::Word(_) => &[],
        };
        if list.is_empty() || list.iter().any(|&number| number < least) {
            let legal = format!("a list such as {},{}, each at least {least}", least + 2, least);
            return Err(self.wrong(name, format!("is not a list of numbers of at least {least}"), legal));
        }
        Ok(Some(list.to_vec()))
    }

    /// One of several words; the first is the default.
    pub(crate) fn word(&self, name: &'static str, legal: &[&'static str]) -> Result<&'static str> {
        let Some(setting) = self.setting(name) else { return Ok(legal[0]) };
        let known = legal.iter().find(|&&word| setting.word() == Some(word));
        known.copied().ok_or_else(|| self.wrong(name, "is not known", legal.join(" or ")))
    }

    /// The level whose regions count as near: 1, the nodes, unless given.
    pub(crate) fn level(&self, problem: &Problem) -> Result<usize> {
        Ok(self.number("level", 1..=problem.topology.depth().max(1))?.unwrap_or(1))
    }

    pub(crate) fn unservable(&self, needs: &'static str, fact: String, remedy: impl Into<String>) -> Error {
        Error::Unservable { algorithm: self.algorithm, needs, fact, remedy: remedy.into() }
    }
}

/// All algorithms that serve a collective.
///
/// ```
/// use allhands_schedule::{Collective, algorithms};
/// assert!(algorithms(Collective::Allgatherv).any(|algorithm| algorithm.name == "loc-bruck"));
/// ```
pub fn algorithms(collective: Collective) -> impl Iterator<Item = &'static Algorithm> {
    LINES.iter().filter(move |algorithm| algorithm.collective == collective.family())
}

/// An algorithm with its parameters.
///
/// ```
/// use allhands_schedule::{Choice, Collective, Problem, Topology};
/// let choice = Choice::parse(Collective::Allgather, "bruck:radix=3")?;
/// let problem = Problem::new(Collective::Allgather, Topology::flat(9)?);
/// let prepared = choice.prepare(&problem)?;
/// assert_eq!(prepared.rank(4).rounds.len(), 3); // a copy, then two rounds of two ports
/// # Ok::<(), allhands_schedule::Error>(())
/// ```
///
/// Choices are the same if algorithm and settings are; how they were written does not matter.
///
/// ```
/// use allhands_schedule::{Choice, Collective};
/// let read = |text| Choice::parse(Collective::Allgather, text).unwrap();
/// assert_eq!(read("bruck:ports=3, 3"), read("bruck:ports=3,3"));
/// assert_ne!(read("bruck"), read("sparbit"));
/// ```
#[derive(Clone)]
pub struct Choice {
    /// Which algorithm.
    pub algorithm: &'static Algorithm,
    /// How it is set.
    pub parameters: Parameters,
}

impl Choice {
    /// Reads `name`, `name:parameter=value:parameter=value`, or `name:value` for the first parameter.
    pub fn parse(collective: Collective, text: &str) -> Result<Choice> {
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default();
        let algorithm = algorithms(collective).find(|algorithm| algorithm.name == name).ok_or_else(|| {
            let known: Vec<_> = algorithms(collective).map(|algorithm| algorithm.name).collect();
            Error::UnknownAlgorithm { collective: collective.name(), name: name.into(), known: known.join(", ") }
        })?;
        let mut given: Vec<(&'static str, Setting)> = Vec::new();
        for part in parts {
            let unknown = |name: &str| {
                let known: Vec<_> =
                    algorithm.parameters.iter().map(|known| format!("{} ({})", known.name, known.values)).collect();
                let known =
                    if known.is_empty() { "it has none".into() } else { format!("it has {}", known.join(", ")) };
                Error::UnknownParameter { algorithm: algorithm.name, name: name.into(), known }
            };
            let (name, value) = match part.split_once('=') {
                Some((name, value)) => {
                    let known = algorithm.parameters.iter().find(|known| known.name == name.trim());
                    (known.ok_or_else(|| unknown(name))?.name, value)
                }
                None => (algorithm.parameters.first().ok_or_else(|| unknown(part))?.name, part),
            };
            if given.iter().any(|(already, _)| *already == name) {
                let fact = "is given twice".into();
                let (value, legal) = (value.into(), "each parameter once".into());
                return Err(Error::Parameter { algorithm: algorithm.name, parameter: name, value, fact, legal });
            }
            let Ok(setting) = value.parse();
            given.push((name, setting));
        }
        Ok(Choice { algorithm, parameters: Parameters { algorithm: algorithm.name, given } })
    }

    /// Every setting worth trying on a problem: what the sweep verifies and the tuner measures.
    pub fn variants(algorithm: &'static Algorithm, problem: &Problem) -> Vec<Choice> {
        let parse = |settings: String| {
            let text =
                if settings.is_empty() { algorithm.name.into() } else { format!("{}:{settings}", algorithm.name) };
            Choice::parse(problem.collective, &text).expect("a variant is legal text")
        };
        (algorithm.variants)(problem).into_iter().map(parse).collect()
    }

    /// Whether ranks of a region share memory in it, or meet.
    pub fn shares(&self) -> bool {
        crate::algorithms::node::uses_memory(&self.parameters)
    }

    /// Which sizes of blocks a rank must know at most. The sweep proves it.
    ///
    /// ```
    /// use allhands_schedule::{Choice, Collective, Knowledge};
    /// let knowledge = |text| Choice::parse(Collective::Alltoallv, text).map(|choice| choice.knowledge());
    /// assert_eq!(knowledge("pairwise")?, Knowledge::Own);
    /// assert_eq!(knowledge("node-aware")?, Knowledge::Node);
    /// assert_eq!(knowledge("bruck")?, Knowledge::Path);
    /// assert_eq!(knowledge("node-aware:local=shared")?, Knowledge::All);
    /// # Ok::<(), allhands_schedule::Error>(())
    /// ```
    pub fn knowledge(&self) -> Knowledge {
        let plain = !self.shares() && self.parameters.setting("level").is_none();
        match (self.algorithm.collective, self.algorithm.name) {
            (Collective::Alltoall, "spread-out" | "pairwise") => Knowledge::Own,
            (Collective::Gather | Collective::Scatter, "linear") => Knowledge::Own,
            (Collective::NeighborAllgather | Collective::NeighborAlltoall, "direct") => Knowledge::Own,
            (Collective::NeighborAllgather | Collective::NeighborAlltoall, "node-aware") => Knowledge::Node,
            (Collective::Gather | Collective::Scatter, "node-aware") => Knowledge::Node,
            (Collective::Alltoall, "node-aware" | "hierarchical" | "multi-leader") if plain => Knowledge::Node,
            (Collective::Alltoall | Collective::Gather | Collective::Scatter, _) if !self.shares() => Knowledge::Path,
            _ => Knowledge::All,
        }
    }

    /// The numbers in its settings, as they are written; those of a list together. See [`Setting::numbers`].
    pub fn numbers(&self) -> Vec<Vec<usize>> {
        self.parameters.given.iter().flat_map(|(_, setting)| setting.numbers()).collect()
    }

    /// This choice with other numbers in its settings, each found from its place among all of them and its value; nothing if one is not found.
    /// Whether the result can serve, [`prepare`](Choice::prepare) says.
    ///
    /// ```
    /// use allhands_schedule::{Choice, Collective};
    /// let choice = Choice::parse(Collective::Allreduce, "cyclic-shift:phases=8(-1,1):local=shared")?;
    /// let other = choice.with_numbers(|place, number| Some(if place == 0 { 2 * number } else { number }));
    /// assert_eq!(other.unwrap().to_string(), "cyclic-shift:phases=16(-1,1):local=shared");
    /// # Ok::<(), allhands_schedule::Error>(())
    /// ```
    pub fn with_numbers(&self, mut other: impl FnMut(usize, usize) -> Option<usize>) -> Option<Choice> {
        let mut place = 0;
        let mut next = |number: usize| {
            place += 1;
            other(place - 1, number)
        };
        let given = self.parameters.given.iter();
        let given = given.map(|(name, setting)| Some((*name, setting.with_numbers(&mut next)?))).collect::<Option<_>>();
        Some(Choice { parameters: Parameters { given: given?, ..self.parameters }, ..*self })
    }

    /// How many blocks follow one another, where that is set.
    pub fn blocks_in_turn(&self) -> Option<usize> {
        match self.parameters.setting(BLOCKS.name) {
            Some(Setting::Number(blocks)) => Some(*blocks),
            _ => None,
        }
    }

    /// The same with so many blocks following one another; nothing of an algorithm in which none do.
    ///
    /// ```
    /// use allhands_schedule::{Choice, Collective};
    /// let read = |text| Choice::parse(Collective::Bcast, text).unwrap();
    /// assert_eq!(read("circulant:blocks=4").with_blocks_in_turn(9), Some(read("circulant:blocks=9")));
    /// assert_eq!(read("binomial").with_blocks_in_turn(9), None);
    /// ```
    pub fn with_blocks_in_turn(&self, blocks: usize) -> Option<Choice> {
        let known = self.algorithm.parameters.iter().find(|known| known.name == BLOCKS.name)?;
        let mut given = self.parameters.given.clone();
        match given.iter_mut().find(|(name, _)| *name == known.name) {
            Some((_, setting)) => *setting = Setting::Number(blocks),
            None => given.insert(0, (known.name, Setting::Number(blocks))),
        }
        Some(Choice { parameters: Parameters { given, ..self.parameters }, ..*self })
    }

    /// The algorithm as it is when nothing is set.
    pub fn unset(&self) -> Choice {
        Choice { parameters: Parameters { given: Vec::new(), ..self.parameters }, ..*self }
    }

    /// Whether operands are promised to be combined in rank order.
    pub fn ordered(&self, problem: &Problem) -> bool {
        self.algorithm.ordered.holds(problem, &self.parameters)
    }

    /// Whether every rank is promised the same bits.
    pub fn identical(&self, problem: &Problem) -> bool {
        self.algorithm.identical.holds(problem, &self.parameters)
    }

    /// Checks that the algorithm can serve the problem, and gets it ready to make any rank's schedule.
    pub fn prepare(&self, problem: &Problem) -> Result<Prepared> {
        let problem = Arc::new(problem.clone());
        let recipe = self.recipe(&problem)?;
        self.keeps_promises(&problem)?;
        Ok(Prepared { problem, by: By::Choice(self.clone()), recipe })
    }

    fn recipe(&self, problem: &Arc<Problem>) -> Result<Recipe> {
        let (parameters, ranks) = (&self.parameters, problem.ranks());
        let from = |movement: Make1, finish: fn(Vec<Round>, usize) -> Vec<Round>| -> Make1 {
            Box::new(move |rank| finish(movement(rank), rank))
        };
        let root = problem.root;
        Ok(match self.algorithm.make {
            Make::Gather(movement) => Recipe { blocks: ranks, make: from(movement(problem, parameters)?, gather) },
            Make::Scatter(movement) => Recipe { blocks: ranks, make: from(movement(problem, parameters)?, scatter) },
            Make::Both(movement) => Recipe { blocks: ranks, make: from(movement(problem, parameters)?, both) },
            Make::Meet(movement) => {
                Recipe { blocks: 0, make: from(movement(problem, parameters)?, |movement, _| emptied(movement)) }
            }
            Make::Spread(movement) => {
                let Recipe { blocks, make } = movement(problem, parameters)?;
                Recipe { blocks, make: Box::new(move |rank| spread(make(rank), rank == root, blocks)) }
            }
            Make::Collect(movement) => {
                let Recipe { blocks, make } = movement(problem, parameters)?;
                Recipe { blocks, make: Box::new(move |rank| collect(make(rank), rank, rank == root, blocks)) }
            }
            Make::TwoLevel(movement) => movement(problem, parameters)?.serving(problem),
            Make::Direct(recipe) => recipe(problem, parameters)?,
        })
    }

    fn keeps_promises(&self, problem: &Problem) -> Result<()> {
        if !problem.collective.reduces() {
            return Ok(());
        }
        let refuse = |property, holds: fn(&Choice, &Problem) -> bool| {
            let others = algorithms(problem.collective).filter_map(|algorithm| {
                let default = Choice::parse(problem.collective, algorithm.name).ok()?;
                (default.recipe(&Arc::new(problem.clone())).is_ok() && holds(&default, problem))
                    .then_some(algorithm.name)
            });
            let remedy = others.collect::<Vec<_>>().join(", ");
            Err(Error::NotGuaranteed { algorithm: self.algorithm.name, property, remedy })
        };
        if !problem.reduction.commutative && !self.ordered(problem) {
            return refuse("to combine operands in rank order, as a non-commutative operation needs,", Choice::ordered);
        }
        if problem.reduction.identical && !self.identical(problem) {
            return refuse("identical bits on every rank", Choice::identical);
        }
        Ok(())
    }
}

/// The lines of the registry are one each: which one it is tells an algorithm from others.
impl PartialEq for Choice {
    fn eq(&self, other: &Choice) -> bool {
        std::ptr::eq(self.algorithm, other.algorithm) && self.parameters == other.parameters
    }
}

impl Eq for Choice {}

impl Hash for Choice {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.algorithm.collective, &self.parameters).hash(state);
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.algorithm.name)?;
        self.parameters.given.iter().try_for_each(|(name, value)| write!(f, ":{name}={value}"))
    }
}

impl fmt::Debug for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Choice({self})")
    }
}

/// An algorithm, or a schedule that somebody wrote, which has been found able to serve a problem.
pub struct Prepared {
    problem: Arc<Problem>,
    by: By,
    recipe: Recipe,
}

/// What makes the schedules.
enum By {
    Choice(Choice),
    /// The file of a schedule, as it is named; whether its ranks share memory; what it costs.
    File(String, bool, Cost),
}

impl Prepared {
    /// What is asked.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// The algorithm that serves it, unless that is a schedule that somebody wrote.
    pub fn choice(&self) -> Option<&Choice> {
        match &self.by {
            By::Choice(choice) => Some(choice),
            By::File(..) => None,
        }
    }

    /// What serves it, as it is named on the command line.
    pub fn name(&self) -> String {
        match &self.by {
            By::Choice(choice) => choice.to_string(),
            By::File(name, ..) => name.clone(),
        }
    }

    /// A schedule that is known to serve the problem.
    pub(crate) fn written(problem: &Problem, name: String, shares: bool, cost: Cost, recipe: Recipe) -> Prepared {
        Prepared { problem: Arc::new(problem.clone()), by: By::File(name, shares, cost), recipe }
    }

    /// Into how many blocks the data is cut.
    pub fn blocks(&self) -> usize {
        self.recipe.blocks
    }

    /// Whether ranks of a region share memory in it, or meet.
    pub fn shares(&self) -> bool {
        match &self.by {
            By::Choice(choice) => choice.shares(),
            By::File(_, shares, _) => *shares,
        }
    }

    /// One rank's schedule, made in time and memory proportional to its own operations.
    ///
    /// # Panics
    /// If there is no such rank.
    pub fn rank(&self, rank: usize) -> Schedule {
        assert!(rank < self.problem.ranks(), "rank {rank} of {}", self.problem.ranks());
        Schedule { rank, rounds: (self.recipe.make)(rank) }
    }

    /// The schedules of all ranks.
    pub fn ensemble(&self) -> Ensemble {
        Ensemble {
            problem: (*self.problem).clone(),
            algorithm: self.name(),
            blocks: self.recipe.blocks,
            schedules: (0..self.problem.ranks()).map(|rank| self.rank(rank)).collect(),
        }
    }

    /// What it costs by its closed form; what somebody wrote, as it was counted.
    pub fn cost(&self) -> Cost {
        let choice = match &self.by {
            By::File(_, _, cost) => return *cost,
            By::Choice(_) if self.problem.ranks() == 1 => return Cost::NOTHING,
            By::Choice(choice) => choice,
        };
        let cost = (choice.algorithm.cost)(&self.problem, &choice.parameters);
        match choice.algorithm.make {
            Make::Both(_) => cost.then(cost),
            Make::Meet(_) => Cost { blocks: 0, ..cost },
            _ => cost,
        }
    }

    /// Messages of all ranks together, if every one sent as many as the busiest.
    ///
    /// ```
    /// use allhands_schedule::{Choice, Collective, Problem, Topology};
    /// let problem = Problem::new(Collective::Allgather, Topology::flat(5)?);
    /// assert_eq!(Choice::parse(Collective::Allgather, "ring")?.prepare(&problem)?.messages(), 20);
    /// # Ok::<(), allhands_schedule::Error>(())
    /// ```
    pub fn messages(&self) -> usize {
        self.cost().messages.saturating_mul(self.problem.ranks())
    }
}

/// An allgather: the rank's own block goes into place, then the movement.
pub(crate) fn gather(movement: Vec<Round>, rank: usize) -> Vec<Round> {
    gather_pieces(movement, rank, 1)
}

/// The same where the block of each rank is so many pieces.
fn gather_pieces(mut movement: Vec<Round>, rank: usize, pieces: usize) -> Vec<Round> {
    let mut first = Round::default();
    first.copy(Span::input(0, pieces), Span::output(rank * pieces, pieces));
    movement.insert(0, first);
    movement
}

/// A reduce_scatter: the movement, reversed.
pub(crate) fn scatter(movement: Vec<Round>, rank: usize) -> Vec<Round> {
    scatter_pieces(movement, rank, 1)
}

/// The same where the block of each rank is so many pieces.
fn scatter_pieces(movement: Vec<Round>, rank: usize, pieces: usize) -> Vec<Round> {
    own_apart(reverse(movement, rank, &[Span::output(rank * pieces, pieces)]), rank, pieces)
}

/// An allgather in so many pieces of each block, or a reduce_scatter, as the problem asks.
pub(crate) fn in_pieces(
    problem: &Problem,
    pieces: usize,
    movement: impl Fn(usize) -> Vec<Round> + Send + Sync + 'static,
) -> Recipe {
    let finish = if problem.collective.family() == Collective::ReduceScatter { scatter_pieces } else { gather_pieces };
    let make = move |rank| finish(movement(rank), rank, pieces);
    Recipe { blocks: problem.ranks() * pieces, make: Box::new(make) }
}

/// What is not the rank's own block is in scratch while it is combined.
pub(crate) fn own_apart(reversed: Vec<Round>, rank: usize, pieces: usize) -> Vec<Round> {
    let own = rank * pieces..(rank + 1) * pieces;
    embed(
        reversed,
        |peer| peer,
        |span, spans| {
            if span.space != Space::Output {
                return push_span(spans, span);
            }
            let below = span.first.min(own.start)..span.end().min(own.start);
            let inside = span.first.clamp(own.start, own.end)..span.end().clamp(own.start, own.end);
            let above = span.first.max(own.end)..span.end().max(own.end);
            push_span(spans, Span::scratch(below.start, below.len()));
            push_span(spans, Span::output(inside.start - own.start, inside.len()));
            push_span(spans, Span::scratch(above.start, above.len()));
        },
    )
}

/// An allreduce: reduce_scatter, then allgather, both in place.
pub(crate) fn both(movement: Vec<Round>, rank: usize) -> Vec<Round> {
    let mut rounds = reverse(movement.clone(), rank, &[Span::output(rank, 1)]);
    rounds.extend(movement);
    rounds
}

/// A bcast: the root's blocks go into place, then the movement.
pub(crate) fn spread(movement: Vec<Round>, root: bool, blocks: usize) -> Vec<Round> {
    let mut first = Round::default();
    if root {
        first.copy(Span::input(0, blocks), Span::output(0, blocks));
    }
    std::iter::once(first).chain(movement).collect()
}

/// A reduce: only the root has an output, the others combine in scratch.
pub(crate) fn collect(movement: Vec<Round>, rank: usize, root: bool, blocks: usize) -> Vec<Round> {
    let keep = [Span::output(0, if root { blocks } else { 0 })];
    let reversed = reverse(movement, rank, &keep);
    if root {
        return reversed;
    }
    embed(
        reversed,
        |peer| peer,
        |span, spans| {
            let space = if span.space == Space::Output { Space::Scratch } else { span.space };
            push_span(spans, Span { space, ..span });
        },
    )
}
