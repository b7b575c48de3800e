//! What the verifier catches, on schedules written by hand.

use allhands_schedule::{Choice, Collective, Ensemble, Fault, Problem, Topology, algorithms, verify};

fn judge(text: &str) -> Result<(bool, bool, usize), Fault> {
    let ensemble: Ensemble = format!("allhands schedule 1\n{text}\nend\n").parse().unwrap();
    verify(&ensemble).map(|report| (report.ordered, report.identical, report.timing.steps))
}

/// An allreduce of two ranks over shared memory: both copy in, meet, and reduce what they find.
fn shared_allreduce(first_meeting: &str) -> String {
    let rank = |rank: usize| {
        format!(
            "rank {rank}\n round\n  copy input[0] -> shared[{rank}]\n {first_meeting}\n  copy shared[0] -> output[0]\n  combine shared[1] -> output[0]\n"
        )
    };
    format!("collective allreduce\ntopology [[0,1]]\nblocks 1\n{}{}", rank(0), rank(1))
}

#[test]
fn shared_memory_needs_a_meeting_between_writing_and_reading() {
    assert_eq!(judge(&shared_allreduce("meet 1")), Ok((true, true, 0)));
    assert!(matches!(judge(&shared_allreduce("")), Err(Fault::Race { .. } | Fault::Unwritten { .. })));
    assert!(matches!(judge(&shared_allreduce("meet 2")), Err(Fault::Level { level: 2, .. })));
}

#[test]
fn shared_memory_is_not_rewritten_before_everybody_has_read() {
    let twice = |second_meeting: &str| {
        let rank = |rank: usize| {
            let again = if rank == 0 { "copy input[0] -> shared[0]" } else { "" };
            format!(
                "rank {rank}\n round\n copy input[0] -> shared[{rank}]\n meet 1\n copy shared[0] -> output[0]\n combine shared[1] -> output[0]\n {second_meeting}\n {again}\n"
            )
        };
        judge(&format!("collective allreduce\ntopology [[0,1]]\nblocks 1\n{}{}", rank(0), rank(1)))
    };
    assert!(twice("meet 1").is_ok());
    assert!(matches!(twice(""), Err(Fault::Race { position: 0, .. })));
}

#[test]
fn meetings_of_sockets_do_not_order_ranks_of_other_sockets() {
    // Rank 0 writes, its socket meets, rank 2 of the other socket reads: only a meeting of the node orders the two.
    let schedule = |level: usize| {
        let rank = |rank: usize| {
            let write = if rank == 0 { "copy input[0] -> shared[0]" } else { "" };
            let read = if rank == 0 { "copy input[0] -> output[0]" } else { "copy shared[0] -> output[0]" };
            format!("rank {rank}\n round\n {write}\n meet {level}\n {read}\n")
        };
        let ranks: String = (0..4).map(rank).collect();
        judge(&format!("collective bcast\ntopology [[[0,1],[2,3]]]\nblocks 1\nroot 0\n{ranks}"))
    };
    assert!(schedule(1).is_ok() && schedule(0).is_ok());
    assert!(matches!(schedule(2), Err(Fault::Race { .. } | Fault::Unwritten { .. })));
}

#[test]
fn a_meeting_nobody_else_comes_to_is_a_deadlock() {
    let text = "collective bcast\ntopology [[0,1]]\nblocks 1\nroot 0\nrank 0\n round\n copy input[0] -> output[0]\n meet 1\nrank 1\n";
    assert_eq!(judge(text), Err(Fault::Deadlock { rank: 0, round: 0, peer: None }));
}

