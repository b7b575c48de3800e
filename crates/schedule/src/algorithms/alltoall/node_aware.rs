//! Node-aware alltoall: each rank sends what goes to a node to its counterpart there, then the node's ranks sort it out.
//! (Kinkead et al. 2025; the two steps of the multi-lane alltoall of Träff and Hunold.)
//!
//! Where nodes differ in size, local rank l's counterpart on a node of q ranks is local rank l mod q.
//!
//! ```text
//! 2x2, rank 0   far: to 2, its blocks for 2 and 3        near: to 1, what 0 and 2 have for 1
//! ```
//!
//! With `local=shared` what goes to other ranks of the node is laid where they can take it, and the far messages land there.
//!
//! two rounds · R-1 far messages of q blocks, q-1 near ones of R blocks · any shape

use super::direct::own_block;
use super::{Post, pairs, ranks_on};
use crate::algorithms::allreduce::whole::home;
use crate::algorithms::node::{Region, shared, uses_memory};
use crate::registry::{Cost, Parameters, Recipe};
use crate::{Problem, Result, Round, Topology};

pub(crate) fn node_aware(problem: &Problem, parameters: &Parameters) -> Result<Recipe> {
    let p = problem.ranks();
    let level = parameters.level(problem)?;
    let topology = problem.topology.clone();
    let shared = shared(parameters)?;
    let make = move |me| match shared {
        false => rounds(&topology, level, Post::new(p, me), None),
        true => {
            let region = Region::new(&topology, level, me);
            rounds(&topology, level, Post::shared(p, me, &region), Some(region))
        }
    };
    Ok(Recipe { blocks: p * p, make: Box::new(make) })
}

/// With a region, its memory is between.
fn rounds(topology: &Topology, level: usize, post: Post, region: Option<Region>) -> Vec<Round> {
    let me = post.me;
    let (node, seats, l) = home(topology, level, me);
    let q = seats.len();
    let nodes = topology.regions(level);
    let near = ranks_on(topology, seats);
    let members = |node: usize| ranks_on(topology, topology.region(level, node));

    let mut far = own_block(me);
    for other in (1..nodes).map(|ahead| (node + ahead) % nodes) {
        let theirs = members(other);
        far.send(theirs[l % theirs.len()], post.blocks(pairs(&[me], &theirs)));
        for &source in theirs.iter().skip(l).step_by(q) {
            far.recv(source, post.blocks(pairs(&[source], &near)), None);
        }
    }
    // What local rank i of this node has to hand out: its own blocks and those of its counterparts.
    let bundle = |i: usize| -> Vec<usize> {
        let counterparts = |other: usize| {
            if other == node { vec![near[i]] } else { members(other).into_iter().skip(i).step_by(q).collect() }
        };
        (0..nodes).flat_map(counterparts).collect()
    };
    let mut hand_out = Round::default();
    if let Some(region) = region {
        post.copy_in(&mut far, &pairs(&[me], &near).collect::<Vec<_>>());
        let brought: Vec<usize> = (0..q).filter(|&other| other != l).flat_map(bundle).collect();
        post.copy_out(&mut hand_out, &pairs(&brought, &[me]).collect::<Vec<_>>());
        let mut rounds = vec![far];
        region.meet(&mut rounds);
        rounds.push(hand_out);
        rounds.retain(|round| !round.is_empty());
        return rounds;
    }
    for other in (1..q).map(|ahead| (l + ahead) % q) {
        hand_out.send(near[other], post.blocks(pairs(&bundle(l), &[near[other]])));
        hand_out.recv(near[other], post.blocks(pairs(&bundle(other), &[me])), None);
    }
    vec![far, hand_out]
}

pub(crate) fn cost(problem: &Problem, parameters: &Parameters) -> Cost {
    let level = parameters.level(problem).unwrap_or(1);
    let (p, nodes) = (problem.ranks(), problem.topology.regions(level));
    let (smallest, largest) = problem.topology.region_sizes(level);
    if uses_memory(parameters) {
        return Cost::exact(usize::from(nodes > 1), nodes - 1, p - smallest);
    }
    let steps = usize::from(nodes > 1) + usize::from(largest > 1);
    let counterparts = largest.div_ceil(smallest) * (nodes - 1) + 1;
    let cost = Cost::exact(steps, nodes - 1 + largest - 1, p - largest + counterparts * (largest - 1));
    if smallest == largest { cost } else { Cost { blocks: p + counterparts * largest, ..cost }.roughly() }
}
