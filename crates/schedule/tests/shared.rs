//! The near part through shared memory: only far messages are left, and two segments in turn serve run after run.

use allhands_schedule::{
    Choice, Collective, Counts, Ensemble, Fault, Local, Problem, Round, Space, Span, Topology, algorithms, verify,
};
use rayon::prelude::*;

fn ensemble(collective: Collective, algorithm: &str, topology: &str) -> Ensemble {
    let problem = Problem::new(collective, topology.parse().unwrap());
    let ensemble = Choice::parse(collective, algorithm).unwrap().prepare(&problem).unwrap().ensemble();
    verify(&ensemble).unwrap_or_else(|fault| panic!("{collective} {algorithm} on {topology}: {fault}"));
    ensemble
}

/// Every choice that uses shared memory.
fn choices(problem: &Problem) -> impl Iterator<Item = Choice> + '_ {
    let all = algorithms(problem.collective).flat_map(|algorithm| Choice::variants(algorithm, problem));
    all.filter(|choice| choice.parameters.get("local") == Some("shared"))
}

/// The shapes of the sweep, up to `most` ranks.
fn shapes(most: usize) -> Vec<Topology> {
    let flat = (1..=16).map(|p| Topology::flat(p).unwrap());
    let regular = (1..=9).flat_map(|nodes| (1..=8).map(move |ppn| Topology::regular(nodes, ppn).unwrap()));
    let other = [
        "3,5,4",
        "1,2",
        "1,1,4",
        "7,1,1,1",
        "5,5,5,6",
        "2,3,2,3,2,3,2",
        "1,8,2,4,3",
        "2x2x2",
        "3x2x4",
        "2x3x3",
        "2x2x2x2",
        "1x4x3",
        "[[[0,1,2],[3]],[[4,5],[6,7,8,9]]]",
        "[[[7],[6,5]],[[4,3,2]],[[1],[0]]]",
        "[[9,1,4],[0,8],[2,3,5,7],[6]]",
    ];
    let other = other.map(|text| text.parse::<Topology>().unwrap());
    let all = flat.chain(regular).chain(other).filter(|shape| shape.ranks() <= most);
    all.flat_map(|shape| [shape.clone(), shape.cyclic()]).collect()
}

/// Runs one after the other, each in the segment of shared memory that `segment` gives it.
fn runs(ensemble: &Ensemble, count: usize, segment: impl Fn(usize) -> usize) -> Ensemble {
    let lines = |span: &Span| if span.space == Space::Shared { span.end().div_ceil(ensemble.blocks.max(1)) } else { 0 };
    let spans = || ensemble.schedules.iter().flat_map(|schedule| &schedule.rounds).flat_map(Round::spans);
    let size = spans().map(|(span, _)| lines(&span)).max().unwrap_or(0) * ensemble.blocks;
    let moved = |run: usize| {
        let offset = segment(run) * size;
        let place = move |span: &mut Span| {
            if span.space == Space::Shared {
                span.first += offset;
            }
        };
        move |mut round: Round| {
            round.sends.iter_mut().flat_map(|send| &mut send.spans).for_each(place);
            round.recvs.iter_mut().flat_map(|recv| &mut recv.spans).for_each(place);
            for local in &mut round.locals {
                match local {
                    Local::Copy { from, to } => [from, to].into_iter().for_each(place),
                    Local::Combine { from, into, .. } => [from, into].into_iter().for_each(place),
                    Local::Meet { .. } => {}
                }
            }
            round
        }
    };
    let mut concatenated = ensemble.clone();
    for (schedule, once) in concatenated.schedules.iter_mut().zip(&ensemble.schedules) {
        schedule.rounds = (0..count).flat_map(|run| once.rounds.iter().cloned().map(moved(run))).collect();
    }
    concatenated
}

#[test]
fn two_segments_in_turn_serve_run_after_run() {
    let problems: Vec<Problem> = (shapes(40).iter())
        .flat_map(|shape| Collective::ALL.map(|collective| Problem::new(collective, shape.clone())))
        .filter(|problem| problem.collective.family() == problem.collective)
        .collect();
    let tried: usize = (problems.par_iter())
        .map(|problem| {
            let prepared = choices(problem).filter_map(|choice| choice.prepare(problem).ok());
            let check = |ensemble: Ensemble| {
                if let Err(fault) = verify(&runs(&ensemble, 3, |run| run % 2)) {
                    panic!("{} {} on {}: {fault}", problem.collective, ensemble.algorithm, problem.topology);
                }
            };
            prepared.map(|prepared| check(prepared.ensemble())).count()
        })
        .sum();
    assert!(tried > 3_000, "{tried}");
}

#[test]
fn one_segment_would_not_do() {
    for (collective, algorithm) in [
        (Collective::Allgather, "multi-lane:local=shared"),
        (Collective::Alltoall, "node-aware:local=shared"),
        (Collective::Allgather, "hierarchical:local=shared"),
        (Collective::Allreduce, "smp:local=shared"),
        (Collective::ReduceScatter, "multi-lane:local=shared"),
        (Collective::Bcast, "hierarchical:local=shared"),
    ] {
        let once = ensemble(collective, algorithm, "3x3");
        assert!(verify(&runs(&once, 3, |run| run % 2)).is_ok(), "{algorithm}");
        let outcome = verify(&runs(&once, 2, |_| 0));
        assert!(matches!(outcome, Err(Fault::Race { .. })), "{algorithm}: {:?}", outcome.map(|_| ()));
    }
}

