//! What a tuning file says about a place: measured there, or between places that were measured.
//!
//! Between cells the time of an algorithm is interpolated, straight lines through the logarithms of sizes, nodes and ranks a node,
//! and corrected where it sends more or less than such a line says; the algorithm with the least is chosen. Far outside of what was
//! measured a file is silent.

use allhands_schedule::{Choice, Collective, Problem, Topology};

use super::logs::{exp, ln, log2};
use super::{Cell, Time, Tuning};
use crate::server::Server;

/// What a file says about a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Advice {
    /// Who could serve it.
    pub server: Server,
    /// Its time there, measured or interpolated, in microseconds.
    pub microseconds: f64,
    /// From how many cells.
    pub cells: usize,
}

/// Sizes up to this factor outside of what was measured are still served by the nearest.
const REACH: f64 = 4.0;

impl Tuning {
    /// What is advised for a call, fastest first; nothing where the file is silent.
    pub fn advice(&self, collective: Collective, topology: &Topology, bytes: usize) -> Vec<Advice> {
        let shape = shape(topology);
        let distance = |cell: &Cell| {
            let step = |one: usize, other: usize| log2(one as f64 / other as f64).abs();
            step(cell.nodes, shape.0) + step(cell.ranks_per_node, shape.1)
        };
        let mine = || self.cells.iter().filter(|cell| cell.collective == collective.name());
        // The shapes nearest to this one: itself, or one on each side.
        let mut shapes: Vec<(usize, usize, f64)> = Vec::new();
        for cell in mine() {
            let (nodes, ranks, away) = (cell.nodes, cell.ranks_per_node, distance(cell));
            // One node and many nodes are different machines.
            if (nodes == 1) == (shape.0 == 1) && away <= log2(REACH) && !shapes.contains(&(nodes, ranks, away)) {
                shapes.push((nodes, ranks, away));
            }
        }
        shapes.sort_by(|one, other| one.2.total_cmp(&other.2));
        shapes.truncate(if shapes.first().is_some_and(|nearest| nearest.2 == 0.0) { 1 } else { 2 });
        // Each algorithm's time on each shape at this size; the nearer the shape is, the more it counts.
        let (mut between, mut lists) = (Vec::new(), Vec::new());
        for &(nodes, ranks, away) in &shapes {
            let cells = mine().filter(|cell| (cell.nodes, cell.ranks_per_node) == (nodes, ranks));
            let times = at_size(cells.collect(), bytes);
            let carry = |(server, time, cells): Known| Some((carried(&server, (nodes, ranks), shape)?, time, cells));
            let times: Vec<Known> = if away == 0.0 { times } else { times.into_iter().filter_map(carry).collect() };
            if !times.is_empty() {
                let weight = 1.0 / (away + 1e-9);
                between.push(Weighted { shape: (nodes, ranks), weight });
                lists.push((weight, times));
            }
        }
        if let [one, other] = &between[..] {
            let shapes = [one.shape, other.shape];
            let [first, second] = &mut lists[..] else { unreachable!("there is one for each shape") };
            same_by_default(collective, shape, shapes, [&mut first.1, &mut second.1]);
        }
        let known = blend(&lists);
        let unlike = known.iter().map(|known| unlike(collective, &known.0, topology, bytes, &between));
        let unlike: Vec<Option<f64>> = unlike.collect();
        // What nobody can look into, the MPI's own, changes as the best of what can be: a library also takes what suits a shape.
        let least = |times: &dyn Fn(f64, f64) -> f64| {
            let seen = known.iter().zip(&unlike).filter_map(|(known, unlike)| Some(times(known.1, (*unlike)?)));
            seen.fold(f64::INFINITY, f64::min)
        };
        let as_the_best = Some(least(&|time, unlike| time * unlike) / least(&|time, _| time));
        let as_the_best = as_the_best.filter(|factor| factor.is_finite()).unwrap_or(1.0);
        let corrected = |((server, time, cells), unlike): (Known, Option<f64>)| Advice {
            server,
            microseconds: time * unlike.unwrap_or(as_the_best),
            cells,
        };
        let mut advice: Vec<Advice> = known.into_iter().zip(unlike).map(corrected).collect();
        advice.sort_by(|one, other| one.microseconds.total_cmp(&other.microseconds));
        advice
    }
}

