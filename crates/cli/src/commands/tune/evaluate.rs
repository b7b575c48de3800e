//! `allhands tune --evaluate`: how much worse the choices that a tuning file leads to are than the best, where it was not tuned.
//!
//! The best of many noisy medians looks better than it is. So rounds are dealt out to two halves: the best of one half is
//! compared with the choice in the other, and the other way round.

use std::io::Write;

use allhands::{Comm, Tuning};
use allhands_schedule::Collective;
use indicatif::ProgressBar;

use super::settle::{contest, still_on};
use super::shapes::{self, Shape};
use super::{Stop, candidates};
use crate::failure::Result;
use crate::screen;
use allhands::stats::{Middle, fastest, median, ratio};

/// The library's own choice beside everything else, at one place.
pub(super) struct Regret {
    collective: Collective,
    shape: Shape,
    bytes: usize,
    chosen: String,
    chosen_us: f64,
    best: String,
    /// Chosen divided by best, each half's best judged by the other half.
    ratio: f64,
    /// The same with the best of all rounds, and how sure that is.
    surely: Middle,
    rounds: usize,
}

/// Within this factor of the best, a choice is good.
const GOOD: f64 = 1.10;

/// An evaluation goes on until the ratio is known as well as this, or time is up.
const NARROW: f64 = 0.06;

/// Measures everything on shapes and sizes between those that were tuned, each cell for so many seconds at most.
pub(super) fn evaluate(
    comm: &Comm,
    tuning: &Tuning,
    collectives: &[Collective],
    sizes: &[usize],
    seconds: f64,
    bar: &ProgressBar,
) -> std::result::Result<Vec<Regret>, Stop> {
    let mut regrets = Vec::new();
    for shape in shapes::held_out(comm.topology()) {
        if let Some(part) = shapes::part(comm, shape)? {
            part.follow(tuning.clone());
            for &collective in collectives {
                for bytes in shapes::sizes_between(sizes) {
                    bar.set_message(format!("{collective} on {}x{}, {bytes} bytes", shape.0, shape.1));
                    regrets.push(regret(&part, tuning, collective, shape, bytes, seconds)?);
                    bar.inc(1);
                }
            }
        }
        shapes::rest(comm)?;
    }
    Ok(regrets)
}

/// How many cells an evaluation has.
pub(super) fn cells(comm: &Comm, collectives: usize, sizes: &[usize]) -> usize {
    shapes::held_out(comm.topology()).len() * collectives * shapes::sizes_between(sizes).len()
}

fn regret(
    comm: &Comm,
    tuning: &Tuning,
    collective: Collective,
    shape: Shape,
    bytes: usize,
    seconds: f64,
) -> std::result::Result<Regret, Stop> {
    let chosen = candidates::of_the_library(comm, collective, bytes)?;
    let mut names = candidates::everything(comm, collective, &tuning.cells);
    if !names.contains(&chosen) {
        names.push(chosen.clone());
    }
    let chosen_index = names.iter().position(|name| *name == chosen);
    let mut on: Vec<usize> = (0..names.len()).collect();
    let times = contest(comm, collective, bytes, &names, &mut |times, elapsed| {
        let going = still_on(times, &on, chosen_index);
        on = match (elapsed >= seconds, going.is_empty()) {
            (true, _) => vec![],
            // Who is the best is settled; how much better may not be.
            (false, true) if !known(times, &on, chosen_index) => on.clone(),
            (false, _) => going,
        };
        on.clone()
    })?;
    let chosen_index = chosen_index.unwrap_or(0);
    let rounds = times.of[chosen_index].len();
    let finalists: Vec<usize> = (0..names.len()).filter(|&index| times.of[index].len() == rounds).collect();
    let best = fastest(&times.of, &finalists).unwrap_or(chosen_index);
    Ok(Regret {
        collective,
        shape,
        bytes,
        chosen_us: median(&times.of[chosen_index]),
        chosen,
        best: names[best].clone(),
        ratio: halves(&times.of, &finalists, chosen_index),
        surely: ratio(&times.of[chosen_index], &times.of[best]),
        rounds,
    })
}

/// Whether the choice is compared with the best as closely as anybody needs.
fn known(times: &[Vec<f64>], on: &[usize], chosen: Option<usize>) -> bool {
    let (Some(best), Some(chosen)) = (fastest(times, on), chosen) else { return true };
    let ratio = ratio(&times[chosen], &times[best]);
    ratio.high - ratio.low <= NARROW || ratio.high <= GOOD || ratio.low > GOOD
}

/// The choice divided by the best: that of the even rounds judged in the odd ones, and the other way round; the mean of both.
fn halves(times: &[Vec<f64>], finalists: &[usize], chosen: usize) -> f64 {
    let half = |odd: usize| -> Vec<Vec<f64>> {
        times.iter().map(|times| times.iter().copied().skip(odd).step_by(2).collect()).collect()
    };
    let (even, odd) = (half(0), half(1));
    let judged = |chooses: &[Vec<f64>], judges: &[Vec<f64>]| {
        let best = fastest(chooses, finalists).unwrap_or(chosen);
        ratio(&judges[chosen], &judges[best]).median
    };
    (judged(&even, &odd) * judged(&odd, &even)).sqrt()
}

