//! Numbers that the papers print, found again in the schedules.

use allhands_schedule::{Choice, Collective, Counts, Ensemble, Problem, Schedule, Topology, verify};

fn ensemble(collective: Collective, algorithm: &str, topology: &str) -> Ensemble {
    let problem = Problem::new(collective, topology.parse().unwrap());
    let ensemble = Choice::parse(collective, algorithm).unwrap().prepare(&problem).unwrap().ensemble();
    verify(&ensemble).unwrap_or_else(|fault| panic!("{collective} {algorithm} on {topology}: {fault}"));
    ensemble
}

fn rank(collective: Collective, algorithm: &str, topology: &str, rank: usize) -> Schedule {
    let problem = Problem::new(collective, topology.parse().unwrap());
    Choice::parse(collective, algorithm).unwrap().prepare(&problem).unwrap().rank(rank)
}

/// Peers of the rounds in which a rank talks to another node: (sent to, received from).
fn far_peers(schedule: &Schedule, topology: &Topology) -> Vec<(Vec<usize>, Vec<usize>)> {
    let rounds = schedule.rounds.iter().map(|round| {
        let sent =
            round.sends.iter().map(|send| send.to).filter(|&to| topology.far(schedule.rank, to)).collect::<Vec<_>>();
        let received = round
            .recvs
            .iter()
            .map(|recv| recv.from)
            .filter(|&from| topology.far(schedule.rank, from))
            .collect::<Vec<_>>();
        (sent, received)
    });
    rounds.filter(|(sent, received)| !sent.is_empty() || !received.is_empty()).collect()
}

/// Blocks that rank 0 sends in each round in which it sends.
fn blocks_per_round(ensemble: &Ensemble) -> Vec<usize> {
    let sent = |round: &allhands_schedule::Round| {
        round.sends.iter().flat_map(|send| &send.spans).map(|span| span.count).sum::<usize>()
    };
    ensemble.schedules[0].rounds.iter().map(sent).filter(|&blocks| blocks > 0).collect()
}

#[test]
fn example_2_1_needs_4_far_messages_of_15_values_by_bruck_and_1_of_4_by_loc_bruck() {
    for (algorithm, messages, blocks) in [("bruck", 4, 15), ("loc-bruck", 1, 4)] {
        let counts = Counts::maxima(&ensemble(Collective::Allgather, algorithm, "4x4"));
        assert_eq!((counts.far_sent.messages, counts.far_sent.blocks), (messages, blocks), "{algorithm}");
        assert_eq!((counts.far_received.messages, counts.far_received.blocks), (messages, blocks), "{algorithm}");
    }
}

#[test]
fn figure_6_of_loc_bruck_fetches_from_p21_p38_and_p55() {
    let topology: Topology = "16x4".parse().unwrap();
    for (me, from, regions) in [(5, 21, [5, 6, 7, 8]), (6, 38, [9, 10, 11, 12]), (7, 55, [13, 14, 15, 0])] {
        let schedule = rank(Collective::Allgather, "loc-bruck", "16x4", me);
        let rounds = far_peers(&schedule, &topology);
        assert_eq!(rounds[1].1, [from]);
        let recv = schedule.rounds.iter().flat_map(|round| &round.recvs).find(|recv| recv.from == from).unwrap();
        let blocks: Vec<usize> = recv.spans.iter().flat_map(|span| span.first..span.end()).collect();
        assert_eq!(blocks, regions.map(|region| [0, 1, 2, 3].map(|l| region * 4 + l)).concat());
    }
    let counts = Counts::maxima(&ensemble(Collective::Allgather, "loc-bruck", "64x4"));
    assert_eq!(
        (counts.far_sent.messages, counts.far_sent.blocks),
        (3, 84),
        "q(R-1)/(q-1) values, not the paper's b/q = 64"
    );
}

#[test]
fn full_fan_meets_the_lower_bound_in_rounds_and_bytes() {
    for (q, regions, rounds) in [(2, 9, 2), (3, 16, 2), (4, 5, 1), (4, 25, 2)] {
        let counts = Counts::maxima(&ensemble(Collective::Allgather, "loc-bruck:fan=full", &format!("{regions}x{q}")));
        assert_eq!((counts.far_sent.messages, counts.far_sent.blocks), (rounds, regions - 1));
        let counts = Counts::maxima(&ensemble(Collective::Allreduce, "nap:fan=full", &format!("{regions}x{q}")));
        assert_eq!(counts.far_sent.messages, rounds);
    }
}

