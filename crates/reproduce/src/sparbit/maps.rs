//! Figures 1 and 5: which algorithm is the fastest where.

use super::super::figure::{Compared, Effort, Figure, Picture, Table};
use super::super::numbers::{rounded, size};
use super::grid::{ALGORITHMS, CASES, Case, Cell, Grid, Metric, SPARBIT, grid};
use crate::error::Result;
use allhands_plot as plot;

const COLOURS: [&str; ALGORITHMS.len()] = ["#b8b8b8", "#c8553d", "#e9a23b", "#1d6b4f", "#3b6fb6"];

const RING: usize = 1;
const EXCHANGE: usize = 2;
const BRUCK: usize = 3;
const DOUBLING: usize = 4;

/// Lighter is better, as in the paper: 0 % is dark, 90 % nearly white.
fn grey(improvement: f64) -> String {
    let shade = (60.0 + improvement.clamp(0.0, 90.0) / 90.0 * 180.0) as u8;
    format!("#{shade:02x}{shade:02x}{shade:02x}")
}

/// The map of a grid, with Sparbit or without.
fn map(grid: &Grid, title: &str, with_sparbit: bool) -> String {
    let first = usize::from(!with_sparbit);
    let cell = |cell: &Cell| {
        let best = cell.best(first..ALGORITHMS.len(), Metric::Average);
        let gain = cell.improvement(Metric::Average).filter(|_| with_sparbit);
        let by = gain.map_or(String::new(), |gain| format!(", by {} %", rounded(gain)));
        plot::Cell {
            colour: gain.map_or(COLOURS[best].into(), grey),
            tip: format!(
                "{} ranks, {}: {}{by}, {} us",
                cell.ranks,
                size(cell.bytes),
                ALGORITHMS[best],
                rounded(cell.time(best, Metric::Average) * 1e6)
            ),
        }
    };
    let row = |row: usize| (0..grid.ranks.len()).map(|column| cell(grid.cell(column, row))).collect();
    let mut key: Vec<(String, String)> =
        (1..ALGORITHMS.len()).map(|index| (ALGORITHMS[index].into(), COLOURS[index].into())).collect();
    if with_sparbit {
        let shades = [(5.0, "sparbit, by 5 %"), (40.0, "40 %"), (80.0, "80 %")];
        let shades = shades.map(|(gain, words)| (words.into(), grey(gain)));
        key.extend(shades);
    }
    plot::Map {
        title: title.into(),
        subtitle: "the fastest by average time over ranks, simulated; hover for numbers".into(),
        columns: grid.ranks.iter().map(ToString::to_string).collect(),
        rows: grid.sizes.iter().map(|bytes| size(*bytes)).collect(),
        across: "processes".into(),
        cells: (0..grid.sizes.len()).map(row).collect(),
        key,
    }
    .svg()
}

fn table(grid: &Grid) -> Table {
    let mut head = vec!["processes", "bytes"];
    head.extend(ALGORITHMS.map(|name| name));
    let mut table = Table::new("", &head);
    for cell in grid.cells() {
        let times = (0..ALGORITHMS.len()).map(|index| cell.time(index, Metric::Average) * 1e6);
        let mut row = vec![cell.ranks.to_string(), cell.bytes.to_string()];
        row.extend(times.map(|time| if time.is_finite() { format!("{time:.3}") } else { String::new() }));
        table.rows.push(row);
    }
    table
}

const INEXACT: &str = "Measured on the authors' cluster there, simulated on a description of it here: the paper prints the network's bandwidths but no latencies, \
                       and more ranks than cores, from half of the columns on, are not modelled.";

