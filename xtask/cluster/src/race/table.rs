//! Tables and a plot of a race, from its raw lines.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::racer::TRIAL;
use crate::Result;
use crate::job::Mpi;
use crate::settings::{Delay, Shape};

/// One line: the times of one way, in microseconds, in the order in which they were measured.
pub(super) struct Runs {
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
pub(super) struct Spread {
    pub(super) median: f64,
    pub(super) low: f64,
    pub(super) high: f64,
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
    let [mpi, shape, delay, "run" | TRIAL, collective, bytes, way, algorithm, _, times] = words[..] else {
        return None;
    };
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

pub(super) fn all(text: &str) -> Result<Vec<Runs>> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    lines.map(|line| read(line).ok_or_else(|| format!("no line of a race: {line:?}; write the race anew"))).collect()
}

/// What a table has rows for.
pub(super) type Cell = (Shape, u64, String, usize);

/// MPI's own time over ours, and ours.
pub(super) struct Compared {
    pub(super) ratio: Spread,
    algorithm: String,
}

/// Of every cell and MPI.
pub(super) fn compared(runs: &[Runs]) -> BTreeMap<Cell, BTreeMap<Mpi, Compared>> {
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
    let mpis: BTreeSet<Mpi> = runs.iter().map(|runs| runs.mpi).collect();
    let mut page = summary(&cells, &mpis);
    page += "\nMPI's own time / ours: median (10 % .. 90 %); above 1 we are faster\n\n";
    page += &head("| shape | delay | collective | bytes |", &mpis);
    for ((shape, delay, collective, bytes), by_mpi) in &cells {
        let delay = Delay { micros: *delay };
        let _ = write!(page, "| {shape} | {delay} | {collective} | {bytes} |");
        for mpi in &mpis {
            page += &by_mpi.get(mpi).map_or(" |".into(), |Compared { ratio: Spread { median, low, high }, .. }| {
                format!(" {median:.2} ({low:.2}..{high:.2}) |")
            });
        }
        page.push('\n');
    }
    let (trials, races): (Vec<Runs>, Vec<Runs>) = runs.into_iter().partition(|runs| runs.way == TRIAL);
    let hops = Hops::of(&races);
    page += &hops.table(&mpis);
    page += &losses(&races, &cells, &hops);
    page += &left(&trials, &cells);
    Ok(page)
}

/// The medians alone, as the README has them: a table for each shape and delay at which all sizes raced.
fn summary(cells: &BTreeMap<Cell, BTreeMap<Mpi, Compared>>, mpis: &BTreeSet<Mpi>) -> String {
    let sizes: BTreeSet<usize> = cells.keys().map(|(.., bytes)| *bytes).collect();
    let largest = sizes.last();
    let races: BTreeSet<(Shape, u64)> =
        cells.keys().filter(|cell| Some(&cell.3) == largest).map(|(shape, delay, ..)| (*shape, *delay)).collect();
    let collectives: BTreeSet<&str> = cells.keys().map(|(_, _, collective, _)| collective.as_str()).collect();
    let titles: Vec<&str> = mpis.iter().map(|mpi| mpi.title()).collect();
    let mut page = String::new();
    for (shape, delay) in races {
        let _ = write!(page, "| {shape}, {}: {} |", Delay { micros: delay }, titles.join(", "));
        sizes.iter().for_each(|bytes| page += &format!(" {} |", size(*bytes)));
        let _ = writeln!(page, "\n|---|{}", "---|".repeat(sizes.len()));
        for collective in &collectives {
            let _ = write!(page, "| {collective} |");
            for bytes in &sizes {
                let cell = cells.get(&(shape, delay, (*collective).to_string(), *bytes));
                let ratio = |mpi| cell.and_then(|by_mpi| by_mpi.get(mpi)).map(|compared| compared.ratio.median);
                mpis.iter().for_each(|mpi| page += &ratio(mpi).map_or(" –".into(), short));
                page += " |";
            }
            page.push('\n');
        }
        page.push('\n');
    }
    page
}

/// A ratio in two digits; a loss stands out.
fn short(ratio: f64) -> String {
    let digits = if ratio < 0.995 { format!("{ratio:.2}") } else { format!("{ratio:.1}") };
    if ratio < LOSS { format!(" **{digits}**") } else { format!(" {digits}") }
}

fn size(bytes: usize) -> String {
    if bytes < 1024 { format!("{bytes} B") } else { format!("{} KiB", bytes / 1024) }
}

/// The first two lines of a table with a column for each MPI.
fn head(columns: &str, mpis: &BTreeSet<Mpi>) -> String {
    let titles: String = mpis.iter().map(|mpi| format!(" {} |", mpi.title())).collect();
    let left = "|---".repeat(columns.matches('|').count() - 1);
    format!("{columns}{titles}\n{left}|{}\n", "---:|".repeat(mpis.len()))
}

/// Delays below this hide behind ranks that wait for a core.
const LONG_ENOUGH: u64 = 2000;

/// A way of a collective under an MPI.
type Racer<'a> = (Shape, &'a str, &'a str, Mpi);

/// How much longer the smallest collectives take when the delay grows, in delays: the hops between nodes on the critical path.
struct Hops<'a> {
    bytes: usize,
    delays: Vec<u64>,
    slopes: BTreeMap<Racer<'a>, f64>,
}

