use super::*;
use crate::kernels::{Operation, Type};

/// A sum of so many integers.
fn sum(count: usize) -> RawCall {
    RawCall {
        collective: Collective::Allreduce,
        amount: Amount::Each(count),
        element: Type::U64,
        operation: Some(Operation::Sum.into()),
        root: 0,
        graph: None,
    }
}

fn plan(comm: &Comm, count: usize) -> Result<RawPlan> {
    comm.raw_plan(&sum(count), &Options::new(), &|| ())
}

#[test]
fn runs_begin_on_the_caller_s_memory_and_end_in_any_order() {
    const COUNT: usize = 20_000;
    crate::threads(Topology::regular(2, 2).unwrap(), |comm| {
        let me = comm.rank() as u64;
        let (mut one, mut other) = (plan(comm, COUNT)?, plan(comm, COUNT)?);
        assert!(one.test()?, "no run is under way");
        for run in 0..6 {
            let (x, mut y, mut z) = (vec![me + run; COUNT], vec![0u64; COUNT], vec![me * run; COUNT]);
            // SAFETY: as many elements as the plans have, kept until both runs are through.
            unsafe {
                one.start(x.as_ptr().cast(), y.as_mut_ptr().cast())?;
                other.start_in_place(z.as_mut_ptr().cast())?;
            }
            if (me + run).is_multiple_of(2) {
                one.wait()?;
                while !other.test()? {
                    std::thread::yield_now();
                }
            } else {
                other.wait()?;
                one.wait()?;
            }
            assert_eq!((y, z), (vec![6 + 4 * run; COUNT], vec![6 * run; COUNT]));
        }
        Ok(())
    })
    .unwrap();
}

/// What was found for a call is found again by everything that it depends on: the call, the options, and what decides.
#[test]
fn a_call_like_an_earlier_one_is_answered_alike_and_others_are_not() {
    crate::threads(Topology::flat(3).unwrap(), |comm| {
        let call = |operation: Operation, count| RawCall {
            collective: Collective::Allreduce,
            amount: Amount::Each(count),
            element: Type::I32,
            operation: Some(operation.into()),
            root: 0,
            graph: None,
        };
        let sums = |plan: &mut RawPlan, count: usize| -> Result<Vec<i32>> {
            let (x, mut y) = (vec![2 + comm.rank() as i32; count], vec![0i32; count]);
            // SAFETY: as many elements as the plan has.
            unsafe { plan.run(x.as_ptr().cast(), y.as_mut_ptr().cast())? };
            Ok(y)
        };
        let options = [Options::new(), Options::new().algorithm("ring")];
        for _ in 0..3 {
            for (asked, algorithm) in options.iter().zip([None, Some("ring")]) {
                let mut sum = comm.raw_plan(&call(Operation::Sum, 2), asked, &|| ())?;
                let mut product = comm.raw_plan(&call(Operation::Product, 2), asked, &|| ())?;
                let mut longer = comm.raw_plan(&call(Operation::Sum, 3), asked, &|| ())?;
                assert_eq!((sums(&mut sum, 2)?, sums(&mut product, 2)?), (vec![9; 2], vec![24; 2]));
                assert_eq!(sums(&mut longer, 3)?, [9; 3]);
                assert!(algorithm.is_none_or(|named| sum.algorithm() == named && sum.why() == "the caller's wish"));
                assert!(algorithm.is_some() || sum.why() != "the caller's wish");
            }
        }
        let before = comm.raw_plan(&call(Operation::Sum, 2), &options[0], &|| ())?.why();
        let cell = crate::tuning::Cell {
            collective: "allreduce".into(),
            nodes: 1,
            ranks_per_node: 3,
            bytes: 8,
            times: vec![crate::tuning::Time {
                algorithm: "tree".into(),
                median_us: 1.0,
                p10_us: 1.0,
                p90_us: 1.0,
                samples: 9,
            }],
        };
        let mut tuning = crate::tuning::Tuning::new("threads");
        tuning.cells.push(cell);
        comm.follow(tuning);
        let after = comm.raw_plan(&call(Operation::Sum, 2), &options[0], &|| ())?;
        assert_ne!(after.why(), before, "another evidence decides");
        Ok(())
    })
    .unwrap();
}

