//! `allhands tune --evaluate`: how much worse the choices that a tuning file leads to are than the best, where it was not tuned.

use std::io::Write;

use allhands::{Comm, Tuning};
use allhands_schedule::Collective;
use indicatif::ProgressBar;

use super::settle::{measured, screened};
use super::shapes::{self, Shape};
use super::{Stop, candidates};
use crate::failure::Result;
use crate::screen;

/// The library's own choice beside everything else, at one place.
pub(super) struct Regret {
    collective: Collective,
    shape: Shape,
    bytes: usize,
    chosen: String,
    chosen_us: f64,
    best: String,
    best_us: f64,
}

impl Regret {
    fn ratio(&self) -> f64 {
        self.chosen_us / self.best_us
    }
}

/// Within this factor of the best, a choice is good.
const GOOD: f64 = 1.10;

/// Measures everything on shapes and sizes between those that were tuned.
pub(super) fn evaluate(
    comm: &Comm,
    tuning: &Tuning,
    collectives: &[Collective],
    sizes: &[usize],
    bar: &ProgressBar,
) -> std::result::Result<Vec<Regret>, Stop> {
    let mut regrets = Vec::new();
    for shape in shapes::held_out(comm.topology()) {
        let Some(part) = shapes::part(comm, shape)? else { continue };
        part.follow(tuning.clone());
        for &collective in collectives {
            for bytes in shapes::sizes_between(sizes) {
                bar.set_message(format!("{collective} on {}x{}, {bytes} bytes", shape.0, shape.1));
                regrets.push(regret(&part, collective, shape, bytes)?);
                bar.inc(1);
            }
        }
    }
    // Those who were not among a shape's ranks wait here for the others.
    comm.barrier()?;
    Ok(regrets)
}

/// How many cells an evaluation has.
pub(super) fn cells(comm: &Comm, collectives: usize, sizes: &[usize]) -> usize {
    shapes::held_out(comm.topology()).len() * collectives * shapes::sizes_between(sizes).len()
}

fn regret(comm: &Comm, collective: Collective, shape: Shape, bytes: usize) -> std::result::Result<Regret, Stop> {
    // What is much slower than the best need not be measured for long.
    let able = screened(comm, collective, bytes, candidates(comm, collective))?;
    let names: Vec<String> = std::iter::once("auto".into()).chain(able).collect();
    let mut others = measured(comm, collective, bytes, &names, 25, 3)?;
    let auto = others.iter().position(|line| line.algorithm.starts_with("auto (")).ok_or(Stop::Wrong(None))?;
    let auto = others.remove(auto);
    let chosen = auto.algorithm.trim_start_matches("auto (").trim_end_matches(')').to_string();
    // The chosen algorithm is measured twice, as itself and as the choice: its better time is its time.
    let itself = others.iter().filter(|line| line.algorithm == chosen).map(|line| line.median_us);
    let chosen_us = itself.fold(auto.median_us, f64::min);
    let (best, best_us) = match others.first() {
        Some(best) if best.median_us < chosen_us => (best.algorithm.clone(), best.median_us),
        _ => (chosen.clone(), chosen_us),
    };
    Ok(Regret { collective, shape, bytes, chosen, chosen_us, best, best_us })
}

/// The table, and the share of good choices.
pub(super) fn show(regrets: &[Regret]) -> Result<()> {
    let mut out = screen::stdout();
    let header = ["collective", "shape", "bytes", "chosen", "us", "best", "us", "chosen / best"];
    let mut table = screen::table(&header);
    screen::unbroken(&mut table, &[0, 1, 2, 3, 4, 5, 6, 7]);
    for regret in regrets {
        table.add_row([
            regret.collective.name().into(),
            format!("{}x{}", regret.shape.0, regret.shape.1),
            regret.bytes.to_string(),
            regret.chosen.clone(),
            format!("{:.2}", regret.chosen_us),
            regret.best.clone(),
            format!("{:.2}", regret.best_us),
            format!("{:.2}{}", regret.ratio(), if regret.ratio() > GOOD { " *" } else { "" }),
        ]);
    }
    writeln!(out, "{}", table.trim_fmt())?;
    let good = regrets.iter().filter(|regret| regret.ratio() <= GOOD).count();
    let mean = (regrets.iter().map(|regret| regret.ratio().ln()).sum::<f64>() / regrets.len().max(1) as f64).exp();
    let worst = regrets.iter().map(Regret::ratio).fold(1.0, f64::max);
    writeln!(
        out,
        "within 10 % of the best in {good} of {} cells that were not tuned ({:.0} %); geometric mean {mean:.3}, worst {worst:.2}",
        regrets.len(),
        100.0 * good as f64 / regrets.len().max(1) as f64
    )?;
    Ok(())
}
