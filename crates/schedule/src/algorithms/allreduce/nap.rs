//! NAP: node-aware allreduce. Every rank of a node speaks to another group of nodes. (Bienz, Olson and Gropp 2019, with
//! the balanced rule that serves every number of nodes.)
//!
//! First an allreduce inside each node. Then nodes are gathered into ever larger groups: a group of N nodes consists of
//! k subgroups that are already complete, and each of its nodes fetches the partial result of every other subgroup, one
//! local rank each, and reduces what came, in the order of the subgroups.
//!
//! ```text
//! 4x4, four subgroups of one node:  rank 9 (node 2, local rank 1) exchanges with rank 6 (node 1, local rank 2);
//!                                   rank 10 (local rank 2 on node 2) is idle and contributes node 2's own value
//! ```
//!
//! - paper's fan: local rank o fetches from subgroup o, local rank m of subgroup m has its own; k <= ppn.
//! - full fan: nobody is idle, local rank l fetches from the l-th other subgroup; k <= ppn + 1. Where the subgroups differ
//!   in size some ranks send two messages. In the node, values are first paired (0 with 1, 2 with 3, ...), the node's own
//!   one by the rank that fetched its partner: so every node brackets them alike.
//!
//! Sizes of subgroups differ by one at most, larger ones first. A node at the end of a larger subgroup has no counterpart
//! in a smaller one and is served by one of its spare ranks. Ranks with nothing to give contribute nothing.
//!
//! With `ports=P` every local rank fetches from P subgroups at once, neighbours in their order, and reduces them before the
//! node does: k <= P ppn with the paper's fan. Past the paper: where far latency is all that counts, 8x4 takes one hop
//! with two ports, not two.
//!
//! With `local=shared` what is fetched lands in shared memory, the node meets, and every rank reduces it in the order of the
//! subgroups: no near messages, no pairs, one meeting a far round.
//!
//! ceil(log_{P ppn} n) far rounds (full fan: ceil(log_{ppn+1} n), the lower bound), P messages each · any shape; the smallest
//! node's size is the fan · ppn = 1 with one port has only the full fan · ordered with sequential placement, identical always

use std::ops::Range;

use super::whole::{Group, Running, home};
use crate::algorithms::node::{LOCAL, Region, either_way, last, shared, uses_memory};
use crate::algorithms::seats::LEVEL;
use crate::math::{ceil_log, part, part_of};
use crate::registry::{Cost, Parameter, Parameters, Recipe};
use crate::{Combine, Problem, Result, Round, Space, Topology};

pub(crate) const PARAMETERS: &[Parameter] = &[
    Parameter { name: "fan", values: "paper: one local rank of each node is idle; full: none is", default: "paper" },
    Parameter {
        name: "ports",
        values: "1..=256, with the paper's fan: from how many nodes a rank fetches at once",
        default: "1",
    },
    LEVEL,
    LOCAL,
];

const MOST_PORTS: usize = 256;

/// A group of nodes that becomes complete in one far round, as one of its nodes sees it.
struct Union {
    first: usize,
    nodes: usize,
    subgroups: usize,
}

/// How the ports of a node's ranks divide the other subgroups among them. Rank l has ports l P, l P + 1, ...
#[derive(Clone, Copy)]
struct Fan {
    full: bool,
    /// How many a rank has.
    ports: usize,
    /// How many every node has: those of as many ranks as the smallest one has.
    width: usize,
}

impl Fan {
    fn new(full: bool, ranks: usize, ports: usize) -> Fan {
        let width = ranks * ports;
        Fan { full: full || width == 1, ports, width }
    }

    fn parse(parameters: &Parameters, ranks: usize) -> Result<Fan> {
        let full = parameters.word("fan", &["paper", "full"])? == "full";
        let ports = parameters.number("ports", 1..=MOST_PORTS)?.unwrap_or(1);
        if full && ports > 1 {
            return Err(parameters.wrong("ports", "is given beside fan=full", "one of the two"));
        }
        Ok(Fan::new(full, ranks, ports))
    }

    /// The ports of a local rank.
    fn ports_of(self, l: usize) -> Range<usize> {
        l * self.ports..(l + 1) * self.ports
    }

    /// How many subgroups can unite in one round.
    fn base(self) -> usize {
        self.width + usize::from(self.full)
    }

    /// The subgroup that a port of subgroup `m` fetches from, of `k`.
    fn other(self, m: usize, port: usize, k: usize) -> Option<usize> {
        let o = if self.full && port >= m { port + 1 } else { port };
        (o < k && o != m && port < self.width).then_some(o)
    }

    /// The port of subgroup `m` that fetches from subgroup `o`.
    fn server(self, m: usize, o: usize) -> usize {
        if self.full && o > m { o - 1 } else { o }
    }

