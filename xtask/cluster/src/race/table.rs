//! Tables and a plot of a race, from its raw lines.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::Result;
use crate::job::Mpi;
use crate::settings::{Delay, Shape};

/// One line: the times of one way, in microseconds, in the order in which they were measured.
struct Runs {
    mpi: Mpi,
    shape: Shape,
    delay: Delay,
    collective: String,
    bytes: usize,
    way: String,
    algorithm: String,
    times: Vec<f64>,
}

/// Median, first and ninth tenth.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Spread {
    median: f64,
    low: f64,
    high: f64,
}

impl Spread {
    fn of(mut values: Vec<f64>) -> Option<Spread> {
        values.sort_by(f64::total_cmp);
        let last = values.len().checked_sub(1)?;
        let at = |tenths: usize| values[(last * tenths + 5) / 10];
        Some(Spread { median: at(5), low: at(1), high: at(9) })
    }
}

/// `openmpi 4x4 2ms run allgather 8 auto loc-bruck thrown-away=0 us=4335,4402`
fn read(line: &str) -> Option<Runs> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [mpi, shape, delay, "run", collective, bytes, way, algorithm, _, times] = words[..] else { return None };
    let times = times.strip_prefix("us=")?.split(',').filter(|time| !time.is_empty());
    Some(Runs {
        mpi: *Mpi::ALL.iter().find(|known| known.name() == mpi)?,
        shape: shape.parse().ok()?,
        delay: delay.parse().ok()?,
        collective: collective.into(),
        bytes: bytes.parse().ok()?,
        way: way.into(),
        algorithm: algorithm.into(),
        times: times.map(|time| time.parse().ok()).collect::<Option<Vec<f64>>>()?,
    })
}

fn all(text: &str) -> Result<Vec<Runs>> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    lines.map(|line| read(line).ok_or_else(|| format!("no line of a race: {line:?}; write the race anew"))).collect()
}

/// What a table has rows for.
type Cell = (Shape, u64, String, usize);

/// MPI's own time over ours, and ours.
struct Compared {
    ratio: Spread,
    algorithm: String,
}

/// Of every cell and MPI.
fn compared(runs: &[Runs]) -> BTreeMap<Cell, BTreeMap<Mpi, Compared>> {
    let mut cells: BTreeMap<Cell, BTreeMap<Mpi, Compared>> = BTreeMap::new();
    for ours in runs.iter().filter(|runs| runs.way == "auto") {
        let same = |other: &&Runs| {
            (other.mpi, other.shape, other.delay, &other.collective, other.bytes)
                == (ours.mpi, ours.shape, ours.delay, &ours.collective, ours.bytes)
        };
        let Some(theirs) = runs.iter().filter(same).find(|runs| runs.way == "mpi") else { continue };
        // Every pair of times: which turns of one way were thrown away does not matter.
        let pairs = theirs.times.iter().flat_map(|theirs| ours.times.iter().map(move |ours| theirs / ours));
        let Some(ratio) = Spread::of(pairs.collect()) else { continue };
        let cell = (ours.shape, ours.delay.micros, ours.collective.clone(), ours.bytes);
        cells.entry(cell).or_default().insert(ours.mpi, Compared { ratio, algorithm: ours.algorithm.clone() });
    }
    cells
}

/// The tables, in Markdown.
pub(super) fn tables(text: &str) -> Result<String> {
    let runs = all(text)?;
    let cells = compared(&runs);
    let mut page = String::from("MPI's own time / ours: median (10 % .. 90 %); above 1 we are faster\n\n");
    page += "| shape | delay | collective | bytes |";
    let mpis: BTreeSet<Mpi> = runs.iter().map(|runs| runs.mpi).collect();
    mpis.iter().for_each(|mpi| page += &format!(" {} |", mpi.title()));
    page += "\n|---|---|---|---:|";
    mpis.iter().for_each(|_| page += "---:|");
    page.push('\n');
    let mut slower = String::new();
    for ((shape, delay, collective, bytes), by_mpi) in &cells {
        let delay = Delay { micros: *delay };
        let _ = write!(page, "| {shape} | {delay} | {collective} | {bytes} |");
        for mpi in &mpis {
            let Some(Compared { ratio: Spread { median, low, high }, algorithm }) = by_mpi.get(mpi) else {
                page += " |";
                continue;
            };
            let _ = write!(page, " {median:.2} ({low:.2}..{high:.2}) |");
            if *median < 0.95 {
                let _ = writeln!(
                    slower,
                    "- {}, {shape}, {delay}, {collective} of {bytes} bytes by {algorithm}: {median:.2}",
                    mpi.title()
                );
            }
        }
        page.push('\n');
    }
    page += &hops(&runs, &mpis);
    let slower = if slower.is_empty() { "none\n".into() } else { slower };
    let _ = write!(page, "\nSlower than the MPI's own by more than 5 %:\n\n{slower}");
    Ok(page)
}

