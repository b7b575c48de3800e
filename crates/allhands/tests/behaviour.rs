//! What users can rely on besides results: errors instead of hangs, same bits, several collectives at once.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use allhands::{Error, Op, Options, Plan, Threads, Topology};
use allhands_schedule::{Choice, Collective, Problem, algorithms, verify};

fn flat(p: usize) -> Topology {
    Topology::flat(p).unwrap()
}

#[test]
fn a_rank_that_panics_ends_the_others_with_its_name() {
    for p in [2, 3, 8] {
        let outcome = allhands::threads(flat(p), |comm| {
            if comm.rank() == 1 {
                panic!("out of cheese");
            }
            comm.barrier()
        });
        assert_eq!(outcome, Err(Error::Panicked { rank: 1, message: "out of cheese".into() }));
    }
}

#[test]
fn an_operation_that_panics_ends_everybody_and_frees_nothing_too_early() {
    for count in [1, 10_000] {
        let outcome = allhands::threads(flat(4), |comm| {
            let op = Op::user(true, |a: u64, b: u64| if a + b == 10 { panic!("ten") } else { a + b });
            let mut output = vec![0; count];
            comm.allreduce(&vec![comm.rank() as u64 + 1; count], &mut output, op)
        });
        assert!(matches!(outcome, Err(Error::Panicked { ref message, .. }) if message == "ten"), "{outcome:?}");
    }
}

#[test]
fn a_rank_that_ends_early_is_named() {
    // Again and again, because who notices first is a matter of chance.
    for _ in 0..20 {
        let outcome = allhands::threads(flat(3), |comm| if comm.rank() == 2 { Ok(()) } else { comm.barrier() });
        assert!(matches!(outcome, Err(Error::Left { rank: 2, .. })), "{outcome:?}");
        assert!(outcome.unwrap_err().to_string().contains("rank 2 has ended"));
    }
}

#[test]
fn a_rank_that_never_calls_is_reported_with_who_is_where() {
    let ranks = Threads::new(flat(3)).timeout(Duration::from_millis(200));
    let given_up = AtomicUsize::new(0);
    let outcome = ranks.run(|comm| {
        if comm.rank() == 1 {
            while given_up.load(Ordering::Acquire) < 2 {
                std::thread::yield_now();
            }
            return Ok(());
        }
        let waited = comm.barrier();
        given_up.fetch_add(1, Ordering::Release);
        waited
    });
    let error = outcome.unwrap_err();
    let message = error.to_string();
    assert!(matches!(error, Error::Stuck { .. }), "{message}");
    assert!(message.contains("in barrier") && message.contains("rank 1 in nothing"), "{message}");
}

#[test]
fn different_calls_on_different_ranks_are_told_apart() {
    let mismatch = |body: fn(&allhands::Comm) -> allhands::Result<()>| match allhands::threads(flat(2), body) {
        Err(Error::Mismatch { asked, expected, .. }) => [asked, expected].concat(),
        other => panic!("{other:?}"),
    };
    let counts = mismatch(|comm| {
        let n = 3 + comm.rank();
        comm.allreduce(&vec![1; n], &mut vec![0; n], Op::<i32>::sum())
    });
    assert!(counts.contains("allreduce of 3 x i32") && counts.contains("allreduce of 4 x i32"), "{counts}");
    let roots = mismatch(|comm| comm.bcast(&mut [1u8], comm.rank()));
    assert!(roots.contains("root 0") && roots.contains("root 1"), "{roots}");
    let operations = mismatch(|comm| {
        let op = if comm.rank() == 0 { Op::sum() } else { Op::max() };
        comm.allreduce(&[1.0], &mut [0.0], op)
    });
    assert!(operations.contains("sum") && operations.contains("max"), "{operations}");
    let collectives = mismatch(|comm| if comm.rank() == 0 { comm.barrier() } else { comm.bcast(&mut [1u8], 0) });
    assert!(collectives.contains("barrier") && collectives.contains("bcast"), "{collectives}");
}

