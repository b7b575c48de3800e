//! Allreduce of short vectors along an addition chain. (The line algebra is that of Jocksch et al. 2021; that any addition chain
//! gives an allreduce follows from it: their radices and factorisations are the binary and the factor method for such chains.)
//!
//! *Line* n on node i is the reduction over the n nodes i, i+1, ..., i+n-1, around the end. Line a + b is the own line a combined
//! with line b of node i+a. So numbers that ascend from 1 to p, each the sum of two before it, are an allreduce that sends as
//! many vectors as the chain is long, and no other of this kind sends fewer.
//!
//! ```text
//! 23 nodes   2,3,5,10,20,23      the same, ports=2                        2,3,4,7,8,16,23: binary, as cyclic-shift
//! step 1     line 1 from i+1     line 1 from i+1, line 1 from i+2         line 1 from i+1
//!      2     line 1 from i+2     line 2 from i+3                          lines 1 and 2 from i+2
//!      3     line 2 from i+3     line 5 from i+5                          lines 3 and 4 from i+4
//!      4     line 5 from i+5     line 10 from i+10, line 3 from i+20      line 8 from i+8
//!      5     line 10 from i+10                                            line 7 from i+16
//!      6     line 3 from i+20
//! ```
//!
//! A line goes into the first step in which the line it needs from afar was there before; its own part may be made in the same
//! step, as with several ports in the paper. A step asks at most `ports` nodes; lines of one node travel in one message.
//!
//! steps, messages and vectors: as packed (exact where every rank is a node), at least ceil(log_(ports+1) p) steps · any p, or any
//! number of nodes with one rank a node acting · commutative operations only: windows wrap around · each rank combines in an
//! order of its own, so results differ in their last bits · scratch: a vector for each line but the last

use std::collections::{BTreeMap, BTreeSet};

use super::acting::{self, Among, VectorHome};
use super::chains::{shortest, worth_trying};
use super::cyclic_shift::{divisors, short_lines};
use crate::algorithms::node::{LOCAL, REDUCTION, either_way, reduction, shared, uses_memory};
use crate::math::joined;
use crate::registry::{Cost, Parameter, Parameters, Recipe};
use crate::{Combine, InlineVec, Problem, Result, Round, Span};

pub(crate) const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "chain",
        values: "ascending numbers, each the sum of two before it or 1, as in 2,3,5,10,20,23; the last: all ranks, or all nodes",
        default: "a short one to the number of ranks; with local=shared, to that of nodes",
    },
    Parameter { name: "ports", values: "1..=255: from how many others a step receives", default: "1" },
    LOCAL,
    REDUCTION,
];

/// Longer chains are refused: every line takes a vector of scratch.
const MOST_LINES: usize = 255;
/// So many ports are tried.
const PORTS_TRIED: usize = 3;

/// The lines that a step makes, by the distance of the node that sends the rest of them.
type Step = BTreeMap<usize, BTreeSet<usize>>;

/// A chain, packed into steps.
struct Chain {
    lines: Vec<usize>,
    steps: Vec<Step>,
}

impl Chain {
    fn new(lines: Vec<usize>, ports: usize) -> Chain {
        let mut steps: Vec<Step> = Vec::new();
        // After how many steps each line is there.
        let mut made = vec![(1, 0)];
        for &line in &lines {
            let way = |&(own, own_made): &(usize, usize)| {
                let received = made.binary_search_by_key(&(line - own), |known| known.0).ok()?;
                let earliest = own_made.max(made[received].1 + 1);
                let fits = |step: &usize| {
                    let step: Option<&Step> = steps.get(step - 1);
                    step.is_none_or(|step| step.contains_key(&own) || step.len() < ports)
                };
                let step = (earliest..=steps.len().max(earliest)).find(fits).unwrap_or(steps.len() + 1);
                let travels_along = steps.get(step - 1).is_some_and(|step| step.contains_key(&own));
                Some((step, !travels_along, std::cmp::Reverse(own)))
            };
            // Of equals the farthest node: lines of a step then often come from the same.
            let (step, _, own) = made.iter().filter_map(way).min().expect("every line is a sum of two");
            steps.resize_with(steps.len().max(step), Step::new);
            steps[step - 1].entry(own.0).or_default().insert(line);
            made.push((line, step));
        }
        Chain { lines, steps }
    }

    fn nodes(&self) -> usize {
        self.lines.last().copied().unwrap_or(1)
    }

    fn cost(&self) -> Cost {
        Cost::exact(self.steps.len(), self.steps.iter().map(Step::len).sum(), self.lines.len())
    }

