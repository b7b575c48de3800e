//! Measuring, as every rank does it: batches of runs, algorithms by turns, results checked.

use std::time::{Duration, Instant};

use allhands::stats::{fastest, median, ratio, tenth};
use allhands::{Comm, Op, Server};
use allhands_schedule::Collective;
use allhands_schedule::draw::Sizes;
use indicatif::ProgressBar;

use super::names::AUTO;
use super::report::Timing;
use super::turns::{Shuffle, Turns};
use super::values::{Called, Value};

/// What all ranks do together.
pub(in crate::commands) struct Job<'a> {
    pub(in crate::commands) called: Called,
    pub(in crate::commands) transport: &'a str,
    pub(in crate::commands) names: &'a [String],
    pub(in crate::commands) sizes: &'a [usize],
    pub(in crate::commands) iterations: Option<usize>,
    /// Batches of each algorithm that are not counted.
    pub(in crate::commands) warm_up: usize,
    /// Whether every run comes alone, on data that were just written, and not back to back.
    pub(in crate::commands) isolated: bool,
    pub(in crate::commands) bar: &'a ProgressBar,
    /// Takes the lines of a size on rank 0, and says whether the next is wanted.
    pub(in crate::commands) sink: &'a (dyn Fn(&[Timing]) -> bool + Sync),
}

/// Who goes on, by the times so far in the order of rounds, and by the seconds since the beginning.
pub(in crate::commands) type Judge<'a> = dyn FnMut(&[Vec<f64>], f64) -> Vec<usize> + 'a;

/// What a rank has to tell.
pub(in crate::commands) enum Measured {
    /// All sizes, or as many as somebody wanted to see; the same on every rank.
    All,
    /// A collective gave a wrong result on this rank.
    Wrong(String),
    /// One did on another rank.
    WrongElsewhere,
}

/// Enough for the length of batches to settle.
pub(in crate::commands) const WARM_UP: usize = 5;
/// For all sizes together.
const LIMIT: Duration = Duration::from_secs(15);
/// Less than this is no difference.
pub(in crate::commands) const NOTICED: f64 = 1.02;
/// Rounds between two looks of a judge.
const ROUNDS: usize = 4;