/// Whether a rank makes a plan or adopts a retired one is its own affair, whatever it carries and shares.
#[test]
fn retired_plans_serve_beside_those_that_are_made() {
    let cases = [("nap:local=shared", 1), ("nap:local=shared", 3000), ("ring", 5), ("tree", 40_000), ("nap", 2)];
    crate::threads(Topology::regular(2, 3).unwrap(), |comm| {
        let me = comm.rank();
        for (algorithm, count) in cases {
            let options = Options::new().algorithm(algorithm);
            let make = || comm.raw_plan(&sum(count), &options, &|| ());
            let mut plan = make()?;
            for life in 0..8 {
                // So many runs that both halves of what is shared are used, and not always the same one last.
                for run in 0..1 + life % 3 {
                    let (x, mut y) = (vec![(me * life + run) as u64; count], vec![0u64; count]);
                    // SAFETY: as many elements as the plan has.
                    unsafe { plan.run(x.as_ptr().cast(), y.as_mut_ptr().cast())? };
                    assert_eq!(y, vec![(15 * life + 6 * run) as u64; count], "{algorithm}, life {life}");
                }
                plan = match (me + life) % 3 {
                    0 => make()?,
                    _ => {
                        assert!(plan.retire());
                        assert!(comm.adopt(plan.0.state(), &|| ())?);
                        plan
                    }
                };
            }
        }
        Ok(())
    })
    .unwrap();
}

