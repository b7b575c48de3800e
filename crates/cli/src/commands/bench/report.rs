//! Results as a table, as JSON or as comma-separated values.

use std::io::Write;

use allhands::Topology;
use serde::Serialize;

use super::Format;
use crate::failure::Result;
use crate::screen;

/// The times of one algorithm at one size, in microseconds.
#[derive(Clone, Debug, Serialize)]
pub(in crate::commands) struct Line {
    pub(in crate::commands) collective: &'static str,
    pub(in crate::commands) ranks: usize,
    pub(in crate::commands) bytes: usize,
    pub(in crate::commands) algorithm: String,
    /// Batches that were timed.
    pub(in crate::commands) iterations: usize,
    /// Runs in each of them.
    pub(in crate::commands) runs: usize,
    pub(in crate::commands) median_us: f64,
    pub(in crate::commands) p10_us: f64,
    pub(in crate::commands) p90_us: f64,
    pub(in crate::commands) min_us: f64,
    pub(in crate::commands) max_us: f64,
    /// The median divided by the best median of this size.
    pub(in crate::commands) ratio_to_best: f64,
    /// "threads", or what the MPI calls itself.
    pub(in crate::commands) transport: String,
}

const CSV: &str =
    "collective,ranks,bytes,algorithm,iterations,runs,median_us,p10_us,p90_us,min_us,max_us,ratio_to_best,transport";

/// `ranks` says how many and what they are: "8 thread ranks", or ranks of which MPI.
pub(super) fn show(lines: &[Line], format: Format, ranks: &str, topology: &Topology) -> Result<()> {
    let mut out = screen::stdout();
    match format {
        Format::Json => {
            serde_json::to_writer_pretty(&mut out, lines).map_err(std::io::Error::from)?;
            writeln!(out)?;
        }
        Format::Csv => {
            writeln!(out, "{CSV}")?;
            lines.iter().try_for_each(|line| writeln!(out, "{}", comma_separated(line)))?;
        }
        Format::Table => {
            let Some(first) = lines.first() else { return Ok(()) };
            let what = format!("{} on {ranks}, {topology}", first.collective);
            writeln!(out, "{what}; microseconds; * is the best of its size")?;
            writeln!(out, "{}", table(lines).trim_fmt())?;
        }
    }
    Ok(())
}

fn comma_separated(line: &Line) -> String {
    let Line { collective, ranks, bytes, algorithm, iterations, runs, transport, .. } = line;
    let times = [line.median_us, line.p10_us, line.p90_us, line.min_us, line.max_us, line.ratio_to_best];
    let times: Vec<String> = times.iter().map(|time| format!("{time:.3}")).collect();
    format!(
        "{collective},{ranks},{bytes},\"{algorithm}\",{iterations},{runs},{},\"{}\"",
        times.join(","),
        transport.replace('"', "\"\"")
    )
}

fn table(lines: &[Line]) -> comfy_table::Table {
    let header = ["bytes", "algorithm", "", "median", "p10", "p90", "min", "max", "x best", "batches x runs"];
    let mut table = screen::table(&header);
    screen::unbroken(&mut table, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    let mut above = None;
    for line in lines {
        let size = if above == Some(line.bytes) { String::new() } else { line.bytes.to_string() };
        above = Some(line.bytes);
        let best = if line.ratio_to_best == 1.0 { "*" } else { "" };
        let time = |time: f64| format!("{time:.2}");
        table.add_row([
            size,
            line.algorithm.clone(),
            best.into(),
            time(line.median_us),
            time(line.p10_us),
            time(line.p90_us),
            time(line.min_us),
            time(line.max_us),
            time(line.ratio_to_best),
            format!("{} x {}", line.iterations, line.runs),
        ]);
    }
    table
}
