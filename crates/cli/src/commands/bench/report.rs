//! Results as soon as a size is measured: a table for people, comma-separated values; JSON and a picture at the end.

use std::collections::BTreeMap;
use std::io::Write;

use allhands_schedule::Collective;
use allhands_schedule::draw::Sizes;
use serde::Serialize;

use super::verdict::verdict;
use super::{Format, names};
use crate::failure::Result;
use crate::screen;
use allhands_plot::{self as plot, Axis, Chart, Unit};

/// The times of one algorithm at one size, in microseconds.
#[derive(Clone, Debug, Serialize)]
pub(in crate::commands) struct Timing {
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
    /// Whether it is the fastest, or not certainly slower.
    pub(in crate::commands) ties_with_best: bool,
    /// The MPI's own median divided by this one, if the MPI takes part: how many times as fast.
    pub(in crate::commands) times_mpi: Option<f64>,
    /// Whether the MPI's own is certainly faster.
    pub(in crate::commands) slower_than_mpi: bool,
    /// "threads", or what the MPI calls itself.
    pub(in crate::commands) transport: String,
}

impl Timing {
    /// Whether it is what the library chooses by itself.
    pub(super) fn is_auto(&self) -> bool {
        self.algorithm.starts_with(names::AUTO)
    }

    /// Whether it is the MPI library's own.
    pub(super) fn is_mpi(&self) -> bool {
        self.algorithm == allhands::Server::Library.to_string()
    }
}

const CSV: &str = "collective,ranks,bytes,algorithm,iterations,runs,median_us,p10_us,p90_us,min_us,max_us,ratio_to_best,\
                   ties_with_best,times_mpi,slower_than_mpi,transport";

/// What is shown of a bench, and how much of it has been.
pub(super) struct Report {
    pub(super) format: Format,
    pub(super) collective: Collective,
    /// "allreduce on 8 thread ranks, 2x4".
    pub(super) title: String,
    /// How long the longest name is that is known beforehand.
    pub(super) longest: usize,
    /// Whether the MPI's own takes part.
    pub(super) mpi: bool,
    /// Of every size so far, fastest first.
    pub(super) lines: Vec<Timing>,
}

impl Report {
    /// Takes the lines of one more size, and shows them if the format allows it.
    pub(super) fn add(&mut self, lines: &[Timing]) -> Result<()> {
        let begins = self.lines.is_empty();
        self.lines.extend_from_slice(lines);
        let text = match self.format {
            Format::Table => self.heading().filter(|_| begins).unwrap_or_default() + &self.rows(lines),
            Format::Csv => {
                let heading = if begins { format!("{CSV}\n") } else { String::new() };
                heading + &lines.iter().map(|line| comma_separated(line) + "\n").collect::<String>()
            }
            Format::Json | Format::Svg => return Ok(()),
        };
        show(&text)
    }

    /// What comes when all sizes are measured.
    pub(super) fn end(&self) -> Result<()> {
        match self.format {
            Format::Table => show(&(screen::wrapped(&verdict(&self.lines)) + "\n")),
            Format::Csv => Ok(()),
            Format::Json => {
                let text = serde_json::to_string_pretty(&self.lines).map_err(std::io::Error::from)?;
                show(&(text + "\n"))
            }
            Format::Svg => show(&self.picture()),
        }
    }

    fn heading(&self) -> Option<String> {
        let mpi = if self.mpi { "; x MPI: times as fast as the MPI's own" } else { "" };
        let key = format!(
            "Microseconds a call, fastest first; x best: times as long as the fastest, where = is a tie with it{mpi}."
        );
        let columns = self.columns(["size", "algorithm", "", "median", "p90", "x best", "x MPI"].map(String::from));
        let rule = "─".repeat(columns.chars().count());
        Some(format!("{}\n{}\n\n{columns}\n{rule}\n", screen::wrapped(&self.title), screen::wrapped(&key)))
    }

    fn rows(&self, lines: &[Timing]) -> String {
        let mut rows = String::new();
        for (index, line) in lines.iter().enumerate() {
            let size = if index == 0 { Sizes::words(line.bytes as u64) } else { String::new() };
            let mark = match (index, line.ties_with_best) {
                (0, _) => "*",
                (_, true) => "=",
                _ => "",
            };
            let mpi = line.times_mpi.map_or(String::new(), |times| format!("{times:.2}"));
            let numbers =
                [mark.into(), time(line.median_us), time(line.p90_us), format!("{:.2}", line.ratio_to_best), mpi];
            let [mark, median, p90, best, mpi] = numbers;
            let mut name = line.algorithm.clone();
            // A name that is too long has a line of its own.
            let alone = name.chars().count() > self.room();
            if alone {
                rows += &format!("{size:>8}  {name}\n");
                name.clear();
            }
            let size = if alone { String::new() } else { size };
            rows += &self.columns([size, name, mark, median, p90, best, mpi]);
            rows.push('\n');
        }
        rows
    }

