//! Which algorithm serves a call that names none: what a tuning file has measured, else the model of a machine.
//!
//! The decision rests on what all ranks know alike: the problem, the class of its size, and evidence that rank 0 has read for all.

mod between;
mod typical;

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use allhands_model::{Allowance, Amount, Fit, Machine, Ranked, best_choices, memory};
use allhands_schedule::{Choice, Collective, Error, Graph, Knowledge, Problem, Result, Topology, algorithms};

use crate::learn::LEARN;
use crate::node::Notebook;
use crate::server::Server;
use crate::tuning::{Cell, Tuning};
use typical::{VERY_UNEQUAL, skew, typical};

/// What decisions rest on: a tuning file where it speaks, else the model on a machine.
///
/// ```
/// use allhands::{Evidence, Topology};
/// use allhands_model::Machine;
/// use allhands_schedule::{Collective, Problem};
/// let evidence = Evidence::of_machine(Machine::shipped("blue-waters")?);
/// let problem = Problem::new(Collective::Allreduce, Topology::regular(64, 16)?);
/// let decision = evidence.decide(&problem, 8)?;
/// assert_eq!(decision.server.choice().unwrap().algorithm.name, "nap");
/// assert!(decision.why.to_string().starts_with("the model of blue-waters"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Evidence {
    tuning: Option<Tuning>,
    /// Whether that is what was learned earlier.
    learned: bool,
    machine: Machine,
    /// What the machine was fitted to.
    fit: Fit,
    /// The cores that all ranks have together, where that is known.
    cores: Option<usize>,
    /// What was named and is not used, a sentence each.
    unused: Vec<String>,
    /// Thread ranks have one for all, so that each question is thought about once.
    decisions: Mutex<HashMap<Question, Decision>>,
    /// Processes of a node have one notebook for all, so that where they take turns on cores not each of them thinks.
    notebook: Option<Notebook>,
}

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

/// What is decided once: communicators whose ranks sit alike ask the same.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Question {
    seating: u64,
    collective: Collective,
    commutative: bool,
    identical: bool,
    class: usize,
    skew: usize,
    library: bool,
    allowance: Allowance,
    graph: Option<Arc<Graph>>,
}

impl Question {
    /// Tells it from others, on every rank alike.
    fn key(&self) -> [u64; 2] {
        let Question { seating, collective, commutative, identical, class, skew, library, allowance, graph } = self;
        let graph = graph.as_ref().map(|graph| (graph.edges(), graph.fingerprint()));
        let asked = format!(
            "{seating:x} {collective} {commutative} {identical} {class} {skew} {library} {allowance:?} {graph:?}"
        );
        [asked.bytes().collect::<Vec<_>>(), asked.bytes().rev().collect()].map(allhands_schedule::hash)
    }
}

/// Of blocks in a neighbourhood, for which it is settled whether they are aggregated: powers of eight.
const SIZES_OF_BLOCKS: [usize; 6] = [8, 64, 512, 4096, 32 << 10, 256 << 10];

/// What takes at most so many times as long as the best, by the model of a network that nobody has measured, is taken for its fewer messages.
const CLOSE: f64 = 1.1;
/// Ranks with no more neighbours on other nodes than this, on average, have little to put together;
const FEW_FAR_NEIGHBORS: usize = 4;
/// there it is to be so many times as fast as sending every block by itself, since what ranks of a node do for each other takes their cores' time, too.
const WORTH_IT: f64 = 1.25;
/// What sends every block by itself.
const DIRECT: &str = "direct";

/// So many algorithms are tried beside the one that serves, by what is known of them, and who takes more than so many times as long is not.
const RIVALS: usize = 3;
const HOPELESS: f64 = 3.0;

/// What a communicator can do besides sending messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Abilities {
    /// MPI's own collective could serve.
    pub(crate) library: bool,
    pub(crate) allowance: Allowance,
}

