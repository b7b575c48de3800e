//! Figures 12 to 15: measured on Blue Waters, simulated here.

use allhands_schedule::{Collective, Topology};
use rayon::prelude::*;

use super::super::figure::{Compared, Effort, Figure, Picture, Table};
use super::super::numbers::{listed, rounded, size};
use super::super::timed::{machine, times};
use crate::error::Result;
use allhands_plot::{Axis, Chart, Curve, Unit};

/// Processes of a node.
pub(super) const PPN: usize = 16;

/// Recursive doubling, SMP and NAP as the paper calls them, and as we do.
pub(super) const NAMES: [&str; 3] = ["RD", "SMP", "NAP"];
const ALGORITHMS: [&str; 3] = ["recursive-doubling", "smp", "nap"];
pub(super) const SMP: usize = 1;
pub(super) const NAP: usize = 2;

/// Microseconds of the three.
pub(super) type Times = [f64; 3];

/// The largest size at which NAP is ahead of SMP, going up from the smallest.
pub(super) fn crossing(points: &[(f64, Times)]) -> f64 {
    let ahead = points.iter().take_while(|(_, times)| times[NAP] < times[SMP]);
    ahead.last().map_or(0.0, |(bytes, _)| *bytes)
}

/// How much longer the better of the others takes than NAP.
pub(super) fn gain([rd, smp, nap]: &Times) -> f64 {
    rd.min(*smp) / nap
}

/// Gains where processes are a power of PPN, as far as there are such.
pub(super) fn at_powers(points: &[(f64, Times)]) -> impl Iterator<Item = f64> {
    points.iter().filter(|(x, _)| [256.0, 4096.0, 65536.0].contains(x)).map(|(_, times)| gain(times))
}

/// By algorithm, at several sizes.
fn simulated(nodes: usize, sizes: &[u64]) -> Result<Vec<(f64, Times)>> {
    let machine = machine("blue-waters")?;
    let topology = Topology::regular(nodes, PPN)?;
    let of = |algorithm: &&str| times(&machine, Collective::Allreduce, &topology, algorithm, sizes);
    let columns: Vec<Vec<f64>> = ALGORITHMS.par_iter().map(of).collect::<Result<_>>()?;
    let point = |(row, &bytes): (usize, &u64)| (bytes as f64, [0, 1, 2].map(|index| columns[index][row]));
    Ok(sizes.iter().enumerate().map(point).collect())
}

/// One value of 8 bytes on all powers of two of nodes.
fn by_processes(effort: Effort) -> Result<Vec<(f64, Times)>> {
    let nodes: Vec<usize> = (1..=effort.either(9, 12)).map(|power| 1 << power).collect();
    let one = |&nodes: &usize| Ok(((nodes * PPN) as f64, simulated(nodes, &[8])?[0].1));
    nodes.par_iter().map(one).collect()
}

/// 32,768 processes, or 4096 if it must be quick.
fn by_size(effort: Effort) -> Result<Vec<(f64, Times)>> {
    let sizes: Vec<u64> = (3..=16).step_by(effort.either(2, 1)).map(|power| 1 << power).collect();
    simulated(effort.either(256, 2048), &sizes)
}

const INEXACT: &str = "Measured on Blue Waters there; here simulated with message costs fitted to ping-pongs of that machine. The text gives no times.";

/// Seconds, or how much longer the others take than NAP.
#[derive(Clone, Copy)]
enum Show {
    Times,
    Speedups,
}

/// A picture and a table of all points.
fn shown(figure: Figure, points: &[(f64, Times)], show: Show, x: Axis, subtitle: &str) -> Figure {
    let (title, y, names, of): (_, _, &[&str], fn(&Times) -> Times) = match show {
        Show::Times => ("Simulated time", Axis::logarithmic("", Unit::Microseconds, 10), &NAMES, |times| *times),
        Show::Speedups => {
            let speedup = |times: &Times| times.map(|time| time / times[NAP]);
            ("Simulated speedup of NAP", Axis::linear("", Unit::Plain), &["over RD", "over SMP"], speedup)
        }
    };
    let mut table = Table::new("", &[x.name.as_str(), "RD us", "SMP us", "NAP us", "RD / NAP", "SMP / NAP"]);
    for (x, times) in points {
        let cells = [times[0], times[1], times[2], times[0] / times[NAP], times[SMP] / times[NAP]].map(rounded);
        table.row([x, &cells[0], &cells[1], &cells[2], &cells[3], &cells[4]]);
    }
    let line = |index: usize| points.iter().map(|(x, times)| (*x, of(times)[index])).collect();
    let lines = names.iter().enumerate().map(|(index, name)| Curve::new(name, line(index))).collect();
    let svg = Chart { title: title.into(), subtitle: subtitle.into(), x, y, lines }.svg();
    figure.picture(Picture::new("", svg)).table(table)
}

pub(super) fn figure_12(effort: Effort) -> Result<Figure> {
    let points = by_processes(effort)?;
    let text = "One value of 8 bytes, 16 processes a node, every power of two of nodes. On few of them there is hardly a message between nodes to be saved. The implementations on top of an MPI that the paper measured are simulated as \
                schedules; its own variation between runs is not.";
    let x = Axis::logarithmic("processes", Unit::Plain, 2);
    let lost = listed(points.iter().filter(|(_, times)| gain(times) <= 1.0).map(|(x, _)| x));
    let lost = if lost.is_empty() { String::new() } else { format!("; not at {lost}") };
    let growth = |index: usize| points[points.len() - 1].1[index] / points[0].1[index];
    let compared = [
        Compared::shape(
            "NAP is faster than both at powers of 16: gain over the better one there",
            "notable",
            format!("{}{lost}", listed(at_powers(&points).map(rounded))),
            at_powers(&points).all(|gain| gain > 1.1),
        ),
        Compared::shape(
            "and grows least from the fewest processes to the most: RD, SMP, NAP",
            "NAP",
            [0, 1, 2].map(growth).map(rounded).join(", "),
            growth(NAP) < growth(0).min(growth(SMP)),
        ),
    ];
    let figure =
        shown(Figure::new(text), &points, Show::Times, x, "allreduce of 8 bytes, 16 processes a node, blue-waters");
    Ok(figure.compare(compared).judged(INEXACT))
}