#[test]
fn sends_that_wait_for_each_other_deadlock_unless_posted_together() {
    let allgather = |rounds: fn(usize) -> String| {
        let ranks: String = (0..2)
            .map(|rank| format!("rank {rank}\n round\n copy input[0] -> output[{rank}]\n{}", rounds(1 - rank)))
            .collect();
        judge(&format!("collective allgather\ntopology [0,1]\nblocks 2\n{ranks}"))
    };
    assert_eq!(
        allgather(|peer| format!(" round\n send {peer}: output[{}]\n recv {peer}: output[{peer}]\n", 1 - peer)),
        Ok((true, true, 1))
    );
    let one_after_the_other =
        allgather(|peer| format!(" round\n send {peer}: output[{}]\n round\n recv {peer}: output[{peer}]\n", 1 - peer));
    assert_eq!(one_after_the_other, Err(Fault::Deadlock { rank: 0, round: 1, peer: Some(1) }));
}

#[test]
fn a_barrier_must_hear_of_everybody() {
    let barrier = |rounds: usize| {
        let round = |rank: usize, distance: usize| {
            format!(" round\n send {}:\n recv {}:\n", (rank + distance) % 4, (rank + 4 - distance) % 4)
        };
        let ranks: String = (0..4)
            .map(|rank| format!("rank {rank}\n") + &(0..rounds).map(|bit| round(rank, 1 << bit)).collect::<String>())
            .collect();
        judge(&format!("collective barrier\ntopology [0,1,2,3]\nblocks 0\n{ranks}"))
    };
    assert_eq!(barrier(2), Ok((true, true, 2)));
    assert_eq!(barrier(1), Err(Fault::NotEverybody { rank: 0, other: 1 }));
}

#[test]
fn a_round_may_not_receive_over_what_it_sends_but_may_combine_with_it() {
    let exchange = |combine: &str| {
        let rank = |rank: usize, peer: usize| {
            format!(
                "rank {rank}\n round\n copy input[0] -> output[0]\n round\n send {peer}: output[0]\n recv {peer}{combine}: output[0]\n"
            )
        };
        judge(&format!("collective allreduce\ntopology [0,1]\nblocks 1\n{}{}", rank(0, 1), rank(1, 0)))
    };
    assert!(matches!(exchange(""), Err(Fault::Overlap { .. })));
    // Rank 1 evaluates 1 op 0: right, but neither in order nor the same expression.
    assert_eq!(exchange(" combine"), Ok((false, false, 1)));
}

#[test]
fn what_the_reduction_asks_for_is_proved_too() {
    let exchange = |asked: &str, how: [&str; 2]| {
        let rank = |rank: usize| {
            let (peer, how) = (1 - rank, how[rank]);
            format!(
                "rank {rank}\n round\n copy input[0] -> output[0]\n round\n send {peer}: output[0]\n recv {peer} {how}: output[0]\n"
            )
        };
        judge(&format!("collective allreduce\ntopology [0,1]\nblocks 1\n{asked}\n{}{}", rank(0), rank(1)))
    };
    let (ordered, swapped, mixed) =
        (["combine", "combine-before"], ["combine-before", "combine"], ["combine", "combine"]);
    assert_eq!(exchange("reduction non-commutative identical", ordered), Ok((true, true, 1)));
    assert_eq!(exchange("reduction identical", swapped), Ok((false, true, 1)));
    assert_eq!(exchange("reduction non-commutative", swapped), Err(Fault::NotOrdered { rank: 0, position: 0 }));
    assert_eq!(exchange("reduction identical", mixed), Err(Fault::NotIdentical { rank: 1, position: 0 }));
}

#[test]
fn a_vector_cut_into_no_blocks_proves_nothing() {
    for collective in ["allreduce", "bcast", "reduce"] {
        let outcome = judge(&format!("collective {collective}\ntopology [0,1]\nblocks 0\nrank 0\nrank 1"));
        assert!(matches!(outcome, Err(Fault::Blocks { wanted: 1, blocks: 0, .. })), "{collective}: {outcome:?}");
    }
}

