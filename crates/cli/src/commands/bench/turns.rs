//! Algorithms by turns at one size: batches of runs, every result checked.

use std::time::{Duration, Instant};

use allhands::{Comm, Op, Options, Plan};

use super::measure::{Job, Measured};
use super::names::AUTO;
use super::values::{Value, input, plan, wanted};

/// The fastest algorithm's batch. Ranks leave a barrier about a microsecond apart.
const BATCH: Duration = Duration::from_micros(50);
/// Enough for a collective of a single rank.
const MOST_RUNS: f64 = 1000.0;

/// So many times as long as the best at a first look, which may be cold, and at a second.
const HOPELESS: [f64; 2] = [30.0, 10.0];
/// What takes less, in microseconds, costs nobody much time, and may have been disturbed.
const CHEAP: f64 = 2000.0;

/// The algorithms of a job at one size, as one rank sees them.
pub(super) struct Turns<'a, T: Value> {
    job: &'a Job<'a>,
    comm: &'a Comm,
    plans: Vec<Plan<T>>,
    bench: Batches<T>,
    order: &'a mut Shuffle,
    /// Runs of a batch.
    pub(super) runs: usize,
    /// Of every algorithm, in the order of rounds, in microseconds; the slowest rank's.
    pub(super) times: Vec<Vec<f64>>,
    /// The better of the first runs, as far as there were any.
    pub(super) looks: Vec<f64>,
}

impl<'a, T: Value> Turns<'a, T> {
    pub(super) fn new(
        job: &'a Job<'a>,
        comm: &'a Comm,
        bytes: usize,
        order: &'a mut Shuffle,
    ) -> allhands::Result<Turns<'a, T>> {
        let count = bytes / size_of::<T>();
        let plans = job.names.iter().map(|name| {
            // A comparison may include algorithms whose results differ in rounding from rank to rank.
            let options = if name == AUTO { Options::new() } else { Options::new().algorithm(name).identical(false) };
            plan(&job.called, comm, count, &options)
        });
        let plans: Vec<Plan<T>> = plans.collect::<allhands::Result<_>>()?;
        let wanted = wanted::<T>(&job.called, comm.size(), comm.rank(), count);
        let bench = Batches {
            gate: comm.barrier_plan()?,
            input: input::<T>(&job.called, comm.size(), comm.rank(), count),
            output: wanted.clone(),
            wanted,
            one_by_one: false,
            isolated: job.isolated,
            wrong: None,
        };
        let (times, looks) = (vec![Vec::new(); plans.len()], vec![f64::INFINITY; plans.len()]);
        Ok(Turns { job, comm, plans, bench, order, runs: 1, times, looks })
    }

    /// From now on a run from or to a root, or along the ranks, ends with a barrier. Back to back a root would begin the next before the others
    /// have got anything, and what is measured would be its own effort, not when the data are there.
    pub(super) fn one_by_one(&mut self) {
        self.bench.one_by_one = self.job.called.collective.rooted() || self.job.called.collective.prefixes();
    }

    /// The algorithm that a plan has chosen.
    pub(super) fn algorithm(&self, index: usize) -> String {
        self.plans[index].algorithm()
    }

    /// One run of each, and another of those that are not hopeless; then those whose better run is not. What takes seconds where
    /// others take microseconds would otherwise spend the time of all.
    pub(super) fn first_look(&mut self) -> allhands::Result<Vec<usize>> {
        let mut on: Vec<usize> = (0..self.plans.len()).collect();
        for hopeless in HOPELESS {
            for &index in &on {
                let mut time = [self.bench.batch(&mut self.plans[index], &self.job.names[index], 1)?];
                self.comm.allreduce_in_place(&mut time, Op::max())?;
                self.looks[index] = self.looks[index].min(time[0]);
            }
            let least = self.looks.iter().copied().fold(f64::INFINITY, f64::min);
            on.retain(|&index| self.looks[index] <= (hopeless * least).max(CHEAP));
        }
        Ok(on)
    }

    /// Settles how many runs fill a batch; returns how many rounds of these fit into so many seconds. Rank 0 says both. What disturbs
    /// one round of warming up is mended by the next.
    pub(super) fn warm_up(&mut self, on: &[usize], seconds: f64) -> allhands::Result<usize> {
        let (mut fastest, mut rounds) = (f64::INFINITY, 0);
        for _ in 0..self.job.warm_up {
            let begin = Instant::now();
            for &index in on {
                fastest = fastest.min(self.bench.batch(&mut self.plans[index], &self.job.names[index], self.runs)?);
            }
            let next = (BATCH.as_secs_f64() * 1e6 / fastest).ceil().clamp(1.0, MOST_RUNS);
            let turn = begin.elapsed().as_secs_f64() * next / self.runs as f64;
            rounds = self.job.iterations.unwrap_or(((seconds / turn) as usize).clamp(5, 1000));
            let mut agreed = [next as u64, rounds as u64];
            self.comm.bcast(&mut agreed, 0)?;
            [self.runs, rounds] = agreed.map(|number| number as usize);
        }
        Ok(rounds)
    }

    /// So many rounds, in each of which each of these has its turn.
    pub(super) fn rounds(&mut self, on: &[usize], rounds: usize) -> allhands::Result<()> {
        let mut times = vec![Vec::with_capacity(rounds); on.len()];
        for _ in 0..rounds {
            for turn in self.order.next(on.len()) {
                let index = on[turn];
                times[turn].push(self.bench.batch(&mut self.plans[index], &self.job.names[index], self.runs)?);
            }
        }
        let mut times: Vec<f64> = times.concat();
        self.comm.allreduce_in_place(&mut times, Op::max())?;
        for (&index, times) in on.iter().zip(times.chunks(rounds.max(1))) {
            self.times[index].extend_from_slice(times);
        }
        Ok(())
    }

    /// What this rank has to tell if a result was wrong on any.
    pub(super) fn wrong_anywhere(&mut self) -> allhands::Result<Option<Measured>> {
        wrong_anywhere(self.comm, self.bench.wrong.take())
    }
}