impl Regret {
    fn good(&self) -> bool {
        self.ratio <= GOOD
    }

    /// Whether it is certain on which side of 10 % the choice is.
    fn certain(&self) -> bool {
        if self.good() { self.surely.high <= GOOD } else { self.surely.low > GOOD }
    }
}

/// The table, and the share of good choices.
pub(super) fn show(regrets: &[Regret]) -> Result<()> {
    let mut out = screen::stdout();
    let header = ["collective", "shape", "bytes", "chosen", "us", "best", "chosen / best", "95 %", "rounds"];
    let mut table = screen::table(&header);
    screen::unbroken(&mut table, &[0, 1, 2, 3, 4, 5, 6, 7, 8]);
    for regret in regrets {
        table.add_row([
            regret.collective.name().into(),
            format!("{}x{}", regret.shape.0, regret.shape.1),
            regret.bytes.to_string(),
            regret.chosen.clone(),
            format!("{:.2}", regret.chosen_us),
            regret.best.clone(),
            format!("{:.2}{}", regret.ratio, if regret.good() { "" } else { " *" }),
            format!("{:.2}..{:.2}", regret.surely.low, regret.surely.high),
            regret.rounds.to_string(),
        ]);
    }
    writeln!(out, "{}", screen::shown(table))?;
    writeln!(out, "{}", verdict(regrets))?;
    Ok(())
}

fn verdict(regrets: &[Regret]) -> String {
    let count = |which: &dyn Fn(&Regret) -> bool| regrets.iter().filter(|regret| which(regret)).count();
    let (all, good) = (regrets.len(), count(&|regret| regret.good()));
    let sure_good = count(&|regret| regret.good() && regret.certain());
    let sure_miss = count(&|regret| !regret.good() && regret.certain());
    let mean = (regrets.iter().map(|regret| regret.ratio.ln()).sum::<f64>() / all.max(1) as f64).exp();
    let worst = regrets.iter().map(|regret| regret.ratio).fold(1.0, f64::max);
    format!(
        "within 10 % of the best in {good} of {all} cells that were not tuned ({:.0} %); geometric mean {mean:.3}, worst {worst:.2}\n\
         beyond doubt (95 %): {sure_good} within, {sure_miss} not; {} cells are too noisy to tell",
        100.0 * good as f64 / all.max(1) as f64,
        all - sure_good - sure_miss
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers from 0 to 1, the same in every run.
    fn random(state: &mut u64) -> f64 {
        *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (*state >> 11) as f64 / (1u64 << 53) as f64
    }

    #[test]
    fn equals_with_noise_are_found_equal_though_the_best_of_them_looks_better() {
        let mut state = 3;
        let (mut naive, mut fair) = (0.0, 0.0);
        for _ in 0..200 {
            let times: Vec<Vec<f64>> = (0..12).map(|_| (0..20).map(|_| 1.0 + random(&mut state)).collect()).collect();
            let all: Vec<usize> = (0..12).collect();
            let best = fastest(&times, &all).unwrap();
            naive += (median(&times[0]) / median(&times[best])).ln() / 200.0;
            fair += halves(&times, &all, 0).ln() / 200.0;
        }
        assert!(naive > 0.10 && fair.abs() < 0.02, "naive {naive}, in halves {fair}");
    }

    #[test]
    fn a_true_difference_is_found() {
        let mut state = 5;
        let mut times = |slow: f64| (0..40).map(|_| slow * (1.0 + 0.2 * random(&mut state))).collect::<Vec<f64>>();
        let times = [times(1.3), times(1.0), times(2.0)];
        let found = halves(&times, &[0, 1, 2], 0);
        assert!((found - 1.3).abs() < 0.05, "{found}");
        assert!(known(&times, &[0, 1], Some(0)));
    }

    #[test]
    fn the_verdict_counts_what_is_certain() {
        let regret = |ratio: f64, low: f64, high: f64| Regret {
            collective: Collective::Bcast,
            shape: (2, 3),
            bytes: 24,
            chosen: "binomial".into(),
            chosen_us: 1.0,
            best: "binomial".into(),
            ratio,
            surely: Middle { median: ratio, low, high },
            rounds: 12,
        };
        let text = verdict(&[regret(1.0, 0.99, 1.01), regret(1.05, 0.9, 1.2), regret(1.2, 1.15, 1.3)]);
        assert!(text.contains("in 2 of 3 cells that were not tuned (67 %)"), "{text}");
        assert!(text.contains("1 within, 1 not; 1 cells are too noisy"), "{text}");
    }
}
