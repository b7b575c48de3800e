//! Node-aware neighbourhoods: what goes from one node to another travels together. (Bienz, Gropp and Olson 2019 for sparse products;
//! Collom, Li and Bienz 2023 for neighbourhood collectives.)
//!
//! ```text
//! 0 and 1 of one node have something for 2 and 3 of another   1->0 for both   0->2 all of it   2->3 what is for 3
//! ```
//!
//! Ranks that have something for another node hand it to one of them, that one sends it to one of those who want something, and that one hands it
//! out. Whoever has, or wants, most is that one, so that most of it stays where it is; where there are several, nodes take turns. A block of an
//! allgather crosses once for all who want it there. With `lanes=n` the ranks of a node are split into n groups that do so each for itself; with as
//! many as it has ranks everybody sends its own. Blocks of at least `straight` units of the counts go to their ranks by themselves.
//!
//! Who sends what to whom follows from the edges between two nodes alone: a rank needs to know those of its own node's ranks.
//!
//! three rounds · one far message for each pair of nodes and lane · any graph

use std::collections::{BTreeMap, HashMap};

use super::{Post, Traffic, sorted};
use crate::algorithms::seats::{STRAIGHT, straight};
use crate::registry::{Cost, Parameter, Parameters, Recipe};
use crate::schedule::blocks_in;
use crate::{Problem, Result, Round, Topology};

pub(crate) const PARAMETERS: &[Parameter] =
    &[Parameter { name: "lanes", values: "1..=ranks of a node", default: "1" }, STRAIGHT];

/// A block on its way from one node to another: whose it is, and who gets it there.
struct Parcel {
    block: usize,
    from: usize,
    to: Vec<usize>,
}

/// All that two ranks of different nodes carry between them.
struct Lane {
    sender: usize,
    receiver: usize,
    parcels: Vec<Parcel>,
}

/// What crosses between nodes.
struct Lanes {
    lanes: Vec<Lane>,
    /// Of each node: which lanes begin there, and which end there.
    begin: Vec<Vec<usize>>,
    end: Vec<Vec<usize>>,
}

impl Lanes {
    fn new(problem: &Problem, traffic: &Traffic, lanes: usize, straight: usize) -> Lanes {
        let topology = &problem.topology;
        let nodes = topology.regions(1);
        // By pair of nodes and lane.
        let mut together: BTreeMap<(usize, usize, usize), Vec<Parcel>> = BTreeMap::new();
        for from in 0..problem.ranks() {
            let home = topology.region_of(1, from);
            for (block, to) in traffic.leaving(from) {
                let mut by_node: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
                for rank in to {
                    by_node.entry(topology.region_of(1, rank)).or_default().push(rank);
                }
                by_node.remove(&home);
                let lane = lane_of(topology, home, from, lanes);
                for (node, to) in by_node {
                    together.entry((home, node, lane)).or_default().push(Parcel { block, from, to });
                }
            }
        }
        // Who sends and who receives does not depend on sizes, of which a rank knows those of what it carries.
        let short = |parcel: &Parcel| problem.block_size(parcel.block) < straight;
        let mut joint = Vec::new();
        for ((home, node, _), parcels) in together {
            let sender = busiest(parcels.iter().map(|parcel| parcel.from), home + node);
            let receiver = busiest(parcels.iter().flat_map(|parcel| parcel.to.iter().copied()), home + node);
            let (short, long): (Vec<_>, Vec<_>) = parcels.into_iter().partition(short);
            joint.extend((!short.is_empty()).then_some(Lane { sender, receiver, parcels: short }));
            let each =
                long.into_iter().flat_map(|Parcel { block, from, to }| to.into_iter().map(move |to| (block, from, to)));
            joint.extend(each.map(|(block, from, receiver)| Lane {
                sender: from,
                receiver,
                parcels: vec![Parcel { block, from, to: vec![receiver] }],
            }));
        }
        // Two ranks have one message.
        let mut lanes: BTreeMap<(usize, usize), Lane> = BTreeMap::new();
        for lane in joint {
            let parcels = lane.parcels;
            let known = lanes.entry((lane.sender, lane.receiver)).or_insert(Lane { parcels: Vec::new(), ..lane });
            known.parcels.extend(parcels);
        }
        let (mut begin, mut end) = (vec![Vec::new(); nodes], vec![Vec::new(); nodes]);
        let lanes: Vec<Lane> = lanes.into_values().collect();
        for (index, lane) in lanes.iter().enumerate() {
            begin[topology.region_of(1, lane.sender)].push(index);
            end[topology.region_of(1, lane.receiver)].push(index);
        }
        Lanes { lanes, begin, end }
    }

    fn beginning(&self, node: usize) -> impl Iterator<Item = &Lane> {
        self.begin[node].iter().map(|&lane| &self.lanes[lane])
    }

    fn ending(&self, node: usize) -> impl Iterator<Item = &Lane> {
        self.end[node].iter().map(|&lane| &self.lanes[lane])
    }