impl Job<'_> {
    pub(in crate::commands) fn rank(&self, comm: &Comm) -> allhands::Result<Measured> {
        let mut order = Shuffle::new();
        for &bytes in self.sizes {
            // Counted in doubles where they can be; a barrier has none.
            let wrong = match bytes.is_multiple_of(8) && self.called.collective != Collective::Barrier {
                true => self.size::<f64>(comm, bytes, &mut order)?,
                false => self.size::<u8>(comm, bytes, &mut order)?,
            };
            let lines = match wrong {
                Ok(lines) => lines,
                Err(wrong) => return Ok(wrong),
            };
            let mut wanted = [u8::from(comm.rank() > 0 || (self.sink)(&lines))];
            comm.bcast(&mut wanted, 0)?;
            if wanted[0] == 0 {
                break;
            }
        }
        Ok(Measured::All)
    }

    fn size<T: Value>(
        &self,
        comm: &Comm,
        bytes: usize,
        order: &mut Shuffle,
    ) -> allhands::Result<std::result::Result<Vec<Timing>, Measured>> {
        if comm.rank() == 0 {
            self.bar.set_message(Sizes::words(bytes as u64));
        }
        let mut turns = Turns::<T>::new(self, comm, bytes, order)?;
        let all: Vec<usize> = (0..self.names.len()).collect();
        let batches = turns.warm_up(&all, LIMIT.as_secs_f64() / self.sizes.len() as f64)?;
        turns.rounds(&all, batches)?;
        match turns.wrong_anywhere()? {
            Some(wrong) => Ok(Err(wrong)),
            None => Ok(Ok(self.lines(comm, bytes, &turns))),
        }
    }

    /// Fastest first.
    fn lines<T: Value>(&self, comm: &Comm, bytes: usize, turns: &Turns<'_, T>) -> Vec<Timing> {
        let all: Vec<usize> = (0..self.names.len()).collect();
        let best = fastest(&turns.times, &all).unwrap_or(0);
        let mpi = self.names.iter().position(|name| *name == Server::Library.to_string());
        let line = |index: usize| {
            let (name, times) = (&self.names[index], &turns.times[index]);
            let median_us = median(times);
            Timing {
                collective: self.called.collective.name(),
                ranks: comm.size(),
                bytes,
                algorithm: if name == AUTO { format!("{AUTO} ({})", turns.algorithm(index)) } else { name.clone() },
                iterations: times.len(),
                runs: turns.runs,
                median_us,
                p10_us: tenth(times, 1),
                p90_us: tenth(times, 9),
                min_us: tenth(times, 0),
                max_us: tenth(times, 10),
                ratio_to_best: median_us / median(&turns.times[best]),
                ties_with_best: index == best || !slower(times, &turns.times[best]),
                times_mpi: mpi.map(|mpi| median(&turns.times[mpi]) / median_us),
                slower_than_mpi: mpi.is_some_and(|mpi| mpi != index && slower(times, &turns.times[mpi])),
                transport: self.transport.into(),
            }
        };
        let mut lines: Vec<Timing> = all.into_iter().map(line).collect();
        lines.sort_by(|one, other| one.median_us.total_cmp(&other.median_us));
        if comm.rank() == 0 {
            self.bar.inc(lines.len() as u64);
        }
        lines
    }

    /// Lets a judge decide, after every few rounds, who goes on; until nobody does. The judge gets the times so far, in the order
    /// of rounds, of which the hopeless have none, and the seconds since the beginning, all of it the same on every rank, and must
    /// decide alike on all.
    pub(in crate::commands) fn contest(
        &self,
        comm: &Comm,
        bytes: usize,
        judge: &mut Judge<'_>,
    ) -> allhands::Result<Contest> {
        match bytes.is_multiple_of(8) && self.called.collective != Collective::Barrier {
            true => self.judged::<f64>(comm, bytes, judge),
            false => self.judged::<u8>(comm, bytes, judge),
        }
    }

    fn judged<T: Value>(&self, comm: &Comm, bytes: usize, judge: &mut Judge<'_>) -> allhands::Result<Contest> {
        let mut order = Shuffle::new();
        let mut turns = Turns::<T>::new(self, comm, bytes, &mut order)?;
        turns.one_by_one();
        let begin = Instant::now();
        let mut on = turns.first_look()?;
        turns.warm_up(&on, 0.0)?;
        while !on.is_empty() {
            turns.rounds(&on, ROUNDS)?;
            let mut elapsed = [begin.elapsed().as_secs_f64()];
            comm.allreduce_in_place(&mut elapsed, Op::max())?;
            on = judge(&turns.times, elapsed[0]);
        }
        Ok(match turns.wrong_anywhere()? {
            Some(Measured::Wrong(reason)) => Contest::Wrong(Some(reason)),
            Some(_) => Contest::Wrong(None),
            None => {
                let (times, looks) = (std::mem::take(&mut turns.times), std::mem::take(&mut turns.looks));
                Contest::Times { times, looks, runs: turns.runs }
            }
        })
    }
}

/// Whether one is certainly slower than another, by more than anybody would notice.
pub(in crate::commands) fn slower(one: &[f64], other: &[f64]) -> bool {
    let ratio = ratio(one, other);
    ratio.low > 1.0 && ratio.median > NOTICED
}

/// How a contest ended.
pub(in crate::commands) enum Contest {
    /// The times of every algorithm in the order of rounds, in microseconds, and how many runs each is the mean of; and what each
    /// took at first sight, which is all that is known of the hopeless.
    Times { times: Vec<Vec<f64>>, looks: Vec<f64>, runs: usize },
    /// A result was wrong: on this rank, which says which, or on another.
    Wrong(Option<String>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percent_is_a_tie_and_so_is_what_is_not_certain() {
        let times = |value: f64| vec![value; 20];
        assert!(slower(&times(1.1), &times(1.0)) && !slower(&times(1.01), &times(1.0)));
        let noisy: Vec<f64> = (0..20).map(|round| [0.8, 1.4][round % 2]).collect();
        assert!(!slower(&noisy, &times(1.0)));
    }
}
