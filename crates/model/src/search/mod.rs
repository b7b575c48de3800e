//! The search beyond what is registered: compositions, step by step.
//!
//! Compositions grow by one step at a time from nothing. Of those with the same number of steps, the most promising are kept, by what their steps cost
//! and what is still lacking; of those that leave ranks with the same blocks, the cheapest. A wider search follows, twice as wide, until there is nothing more to
//! see or no time left. What is complete is simulated if it is among the best by its estimate, and the best are
//! changed, step by step, for as long as that helps.

mod moves;
mod steps_cost;

use std::collections::{HashMap, HashSet};

use allhands_schedule::{Algorithm, Choice, Collective, Composition, Grid, Prepared, Problem, Step, algorithms};

use self::moves::{changed, worth_trying};
use self::steps_cost::StepCost;
use crate::simulate::Simulator;
use crate::{Allowance, Amount, Machine, Ranked, Result};

/// What a search has found, and what it looked at.
#[derive(Clone, Debug)]
pub struct Found {
    /// The best compositions, best first.
    pub best: Vec<Ranked>,
    /// How many compositions were looked at, most of them unfinished.
    pub seen: usize,
    /// How many were complete.
    pub complete: usize,
    /// How many were simulated.
    pub simulated: usize,
    /// Whether nothing was left out of the last search, for want of width: every composition of the steps that are tried was looked at.
    pub exhausted: bool,
}

/// Looks for the steps of `composed`, and of `composed-sums`, that serve a problem best, until `go_on` says no, which is told how wide the
/// search is. Nothing is found for
/// collectives that have no compositions, or where regions differ in size.
///
/// ```
/// use allhands_model::{Allowance, Amount, Machine, best_choices, search_compositions};
/// use allhands_schedule::{Collective, Problem, Topology};
/// let problem = Problem::new(Collective::Allgather, Topology::regular(4, 4)?);
/// let (machine, amount) = (Machine::shipped("lassen")?, Amount::bytes(8));
/// let messages = Allowance { shares: false, memory: None };
/// let found = search_compositions(&problem, amount, &machine, messages, &mut |width| width < 100)?;
/// let registered = best_choices(&problem, amount, &machine, messages)?;
/// assert!(found.best[0].seconds <= registered[0].seconds);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn search_compositions(
    problem: &Problem,
    amount: Amount,
    machine: &Machine,
    allowance: Allowance,
    go_on: &mut dyn FnMut(usize) -> bool,
) -> Result<Found> {
    machine.check()?;
    let mut search = Search {
        problem,
        amount,
        machine,
        allowance,
        times: HashMap::new(),
        seen: 0,
        complete: HashSet::new(),
        exhausted: true,
    };
    search.simulate_registered();
    let mut width = FIRST_WIDTH;
    loop {
        search.exhausted = true;
        for kind in search.kinds() {
            search.widen(&kind, width, go_on);
        }
        search.improve(width, go_on);
        width *= 2;
        if search.exhausted || !go_on(width) {
            return Ok(search.found());
        }
    }
}

/// How many of one number of steps are kept in the first search.
const FIRST_WIDTH: usize = 48;
/// Of the complete ones of a search, so many are simulated: of few ranks more than of many.
fn simulated(ranks: usize) -> usize {
    (1 << 13) / ranks.clamp(1 << 5, 1 << 9)
}

/// So many are changed for as long as that helps.
const IMPROVED: usize = 3;
/// No more are shown.
const SHOWN: usize = 8;
/// Compositions of more steps are not looked for.
const MOST_STEPS: usize = 24;

struct Search<'a> {
    problem: &'a Problem,
    amount: Amount,
    machine: &'a Machine,
    allowance: Allowance,
    /// Of what was simulated.
    times: HashMap<Choice, f64>,
    seen: usize,
    complete: HashSet<String>,
    exhausted: bool,
}

/// An algorithm whose steps are looked for.
struct KindOfSteps {
    name: &'static str,
    shares: bool,
    sums: bool,
    grid: Grid,
}

/// A composition in the making.
struct Partial {
    composition: Composition,
    seconds: f64,
    /// With what is lacking, at least.
    promise: f64,
}

