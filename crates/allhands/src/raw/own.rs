//! Operations of the caller's own, on elements of any size.

use allhands_schedule::{Choice, Problem, Reduction, Topology, algorithms};

use super::*;
use crate::kernels::Type;

/// Of an element's bytes the first is the factor of all affine maps that the others are the constants of: an element that is
/// taken apart gives something else, and so do operands in another order.
const MODULUS: u32 = 251;

fn compose(left: &[u8], right: &mut [u8]) {
    let factor = u32::from(left[0]);
    for (index, byte) in right.iter_mut().enumerate() {
        let constant = if index == 0 { 0 } else { u32::from(left[index]) };
        *byte = ((factor * u32::from(*byte) + constant) % MODULUS) as u8;
    }
}

/// What rank `rank` gives: `count` elements of `bytes`.
fn given(rank: usize, count: usize, bytes: usize) -> Vec<u8> {
    (0..count * bytes).map(|at| ((rank * 37 + at * 11 + at / bytes) as u32 % (MODULUS - 2) + 2) as u8).collect()
}

/// All ranks' elements, combined in order.
fn expected(ranks: usize, count: usize, bytes: usize) -> Vec<u8> {
    let mut all = given(ranks - 1, count, bytes);
    for rank in (0..ranks - 1).rev() {
        for (left, right) in given(rank, count, bytes).chunks(bytes).zip(all.chunks_mut(bytes)) {
            compose(left, right);
        }
    }
    all
}

fn own(bytes: usize) -> RawOperation {
    RawOperation::Own { bytes, commutative: false }
}

fn composing(bytes: usize) -> impl Fn(*const u8, *mut u8, usize) + Send + Sync + 'static {
    move |left: *const u8, right: *mut u8, count: usize| {
        // SAFETY: as many elements as are said.
        let (left, right) = unsafe {
            let length = count * bytes;
            (std::slice::from_raw_parts(left, length), std::slice::from_raw_parts_mut(right, length))
        };
        left.chunks(bytes).zip(right.chunks_mut(bytes)).for_each(|(left, right)| compose(left, right));
    }
}

fn call(collective: Collective, ranks: usize, count: usize, bytes: usize) -> RawCall {
    let amount = match collective {
        Collective::ReduceScatter => Amount::Listed((0..ranks).map(|rank| count + rank % 2).collect()),
        _ => Amount::Each(count),
    };
    RawCall { collective, amount, element: Type::U8, operation: Some(own(bytes)), root: ranks - 1, graph: None }
}

/// Of this rank: elements given, elements before those it gets, elements it gets.
fn lengths(call: &RawCall, me: usize, ranks: usize) -> (usize, usize, usize) {
    match (&call.amount, call.collective) {
        (Amount::Own { .. }, _) => unreachable!("what is combined has counts that all ranks know"),
        (Amount::Listed(counts), _) => (counts.iter().sum(), counts[..me].iter().sum(), counts[me]),
        (Amount::Each(count), Collective::ReduceScatterBlock) => (count * ranks, count * me, *count),
        (Amount::Each(count), Collective::Reduce) => (*count, 0, if me == call.root { *count } else { 0 }),
        (Amount::Each(count), Collective::Exscan) => (*count, 0, if me > 0 { *count } else { 0 }),
        (Amount::Each(count), _) => (*count, 0, *count),
    }
}

fn check(topology: &Topology, call: &RawCall, bytes: usize, algorithm: &str) {
    let ranks = topology.ranks();
    let outcome = crate::threads(topology.clone(), |comm| {
        let (input, before, output) = lengths(call, comm.rank(), ranks);
        let mine = given(comm.rank(), input, bytes);
        let contributors = match call.collective {
            Collective::Scan => comm.rank() + 1,
            Collective::Exscan => comm.rank().max(1),
            _ => ranks,
        };
        let wanted = expected(contributors, input, bytes);
        let wanted = &wanted[before * bytes..(before + output) * bytes];
        let mut plan = comm.raw_plan(call, &Options::new().algorithm(algorithm), &|| ())?;
        plan.combine_by(composing(bytes));
        let (mut apart, mut in_place) = (vec![0; output * bytes], mine.clone());
        // SAFETY: bytes of these lengths; the operation touches its operands only.
        unsafe {
            plan.run(mine.as_ptr(), apart.as_mut_ptr())?;
            plan.run_in_place(in_place.as_mut_ptr())?;
        }
        assert_eq!(apart, wanted, "{call:?} by {algorithm} on {topology}, rank {}", comm.rank());
        assert_eq!(in_place[..output * bytes], *wanted, "{call:?} by {algorithm} in place on {topology}");
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{call:?} by {algorithm} on {topology}: {error}"));
}

#[test]
fn elements_of_any_size_are_combined_whole_and_in_order_by_every_algorithm() {
    let sizes = [3, 24, 16, 1000, 1, 9000, 48].into_iter().cycle();
    let mut cases = sizes.zip([1, 2, 5, 0, 40].into_iter().cycle());
    let topologies = [
        Topology::flat(1),
        Topology::flat(2),
        Topology::flat(3),
        Topology::flat(4),
        Topology::regular(2, 2),
        Topology::regular(3, 2),
        Topology::flat(7),
    ];
    let reductions = Collective::ALL.into_iter().filter(|collective| collective.reduces());
    let mut tried = 0;
    for topology in topologies.map(|made| made.unwrap()) {
        for collective in reductions.clone() {
            let reduction = Reduction { commutative: false, identical: true };
            let problem = Problem::new(collective, topology.clone()).with_root(topology.ranks() - 1).unwrap();
            let problem = problem.with_reduction(reduction);
            for choice in algorithms(collective).flat_map(|algorithm| Choice::variants(algorithm, &problem)) {
                let (bytes, count) = cases.next().unwrap();
                if choice.prepare(&problem).is_ok() {
                    let call = call(collective, topology.ranks(), count, bytes);
                    check(&topology, &call, bytes, &choice.to_string());
                    tried += 1;
                }
            }
        }
    }
    assert!(tried > 100, "{tried}");
}

#[test]
fn each_run_may_have_another_operation() {
    crate::threads(Topology::flat(3).unwrap(), |comm| {
        let operation = RawOperation::Own { bytes: 1, commutative: true };
        let call = RawCall { operation: Some(operation), ..call(Collective::Allreduce, 3, 1, 1) };
        let mut plan = comm.raw_plan(&call, &Options::new(), &|| ())?;
        let (mine, mut all) = ([comm.rank() as u8 + 1], [0]);
        // SAFETY: one byte each, and operations on as many as they are told.
        unsafe {
            assert!(matches!(plan.run(mine.as_ptr(), all.as_mut_ptr()), Err(Error::Operation(_))));
            plan.combine_by(|left, right, _| *right += *left);
            plan.run(mine.as_ptr(), all.as_mut_ptr())?;
            assert_eq!(all, [6]);
            plan.combine_by(|left, right, _| *right = (*left).max(*right));
            plan.run(mine.as_ptr(), all.as_mut_ptr())?;
            assert_eq!(all, [3]);
        }
        Ok(())
    })
    .unwrap();
}
