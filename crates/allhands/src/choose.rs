//! Which algorithm serves a call that names none: what a tuning file has measured, else the model of a machine.
//!
//! The decision rests on what all ranks know alike: the problem, the class of its size, and evidence that rank 0 has read for all.

mod between;
mod decision;
mod edges;
mod named;
mod typical;

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use allhands_model::{Allowance, Amount, Fit, Machine, Ranked, best_choices, memory};
use allhands_schedule::{Choice, Collective, Error, Graph, Problem, Result, Topology, algorithms};

use crate::learn::LEARN;
use crate::node::Notebook;
use crate::server::Server;
use crate::tuning::{Cell, Tuning};
pub use decision::{Decision, Grounds, Why};
pub(crate) use named::Texts;
use named::{MACHINE, TUNING, tuning, unused, warn};
pub use named::{check_named, machine_file};
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

/// Who calls itself so has thread ranks.
pub(crate) const THREADS: &str = "threads";
/// More decisions are made anew.
const MOST_KNOWN: usize = 4096;
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

/// Whether two settings do the same for a problem, as three of its ranks see it.
fn alike(one: &Choice, other: &Choice, problem: &Problem) -> bool {
    let (Ok(one), Ok(other)) = (one.prepare(problem), other.prepare(problem)) else { return false };
    let last = problem.ranks() - 1;
    one.blocks() == other.blocks() && [0, last / 2, last].iter().all(|&rank| one.rank(rank) == other.rank(rank))
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