    /// One node's rounds. Lines live in scratch, one and all in places of their own.
    fn rounds(
        &self,
        (from, to): (VectorHome, VectorHome),
        node: usize,
        rank_of: &dyn Fn(usize) -> usize,
    ) -> Vec<Round> {
        let nodes = self.nodes();
        let span = |line: usize| {
            let place = match self.lines.binary_search(&line) {
                Err(_) => from,
                Ok(index) if index + 1 == self.lines.len() => to,
                Ok(index) => VectorHome::Line(1 + index),
            };
            place.span(1, 0, 1)
        };
        let round = |step: &Step| {
            let mut round = Round::default();
            for (distance, lines) in step {
                let received: InlineVec<Span> = lines.iter().map(|&line| span(line)).collect();
                round.recv(rank_of((node + distance) % nodes), received, None);
                let sent: InlineVec<Span> = lines.iter().map(|line| span(line - distance)).collect();
                round.send(rank_of((node + nodes - distance) % nodes), sent);
            }
            let mut made: Vec<(usize, usize)> =
                step.iter().flat_map(|(own, lines)| lines.iter().map(move |line| (*line, *own))).collect();
            made.sort_unstable();
            made.into_iter().for_each(|(line, own)| round.combine(span(own), span(line), Combine::Before));
            round
        };
        if self.lines.is_empty() {
            let mut only = Round::default();
            only.copy(from.span(1, 0, 1), to.span(1, 0, 1));
            return vec![only];
        }
        self.steps.iter().map(round).collect()
    }
}

pub(crate) fn addition_chain(problem: &Problem, parameters: &Parameters) -> Result<Recipe> {
    let topology = problem.topology.clone();
    let chain = chain(problem, parameters)?;
    let (shared, reduction) = (shared(parameters)?, reduction(parameters)?);
    let shared = if shared { Some(reduction) } else { None };
    let make = move |rank| {
        let rounds = |places: (VectorHome, VectorHome), node: usize, rank_of: &dyn Fn(usize) -> usize| {
            chain.rounds(places, node, rank_of)
        };
        Among { nodes: chain.nodes(), blocks: 1, rounds: &rounds }.all(&topology, shared, rank)
    };
    Ok(Recipe { blocks: 1, make: Box::new(make) })
}

/// Reads the chain and checks that it is one, to the number of ranks or of nodes.
fn chain(problem: &Problem, parameters: &Parameters) -> Result<Chain> {
    let (p, nodes) = (problem.ranks(), problem.topology.regions(1));
    let ports = parameters.number("ports", 1..=MOST_LINES)?.unwrap_or(1);
    let Some(lines) = parameters.list("chain", 2)? else {
        return Ok(Chain::new(shortest(if uses_memory(parameters) { nodes } else { p }), ports));
    };
    let example = |n: usize| if n > 1 { joined(&shortest(n), "") } else { "none".into() };
    let legal = if nodes > 1 && nodes < p {
        format!("a chain to {p} ranks such as {}, or to {nodes} nodes such as {}", example(p), example(nodes))
    } else {
        format!("a chain to {p} ranks such as {}", example(p))
    };
    let wrong = |fact: String| Err(parameters.wrong("chain", fact, &legal));
    if lines.len() > MOST_LINES {
        return wrong(format!("has more than {MOST_LINES} numbers"));
    }
    let mut known = vec![1];
    for &line in &lines {
        if line <= known[known.len() - 1] {
            return wrong(format!("does not ascend at {line}"));
        }
        if !known.iter().any(|one| known.binary_search(&(line - one)).is_ok()) {
            return wrong(format!("has {line}, which is no sum of two numbers before it"));
        }
        known.push(line);
    }
    let last = known[known.len() - 1];
    if last != p && last != nodes {
        return wrong(format!("ends at {last}"));
    }
    if uses_memory(parameters) && last != nodes {
        let fact = format!("has nothing to do where all {p} ranks act");
        return Err(parameters.wrong("local", fact, format!("messages, or a chain to {nodes} nodes")));
    }
    Ok(Chain::new(lines, ports))
}

/// As packed; exact where every rank is a node.
pub(crate) fn cost(problem: &Problem, parameters: &Parameters) -> Cost {
    let Ok(chain) = chain(problem, parameters) else { return Cost::NOTHING };
    acting::cost(problem, chain.nodes(), 1, uses_memory(parameters), chain.cost())
}

/// For a few ports, the chains of which none is better in steps, messages and vectors together; all ranks, or one a node.
pub(crate) fn variants(problem: &Problem) -> Vec<String> {
    let mut variants = vec![String::new(), "local=shared".into()];
    variants.extend(front(problem.ranks()));
    let nodes = problem.topology.regions(1);
    if nodes > 1 && nodes < problem.ranks() {
        variants.extend(either_way(front(nodes)));
    }
    variants
}

