//! Which algorithm serves a call that names none: what a tuning file has measured, else the model of a machine.
//!
//! The decision rests on what all ranks know alike: the problem, the class of its size, and evidence that rank 0 has read for all.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use allhands_model::{Amount, Machine, best_choices};
use allhands_schedule::{Choice, Collective, Problem, Result, Topology, algorithms};

use crate::native;
use crate::tuning::Tuning;

/// What decisions rest on: a tuning file where it speaks, else the model on a machine.
///
/// ```
/// use allhands::{Evidence, Topology};
/// use allhands_model::Machine;
/// use allhands_schedule::{Collective, Problem};
/// let evidence = Evidence::of_machine(Machine::shipped("blue-waters")?);
/// let problem = Problem::new(Collective::Allreduce, Topology::regular(64, 16)?);
/// let decision = evidence.decide(&problem, 8)?;
/// assert!(decision.algorithm.starts_with("nap"));
/// assert!(decision.why.starts_with("the model of blue-waters"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Evidence {
    tuning: Option<Tuning>,
    machine: Machine,
    /// Thread ranks have one for all, so that each question is thought about once.
    decisions: Mutex<HashMap<Question, Decision>>,
}

/// An algorithm, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// With its parameters; `mpi` is the MPI library's own.
    pub algorithm: String,
    /// From what evidence, the runner-up, and by how much.
    pub why: String,
    /// The best of every algorithm, with its time in microseconds, fastest first: the chosen one, the runner-up, a few more.
    pub best: Vec<(String, f64)>,
}

/// What is decided once: communicators whose ranks sit alike ask the same.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Question {
    seating: u64,
    collective: Collective,
    commutative: bool,
    identical: bool,
    class: usize,
    library: bool,
    shares: bool,
}

/// What a communicator can do besides sending messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Abilities {
    /// MPI's own collective could serve.
    pub(crate) library: bool,
    /// Ranks of a node share memory.
    pub(crate) shares: bool,
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
    pub(crate) machine: Option<String>,
}

impl Texts {
    /// Those that the environment names; a warning for one that cannot be read.
    pub(crate) fn named() -> Texts {
        let file = |path: &OsStr| std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()));
        let machine = |name: &OsStr| match is_path(Path::new(name)) {
            true => file(name),
            false => Machine::shipped_text(&name.to_string_lossy()).map(Into::into).map_err(|error| error.to_string()),
        };
        Texts { tuning: read(TUNING, file), machine: read(MACHINE, machine) }
    }
}

/// A name of a machine has neither directories nor an ending.
fn is_path(name: &Path) -> bool {
    name.extension().is_some() || name.components().count() > 1
}

fn read(variable: &str, read: impl Fn(&OsStr) -> std::result::Result<String, String>) -> Option<String> {
    let named = std::env::var_os(variable).filter(|named| !named.is_empty())?;
    read(&named).map_err(|fact| warn(variable, &fact)).ok()
}

fn warn(variable: &str, fact: &str) {
    eprintln!("allhands: what {variable} names is not used: {fact}");
}

impl Evidence {
    /// The model on a machine.
    pub fn of_machine(machine: Machine) -> Evidence {
        Evidence { tuning: None, machine, decisions: Mutex::default() }
    }

    /// What a program would go by here: the tuning file that `ALLHANDS_TUNING` names; where it is silent, the model on the machine
    /// that `ALLHANDS_MACHINE` names, else on `generic`. What cannot be used is one warning.
    pub fn of_environment() -> Evidence {
        Evidence::of_texts(&Texts::named(), None, true)
    }

    /// From the texts of files, on a transport, if there is one; a warning for each that is no good, from who `speaks`.
    pub(crate) fn of_texts(texts: &Texts, transport: Option<&str>, speaks: bool) -> Evidence {
        let unused = |variable: &str, fact: String| {
            if speaks {
                warn(variable, &fact);
            }
        };
        let tuning = texts.tuning.as_deref().map(|text| tuning(text, transport));
        let tuning = tuning.and_then(|tuning| tuning.map_err(|fact| unused(TUNING, fact)).ok());
        let machine = texts.machine.as_deref().map(Machine::parse);
        let machine = machine.and_then(|machine| machine.map_err(|error| unused(MACHINE, error.to_string())).ok());
        let otherwise = if transport == Some(THREADS) { "threads" } else { "generic" };
        let machine = machine.unwrap_or_else(|| Machine::shipped(otherwise).expect("it is shipped"));
        Evidence { tuning, ..Evidence::of_machine(machine) }
    }