/// The variable that names a tuning file.
const TUNING: &str = "ALLHANDS_TUNING";
/// The variable that names a machine, or a machine file.
const MACHINE: &str = "ALLHANDS_MACHINE";
/// Who calls itself so has thread ranks.
pub(crate) const THREADS: &str = "threads";
/// More decisions are made anew.
const MOST_KNOWN: usize = 4096;
/// How many algorithms a decision names.
const NAMED: usize = 6;

/// What the files say that the user names, for rank 0 to tell all.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Texts {
    pub(crate) tuning: Option<String>,
    /// What was learned earlier, where no tuning file is named.
    pub(crate) learned: Option<String>,
    pub(crate) machine: Option<String>,
}

impl Texts {
    /// Those that the environment names; a warning for one that cannot be read.
    pub(crate) fn named() -> Texts {
        let used = |variable: &str, read: fn(&OsStr) -> std::result::Result<String, String>| {
            read(&named(variable)?).map_err(|fact| warn(variable, &fact)).ok()
        };
        // `allhands tune` writes the machine beside what it has measured there.
        let beside = named(TUNING).filter(|_| named(MACHINE).is_none());
        let beside = beside.and_then(|tuning| std::fs::read_to_string(machine_file(Path::new(&tuning))).ok());
        Texts { tuning: used(TUNING, file), learned: None, machine: beside.or_else(|| used(MACHINE, machine)) }
    }
}

/// Whether what `ALLHANDS_TUNING` and `ALLHANDS_MACHINE` name in this process can be read: the variable, and what is wrong with it.
///
/// ```
/// // In an environment without these variables nothing is wrong.
/// assert_eq!(allhands::raw::check_named(), Ok(()));
/// ```
pub fn check_named() -> std::result::Result<(), (&'static str, String)> {
    if let Some(name) = named(TUNING) {
        file(&name).and_then(|text| tuning(&text, None)).map_err(|fact| (TUNING, fact))?;
    }
    if let Some(name) = named(MACHINE) {
        let parsed = machine(&name).and_then(|text| Machine::parse(&text).map_err(|error| error.to_string()));
        parsed.map_err(|fact| (MACHINE, fact))?;
    }
    Ok(())
}

/// What a variable names, if it is set to something.
fn named(variable: &str) -> Option<OsString> {
    std::env::var_os(variable).filter(|named| !named.is_empty())
}

fn file(path: &OsStr) -> std::result::Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// The text of a machine that comes along, or of a file.
fn machine(name: &OsStr) -> std::result::Result<String, String> {
    match is_path(Path::new(name)) {
        true => file(name),
        false => Machine::shipped_text(&name.to_string_lossy()).map(Into::into).map_err(|error| error.to_string()),
    }
}

/// The machine file that belongs to a tuning file: `here.machine.toml` beside `here.toml`.
///
/// ```
/// assert_eq!(allhands::machine_file("tuned/here.toml".as_ref()).to_str(), Some("tuned/here.machine.toml"));
/// ```
pub fn machine_file(tuning: &Path) -> PathBuf {
    tuning.with_extension("machine.toml")
}

/// A name of a machine has neither directories nor an ending.
fn is_path(name: &Path) -> bool {
    name.extension().is_some() || name.components().count() > 1
}

fn warn(variable: &str, fact: &str) {
    crate::log::say(unused(variable, fact));
}

fn unused(variable: &str, fact: &str) -> String {
    format!("what {variable} names is not used: {fact}")
}

impl Evidence {
    /// The model on a machine.
    pub fn of_machine(machine: Machine) -> Evidence {
        Evidence {
            tuning: None,
            learned: false,
            machine,
            fit: Fit::default(),
            cores: None,
            unused: Vec::new(),
            decisions: Mutex::default(),
            notebook: None,
        }
    }

    /// What a program would go by here: the tuning file that `ALLHANDS_TUNING` names; where it is silent, the model on the machine
    /// that `ALLHANDS_MACHINE` names, else on that whose file is beside the tuning file, else on `generic`, which a job would fit to the messages that it exchanges first. What cannot be used is
    /// one warning.
    pub fn of_environment() -> Evidence {
        Evidence::of_texts(&Texts::named(), None, true)
    }