/// What is known of somebody who serves at some place: who, the time, and from how many cells.
type Known = (Server, f64, usize);

/// Whether an algorithm's settings have numbers: one of many settings, each of which was measured here and there.
fn numbered(server: &Server) -> bool {
    server.choice().is_some_and(|choice| !choice.numbers().is_empty())
}

/// A setting for another shape: its numbers that are those of the shape it was measured on (ranks of a node, all ranks, nodes) become
/// those of the other; one stays one. Other numbers were right for that shape, and say nothing about another.
pub(super) fn carried(server: &Server, from: (usize, usize), to: (usize, usize)) -> Option<Server> {
    let own = |(nodes, ranks): (usize, usize)| [1, ranks, nodes * ranks, nodes];
    let carry = |number: usize| Some(own(to)[own(from).iter().position(|known| *known == number)?]);
    match server {
        Server::Schedule(choice) => choice.with_numbers(|_, number| carry(number)).map(Server::Schedule),
        Server::Library => Some(Server::Library),
    }
}

/// On a small shape a setting may be the default, and known as that: with 2 ranks of a node `radix=2`. Adds it as what it is on the
/// other shape.
fn same_by_default(
    collective: Collective,
    here: (usize, usize),
    shapes: [(usize, usize); 2],
    lists: [&mut Vec<Known>; 2],
) {
    let [one, other] = lists;
    let (of_one, of_other) = (one.clone(), other.clone());
    for (shape, list, known) in [(shapes[0], one, of_other), (shapes[1], other, of_one)] {
        for (server, ..) in known.into_iter().filter(|known| numbered(&known.0)) {
            let Some(plain) = server.choice().map(Choice::unset) else { continue };
            let default = list.iter().find(|known| known.0.choice() == Some(&plain));
            let Some(default) = default.cloned() else { continue };
            let there = carried(&server, here, shape);
            let there = there.as_ref().and_then(Server::choice);
            if list.iter().all(|known| known.0 != server)
                && there.is_some_and(|there| same(collective, there, &plain, shape))
            {
                list.push((server, default.1, default.2));
            }
        }
    }
}

/// Whether two settings do the same on a shape.
fn same(collective: Collective, one: &Choice, other: &Choice, (nodes, ranks): (usize, usize)) -> bool {
    let Ok(topology) = Topology::regular(nodes, ranks) else { return false };
    alike(one, other, &Problem::new(collective, topology))
}

/// Whether two settings do the same for a problem, as three of its ranks see it.
pub(crate) fn alike(one: &Choice, other: &Choice, problem: &Problem) -> bool {
    let (Ok(one), Ok(other)) = (one.prepare(problem), other.prepare(problem)) else { return false };
    let last = problem.ranks() - 1;
    one.blocks() == other.blocks() && [0, last / 2, last].iter().all(|&rank| one.rank(rank) == other.rank(rank))
}

/// Times between some places, which count as they are weighted: the mean of logarithms, for every algorithm that is known at any; with
/// numbers in its settings, at all.
fn blend(lists: &[(f64, Vec<Known>)]) -> Vec<Known> {
    let everywhere = |server: &Server| lists.iter().all(|(_, list)| list.iter().any(|known| known.0 == *server));
    let servers = lists.iter().flat_map(|(_, list)| list.iter().map(|known| &known.0));
    let mut servers: Vec<&Server> = servers.filter(|server| !numbered(server) || everywhere(server)).collect();
    // Among equal times the first by name is chosen, wherever it stands in the file.
    servers.sort_by_cached_key(|server| server.to_string());
    servers.dedup();
    let weights: f64 = lists.iter().map(|(weight, _)| weight).sum();
    let blended = |server: &Server| {
        let (mut logs, mut cells) = (0.0, 0);
        for (weight, list) in lists {
            let listed = list.iter().find(|known| known.0 == *server);
            logs += weight * listed.map_or_else(|| guess(server, list, lists), |known| ln(known.1));
            cells += listed.map_or(0, |known| known.2);
        }
        (server.clone(), exp(logs / weights), cells)
    };
    servers.into_iter().map(blended).collect()
}