pub(super) fn traditional(effort: Effort) -> Result<Figure> {
    let grid = grid(CASES[0], effort)?;
    let large = |cell: &&Cell| cell.bytes >= 1 << 17;
    let best = |cell: &Cell| cell.best(1..ALGORITHMS.len(), Metric::Average);
    let share = |cells: &[&Cell], wanted: &[usize]| {
        100.0 * cells.iter().filter(|cell| wanted.contains(&best(cell))).count() as f64 / cells.len().max(1) as f64
    };
    let big: Vec<&Cell> = grid.cells().filter(large).collect();
    let small: Vec<&Cell> = grid.cells().filter(|cell| cell.bytes <= 64).collect();
    let powers: Vec<&Cell> = small.iter().copied().filter(|cell| cell.ranks.is_power_of_two()).collect();
    let even: Vec<&Cell> = big.iter().copied().filter(|cell| cell.ranks % 2 == 0).collect();
    let [linear, logarithmic] = [share(&big, &[RING, EXCHANGE]), share(&small, &[BRUCK, DOUBLING])];
    let [doubling, exchange] = [share(&powers, &[DOUBLING]), share(&even, &[EXCHANGE])];
    let compared = [
        ("linear algorithms win at large sizes (here: 128 KiB on)", linear),
        ("logarithmic ones win at small sizes (here: up to 64 B)", logarithmic),
        ("there, recursive doubling beats Bruck at powers of two", doubling),
        ("neighbor exchange beats ring at large sizes and even numbers", exchange),
    ]
    .map(|(what, share)| Compared::shape(what, "generally", format!("{} % of cells", rounded(share)), share > 50.0));
    let distinct = (1..ALGORITHMS.len()).filter(|index| grid.cells().any(|cell| best(cell) == *index)).count();
    Ok(Figure::new(
        "Which of Open MPI's four algorithms is the fastest on Yahoo, ranks placed sequentially, by size (rows) and number of processes (columns): no one \
         wins everywhere.",
    )
    .picture(Picture::new("", map(&grid, "Yahoo, sequential, without Sparbit", false)))
    .table(table(&grid))
    .compare(compared)
    .compare([Compared::shape("no algorithm is the best everywhere: how many win somewhere", 4, distinct, distinct == 4)])
    .judged(INEXACT))
}

/// What the paper's text gives for a map: the share of cells that Sparbit wins, in per cent.
fn printed(case: Case) -> f64 {
    match (case.cluster, case.cyclic) {
        ("yahoo", false) => 46.43,
        ("yahoo", true) => 19.12,
        ("cervino", false) => 39.64,
        _ => 30.83,
    }
}

pub(super) fn best(case: Case, effort: Effort) -> Result<Figure> {
    let here = grid(case, effort)?;
    let wins = |grid: &Grid| grid.share(|cell| cell.improvement(Metric::Average).is_some());
    let (cluster, placement) = (case.cluster, case.placement());
    let share = wins(&here);
    let mut compared = vec![Compared::measured("cells where Sparbit is the fastest", printed(case), share, " %", 0.15)];
    let of = |cluster: &str, cyclic: bool| -> Result<f64> {
        let case = CASES.into_iter().find(|other| other.cluster == cluster && other.cyclic == cyclic).unwrap_or(case);
        Ok(wins(&*grid(case, effort)?))
    };
    let against = |one: f64, other: f64| format!("{} % against {} %", rounded(one), rounded(other));
    if case.cyclic {
        let sequential = of(cluster, false)?;
        let what = "fewer than with sequential placement";
        compared.push(Compared::shape(what, "yes", against(share, sequential), share < sequential));
        let other = CASES.into_iter().find(|other| other.cluster == cluster && !other.cyclic).unwrap_or(case);
        let bruck = |grid: &Grid| grid.share(|cell| [BRUCK, DOUBLING].contains(&fastest(cell)));
        let (cyclic, sequential) = (bruck(&here), bruck(&*grid(other, effort)?));
        let what = "more cells for Bruck and recursive doubling, now better placed, than with sequential placement";
        compared.push(Compared::shape(what, "yes", against(cyclic, sequential), cyclic > sequential));
    } else {
        compared.extend(sequential(&here));
        compared.extend(around(&here, if cluster == "yahoo" { 128 } else { 288 }));
    }
    if cluster == "cervino" {
        let yahoo = of("yahoo", case.cyclic)?;
        compared.push(match case.cyclic {
            false => Compared::shape(
                "fewer than on Yahoo, whose network has more levels",
                "yes",
                against(share, yahoo),
                share < yahoo,
            )
            .because("of Cervino's costs only the bandwidth of the links is known, and two ranks on a core are not modelled."),
            true => {
                let kept = [share / of("cervino", false)?, yahoo / of("yahoo", false)?].map(|part| 100.0 * part);
                let what = "of the sequential share, more is left than on Yahoo";
                Compared::shape(what, "yes", against(kept[0], kept[1]), kept[0] > kept[1])
            }
        });
    }
    let count = here.cells().count();
    let cases = if effort == Effort::Full { count.to_string() } else { format!("{count} (quick)") };
    let title = format!("{}{}, {placement}", cluster[..1].to_uppercase(), &cluster[1..]);
    Ok(Figure::new(&format!(
        "The fastest allgather in {cases} cases on {cluster}, ranks placed {}. Grey is Sparbit, lighter where it gains more on the second best; other \
         colours are the algorithm that beats it. Sparbit's blocks of a round travel as one message here; the authors' code sends each by itself.",
        if case.cyclic { "cyclically" } else { "sequentially" }
    ))
    .picture(Picture::new("", map(&here, &title, true)))
    .table(table(&here))
    .compare(compared)
    .judged(INEXACT))
}

