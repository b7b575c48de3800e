//! Figures 9 and 10: measured on Quartz and on Lassen, simulated here.

use allhands_schedule::{Collective, Topology};
use rayon::prelude::*;

use super::super::figure::{Compared, Effort, Figure, Picture, Table};
use super::super::numbers::{listed, mean_ratio, rounded};
use super::super::timed::{machine, time};
use crate::error::Result;
use allhands_plot::{Axis, Chart, Curve, Unit};

/// Two 4-byte integers a process.
const BYTES: u64 = 8;

const ALGORITHMS: [&str; 4] = ["bruck", "hierarchical", "multi-lane", "loc-bruck"];
const LOC: usize = 3;

/// Microseconds by algorithm, at one node count.
struct Point {
    nodes: usize,
    times: [f64; 4],
}

impl Point {
    /// How much longer the best of the others takes.
    fn gain(&self) -> f64 {
        self.times[..LOC].iter().copied().fold(f64::INFINITY, f64::min) / self.times[LOC]
    }
}

/// On so many processes a node, at every power of two of nodes.
fn sweep(name: &str, per_node: usize, most: usize) -> Result<Vec<Point>> {
    let machine = machine(name)?;
    let nodes: Vec<usize> = (1..).map(|power| 1usize << power).take_while(|nodes| nodes * per_node <= most).collect();
    let point = |&nodes: &usize| -> Result<Point> {
        let topology = Topology::regular(nodes, per_node)?;
        let mut times = [0.0; 4];
        for (at, algorithm) in times.iter_mut().zip(ALGORITHMS) {
            *at = time(&machine, Collective::Allgather, &topology, algorithm, BYTES)?;
        }
        Ok(Point { nodes, times })
    };
    nodes.par_iter().map(point).collect()
}

pub(super) fn figure_9(effort: Effort) -> Result<Figure> {
    let text = "Two 4-byte integers a process. Quartz has Omni-Path, 100 Gb/s, and its message costs are not published: the machine here is generic, an assumed \
                cluster with such a network, a node being a region. The paper measured where nodes are a power of PPN; lines go through all powers of \
                two, and what it says is tested at its own. Its reference line, MVAPICH2, is not ours to simulate.";
    figure(text, "generic", &[4, 8, 16, 32], effort).map(|figure| {
        figure
            .judged("Measured on Quartz there, simulated on an assumed machine here; the paper's text gives no times.")
    })
}

pub(super) fn figure_10(effort: Effort) -> Result<Figure> {
    let text = "The same on Lassen, one socket a node being a region, with message costs fitted to published ping-pongs of that machine. Lines go \
                through all powers of two of nodes; what the paper says is tested at powers of PPN, where it measured. Its reference \
                line, Spectrum MPI, is not ours to simulate.";
    figure(text, "lassen", &[4, 8, 16], effort).map(|figure| {
        figure
            .judged("Measured on Lassen there, simulated with its message costs here; the paper's text gives no times.")
    })
}

fn figure(text: &str, name: &str, per_node: &[usize], effort: Effort) -> Result<Figure> {
    let most = effort.either(1024, 4096);
    let mut table =
        Table::new("", &["ppn", "nodes", "bruck us", "hierarchical us", "multi-lane us", "loc-bruck us", "gain"]);
    let mut figure = Figure::new(text);
    let (mut gains, mut over_bruck) = (Vec::new(), Vec::new());
    for &size in per_node {
        let points = sweep(name, size, most)?;
        for Point { nodes, times } in &points {
            let cells = times.map(rounded);
            let gain = rounded(Point { nodes: *nodes, times: *times }.gain());
            table.row([&size, nodes, &cells[0], &cells[1], &cells[2], &cells[3], &gain]);
        }
        let line = |index: usize| points.iter().map(|point| (point.nodes as f64, point.times[index])).collect();
        let lines = ALGORITHMS.iter().enumerate().map(|(index, name)| Curve::new(name, line(index))).collect();
        let svg = Chart {
            title: format!("{size} processes a node"),
            subtitle: format!("allgather of {BYTES} bytes a process, simulated on {name}"),
            x: Axis::logarithmic("nodes", Unit::Plain, 2),
            y: Axis::logarithmic("", Unit::Microseconds, 10),
            lines,
        }
        .svg();
        figure = figure.picture(Picture::new(&format!("{size}-ppn"), svg));
        let at_powers: Vec<&Point> = points.iter().filter(|point| is_power(point.nodes, size)).collect();
        over_bruck.push(mean_ratio(at_powers.iter().map(|point| point.times[0] / point.times[LOC])));
        gains.extend(
            at_powers.into_iter().map(|point| (size, point.nodes, point.gain(), point.times[0] / point.times[LOC])),
        );
    }
    Ok(figure.table(table).compare(said(per_node, &gains, &over_bruck)))
}

/// What the paper says: (PPN, nodes, gain over the best other, gain over Bruck) at powers, and the mean gain over Bruck by PPN.
fn said(per_node: &[usize], gains: &[(usize, usize, f64, f64)], over_bruck: &[f64]) -> [Compared; 3] {
    let beaten = gains.iter().filter(|(_, _, _, bruck)| *bruck > 1.0).count();
    let wins = gains.iter().filter(|(_, _, gain, _)| *gain > 1.0).count();
    let losses: Vec<String> = gains
        .iter()
        .filter(|(_, _, gain, _)| *gain <= 1.0)
        .map(|(size, nodes, gain, _)| format!("{nodes}x{size} ({})", rounded(*gain)))
        .collect();
    let lost = if losses.is_empty() { String::new() } else { format!("; not at {}", listed(losses)) };
    let words = listed(over_bruck.iter().map(|gain| rounded(*gain)));
    [
        Compared::shape(
            "loc-Bruck is faster than Bruck, at powers of PPN",
            "yes",
            format!("{beaten} of {}", gains.len()),
            beaten == gains.len(),
        ),
        Compared::shape(
            "and than hierarchical and multi-lane too, for many process counts",
            "many",
            format!("{wins} of {}{lost}", gains.len()),
            2 * wins > gains.len(),
        ),
        Compared::shape(
            &format!("the gain over Bruck grows with PPN: mean at {}", listed(per_node)),
            "grows",
            words,
            over_bruck.is_sorted_by(|a, b| a < b),
        ),
    ]
}

fn is_power(number: usize, base: usize) -> bool {
    std::iter::successors(Some(base), |power| power.checked_mul(base))
        .take_while(|power| *power <= number)
        .any(|power| power == number)
}