/// What decides may be another by then, and a run that went wrong leaves messages behind.
#[test]
fn a_plan_that_would_not_be_made_now_is_not_adopted() {
    crate::threads(Topology::flat(2).unwrap(), |comm| {
        let mut plan = plan(comm, 4)?;
        let (x, mut y) = ([1u64; 4], [0u64; 4]);
        // SAFETY: four elements, kept until the run is through.
        unsafe { plan.start(x.as_ptr().cast(), y.as_mut_ptr().cast())? };
        assert!(!plan.retire(), "a run is under way");
        plan.wait()?;
        assert!(!comm.adopt(plan.0.state(), &|| ())?, "it is not retired");
        assert!(plan.retire());
        // SAFETY: four elements.
        let refused = unsafe { plan.run(x.as_ptr().cast(), y.as_mut_ptr().cast()) };
        assert!(refused.is_err_and(|error| error.to_string().contains("connected to nobody")));
        comm.follow(crate::tuning::Tuning::new("threads"));
        assert!(!comm.adopt(plan.0.state(), &|| ())?, "another evidence decides");
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_plan_that_is_dropped_or_started_again_waits_for_its_run() {
    crate::threads(Topology::flat(3).unwrap(), |comm| {
        let mut plan = plan(comm, 4)?;
        let (x, mut y, mut z) = ([1u64; 4], [0u64; 4], [5u64; 4]);
        // SAFETY: four elements, kept until the plan is dropped.
        unsafe {
            plan.start(x.as_ptr().cast(), y.as_mut_ptr().cast())?;
            plan.start_in_place(z.as_mut_ptr().cast())?;
        }
        assert_eq!(y, [3; 4]);
        drop(plan);
        assert_eq!(z, [15; 4]);
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_plan_without_shared_memory_waits_for_nobody() {
    let made = std::sync::Barrier::new(2);
    crate::threads(Topology::flat(2).unwrap(), |comm| {
        let call = RawCall {
            collective: Collective::Allgather,
            amount: Amount::Each(8),
            element: Type::U8,
            operation: None,
            root: 0,
            graph: None,
        };
        let options = Options::new().unshared(true);
        let late = comm.rank() == 0;
        // Whoever waited for the other here would wait for ever.
        if late {
            made.wait();
        }
        let mut plan = comm.raw_plan(&call, &options, &|| ())?;
        if !late {
            made.wait();
        }
        assert!(!plan.algorithm().contains("shared"), "{}", plan.algorithm());
        let (x, mut y) = ([comm.rank() as u8; 8], [9u8; 16]);
        // SAFETY: eight bytes, and eight of each.
        unsafe { plan.run(x.as_ptr(), y.as_mut_ptr())? };
        assert_eq!((&y[..8], &y[8..]), (&[0; 8][..], &[1; 8][..]));
        Ok(())
    })
    .unwrap();
}

/// Rank r sends so many bytes to rank s in a run.
fn sent(r: usize, s: usize, run: usize) -> usize {
    (3 * r + 5 * s + run) % 7 * (1 + run % 3 * 400)
}

fn exchange(counts: Vec<usize>) -> RawCall {
    let (collective, amount) = (Collective::Alltoallv, Amount::Listed(counts));
    RawCall { collective, amount, element: Type::U8, operation: None, root: 0, graph: None }
}

#[test]
fn what_is_planned_at_a_reserved_place_runs_among_plans_made_at_other_times() {
    let flat = Topology::flat(3).unwrap();
    for (topology, algorithm) in [(flat, "spread-out"), (Topology::regular(2, 2).unwrap(), "bruck:radix=2")] {
        crate::threads(topology, |comm| {
            let comm = RawComm(Rc::new(comm.split(0, 0)?));
            let (me, ranks, place) = (comm.rank(), comm.size(), comm.reserve()?);
            let alone = Options::new().unshared(true);
            let run = |run: usize| {
                let counts = (0..ranks * ranks).map(|pair| sent(pair / ranks, pair % ranks, run)).collect();
                let mut plan = place.plan(&exchange(counts), &alone.clone().algorithm(algorithm))?;
                let byte = |r: usize, s: usize, i: usize| (100 * r + 10 * s + 3 * run + i) as u8;
                let x: Vec<u8> = (0..ranks).flat_map(|s| (0..sent(me, s, run)).map(move |i| byte(me, s, i))).collect();
                let wanted: Vec<u8> =
                    (0..ranks).flat_map(|r| (0..sent(r, me, run)).map(move |i| byte(r, me, i))).collect();
                let mut y = vec![0; wanted.len()];
                // SAFETY: as many bytes as the counts say.
                unsafe { plan.run(x.as_ptr(), y.as_mut_ptr())? };
                assert_eq!(y, wanted, "run {run} on rank {me}");
                Ok::<_, Error>(())
            };
            // Ranks come to these plans at different times among the others.
            let other = |count: usize| {
                let call = RawCall {
                    collective: Collective::Allreduce,
                    amount: Amount::Each(count),
                    element: Type::U64,
                    operation: Some(Operation::Sum.into()),
                    root: 0,
                    graph: None,
                };
                comm.plan(&call, &alone)
            };
            let mut plans = Vec::new();
            for turn in 0..6 {
                plans.push(other(turn + 1)?);
                if turn % 2 == me % 2 {
                    plans.push(other(turn + 8)?);
                    run(turn)?;
                } else {
                    run(turn)?;
                    plans.push(other(turn + 8)?);
                }
            }
            for plan in &mut plans {
                let mut y = [1u64; 16];
                // SAFETY: at least as many words as any of them has.
                unsafe { plan.run_in_place(y.as_mut_ptr().cast())? };
                assert_eq!(y[0], ranks as u64);
            }
            let refused = place.plan(&exchange(vec![0; ranks * ranks]), &alone.clone().algorithm("mpi"));
            assert_eq!(refused.err(), Some(Error::LibraryLater));
            Ok(())
        })
        .unwrap();
    }
}

#[test]
fn a_run_that_is_only_tested_ends_when_another_rank_has_failed() {
    let begun = std::sync::Barrier::new(2);
    let outcome = crate::threads(Topology::flat(2).unwrap(), |comm| {
        let call = |count| RawCall {
            collective: Collective::Allreduce,
            amount: Amount::Each(count),
            element: Type::U64,
            operation: Some(Operation::Sum.into()),
            root: 0,
            graph: None,
        };
        let alone = Options::new().unshared(true);
        if comm.rank() == 1 {
            begun.wait();
            let refused = comm.raw_plan(&call(8), &alone, &|| ()).err();
            assert!(matches!(refused, Some(Error::Mismatch { rank: 1, other: 0, .. })), "{refused:?}");
            return Ok(());
        }
        let mut y = [1u64; 4];
        let mut plan = comm.raw_plan(&call(4), &alone, &|| ())?;
        // SAFETY: four words, kept until the run has ended.
        unsafe { plan.start_in_place(y.as_mut_ptr().cast())? };
        begun.wait();
        let failed = loop {
            match plan.test() {
                Ok(through) => assert!(!through),
                Err(error) => break error,
            }
            std::thread::yield_now();
        };
        assert!(matches!(failed, Error::Abandoned { rank: 1, .. }), "{failed}");
        Ok(())
    });
    assert_eq!(outcome, Ok(vec![(), ()]));
}

#[test]
fn what_is_under_way_moves_on_while_a_plan_is_made() {
    crate::threads(Topology::flat(2).unwrap(), |comm| {
        let mut y = vec![1u64; 1000];
        let mut first = plan(comm, 1000)?;
        // SAFETY: a thousand words, kept until the run is through.
        unsafe { first.start_in_place(y.as_mut_ptr().cast())? };
        let call = RawCall {
            collective: Collective::Allreduce,
            amount: Amount::Each(8),
            element: Type::U8,
            operation: Some(Operation::Sum.into()),
            root: 0,
            graph: None,
        };
        let shared = Options::new().algorithm("smp:local=shared");
        // Rank 1 comes to the second plan only after its first run, for which it needs rank 0.
        if comm.rank() == 1 {
            first.wait()?;
        }
        let _second = comm.raw_plan(&call, &shared, &|| ())?;
        first.wait()?;
        assert_eq!(y, [2; 1000]);
        Ok(())
    })
    .unwrap();
}
