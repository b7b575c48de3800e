//! Measuring, as every rank does it: batches of runs, algorithms by turns, results checked.

use std::time::{Duration, Instant};

use allhands::{Comm, Op, Options, Plan};
use allhands_schedule::Collective;
use indicatif::ProgressBar;

use super::names::AUTO;
use super::report::Line;
use super::values::{Value, input, plan, wanted};

/// What all ranks do together.
pub(in crate::commands) struct Job<'a> {
    pub(in crate::commands) collective: Collective,
    pub(in crate::commands) transport: &'a str,
    pub(in crate::commands) names: &'a [String],
    pub(in crate::commands) sizes: &'a [usize],
    pub(in crate::commands) iterations: Option<usize>,
    /// Batches of each algorithm that are not counted.
    pub(in crate::commands) warm_up: usize,
    pub(in crate::commands) bar: &'a ProgressBar,
}

/// What a rank has to tell.
pub(in crate::commands) enum Measured {
    /// The same on every rank.
    Lines(Vec<Line>),
    /// A collective gave a wrong result on this rank.
    Wrong(String),
    /// One did on another rank.
    WrongElsewhere,
}

/// Enough for the length of batches to settle.
pub(in crate::commands) const WARM_UP: usize = 5;
/// For all sizes together.
const LIMIT: Duration = Duration::from_secs(15);
/// The fastest algorithm's batch. Ranks leave a barrier about a microsecond apart.
const BATCH: Duration = Duration::from_micros(50);
/// Enough for a collective of a single rank.
const MOST_RUNS: f64 = 1000.0;

impl Job<'_> {
    pub(in crate::commands) fn rank(&self, comm: &Comm) -> allhands::Result<Measured> {
        let mut order = Shuffle(1);
        let mut lines = Vec::new();
        for &bytes in self.sizes {
            // Counted in doubles where they can be; a barrier has none.
            let measured = match bytes.is_multiple_of(8) && self.collective != Collective::Barrier {
                true => self.size::<f64>(comm, bytes, &mut order)?,
                false => self.size::<u8>(comm, bytes, &mut order)?,
            };
            match measured {
                Measured::Lines(more) => lines.extend(more),
                wrong => return Ok(wrong),
            }
        }
        Ok(Measured::Lines(lines))
    }

    fn size<T: Value>(&self, comm: &Comm, bytes: usize, order: &mut Shuffle) -> allhands::Result<Measured> {
        let count = bytes / size_of::<T>();
        let plans = self.names.iter().map(|name| self.plan::<T>(comm, count, name));
        let mut plans: Vec<Plan<T>> = plans.collect::<allhands::Result<_>>()?;
        let (ranks, me) = (comm.size(), comm.rank());
        let wanted = wanted::<T>(self.collective, ranks, me, count);
        let mut bench = Batches {
            gate: comm.barrier_plan()?,
            input: input::<T>(self.collective, ranks, me, count),
            output: wanted.clone(),
            wanted,
            wrong: None,
        };
        if me == 0 {
            self.bar.set_message(format!("{bytes} bytes"));
        }
        // Rank 0 says how many runs fill a batch, and how many batches there is time for. What disturbs one round of warming up
        // is mended by the next.
        let (mut runs, mut batches) = (1, 0);
        let mut fastest = f64::INFINITY;
        let share = LIMIT.as_secs_f64() / self.sizes.len() as f64;
        for _ in 0..self.warm_up {
            let begin = Instant::now();
            for (plan, name) in plans.iter_mut().zip(self.names) {
                fastest = fastest.min(bench.batch(plan, name, runs)?);
            }
            let next = (BATCH.as_secs_f64() * 1e6 / fastest).ceil().clamp(1.0, MOST_RUNS);
            let turn = begin.elapsed().as_secs_f64() * next / runs as f64;
            batches = self.iterations.unwrap_or(((share / turn) as usize).clamp(5, 1000));
            let mut agreed = [next as u64, batches as u64];
            comm.bcast(&mut agreed, 0)?;
            [runs, batches] = agreed.map(|number| number as usize);
        }
        let mut times = vec![Vec::with_capacity(batches); plans.len()];
        for _ in 0..batches {
            for index in order.next(plans.len()) {
                times[index].push(bench.batch(&mut plans[index], &self.names[index], runs)?);
            }
        }
        if let Some(wrong) = wrong_anywhere(comm, bench.wrong)? {
            return Ok(wrong);
        }
        let mut lines = Vec::with_capacity(plans.len());
        for ((name, plan), mut times) in self.names.iter().zip(&plans).zip(times) {
            // The time of a batch is the slowest rank's.
            comm.allreduce_in_place(&mut times, Op::max())?;
            times.sort_by(f64::total_cmp);
            let at = |tenths: usize| times.get((times.len().max(1) - 1) * tenths / 10).copied().unwrap_or(0.0);
            lines.push(Line {
                collective: self.collective.name(),
                ranks,
                bytes,
                algorithm: if name == AUTO { format!("{AUTO} ({})", plan.algorithm()) } else { name.clone() },
                iterations: times.len(),
                runs,
                median_us: at(5),
                p10_us: at(1),
                p90_us: at(9),
                min_us: at(0),
                max_us: at(10),
                ratio_to_best: 0.0,
                transport: self.transport.into(),
            });
            if me == 0 {
                self.bar.inc(1);
            }
        }
        let best = lines.iter().map(|line| line.median_us).fold(f64::INFINITY, f64::min);
        lines.iter_mut().for_each(|line| line.ratio_to_best = line.median_us / best);
        Ok(Measured::Lines(lines))
    }

    fn plan<T: Value>(&self, comm: &Comm, count: usize, name: &str) -> allhands::Result<Plan<T>> {
        // A comparison may include algorithms whose results differ in rounding from rank to rank.
        let options = if name == AUTO { Options::new() } else { Options::new().algorithm(name).identical(false) };
        plan(self.collective, comm, count, &options)
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
    /// The first wrong result. The others go on to the end of the size, where all get to know.
    wrong: Option<String>,
}

