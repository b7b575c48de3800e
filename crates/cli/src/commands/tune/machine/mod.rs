//! What messages, copies and meetings cost here: measured through the library's own plans, and written as a machine file.
//!
//! Two ranks exchanging messages of every size give latency, bandwidth and where protocols change; all pairs of two nodes at once
//! what the ranks of a node share; one rank exchanging with several at once how soon it can send its next. Near messages are
//! measured with all ranks busy, as they are in most algorithms. Every exchange is one round of an alltoallv.

mod fit;
mod levels;
mod text;
mod turns;

use std::collections::BTreeSet;
use std::time::Instant;

use allhands::{Comm, Topology};
use indicatif::ProgressBar;

use fit::Sample;
use levels::{Fan, Measured};
use turns::{Action, Times, among, by_turns, combined, exchange, meeting};

/// Message sizes: powers of two up to a megabyte.
const SIZES: [u32; 2] = [3, 20];
/// One in each protocol, as protocols mostly are.
const FAN_BYTES: [usize; 3] = [8, 2048, 1 << 16];
const MOST_OTHERS: usize = 8;
/// Where copying and combining are measured.
const LONG: usize = 1 << 17;
/// No single measurement needs more seconds.
const LONG_ENOUGH: f64 = 2.0;

/// What was measured, with its evidence; seconds and bytes.
pub(super) struct Found {
    levels: Vec<Level>,
    ports: usize,
    copy: f64,
    combine: f64,
    rates: String,
}

struct Level {
    name: String,
    /// Whether nobody talks there, and its numbers are those of another level.
    assumed: bool,
    holds: Option<usize>,
    meeting: f64,
    measured: Measured,
    /// How it was measured, in words.
    evidence: String,
}

/// The name of a level, outermost first.
fn name(level: usize) -> String {
    ["network", "node", "socket", "NUMA node"].get(level).map_or(format!("level {level}"), |name| (*name).into())
}

/// Measures the machine on which a communicator's ranks sit, in about so many seconds; the text of its file, on rank 0.
pub(super) fn measure(
    comm: &Comm,
    seconds: f64,
    called: &str,
    description: &str,
    bar: &ProgressBar,
) -> allhands::Result<Option<String>> {
    let begin = Instant::now();
    let depths = comm.topology().depth() + 1;
    // Each level has two long measurements at most, and a few short ones.
    let share = (seconds / (2.5 * depths as f64 + 1.0)).min(LONG_ENOUGH);
    let mut levels: Vec<Level> = Vec::new();
    for level in 0..depths {
        bar.set_message(format!("measuring messages: {}", name(level)));
        let found = measure_level(comm, level, share)?;
        levels.push(found);
        bar.inc(1);
    }
    bar.set_message("measuring copies and reductions");
    let rates = measure_rates(comm, share / 2.0)?;
    bar.inc(1);
    fill_gaps(&mut levels);
    let ports = levels.first().map_or(1, |outermost| levels::ports(&outermost.measured));
    let (copy, combine, rates) = rates;
    let found = Found { levels, ports, copy, combine, rates };
    let took = begin.elapsed().as_secs_f64();
    Ok((comm.rank() == 0).then(|| text::text(&found, called, &format!("{description}, in {took:.0} s"))))
}

/// Levels at which nobody talks cost what the next does: a file has to say something.
fn fill_gaps(levels: &mut [Level]) {
    let Some(known) = levels.iter().position(|level| !level.measured.pairs.is_empty()) else { return };
    let (mut last, mut from) = (levels[known].measured.clone(), levels[known].name.clone());
    for level in levels {
        if level.measured.pairs.is_empty() {
            level.evidence = format!("not measured: no two ranks talk at this level; the numbers are those of {from}");
            level.measured = last.clone();
            level.assumed = true;
        } else {
            (last, from) = (level.measured.clone(), level.name.clone());
        }
    }
}

/// The ranks with which rank 0 shares a region of this level, and no smaller one.
fn others(topology: &Topology, level: usize) -> Vec<usize> {
    (1..topology.ranks()).filter(|&rank| topology.shared_level(0, rank) == level).collect()
}