    /// The t-th port of subgroup `m` that can serve a node without counterpart: idle ones first. Node and port.
    fn spare(self, m: usize, size: usize, k: usize, t: usize) -> (usize, usize) {
        let unused = if self.full { k - 1 } else { k };
        let order = t / size;
        let port = match (self.full, order) {
            (false, 0) => m,
            (false, order) => unused + order - 1,
            (true, order) if order < self.width - unused => unused + order,
            (true, order) => order - (self.width - unused),
        };
        (t % size, port)
    }

    /// The inverse: which spare a port is.
    fn spare_of(self, m: usize, size: usize, k: usize, (node, port): (usize, usize)) -> Option<usize> {
        let unused = if self.full { k - 1 } else { k };
        let order = match self.full {
            false if port == m => 0,
            false => (port + 1).checked_sub(unused).filter(|&order| order > 0)?,
            true if port >= unused => port - unused,
            true => port + self.width - unused,
        };
        (port < self.width).then_some(order * size + node)
    }
}

pub(crate) fn nap(problem: &Problem, parameters: &Parameters) -> Result<Recipe> {
    let level = parameters.level(problem)?;
    let topology = problem.topology.clone();
    let fan = Fan::parse(parameters, topology.region_sizes(level).0)?;
    let rounds = if shared(parameters)? { through_memory } else { rounds };
    Ok(Recipe { blocks: 1, make: Box::new(move |rank| rounds(&topology, level, fan, rank)) })
}

fn through_memory(topology: &Topology, level: usize, fan: Fan, rank: usize) -> Vec<Round> {
    let (node, _, l) = home(topology, level, rank);
    let region = Region::new(topology, level, rank);
    let unions = unions(fan, topology.regions(level), node);
    // Reductions alternate between output and scratch, so that the last one ends in the output.
    let into = |left: usize| if left.is_multiple_of(2) { Space::Output } else { Space::Scratch };
    // Slots of their own for every turn: a slow rank may still read those of the last.
    let slot = |turn: usize, index: usize| region.slot(fan.ports, turn, index);
    let mut running = Running::new();
    if region.size > 1 {
        last(&mut running.rounds).copy(running.value, slot(0, l));
        region.meet(&mut running.rounds);
        running.fold((0..region.size).map(|member| slot(0, member)), into(unions.len()));
    }
    let seat = Seat { topology, level, fan, node, l };
    for (left, union) in unions.iter().enumerate().rev() {
        let (turn, mut round) = (unions.len() - left, Round::default());
        for port in fan.ports_of(l) {
            if let Some((o, from)) = union.exchange(&seat, port, &running, &mut round) {
                round.recv(from, [slot(turn, o)], None);
            }
        }
        running.rounds.push(round);
        region.meet(&mut running.rounds);
        let (m, own) = (union.locate(node).0, running.value);
        let values = (0..union.subgroups).map(|o| if o == m { own } else { slot(turn, o) });
        running.fold(values, into(left));
    }
    let mut rounds = running.finish();
    rounds.retain(|round| !round.is_empty());
    rounds
}

fn rounds(topology: &Topology, level: usize, fan: Fan, rank: usize) -> Vec<Round> {
    let (node, seats, l) = home(topology, level, rank);
    let near = Group { size: seats.len(), me: l, rank_of: &|member| topology.rank_at(seats.start + member) };
    let mut running = Running::new();
    let unions = unions(fan, topology.regions(level), node);
    running.rounds.reserve_exact((2 + ceil_log(2, near.size)) * (1 + unions.len()));
    near.allreduce(&mut running, near.size);
    let seat = Seat { topology, level, fan, node, l };
    for union in unions.into_iter().rev() {
        let mut round = Round::default();
        if fan.ports == 1 {
            union.one_port(&seat, &mut running, &mut round);
        } else {
            union.several_ports(&seat, &mut running, &mut round);
        }
        if round.communicates() {
            running.rounds.push(round);
        }
        match fan.full {
            true => union.meet_in_pairs(fan, node, &near, &mut running),
            false => near.allreduce(&mut running, union.subgroups.div_ceil(fan.ports)),
        }
    }
    running.finish()
}

/// Where a rank sits, and how it reaches others.
struct Seat<'a> {
    topology: &'a Topology,
    level: usize,
    fan: Fan,
    node: usize,
    l: usize,
}

impl Seat<'_> {
    /// Which rank has a port of a node.
    fn rank_of(&self, node: usize, port: usize) -> usize {
        self.topology.rank_at(self.topology.region(self.level, node).start + port / self.fan.ports)
    }
}

