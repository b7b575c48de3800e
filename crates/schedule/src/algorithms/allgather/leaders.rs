//! Through leaders: each group gathers on its leader, the leaders allgather, each leader passes everything on.
//! One group a region is the hierarchical allgather (Träff 2006); n groups, the multi-leader one (Kandalla et al. 2009).
//!
//! ```text
//! 2x4, hierarchical   gather on 0 and 4: 1->0 3->2, 2->0 ...   leaders 0<->4   pass on: 0->2, 0->1 2->3 ...
//! ```
//!
//! Gathering and passing on use one binomial tree; on the way down a rank is not sent what it sent up, so each block
//! reaches each rank once.
//!
//! With `local=shared` nobody but the leaders sends: ranks copy in, each leader exchanges its group's blocks with the
//! leaders of the same place in other regions, all copy out. Leaders of one region need not talk. With as many leaders as
//! ranks this is the multi-lane allgather.
//!
//! 2 ceil(log2 q) near steps, ceil(log2 G) steps among G leaders · any shape · most ranks idle while leaders talk ·
//! shared: ceil(log2 R) steps, two meetings

use std::ops::Range;

use super::lanes::bruck;
use super::windows;
use crate::algorithms::binomial::{self, Edge};
use crate::algorithms::node::{LOCAL, Movement, Region, either_way, gather_shared, shared, uses_memory};
use crate::algorithms::seats::{LEVEL, output_of, placing_seats, push_output_of};
use crate::compose::{abreast, embed, placing};
use crate::math::{ceil_log, part, part_of, worth_trying};
use crate::registry::{Cost, Make1, Parameter, Parameters, Recipe};
use crate::{Problem, Result, Round, Topology};

pub(crate) const HIERARCHICAL: &[Parameter] = &[LEVEL, LOCAL];
pub(crate) const MULTI_LEADER: &[Parameter] = &[
    Parameter { name: "leaders", values: "1..=ranks of the largest region: leaders in each region", default: "2" },
    LEVEL,
    LOCAL,
];

/// The machine cut into groups, each a run of seats whose first seat is the leader's.
pub(crate) struct Groups {
    pub(crate) topology: Topology,
    pub(crate) level: usize,
    pub(crate) leaders: usize,
    /// The number of the first group of each region; empty where every region has all its leaders.
    first: Vec<usize>,
}

impl Groups {
    /// `leaders` in each region, or as many as it has ranks.
    pub(crate) fn new(topology: &Topology, level: usize, leaders: usize) -> Groups {
        let mut first = Vec::new();
        if topology.region_sizes(level).0 < leaders {
            let mut next = 0;
            for region in 0..topology.regions(level) {
                first.push(next);
                next += leaders.min(topology.region(level, region).len());
            }
            first.push(next);
        }
        Groups { topology: topology.clone(), level, leaders, first }
    }

    pub(crate) fn count(&self) -> usize {
        self.first.last().copied().unwrap_or(self.topology.regions(self.level) * self.leaders)
    }

    /// The group in which a seat lies.
    pub(crate) fn of_seat(&self, seat: usize) -> usize {
        let region = self.topology.region_of_seat(self.level, seat);
        let seats = self.topology.region(self.level, region);
        self.first_of(region) + part_of(seats.len(), self.leaders.min(seats.len()), seat - seats.start)
    }

    /// The seats of a group.
    pub(crate) fn seats(&self, group: usize) -> Range<usize> {
        let start = self.start(group);
        start..self.start(group + 1)
    }

    /// The first seat of a group; one past the last seat for the group after the last.
    fn start(&self, group: usize) -> usize {
        if group >= self.count() {
            return self.topology.ranks();
        }
        let region = self.region_of(group);
        let seats = self.topology.region(self.level, region);
        seats.start + part(seats.len(), self.leaders.min(seats.len()), group - self.first_of(region)).0
    }

    /// The region of which a group is part.
    pub(crate) fn region_of(&self, group: usize) -> usize {
        if self.first.is_empty() {
            group / self.leaders
        } else {
            self.first.partition_point(|&first| first <= group) - 1
        }
    }

    pub(crate) fn leader(&self, group: usize) -> usize {
        self.topology.rank_at(self.start(group))
    }

    fn first_of(&self, region: usize) -> usize {
        self.first.get(region).copied().unwrap_or(region * self.leaders)
    }
}