    /// The same with another tuning file.
    pub(crate) fn with_tuning(&self, tuning: Tuning) -> Evidence {
        Evidence { tuning: Some(tuning), ..Evidence::of_machine(self.machine.clone()) }
    }

    /// The machine whose model speaks where no tuning file does.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// The algorithm for a problem with blocks, or a vector, of so many bytes, where ranks of a node share memory. Sizes between two
    /// halves of a power of two (6 and 8, 8 and 12 bytes) are decided alike, as the larger; so are all roots, and all counts
    /// of the same mean.
    pub fn decide(&self, problem: &Problem, bytes: usize) -> Result<Decision> {
        self.think(problem, class(bytes), Abilities { library: false, shares: true })
    }

    /// The same for a communicator, thought about once for all that have this number for how their ranks sit.
    pub(crate) fn choose(&self, seating: u64, problem: &Problem, bytes: usize, able: Abilities) -> Result<Decision> {
        let question = Question {
            seating,
            collective: problem.collective,
            commutative: problem.reduction.commutative,
            identical: problem.reduction.identical,
            class: class(bytes),
            library: able.library,
            shares: able.shares,
        };
        // Held while thinking: who asks the same waits for the answer.
        let mut decisions = self.decisions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = decisions.get(&question) {
            return Ok(known.clone());
        }
        let decision = self.think(problem, question.class, able)?;
        if decisions.len() >= MOST_KNOWN {
            decisions.clear();
        }
        decisions.insert(question, decision.clone());
        Ok(decision)
    }

    fn think(&self, problem: &Problem, bytes: usize, able: Abilities) -> Result<Decision> {
        match self.measured(problem, bytes, able) {
            Some(decision) => Ok(decision),
            None => self.modelled(problem, bytes, able),
        }
    }

    /// The fastest of those that were measured and can serve.
    fn measured(&self, problem: &Problem, bytes: usize, able: Abilities) -> Option<Decision> {
        let advice = self.tuning.as_ref()?.advice(problem.collective, &problem.topology, bytes);
        let serves = |algorithm: &str| match algorithm {
            native::NAME => able.library,
            name => Choice::parse(problem.collective, name)
                .and_then(|choice| choice.prepare(problem))
                .is_ok_and(|prepared| able.shares || !prepared.shares()),
        };
        let advice: Vec<_> = advice.into_iter().filter(|advice| serves(&advice.algorithm)).collect();
        let cells = advice.first()?.cells;
        let best = advice.into_iter().map(|advice| (advice.algorithm, advice.microseconds)).take(NAMED).collect();
        Some(Decision::new(&format!("the tuning file ({cells} {})", if cells == 1 { "cell" } else { "cells" }), best))
    }

    /// The fastest by the model of the machine.
    fn modelled(&self, problem: &Problem, bytes: usize, able: Abilities) -> Result<Decision> {
        let topology = match problem.topology.depth() {
            // Ranks with nothing between them are on one node.
            0 => Topology::regular(1, problem.ranks())?,
            _ => problem.topology.clone(),
        };
        let typical = Problem::new(problem.collective, topology).with_reduction(problem.reduction);
        let ranked =
            best_choices(&typical, Amount::bytes(bytes as u64), &self.machine, able.shares).unwrap_or_default();
        let ranked: Vec<_> = ranked.into_iter().filter(|ranked| ranked.choice.prepare(problem).is_ok()).collect();
        let Some(first) = ranked.first() else { return Err(refusal(problem)) };
        let how = if first.simulated { "" } else { " (too large to be simulated: at a glance)" };
        let evidence = format!("the model of {}{how}", self.machine.name);
        let mut best: Vec<(String, f64)> = Vec::new();
        for ranked in &ranked {
            let name = ranked.choice.to_string();
            let kind = |name: &str| (name.split(':').next().map(String::from), name.contains("local=shared"));
            if best.len() < NAMED && !best.iter().any(|(known, _)| kind(known) == kind(&name)) {
                best.push((name, ranked.seconds * 1e6));
            }
        }
        Ok(Decision::new(&evidence, best))
    }
}