impl Search<'_> {
    fn kinds(&self) -> Vec<KindOfSteps> {
        let collective = self.problem.collective.family();
        let named: &[(&str, bool)] = match collective {
            Collective::Allgather | Collective::ReduceScatter | Collective::Barrier => &[("composed", false)],
            Collective::Allreduce => &[("composed", false), ("composed-sums", true)],
            _ => &[],
        };
        let mut kinds = Vec::new();
        for (&(name, sums), shares) in named.iter().flat_map(|named| [(named, false), (named, true)]) {
            let topology = &self.problem.topology;
            let able = !shares || (self.allowance.shares && topology.depth() > 0 && topology.region_sizes(1).1 > 1);
            if !able || self.prepared(name, shares, "").is_none() {
                continue;
            }
            let grid = match topology.depth() {
                0 => Grid { regions: self.problem.ranks(), seats: 1 },
                _ => Grid { regions: topology.regions(1), seats: topology.region_sizes(1).1 },
            };
            kinds.push(KindOfSteps { name, shares, sums, grid });
        }
        kinds
    }

    fn prepared(&self, name: &str, shares: bool, setting: &str) -> Option<Prepared> {
        let steps = if setting.is_empty() { String::new() } else { format!(":steps={setting}") };
        let local = if shares { ":local=shared" } else { "" };
        Choice::parse(self.problem.collective, &format!("{name}{steps}{local}")).ok()?.prepare(self.problem).ok()
    }

    /// What is known to be good to begin with.
    fn simulate_registered(&mut self) {
        let composed = |algorithm: &&Algorithm| algorithm.name.starts_with("composed");
        for algorithm in algorithms(self.problem.collective).filter(composed) {
            for choice in Choice::variants(algorithm, self.problem) {
                choice.prepare(self.problem).ok().and_then(|prepared| self.simulate(&prepared));
            }
        }
    }

    /// Step after step, the most promising of each number of steps; the best of the complete are simulated.
    fn widen(&mut self, kind: &KindOfSteps, width: usize, go_on: &mut dyn FnMut(usize) -> bool) {
        let cost = StepCost::new(self.problem, self.amount, self.machine, kind.grid, kind.sums);
        let steps = worth_trying(kind.grid, kind.shares, kind.sums);
        let first =
            if kind.sums { Composition::of_sums(kind.grid) } else { Composition::of_blocks(kind.grid, kind.shares) };
        let mut open = vec![Partial { composition: first, seconds: 0.0, promise: 0.0 }];
        let mut complete: Vec<(f64, String)> = Vec::new();
        let mut known: HashMap<u64, f64> = HashMap::new();
        let mut best = f64::INFINITY;
        for _ in 0..MOST_STEPS {
            let mut next: HashMap<u64, Partial> = HashMap::new();
            for (partial, step) in open.iter().flat_map(|partial| steps.iter().map(move |step| (partial, step))) {
                if let Some(grown) = self.grown(partial, step, &cost).filter(|grown| grown.promise < WORSE * best) {
                    if grown.composition.lacking() == 0 {
                        best = best.min(grown.seconds);
                        complete.push((grown.seconds, grown.composition.setting()));
                        continue;
                    }
                    let state = grown.composition.fingerprint();
                    let cheaper = |known: Option<f64>| known.is_none_or(|known| grown.seconds < known);
                    if cheaper(known.get(&state).copied()) && cheaper(next.get(&state).map(|other| other.seconds)) {
                        next.insert(state, grown);
                    }
                }
            }
            open = next.into_values().collect();
            open.sort_by(|one, other| {
                one.promise
                    .total_cmp(&other.promise)
                    .then_with(|| one.composition.steps().cmp(other.composition.steps()))
            });
            self.exhausted &= open.len() <= width;
            open.truncate(width);
            known.extend(open.iter().map(|partial| (partial.composition.fingerprint(), partial.seconds)));
            if open.is_empty() || !go_on(width) {
                self.exhausted &= open.is_empty();
                break;
            }
        }
        complete.sort_by(|one, other| one.0.total_cmp(&other.0).then_with(|| one.1.cmp(&other.1)));
        self.complete.extend(complete.iter().map(|(_, steps)| steps.clone()));
        for (_, steps) in complete.iter().take(simulated(self.problem.ranks())) {
            if let Some(prepared) = self.prepared(kind.name, kind.shares, steps) {
                self.simulate(&prepared);
            }
        }
    }

    fn grown(&mut self, partial: &Partial, step: &Step, cost: &StepCost<'_>) -> Option<Partial> {
        let mut composition = partial.composition.clone();
        let lacking = composition.lacking();
        let before = composition.fingerprint();
        let messages = composition.then(step).ok()?;
        self.seen += 1;
        // A step that changes nothing is none.
        if composition.lacking() == lacking && composition.fingerprint() == before {
            return None;
        }
        let seconds = partial.seconds + cost.step(step, &messages);
        let promise = seconds + cost.rest(&composition);
        Some(Partial { composition, seconds, promise })
    }

    fn simulate(&mut self, prepared: &Prepared) -> Option<f64> {
        let choice = prepared.choice()?;
        if let Some(known) = self.times.get(choice) {
            return Some(*known);
        }
        if !self.allowance.permits(prepared, self.amount) {
            return None;
        }
        let seconds = Simulator::new(prepared).run(self.machine, self.amount).ok()?.seconds;
        self.times.insert(choice.clone(), seconds);
        Some(seconds)
    }

    /// Changes the steps of the best, one by one, for as long as that helps.
    fn improve(&mut self, width: usize, go_on: &mut dyn FnMut(usize) -> bool) {
        let mut ranked = self.ranked();
        ranked.dedup_by(|one, other| one.seconds == other.seconds);
        for Ranked { mut choice, mut seconds, .. } in ranked.into_iter().take(IMPROVED) {
            let mut open = changed(&choice).into_iter();
            while let Some(other) = open.next().filter(|_| go_on(width)) {
                if self.times.contains_key(&other) {
                    continue;
                }
                let time = other.prepare(self.problem).ok().and_then(|prepared| self.simulate(&prepared));
                if let Some(time) = time.filter(|time| *time < seconds) {
                    (choice, seconds) = (other, time);
                    open = changed(&choice).into_iter();
                }
            }
        }
    }

    fn ranked(&self) -> Vec<Ranked> {
        let mut ranked: Vec<Ranked> = (self.times.iter())
            .map(|(choice, seconds)| Ranked { choice: choice.clone(), seconds: *seconds, simulated: true })
            .collect();
        ranked.sort_by_cached_key(|ranked| (ranked.choice.to_string().len(), ranked.choice.to_string()));
        ranked.sort_by(|one, other| one.seconds.total_cmp(&other.seconds));
        ranked
    }

    fn found(self) -> Found {
        let mut best = self.ranked();
        let simulated = best.len();
        best.truncate(SHOWN);
        Found { best, seen: self.seen, complete: self.complete.len(), simulated, exhausted: self.exhausted }
    }
}

/// What costs so much more than the best that is complete is not followed: estimates of steps see nobody wait, nor anybody go ahead.
const WORSE: f64 = 1.5;