    /// From the texts of files, on a transport, if there is one; a warning for each that is no good, from who `speaks`.
    pub(crate) fn of_texts(texts: &Texts, transport: Option<&str>, speaks: bool) -> Evidence {
        let told = RefCell::new(Vec::new());
        let unused = |variable: &str, fact: String| {
            if speaks {
                warn(variable, &fact);
            }
            told.borrow_mut().push(unused(variable, &fact));
        };
        let tuning = texts.tuning.as_deref().map(|text| tuning(text, transport));
        let tuning = tuning.and_then(|tuning| tuning.map_err(|fact| unused(TUNING, fact)).ok());
        let known = texts.learned.as_deref().map(|text| self::tuning(text, transport));
        let known = known.and_then(|known| known.map_err(|fact| unused(LEARN, fact)).ok());
        let (learned, tuning) = (known.is_some(), tuning.or(known));
        let machine = texts.machine.as_deref().map(Machine::parse);
        let machine = machine.and_then(|machine| machine.map_err(|error| unused(MACHINE, error.to_string())).ok());
        let otherwise = if transport == Some(THREADS) { "threads" } else { "generic" };
        let machine = machine.unwrap_or_else(|| Machine::shipped(otherwise).expect("it is shipped"));
        let cores = std::thread::available_parallelism().ok().filter(|_| transport == Some(THREADS));
        let (cores, unused) = (cores.map(Into::into), told.into_inner());
        Evidence { tuning, learned, cores, unused, ..Evidence::of_machine(machine) }
    }

    /// This evidence where all ranks together have so many cores, if that is known.
    pub(crate) fn on_cores(self, cores: usize) -> Evidence {
        Evidence { cores: Some(cores).filter(|cores| *cores > 0), ..self }
    }

    /// This evidence on a node whose ranks, which all have the same, note what they find.
    pub(crate) fn noted_in(self, notebook: Notebook) -> Evidence {
        Evidence { notebook: Some(notebook), ..self }
    }

    /// This evidence with a machine on which messages take as long as was found out.
    pub(crate) fn fitted(self, fit: Fit) -> Evidence {
        let machine = self.machine.fitted(&fit);
        // What made no sense is as if nobody had tried.
        let fit = if machine == self.machine { Fit::default() } else { fit };
        Evidence { machine, fit, ..self }
    }

    /// This evidence with another tuning file.
    pub(crate) fn with_tuning(&self, tuning: Tuning) -> Evidence {
        Evidence {
            tuning: Some(tuning),
            fit: self.fit,
            cores: self.cores,
            ..Evidence::of_machine(self.machine.clone())
        }
    }

    /// What the user names and is not used here, a sentence each: a tuning file that was made with another MPI.
    pub fn unused(&self) -> &[String] {
        &self.unused
    }

    /// The machine whose model speaks where no tuning file does.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// What was found out about it when the job began, as numbers; they are in words in the machine's description.
    pub fn fit(&self) -> &Fit {
        &self.fit
    }

    /// The machine's name and what was found out about it, if anything was: `generic, fitted here: between nodes 512 us and 1.04 GB/s, the rest as
    /// on generic`.
    pub fn fitted_words(&self) -> Option<String> {
        (self.fit != Fit::default()).then(|| self.machine.to_string())
    }

    /// The machine as this job has found it; none if it has found out nothing. A network that nobody has measured is marked as assumed.
    pub fn fitted_machine(&self) -> Option<Machine> {
        let mut machine = (self.fit != Fit::default()).then(|| self.machine.clone())?;
        if let Some(network) = machine.levels.first_mut().filter(|_| self.fit.far.is_none()) {
            network.assumed = true;
        }
        Some(machine)
    }

    /// The algorithm for a problem with blocks, or a vector, of so many bytes, where ranks of a node share memory. Sizes between two
    /// halves of a power of two (6 and 8, 8 and 12 bytes) are decided alike, as the larger; so are all roots, and all counts
    /// of the same mean, of an allgatherv and a reduce_scatter those whose largest is about as many times the mean.
    pub fn decide(&self, problem: &Problem, bytes: usize) -> Result<Decision> {
        self.decide_within(problem, bytes, Allowance::default())
    }