/// numC and numD as Fan and Kumar print them, divisions rounded down.
fn printed(p: usize, r: usize) -> (usize, usize) {
    let mut w = 0;
    while r.pow(w) < p {
        w += 1;
    }
    let num_c = w as usize * (r - 1) - (r.pow(w) - p) / r.pow(w - 1);
    let num_d = |x: u32, z: usize| {
        let (lc, re) = (p / r.pow(x + 1) * r.pow(x), p % r.pow(x + 1));
        match re.checked_sub(z * r.pow(x)) {
            None | Some(0) => lc,
            Some(t) if t / r.pow(x) > 0 => lc + r.pow(x),
            Some(t) => lc + t % r.pow(x),
        }
    };
    let substeps = (0..w).flat_map(|x| (1..r).map(move |z| (x, z))).filter(|&(x, z)| z * r.pow(x) < p);
    (num_c, substeps.map(|(x, z)| num_d(x, z)).sum())
}

#[test]
fn radix_r_alltoall_counts_num_c_steps_and_num_d_blocks_for_every_p_to_200_and_every_radix() {
    for p in 2..=200 {
        for r in 2..=p {
            let problem = Problem::new(Collective::Alltoall, Topology::flat(p).unwrap());
            for algorithm in ["bruck", "modified-bruck"] {
                let prepared = Choice::parse(Collective::Alltoall, &format!("{algorithm}:radix={r}"))
                    .unwrap()
                    .prepare(&problem)
                    .unwrap();
                // Every rank does the same: one that is neither first nor last stands for all.
                let counts = Counts::of(&problem, &prepared.rank(p / 2));
                assert_eq!((counts.rounds, counts.sent.blocks), printed(p, r), "{algorithm}, P = {p}, r = {r}");
                assert_eq!(counts.sent, counts.received);
            }
        }
    }
    assert_eq!(printed(6, 4).0, 4, "the caption of Figure 1 says 5; the paper's own formula 4");
    assert_eq!([printed(512, 23), printed(2048, 46), printed(4096, 64)], [(44, 978), (89, 4005), (126, 8064)]);
}

#[test]
fn modified_bruck_copies_nothing_but_the_own_block() {
    let copies = |algorithm| Counts::maxima(&ensemble(Collective::Alltoall, algorithm, "13")).copies;
    assert_eq!((copies("bruck:radix=3"), copies("modified-bruck:radix=3")), (25, 1));
}

#[test]
fn sparbit_at_21_ranks_goes_16_8_4_2_1() {
    let schedule = rank(Collective::Allgather, "sparbit", "21", 0);
    let steps = schedule.rounds.iter().flat_map(|round| &round.sends);
    let steps: Vec<(usize, usize)> =
        steps.map(|send| (send.to, send.spans.iter().map(|span| span.count).sum())).collect();
    assert_eq!(steps, [(16, 1), (8, 1), (4, 3), (2, 5), (1, 10)]);
    let messages = |algorithm| Counts::maxima(&ensemble(Collective::Allgather, algorithm, "21")).sent.messages;
    assert_eq!((messages("sparbit"), messages("sparbit:messages=blocks")), (5, 20));
}

#[test]
fn nap_pairs_p9_with_p6_at_4x4_and_with_p24_in_the_second_step_at_16x4() {
    let peers =
        |topology: &str, me| far_peers(&rank(Collective::Allreduce, "nap", topology, me), &topology.parse().unwrap());
    assert_eq!(peers("4x4", 9), [(vec![6], vec![6])]);
    assert_eq!(peers("4x4", 10), [], "local rank 2 of node 2 is idle");
    assert_eq!(peers("16x4", 9)[1], (vec![24], vec![24]));
}