fn front(nodes: usize) -> Vec<String> {
    if nodes < 2 {
        return vec![];
    }
    let mut chains = worth_trying(nodes);
    chains.extend((1..=PORTS_TRIED).map(|ports| short_lines(nodes, ports)));
    for factor in divisors(nodes) {
        let times = |second: Vec<usize>| second.into_iter().map(move |line| factor * line);
        for second in [short_lines(nodes / factor, 1), shortest(nodes / factor)] {
            chains.push(short_lines(factor, 1).into_iter().chain(times(second)).collect());
        }
    }
    chains.sort_unstable();
    chains.dedup();
    let packed = (1..=PORTS_TRIED).flat_map(|ports| {
        chains.iter().map(move |lines| (Chain::new(lines.clone(), ports).cost(), lines.clone(), ports))
    });
    let packed: Vec<(Cost, Vec<usize>, usize)> = packed.collect();
    let key = |cost: &Cost| (cost.steps, cost.messages, cost.blocks);
    let beats = |one: &Cost, other: &Cost| {
        key(one) != key(other)
            && one.steps <= other.steps
            && one.messages <= other.messages
            && one.blocks <= other.blocks
    };
    let mut costs = BTreeSet::new();
    let best = packed.iter().filter(|one| !packed.iter().any(|other| beats(&other.0, &one.0)));
    best.filter(|one| costs.insert(key(&one.0)))
        .map(|(_, lines, ports)| format!("chain={}:ports={ports}", joined(lines, "")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::ceil_log;

    /// What each step receives: from how far, which lines of the sender.
    fn received(lines: &[usize], ports: usize) -> Vec<Vec<(usize, Vec<usize>)>> {
        let chain = Chain::new(lines.to_vec(), ports);
        let port =
            |(distance, lines): (&usize, &BTreeSet<usize>)| (*distance, lines.iter().map(|l| l - distance).collect());
        chain.steps.iter().map(|step| step.iter().map(port).collect()).collect()
    }

    #[test]
    fn the_drawing_is_true() {
        assert_eq!(shortest(23), [2, 3, 5, 10, 20, 23]);
        let one = |distance: usize, line: usize| (distance, vec![line]);
        assert_eq!(
            received(&shortest(23), 1),
            [(1, 1), (2, 1), (3, 2), (5, 5), (10, 10), (20, 3)].map(|(distance, line)| vec![one(distance, line)])
        );
        assert_eq!(
            received(&shortest(23), 2),
            [vec![one(1, 1), one(2, 1)], vec![one(3, 2)], vec![one(5, 5)], vec![one(10, 10), one(20, 3)]]
        );
        assert_eq!(short_lines(23, 1), [2, 3, 4, 7, 8, 16, 23]);
        let binary = [one(1, 1), (2, vec![1, 2]), (4, vec![3, 4]), one(8, 8), one(16, 7)];
        assert_eq!(received(&short_lines(23, 1), 1), binary.map(|port| vec![port]));
    }

    /// The paper's short allreduces, of any radix and any two factors, are chains that cost no more.
    #[test]
    fn radices_and_factorisations_are_chains() {
        for p in 2..=128 {
            for ports in 1..=4 {
                let chain = Chain::new(short_lines(p, ports), ports).cost();
                assert!(chain.steps <= ceil_log(ports + 1, p), "{p} ranks, {ports} ports: {chain:?}");
            }
            for factor in (2..p).filter(|factor| p.is_multiple_of(*factor)) {
                let (first, second) = (short_lines(factor, 1), short_lines(p / factor, 1));
                let product = first.iter().copied().chain(second.iter().map(|line| line * factor)).collect();
                let chain = Chain::new(product, 1).cost();
                let steps = ceil_log(2, factor) + ceil_log(2, p / factor);
                assert!(chain.steps <= steps && chain.messages <= steps, "{p} = {factor} times: {chain:?}");
                assert_eq!(chain.blocks, first.len() + second.len());
            }
        }
    }

    /// Where factors are no help, as with many primes; those of 15, 27 and 39 are as good.
    #[test]
    fn some_numbers_have_shorter_chains_than_their_factors() {
        fn factored(n: usize) -> usize {
            let products =
                (2..n).filter(|factor| n.is_multiple_of(*factor)).map(|factor| factored(factor) + factored(n / factor));
            products.chain([short_lines(n, 1).len()]).min().unwrap_or(0)
        }
        let shorter: Vec<usize> = (2..64).filter(|&n| shortest(n).len() < factored(n)).collect();
        assert_eq!(shorter, [23, 31, 43, 46, 47, 59, 61, 62]);
        assert_eq!([15, 27, 39].map(|n| (shortest(n).len(), factored(n))), [(5, 5), (6, 6), (7, 7)]);
    }
}
