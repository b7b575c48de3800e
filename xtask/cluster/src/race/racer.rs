//! What the ranks of a race do: every way to perform a collective, in turns, each from a start that all ranks agree on.

use std::path::Path;
use std::time::Duration;

use allhands::{Comm, Error, Op, Options, Plan};

use super::meeting::Meeting;
use crate::system;

/// Runs before those that count.
const WARM_UP: usize = 3;
/// A run that some rank begins later than this does not count.
const LATE: Duration = Duration::from_millis(1);

/// The collectives that race, and the papers' algorithms for them, besides `auto` and `mpi`.
pub(crate) const COLLECTIVES: [(&str, &[&str]); 5] = [
    ("allgather", &["bruck", "ring", "sparbit", "loc-bruck"]),
    ("allreduce", &["recursive-doubling", "rabenseifner", "smp", "nap"]),
    ("alltoall", &["spread-out", "pairwise", "bruck"]),
    ("reduce_scatter_block", &["pairwise", "recursive-halving", "cyclic-shift"]),
    ("bcast", &["binomial"]),
];

/// What is measured of one way.
struct Way {
    name: &'static str,
    algorithm: String,
    plan: Plan<u64>,
    times: Vec<Duration>,
    thrown_away: usize,
}

/// Races on the ranks of this job; the first prints a line for every way.
pub(crate) fn race(meeting: &Path, iterations: usize, sizes: &[usize]) -> Result<(), Error> {
    allhands::mpi(|comm| {
        let (me, ranks) = (comm.rank(), comm.size());
        let mut meeting = Meeting::join(meeting, me, ranks)
            .map_err(|error| Error::Operation(format!("{} cannot be joined: {error}", meeting.display())))?;
        system::limit_priority();
        for (collective, algorithms) in COLLECTIVES {
            for &bytes in sizes {
                let mut ways = Vec::new();
                for name in ["auto", "mpi"].iter().chain(algorithms) {
                    // What cannot serve here does not race.
                    if let Ok(plan) = plan(comm, collective, bytes / 8, name) {
                        let algorithm = plan.algorithm();
                        ways.push(Way { name, algorithm, plan, times: Vec::new(), thrown_away: 0 });
                    }
                }
                measure(&mut meeting, (me, ranks), collective, bytes / 8, iterations, &mut ways)?;
                for way in ways.iter().filter(|_| me == 0) {
                    println!("{}", way.line(collective, bytes));
                }
            }
        }
        Ok(())
    })
}

fn plan(comm: &Comm, collective: &str, count: usize, name: &str) -> Result<Plan<u64>, Error> {
    let options = if name == "auto" { Options::new() } else { Options::new().algorithm(name) };
    match collective {
        "allgather" => comm.allgather_plan_with(count, &options),
        "alltoall" => comm.alltoall_plan_with(count, &options),
        "allreduce" => comm.allreduce_plan_with(count, Op::sum(), &options),
        "reduce_scatter_block" => comm.reduce_scatter_block_plan_with(count, Op::sum(), &options),
        _ => comm.bcast_plan_with(count, 0, &options),
    }
}

/// Element `index` of the block that `from` has for `to`.
fn element(from: usize, to: usize, index: usize) -> u64 {
    (from as u64 * 1_000_003 + to as u64 * 10_007 + index as u64 * 101).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 8
}

/// What a rank gives, and what it must get.
fn buffers(collective: &str, (me, ranks): (usize, usize), count: usize) -> (Vec<u64>, Vec<u64>) {
    let block = |from: usize, to: usize| (0..count).map(move |index| element(from, to, index));
    let summed = |to: usize| {
        (0..count).map(move |index| (0..ranks).fold(0, |sum: u64, from| sum.wrapping_add(element(from, to, index))))
    };
    match collective {
        "allgather" => (block(me, 0).collect(), (0..ranks).flat_map(|from| block(from, 0)).collect()),
        "alltoall" => {
            ((0..ranks).flat_map(|to| block(me, to)).collect(), (0..ranks).flat_map(|from| block(from, me)).collect())
        }
        "allreduce" => (block(me, 0).collect(), summed(0).collect()),
        "reduce_scatter_block" => ((0..ranks).flat_map(|to| block(me, to)).collect(), summed(me).collect()),
        _ => (Vec::new(), block(0, 0).collect()),
    }
}

/// Lets the ways take turns, in an order that is shuffled alike on every rank.
fn measure(
    meeting: &mut Meeting,
    seat: (usize, usize),
    collective: &str,
    count: usize,
    iterations: usize,
    ways: &mut [Way],
) -> Result<(), Error> {
    let (input, expected) = buffers(collective, seat, count);
    let mut output = vec![0; expected.len()];
    let mut state = 1u64;
    for turn in 0..WARM_UP + iterations {
        let mut order: Vec<usize> = (0..ways.len()).collect();
        for last in (1..order.len()).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            order.swap(last, (state >> 33) as usize % (last + 1));
        }
        for index in order {
            let way = &mut ways[index];
            output.fill(u64::MAX);
            if collective == "bcast" && seat.0 == 0 {
                output.copy_from_slice(&expected);
            }
            let run = meeting.run(turn >= WARM_UP, || match collective {
                "bcast" => way.plan.run_in_place(&mut output),
                _ => way.plan.run(&input, &mut output),
            })?;
            if output != expected {
                let text = format!("{collective} by {} gave a wrong result on rank {}", way.name, seat.0);
                return Err(Error::Operation(text));
            }
            match (turn < WARM_UP, run.late > LATE) {
                (true, _) => {}
                (false, true) => way.thrown_away += 1,
                (false, false) => way.times.push(run.time),
            }
        }
    }
    Ok(())
}

impl Way {
    fn line(&self, collective: &str, bytes: usize) -> String {
        let times: Vec<String> = self.times.iter().map(|time| format!("{:.0}", time.as_secs_f64() * 1e6)).collect();
        let Way { name, algorithm, thrown_away, .. } = self;
        format!("run {collective} {bytes} {name} {algorithm} thrown-away={thrown_away} us={}", times.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_expected_is_what_is_given() {
        let (count, ranks) = (3, 4);
        let all = |collective: &str| -> Vec<(Vec<u64>, Vec<u64>)> {
            (0..ranks).map(|me| buffers(collective, (me, ranks), count)).collect()
        };
        let gathered = all("allgather");
        assert_eq!(gathered[2].1, gathered.iter().flat_map(|(input, _)| input.clone()).collect::<Vec<_>>());
        let exchanged = all("alltoall");
        assert_eq!(exchanged[1].1[2 * count..3 * count], exchanged[2].0[count..2 * count]);
        let scattered = all("reduce_scatter_block");
        let sum = (0..ranks).fold(0u64, |sum, from| sum.wrapping_add(scattered[from].0[3 * count + 1]));
        assert_eq!(scattered[3].1[1], sum);
        let reduced = all("allreduce");
        let sum = (0..ranks).fold(0u64, |sum, from| sum.wrapping_add(reduced[from].0[2]));
        assert_eq!(reduced[0].1[2], sum);
        assert_eq!(all("bcast")[3].1.len(), count);
    }
}
