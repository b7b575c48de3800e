//! Where nobody has measured: what the model says, as much longer or shorter as calls took than it says where somebody has, nearby.
//!
//! A model knows what changes with a shape and a size: rounds, ranks beyond a power of two, where protocols change. A measurement knows what the model does not.
//! Times themselves lie on no smooth line between places; by how much the model is wrong about an algorithm nearly does.

use allhands_model::{Amount, Ranked, rank_choices};
use allhands_schedule::{Choice, Problem, Topology};

use super::typical::with_equal_blocks;
use super::{Abilities, Decision, Evidence};
use crate::server::Server;
use crate::tuning::{Near, exp, ln};

/// What was measured in a cell, beside what the model says there.
struct Compared {
    weight: f64,
    /// Algorithms as they are called on the shape in question, and the logarithm of how many times as long as by the model they took.
    wrong: Vec<(Choice, f64)>,
    /// That of how many times as long as the fastest of these the MPI's own took.
    library: Option<f64>,
}

impl Evidence {
    /// The fastest where nothing was measured, from what was measured nearby; none if nothing was.
    pub(super) fn between(&self, problem: &Problem, bytes: usize, able: Abilities) -> Option<Decision> {
        let tuning = self.tuning.as_ref().filter(|_| problem.graph.is_none())?;
        let around = tuning.around(problem.collective, &problem.topology, bytes);
        let compared: Vec<Compared> = around.iter().filter_map(|near| self.compare(problem, near)).collect();
        let weights: f64 = compared.iter().map(|compared| compared.weight).sum();
        let mean = |of: &dyn Fn(&Compared) -> f64| {
            compared.iter().map(|compared| compared.weight * of(compared)).sum::<f64>() / weights
        };
        if compared.is_empty() {
            return None;
        }
        let corrected = |Ranked { choice, seconds, .. }: Ranked| {
            let wrong = mean(&|compared| compared.wrong_about(&choice));
            (Server::Schedule(choice), seconds * 1e6 * exp(wrong))
        };
        let mut best: Vec<(Server, f64)> = self.ranked(problem, bytes, able).into_iter().map(corrected).collect();
        let fastest = best.iter().map(|(_, time)| *time).fold(f64::INFINITY, f64::min);
        if self.calls_library(able) && compared.iter().all(|compared| compared.library.is_some()) {
            best.push((Server::Library, fastest * exp(mean(&|compared| compared.library.unwrap_or(0.0)))));
        }
        Decision::fastest(self.told_by(compared.len()), best)
    }

    /// What was measured in a cell nearby, beside what the model says there; none if it knows no algorithm of this version.
    fn compare(&self, problem: &Problem, Near { cell, weight }: &Near<'_>) -> Option<Compared> {
        let there = (cell.nodes, cell.ranks_per_node);
        let measured = Problem { topology: Topology::regular(there.0, there.1).ok()?, ..with_equal_blocks(problem) };
        let here = (problem.topology.regions(1), problem.topology.region_sizes(1).1);
        let known = cell.known();
        let choices: Vec<Choice> = known.iter().filter_map(|(server, _)| server.choice().cloned()).collect();
        let machine = self.machine_for(&measured.topology);
        let modelled = rank_choices(&measured, Amount::bytes(cell.bytes as u64), &machine, &choices).ok()?;
        let time = |server: &Server| known.iter().find(|(known, _)| known == server).map(|(_, time)| *time);
        let (mut wrong, mut fastest) = (Vec::new(), f64::INFINITY);
        for Ranked { choice, seconds, .. } in modelled {
            let took = time(&Server::Schedule(choice.clone()))?;
            fastest = fastest.min(took);
            let named = carried(&choice, there, here).unwrap_or(choice);
            wrong.push((named, ln(took / (seconds * 1e6))));
        }
        let library = time(&Server::Library).map(|time| ln(time / fastest));
        (!wrong.is_empty()).then_some(Compared { weight: *weight, wrong, library })
    }
}

impl Compared {
    /// By how much the model is wrong about an algorithm: as it is about that one, else about its other settings. What was not measured promised
    /// little: about that it is as wrong as about anything.
    fn wrong_about(&self, choice: &Choice) -> f64 {
        let kind = |choice: &Choice| (choice.algorithm.name, choice.shares());
        let mean = |like: &dyn Fn(&Choice) -> bool| {
            let like: Vec<f64> = self.wrong.iter().filter(|(known, _)| like(known)).map(|(_, wrong)| *wrong).collect();
            (!like.is_empty()).then(|| like.iter().sum::<f64>() / like.len() as f64)
        };
        let known = mean(&|known| known == choice).or_else(|| mean(&|known| kind(known) == kind(choice)));
        known.unwrap_or_else(|| self.wrong.iter().map(|(_, wrong)| *wrong).fold(f64::NEG_INFINITY, f64::max))
    }
}

/// A setting for another shape: its numbers that are those of the shape it was measured on (ranks of a node, all ranks, nodes) become
/// those of the other; one stays one. Other numbers were right for that shape, and say nothing about another.
fn carried(choice: &Choice, from: (usize, usize), to: (usize, usize)) -> Option<Choice> {
    let own = |(nodes, ranks): (usize, usize)| [1, ranks, nodes * ranks, nodes];
    choice.with_numbers(|_, number| Some(own(to)[own(from).iter().position(|known| *known == number)?]))
}

#[cfg(test)]
mod tests;