/// The unions that a node is part of, largest first; those of a single subgroup left out.
fn unions(fan: Fan, nodes: usize, node: usize) -> Vec<Union> {
    let mut unions = Vec::new();
    let mut union = Union { first: 0, nodes, subgroups: 1 };
    for left in (0..ceil_log(fan.base(), nodes)).rev() {
        let capacity = fan.base().pow(left as u32);
        union.subgroups = union.nodes.div_ceil(capacity);
        let (m, first, size) = union.locate(node);
        debug_assert!(m < union.subgroups);
        let inner = Union { first, nodes: size, subgroups: 1 };
        if union.subgroups > 1 {
            unions.push(union);
        }
        union = inner;
    }
    unions
}

impl Union {
    /// The first node and size of subgroup `m`.
    fn subgroup(&self, m: usize) -> (usize, usize) {
        let (offset, size) = part(self.nodes, self.subgroups, m);
        (self.first + offset, size)
    }

    /// The subgroup of a node, with its first node and size.
    fn locate(&self, node: usize) -> (usize, usize, usize) {
        let m = part_of(self.nodes, self.subgroups, node - self.first);
        let (first, size) = self.subgroup(m);
        (m, first, size)
    }

    /// What a rank with one port does far away: it combines what it fetches with its own, if the two belong together.
    fn one_port(&self, seat: &Seat<'_>, running: &mut Running, round: &mut Round) {
        if let Some((o, from)) = self.exchange(seat, seat.l, running, round) {
            let m = self.locate(seat.node).0;
            match Bunch::of(o, self.subgroups).joined_on_arrival(seat.fan, m, o) {
                Some(how) => running.combine(round, from, how),
                None => running.replace(round, from),
            }
        }
    }

    /// What a rank with several ports does far away: it reduces what they fetch, its own among it if that is where it belongs.
    fn several_ports(&self, seat: &Seat<'_>, running: &mut Running, round: &mut Round) {
        let m = self.locate(seat.node).0;
        let mut sources = Vec::new();
        for port in seat.fan.ports_of(seat.l) {
            match self.exchange(seat, port, running, round) {
                Some((_, from)) => sources.push(Some(from)),
                None if port == m => sources.push(None),
                None => {}
            }
        }
        if sources.iter().any(Option::is_some) {
            running.gather(round, &sources);
        }
    }

    /// What a port sends; and from which subgroup and rank it fetches.
    fn exchange(&self, seat: &Seat<'_>, port: usize, running: &Running, round: &mut Round) -> Option<(usize, usize)> {
        let (k, fan) = (self.subgroups, seat.fan);
        let (m, first, size) = self.locate(seat.node);
        let position = seat.node - first;
        let larger = self.nodes % k;
        let other = fan.other(m, port, k);
        if let Some(o) = other {
            let (o_first, o_size) = self.subgroup(o);
            if position < o_size {
                running.send(round, seat.rank_of(o_first + position, fan.server(o, m)));
            }
        }
        // A smaller subgroup's spare t serves the last node of the larger subgroup t.
        if m >= larger
            && let Some(t) = fan.spare_of(m, size, k, (position, port)).filter(|&t| t < larger)
        {
            running.send(round, seat.rank_of(self.subgroup(t).0 + size, fan.server(t, m)));
        }
        other.map(|o| {
            let (o_first, o_size) = self.subgroup(o);
            let (sender, server) =
                if position < o_size { (position, fan.server(o, m)) } else { fan.spare(o, o_size, k, m) };
            (o, seat.rank_of(o_first + sender, server))
        })
    }

    /// With the full fan: bunches of two (the last may be of three) meet on one rank each, then those ranks reduce.
    fn meet_in_pairs(&self, fan: Fan, node: usize, near: &Group<'_>, running: &mut Running) {
        let (k, (m, _, _)) = (self.subgroups, self.locate(node));
        if let Some(o) = fan.other(m, near.me, k) {
            let bunch = Bunch::of(o, k);
            let holder = bunch.holder(m);
            let mut round = Round::default();
            if o != holder {
                running.send(&mut round, (near.rank_of)(fan.server(m, holder)));
            } else {
                for member in bunch.members().filter(|&member| member != holder && member != m) {
                    running.combine(&mut round, (near.rank_of)(fan.server(m, member)), bunch.side(member, holder));
                }
                if bunch.joined_on_arrival(fan, m, o).is_none() && bunch.members().any(|member| member == m) {
                    running.combine_old(&mut round, bunch.side(m, holder));
                }
            }
            if !round.is_empty() {
                running.rounds.push(round);
            }
        }
        // The holders first, in the order of their bunches, then everybody else.
        let bunches = k / 2;
        let mut line: Vec<usize> = (0..bunches).map(|i| fan.server(m, Bunch::of(2 * i, k).holder(m))).collect();
        let holders = line.clone();
        line.extend((0..near.size).filter(|l| !holders.contains(l)));
        let me = line.iter().position(|&l| l == near.me).expect("everybody is in line");
        Group { size: near.size, me, rank_of: &|member| (near.rank_of)(line[member]) }.allreduce(running, bunches);
    }
}

