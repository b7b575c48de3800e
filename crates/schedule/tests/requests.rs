//! Requests that cannot be served name the fact and what would be legal.

use allhands_schedule::{Choice, Collective, Problem, Reduction, Topology, algorithms, verify};

fn refusal(collective: Collective, algorithm: &str, topology: &str) -> String {
    let problem = Problem::new(collective, topology.parse().unwrap());
    match Choice::parse(collective, algorithm).and_then(|choice| choice.prepare(&problem).map(|_| ())) {
        Ok(()) => panic!("{collective} {algorithm} on {topology} is served"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn collectives_are_known_as_mpi_writes_them_and_others_are_guessed() {
    for name in ["allreduce", "MPI_Allreduce", "Allreduce", "mpi_allreduce", "ALLREDUCE"] {
        assert_eq!(name.parse::<Collective>().unwrap(), Collective::Allreduce, "{name}");
    }
    assert_eq!("MPI_Reduce_scatter_block".parse::<Collective>().unwrap(), Collective::ReduceScatterBlock);
    assert_eq!("reduce-scatter".parse::<Collective>().unwrap(), Collective::ReduceScatter);
    for (wrong, meant) in
        [("alreduce", "allreduce"), ("reduceall", "allreduce"), ("broadcast", "bcast"), ("MPI_Alltoal", "alltoall")]
    {
        let said = wrong.parse::<Collective>().unwrap_err().to_string();
        assert!(
            said.starts_with(&format!("there is no collective {wrong:?}; did you mean {meant}; known are ")),
            "{said}"
        );
    }
    assert!(!"xyz".parse::<Collective>().unwrap_err().to_string().contains("did you mean"));
    assert_eq!("2X2".parse::<Topology>().unwrap(), "2x2".parse::<Topology>().unwrap());
}

#[test]
fn every_refusal_names_the_fact_and_the_remedy() {
    use Collective::*;
    for (collective, algorithm, topology, fact, remedy) in [
        (Allgather, "neighbor-exchange", "5", "there are 5", "4 or 6 ranks"),
        (Allgather, "recursive-doubling", "12", "there are 12", "8 or 16 ranks"),
        (ReduceScatter, "recursive-halving", "6", "there are 6", "4 or 8 ranks"),
        (Allgather, "bruck:radix=1", "8", "radix=1 is out of range", "2..=8"),
        (Allgather, "bruck:radix=9", "8", "radix=9 is out of range", "2..=8"),
        (Allgather, "bruck:radix=two", "8", "not a number", "2..=8"),
        (Allgather, "bruck:ports=1,1", "8", "reaches only 4 of 8 ranks", "for example 1,1,1"),
        (Allgather, "bruck:ports=0,7", "8", "not a list of numbers", "at least 1"),
        (Allgather, "bruck:ports=7:radix=8", "8", "beside radix", "one of the two"),
        (Allgather, "bruck:ports=7:ports=7", "8", "given twice", "once"),
        (Allgather, "recursive-multiplying:factors=2,3", "8", "multiplies to 6", "2,2,2"),
        (Allgather, "loc-bruck:fan=wide", "4x4", "not known", "paper or full"),
        (Allgather, "loc-bruck:levels=2", "4x4", "levels that exist", "1..=1"),
        (Allgather, "multi-leader:leaders=5", "4x4", "out of range", "1..=4"),
        (Allgather, "ring:speed=9", "4x4", "no parameter \"speed\"", "it has none"),
        (Allgather, "bruck:speed=9", "4x4", "no parameter \"speed\"", "radix"),
        (Allgather, "sprint", "4x4", "no algorithm \"sprint\"", "sparbit"),
        (Alltoall, "bruck:radix=1", "8", "radix=1 is out of range", "2..=8"),
        (Alltoall, "bruck:radices=2,2", "8", "multiplies to 4 only", "2,2,2"),
        (Allreduce, "nap:level=2", "4x4", "out of range", "1..=1"),
        (Allreduce, "nap:ports=0", "4x4", "ports=0 is out of range", "1..=256"),
        (Allreduce, "nap:ports=2:fan=full", "4x4", "is given beside fan=full", "one of the two"),
        (Allreduce, "cyclic-shift:9(1,1,1,1)", "8", "multiply to 9", "8(1,1,1)"),
        (Allreduce, "cyclic-shift:8(1,1)", "8", "too few ports", "8(1,1,1)"),
        (Allreduce, "nap:local=nearby", "4x4", "local=nearby is not known", "messages or shared"),
        (Allreduce, "smp:slices=4", "4x4", "without local=shared", "local=shared beside it"),
        (Allreduce, "cyclic-shift:16(3,3):local=shared", "4x4", "all 16 ranks act", "phases for 4 nodes"),
        (Allreduce, "smp:reduction=chunks", "4x4", "without local=shared", "local=shared beside it"),
        (Bcast, "cyclic-shift:ports=1", "8", "reaches only 2 of 8 ranks", "1,1,1"),
        (Bcast, "hierarchical:radix=5", "4x2", "is out of range", "2..=4"),
        (Bcast, "hierarchical:far=pieces:segments=2", "4x2", "is given beside far=pieces", "one of the two"),
    ] {
        let message = refusal(collective, algorithm, topology);
        assert!(message.contains(fact) && message.contains(remedy), "{collective} {algorithm}: {message}");
    }
}

#[test]
fn the_largest_number_is_no_small_one() {
    for (collective, algorithm) in [(Collective::Allgather, "bruck"), (Collective::Barrier, "dissemination")] {
        let choice = Choice::parse(collective, &format!("{algorithm}:ports={}", usize::MAX)).unwrap();
        let prepared = choice.prepare(&Problem::new(collective, Topology::flat(8).unwrap())).unwrap();
        assert_eq!(verify(&prepared.ensemble()).unwrap().timing.steps, 1, "7 ports are enough, and more do no harm");
    }
}

#[test]
fn a_root_must_be_a_rank_and_counts_must_fit() {
    let problem = Problem::new(Collective::Bcast, Topology::flat(4).unwrap());
    assert_eq!(problem.with_root(4).unwrap_err().to_string(), "root 4 is not a rank; legal is 0..=3");
    let problem = Problem::new(Collective::Allgatherv, Topology::flat(4).unwrap());
    assert!(
        problem
            .clone()
            .with_counts(vec![1, 2, 3])
            .unwrap_err()
            .to_string()
            .contains("3 counts for allgatherv on 4 ranks")
    );
    let message = problem.clone().with_counts(vec![1]).unwrap_err().to_string();
    assert_eq!(message, "1 counts for allgatherv on 4 ranks; give 4");
    assert!(problem.with_counts(vec![0; 4]).is_ok());
    for (collective, remedy) in [
        (Collective::Allgather, "ask for allgatherv"),
        (Collective::ReduceScatterBlock, "ask for reduce_scatter"),
        (Collective::Allreduce, "leave them out"),
        (Collective::Barrier, "leave them out"),
    ] {
        for counts in [1, 4] {
            let problem = Problem::new(collective, Topology::flat(4).unwrap());
            let message = problem.with_counts(vec![3; counts]).unwrap_err().to_string();
            assert!(message.contains("has no counts") && message.contains(remedy), "{collective}: {message}");
        }
    }
}

#[test]
fn a_non_commutative_operation_is_only_given_to_ordered_algorithms() {
    let strict = Reduction { commutative: false, identical: true };
    for collective in [Collective::Allreduce, Collective::ReduceScatter, Collective::Reduce] {
        let mut served = 0;
        for root in [0, 3] {
            let problem = Problem::new(collective, Topology::regular(3, 2).unwrap())
                .with_root(root)
                .unwrap()
                .with_reduction(strict);
            for algorithm in algorithms(collective) {
                for choice in Choice::variants(algorithm, &problem) {
                    match choice.prepare(&problem) {
                        Ok(prepared) => {
                            let report = verify(&prepared.ensemble()).unwrap();
                            assert!(report.ordered && report.identical, "{collective} {choice}");
                            served += 1;
                        }
                        Err(error) => {
                            let message = error.to_string();
                            assert!(message.contains("these do: ") || message.contains("needs"), "{message}");
                        }
                    }
                }
            }
        }
        assert!(served > 0, "{collective} has nothing for non-commutative operations");
    }
    let cyclic = Problem::new(Collective::Allreduce, Topology::regular(2, 2).unwrap().cyclic()).with_reduction(strict);
    let message = Choice::parse(Collective::Allreduce, "nap").unwrap().prepare(&cyclic).err().unwrap().to_string();
    assert!(message.contains("nap does not promise") && message.contains("recursive-doubling"), "{message}");
}