/// What this rank has to tell if a result was wrong on any. Every rank gets to know, so that none waits for one that has stopped.
fn wrong_anywhere(comm: &Comm, here: Option<String>) -> allhands::Result<Option<Measured>> {
    let mut ranks = [u64::from(here.is_some())];
    comm.allreduce_in_place(&mut ranks, Op::sum())?;
    Ok(match here {
        Some(reason) => Some(Measured::Wrong(reason)),
        None => (ranks[0] > 0).then_some(Measured::WrongElsewhere),
    })
}

/// One rank's buffers of one size.
struct Batches<T> {
    gate: Plan<u8>,
    input: Vec<T>,
    output: Vec<T>,
    wanted: Vec<T>,
    /// Whether all wait for each other after every run.
    one_by_one: bool,
    /// Whether every run comes alone, on data that were just written.
    isolated: bool,
    /// The first wrong result. The others go on to the end of the size, where all get to know.
    wrong: Option<String>,
}

impl<T: Value> Batches<T> {
    /// So many runs; microseconds for each.
    fn batch(&mut self, plan: &mut Plan<T>, name: &str, runs: usize) -> allhands::Result<f64> {
        for (at, wanted) in self.output.iter_mut().zip(&self.wanted) {
            *at = wanted.spoilt();
        }
        let time = if self.isolated { self.one_after_another(plan, runs)? } else { self.back_to_back(plan, runs)? };
        if self.output != self.wanted && self.wrong.is_none() {
            let place = self.output.iter().zip(&self.wanted).position(|(is, wanted)| is != wanted).unwrap_or(0);
            let bytes = size_of_val(&self.wanted[..]);
            self.wrong = Some(format!("{name} gives a wrong result: element {place} of an output of {bytes} bytes"));
        }
        Ok(time.as_secs_f64() * 1e6 / runs as f64)
    }
}

impl<T: Value> Batches<T> {
    fn back_to_back(&mut self, plan: &mut Plan<T>, runs: usize) -> allhands::Result<Duration> {
        self.gate.run(&[], &mut [])?;
        let begin = Instant::now();
        for _ in 0..runs {
            plan.run(&self.input, &mut self.output)?;
            if self.one_by_one {
                self.gate.run(&[], &mut [])?;
            }
        }
        Ok(begin.elapsed())
    }

    /// Each after its input was written anew and all ranks have met.
    fn one_after_another(&mut self, plan: &mut Plan<T>, runs: usize) -> allhands::Result<Duration> {
        let mut time = Duration::ZERO;
        for _ in 0..runs {
            self.input.iter_mut().for_each(|value| *value = std::hint::black_box(*value));
            self.gate.run(&[], &mut [])?;
            let begin = Instant::now();
            plan.run(&self.input, &mut self.output)?;
            time += begin.elapsed();
        }
        Ok(time)
    }
}

/// The same order of algorithms on every rank, another in every iteration.
pub(super) struct Shuffle(u64);

impl Shuffle {
    pub(super) fn new() -> Shuffle {
        Shuffle(1)
    }

    fn next(&mut self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        for last in (1..count).rev() {
            self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            order.swap(last, (self.0 >> 33) as usize % (last + 1));
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use allhands::Topology;

    use super::*;

    #[test]
    fn a_wrong_result_on_one_rank_stops_all_in_both_regimes() {
        let told = allhands::threads(Topology::flat(3).unwrap(), |comm| {
            let mut plan = comm.allreduce_plan::<f64>(2, Op::sum())?;
            let mut batches = Batches {
                gate: comm.barrier_plan()?,
                input: vec![1.0, 2.0],
                output: vec![0.0; 2],
                wanted: vec![3.0, if comm.rank() == 1 { 7.0 } else { 6.0 }],
                one_by_one: false,
                isolated: false,
                wrong: None,
            };
            for isolated in [false, true] {
                batches.isolated = isolated;
                batches.batch(&mut plan, "a plan", 3)?;
            }
            Ok(match wrong_anywhere(comm, batches.wrong)? {
                Some(Measured::Wrong(reason)) => reason,
                Some(Measured::WrongElsewhere) => "elsewhere".into(),
                _ => "nothing".into(),
            })
        });
        let here = "a plan gives a wrong result: element 1 of an output of 16 bytes";
        assert_eq!(told.unwrap(), ["elsewhere", here, "elsewhere"]);
    }

    #[test]
    fn orders_are_shuffled_alike_everywhere() {
        let (mut one, mut other) = (Shuffle::new(), Shuffle::new());
        let orders: Vec<_> = (0..20).map(|_| one.next(4)).collect();
        assert!(orders.iter().all(|order| *order == other.next(4)));
        assert!(orders.iter().any(|order| *order != orders[0]));
    }
}