    /// Room for names: what is left of 80 columns, or less.
    fn room(&self) -> usize {
        self.longest.clamp(24, if self.mpi { 40 } else { 47 })
    }

    fn columns(&self, [size, name, mark, median, p90, best, mpi]: [String; 7]) -> String {
        let room = self.room();
        let mpi = if self.mpi { format!(" {mpi:>6}") } else { String::new() };
        let row = format!("{size:>8}  {name:<room$} {mark:1} {median:>8} {p90:>8} {best:>7}{mpi}");
        row.trim_end().into()
    }

    fn picture(&self) -> String {
        let mut algorithms: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
        for line in &self.lines {
            // Its choice differs from size to size.
            let name = if line.is_auto() { names::AUTO } else { &line.algorithm };
            algorithms.entry(name.into()).or_default().push((line.bytes.max(1) as f64, line.median_us));
        }
        Chart {
            title: self.title.clone(),
            subtitle: "measured; the median time of a call until the slowest rank is through".into(),
            x: plot::size_axis(self.collective),
            y: Axis::logarithmic("", Unit::Microseconds, 10),
            lines: algorithms.iter().map(|(name, points)| plot::Curve::new(name, points.clone())).collect(),
        }
        .svg()
    }
}

/// In one piece, and at once: launchers show what has been written, and sizes take seconds.
fn show(text: &str) -> Result<()> {
    let mut out = screen::stdout();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Seven columns at most.
fn time(us: f64) -> String {
    match us {
        ..1000.0 => format!("{us:.2}"),
        1000.0..100_000.0 => format!("{us:.1}"),
        _ => format!("{us:.0}"),
    }
}

fn comma_separated(line: &Timing) -> String {
    let Timing { collective, ranks, bytes, algorithm, iterations, runs, transport, .. } = line;
    let times = [line.median_us, line.p10_us, line.p90_us, line.min_us, line.max_us, line.ratio_to_best];
    let times: Vec<String> = times.iter().map(|time| format!("{time:.3}")).collect();
    let mpi = line.times_mpi.map_or(String::new(), |times| format!("{times:.3}"));
    format!(
        "{collective},{ranks},{bytes},\"{algorithm}\",{iterations},{runs},{},{},{mpi},{},\"{}\"",
        times.join(","),
        line.ties_with_best,
        line.slower_than_mpi,
        transport.replace('"', "\"\"")
    )
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A line with these numbers.
    pub(in super::super) fn line(bytes: usize, algorithm: &str, median_us: f64, times_mpi: Option<f64>) -> Timing {
        Timing {
            collective: "allreduce",
            ranks: 8,
            bytes,
            algorithm: algorithm.into(),
            iterations: 9,
            runs: 5,
            median_us,
            p10_us: median_us,
            p90_us: 1.5 * median_us,
            min_us: median_us,
            max_us: 2.0 * median_us,
            ratio_to_best: 1.0,
            ties_with_best: false,
            times_mpi,
            slower_than_mpi: times_mpi.is_some_and(|times| times < 0.97),
            transport: "threads".into(),
        }
    }

    fn report(mpi: bool) -> Report {
        Report {
            format: Format::Table,
            collective: Collective::Allreduce,
            title: "allreduce on 8 ranks of Open MPI v4.1.4, package: Debian OpenMPI (libmpi.so.40), 2x4".into(),
            longest: 30,
            mpi,
            lines: vec![],
        }
    }

    #[test]
    fn a_table_fits_80_columns_whatever_names_and_times_are() {
        let long = "auto (multi-leader:leaders=4:local=shared:radix=16)";
        let lines = [
            Timing { ties_with_best: true, ..line(262_144, long, 123_456.7, Some(1.234)) },
            Timing { ties_with_best: true, ratio_to_best: 1.001, ..line(262_144, "ring", 123_556.7, Some(1.233)) },
            Timing { ratio_to_best: 1.234, ..line(262_144, "mpi", 152_345.6, Some(1.0)) },
            Timing { ratio_to_best: 1234.5, ..line(262_144, "recursive-doubling", 99_999_999.0, Some(0.0)) },
        ];
        for mpi in [false, true] {
            let report = report(mpi);
            let text = report.heading().unwrap() + &report.rows(&lines);
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
            insta::assert_snapshot!(if mpi { "table_beside_mpi" } else { "table" }, text);
        }
    }

    #[test]
    fn the_picture_has_one_line_for_auto_whatever_it_chooses() {
        let mut report = report(false);
        report.lines = vec![line(8, "auto (ring)", 1.0, None), line(64, "auto (tree)", 2.0, None)];
        let svg = report.picture();
        assert!(svg.contains(">auto</text>") && svg.contains("bytes of the vector") && !svg.contains("ring"), "{svg}");
    }
}