fn measure_level(comm: &Comm, level: usize, seconds: f64) -> allhands::Result<Level> {
    let topology = comm.topology();
    let others = others(topology, level);
    let holds = (level > 0).then(|| topology.region_sizes(level).1);
    let mut found = Level {
        name: name(level),
        assumed: false,
        holds,
        meeting: 0.0,
        measured: Measured::default(),
        evidence: String::new(),
    };
    if let (false, Some(_)) = (others.is_empty(), holds) {
        let times = among(comm, Some(topology.region_of(level, comm.rank())), |region| {
            by_turns(region, &mut [meeting(region)?], seconds / 8.0)
        })?;
        if let Some(times) = times.filter(|_| comm.rank() == 0) {
            found.meeting = times[0].median();
            found.evidence = format!("; a meeting of {} took {}", holds.unwrap_or(0), times[0].told());
        }
    }
    let Some(&first) = others.first() else { return Ok(found) };
    let me = comm.rank();
    let (pairs, what) = if level == 0 {
        let color = [0, first].contains(&me).then_some(0);
        (among(comm, color, |two| curve(two, &[(0, 1)], seconds))?, format!("ranks 0 and {first} alone"))
    } else {
        let region = Some(topology.region_of(level, me));
        let curves = among(comm, region, |region| curve(region, &pairs(region.topology(), level), seconds))?;
        (curves, "all pairs of ranks at once".into())
    };
    found.measured.pairs = pairs.iter().flatten().map(|(bytes, times)| times.sample(*bytes)).collect();
    let ends = pairs.as_ref().and_then(|pairs| Some((pairs.first()?, pairs.last()?)));
    if let Some(((short, brief), (long, slow))) = ends {
        let spread = format!("{short} B took {}, {long} B {}", brief.told(), slow.told());
        found.evidence = format!("exchanges of {what}: {spread}{}", found.evidence);
    }
    if level == 0 {
        found.measured.crowd = measure_crowd(comm, first, seconds)?;
    }
    found.measured.fans = measure_fans(comm, &others, seconds / 6.0)?;
    Ok(found)
}

/// The time of an exchange by size.
fn curve(comm: &Comm, pairs: &[(usize, usize)], seconds: f64) -> allhands::Result<Vec<(usize, Times)>> {
    let sizes: Vec<usize> = (SIZES[0]..=SIZES[1]).map(|power| 1 << power).collect();
    let actions = sizes.iter().map(|&bytes| exchange(comm, pairs, bytes));
    let mut actions: Vec<Action> = actions.collect::<allhands::Result<_>>()?;
    Ok(sizes.into_iter().zip(by_turns(comm, &mut actions, seconds)?).collect())
}

/// All ranks of two nodes, each with one of the other.
fn measure_crowd(comm: &Comm, first: usize, seconds: f64) -> allhands::Result<Option<(usize, Vec<Sample>)>> {
    let topology = comm.topology();
    if topology.depth() == 0 {
        return Ok(None);
    }
    let nodes = [0, first].map(|rank| topology.region_of(1, rank));
    let ranks = nodes.map(|node| topology.region(1, node).len());
    let ranks = ranks[0].min(ranks[1]);
    if ranks < 2 {
        return Ok(None);
    }
    let acting = nodes.contains(&topology.region_of(1, comm.rank()));
    let curves = among(comm, acting.then_some(0), |two| curve(two, &pairs(two.topology(), 0), seconds))?;
    Ok(Some((ranks, curves.iter().flatten().map(|(bytes, times)| times.sample(*bytes)).collect())))
}

/// Pairs of ranks that talk at a level of a region: each of one part with one of the next, or neighbours where there are no parts.
fn pairs(topology: &Topology, level: usize) -> Vec<(usize, usize)> {
    let parts: Vec<Vec<usize>> = if level < topology.depth() {
        (0..topology.regions(level + 1)).map(|part| topology.members(level + 1, part).collect()).collect()
    } else {
        (0..topology.ranks()).map(|seat| vec![topology.rank_at(seat)]).collect()
    };
    let two = |two: &[Vec<usize>]| two[0].iter().copied().zip(two[1].iter().copied()).collect::<Vec<_>>();
    parts.chunks_exact(2).flat_map(two).collect()
}