impl Decision {
    /// For the first of some, which are not none.
    fn new(evidence: &str, best: Vec<(String, f64)>) -> Decision {
        let (algorithm, time) = best[0].clone();
        let mut why = format!("{evidence}: {time:.2} us");
        if let Some((second, more)) = best.get(1) {
            why += &format!("; runner-up {second}, {:.0} % more", 100.0 * (more / time - 1.0).max(0.0));
        }
        Decision { algorithm, why, best }
    }
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

/// Why nothing serves: what the last algorithm says.
fn refusal(problem: &Problem) -> allhands_schedule::Error {
    let refused = |name| Choice::parse(problem.collective, name).and_then(|choice| choice.prepare(problem)).err();
    let last = algorithms(problem.collective).filter_map(|algorithm| refused(algorithm.name)).last();
    last.unwrap_or(allhands_schedule::Error::Root { root: problem.root, ranks: problem.ranks() })
}

/// The size for which those of a class are decided: 0, 1, 2, 3, 4, 6, 8, 12, 16, ...: the next one up.
fn class(bytes: usize) -> usize {
    let Some(power) = bytes.checked_next_power_of_two() else { return usize::MAX };
    let between = power / 4 * 3;
    match bytes {
        0 => 0,
        _ if bytes <= between => between,
        _ => power,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tuning::{Cell, Time};
    use allhands_schedule::Reduction;
    use proptest::prelude::*;

    const ABLE: Abilities = Abilities { library: false, shares: true };

    fn texts(tuning: Option<&str>, machine: Option<&str>) -> Texts {
        Texts { tuning: tuning.map(Into::into), machine: machine.map(Into::into) }
    }

    #[test]
    fn classes_cover_all_sizes_and_their_sizes_are_their_own() {
        let firsts: Vec<usize> = (0..=33).map(class).collect();
        let mut classes = firsts.clone();
        classes.dedup();
        assert_eq!(classes, [0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48]);
        let mut size = 1usize;
        while size < usize::MAX / 4 {
            let class = super::class(size);
            assert!(class >= size && class < 2 * size, "{size} is decided as {class}");
            assert_eq!(super::class(class), class);
            assert!(super::class(size + 1) >= class);
            size += size / 7 + 1;
        }
        assert_eq!(class(usize::MAX), usize::MAX);
    }

    #[test]
    fn bad_files_leave_the_default_machine_and_good_ones_are_followed() {
        let machine = |texts: &Texts, transport| Evidence::of_texts(texts, transport, false).machine.name.clone();
        let none = texts(None, None);
        assert_eq!(machine(&none, Some(THREADS)), "threads");
        assert_eq!(
            (machine(&none, Some("Open MPI v5.0.11")), machine(&none, None)),
            ("generic".into(), "generic".into())
        );
        let lassen = Machine::shipped_text("lassen").unwrap();
        assert_eq!(machine(&texts(None, Some(lassen)), Some(THREADS)), "lassen");
        let damaged = texts(Some("damaged"), Some(&lassen[..lassen.rfind(" = ").unwrap()]));
        let evidence = Evidence::of_texts(&damaged, Some(THREADS), false);
        assert_eq!((evidence.machine.name.as_str(), evidence.tuning.is_none()), ("threads", true));
        assert_eq!(tuning("damaged", None).unwrap_err().lines().count(), 1);
    }

    #[test]
    fn where_the_tuning_file_is_silent_the_model_speaks() {
        let times = [("ring", 1.0), ("nap", 1.5)];
        let time = |(algorithm, median_us): (&str, f64)| Time {
            algorithm: algorithm.into(),
            median_us,
            p10_us: median_us,
            p90_us: median_us,
            samples: 1,
        };
        let cell = Cell {
            collective: "allreduce".into(),
            nodes: 2,
            ranks_per_node: 4,
            bytes: 8,
            times: times.into_iter().map(time).collect(),
        };
        let mut tuning = Tuning::new("threads");
        tuning.cells.push(cell);
        let tuned = Evidence::of_texts(&texts(None, None), None, false).with_tuning(tuning);
        let decide = |collective, bytes| {
            let problem = Problem::new(collective, Topology::regular(2, 4).unwrap());
            tuned.choose(1, &problem, bytes, ABLE).unwrap()
        };
        assert_eq!(decide(Collective::Allreduce, 8).algorithm, "ring");
        assert_eq!(decide(Collective::Allreduce, 8).why, "the tuning file (1 cell): 1.00 us; runner-up nap, 50 % more");
        for (collective, bytes) in [(Collective::Allreduce, 1 << 20), (Collective::Allgather, 8)] {
            assert!(decide(collective, bytes).why.starts_with("the model of generic: "));
        }
    }

    /// Measured: two ranks exchange whole vectors up to half a megabyte, and cut longer ones.
    #[test]
    fn on_two_ranks_vectors_are_cut_where_measurements_say() {
        for machine in ["threads", "generic"] {
            let evidence = Evidence::of_machine(Machine::shipped(machine).unwrap());
            let steps = |collective, bytes| {
                let problem = Problem::new(collective, Topology::flat(2).unwrap());
                let name = evidence.decide(&problem, bytes).unwrap().algorithm;
                Choice::parse(collective, &name).unwrap().prepare(&problem).unwrap().cost().steps
            };
            assert_eq!([8, 512, 4096, 32768, 262_144].map(|bytes| steps(Collective::Allreduce, bytes)), [1; 5]);
            assert_eq!(steps(Collective::Allreduce, 2 << 20), 2);
            assert_eq!([8, 4096, 1 << 20].map(|bytes| steps(Collective::Bcast, bytes)), [1; 3]);
        }
    }

    #[test]
    fn what_memory_could_serve_is_left_alone_where_there_is_none() {
        let evidence = Evidence::of_machine(Machine::shipped("generic").unwrap());
        let problem = Problem::new(Collective::Barrier, Topology::regular(1, 8).unwrap());
        let decide =
            |number, shares| evidence.choose(number, &problem, 0, Abilities { library: false, shares }).unwrap();
        assert!(decide(1, true).algorithm.contains("local=shared"));
        let without = decide(2, false);
        assert!(without.best.iter().all(|(name, _)| !name.contains("local=shared")), "{without:?}");
    }

    fn topologies() -> impl Strategy<Value = Topology> {
        let uneven = prop::collection::vec(1usize..6, 1..6).prop_map(|sizes| Topology::uneven(&sizes).unwrap());
        let dealt = (1usize..5, 1usize..5).prop_map(|(nodes, ranks)| Topology::regular(nodes, ranks).unwrap().cyclic());
        let nested = (1usize..4, 1usize..3, 1usize..4).prop_map(|(a, b, c)| Topology::nested(&[a, b, c]).unwrap());
        prop_oneof![(1usize..20).prop_map(|ranks| Topology::flat(ranks).unwrap()), uneven, dealt, nested]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(150))]

        #[test]
        fn a_choice_serves_and_is_the_same_whoever_asks(
            topology in topologies(),
            collective in 0..Collective::ALL.len(),
            (commutative, identical, shares) in any::<(bool, bool, bool)>(),
            (bytes, root) in (0usize..1 << 22, any::<prop::sample::Index>()),
        ) {
            let collective = Collective::ALL[collective];
            let root = if collective.rooted() { root.index(topology.ranks()) } else { 0 };
            let problem = Problem::new(collective, topology).with_root(root).unwrap();
            let problem = problem.with_reduction(Reduction { commutative, identical });
            let decide = || {
                let evidence = Evidence::of_texts(&Texts::default(), None, false);
                let able = Abilities { library: false, shares };
                let first = evidence.choose(7, &problem, bytes, able).unwrap();
                assert_eq!(first, evidence.choose(7, &problem, bytes, able).unwrap());
                first
            };
            let decision = decide();
            let prepared = Choice::parse(collective, &decision.algorithm).unwrap().prepare(&problem);
            prop_assert!(prepared.is_ok_and(|prepared| shares || !prepared.shares()), "{:?}", decision);
            prop_assert!(decision.best.is_sorted_by(|one, other| one.1 <= other.1), "{:?}", decision);
            prop_assert_eq!(decide(), decision);
        }
    }
}