pub(crate) fn hierarchical(problem: &Problem, parameters: &Parameters) -> Result<Recipe> {
    allgather(problem, parameters, Groups::new(&problem.topology, parameters.level(problem)?, 1))
}

pub(crate) fn multi_leader(problem: &Problem, parameters: &Parameters) -> Result<Recipe> {
    let level = parameters.level(problem)?;
    let leaders = leaders(problem, parameters, level)?;
    allgather(problem, parameters, Groups::new(&problem.topology, level, leaders))
}

fn allgather(problem: &Problem, parameters: &Parameters, groups: Groups) -> Result<Recipe> {
    let p = problem.ranks();
    if shared(parameters)? {
        return Ok(Recipe { blocks: p, make: Box::new(move |rank| through_memory(&groups, p, rank)) });
    }
    Ok(Movement::Messages(movement(groups)).allgather(problem))
}

/// How many leaders a region has: two unless said otherwise.
pub(crate) fn leaders(problem: &Problem, parameters: &Parameters, level: usize) -> Result<usize> {
    let largest = problem.topology.region_sizes(level).1;
    Ok(parameters.number("leaders", 1..=largest)?.unwrap_or(2.min(largest)))
}

fn movement(groups: Groups) -> Make1 {
    Box::new(move |rank| {
        let topology = &groups.topology;
        let seat = topology.seat_of(rank);
        let group = groups.of_seat(seat);
        let seats = groups.seats(group);
        let (size, me) = (seats.len(), seat - seats.start);
        let member = |index: usize| topology.rank_at(seats.start + index);
        let across = |subtree: &Range<usize>| seats.start + subtree.start..seats.start + subtree.end;

        let up = |round: &mut Round, Edge { child, parent, subtree }: Edge| {
            let blocks = output_of(topology, &[across(&subtree)]);
            if me == child { round.send(member(parent), blocks) } else { round.recv(member(child), blocks, None) }
        };
        let down = |round: &mut Round, Edge { child, parent, subtree }: Edge| {
            let known = across(&subtree);
            let blocks = output_of(topology, &[0..known.start, known.end..topology.ranks()]);
            if me == child { round.recv(member(parent), blocks, None) } else { round.send(member(child), blocks) }
        };
        let count = groups.count();
        let mut among = bruck(2, count, group);
        if me > 0 {
            among.fill(Round::default());
        }
        let place = placing_seats(topology, |of| groups.start(of.start)..groups.start(of.end));

        let mut rounds = tree_rounds(size, me, up);
        rounds.extend(embed(among, |group| groups.leader(group), place));
        rounds.extend(tree_rounds(size, me, down).into_iter().rev());
        rounds.retain(|round| !round.is_empty());
        rounds
    })
}

/// Copy-in, the lanes of the leaders, copy-out.
fn through_memory(groups: &Groups, p: usize, rank: usize) -> Vec<Round> {
    let topology = &groups.topology;
    let region = Region::new(topology, groups.level, rank);
    let mut rounds = Vec::new();
    // Where every rank is a leader and sends its own block, nobody need wait for another's.
    let gathers = groups.leaders < region.size;
    if gathers {
        region.meet(&mut rounds);
    }
    rounds.extend(across(groups, 2, rank));
    if topology.regions(groups.level) > 1 || !gathers {
        region.meet(&mut rounds);
    }
    gather_shared(&region, rounds, p, rank)
}

/// The allgathers of the lanes that a leader serves; a lane is the groups of one place in all regions. Where a region has
/// fewer groups than others, its leaders serve several lanes and contribute nothing to those they have no group for.
pub(crate) fn across(groups: &Groups, radix: usize, rank: usize) -> Vec<Round> {
    let Groups { topology, level, leaders, .. } = groups;
    let region = topology.region_of(*level, rank);
    let group = groups.of_seat(topology.seat_of(rank));
    if groups.leader(group) != rank {
        return Vec::new();
    }
    let regions = topology.regions(*level);
    let count = |region: usize| topology.region(*level, region).len().min(*leaders);
    let lane = |lane: usize| {
        let server = |region: usize| groups.leader(groups.first_of(region) + lane % count(region));
        let place = placing(|regions: Range<usize>, spans| {
            for region in regions.filter(|&region| lane < count(region)) {
                push_output_of(topology, groups.seats(groups.first_of(region) + lane), spans);
            }
        });
        embed(bruck(radix, regions, region), server, place)
    };
    abreast((group - groups.first_of(region)..*leaders).step_by(count(region)).map(lane))
}