pub(super) fn figure_13(effort: Effort) -> Result<Figure> {
    let points = by_processes(effort)?;
    let text = "The same times as in Figure 12, as speedups. NAP takes another inter-node step just above a power of 16 processes a node, which is where its lead is \
                smallest; the steps of the others grow with every doubling.";
    let x = Axis::logarithmic("processes", Unit::Plain, 2);
    let compared = peaks(&points).into_iter();
    let figure =
        shown(Figure::new(text), &points, Show::Speedups, x, "allreduce of 8 bytes, 16 processes a node, blue-waters");
    Ok(figure.compare(compared).judged(INEXACT))
}

/// Whether speedups over both are larger at powers of PPN than beside them.
fn peaks(points: &[(f64, Times)]) -> Vec<Compared> {
    let powers = [256.0, 4096.0, 65536.0].into_iter().filter_map(|power| points.iter().position(|(x, _)| *x == power));
    let gain = |index: usize, other: usize| points[index].1[other] / points[index].1[NAP];
    let said = |index: usize| {
        let beside: Vec<usize> = [index - 1, index + 1].into_iter().filter(|&beside| beside < points.len()).collect();
        let words = |other: usize| {
            let values = beside.iter().map(|&beside| rounded(gain(beside, other))).collect::<Vec<_>>().join(" and ");
            format!("{} beside {values}", rounded(gain(index, other)))
        };
        let peak = |other: usize| beside.iter().all(|&beside| gain(index, other) > gain(beside, other));
        Compared::shape(
            &format!("the speedups over RD and SMP peak at {} processes, a power of 16", points[index].0),
            "peak",
            format!("{}; {}", words(0), words(SMP)),
            peak(0) && peak(SMP),
        )
    };
    powers.map(said).collect()
}

pub(super) fn figure_14(effort: Effort) -> Result<Figure> {
    let points = by_size(effort)?;
    let text = "32,768 processes on 2048 nodes (with --quick 4096 on 256), by the bytes reduced. In NAP all processes of a node send whole vectors at once and share what the node \
                can inject, so the master of SMP, alone on its node, is faster with long ones.";
    let x = Axis::logarithmic("bytes", Unit::Bytes, 2);
    let figure = shown(Figure::new(text), &points, Show::Times, x, "allreduce, 16 processes a node, blue-waters");
    Ok(figure.compare(sizes_said(&points)).judged(INEXACT))
}

pub(super) fn figure_15(effort: Effort) -> Result<Figure> {
    let points = by_size(effort)?;
    let text = "The same times as in Figure 14, as speedups: NAP is ahead where the line is above 1.";
    let x = Axis::logarithmic("bytes", Unit::Bytes, 2);
    let figure = shown(Figure::new(text), &points, Show::Speedups, x, "allreduce, 16 processes a node, blue-waters");
    Ok(figure.compare(sizes_said(&points)).judged(INEXACT))
}

/// What the paper says of Figures 14 and 15.
fn sizes_said(points: &[(f64, Times)]) -> [Compared; 3] {
    let up_to = |most: f64| points.iter().filter(move |(bytes, _)| *bytes <= most);
    let least = up_to(2048.0).map(|(_, times)| gain(times)).fold(f64::INFINITY, f64::min);
    let (longest, last) = points[points.len() - 1];
    [
        Compared::shape(
            "NAP is faster than both up to 2048 B",
            "yes",
            format!("by {} at least", rounded(least)),
            least > 1.0,
        ),
        Compared::shape(
            &format!("SMP is faster than NAP for large sizes: SMP's lead at {}", size(longest as u64)),
            "yes",
            rounded(last[NAP] / last[SMP]),
            last[SMP] < last[NAP],
        ),
        Compared::measured("NAP is ahead of SMP up to", 2048.0, crossing(points), " B", 0.0).because(
            "fits of ping-pongs say when all processes of a node crowd its network, not how the network fares when 2048 nodes do.",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crossing_is_the_last_size_at_which_nap_leads() {
        let points =
            [(8.0, [3.0, 3.0, 1.0]), (16.0, [3.0, 3.0, 2.9]), (32.0, [3.0, 3.0, 3.1]), (64.0, [9.0, 9.0, 1.0])];
        assert_eq!(crossing(&points), 16.0);
        assert_eq!(crossing(&points[2..]), 0.0);
    }

    #[test]
    fn speedups_peak_at_powers_of_ppn_and_are_no_peak_elsewhere() {
        let points = by_processes(Effort::Quick).unwrap();
        let said = peaks(&points);
        assert_eq!(said.len(), 2);
        assert!(said.iter().all(|one| one.agrees == super::super::super::figure::Agreement::Holds), "{said:?}");
        let shifted: Vec<(f64, Times)> =
            points[1..].iter().zip(&points).map(|((_, times), (x, _))| (*x, *times)).collect();
        assert!(peaks(&shifted).iter().all(|one| one.agrees == super::super::super::figure::Agreement::Fails));
    }
}