#[test]
fn spans_of_one_operation_do_not_overlap_and_empty_ones_overlap_nothing() {
    let two = |body: &str| {
        let rank = |rank: usize| {
            let peer = 1 - rank;
            format!(
                "rank {rank}\n round\n send {peer}: input[0..2]\n recv {peer}: output[0..2] scratch[1..1] output[1..1]\n combine input[0..2] -> output[0..2]\n {body}\n"
            )
        };
        judge(&format!("collective allreduce\ntopology [0,1]\nblocks 2\n{}{}", rank(0), rank(1)))
    };
    assert_eq!(two(""), Ok((false, false, 1)));
    // What such a copy or combine does depends on the direction in which it runs.
    let shift =
        "copy input[0..2] -> scratch[0..2]\n copy input[0..2] -> scratch[2..4]\n copy input[0..2] -> scratch[4..6]";
    for verb in ["copy", "combine", "combine-before"] {
        let outcome = two(&format!("{shift}\n {verb} scratch[0..4] -> scratch[2..6]"));
        assert!(matches!(outcome, Err(Fault::Aliased { position: 2, .. })), "{verb}: {outcome:?}");
    }
}

#[test]
fn results_and_sizes_are_compared_block_by_block() {
    let one = |body: &str| judge(&format!("collective allreduce\ntopology [0]\nblocks 2\nrank 0\n round\n{body}"));
    assert_eq!(one("copy input[0..2] -> output[0..2]"), Ok((true, true, 0)));
    assert!(matches!(one("copy input[0] -> output[0]"), Err(Fault::Missing { rank: 0, position: 1 })));
    assert!(matches!(one("copy input[0] -> output[1]"), Err(Fault::Misfit { fits: 1, block: 0, .. })));
    assert!(matches!(one("copy input[0] -> scratch[3]"), Err(Fault::Misfit { fits: 1, block: 0, .. })));
    assert!(matches!(one("copy input[1..3] -> output[0..2]"), Err(Fault::Outside { extent: 2, position: 2, .. })));
    assert!(matches!(one("copy output[0] -> input[0]"), Err(Fault::Unwritten { .. })));
    assert!(matches!(one("copy input[0] -> input[0]"), Err(Fault::InputWritten { .. })));
    assert!(matches!(
        one("copy input[0..2] -> output[0..2]\n combine input[0] -> output[0]"),
        Err(Fault::Twice { contributor: 0, .. })
    ));
}

/// A promise that is never broken should be a promise that is made.
#[test]
fn what_is_not_promised_is_sometimes_not_so() {
    let machines =
        ["7", "8", "12", "4x4", "3x2", "[[0,3],[1,4],[2,5]]", "3,5,4"].map(|text| text.parse::<Topology>().unwrap());
    for collective in
        Collective::ALL.into_iter().filter(|collective| collective.reduces() && collective.family() == *collective)
    {
        for algorithm in algorithms(collective) {
            let problems = machines.iter().flat_map(|machine| {
                let problem = Problem::new(collective, machine.clone());
                let last = problem.ranks() - 1;
                [problem.clone(), if collective.rooted() { problem.with_root(last).unwrap() } else { problem }]
            });
            let (mut unordered, mut different) = ((false, false), (false, false));
            for problem in problems {
                for choice in Choice::variants(algorithm, &problem) {
                    let Ok(prepared) = choice.prepare(&problem) else { continue };
                    let report = verify(&prepared.ensemble()).unwrap();
                    unordered.0 |= !choice.ordered(&problem);
                    unordered.1 |= !report.ordered;
                    different.0 |= !choice.identical(&problem);
                    different.1 |= !report.identical;
                }
            }
            assert_eq!(unordered.0, unordered.1, "{collective} {}: ordered", algorithm.name);
            assert_eq!(different.0, different.1, "{collective} {}: identical", algorithm.name);
        }
    }
}

#[test]
fn the_example_in_the_documentation_is_right() {
    let page = include_str!("../../../docs/schedules.md");
    let begin = page.find("allhands schedule 1").unwrap();
    let end = begin + page[begin..].find("```").unwrap();
    let report = verify(&page[begin..end].parse::<Ensemble>().unwrap()).unwrap();
    assert!(report.ordered && report.identical);
}