#[test]
fn nap_is_correct_ordered_and_identical_for_every_node_count_to_64_at_ppn_2_to_8() {
    use rayon::prelude::*;
    (1..=64usize).into_par_iter().for_each(|nodes| {
        for ppn in 2..=8 {
            for fan in ["paper", "full"] {
                let problem = Problem::new(Collective::Allreduce, Topology::regular(nodes, ppn).unwrap());
                let ensemble = Choice::parse(Collective::Allreduce, &format!("nap:fan={fan}"))
                    .unwrap()
                    .prepare(&problem)
                    .unwrap()
                    .ensemble();
                let report = verify(&ensemble).unwrap_or_else(|fault| panic!("{nodes}x{ppn} {fan}: {fault}"));
                assert!(report.ordered && report.identical, "{nodes}x{ppn} {fan}");
                let (base, mut rounds, mut reach) = (ppn + usize::from(fan == "full"), 0, 1);
                while reach < nodes {
                    (rounds, reach) = (rounds + 1, reach * base);
                }
                let counts = Counts::maxima(&ensemble);
                assert!(counts.far_received.messages <= rounds, "{nodes}x{ppn} {fan}");
                assert!(counts.far_sent.messages <= if fan == "paper" { rounds } else { 2 * rounds });
            }
        }
    });
}

/// Past the paper: with P ports a round unites P times as many groups of nodes.
#[test]
fn nap_with_several_ports_is_ordered_and_identical_and_takes_fewer_far_rounds() {
    use rayon::prelude::*;
    (1..=40usize).into_par_iter().for_each(|nodes| {
        for (ppn, ports, local) in (1..=5)
            .flat_map(|ppn| [2, 3, 5usize].map(|ports| (ppn, ports)))
            .flat_map(|(ppn, ports)| ["messages", "shared"].map(|local| (ppn, ports, local)))
        {
            let (setting, topology) = (format!("nap:ports={ports}:local={local}"), format!("{nodes}x{ppn}"));
            let ensemble = ensemble(Collective::Allreduce, &setting, &topology);
            let report = verify(&ensemble).unwrap_or_else(|fault| panic!("{topology} {setting}: {fault}"));
            assert!(report.ordered && report.identical, "{topology} {setting}");
            let rounds = (0..).find(|&rounds| (ports * ppn).pow(rounds) >= nodes).unwrap() as usize;
            let far = |schedule| far_peers(schedule, &ensemble.problem.topology).len();
            assert!(ensemble.schedules.iter().all(|schedule| far(schedule) <= rounds), "{topology} {setting}");
            let counts = Counts::maxima(&ensemble);
            assert!(counts.far_received.messages <= rounds * ports, "{topology} {setting}");
            assert!(counts.far_sent.messages <= rounds * ports, "{topology} {setting}");
        }
    });
}

#[test]
fn nap_with_two_ports_takes_one_hop_on_8x4() {
    let hops = |setting: &str| far_peers(&rank(Collective::Allreduce, setting, "8x4", 9), &"8x4".parse().unwrap());
    assert_eq!(hops("nap").len(), 2);
    // Local rank 1 of node 2 is responsible for nodes 2, its own, and 3.
    assert_eq!(hops("nap:ports=2"), [(vec![13], vec![13])]);
}

/// Every rank sends its part of the vector only: with all ports two hops, the least that a long allreduce can take.
#[test]
fn multi_lane_reduces_and_gathers_in_a_hop_each() {
    let topology = "4x4".parse().unwrap();
    for local in ["messages", "shared"] {
        let setting = format!("multi-lane:radix=4:local={local}");
        let far = far_peers(&rank(Collective::Allreduce, &setting, "4x4", 6), &topology);
        // The lane of local rank 2.
        assert_eq!(far, [(vec![10, 14, 2], vec![2, 10, 14]), (vec![2, 14, 10], vec![10, 14, 2])], "{setting}");
        let counts = Counts::maxima(&ensemble(Collective::Allreduce, &setting, "4x4"));
        assert_eq!((counts.far_sent.messages, counts.far_sent.blocks), (6, 6), "of 16 blocks");
    }
}

#[test]
fn table_1_of_jocksch_39_nodes() {
    for (phases, steps, size) in [
        ("39(1,1,1,1,1,1)", 6, (8, 1)),
        ("3(1,1)13(1,1,1,1)", 6, (7, 1)),
        ("13(-1,-1,-1,-1)3(-1,-1)3(1,1)13(1,1,1,1)", 12, (76, 39)),
        ("39(-1,-1,-1,-1,-1,-1)39(1,1,1,1,1,1)", 12, (76, 39)),
    ] {
        let ensemble = ensemble(Collective::Allreduce, &format!("cyclic-shift:{phases}"), "39");
        let counts = Counts::maxima(&ensemble);
        assert_eq!((counts.rounds, (counts.sent.blocks, ensemble.blocks)), (steps, size), "{phases}");
    }
}

