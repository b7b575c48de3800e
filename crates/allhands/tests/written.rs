//! Schedules in files, as plans run them: what an algorithm does, its text does, too; what is wrong, or for something else, is never run.

use std::sync::Arc;

use allhands::{Comm, Error, Op, Options, Plan, Server, Threads, Topology};
use allhands_schedule::{Choice, Collective, Problem, Written, algorithms};

/// The text of an algorithm's schedule.
fn text(collective: Collective, algorithm: &str, shape: &str) -> Option<String> {
    let problem = Problem::new(collective, shape.parse().unwrap());
    Some(Choice::parse(collective, algorithm).unwrap().prepare(&problem).ok()?.ensemble().to_string())
}

fn plan(collective: Collective, comm: &Comm, options: &Options) -> allhands::Result<Plan<i64>> {
    match collective {
        Collective::Allreduce => comm.allreduce_plan_with(5, Op::sum(), options),
        Collective::ReduceScatterBlock => comm.reduce_scatter_block_plan_with(5, Op::sum(), options),
        Collective::Allgather => comm.allgather_plan_with(5, options),
        Collective::Alltoall => comm.alltoall_plan_with(5, options),
        Collective::Bcast => comm.bcast_plan_with(5, 0, options),
        _ => comm.reduce_plan_with(5, Op::sum(), 0, options),
    }
}

#[test]
fn what_an_algorithm_does_its_text_does() {
    let mut tried = 0;
    for shape in ["1", "3", "2x2", "1x4", "2x3", "2,3"] {
        for collective in [
            Collective::Allreduce,
            Collective::ReduceScatterBlock,
            Collective::Allgather,
            Collective::Alltoall,
            Collective::Bcast,
            Collective::Reduce,
        ] {
            let problem = Problem::new(collective, shape.parse().unwrap());
            let all =
                algorithms(collective).flat_map(|algorithm| Choice::variants(algorithm, &problem).into_iter().take(6));
            let all =
                all.filter_map(|choice| Some((choice.to_string(), text(collective, &choice.to_string(), shape)?)));
            let all: Vec<(String, Arc<Written>)> =
                all.map(|(name, text)| (name.clone(), Arc::new(Written::parse(&name, &text).unwrap()))).collect();
            tried += all.len();
            let ran = Threads::new(shape.parse().unwrap()).run(|comm| {
                let (me, ranks) = (comm.rank() as i64, comm.size());
                let loose = Options::new().identical(false);
                for (name, written) in &all {
                    comm.know(written.clone());
                    let named = |name: &str| loose.clone().algorithm(name);
                    let mut plans =
                        [plan(collective, comm, &named(name))?, plan(collective, comm, &named(&written.to_string()))?];
                    assert_eq!(plans[1].server(), Server::Written(name.clone()));
                    let (input, output) = match collective {
                        Collective::Allgather => (5, 5 * ranks),
                        Collective::Alltoall => (5 * ranks, 5 * ranks),
                        Collective::ReduceScatterBlock => (5 * ranks, 5),
                        Collective::Bcast => (if me == 0 { 5 } else { 0 }, 5),
                        Collective::Reduce => (5, if me == 0 { 5 } else { 0 }),
                        _ => (5, 5),
                    };
                    for round in 0..3 {
                        let given: Vec<i64> = (0..input as i64).map(|at| 1000 * me + 10 * at + round).collect();
                        let mut results = [vec![-1; output], vec![-2; output]];
                        for (plan, result) in plans.iter_mut().zip(&mut results) {
                            plan.run(&given, result)?;
                        }
                        assert_eq!(results[0], results[1], "{collective} {name} on {shape}");
                    }
                }
                Ok(())
            });
            ran.unwrap_or_else(|error| panic!("{collective} on {shape}: {error}"));
        }
    }
    assert!(tried > 300, "{tried}");
}

#[test]
fn rank_0_reads_and_all_refuse_alike() {
    let folder = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        format!("@{}", path.display())
    };
    let right = text(Collective::Allreduce, "ring", "4").unwrap();
    let wrong = write("wrong.txt", &right.replacen("send 1", "send 2", 1));
    let right = write("right.txt", &right);
    let asked = |name: &str, shape: &str, collective| {
        let options = Options::new().algorithm(name);
        let ranks = Threads::new(shape.parse::<Topology>().unwrap()).run(|comm| {
            let refused = plan(collective, comm, &options).err();
            // The ranks agree, and go on.
            let mut count = [1u64];
            comm.allreduce_in_place(&mut count, Op::sum())?;
            assert_eq!(count[0], comm.size() as u64);
            Ok(refused)
        });
        let mut ranks = ranks.unwrap();
        let first = ranks.remove(0);
        assert!(ranks.iter().all(|other| *other == first), "{first:?} {ranks:?}");
        first.map(|error| error.to_string())
    };
    assert_eq!(asked(&right, "2x2", Collective::Allreduce), None);
    let says = |name: &str, shape: &str, collective, words: &str| {
        let said = asked(name, shape, collective).expect("it is refused");
        assert!(said.contains(words), "{said}");
    };
    says(&wrong, "4", Collective::Allreduce, "wrong.txt, line ");
    says(&right, "5", Collective::Allreduce, "is a schedule of allreduce on 4 ranks, but the call is on 5");
    says(&right, "4", Collective::Bcast, "is a schedule of allreduce, but the call is a bcast");
    says("@nowhere.txt", "4", Collective::Allreduce, "nowhere.txt: it cannot be read: No such file");
    // Memory is shared as the file says, or not at all.
    let shared = text(Collective::Allreduce, "nap:local=shared", "2x2").unwrap();
    says(
        &write("shared.txt", &shared),
        "4",
        Collective::Allreduce,
        "that shares memory on nodes, of which there are 2, but the call is on ranks that sit otherwise",
    );
    let chain = text(Collective::Allreduce, "addition-chain", "2x2").unwrap();
    says(&write("chain.txt", &chain), "4", Collective::Reduce, "is a schedule of allreduce, but");
}

#[test]
fn what_ranks_wait_for_nobody_with_must_be_known() {
    let text = text(Collective::Allreduce, "ring", "2").unwrap();
    let written = Arc::new(Written::parse("known.txt", &text).unwrap());
    Threads::new(Topology::flat(2).unwrap())
        .run(|comm| {
            let options = Options::new().algorithm("@known.txt").unshared(true);
            let refused = plan(Collective::Allreduce, comm, &options).err().unwrap();
            assert_eq!(refused, Error::WrittenLater { file: "known.txt".into() });
            comm.know(written.clone());
            // What is made from a communicator knows what that knows.
            let same = comm.split(0, 0)?;
            assert_eq!(plan(Collective::Allreduce, &same, &options)?.algorithm(), "@known.txt");
            Ok(())
        })
        .unwrap();
}
