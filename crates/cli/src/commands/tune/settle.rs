//! One cell: candidates by turns, fewer and fewer of them, until it is settled which is the fastest or the cell's time is spent.

use allhands::{Cell, Comm, Time};
use allhands_schedule::Collective;
use indicatif::ProgressBar;

use super::Stop;
use crate::commands::bench::measure::{Contest, Job, Judge};
use crate::commands::bench::values::Called;
use allhands::stats::{fastest, median, ratio, tenth};

/// After so many rounds, what clearly takes longer than the fastest by more than a factor has no further turns. Those who stay
/// near it stay long: between cells, their times are compared too.
const SLACK: [(usize, f64); 4] = [(4, 3.0), (8, 1.8), (16, 1.35), (32, 1.15)];

/// Nobody needs to know the fastest better than this.
const CLOSE: f64 = 0.97;

/// More rounds than this settle nothing further.
const MOST_ROUNDS: usize = 400;

/// Fewer than this settle nothing.
const FEWEST_ROUNDS: usize = 24;

/// Times of candidates, in the order of rounds, and how many runs each is the mean of; and what each took at first sight.
pub(super) struct Times {
    pub(super) of: Vec<Vec<f64>>,
    looks: Vec<f64>,
    runs: usize,
}

/// Measures candidates of a collective at a size, on all ranks of a communicator, for about so many seconds at most; the same on
/// every rank.
pub(super) fn settle(
    comm: &Comm,
    collective: Collective,
    bytes: usize,
    names: &[String],
    seconds: f64,
) -> Result<Cell, Stop> {
    let mut on: Vec<usize> = (0..names.len()).collect();
    let times = contest(comm, collective, bytes, names, &mut |times, elapsed| {
        on = if elapsed >= seconds { vec![] } else { still_on(times, &on, None) };
        on.clone()
    })?;
    let topology = comm.topology();
    let (nodes, ranks_per_node) = (topology.regions(1), topology.region_sizes(1).1);
    Ok(Cell { collective: collective.name().into(), nodes, ranks_per_node, bytes, times: summed_up(names, &times) })
}

/// Those who go on, of those who were on; nobody if the fastest is settled. `kept` goes on in any case.
pub(super) fn still_on(times: &[Vec<f64>], on: &[usize], kept: Option<usize>) -> Vec<usize> {
    let Some(best) = fastest(times, on) else { return vec![] };
    let rounds = times[best].len();
    let slack = SLACK.iter().rev().find(|(from, _)| rounds >= *from).map_or(f64::INFINITY, |(_, slack)| *slack);
    let slower = |index: usize| {
        let ratio = ratio(&times[index], &times[best]);
        ratio.low > 1.0 && ratio.median > slack
    };
    let stays = |index: &usize| *index == best || Some(*index) == kept || !slower(*index);
    let on: Vec<usize> = on.iter().copied().filter(|&index| !times[index].is_empty()).filter(stays).collect();
    let near = |index: &usize| *index != best && ratio(&times[*index], &times[best]).low < CLOSE;
    let open = rounds < FEWEST_ROUNDS || on.iter().any(near);
    if open && on.len() > 1 && rounds < MOST_ROUNDS { on } else { vec![] }
}

/// The times of all, best first. Who dropped out early is compared with the fastest in the rounds that both took part in; of who was
/// hopeless at first sight that is told.
fn summed_up(names: &[String], times: &Times) -> Vec<Time> {
    let longest = times.of.iter().map(Vec::len).max().unwrap_or(0);
    let finalists: Vec<usize> = (0..names.len()).filter(|&index| times.of[index].len() == longest).collect();
    let Some(best) = fastest(&times.of, &finalists) else { return vec![] };
    let time = |index: usize| {
        let (own, algorithm) = (&times.of[index], names[index].clone());
        let look = times.looks[index];
        if own.is_empty() {
            return Time { algorithm, median_us: look, p10_us: look, p90_us: look, samples: 1 };
        }
        let median_us = median(&times.of[best]) * ratio(own, &times.of[best]).median;
        let samples = own.len() * times.runs;
        Time { algorithm, median_us, p10_us: tenth(own, 1), p90_us: tenth(own, 9), samples }
    };
    let mut all: Vec<Time> = (0..names.len()).map(time).collect();
    all.sort_by(|one, other| one.median_us.total_cmp(&other.median_us));
    all
}

/// Candidates by turns, as long as the judge wants them.
pub(super) fn contest(
    comm: &Comm,
    collective: Collective,
    bytes: usize,
    names: &[String],
    judge: &mut Judge<'_>,
) -> Result<Times, Stop> {
    let (transport, bar) = (comm.transport(), ProgressBar::hidden());
    let job = Job {
        called: Called::new(collective),
        transport: &transport,
        names,
        sizes: &[bytes],
        iterations: None,
        warm_up: 2,
        isolated: false,
        bar: &bar,
        sink: &|_| true,
    };
    match job.contest(comm, bytes, judge)? {
        Contest::Times { times, looks, runs } => Ok(Times { of: times, looks, runs }),
        Contest::Wrong(reason) => Err(Stop::Wrong(reason)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many rounds of times around a value, the same disturbance for all.
    fn around(value: f64, rounds: usize) -> Vec<f64> {
        (0..rounds).map(|round| value * [1.0, 1.3, 0.9, 1.1][round % 4]).collect()
    }

    #[test]
    fn the_hopeless_drop_out_first_and_the_close_go_on() {
        let times = |rounds| vec![around(1.0, rounds), around(5.0, rounds), around(1.5, rounds), around(1.02, rounds)];
        assert_eq!(still_on(&times(4), &[0, 1, 2, 3], None), [0, 2, 3]);
        assert_eq!(still_on(&times(4), &[0, 1, 2, 3], Some(1)), [0, 1, 2, 3]);
        // One that was hopeless at first sight was never on.
        let unmeasured = [times(4), vec![vec![]]].concat();
        assert_eq!(still_on(&unmeasured, &[0, 1, 2, 3, 4], None), [0, 2, 3]);
        // Settled: the others are known to be no faster.
        assert!(still_on(&times(24), &[0, 2, 3], None).is_empty());
    }

    #[test]
    fn who_may_be_faster_keeps_it_open() {
        let noisy = |shift: usize| (0..32).map(|round| [1.0, 1.4][(round + shift) % 2]).collect::<Vec<f64>>();
        assert_eq!(still_on(&[noisy(0), noisy(1)], &[0, 1], None), [0, 1]);
    }

    #[test]
    fn who_dropped_out_is_compared_in_common_rounds() {
        // The first four rounds were disturbed: twice as long for everybody.
        let best: Vec<f64> = [vec![2.0; 4], vec![1.0; 12]].concat();
        let times = Times { of: vec![vec![6.0; 4], best, vec![]], looks: vec![7.0, 3.0, 5000.0], runs: 10 };
        let all = summed_up(&["slow".into(), "fast".into(), "hopeless".into()], &times);
        assert_eq!((all[2].algorithm.as_str(), all[2].median_us, all[2].samples), ("hopeless", 5000.0, 1));
        assert_eq!((all[0].algorithm.as_str(), all[0].median_us, all[0].samples), ("fast", 1.0, 160));
        assert_eq!((all[1].algorithm.as_str(), all[1].median_us, all[1].samples), ("slow", 3.0, 40));
    }
}