impl<'a> Hops<'a> {
    fn of(runs: &'a [Runs]) -> Hops<'a> {
        let bytes = runs.iter().map(|runs| runs.bytes).min().unwrap_or(0);
        let smallest = || runs.iter().filter(|runs| runs.bytes == bytes);
        let all: BTreeSet<u64> = smallest().map(|runs| runs.delay.micros).collect();
        let long: Vec<u64> = all.iter().copied().filter(|delay| *delay >= LONG_ENOUGH).collect();
        let delays = if long.len() > 1 { long } else { all.into_iter().collect() };
        let mut points: BTreeMap<Racer<'a>, Vec<(f64, f64)>> = BTreeMap::new();
        for runs in smallest().filter(|runs| delays.contains(&runs.delay.micros)) {
            if let Some(spread) = Spread::of(runs.times.clone()) {
                let key = (runs.shape, runs.collective.as_str(), runs.way.as_str(), runs.mpi);
                points.entry(key).or_default().push((runs.delay.micros as f64, spread.median));
            }
        }
        let slopes = points.into_iter().filter_map(|(key, points)| Some((key, slope(&points)?))).collect();
        Hops { bytes, delays, slopes }
    }

    /// Those of other sizes are not known.
    fn of_cell(&self, racer: Racer<'_>, bytes: usize) -> Option<f64> {
        self.slopes.get(&racer).copied().filter(|_| bytes == self.bytes)
    }

    fn table(&self, mpis: &BTreeSet<Mpi>) -> String {
        let rows: BTreeSet<(Shape, &str, &str)> = self.slopes.keys().map(|key| (key.0, key.1, key.2)).collect();
        if rows.is_empty() {
            return String::new();
        }
        let delays: Vec<String> = self.delays.iter().map(|micros| Delay { micros: *micros }.to_string()).collect();
        let mut page = format!(
            "\nHops, {} bytes: time gained per delay added, a straight line through the medians at {}\n\n{}",
            self.bytes,
            delays.join(", "),
            head("| shape | collective | by |", mpis)
        );
        for (shape, collective, way) in rows {
            let _ = write!(page, "| {shape} | {collective} | {way} |");
            for mpi in mpis {
                let slope = self.slopes.get(&(shape, collective, way, *mpi));
                page += &slope.map_or(" |".into(), |hops| format!(" {hops:.2} |"));
            }
            page.push('\n');
        }
        page
    }
}

/// Of the line with the least squares.
fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let (rise, run) = points
        .iter()
        .fold((0.0, 0.0), |(rise, run), point| (rise + (point.0 - x) * (point.1 - y), run + (point.0 - x).powi(2)));
    (points.len() > 1 && run > 0.0).then(|| rise / run)
}

/// Where the MPI's own is faster by more than this share.
const LOSS: f64 = 0.95;