/// One round for each bit of the group's binomial tree, nearest first.
fn tree_rounds(size: usize, me: usize, talk: impl Fn(&mut Round, Edge)) -> Vec<Round> {
    let one = |bit| {
        let mut round = Round::default();
        if let Some(edge) = binomial::edge(size, me, bit) {
            talk(&mut round, edge);
        }
        round
    };
    (0..ceil_log(2, size)).map(one).collect()
}

/// By the largest group; exact where all groups are of one size and that is a power of two.
pub(crate) fn hierarchical_cost(problem: &Problem, parameters: &Parameters) -> Cost {
    let level = parameters.level(problem).unwrap_or(1);
    if uses_memory(parameters) { across_cost(problem, level, 1, 2) } else { cost(problem, level, 1) }
}

pub(crate) fn multi_leader_cost(problem: &Problem, parameters: &Parameters) -> Cost {
    let level = parameters.level(problem).unwrap_or(1);
    let leaders = leaders(problem, parameters, level).unwrap_or(1);
    if uses_memory(parameters) { across_cost(problem, level, leaders, 2) } else { cost(problem, level, leaders) }
}

/// What a leader sends along its lanes; exact where all regions are of one size.
pub(crate) fn across_cost(problem: &Problem, level: usize, leaders: usize, radix: usize) -> Cost {
    let regions = problem.topology.regions(level);
    let (smallest, largest) = problem.topology.region_sizes(level);
    let served = leaders.div_ceil(leaders.min(smallest));
    let far = windows::cost(regions, &windows::multiplying(regions, radix));
    let cost = Cost::exact(far.steps, far.messages * served, (regions - 1) * served * largest.div_ceil(leaders));
    if smallest == largest { cost } else { cost.roughly() }
}

fn cost(problem: &Problem, level: usize, leaders: usize) -> Cost {
    let p = problem.ranks();
    let groups = Groups::new(&problem.topology, level, leaders);
    let (smallest, largest) = problem.topology.region_sizes(level);
    let size = largest.div_ceil(leaders);
    let (near, far) = (ceil_log(2, size), ceil_log(2, groups.count()));
    // Down: to each child everything but the child's subtree. Up, a leader sends nothing.
    let down: usize = (0..near).map(|bit| p - (1 << bit).min(size - (1 << bit))).sum();
    let exact = Cost::exact(2 * near + far, near + far, (groups.count() - 1) * size + down);
    if smallest == largest && largest == size * leaders && (far > 0 || size.is_power_of_two()) {
        exact
    } else {
        exact.roughly()
    }
}

/// Every number of leaders, at every level; in the memory of one region it hardly matters how many there are.
pub(crate) fn multi_leader_variants(problem: &Problem) -> Vec<String> {
    let mut variants = vec![String::new(), "local=shared".into()];
    for level in 1..=problem.topology.depth() {
        let (largest, regions) = (problem.topology.region_sizes(level).1, problem.topology.regions(level));
        for leaders in worth_trying(1..=largest) {
            let setting = format!("leaders={leaders}:level={level}");
            match regions > 1 || leaders == 1 || leaders == largest {
                true => variants.extend(either_way(vec![setting])),
                false => variants.push(setting),
            }
        }
    }
    variants
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_runs_of_seats_that_cover_the_machine() {
        for shape in ["5", "19", "4x4", "3x7", "3,5,4", "1,8,2", "2x2x3"] {
            let topology: Topology = shape.parse().unwrap();
            for level in 1..=topology.depth().max(1) {
                for leaders in 1..=topology.region_sizes(level).1 {
                    let groups = Groups::new(&topology, level, leaders);
                    let mut next = 0;
                    for group in 0..groups.count() {
                        let seats = groups.seats(group);
                        assert_eq!(seats.start, next, "{shape} level {level} leaders {leaders}");
                        assert!(!seats.is_empty() && seats.clone().all(|seat| groups.of_seat(seat) == group));
                        next = seats.end;
                    }
                    assert_eq!(next, topology.ranks());
                }
            }
        }
    }
}
