//! `allhands report`: what a job called, and two jobs beside each other.

use std::io::Write;
use std::path::{Path, PathBuf};

use allhands_report::{Against, Whole};
use clap::Args;

use crate::args::read;
use crate::failure::{Failure, Result};
use crate::screen;

/// Show the report of a job, or put two beside each other
///
/// Reports are written by jobs under `allhands exec` with ALLHANDS_REPORT=FILE.json. With two, the first is judged by the second: such as
/// a job with our collectives by the same job with ALLHANDS=off.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  ALLHANDS_REPORT=with.json mpirun -n 4 allhands exec ./program
  ALLHANDS=off ALLHANDS_REPORT=without.json mpirun -n 4 allhands exec ./program
  allhands report with.json without.json")]
pub(crate) struct Report {
    /// The report
    #[arg(value_name = "FILE.json")]
    file: PathBuf,

    /// The one that it is judged by
    #[arg(value_name = "OTHER.json")]
    other: Option<PathBuf>,
}

impl Report {
    pub(crate) fn run(&self) -> Result<()> {
        let one = parsed(&self.file)?;
        let text = match &self.other {
            None => one.text(),
            Some(path) => {
                let (file, other) = (self.file.to_string_lossy(), path.to_string_lossy());
                Against::new(&one, &parsed(path)?).text([&file, &other])
            }
        };
        Ok(screen::stdout().write_all(text.as_bytes())?)
    }
}

fn parsed(path: &Path) -> Result<Whole> {
    let unreadable = |error| Failure::Usage(format!("{} cannot be used: {error}", path.display()));
    Whole::parse(&read(path, "report")?).map_err(unreadable)
}