/// Subgroups whose values meet before all others: two neighbours, or the last three.
struct Bunch {
    first: usize,
    size: usize,
}

impl Bunch {
    /// The bunch of subgroup `o` of `k`.
    fn of(o: usize, k: usize) -> Bunch {
        let index = (o / 2).min(k / 2 - 1);
        let last = index == k / 2 - 1;
        Bunch { first: 2 * index, size: 2 + usize::from(last && !k.is_multiple_of(2)) }
    }

    fn members(&self) -> Range<usize> {
        self.first..self.first + self.size
    }

    /// The subgroup whose fetcher combines the bunch on a node of subgroup `m`.
    fn holder(&self, m: usize) -> usize {
        if m == self.first + 1 { self.first } else { self.first + 1 }
    }

    /// On which side of the holder's value another's goes: ((first second) third).
    fn side(&self, member: usize, holder: usize) -> Combine {
        if member < holder { Combine::Before } else { Combine::After }
    }

    /// Whether what is fetched from `o` can meet the node's own value at once, and how.
    fn joined_on_arrival(&self, fan: Fan, m: usize, o: usize) -> Option<Combine> {
        let own_is_first_or_second = m == self.first || m == self.first + 1;
        let joins = fan.full && own_is_first_or_second && o == self.holder(m);
        joins.then_some(if o < m { Combine::Before } else { Combine::After })
    }
}

/// Exact where n = (P ppn)^k with ppn a power of two, more than one, and the paper's fan; through shared memory, for any ppn.
pub(crate) fn cost(problem: &Problem, parameters: &Parameters) -> Cost {
    let level = parameters.level(problem).unwrap_or(1);
    let (nodes, (smallest, largest)) = (problem.topology.regions(level), problem.topology.region_sizes(level));
    let fan = Fan::parse(parameters, smallest).unwrap_or(Fan::new(false, smallest, 1));
    let far = ceil_log(fan.base(), nodes);
    // Every port sends one, and a second where it is a spare one too.
    let sends = fan.ports * (1 + usize::from(fan.full));
    let power = smallest == largest && !fan.full && fan.width.checked_pow(far as u32) == Some(nodes);
    if uses_memory(parameters) {
        let messages = far * sends;
        let cost = Cost::at_most(far, messages, messages);
        return if power && largest > 1 { Cost { exact: true, ..cost } } else { cost };
    }
    let worst = |costs: &mut dyn Iterator<Item = Cost>| {
        let max =
            |a: Cost, b: Cost| Cost::at_most(a.steps.max(b.steps), a.messages.max(b.messages), a.blocks.max(b.blocks));
        costs.reduce(max).unwrap_or(Cost::NOTHING)
    };
    let reduce = |contributors: usize| {
        worst(&mut (smallest.max(contributors)..=largest).map(|size| Group::allreduce_cost(size, contributors)))
    };
    let near = worst(&mut (2..=fan.base().max(2)).map(|k| match fan.full {
        true => Cost::exact(1, 1, 1).then(reduce(k / 2)),
        false => reduce(k.div_ceil(fan.ports)),
    }));
    let mut cost = worst(&mut (smallest..=largest).map(|size| Group::allreduce_cost(size, size)));
    for _ in 0..far {
        cost = cost.then(Cost::exact(1, sends, sends)).then(near);
    }
    if !power || !largest.is_power_of_two() || largest == 1 {
        return cost.roughly();
    }
    let doublings = (far + 1) * largest.ilog2() as usize;
    let messages = far * sends + doublings;
    Cost::exact(far + doublings, messages, messages)
}

/// Both fans on every level; on the first also the fewest ports for every smaller number of far rounds, and so many that one rank of a
/// node speaks to all nodes.
pub(crate) fn variants(problem: &Problem) -> Vec<String> {
    let mut variants = vec![String::new(), "fan=full".into()];
    let (nodes, ranks) = (problem.topology.regions(1), problem.topology.region_sizes(1).0);
    let rounds = ceil_log(Fan::new(true, ranks, 1).base(), nodes);
    let fewest = |rounds: usize| (2..=MOST_PORTS).find(|ports| ceil_log(ranks * ports, nodes) <= rounds);
    let mut ports: Vec<usize> = (1..rounds).filter_map(fewest).chain([nodes]).collect();
    ports.sort_unstable();
    ports.dedup();
    variants
        .extend(ports.iter().filter(|ports| (2..=MOST_PORTS).contains(*ports)).map(|ports| format!("ports={ports}")));
    for level in 2..=problem.topology.depth() {
        variants.extend([format!("level={level}"), format!("fan=full:level={level}")]);
    }
    either_way(variants)
}
