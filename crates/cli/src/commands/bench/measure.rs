//! Measuring, as every rank does it: batches of runs, algorithms by turns, results checked.

use std::time::{Duration, Instant};

use allhands::{Comm, Op};
use allhands_schedule::Collective;
use indicatif::ProgressBar;

use super::names::AUTO;
use super::report::Line;
use super::turns::{Shuffle, Turns};
use super::values::Value;

/// What all ranks do together.
pub(in crate::commands) struct Job<'a> {
    pub(in crate::commands) collective: Collective,
    pub(in crate::commands) transport: &'a str,
    pub(in crate::commands) names: &'a [String],
    pub(in crate::commands) sizes: &'a [usize],
    pub(in crate::commands) iterations: Option<usize>,
    /// Batches of each algorithm that are not counted.
    pub(in crate::commands) warm_up: usize,
    /// Whether every run comes alone, on data that were just written, and not back to back.
    pub(in crate::commands) isolated: bool,
    pub(in crate::commands) bar: &'a ProgressBar,
}

/// Who goes on, by the times so far in the order of rounds, and by the seconds since the beginning.
pub(in crate::commands) type Judge<'a> = dyn FnMut(&[Vec<f64>], f64) -> Vec<usize> + 'a;

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
/// Rounds between two looks of a judge.
const ROUNDS: usize = 4;

impl Job<'_> {
    pub(in crate::commands) fn rank(&self, comm: &Comm) -> allhands::Result<Measured> {
        let mut order = Shuffle::new();
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
        if comm.rank() == 0 {
            self.bar.set_message(format!("{bytes} bytes"));
        }
        let mut turns = Turns::<T>::new(self, comm, bytes, order)?;
        let all: Vec<usize> = (0..self.names.len()).collect();
        let batches = turns.warm_up(&all, LIMIT.as_secs_f64() / self.sizes.len() as f64)?;
        turns.rounds(&all, batches)?;
        match turns.wrong_anywhere()? {
            Some(wrong) => Ok(wrong),
            None => Ok(Measured::Lines(self.lines(comm, bytes, &turns))),
        }
    }

    fn lines<T: Value>(&self, comm: &Comm, bytes: usize, turns: &Turns<'_, T>) -> Vec<Line> {
        let mut lines = Vec::with_capacity(self.names.len());
        for (index, name) in self.names.iter().enumerate() {
            let mut times = turns.times[index].clone();
            times.sort_by(f64::total_cmp);
            let at = |tenths: usize| times.get((times.len().max(1) - 1) * tenths / 10).copied().unwrap_or(0.0);
            lines.push(Line {
                collective: self.collective.name(),
                ranks: comm.size(),
                bytes,
                algorithm: if name == AUTO { format!("{AUTO} ({})", turns.algorithm(index)) } else { name.clone() },
                iterations: times.len(),
                runs: turns.runs,
                median_us: at(5),
                p10_us: at(1),
                p90_us: at(9),
                min_us: at(0),
                max_us: at(10),
                ratio_to_best: 0.0,
                transport: self.transport.into(),
            });
            if comm.rank() == 0 {
                self.bar.inc(1);
            }
        }
        let best = lines.iter().map(|line| line.median_us).fold(f64::INFINITY, f64::min);
        lines.iter_mut().for_each(|line| line.ratio_to_best = line.median_us / best);
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
        match bytes.is_multiple_of(8) && self.collective != Collective::Barrier {
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

/// How a contest ended.
pub(in crate::commands) enum Contest {
    /// The times of every algorithm in the order of rounds, in microseconds, and how many runs each is the mean of; and what each
    /// took at first sight, which is all that is known of the hopeless.
    Times { times: Vec<Vec<f64>>, looks: Vec<f64>, runs: usize },
    /// A result was wrong: on this rank, which says which, or on another.
    Wrong(Option<String>),
}