/// The logarithm of an algorithm's time at a place where it was not measured: from where it was, by what the algorithms did that were
/// measured at both places. It was not measured because it promised little: it took as long as half of those listed at least.
fn guess(server: &Server, list: &[Known], lists: &[(f64, Vec<Known>)]) -> f64 {
    let mut logs: Vec<f64> = list.iter().map(|known| ln(known.1)).collect();
    logs.sort_by(f64::total_cmp);
    let elsewhere = lists.iter().filter_map(|(_, other)| {
        let there = ln(other.iter().find(|known| known.0 == *server)?.1);
        let change = |here: &Known| Some(ln(here.1) - ln(other.iter().find(|known| known.0 == here.0)?.1));
        let changes: Vec<f64> = list.iter().filter_map(change).collect();
        (!changes.is_empty()).then(|| there + changes.iter().sum::<f64>() / changes.len() as f64)
    });
    let elsewhere: Vec<f64> = elsewhere.collect();
    match elsewhere.is_empty() {
        true => logs.last().copied().unwrap_or(0.0),
        false => (elsewhere.iter().sum::<f64>() / elsewhere.len() as f64).max(logs[logs.len() / 2]),
    }
}

/// A shape that was measured, and how much it counts.
#[derive(Clone, Copy)]
struct Weighted {
    shape: (usize, usize),
    weight: f64,
}

/// So many bytes of a message cost about as much as the message itself: a round number between what machines have.
const BYTES_OF_A_STEP: f64 = 4096.0;

/// Times between shapes lie on a smooth line only if the algorithm does the same there: one that folds the ranks beyond a power of two
/// takes more steps with 6 ranks than with 4 or 8. So many times more, by the closed forms of what it sends, than between the shapes
/// that were measured; nothing where that cannot be told.
fn unlike(
    collective: Collective,
    server: &Server,
    topology: &Topology,
    bytes: usize,
    between: &[Weighted],
) -> Option<f64> {
    if between.iter().any(|known| known.shape == shape(topology)) {
        return Some(1.0);
    }
    let choice = server.choice()?;
    let cost = |topology: Topology| {
        let prepared = choice.prepare(&Problem::new(collective, topology)).ok()?;
        let cut = matches!(collective.family(), Collective::Allreduce | Collective::Bcast | Collective::Reduce);
        let block = bytes as f64 / if cut { prepared.blocks().max(1) as f64 } else { 1.0 };
        let cost = prepared.cost();
        // One more for what is no message: copies, meetings. Messages at once are no single one: a rank sends one after the other.
        let messages = cost.steps.max(cost.messages) as f64;
        Some(ln(1.0 + messages + cost.blocks as f64 * block / BYTES_OF_A_STEP))
    };
    let (mut logs, mut weights) = (0.0, 0.0);
    for Weighted { shape: (nodes, ranks), weight } in between {
        logs += weight * cost(Topology::regular(*nodes, *ranks).ok()?)?;
        weights += weight;
    }
    Some(exp(cost(topology.clone())? - logs / weights))
}

/// Nodes, and ranks on the fullest of them.
fn shape(topology: &Topology) -> (usize, usize) {
    (topology.regions(1), topology.region_sizes(1).1)
}

/// The times of algorithms at a size, on one shape, from the cells below and above it; and from how many cells.
fn at_size(mut cells: Vec<&Cell>, bytes: usize) -> Vec<Known> {
    cells.sort_by_key(|cell| cell.bytes);
    let size = |bytes: usize| ln(bytes.max(1) as f64);
    let below = cells.iter().rev().find(|cell| cell.bytes <= bytes);
    let above = cells.iter().find(|cell| cell.bytes >= bytes);
    let (Some(low), Some(high)) = (below.or(above), above.or(below)) else { return vec![] };
    let outside = |cell: &Cell| (size(bytes) - size(cell.bytes)).abs() > ln(REACH) + 1e-9;
    if low.bytes == high.bytes {
        let alone = below.is_none() || above.is_none();
        if alone && outside(low) {
            return vec![];
        }
        return low.known();
    }
    let part = (size(bytes) - size(low.bytes)) / (size(high.bytes) - size(low.bytes));
    blend(&[(1.0 - part, low.known()), (part, high.known())])
}

impl Cell {
    /// What is not known to this version is left out.
    fn known(&self) -> Vec<Known> {
        let Ok(collective) = self.collective.parse() else { return vec![] };
        let known = |time: &Time| Some((Server::parse(collective, &time.algorithm).ok()?, time.median_us, 1));
        self.times.iter().filter_map(known).collect()
    }
}