#[test]
fn buffers_of_the_wrong_length_and_impossible_requests_are_refused_before_anything_moves() {
    let outcome = allhands::threads(flat(3), |comm| {
        let mut plan = comm.allreduce_plan::<f64>(4, Op::sum())?;
        let short = plan.run(&[0.0; 3], &mut [0.0; 4]).unwrap_err().to_string();
        assert!(short.contains("input buffer has 3 elements") && short.contains("needs 4"), "{short}");
        assert!(matches!(plan.run(&[0.0; 4], &mut [0.0; 5]), Err(Error::Length { which: "output", given: 5, .. })));
        assert!(matches!(plan.run_in_place(&mut []), Err(Error::Length { which: "in-place", .. })));
        assert!(plan.start(&[0.0; 9], &mut [0.0; 4]).is_err());
        assert!(matches!(comm.bcast(&mut [1u8], 3), Err(Error::Request(_))));
        assert!(matches!(comm.allgatherv(&[1u8], &mut [0u8; 2], &[1, 1]), Err(Error::Request(_))));
        assert!(matches!(comm.alltoall(&[1u8; 4], &mut [0; 4]), Err(Error::Length { .. })));
        let forced = Options::new().algorithm("neighbor-exchange");
        let refused = comm.allgather_plan_with::<u8>(1, &forced).err().unwrap().to_string();
        assert!(refused.contains("an even number of ranks"), "{refused}");
        let unequal = Options::new().algorithm("cyclic-shift");
        let refused = comm.allreduce_plan_with::<f64>(1, Op::sum(), &unequal).err().unwrap().to_string();
        assert!(
            refused.contains("identical bits on every rank") && refused.contains("recursive-doubling"),
            "{refused}"
        );
        let illegal = comm.allreduce(&[1.0f32], &mut [0.0], Op::bit_xor()).unwrap_err().to_string();
        assert!(illegal.to_lowercase().contains("sum"), "{illegal}");
        plan.run(&[1.0; 4], &mut [0.0; 4])
    });
    assert_eq!(outcome, Ok(vec![(); 3]));
}

#[test]
fn floats_have_the_same_bits_on_every_run_and_where_promised_on_every_rank() {
    let topology = Topology::regular(3, 3).unwrap();
    let problem = Problem::new(Collective::Allreduce, topology.clone());
    for algorithm in algorithms(Collective::Allreduce) {
        let choice = Choice::parse(Collective::Allreduce, algorithm.name).unwrap();
        let identical = verify(&choice.prepare(&problem).unwrap().ensemble()).unwrap().identical;
        let any = Options::new().algorithm(algorithm.name).identical(false);
        let results = allhands::threads(topology.clone(), |comm| {
            let mut plan = comm.allreduce_plan_with::<f64>(17, Op::sum(), &any)?;
            let x: Vec<f64> =
                (0..17).map(|i| ((comm.rank() * 17 + i) as f64).sin() * 10f64.powi(i as i32 % 9)).collect();
            let mut first = vec![0.0; 17];
            plan.run(&x, &mut first)?;
            for _ in 0..500 {
                let mut again = vec![0.0; 17];
                plan.run(&x, &mut again)?;
                let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
                assert_eq!(bits(&again), bits(&first), "{}", algorithm.name);
            }
            Ok(first)
        });
        let results = results.unwrap();
        let same = results.iter().all(|result| *result == results[0]);
        assert!(same || !identical, "{} promises identical bits", algorithm.name);
    }
}

#[test]
fn where_nothing_is_rounded_every_algorithm_gives_every_rank_the_same_bits() {
    let topology = Topology::regular(3, 3).unwrap();
    for algorithm in algorithms(Collective::Allreduce) {
        // Not allowed to differ, and none is refused.
        let forced = Options::new().algorithm(algorithm.name);
        let results = allhands::threads(topology.clone(), |comm| {
            let me = comm.rank() as u32;
            let (mut products, mut least) = ([0; 5], [0.0; 2]);
            let mut plan = comm.allreduce_plan_with::<u32>(5, Op::product(), &forced)?;
            plan.run(&[me + 1, 3, 0x1_0001 * me + 1, u32::MAX - me, me], &mut products)?;
            let mut plan = comm.allreduce_plan_with::<f64>(2, Op::min(), &forced)?;
            plan.run(
                &[if me.is_multiple_of(2) { 0.0 } else { -0.0 }, if me == 4 { -f64::NAN } else { 1.0 }],
                &mut least,
            )?;
            Ok((products, least.map(f64::to_bits)))
        });
        let product = |factor: fn(u32) -> u32| (0..9).fold(1u32, |product, rank| product.wrapping_mul(factor(rank)));
        let products = [
            product(|r| r + 1),
            product(|_| 3),
            product(|r| 0x1_0001 * r + 1),
            product(|r| u32::MAX - r),
            product(|r| r),
        ];
        let least = [-0.0, f64::from_bits(0x7ff8 << 48)].map(f64::to_bits);
        assert_eq!(results, Ok(vec![(products, least); 9]), "{}", algorithm.name);
    }
}