/// How much longer a collective of 8 bytes takes when the delay grows, in delays: the hops between nodes on its critical path.
fn hops(runs: &[Runs], mpis: &BTreeSet<Mpi>) -> String {
    let smallest = runs.iter().map(|runs| runs.bytes).min();
    let mut medians: BTreeMap<(Shape, &str, &str, Mpi), BTreeMap<u64, f64>> = BTreeMap::new();
    for runs in runs.iter().filter(|runs| Some(runs.bytes) == smallest) {
        if let Some(spread) = Spread::of(runs.times.clone()) {
            let key = (runs.shape, runs.collective.as_str(), runs.way.as_str(), runs.mpi);
            medians.entry(key).or_default().insert(runs.delay.micros, spread.median);
        }
    }
    let mut rows: BTreeMap<(Shape, &str, &str), BTreeMap<Mpi, f64>> = BTreeMap::new();
    for ((shape, collective, way, mpi), by_delay) in medians {
        let ends = by_delay.first_key_value().zip(by_delay.last_key_value()).filter(|(first, last)| first.0 < last.0);
        if let Some(((shortest, quick), (longest, slow))) = ends {
            let slope = (slow - quick) / (longest - shortest) as f64;
            rows.entry((shape, collective, way)).or_default().insert(mpi, slope);
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    let mut page =
        format!("\nHops, {} bytes: time gained per delay added\n\n| shape | collective | by |", smallest.unwrap_or(0));
    mpis.iter().for_each(|mpi| page += &format!(" {} |", mpi.title()));
    page += "\n|---|---|---|";
    mpis.iter().for_each(|_| page += "---:|");
    page.push('\n');
    for ((shape, collective, way), by_mpi) in rows {
        let _ = write!(page, "| {shape} | {collective} | {way} |");
        for mpi in mpis {
            page += &by_mpi.get(mpi).map_or(" |".into(), |hops| format!(" {hops:.2} |"));
        }
        page.push('\n');
    }
    page
}

/// A drawing: for each shape and collective how much faster we are, over sizes, at the longest delay.
pub(super) fn plot(text: &str) -> Result<String> {
    let runs = all(text)?;
    let cells = compared(&runs);
    let longest = cells.keys().map(|(_, delay, ..)| *delay).max().ok_or("there are no runs to draw")?;
    let panels: BTreeSet<(Shape, &str)> =
        cells.keys().map(|(shape, _, collective, _)| (*shape, collective.as_str())).collect();
    let shapes: BTreeSet<Shape> = panels.iter().map(|(shape, _)| *shape).collect();
    let collectives: BTreeSet<&str> = panels.iter().map(|(_, collective)| *collective).collect();
    let sizes: BTreeSet<usize> = cells.keys().map(|(.., bytes)| *bytes).collect();
    let (width, height, left, top) = (190.0, 130.0, 46.0, 60.0);
    let (whole_width, whole_height) =
        (left + collectives.len() as f64 * (width + 20.0), top + shapes.len() as f64 * (height + 46.0));
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {whole_width} {whole_height}\" font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    let _ = writeln!(
        svg,
        "<text x=\"{left}\" y=\"18\" font-size=\"14\">time of the MPI's own / ours, {} between nodes; above the line we are faster</text>",
        Delay { micros: longest }
    );
    let colours = [(Mpi::Openmpi, "#1b6ca8"), (Mpi::Mpich, "#d1495b"), (Mpi::Intel, "#2a9d57")];
    for (index, (mpi, colour)) in colours.iter().enumerate() {
        let x = left + index as f64 * 110.0;
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"28\" width=\"10\" height=\"10\" fill=\"{colour}\"/><text x=\"{}\" y=\"37\">{}</text>",
            x + 14.0,
            mpi.title()
        );
    }
    // From a quarter to eight times as fast, by powers of two.
    let height_of = |ratio: f64| height * (1.0 - (ratio.clamp(0.25, 8.0).log2() + 2.0) / 5.0);
    for (row, shape) in shapes.iter().enumerate() {
        for (column, collective) in collectives.iter().enumerate() {
            let (x, y) = (left + column as f64 * (width + 20.0), top + row as f64 * (height + 46.0));
            let _ = writeln!(
                svg,
                "<g transform=\"translate({x} {y})\"><text x=\"0\" y=\"-4\">{collective}, {shape}</text><rect width=\"{width}\" height=\"{height}\" fill=\"none\" stroke=\"#bbb\"/>"
            );
            for ratio in [0.25, 0.5, 1.0, 2.0, 4.0, 8.0] {
                let (at, colour) = (height_of(ratio), if ratio == 1.0 { "#333" } else { "#e4e4e4" });
                let _ = writeln!(svg, "<line x1=\"0\" x2=\"{width}\" y1=\"{at}\" y2=\"{at}\" stroke=\"{colour}\"/>");
                if column == 0 {
                    let _ = writeln!(svg, "<text x=\"-6\" y=\"{}\" text-anchor=\"end\">{ratio}</text>", at + 4.0);
                }
            }
            let place = |index: usize| width * (index as f64 + 0.5) / sizes.len() as f64;
            for (index, bytes) in sizes.iter().enumerate() {
                let label = if *bytes < 1024 { bytes.to_string() } else { format!("{}K", bytes / 1024) };
                let _ = writeln!(
                    svg,
                    "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{label}</text>",
                    place(index),
                    height + 14.0
                );
            }
            for (which, (mpi, colour)) in colours.iter().enumerate() {
                for (index, bytes) in sizes.iter().enumerate() {
                    let cell = cells.get(&(*shape, longest, (*collective).into(), *bytes));
                    let Some(Compared { ratio, .. }) = cell.and_then(|by_mpi| by_mpi.get(mpi)) else { continue };
                    let x = place(index) + (which as f64 - 1.0) * 8.0;
                    let (low, high, at) = (height_of(ratio.low), height_of(ratio.high), height_of(ratio.median));
                    let _ = writeln!(
                        svg,
                        "<line x1=\"{x}\" x2=\"{x}\" y1=\"{low}\" y2=\"{high}\" stroke=\"{colour}\"/><circle cx=\"{x}\" cy=\"{at}\" r=\"3\" fill=\"{colour}\"><title>{}, {bytes} bytes: {:.2}</title></circle>",
                        mpi.title(),
                        ratio.median
                    );
                }
            }
            svg += "</g>\n";
        }
    }
    svg += "</svg>\n";
    Ok(svg)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RACE: &str = "# a command
openmpi 4x4 500us run allgather 8 auto loc-bruck thrown-away=0 us=1000,1010,990
openmpi 4x4 500us run allgather 8 mpi mpi thrown-away=1 us=2000,2020
openmpi 4x4 2ms run allgather 8 auto loc-bruck thrown-away=0 us=2500,2510,2490
openmpi 4x4 2ms run allgather 8 mpi mpi thrown-away=0 us=2000,2000,2000
";

    #[test]
    fn tables_compare_and_count_hops() {
        let page = tables(RACE).unwrap();
        assert!(page.contains("| 4x4 | 500us | allgather | 8 | 2.02 (2.00..2.04) |"), "{page}");
        assert!(page.contains("| 4x4 | 2ms | allgather | 8 | 0.80 ("), "{page}");
        assert!(page.contains("| 4x4 | allgather | auto | 1.00 |"), "{page}");
        assert!(page.contains("- Open MPI 5, 4x4, 2ms, allgather of 8 bytes by loc-bruck: 0.80"), "{page}");
        assert_eq!(page.matches("- Open MPI").count(), 1, "{page}");
    }

    #[test]
    fn a_plot_has_a_mark_for_each_cell() {
        let drawing = plot(RACE).unwrap();
        assert_eq!(drawing.matches("<circle").count(), 1);
        assert!(drawing.contains("8 bytes: 0.80"), "{drawing}");
    }

    #[test]
    fn what_is_no_race_is_said() {
        assert!(tables("openmpi 4x4 run").unwrap_err().contains("no line of a race"));
        assert!(plot("# nothing\n").is_err());
    }
}
