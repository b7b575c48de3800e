//! Who is simulated where nobody is named: what a choice would be made from, the best setting of each algorithm. Work is counted, never
//! timed, so that the same question has the same answer: what sends too many messages keeps the estimate that the choice goes by.

use std::collections::BTreeSet;

use allhands_model::{Allowance, Amount, Bound, Estimate, Machine, Noise, Simulator, best_choices};
use allhands_schedule::{Choice, Error, Prepared, Problem, algorithms};

use super::{SimulatedTime, simulated};
use crate::args::shape;

/// Messages that are simulated in all, shared by the sizes: seconds.
const WORK: usize = 1 << 25;

/// An algorithm with its settings, and its time.
pub(super) struct Contender {
    prepared: Prepared,
    kind: String,
    time: Time,
}

enum Time {
    Simulated(Estimate),
    /// In seconds, by a quick estimate.
    Estimated(f64),
}

/// The best setting of every algorithm, with messages and with shared memory, for one of so many sizes.
pub(super) fn all(problem: &Problem, machine: &Machine, bytes: u64, sizes: usize, noise: Noise) -> Vec<Contender> {
    let amount = Amount::bytes(bytes);
    // The search knows neither counts nor roots; what it finds must serve them.
    let typical = Problem { counts: vec![], root: 0, ..problem.clone() };
    let ranked = best_choices(&typical, amount, machine, Allowance::default()).unwrap_or_default();
    let mut left = WORK / sizes.max(1);
    let (mut kinds, mut contenders) = (BTreeSet::new(), Vec::new());
    for ranked in ranked {
        let kind = kind(&ranked.choice);
        let Ok(prepared) = ranked.choice.prepare(problem) else { continue };
        if !kinds.insert(kind.clone()) {
            continue;
        }
        let work = prepared.messages();
        let affordable = work <= left;
        let estimate = affordable.then(|| Simulator::new(&prepared).noise(noise).run(machine, amount).ok()).flatten();
        left -= if affordable { work } else { 0 };
        let time = estimate.map_or(Time::Estimated(ranked.seconds), Time::Simulated);
        contenders.push(Contender { prepared, kind, time });
    }
    contenders
}

/// `nap`, or `nap, shared`: what settings of several sizes have in common.
fn kind(choice: &Choice) -> String {
    format!("{}{}", choice.algorithm.name, if choice.shares() { ", shared" } else { "" })
}

/// The algorithms that no line is about, each with the reason.
pub(super) fn left_out(problem: &Problem, machine: &Machine, lines: &[SimulatedTime]) -> Vec<String> {
    let absent = algorithms(problem.collective).filter(|algorithm| {
        let name = algorithm.name;
        !lines.iter().any(|line| line.kind == name || line.kind == format!("{name}, shared"))
    });
    let why = |name: &str| match Choice::parse(problem.collective, name).and_then(|choice| choice.prepare(problem)) {
        Err(Error::Unservable { needs, .. }) => format!("needs {needs}"),
        Err(Error::NotGuaranteed { property, .. }) => format!("does not promise {property}"),
        Err(Error::Parameter { parameter, .. }) => format!("needs a legal {parameter}"),
        Err(other) => other.to_string(),
        Ok(_) => format!("is not modelled on {}", machine.name),
    };
    absent.map(|algorithm| format!("{} ({})", algorithm.name, why(algorithm.name))).collect()
}

impl Contender {
    /// Its line at a size.
    pub(super) fn line(&self, machine: &Machine, bytes: u64) -> SimulatedTime {
        let Contender { prepared, kind, time } = self;
        let (problem, steps) = (prepared.problem(), Some(prepared.cost().steps));
        let name = prepared.name();
        match time {
            Time::Simulated(estimate) => simulated(problem, (name, kind.clone()), steps, machine, bytes, estimate),
            Time::Estimated(seconds) => SimulatedTime {
                collective: problem.collective.name(),
                machine: machine.name.clone(),
                topology: shape(&problem.topology),
                ranks: problem.ranks(),
                bytes,
                algorithm: name,
                kind: kind.clone(),
                time_us: seconds * 1e6,
                mean_us: None,
                steps,
                far_messages: None,
                ratio_to_best: 1.0,
                bound_us: Bound::new(problem, machine, Amount::bytes(bytes), prepared.shares()).seconds() * 1e6,
                mode: "estimated",
            },
        }
    }
}