#[test]
fn several_collectives_are_under_way_at_once_in_any_order_of_waiting() {
    let outcome = allhands::threads(Topology::regular(2, 3).unwrap(), |comm| {
        let (me, p) = (comm.rank(), comm.size());
        let odd = comm.split(me as u64 % 2, 0)?;
        let mut sum = comm.allreduce_plan::<u64>(5000, Op::sum())?;
        let mut all = comm.allgather_plan::<u32>(3)?;
        let mut max = odd.allreduce_plan::<i32>(2, Op::max())?;
        for run in 0..50u64 {
            let (x, mut y) = (vec![me as u64 + run; 5000], vec![0; 5000]);
            let (mine, mut gathered) = ([me as u32; 3], vec![0; 3 * p]);
            let mut greatest = [0; 2];
            let a = sum.start(&x, &mut y)?;
            let b = all.start(&mine, &mut gathered)?;
            let c = max.start(&[me as i32, 7], &mut greatest)?;
            // Every rank waits in another order.
            match me % 3 {
                0 => (a.wait()?, b.wait()?, c.wait()?),
                1 => (c.wait()?, a.wait()?, b.wait()?),
                _ => (b.wait()?, c.wait()?, a.wait()?),
            };
            assert_eq!(y, vec![15 + 6 * run; 5000]);
            assert_eq!(gathered, (0..p as u32).flat_map(|rank| [rank; 3]).collect::<Vec<_>>());
            assert_eq!(greatest, [if me % 2 == 0 { 4 } else { 5 }, 7]);
        }
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn a_rank_that_runs_ahead_finds_room_again_and_messages_of_other_plans_are_not_taken_for_those_of_this() {
    let ahead = AtomicU64::new(0);
    let outcome = allhands::threads(flat(2), |comm| {
        let me = comm.rank();
        let mut from_first = comm.bcast_plan::<u64>(1, 0)?;
        let mut to_first = comm.reduce_plan::<u64>(1, Op::sum(), 0)?;
        let mut sum = comm.allreduce_plan::<u64>(1, Op::sum())?;
        let mut others = comm.allgather_plan::<u64>(1)?;
        for round in 0..20u64 {
            // As many as a channel always has room for; while this rank begins, the other one fills it.
            while me == 1 && ahead.load(Ordering::Relaxed) < 8 * (round + 1) {
                std::thread::yield_now();
            }
            for run in 0..100 {
                let mut value = [if me == 0 { 1000 * round + run } else { 0 }];
                from_first.run_in_place(&mut value)?;
                assert_eq!(value, [1000 * round + run]);
                if me == 0 && run < 8 {
                    ahead.fetch_add(1, Ordering::Relaxed);
                }
            }
            // One run is under way while the other rank begins with another plan's, and the other way round.
            let (mine, mut total, mut both, mut reduced) = ([me as u64 + round], [0], [0; 2], [0]);
            match me {
                0 => {
                    let pending = sum.start(&mine, &mut total)?;
                    others.run(&mine, &mut both)?;
                    to_first.run(&mine, &mut reduced)?;
                    pending.wait()?;
                    assert_eq!(reduced, [2 * round + 1]);
                }
                _ => {
                    let pending = others.start(&mine, &mut both)?;
                    sum.run(&mine, &mut total)?;
                    pending.wait()?;
                    to_first.run(&mine, &mut [])?;
                }
            }
            assert_eq!((total, both), ([2 * round + 1], [round, round + 1]));
        }
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn a_collective_that_is_dropped_or_forgotten_harms_nobody() {
    let outcome = allhands::threads(flat(3), |comm| {
        let mut plan = comm.allreduce_plan::<u64>(3000, Op::sum())?;
        for run in 0..10 {
            let mut lost = vec![0; 3000];
            let pending = plan.start(&vec![run; 3000], &mut lost)?;
            if run % 2 == 0 {
                drop(pending)
            } else {
                std::mem::forget(pending)
            }
            drop(lost);
            let mut y = vec![0; 3000];
            plan.run(&vec![1; 3000], &mut y)?;
            assert_eq!(y, vec![3; 3000]);
        }
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn communicators_split_again_and_again() {
    let outcome = allhands::threads(Topology::regular(4, 3).unwrap(), |comm| {
        // By node, last rank first; then each rank alone.
        let node = comm.split(comm.rank() as u64 / 3, 100 - comm.rank() as u64)?;
        assert_eq!((node.size(), node.rank()), (3, 2 - comm.rank() % 3));
        assert_eq!(node.topology().to_string(), "[[2,1,0]]");
        let alone = node.split(node.rank() as u64, 0)?;
        assert_eq!((alone.size(), alone.rank()), (1, 0));
        let mut x = [comm.rank() as u64];
        alone.allreduce_in_place(&mut x, Op::sum())?;
        node.allreduce_in_place(&mut x, Op::sum())?;
        comm.allreduce_in_place(&mut x, Op::sum())?;
        assert_eq!(x[0], 3 * 66);
        let halves: Vec<_> = (0..5).map(|_| comm.split(comm.rank() as u64 % 2, 0)).collect::<allhands::Result<_>>()?;
        for half in halves.iter().rev() {
            half.barrier()?;
        }
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn sixty_four_ranks_and_thousands_of_runs() {
    let outcome = allhands::threads(Topology::regular(8, 8).unwrap(), |comm| {
        let mut plan = comm.allreduce_plan_with::<u64>(4, Op::sum(), &Options::new().algorithm("nap"))?;
        for run in 0..200 {
            let mut x = [run; 4];
            plan.run_in_place(&mut x)?;
            assert_eq!(x, [64 * run; 4]);
        }
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn a_plan_says_what_it_runs_and_why() {
    let said = allhands::threads(Topology::regular(2, 2).unwrap(), |comm| {
        let forced = comm.allreduce_plan_with::<f32>(8, Op::sum(), &Options::new().algorithm("nap"))?;
        let chosen = comm.allreduce_plan::<f32>(8, Op::sum())?;
        Ok((forced.explain(), chosen.explain(), forced.program()))
    });
    let (forced, chosen, program) = &said.unwrap()[0];
    assert!(forced.contains("nap, because of the caller's wish") && forced.contains("far"), "{forced}");
    assert!(chosen.contains(", because of the model of threads") && chosen.contains("; runner-up "), "{chosen}");
    assert!(program.contains("take-with"), "{program}");
}

#[test]
fn all_ranks_choose_alike_on_uneven_and_dealt_out_nodes() {
    let uneven = Topology::uneven(&[3, 1, 2]).unwrap();
    for topology in [uneven, Topology::regular(2, 3).unwrap().cyclic(), flat(5)] {
        let chosen = allhands::threads(topology, |comm| {
            let mut names = Vec::new();
            for count in [1, 700, 40_000] {
                names.push(comm.allreduce_plan::<f64>(count, Op::sum())?.explain());
                names.push(comm.allgather_plan::<u8>(count)?.explain());
                names.push(comm.bcast_plan::<u8>(count, 1)?.explain());
            }
            let firsts = names.iter().map(|text| text.lines().next().unwrap_or_default().to_string());
            Ok(firsts.collect::<Vec<_>>())
        });
        let chosen = chosen.unwrap();
        assert!(chosen.iter().all(|names| *names == chosen[0]), "{chosen:?}");
        assert!(chosen[0].iter().all(|text| text.contains("because of the model of threads")), "{chosen:?}");
    }
}

#[test]
fn calls_of_hundreds_of_shapes_make_their_plans_anew() {
    let outcome = allhands::threads(flat(3), |comm| {
        for count in (0..600).chain(0..10) {
            let mut x = vec![1u8; count];
            comm.allreduce_in_place(&mut x, Op::sum())?;
            assert!(x.iter().all(|&x| x == 3));
        }
        Ok(())
    });
    outcome.unwrap();
}

/// A rank that ends may have left messages behind that others take one by one, waiting for somebody else in between.
#[test]
fn ranks_that_end_at_once_after_the_last_run_are_not_missed() {
    let ports = Options::new().algorithm("bruck:ports=3,1,2,8");
    for _ in 0..60 {
        let outcome = allhands::threads(Topology::regular(5, 3).unwrap(), |comm| {
            let mut plan = comm.allgather_plan_with::<u64>(1400, &ports)?;
            let mut all = vec![0; 15 * 1400];
            plan.run(&vec![comm.rank() as u64; 1400], &mut all)
        });
        outcome.unwrap();
    }
}

#[test]
fn a_plan_of_which_a_run_failed_gives_no_answer_any_more() {
    let ranks = Threads::new(flat(2)).timeout(Duration::from_millis(50));
    let failed = std::sync::Barrier::new(2);
    let outcome = ranks.run(|comm| {
        let mut plan = comm.allreduce_plan::<u64>(1, Op::sum())?;
        let mut sum = [0];
        if comm.rank() == 0 {
            let stuck = plan.run(&[1], &mut sum);
            assert!(matches!(stuck, Err(Error::Stuck { .. })), "{stuck:?}");
            failed.wait();
            // The other rank may already have answered, with what it was sent in the run that failed.
            failed.wait();
            let again = plan.run(&[100], &mut sum);
            assert!(matches!(again, Err(Error::Abandoned { rank: 0, .. })), "{again:?}, {sum:?}");
        } else {
            failed.wait();
            let _ = plan.run(&[10], &mut sum);
            failed.wait();
        }
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn a_run_in_which_an_operation_panicked_is_not_taken_up_again() {
    let panicked = AtomicUsize::new(0);
    let panicked: &'static AtomicUsize = Box::leak(Box::new(panicked));
    let outcome = Threads::new(flat(2)).timeout(Duration::from_secs(5)).run(|comm| {
        let me = comm.rank();
        let op = Op::user(true, move |a: u64, b: u64| {
            // In the middle of a vector, once.
            if me == 0 && a + b == 50 && panicked.fetch_add(1, Ordering::Relaxed) == 0 {
                panic!("once")
            }
            a + b
        });
        let mut plan = comm.allreduce_plan_with::<u64>(200, op, &Options::new().algorithm("recursive-doubling"))?;
        let (input, mut output) = ((0..200).map(|i| i / 2).collect::<Vec<u64>>(), vec![0; 200]);
        if me == 1 {
            std::thread::sleep(Duration::from_millis(30));
            return plan.run(&input, &mut output);
        }
        let mut pending = plan.start(&input, &mut output)?;
        let caught = loop {
            match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| pending.test())) {
                Ok(Ok(false)) => {}
                other => break other,
            }
        };
        assert!(caught.is_err());
        let waited = pending.wait();
        assert!(waited.is_err(), "half of it was combined twice: {:?}", &output[..20]);
        Ok(())
    });
    assert!(!matches!(outcome, Err(Error::Panicked { .. })), "{outcome:?}");
    assert_eq!(panicked.load(Ordering::Relaxed), 1);
}

#[test]
fn counts_that_differ_far_behind_are_told_apart() {
    let outcome = allhands::threads(flat(60), |comm| {
        let me = comm.rank();
        let mut counts = vec![1000; 60];
        counts[59] += usize::from(me == 7);
        comm.allgatherv(&vec![me as u32; counts[me]], &mut vec![0; counts.iter().sum()], &counts)
    });
    assert!(matches!(outcome, Err(Error::Mismatch { .. })), "{outcome:?}");
}

#[test]
fn work_that_panics_beside_a_collective_gives_the_buffers_back() {
    let outcome = allhands::threads(flat(2), |comm| {
        let mut plan = comm.allreduce_plan::<u64>(5000, Op::sum())?;
        let (x, mut y) = (vec![1; 5000], vec![0; 5000]);
        plan.during(&x, &mut y, |_| if comm.rank() == 0 { panic!("no more ideas") } else { Ok(()) })
    });
    assert!(matches!(&outcome, Err(Error::Panicked { rank: 0, message }) if message == "no more ideas"), "{outcome:?}");
}

#[test]
fn memory_of_plans_that_are_gone_serves_others() {
    let shared = Options::new().algorithm("smp:local=shared");
    allhands::threads(Topology::regular(2, 3).unwrap(), |comm| {
        let (me, ranks) = (comm.rank(), comm.size());
        let mut held: Vec<Plan<u64>> = Vec::new();
        for turn in 0..200 {
            let count = 1 + turn * 7 % 50;
            let mut plan = comm.allreduce_plan_with(count, Op::sum(), &shared)?;
            let (input, mut output) = (vec![(me + turn) as u64; count], vec![0; count]);
            // Some plans are dropped before they run, and every rank lets go of others, earlier or later.
            if turn % 5 > 0 {
                plan.run(&input, &mut output)?;
                assert_eq!(output, vec![(ranks * (ranks - 1) / 2 + ranks * turn) as u64; count], "turn {turn}");
            }
            held.push(plan);
            if held.len() > me * 3 {
                held.swap_remove(turn * 5 % held.len());
            }
        }
        Ok(())
    })
    .unwrap();
}
