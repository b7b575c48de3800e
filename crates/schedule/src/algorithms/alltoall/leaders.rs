//! Through leaders: each group's leader collects all that its ranks have to send, the leaders exchange, each hands out.
//! One leader a region: hierarchical; n: multi-leader. (Träff 2006; Kinkead et al. 2025 for alltoall.)
//!
//! ```text
//! 2x2   1->0 3->2 everything    0<->2 what goes to the other node    0->1 2->3 everything
//! ```
//!
//! With `local=shared` only the leaders send, and only to those of other regions: the rest is copied in and out.
//!
//! three rounds · G-1 far messages from a leader, of (group size)² blocks · any shape · leaders carry q times the data

use std::ops::Range;

use super::direct::own_block;
use super::{Post, pairs, ranks_on};
use crate::algorithms::allgather::leaders::{Groups, leaders};
use crate::algorithms::allreduce::whole::home;
use crate::algorithms::node::{Region, shared, uses_memory};
use crate::registry::{Cost, Parameters, Recipe};
use crate::{Problem, Result, Round};

pub(crate) fn hierarchical(problem: &Problem, parameters: &Parameters) -> Result<Recipe> {
    recipe(problem, parameters, Groups::new(&problem.topology, parameters.level(problem)?, 1))
}

pub(crate) fn multi_leader(problem: &Problem, parameters: &Parameters) -> Result<Recipe> {
    let level = parameters.level(problem)?;
    recipe(problem, parameters, Groups::new(&problem.topology, level, leaders(problem, parameters, level)?))
}

fn recipe(problem: &Problem, parameters: &Parameters, groups: Groups) -> Result<Recipe> {
    let p = problem.ranks();
    let rounds = if shared(parameters)? { through_memory } else { rounds };
    Ok(Recipe { blocks: p * p, make: Box::new(move |me| rounds(p, &groups, me)) })
}

/// Members lay out all they have, leaders what is for their region; leaders exchange with those of other regions.
fn through_memory(p: usize, groups: &Groups, me: usize) -> Vec<Round> {
    let topology = &groups.topology;
    let region = Region::new(topology, groups.level, me);
    let (home, seats, _) = home(topology, groups.level, me);
    let group = groups.of_seat(topology.seat_of(me));
    let (mine, near, everybody) =
        (ranks_on(topology, groups.seats(group)), ranks_on(topology, seats), ranks_on(topology, 0..p));
    let leads = groups.leader(group) == me;
    let post = Post::shared(p, me, &region);
    let through_memory = if leads { &near } else { &everybody };

    let mut rounds = vec![own_block(me)];
    post.copy_in(&mut rounds[0], &pairs(&[me], through_memory).collect::<Vec<_>>());
    let collects = groups.leaders < region.size;
    if collects {
        region.meet(&mut rounds);
    }
    let mut exchange = Round::default();
    for other in (1..groups.count()).map(|ahead| (group + ahead) % groups.count()).filter(|_| leads) {
        if groups.region_of(other) != home {
            let theirs = ranks_on(topology, groups.seats(other));
            exchange.send(groups.leader(other), post.blocks(pairs(&mine, &theirs)));
            exchange.recv(groups.leader(other), post.blocks(pairs(&theirs, &mine)), None);
        }
    }
    rounds.push(exchange);
    if topology.regions(groups.level) > 1 || !collects {
        region.meet(&mut rounds);
    }
    let mut hand_out = Round::default();
    post.copy_out(&mut hand_out, &pairs(through_memory, &[me]).collect::<Vec<_>>());
    rounds.push(hand_out);
    rounds.retain(|round| !round.is_empty());
    rounds
}

fn rounds(p: usize, groups: &Groups, me: usize) -> Vec<Round> {
    let topology = &groups.topology;
    let on = |seats: Range<usize>| ranks_on(topology, seats);
    let group = groups.of_seat(topology.seat_of(me));
    let (leader, mine, everybody) = (groups.leader(group), on(groups.seats(group)), on(0..p));
    let post = Post::new(p, me);
    let (mut collect, mut exchange, mut hand_out) = (own_block(me), Round::default(), Round::default());
    if me != leader {
        collect.send(leader, post.blocks(pairs(&[me], &everybody)));
        hand_out.recv(leader, post.blocks(pairs(&everybody, &[me])), None);
        return vec![collect, hand_out];
    }
    for &member in mine.iter().filter(|&&member| member != me) {
        collect.recv(member, post.blocks(pairs(&[member], &everybody)), None);
        hand_out.send(member, post.blocks(pairs(&everybody, &[member])));
    }
    for other in (1..groups.count()).map(|ahead| (group + ahead) % groups.count()) {
        let theirs = on(groups.seats(other));
        exchange.send(groups.leader(other), post.blocks(pairs(&mine, &theirs)));
        exchange.recv(groups.leader(other), post.blocks(pairs(&theirs, &mine)), None);
    }
    vec![collect, exchange, hand_out]
}

pub(crate) fn hierarchical_cost(problem: &Problem, parameters: &Parameters) -> Cost {
    cost(problem, parameters, parameters.level(problem).unwrap_or(1), 1)
}

pub(crate) fn multi_leader_cost(problem: &Problem, parameters: &Parameters) -> Cost {
    let level = parameters.level(problem).unwrap_or(1);
    cost(problem, parameters, level, leaders(problem, parameters, level).unwrap_or(1))
}

fn cost(problem: &Problem, parameters: &Parameters, level: usize, leaders: usize) -> Cost {
    let p = problem.ranks();
    let (smallest, largest) = problem.topology.region_sizes(level);
    let (groups, size) = (Groups::new(&problem.topology, level, leaders).count(), largest.div_ceil(leaders));
    if uses_memory(parameters) {
        let far = usize::from(problem.topology.regions(level) > 1);
        let cost = Cost::exact(far, groups - smallest.min(leaders), size * (p - smallest));
        return if smallest == largest { cost } else { cost.roughly() };
    }
    let steps = 2 * usize::from(size > 1) + usize::from(groups > 1);
    let cost = Cost::exact(steps, groups - 1 + size - 1, size * (p - size) + (size - 1) * (p - 1));
    // With two ranks in one group, the member sends as much as the leader.
    if smallest == largest && size * leaders == largest {
        cost
    } else {
        Cost { blocks: size * p + (size - 1) * (p - 1), ..cost }.roughly()
    }
}