/// Rank 0 with one, two, four of the others at once.
fn measure_fans(comm: &Comm, others: &[usize], seconds: f64) -> allhands::Result<Vec<Fan>> {
    let mut fans = Vec::new();
    let widths = std::iter::successors(Some(1), |width| Some(2 * width));
    for width in widths.take_while(|width| *width <= others.len().min(MOST_OTHERS)) {
        let acting: BTreeSet<usize> = others[..width].iter().copied().chain([0]).collect();
        let times = among(comm, acting.contains(&comm.rank()).then_some(0), |fan| {
            let pairs: Vec<_> = (1..fan.size()).map(|rank| (0, rank)).collect();
            let actions = FAN_BYTES.iter().map(|&bytes| exchange(fan, &pairs, bytes));
            by_turns(fan, &mut actions.collect::<allhands::Result<Vec<Action>>>()?, seconds)
        })?;
        let fan =
            |(&bytes, times): (&usize, &Times)| Fan { others: width, bytes: bytes as u64, seconds: times.median() };
        fans.extend(FAN_BYTES.iter().zip(times.iter().flatten()).map(fan));
    }
    Ok(fans)
}

/// Seconds to copy a byte, with all ranks copying, and to combine one, beyond what the message takes; and how that was found.
fn measure_rates(comm: &Comm, seconds: f64) -> allhands::Result<(f64, f64, String)> {
    let topology = comm.topology();
    let copies = among(comm, Some(topology.region_of(1, comm.rank())), |node| {
        let own: Vec<(usize, usize)> = (0..node.size()).map(|rank| (rank, rank)).collect();
        by_turns(node, &mut [exchange(node, &own, LONG)?], seconds)
    })?;
    let nearest = (1..comm.size()).max_by_key(|&rank| (topology.shared_level(0, rank), std::cmp::Reverse(rank)));
    let acting = nearest.is_some_and(|nearest| [0, nearest].contains(&comm.rank()));
    let sums = among(comm, acting.then_some(0), |two| {
        by_turns(two, &mut [exchange(two, &[(0, 1)], LONG)?, combined(two, LONG)?], seconds)
    })?;
    let (mut copy, mut combine, mut told) = (0.0, 0.0, Vec::new());
    if let Some(times) = &copies {
        copy = times[0].median() / LONG as f64;
        told.push(format!("copying {LONG} B on all ranks at once took {}", times[0].told()));
    }
    if let Some(times) = &sums {
        combine = (times[1].median() - times[0].median()).max(0.0) / LONG as f64;
        told.push(format!(
            "exchanging {LONG} B took {}, an allreduce of two ranks {}",
            times[0].told(),
            times[1].told()
        ));
    }
    Ok((copy, combine, told.join("; ")))
}

#[cfg(test)]
mod tests {
    use allhands_model::Machine;

    use super::*;

    #[test]
    fn pairs_talk_at_their_level() {
        for (text, level) in [("2x4", 0), ("2x4", 1), ("3x2x2", 0), ("2x2x3", 1), ("2x2x3", 2), ("5", 0)] {
            let topology: Topology = text.parse().unwrap();
            let among = match level {
                0 => topology,
                level => topology.of_members(&topology.members(level, 0).collect::<Vec<_>>()).unwrap(),
            };
            let pairs = pairs(&among, level);
            assert!(!pairs.is_empty(), "{text}");
            for (one, other) in &pairs {
                assert_eq!(among.shared_level(*one, *other), level, "{text} at {level}: {one} {other}");
            }
            let mut ranks: Vec<usize> = pairs.iter().flat_map(|(one, other)| [*one, *other]).collect();
            ranks.sort_unstable();
            ranks.dedup();
            assert_eq!(ranks.len(), 2 * pairs.len(), "{text}: a rank has one partner");
        }
    }

    #[test]
    fn a_machine_of_threads_is_measured_and_its_file_can_be_read() {
        for (topology, levels) in [("2x2", 2), ("1x2", 2), ("2", 1), ("2x2x2", 3), ("2x1", 2), ("1x1", 2)] {
            let told = allhands::threads(topology.parse().unwrap(), |comm| {
                measure(comm, 0.0, "here", "a test", &ProgressBar::hidden())
            });
            let texts: Vec<String> = told.unwrap().into_iter().flatten().collect();
            assert_eq!(texts.len(), 1, "rank 0 has the text");
            let machine = Machine::parse(&texts[0]).unwrap_or_else(|error| panic!("{error}: {}", texts[0]));
            assert_eq!((machine.name.as_str(), machine.levels.len()), ("here", levels), "{topology}");
            if topology == "1x1" {
                continue;
            }
            // Ranks on one node know nothing of a network.
            assert_eq!(machine.levels[0].assumed, topology == "1x2", "{}", texts[0]);
            assert!(machine.copy > 0.0 && machine.combine >= 0.0);
            for level in &machine.levels {
                assert!(level.protocols.iter().all(|protocol| protocol.time(1024) > 0.0), "{}", texts[0]);
            }
        }
    }
}