#[test]
fn figures_3_8_and_9_of_jocksch_send_these_lines_in_each_step() {
    let lines = |phases: &str, p: &str| {
        blocks_per_round(&ensemble(Collective::Allreduce, &format!("cyclic-shift:{phases}"), p))
    };
    assert_eq!(lines("11(1,1,1,1)", "11"), [1, 2, 1, 1]);
    assert_eq!(lines("8(-1,1,1,1)", "8"), [4, 4, 5, 7]);
    assert_eq!(lines("2(-1)4(1,1)2(1)", "8"), [4, 4, 4, 4]);
    assert_eq!(lines("8(-1,-1,-1,1,1,1)", "8"), [4, 2, 1, 1, 2, 4]);
}

#[test]
fn table_2_of_jocksch_is_all_servable_and_correct() {
    for phases in [
        "160(12,12)",
        "160(-12,-12)160(12,12)",
        "16(-3,-3)10(9)16(3,3)",
        "160(-2,-4,-10)160(10,4,2)",
        "160(-2,-5,-8)160(8,5,2)",
        "160(-1,-2,-2,-8)160(8,2,2,1)",
        "160(-1,-1,-1,-2,-6)160(6,2,1,1,1)",
        "160(-1,-1,-1,-1,-1,-4)160(4,1,1,1,1,1)",
        "160(-1,-1,-1,-1,-1,-5)160(5,1,1,1,1,1)",
        "160(-1,-1,-1,-1,-1,-1,-2)160(2,1,1,1,1,1,1)",
    ] {
        ensemble(Collective::Allreduce, &format!("cyclic-shift:{phases}"), "160");
    }
    // With 12 ranks on each node, one of them acts for the node.
    let counts = Counts::maxima(&ensemble(Collective::Allreduce, "cyclic-shift:160(12,12)", "160x12"));
    assert_eq!(counts.ports, 12);
}

#[test]
fn recursive_doubling_far_first_sends_most_to_the_nearest() {
    let far = |order| {
        Counts::maxima(&ensemble(Collective::Allgather, &format!("recursive-doubling:order={order}"), "8x4"))
            .far_sent
            .blocks
    };
    assert_eq!((far("nearest"), far("farthest")), (28, 7));
}

#[test]
fn reordering_pairs_small_with_large() {
    let largest = |order: &str| {
        let problem = Problem::new(Collective::Allgatherv, Topology::flat(8).unwrap());
        let problem = problem.with_counts(vec![0, 0, 0, 0, 1, 1, 1, 1]).unwrap();
        let ensemble = Choice::parse(Collective::Allgatherv, &format!("bruck:order={order}"))
            .unwrap()
            .prepare(&problem)
            .unwrap()
            .ensemble();
        verify(&ensemble).unwrap();
        let sizes = |round: usize| {
            ensemble.schedules.iter().map(move |schedule| {
                let sent = schedule.rounds[round + 1].sends.iter().flat_map(|send| send.spans.clone());
                sent.flat_map(|span| span.first..span.end()).map(|block| [0, 0, 0, 0, 1, 1, 1, 1][block]).sum::<usize>()
            })
        };
        (0..3).map(|round| sizes(round).max().unwrap()).sum::<usize>()
    };
    assert_eq!((largest("ranks"), largest("sizes")), (7, 4), "0101.. against 00001111 in section 2.2.3");
}

#[test]
fn the_long_node_phase_needs_one_vector_of_shared_memory_and_a_meeting_for_each_chunk() {
    let touched = |reduction: &str| {
        let algorithm = format!("smp:slices=8:local=shared:reduction={reduction}");
        let ensemble = ensemble(Collective::Allreduce, &algorithm, "1x4");
        let spans = ensemble.schedules.iter().flat_map(|schedule| &schedule.rounds).flat_map(|round| round.spans());
        let shared: std::collections::BTreeSet<usize> = spans
            .filter(|(span, _)| span.space == allhands_schedule::Space::Shared)
            .flat_map(|(span, _)| span.first..span.end())
            .collect();
        let meetings = ensemble.schedules[0].rounds.iter().flat_map(|round| &round.locals);
        let meetings = meetings.filter(|local| matches!(local, allhands_schedule::Local::Meet { .. })).count();
        (shared.len(), meetings)
    };
    assert_eq!((touched("lines"), touched("chunks")), ((32, 3), (8, 8 + 4 - 1 + 1)));
}