/// The cells that we lose, each with what the same runs tell about the reason.
fn losses(runs: &[Runs], cells: &BTreeMap<Cell, BTreeMap<Mpi, Compared>>, hops: &Hops<'_>) -> String {
    let mut page = String::from("\nSlower than the MPI's own by more than 5 %:\n\n");
    let mut lines = String::new();
    for ((shape, delay, collective, bytes), by_mpi) in cells {
        for (mpi, Compared { ratio, algorithm }) in by_mpi.iter().filter(|(_, compared)| compared.ratio.median < LOSS) {
            let here = runs.iter().filter(|runs| {
                (runs.mpi, runs.shape, runs.delay.micros, &runs.collective, runs.bytes)
                    == (*mpi, *shape, *delay, collective, *bytes)
            });
            let medians: Vec<(&str, f64)> =
                here.filter_map(|runs| Some((runs.way.as_str(), Spread::of(runs.times.clone())?.median))).collect();
            let _ = writeln!(
                lines,
                "| {} | {shape} | {} | {collective} | {bytes} | {algorithm} | {:.2} ({:.2}..{:.2}) | {} |",
                mpi.title(),
                Delay { micros: *delay },
                ratio.median,
                ratio.low,
                ratio.high,
                reason(algorithm, *ratio, &medians, |way| hops.of_cell((*shape, collective, way, *mpi), *bytes))
            );
        }
    }
    if lines.is_empty() {
        return page + "none\n";
    }
    page +=
        "| MPI | shape | delay | collective | bytes | ours | ratio | reason |\n|---|---|---|---|---:|---|---:|---|\n";
    page + &lines
}

/// The cells in which `auto` is the MPI's own, with the best of ours in the trials.
fn left(trials: &[Runs], cells: &BTreeMap<Cell, BTreeMap<Mpi, Compared>>) -> String {
    let mut lines = String::new();
    for ((shape, delay, collective, bytes), by_mpi) in cells {
        for mpi in by_mpi.iter().filter(|(_, compared)| compared.algorithm == "mpi").map(|(mpi, _)| mpi) {
            let here = trials.iter().filter(|trial| {
                (trial.mpi, trial.shape, trial.delay.micros, &trial.collective, trial.bytes)
                    == (*mpi, *shape, *delay, collective, *bytes)
            });
            let medians = here.filter_map(|trial| Some((&trial.algorithm, Spread::of(trial.times.clone())?.median)));
            let (theirs, ours): (Vec<_>, Vec<_>) = medians.partition(|(algorithm, _)| *algorithm == "mpi");
            let best = ours.iter().min_by(|one, other| one.1.total_cmp(&other.1));
            let Some(((_, theirs), (algorithm, best))) = theirs.first().zip(best) else { continue };
            let _ = writeln!(
                lines,
                "| {} | {shape} | {} | {collective} | {bytes} | {algorithm} | {:.2} |",
                mpi.title(),
                Delay { micros: *delay },
                theirs / best
            );
        }
    }
    let title = "\nLeft to the MPI's own, which was faster by more than 5 % in the trials:\n\n";
    if lines.is_empty() {
        return format!("{title}none\n");
    }
    let head = "| MPI | shape | delay | collective | bytes | best of ours | ratio |\n|---|---|---|---|---:|---|---:|\n";
    format!("{title}{head}{lines}")
}