impl<T: Value> Batches<T> {
    /// Runs back to back; microseconds for each.
    fn batch(&mut self, plan: &mut Plan<T>, name: &str, runs: usize) -> allhands::Result<f64> {
        for (at, wanted) in self.output.iter_mut().zip(&self.wanted) {
            *at = wanted.spoilt();
        }
        self.gate.run(&[], &mut [])?;
        let begin = Instant::now();
        for _ in 0..runs {
            plan.run(&self.input, &mut self.output)?;
        }
        let time = begin.elapsed();
        if self.output != self.wanted && self.wrong.is_none() {
            let place = self.output.iter().zip(&self.wanted).position(|(is, wanted)| is != wanted).unwrap_or(0);
            let bytes = size_of_val(&self.wanted[..]);
            self.wrong = Some(format!("{name} gives a wrong result: element {place} of an output of {bytes} bytes"));
        }
        Ok(time.as_secs_f64() * 1e6 / runs as f64)
    }
}

/// The same order of algorithms on every rank, another in every iteration.
struct Shuffle(u64);

impl Shuffle {
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
    fn a_wrong_result_on_one_rank_stops_all() {
        let told = allhands::threads(Topology::flat(3).unwrap(), |comm| {
            let mut plan = comm.allreduce_plan::<f64>(2, Op::sum())?;
            let mut batches = Batches {
                gate: comm.barrier_plan()?,
                input: vec![1.0, 2.0],
                output: vec![0.0; 2],
                wanted: vec![3.0, if comm.rank() == 1 { 7.0 } else { 6.0 }],
                wrong: None,
            };
            for _ in 0..2 {
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
        let (mut one, mut other) = (Shuffle(1), Shuffle(1));
        let orders: Vec<_> = (0..20).map(|_| one.next(4)).collect();
        assert!(orders.iter().all(|order| *order == other.next(4)));
        assert!(orders.iter().any(|order| *order != orders[0]));
    }
}
