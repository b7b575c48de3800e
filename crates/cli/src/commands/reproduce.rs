//! `allhands reproduce`: the figures and tables of the papers, made again and compared.

use std::io::Write;
use std::path::PathBuf;

use allhands_reproduce::{Effort, Error, Figure, Recipe};
use clap::Args;

use crate::failure::{Failure, Result};
use crate::screen;

/// Make the figures and tables of the papers again, and compare
///
/// Draws schedules, evaluates the models as printed and as corrected, and simulates what was measured on machines that are not
/// here. Writes SVG and CSV files and one page, report.html, that has it all: the figure, the paper's numbers beside ours, and what
/// that comes to (matches, matches in shape, or differs, and why).
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  allhands reproduce
  allhands reproduce --quick
  allhands reproduce loc-bruck-7 radix --output figures")]
pub(crate) struct Reproduce {
    /// Figures (loc-bruck-7, radix-2a, sparbit-table-1) or papers (loc-bruck, radix, sparbit, nap, jocksch) [default: all]
    #[arg(value_name = "FIGURE")]
    figures: Vec<String>,

    /// The folder for report.html and the SVG and CSV files; made if it is not there
    #[arg(long, value_name = "DIR", default_value = "reproduced")]
    output: PathBuf,

    /// Fewer ranks and sizes than in the papers
    #[arg(long)]
    quick: bool,
}

impl Reproduce {
    pub(crate) fn run(&self) -> Result<()> {
        let chosen = allhands_reproduce::chosen(&self.figures)?;
        allhands_reproduce::folder(&self.output)?;
        let effort = if self.quick { Effort::Quick } else { Effort::Full };
        let bar = screen::progress("reproducing", chosen.len(), true);
        let mut made: Vec<(&Recipe, Figure)> = Vec::new();
        for recipe in chosen {
            bar.set_message(recipe.id);
            let figure = (recipe.make)(effort)?;
            allhands_reproduce::write(&self.output, recipe, &figure)?;
            made.push((recipe, figure));
            bar.inc(1);
        }
        bar.finish_and_clear();
        let report = allhands_reproduce::report(&self.output, &made, effort)?;
        let mut out = screen::stdout();
        let mut table = screen::table(&["figure", "verdict", "why"]);
        screen::unbroken(&mut table, &[0, 1]);
        for (recipe, figure) in &made {
            table.add_row([recipe.id, figure.verdict.words(), figure.verdict.why()]);
        }
        writeln!(out, "{}\n{}", screen::shown(table), report.display())?;
        writeln!(out, "{}", screen::wrapped(&allhands_reproduce::sums(&made, effort)))?;
        Ok(())
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        match error {
            Error::Request(error) => Failure::Request(error),
            Error::Named(fact) => Failure::Usage(fact),
            Error::Wrong(fact) => Failure::Wrong(fact),
            Error::Ranks(reason) => Failure::Rank { rank: None, reason, follows: false },
        }
    }
}