/// What the paper says of the two maps with sequential placement.
fn sequential(grid: &Grid) -> Vec<Compared> {
    let against = |others: &[usize], cells: &dyn Fn(&Cell) -> bool| {
        let cells: Vec<&Cell> = grid.cells().filter(|cell| cells(cell)).collect();
        let wins = |cell: &&&Cell| {
            let best = cell.best(others.iter().copied(), Metric::Average);
            cell.time(SPARBIT, Metric::Average) < cell.time(best, Metric::Average)
        };
        100.0 * cells.iter().filter(wins).count() as f64 / cells.len().max(1) as f64
    };
    let small = |cell: &Cell| cell.bytes <= 1024;
    let large = |cell: &Cell| cell.bytes > 1024;
    let linear = against(&[RING, EXCHANGE], &small);
    let logarithmic = against(&[BRUCK, DOUBLING], &large);
    let said = |what: &str, paper: &str, share: f64| {
        Compared::shape(what, paper, format!("{} % of cells", rounded(share)), share > 90.0)
    };
    vec![
        said("faster than ring and neighbor exchange up to 1 KiB", "almost always (Yahoo 97.44 %)", linear),
        said("faster than Bruck and recursive doubling above 1 KiB", "almost always (Yahoo 97.16 %)", logarithmic).because(
            "Sparbit is simulated with its blocks packed into one message, and packing long blocks takes its time, which the authors' code saves.",
        ),
    ]
}

fn fastest(cell: &Cell) -> usize {
    cell.best(0..ALGORITHMS.len(), Metric::Average)
}

/// Where Sparbit's area lies: up to so many processes between two others, beyond them over the large sizes.
fn around(grid: &Grid, turning: usize) -> Vec<Compared> {
    let short: Vec<&Cell> = grid.cells().filter(|cell| cell.ranks <= turning && cell.bytes <= 8).collect();
    let long: Vec<&Cell> = grid.cells().filter(|cell| cell.ranks > turning && cell.bytes > 1024).collect();
    let share = |cells: &[&Cell], wanted: &[usize]| {
        100.0 * cells.iter().filter(|cell| wanted.contains(&fastest(cell))).count() as f64 / cells.len().max(1) as f64
    };
    let logarithmic = share(&short, &[BRUCK, DOUBLING]);
    let gains: Vec<f64> = short.iter().filter_map(|cell| cell.improvement(Metric::Average)).collect();
    let mean = gains.iter().sum::<f64>() / gains.len().max(1) as f64;
    let sparbit = share(&long, &[SPARBIT]);
    let mut said = vec![
        Compared::shape(
            &format!("up to {turning} processes the shortest blocks (here: 8 B) go to Bruck and recursive doubling"),
            "yes",
            format!("{} % of cells", rounded(logarithmic)),
            logarithmic > 50.0,
        )
        .because(&format!(
            "Sparbit wins here by {} % on average; the authors' code sends every block of a round by itself, which costs most where messages are short.",
            rounded(mean)
        )),
    ];
    if !long.is_empty() {
        said.push(
            Compared::shape(
                &format!("above {turning} processes most large blocks (above 1 KiB) go to Sparbit"),
                "the majority",
                format!("{} % of cells", rounded(sparbit)),
                sparbit > 50.0,
            )
            .because("the paper puts that change down to more ranks than cores, which are not modelled."),
        );
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lighter_is_better() {
        assert!(grey(10.0) < grey(80.0) && grey(0.0) == "#3c3c3c");
    }
}