    fn rounds(&self, topology: &Topology, traffic: &Traffic, post: &Post) -> Vec<Round> {
        let me = post.me;
        let node = topology.region_of(1, me);
        let near = |rank: usize| topology.region_of(1, rank) == node;
        // Who of the node collects what of mine, and what I collect.
        let (mut given, mut taken) = (Bundles::default(), Bundles::default());
        for lane in self.beginning(node) {
            for parcel in &lane.parcels {
                match (lane.sender == me, parcel.from == me) {
                    (true, false) => taken.add(parcel.from, parcel.block),
                    (false, true) => given.add(lane.sender, parcel.block),
                    _ => {}
                }
            }
        }
        let collect = message_round(post, given, taken);
        let mut far = Round::default();
        for lane in self.beginning(node).filter(|lane| lane.sender == me) {
            far.send(lane.receiver, post.spans(lane.blocks()));
        }
        for lane in self.ending(node).filter(|lane| lane.receiver == me) {
            far.recv(lane.sender, post.spans(lane.blocks()), None);
        }
        // What never leaves the node is handed out together with what has come.
        let (mut given, mut taken) = (Bundles::default(), Bundles::default());
        for (block, to) in traffic.leaving(me) {
            to.into_iter().filter(|&rank| near(rank)).for_each(|rank| given.add(rank, block));
        }
        for (block, from) in traffic.arriving(me).into_iter().filter(|&(_, from)| near(from)) {
            taken.add(from, block);
        }
        for lane in self.ending(node) {
            for parcel in &lane.parcels {
                match lane.receiver == me {
                    true => {
                        parcel.to.iter().filter(|&&rank| rank != me).for_each(|&rank| given.add(rank, parcel.block))
                    }
                    false if parcel.to.contains(&me) => taken.add(lane.receiver, parcel.block),
                    false => {}
                }
            }
        }
        vec![collect, far, message_round(post, given, taken)]
    }
}

impl Lane {
    /// In the order in which both ends have them.
    fn blocks(&self) -> Vec<usize> {
        sorted(self.parcels.iter().map(|parcel| parcel.block).collect())
    }
}

/// Blocks by the rank that they go to, or come from.
#[derive(Default)]
struct Bundles(BTreeMap<usize, Vec<usize>>);

impl Bundles {
    fn add(&mut self, rank: usize, block: usize) {
        self.0.entry(rank).or_default().push(block);
    }
}

fn message_round(post: &Post, given: Bundles, taken: Bundles) -> Round {
    let mut round = Round::default();
    given.0.into_iter().for_each(|(to, blocks)| round.send(to, post.spans(sorted(blocks))));
    taken.0.into_iter().for_each(|(from, blocks)| round.recv(from, post.spans(sorted(blocks)), None));
    round
}

/// Which lane of its node's a rank uses.
fn lane_of(topology: &Topology, node: usize, rank: usize, lanes: usize) -> usize {
    let seats = topology.region(1, node);
    (topology.seat_of(rank) - seats.start) * lanes.min(seats.len()) / seats.len()
}

/// The rank that comes most often; of several the one whose turn it is.
fn busiest(ranks: impl Iterator<Item = usize>, turn: usize) -> usize {
    let mut times: HashMap<usize, usize> = HashMap::new();
    ranks.for_each(|rank| *times.entry(rank).or_default() += 1);
    let most = times.values().copied().max().unwrap_or(0);
    let busiest = sorted(times.into_iter().filter(|(_, times)| *times == most).map(|(rank, _)| rank).collect());
    busiest[turn % busiest.len()]
}

fn lanes(problem: &Problem, parameters: &Parameters) -> Result<(Traffic, Lanes)> {
    let (_, largest) = problem.topology.region_sizes(1);
    let lanes = parameters.number("lanes", 1..=largest)?.unwrap_or(1);
    let traffic = Traffic::of(problem);
    let lanes = Lanes::new(problem, &traffic, lanes, straight(parameters)?);
    Ok((traffic, lanes))
}

pub(crate) fn node_aware(problem: &Problem, parameters: &Parameters) -> Result<Recipe> {
    let (traffic, lanes) = lanes(problem, parameters)?;
    let (topology, among) = (problem.topology.clone(), traffic.clone());
    Ok(traffic.recipe(problem, move |post| lanes.rounds(&topology, &among, post)))
}

pub(crate) fn cost(problem: &Problem, parameters: &Parameters) -> Cost {
    let Ok((traffic, lanes)) = lanes(problem, parameters) else { return Cost::NOTHING };
    let mut cost = Cost::NOTHING.roughly();
    for rank in 0..problem.ranks() {
        let rounds = lanes.rounds(&problem.topology, &traffic, &traffic.post(rank));
        let sends = || rounds.iter().flat_map(|round| &round.sends);
        cost.messages = cost.messages.max(sends().count());
        cost.blocks = cost.blocks.max(sends().map(|send| blocks_in(&send.spans)).sum());
    }
    Cost { steps: if cost.messages > 0 { 3 } else { 0 }, ..cost }
}

/// One lane, a few, or one for each rank.
pub(crate) fn variants(problem: &Problem) -> Vec<String> {
    let (_, largest) = problem.topology.region_sizes(1);
    let few = [2, largest].into_iter().filter(|&lanes| lanes <= largest && lanes > 1);
    let mut lanes: Vec<usize> = std::iter::once(1).chain(few).collect();
    lanes.dedup();
    lanes.into_iter().map(|lanes| format!("lanes={lanes}")).collect()
}
