//! Who serves collectives among neighbours: that is settled once for a graph, whatever sizes come.

use allhands_model::Allowance;
use allhands_schedule::{Choice, Graph, Knowledge, Problem, Result, Topology};

use super::{Abilities, Decision, Evidence};
use crate::server::Server;

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

impl Evidence {
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
}