/// Why a cell is lost, as far as its runs can tell.
fn reason(algorithm: &str, ratio: Spread, medians: &[(&str, f64)], hops: impl Fn(&str) -> Option<f64>) -> String {
    if algorithm == "mpi" {
        return "the same twice: the noise of this machine".into();
    }
    let of = |wanted: &str| medians.iter().find(|(way, _)| *way == wanted).map(|(_, median)| *median);
    let (ours, theirs) = (of("auto").unwrap_or(f64::NAN), of("mpi").unwrap_or(f64::NAN));
    let papers = medians.iter().filter(|(way, _)| !["auto", "mpi"].contains(way));
    let best = papers.min_by(|one, other| one.1.total_cmp(&other.1)).filter(|(_, best)| *best < LOSS * ours);
    let paths = hops("auto").zip(hops("mpi"));
    match (best, paths) {
        (Some((way, best)), _) => format!("not the best choice: {way} is at {:.2}", theirs / best),
        _ if ratio.high >= 1.0 => "within the spread".into(),
        (_, Some((ours, theirs))) if ours > theirs + 0.5 => format!("{ours:.1} hops against {:.1}", theirs.max(0.0)),
        (_, Some((ours, theirs))) => format!("as many hops ({ours:.1} against {theirs:.1}): time of the cores"),
        _ => "time of the cores".into(),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) const RACE: &str = "# a command
openmpi 4x4 500us run allgather 8 auto loc-bruck thrown-away=0 us=1000,1010,990
openmpi 4x4 500us run allgather 8 mpi mpi thrown-away=1 us=2000,2020
openmpi 4x4 2ms run allgather 8 auto loc-bruck thrown-away=0 us=2500,2510,2490
openmpi 4x4 2ms run allgather 8 mpi mpi thrown-away=0 us=2000,2000,2000
";

    #[test]
    fn tables_compare_and_count_hops() {
        let page = tables(RACE).unwrap();
        assert!(page.starts_with("| 4x4, 500us: Open MPI 5 | 8 B |\n|---|---|\n| allgather | 2.0 |\n"), "{page}");
        assert!(page.contains("| 4x4, 2ms: Open MPI 5 | 8 B |\n|---|---|\n| allgather | **0.80** |\n"), "{page}");
        assert!(page.contains("| 4x4 | 500us | allgather | 8 | 2.02 (2.00..2.04) |"), "{page}");
        assert!(page.contains("| 4x4 | 2ms | allgather | 8 | 0.80 ("), "{page}");
        assert!(page.contains("| 4x4 | allgather | auto | 1.00 |"), "{page}");
        assert!(page.contains("through the medians at 500us, 2ms"), "{page}");
        assert!(page.contains("| Open MPI 5 | 4x4 | 2ms | allgather | 8 | loc-bruck | 0.80 ("), "{page}");
        assert!(page.contains("| 1.0 hops against 0.0 |"), "{page}");
        assert_eq!(page.matches("| Open MPI 5 | 4x4").count(), 1, "{page}");
    }

    #[test]
    fn what_is_left_to_the_mpi_is_said() {
        let race = "openmpi 4x4 2ms trial bcast 8 trial mpi thrown-away=0 us=900,1000,1100
openmpi 4x4 2ms trial bcast 8 trial binomial thrown-away=0 us=2000,2000,2000
openmpi 4x4 2ms trial bcast 8 trial hierarchical thrown-away=0 us=1250,1250,1250
openmpi 4x4 2ms run bcast 8 auto mpi thrown-away=0 us=1000,1000
openmpi 4x4 2ms run bcast 8 mpi mpi thrown-away=0 us=1000,1000
";
        let page = tables(race).unwrap();
        assert!(page.contains("| Open MPI 5 | 4x4 | 2ms | bcast | 8 | hierarchical | 0.80 |"), "{page}");
        assert!(page.contains("| 4x4 | 2ms | bcast | 8 | 1.00 (1.00..1.00) |"), "{page}");
        assert!(tables(RACE).unwrap().ends_with("in the trials:\n\nnone\n"));
    }

    #[test]
    fn hops_are_counted_where_delays_are_long() {
        let longer = "openmpi 4x4 4ms run allgather 8 auto loc-bruck thrown-away=0 us=4500
openmpi 4x4 8ms run allgather 8 auto loc-bruck thrown-away=0 us=9700
openmpi 4x4 8ms run allgather 1024 auto loc-bruck thrown-away=0 us=90000
";
        let page = tables(&(RACE.to_owned() + longer)).unwrap();
        assert!(
            page.contains(
                "Hops, 8 bytes: time gained per delay added, a straight line through the medians at 2ms, 4ms, 8ms"
            ),
            "{page}"
        );
        // 2500, 4500, 9700 at 2, 4, 8 ms.
        assert!(page.contains("| 4x4 | allgather | auto | 1.21 |"), "{page}");
        assert!(!page.contains("| 4x4 | allgather | mpi |"), "{page}");
    }

    #[test]
    fn the_reason_of_a_loss_is_looked_for_among_its_runs() {
        let ratio = |high| Spread { median: 0.8, low: 0.7, high };
        let medians = [("auto", 10.0), ("mpi", 8.0), ("ring", 12.0), ("bruck", 9.0)];
        let none = |_: &str| None;
        assert_eq!(reason("ring", ratio(0.9), &medians, none), "not the best choice: bruck is at 0.89");
        assert_eq!(reason("mpi", ratio(0.9), &medians, none), "the same twice: the noise of this machine");
        assert_eq!(reason("ring", ratio(1.1), &medians[..3], none), "within the spread");
        let hops = |way: &str| Some(if way == "auto" { 2.1 } else { 1.1 });
        assert_eq!(reason("ring", ratio(0.9), &medians[..3], hops), "2.1 hops against 1.1");
        let same = |_: &str| Some(1.0);
        assert_eq!(
            reason("ring", ratio(0.9), &medians[..3], same),
            "as many hops (1.0 against 1.0): time of the cores"
        );
    }

    #[test]
    fn what_is_no_race_is_said() {
        assert!(tables("openmpi 4x4 run").unwrap_err().contains("no line of a race"));
    }
}
