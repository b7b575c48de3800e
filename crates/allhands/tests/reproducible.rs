//! Reproducible sums on thread ranks: one set of bits, whatever algorithm serves and however ranks sit and contributions are dealt out.

use allhands::{Comm, Op, Options, Topology};
use allhands_schedule::{Collective, algorithms};
use num_complex::Complex;

/// Elements of the vectors.
const LENGTH: usize = 100;
/// Contributions to each element.
const TERMS: usize = 5;

/// Numbers of all sizes, some of which nearly cancel.
fn term(element: usize, index: usize) -> f64 {
    let mut state = (element * TERMS + index + 1) as u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 11
    };
    for _ in 0..3 {
        random();
    }
    let (mantissa, exponent) = (random() as f64 / (1u64 << 53) as f64 + 1.0, random() % 200);
    let number = mantissa * 2f64.powi(exponent as i32 - 100);
    match (index, element % 3) {
        (1, 0) => -term(element, 0) * (1.0 + f64::EPSILON),
        (_, 1) if index % 2 == 1 => -number,
        _ => number,
    }
}

/// The leading bits of a number, and the rest: together exactly it.
fn split(number: f64, parts: usize) -> Vec<f64> {
    let mut rest = number;
    let mut all = Vec::new();
    for part in 1..parts {
        let low = 52 - 52 * part / parts;
        let leading = f64::from_bits(number.to_bits() >> low << low) - (number - rest);
        all.push(leading);
        rest -= leading;
    }
    all.push(rest);
    assert_eq!(all.iter().sum::<f64>(), number, "bits of one number, in order");
    all
}

/// What a rank of so many adds to an element: each of the terms is dealt out to some ranks.
fn contribution(element: usize, rank: usize, ranks: usize) -> f64 {
    let parts = |index: usize| ranks / TERMS + usize::from(index < ranks % TERMS);
    let mut before = 0;
    for index in 0..TERMS {
        if rank < before + parts(index) {
            return split(term(element, index), parts(index))[rank - before];
        }
        before += parts(index);
    }
    unreachable!("ranks are dealt out")
}

fn shapes(ranks: usize) -> Vec<Topology> {
    let divisors = (2..ranks).filter(|nodes| ranks.is_multiple_of(*nodes));
    let regular = divisors.map(|nodes| Topology::regular(nodes, ranks / nodes).unwrap());
    let mut all: Vec<Topology> = [Topology::flat(ranks).unwrap()].into_iter().chain(regular).collect();
    all.extend(all.last().cloned().map(Topology::cyclic));
    all
}

/// The sum by every algorithm that can serve.
fn sums(comm: &Comm, mine: &[f64]) -> allhands::Result<Vec<(String, Vec<u64>)>> {
    let mut all = Vec::new();
    for algorithm in algorithms(Collective::Allreduce) {
        let options = Options::new().reproducible(true).algorithm(algorithm.name);
        let Ok(mut plan) = comm.allreduce_plan_with::<f64>(mine.len(), Op::sum(), &options) else { continue };
        let mut sum = vec![0.0; mine.len()];
        plan.run(mine, &mut sum)?;
        all.push((plan.algorithm(), sum.iter().map(|number| number.to_bits()).collect()));
    }
    Ok(all)
}

#[test]
fn one_set_of_bits_for_all_algorithms_placements_and_numbers_of_ranks() {
    let mut expected: Option<Vec<u64>> = None;
    let mut served = 0;
    for ranks in TERMS..=17 {
        for topology in shapes(ranks) {
            let shown = topology.to_string();
            let everybody = allhands::threads(topology, |comm| {
                let mine: Vec<f64> =
                    (0..LENGTH).map(|element| contribution(element, comm.rank(), comm.size())).collect();
                sums(comm, &mine)
            })
            .unwrap();
            for (algorithm, bits) in everybody.into_iter().flatten() {
                let expected = expected.get_or_insert_with(|| bits.clone());
                assert_eq!(&bits, expected, "{algorithm} on {shown}");
                served += 1;
            }
        }
    }
    assert!(served > 2000, "{served}");
}

/// Of few ranks, every algorithm against the first.
#[test]
fn a_few_ranks_agree_and_one_keeps_its_numbers() {
    for ranks in 1..TERMS {
        let everybody = allhands::threads(Topology::flat(ranks).unwrap(), |comm| {
            let mine: Vec<f64> = (0..LENGTH).map(|element| term(element, comm.rank())).collect();
            sums(comm, &mine)
        })
        .unwrap();
        let all: Vec<_> = everybody.into_iter().flatten().collect();
        assert!(all.iter().all(|(_, bits)| *bits == all[0].1), "{ranks}");
        if ranks == 1 {
            assert!((0..LENGTH).all(|element| all[0].1[element] == term(element, 0).to_bits()));
        }
    }
}

#[test]
fn every_reduction_and_every_way_to_run_it() {
    allhands::threads(Topology::regular(2, 2).unwrap(), |comm| {
        let (me, options) = (comm.rank(), Options::new().reproducible(true));
        let terms = [1e16, 1.0, -1e16, 1.0];
        let mine = [terms[me]; 4];
        let mut sum = [0.0; 4];
        let mut plan = comm.allreduce_plan_with(4, Op::sum(), &options)?;
        plan.run(&mine, &mut sum)?;
        assert_eq!(sum, [2.0; 4]);
        let mut both = mine;
        plan.run_in_place(&mut both)?;
        assert_eq!(both, [2.0; 4]);
        sum = [0.0; 4];
        plan.start(&mine, &mut sum)?.wait()?;
        assert_eq!(sum, [2.0; 4]);
        let mut both = mine;
        plan.start_in_place(&mut both)?.wait()?;
        assert_eq!(both, [2.0; 4]);
        sum = [0.0; 4];
        plan.during(&mine, &mut sum, |run| run.test().map(drop))?;
        assert_eq!(sum, [2.0; 4]);
        let mut rooted = comm.reduce_plan_with(4, Op::sum(), 1, &options)?;
        let mut result = if me == 1 { vec![0.0; 4] } else { vec![] };
        rooted.run(&mine, &mut result)?;
        assert_eq!(result, if me == 1 { vec![2.0; 4] } else { vec![] });
        let mut one = [0.0];
        comm.reduce_scatter_block_plan_with(1, Op::sum(), &options)?.run(&mine, &mut one)?;
        assert_eq!(one, [2.0]);
        let mut scanned = [0.0; 4];
        comm.scan_plan_with(4, Op::sum(), &options)?.run(&mine, &mut scanned)?;
        assert_eq!(scanned, [[1e16, 1e16, 1.0, 2.0][me]; 4]);
        let mut before = vec![7.0; if me == 0 { 0 } else { 4 }];
        comm.exscan_plan_with(4, Op::sum(), &options)?.run(&mine, &mut before)?;
        assert!(me == 0 || before == [[0.0, 1e16, 1e16, 1.0][me]; 4]);
        let complex: Vec<Complex<f32>> = vec![Complex::new([1e8, 1.0, -1e8, 1.0][me], me as f32); 3];
        let mut total = vec![Complex::new(0.0, 0.0); 3];
        comm.allreduce_plan_with(3, Op::sum(), &options)?.run(&complex, &mut total)?;
        assert_eq!(total, vec![Complex::new(2.0, 6.0); 3]);
        // Others are as ever.
        let mut most = [0.0];
        comm.allreduce_plan_with(1, Op::max(), &options)?.run(&mine[..1], &mut most)?;
        assert_eq!(most, [1e16]);
        Ok(())
    })
    .unwrap();
}