    /// As [`decide`](Evidence::decide), where a rank may take only so much memory, or none is shared. With a limit on memory every size is decided for
    /// itself.
    ///
    /// ```
    /// use allhands::{Evidence, Topology};
    /// use allhands_model::{Allowance, Machine};
    /// use allhands_schedule::{Collective, Problem};
    /// let evidence = Evidence::of_machine(Machine::shipped("generic")?);
    /// let problem = Problem::new(Collective::Alltoall, Topology::regular(4, 4)?);
    /// let frugal = Allowance { memory: Some(0), ..Allowance::default() };
    /// assert_ne!(evidence.decide(&problem, 8)?.server, evidence.decide_within(&problem, 8, frugal)?.server);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn decide_within(&self, problem: &Problem, bytes: usize, allowance: Allowance) -> Result<Decision> {
        self.think(problem, size(bytes, allowance), Abilities { library: false, allowance })
    }

    /// The same for a communicator, thought about once for all that have this number for how their ranks sit.
    pub(crate) fn choose(&self, seating: u64, problem: &Problem, bytes: usize, able: Abilities) -> Result<Decision> {
        let question = Question {
            seating,
            collective: problem.collective,
            commutative: problem.reduction.commutative,
            identical: problem.reduction.identical,
            class: size(bytes, able.allowance),
            skew: skew(problem),
            library: able.library,
            allowance: able.allowance,
            graph: problem.graph.clone(),
        };
        // Held while thinking: who asks the same waits for the answer.
        let mut decisions = self.decisions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = decisions.get(&question) {
            return Ok(known.clone());
        }
        let decision = self.noted_or_thought(&question, problem, able)?;
        if decisions.len() >= MOST_KNOWN {
            decisions.clear();
        }
        decisions.insert(question, decision.clone());
        Ok(decision)
    }

    /// What another rank of the node has found, or else what this one finds.
    fn noted_or_thought(&self, question: &Question, problem: &Problem, able: Abilities) -> Result<Decision> {
        let think = || self.think(problem, question.class, able);
        let Some(notebook) = &self.notebook else { return think() };
        let key = question.key();
        let noted = notebook.read(key).and_then(|note| self.of_note(&note, problem));
        if let Some(decision) = noted {
            return Ok(decision);
        }
        let decision = think()?;
        if let Some(note) = decision.note() {
            notebook.write(key, &note);
        }
        Ok(decision)
    }

    /// The decision for a problem that a note tells; none if it tells something else, or of somebody who cannot serve just here.
    fn of_note(&self, note: &str, problem: &Problem) -> Option<Decision> {
        let mut lines = note.lines();
        let grounds = match lines.next()?.split_once(' ')? {
            ("model", simulated) => Grounds::Model {
                machine: self.machine.name.clone(),
                cores: self.turns(problem.ranks()),
                simulated: simulated.parse().ok()?,
            },
            ("tuning", cells) => Grounds::Tuning { cells: cells.parse().ok()? },
            ("learned", cells) => Grounds::Learned { cells: cells.parse().ok()? },
            _ => return None,
        };
        let best = lines.map(|line| {
            let (time, server) = line.split_once(' ')?;
            let server = Server::parse(problem.collective, server).ok()?;
            let serves = server.choice().is_none_or(|choice| choice.prepare(problem).is_ok());
            serves.then_some((server, f64::from_bits(u64::from_str_radix(time, 16).ok()?)))
        });
        Decision::first(grounds, best.collect::<Option<_>>()?)
    }

    /// Whether so many ranks outnumber the cores that they have.
    pub(crate) fn is_crowded(&self, ranks: usize) -> bool {
        self.cores.is_some_and(|cores| cores < ranks)
    }

    /// How long somebody took for a problem of just this class of size, in seconds, if that is known.
    pub(crate) fn remembered(&self, problem: &Problem, bytes: usize, server: &Server) -> Option<f64> {
        let cell = self.tuning.as_ref()?.cell(problem.collective, &problem.topology, class(bytes))?;
        let name = server.to_string();
        cell.times.iter().find(|time| time.algorithm == name).map(|time| time.median_us * 1e-6)
    }

    /// Who took how long for a problem of just this class of size, in microseconds, the fastest first; empty if that is not known.
    pub(crate) fn earlier(&self, problem: &Problem, bytes: usize) -> Vec<(Server, f64)> {
        let cell =
            self.tuning.as_ref().and_then(|tuning| tuning.cell(problem.collective, &problem.topology, class(bytes)));
        cell.map_or(Vec::new(), Cell::known)
    }

    /// How many times as long as somebody the MPI's own took then.
    pub(crate) fn remembered_of_library(&self, problem: &Problem, bytes: usize, server: &Server) -> Option<f64> {
        let theirs = self.remembered(problem, bytes, &Server::Library)?;
        Some(theirs / self.remembered(problem, bytes, server)?)
    }

    /// Who might serve beside somebody, with how many times as long they are expected to take: what was measured, and the best by the model. What nobody can
    /// look into, the MPI's own, is not among them unless it was measured.
    pub(crate) fn rivals(
        &self,
        seating: u64,
        problem: &Problem,
        bytes: usize,
        able: Abilities,
        beside: &Server,
    ) -> Vec<(Server, f64)> {
        let best = |decision: Result<Decision>| decision.map_or(Vec::new(), |decision| decision.best);
        let mut sources = vec![best(self.choose(seating, problem, bytes, able))];
        if self.tuning.is_some() {
            sources.push(best(self.modelled(problem, size(bytes, able.allowance), able)));
        }
        let mut rivals: Vec<(Server, f64)> = Vec::new();
        for best in sources {
            // Times of one source are compared with each other.
            let own = best.iter().find(|(server, _)| server == beside).or(best.first()).map_or(1.0, |(_, time)| *time);
            let fastest = best.first().map_or(own, |(_, time)| *time);
            for (server, time) in best.into_iter().filter(|(_, time)| *time <= HOPELESS * fastest) {
                let same = |known: &Server| match (known.choice(), server.choice()) {
                    (Some(known), Some(new)) => alike(known, new, problem),
                    _ => *known == server,
                };
                let known = rivals.iter().map(|(known, _)| known).chain([beside]).any(same);
                if !known && rivals.len() < RIVALS {
                    rivals.push((server, time / own));
                }
            }
        }
        rivals
    }

    /// What serves neighbourhood collectives of any sizes on a graph, and why: aggregating what goes to a node pays for short blocks; from which size
    /// on they go straight is settled, too.
    pub(crate) fn along_edges(&self, seating: u64, problem: &Problem) -> Result<(Choice, String)> {
        let direct = || Choice::parse(problem.collective, DIRECT);
        let messages = |count: fn(&Graph, &Topology) -> usize| {
            problem.graph.as_deref().map(|graph| count(graph, &problem.topology))
        };
        if messages(Graph::far_pairs) == messages(Graph::far_neighbors) {
            return Ok((direct()?, "no two nodes exchange more than one message".into()));
        }
        let able = Abilities { library: false, allowance: Allowance { shares: false, memory: None } };
        let decide = |bytes: usize| self.choose(seating, problem, bytes, able);
        let few = messages(Graph::far_neighbors).is_some_and(|far| far <= FEW_FAR_NEIGHBORS * problem.ranks());
        // The best that aggregates, unless what does not is clearly faster, or aggregating is not worth it.
        let aggregating = |decision: &Decision| {
            let best = decision.best.first().map_or(0.0, |(_, time)| *time);
            let is_direct = |server: &Server| server.choice().is_some_and(|choice| choice.algorithm.name == DIRECT);
            let direct = decision.best.iter().find(|(server, _)| is_direct(server)).map_or(f64::MAX, |(_, time)| *time);
            let most = if few { direct / WORTH_IT } else { CLOSE * best };
            let close = decision.best.iter().filter(|(_, time)| *time <= most);
            let mut choices = close.filter_map(|(server, _)| server.choice());
            choices.find(|choice| choice.knowledge() == Knowledge::Node).cloned()
        };
        let short = decide(SIZES_OF_BLOCKS[0])?;
        let mut why = short.why.to_string();
        let Some(choice) = aggregating(&short) else { return Ok((direct()?, why)) };
        if short.server.choice() != Some(&choice) {
            why += "; taken for its fewer messages between nodes";
        }
        for bytes in &SIZES_OF_BLOCKS[1..] {
            if aggregating(&decide(*bytes)?).is_none() {
                let choice = Choice::parse(problem.collective, &format!("{choice}:straight={bytes}"))?;
                return Ok((choice, format!("{why}; longer blocks go straight")));
            }
        }
        Ok((choice, why))
    }

    fn think(&self, problem: &Problem, bytes: usize, able: Abilities) -> Result<Decision> {
        let measured = || self.measured(problem, bytes, able).or_else(|| self.between(problem, bytes, able));
        let told = if skew(problem) < VERY_UNEQUAL { measured() } else { None };
        told.map_or_else(|| self.modelled(problem, bytes, able), Ok)
    }

    /// The fastest of those that were measured, just there, and can serve.
    fn measured(&self, problem: &Problem, bytes: usize, able: Abilities) -> Option<Decision> {
        // What was measured on one graph says nothing of another.
        let tuning = self.tuning.as_ref().filter(|_| problem.graph.is_none());
        let cell = tuning?.cell(problem.collective, &problem.topology, bytes)?;
        // Where nodes differ, what was tuned where they are alike is of another shape; what was learned was learned by such a job.
        if !self.learned && cell.nodes * cell.ranks_per_node != problem.ranks() {
            return None;
        }
        let serves = |server: &Server| match server {
            Server::Library => self.calls_library(able),
            Server::Written(_) => false,
            Server::Schedule(choice) => {
                choice.prepare(problem).is_ok_and(|prepared| able.allowance.permits(&prepared, amount(problem, bytes)))
            }
        };
        let best = cell.known().into_iter().filter(|(server, _)| serves(server)).collect();
        Decision::fastest(self.told_by(1), best)
    }

    /// Whether the MPI's own may be what a file says: what was learned in another job says nothing of what this one gives to its MPI, which may
    /// lie on a device.
    fn calls_library(&self, able: Abilities) -> bool {
        able.library && able.allowance.memory.is_none() && !self.learned
    }

    /// So many cells of the file.
    fn told_by(&self, cells: usize) -> Grounds {
        if self.learned { Grounds::Learned { cells } } else { Grounds::Tuning { cells } }
    }

    /// The fastest by the model of the machine.
    fn modelled(&self, problem: &Problem, bytes: usize, able: Abilities) -> Result<Decision> {
        let ranked = self.ranked(problem, bytes, able);
        let Some(first) = ranked.first() else { return Err(refusal(problem, bytes, able.allowance)) };
        let (machine, cores) = (self.machine.name.clone(), self.turns(problem.ranks()));
        let grounds = Grounds::Model { machine, cores, simulated: first.simulated };
        let best = ranked.into_iter().map(|ranked| (Server::Schedule(ranked.choice), ranked.seconds * 1e6));
        Ok(Decision::first(grounds, best.collect()).expect("there is a first"))
    }

    /// All that the model puts among the best and that can serve, the best first.
    fn ranked(&self, problem: &Problem, bytes: usize, able: Abilities) -> Vec<Ranked> {
        let (typical, block) = typical(problem, bytes);
        let machine = self.machine_for(&typical.topology);
        let ranked = best_choices(&typical, block, &machine, able.allowance).unwrap_or_default();
        // The counts and the root of this call are looked at here.
        let serves = |choice: &Choice| {
            choice.prepare(problem).is_ok_and(|prepared| able.allowance.permits(&prepared, amount(problem, bytes)))
        };
        ranked.into_iter().filter(|ranked| serves(&ranked.choice)).collect()
    }

    /// The cores that so many ranks take turns on, if there are fewer.
    fn turns(&self, ranks: usize) -> Option<usize> {
        self.cores.filter(|&cores| cores < ranks)
    }

    /// The machine as ranks find it that sit like this.
    fn machine_for(&self, topology: &Topology) -> Cow<'_, Machine> {
        let of_a_core = |many: usize, cores: usize| many as f64 / cores as f64;
        match self.turns(topology.ranks()) {
            None => Cow::Borrowed(&self.machine),
            Some(cores) => Cow::Owned(
                self.machine.crowded(of_a_core(topology.ranks(), cores), of_a_core(topology.regions(1), cores)),
            ),
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

    /// In a form that [`Evidence::of_note`] reads on another rank, which has the same evidence; none if it does not rest on any.
    fn note(&self) -> Option<String> {
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
    fn fastest(grounds: Grounds, mut all: Vec<(Server, f64)>) -> Option<Decision> {
        all.sort_by(|one, other| one.1.total_cmp(&other.1));
        Decision::first(grounds, all)
    }

    /// For the first of some, if there are any, which are given the best first.
    fn first(grounds: Grounds, all: Vec<(Server, f64)>) -> Option<Decision> {
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

/// Whether two settings do the same for a problem, as three of its ranks see it.
fn alike(one: &Choice, other: &Choice, problem: &Problem) -> bool {
    let (Ok(one), Ok(other)) = (one.prepare(problem), other.prepare(problem)) else { return false };
    let last = problem.ranks() - 1;
    one.blocks() == other.blocks() && [0, last / 2, last].iter().all(|&rank| one.rank(rank) == other.rank(rank))
}

/// The tuning that a text holds; or what is wrong with it.
fn tuning(text: &str, transport: Option<&str>) -> std::result::Result<Tuning, String> {
    let tuning: Tuning = text.parse().map_err(|error: crate::tuning::TuningError| error.to_string())?;
    match transport.filter(|transport| *transport != tuning.transport) {
        None => Ok(tuning),
        Some(here) => {
            let made = &tuning.transport;
            Err(format!("it was made for {made}, but this is {here}; make one with `allhands tune`"))
        }
    }
}

/// Why nothing serves: what takes least memory takes too much, or what the last algorithm says.
fn refusal(problem: &Problem, bytes: usize, allowance: Allowance) -> Error {
    let mut last = Error::Root { root: problem.root, ranks: problem.ranks() };
    let mut least: Option<(u64, Choice)> = None;
    for choice in algorithms(problem.collective).flat_map(|algorithm| Choice::variants(algorithm, problem)) {
        match choice.prepare(problem) {
            Ok(prepared) if allowance.memory.is_some() && (allowance.shares || !prepared.shares()) => {
                let needed = memory(&prepared, amount(problem, bytes));
                if least.as_ref().is_none_or(|(least, _)| needed < *least) {
                    least = Some((needed, choice));
                }
            }
            Ok(_) => {}
            Err(error) => last = error,
        }
    }
    match (least, allowance.memory) {
        (Some((needed, choice)), Some(limit)) if needed > limit => {
            Error::Memory { algorithm: choice.to_string(), needed, limit, remedy: ": nothing takes less" }
        }
        _ => last,
    }
}

/// How much a problem moves, where a block has so many bytes on average.
pub(crate) fn amount(problem: &Problem, bytes: usize) -> Amount {
    let mean = problem.counts.iter().sum::<usize>() / problem.counts.len().max(1);
    Amount::bytes(bytes as u64 / mean.max(1) as u64)
}

/// The size for which a size is decided: with a limit on memory, itself.
fn size(bytes: usize, allowance: Allowance) -> usize {
    if allowance.memory.is_some() { bytes } else { class(bytes) }
}

/// The size for which those of a class are decided: 0, 1, 2, 3, 4, 6, 8, 12, 16, ...: the next one up.
pub(crate) fn class(bytes: usize) -> usize {
    let Some(power) = bytes.checked_next_power_of_two() else { return usize::MAX };
    let between = power / 4 * 3;
    match bytes {
        0 => 0,
        _ if bytes <= between => between,
        _ => power,
    }
}

#[cfg(test)]
mod tests;