/// What the argument for two segments rests on: whoever shares a position meets in every run.
#[test]
fn ranks_that_touch_the_same_position_meet() {
    for shape in shapes(24) {
        for collective in [
            Collective::Allgather,
            Collective::Alltoall,
            Collective::Allreduce,
            Collective::ReduceScatter,
            Collective::Bcast,
        ] {
            let problem = Problem::new(collective, shape.clone());
            for choice in choices(&problem) {
                let ensemble = choice.prepare(&problem).unwrap().ensemble();
                let meets = |rank: usize| {
                    let locals = ensemble.schedules[rank].rounds.iter().flat_map(|round| &round.locals);
                    locals.filter_map(|local| if let Local::Meet { level } = local { Some(*level) } else { None })
                };
                // The outermost region in which a rank meets, for each position the first rank that touched it.
                let region = |rank: usize| meets(rank).min().map(|level| (level, shape.region_of(level, rank)));
                let mut first = std::collections::HashMap::new();
                for (rank, schedule) in ensemble.schedules.iter().enumerate() {
                    let spans = schedule.rounds.iter().flat_map(Round::spans).map(|(span, _)| span);
                    for span in spans.filter(|span| span.space == Space::Shared) {
                        for position in span.first..span.end() {
                            let other = *first.entry((shape.region_of(1, rank), position)).or_insert(rank);
                            let together = other == rank || region(rank).is_some() && region(rank) == region(other);
                            assert!(together, "{collective} {choice} on {shape}: {rank} and {other} at {position}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn no_near_message_is_left() {
    for text in ["7", "4x4", "5x3", "3,5,4", "[[9,1,4],[0,8],[2,3,5,7],[6]]"] {
        for collective in Collective::ALL {
            let problem = Problem::new(collective, text.parse().unwrap());
            for choice in choices(&problem) {
                // Scans of two levels need ranks in the order of their seats.
                let prepared = match choice.prepare(&problem) {
                    Err(_) if collective.prefixes() && !problem.topology.is_sequential() => continue,
                    prepared => prepared.unwrap(),
                };
                let ensemble = prepared.ensemble();
                let far =
                    |rank: usize, to: usize| problem.topology.region_of(1, rank) != problem.topology.region_of(1, to);
                for schedule in &ensemble.schedules {
                    let mut sends = schedule.rounds.iter().flat_map(|round| &round.sends);
                    assert!(sends.all(|send| far(schedule.rank, send.to)), "{collective} {choice} on {text}");
                }
            }
        }
    }
}

#[test]
fn nap_on_4x4_sends_one_far_message_from_every_rank_but_four() {
    let ensemble = ensemble(Collective::Allreduce, "nap:local=shared", "4x4");
    let sent: Vec<usize> =
        ensemble.schedules.iter().map(|schedule| Counts::of(&ensemble.problem, schedule).sent.messages).collect();
    assert_eq!(sent, [0, 1, 1, 1, 1, 0, 1, 1, 1, 1, 0, 1, 1, 1, 1, 0], "local rank m of node m is idle");
    let report = verify(&ensemble).unwrap();
    assert!(report.ordered && report.identical);
    assert_eq!(report.timing.steps, 1);
}

#[test]
fn nap_is_ordered_and_identical_for_every_node_count_to_40() {
    (1..=40usize).into_par_iter().for_each(|nodes| {
        for ppn in 1..=6 {
            for fan in ["paper", "full"] {
                let ensemble =
                    ensemble(Collective::Allreduce, &format!("nap:fan={fan}:local=shared"), &format!("{nodes}x{ppn}"));
                let report = verify(&ensemble).unwrap();
                assert!(report.ordered && report.identical, "{nodes}x{ppn} {fan}");
            }
        }
    });
}

/// Which ranks send anything.
fn senders(ensemble: &Ensemble) -> Vec<usize> {
    let sends = |rank: &usize| ensemble.schedules[*rank].rounds.iter().any(|round| !round.sends.is_empty());
    (0..ensemble.problem.ranks()).filter(sends).collect()
}

#[test]
fn only_leaders_send() {
    for (collective, algorithm, leaders) in [
        (Collective::Allgather, "hierarchical:local=shared", vec![0, 4, 8]),
        (Collective::Allgather, "multi-leader:leaders=2:local=shared", vec![0, 2, 4, 6, 8, 10]),
        (Collective::Alltoall, "hierarchical:local=shared", vec![0, 4, 8]),
        (Collective::Alltoall, "multi-leader:leaders=2:local=shared", vec![0, 2, 4, 6, 8, 10]),
        (Collective::Allreduce, "smp:local=shared", vec![0, 4, 8]),
        (Collective::Allreduce, "smp:slices=4:local=shared", vec![0, 4, 8]),
        (Collective::Allreduce, "cyclic-shift:local=shared", vec![0, 4, 8]),
        (Collective::Allreduce, "cyclic-shift:3(-1,-1)3(1,1):local=shared", vec![0, 4, 8]),
        (Collective::Bcast, "hierarchical:radix=3:local=shared", vec![0]),
        (Collective::Bcast, "hierarchical:radix=3:far=pieces:local=shared", vec![0, 4, 8]),
    ] {
        assert_eq!(senders(&ensemble(collective, algorithm, "3x4")), leaders, "{collective} {algorithm}");
    }
}

/// One far latency to all other nodes, two with pieces, none of which is longer than the root's part of them.
#[test]
fn a_bcast_reaches_all_nodes_at_once() {
    for (nodes, settings, steps, messages, blocks) in [
        (4, "radix=4", 1, 3, 3),
        (4, "radix=2", 2, 2, 2),
        (4, "radix=4:far=pieces", 2, 3, 3),
        (8, "radix=8", 1, 7, 7),
        (8, "radix=3", 2, 4, 4),
        (8, "radix=8:far=pieces", 2, 7, 7),
        (8, "radix=8:segments=4", 1, 28, 28),
    ] {
        let algorithm = format!("hierarchical:{settings}:local=shared");
        let ensemble = ensemble(Collective::Bcast, &algorithm, &format!("{nodes}x4"));
        let root = Counts::of(&ensemble.problem, &ensemble.schedules[0]).sent;
        let found = (verify(&ensemble).unwrap().timing.steps, root.messages, root.blocks);
        assert_eq!(found, (steps, messages, blocks), "{nodes} nodes, {settings}");
    }
}

#[test]
fn meetings_are_as_few_as_the_phases_need() {
    let meetings = |collective, algorithm: &str, topology: &str| {
        let ensemble = ensemble(collective, algorithm, topology);
        let locals = ensemble.schedules[1].rounds.iter().flat_map(|round| &round.locals);
        locals.filter(|local| matches!(local, Local::Meet { .. })).count()
    };
    for (collective, algorithm, topology, count) in [
        (Collective::Allgather, "hierarchical:local=shared", "3x4", 2),
        (Collective::Allgather, "hierarchical:local=shared", "4", 1),
        (Collective::Allgather, "multi-lane:local=shared", "3x4", 1),
        (Collective::Allgather, "loc-bruck:local=shared", "16x4", 3),
        (Collective::ReduceScatter, "multi-lane:local=shared", "3x4", 1),
        (Collective::ReduceScatter, "loc-bruck:local=shared", "16x4", 3),
        (Collective::Alltoall, "node-aware:local=shared", "3x4", 1),
        (Collective::Alltoall, "hierarchical:local=shared", "3x4", 2),
        (Collective::Allreduce, "smp:local=shared", "3x4", 2),
        (Collective::Allreduce, "smp:slices=4:local=shared", "3x4", 3),
        (Collective::Allreduce, "nap:local=shared", "4x4", 2),
        (Collective::Allreduce, "nap:local=shared", "8", 1),
        (Collective::Allreduce, "nap:ports=2:local=shared", "8x4", 2),
        (Collective::Allreduce, "multi-lane:local=shared", "3x4", 2),
        (Collective::Bcast, "hierarchical:local=shared", "3x4", 1),
        (Collective::Bcast, "hierarchical:radix=3:far=pieces:local=shared", "3x4", 1),
        (Collective::Barrier, "node-aware:local=shared", "8", 1),
        (Collective::Barrier, "node-aware:local=shared", "4x4", 2),
    ] {
        assert_eq!(meetings(collective, algorithm, topology), count, "{collective} {algorithm} on {topology}");
    }
}

#[test]
fn sockets_share_apart_from_each_other() {
    for (collective, algorithm) in [
        (Collective::Allgather, "hierarchical:level=2:local=shared"),
        (Collective::Allgather, "loc-bruck:levels=2:local=shared"),
        (Collective::Alltoall, "node-aware:level=2:local=shared"),
        (Collective::Allreduce, "nap:level=2:local=shared"),
        (Collective::Allreduce, "nap:ports=2:level=2:local=shared"),
        (Collective::Allreduce, "multi-lane:level=2:local=shared"),
        (Collective::ReduceScatter, "multi-lane:level=2:local=shared"),
    ] {
        let ensemble = ensemble(collective, algorithm, "2x2x3");
        let locals = ensemble.schedules.iter().flat_map(|schedule| &schedule.rounds).flat_map(|round| &round.locals);
        let mut levels = locals.filter_map(|local| if let Local::Meet { level } = local { Some(*level) } else { None });
        assert!(levels.all(|level| level == 2), "{collective} {algorithm}");
    }
}

#[test]
fn shared_schedules_survive_their_text_form() {
    for collective in Collective::ALL {
        let problem = Problem::new(collective, "2x2x2".parse().unwrap());
        for choice in choices(&problem) {
            let ensemble = choice.prepare(&problem).unwrap().ensemble();
            assert_eq!(ensemble.to_string().parse::<Ensemble>().unwrap(), ensemble, "{collective} {choice}");
        }
    }
}
