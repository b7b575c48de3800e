//! Figures 10 to 13: measured on Aries and Slingshot, simulated on `aries`.
//!
//! What the paper compares with, Cray MPI and Open MPI, cannot be simulated. In their place stand algorithms among all ranks, as MPIs
//! have them where they do not look at nodes. A node is taken to inject no faster than one of its ranks can send: the machine file says nothing
//! of that, since one rank a node communicates in Table 2, and without it twelve ranks would have twelve networks.

use allhands_model::Machine;
use allhands_schedule::{Collective, Topology};
use rayon::prelude::*;

use super::super::figure::{Compared, Effort, Figure, Picture, Table};
use super::super::numbers::{ends, listed, rounded};
use super::super::timed::machine;
use super::ports::{fastest, lists, phases};
use super::tables::{NODES, PORTS, TABLE_2, TASKS, algorithm, candidates};
use crate::error::Result;
use allhands_plot::{Axis, Chart, Curve, Unit};

const OUR_LINE: &str = "cyclic shift of nodes";
const OTHER_LINE: &str = "among all ranks";

const INEXACT: &str = "Measured on a Cray XC40 there. The machine aries is fitted to Table 2, which has only the paper's own allreduce: its other lines, and messages inside a node, \
                       rest on assumptions (a node injects no faster than one rank). There is no machine for Slingshot, so those halves are not made again.";

/// The machine, with that limit.
fn aries() -> Result<Machine> {
    let mut aries = machine("aries")?;
    aries.levels[0].protocols.iter_mut().for_each(|protocol| protocol.injection = protocol.per_byte);
    Ok(aries)
}

/// Ours and what stands for an MPI, in microseconds, at a size or a number of nodes.
#[derive(Clone, Copy)]
struct Point {
    x: f64,
    ours: f64,
    other: f64,
}

impl Point {
    fn gain(&self) -> f64 {
        self.other / self.ours
    }
}

fn points(xs: impl IntoIterator<Item = f64>, ours: &[f64], other: &[f64]) -> Vec<Point> {
    xs.into_iter().zip(ours.iter().zip(other)).map(|(x, (&ours, &other))| Point { x, ours, other }).collect()
}

fn names(algorithms: &[&str]) -> Vec<String> {
    algorithms.iter().map(ToString::to_string).collect()
}

/// The fastest of some algorithms at each size.
fn best(
    machine: &Machine,
    collective: Collective,
    topology: &Topology,
    algorithms: &[String],
    sizes: &[u64],
) -> Result<Vec<f64>> {
    Ok(fastest(machine, collective, topology, algorithms, sizes)?.into_iter().map(|(_, time)| time).collect())
}

/// Two lines, and their rows.
fn chart(title: &str, subtitle: &str, x: Axis, points: &[Point], more: Vec<Curve>) -> (Picture, Table) {
    let name = title.to_lowercase().replace(", ", "-").replace([' ', '_'], "-");
    let mut table = Table::new(&name, &[x.name.as_str(), "cyclic shift of nodes us", "among all ranks us", "gain"]);
    for point in points {
        let cells = [point.ours, point.other, point.gain()].map(rounded);
        table.row([&point.x, &cells[0], &cells[1], &cells[2]]);
    }
    let line = |of: fn(&Point) -> f64| points.iter().map(|point| (point.x, of(point))).collect();
    let mut lines =
        vec![Curve::new(OUR_LINE, line(|point| point.ours)), Curve::new(OTHER_LINE, line(|point| point.other))];
    lines.extend(more);
    let svg = Chart {
        title: title.into(),
        subtitle: subtitle.into(),
        x,
        y: Axis::logarithmic("", Unit::Microseconds, 10),
        lines,
    }
    .svg();
    (Picture::new(&name, svg), table)
}

/// Whether ours is faster everywhere, and by how much.
fn faster(what: &str, points: &[Point]) -> Compared {
    let (least, most) = ends(points.iter().map(Point::gain));
    let lost = listed(points.iter().filter(|point| point.gain() <= 1.0).map(|point| point.x));
    let lost = if lost.is_empty() { String::new() } else { format!("; not at {lost}") };
    let ours = format!("{} to {} times as fast{lost}", rounded(least), rounded(most));
    Compared::shape(what, "yes", ours, least > 1.0)
}

/// Nodes as in the paper, or a few if it must be quick.
fn nodes(effort: Effort) -> usize {
    effort.either(20, NODES)
}

/// What the tasks of a node do in shared memory before and after an allgather of nodes, in microseconds: every task copies its block in
/// and all blocks out, and they meet twice.
fn around_allgather(machine: &Machine, ranks: usize, bytes: u64) -> f64 {
    (2.0 * machine.levels[1].meeting + machine.copy * (bytes * (ranks as u64 + 1)) as f64) * 1e6
}

/// The same for a reduce_scatter: every task copies its vector in, reduces its share of those of all tasks, and copies its block out.
fn around_reduce_scatter(machine: &Machine, ranks: usize, bytes: u64) -> f64 {
    let vector = (bytes * ranks as u64) as f64;
    let shares = vector * (TASKS - 1) as f64 / TASKS as f64;
    (2.0 * machine.levels[1].meeting + machine.copy * (vector + bytes as f64) + machine.combine * shares) * 1e6
}

/// One half of Figure 10.
struct Half {
    name: &'static str,
    collective: Collective,
    /// The cyclic shift of nodes, without its ports.
    shift: &'static str,
    /// Algorithms among all ranks: for any size, and for long blocks only, where it can be the faster one.
    others: [&'static str; 2],
    /// Microseconds inside nodes: the machine, all ranks, the bytes of a block.
    around: fn(&Machine, usize, u64) -> f64,
}

const HALVES: [Half; 2] = [
    Half {
        name: "Allgather",
        collective: Collective::Allgather,
        shift: "bruck",
        others: ["bruck", "ring"],
        around: around_allgather,
    },
    Half {
        name: "Reduce_scatter",
        collective: Collective::ReduceScatter,
        shift: "cyclic-shift",
        others: ["cyclic-shift", "pairwise"],
        around: around_reduce_scatter,
    },
];

/// Blocks from which on a step for each rank is tried too.
const LONG: u64 = 4096;

impl Half {
    fn points(&self, aries: &Machine, nodes: usize, sizes: &[u64]) -> Result<Vec<Point>> {
        let (all, alone) = (Topology::regular(nodes, TASKS)?, Topology::regular(nodes, 1)?);
        let of_nodes: Vec<u64> = sizes.iter().map(|bytes| bytes * TASKS as u64).collect();
        let candidates: Vec<String> =
            lists(nodes, PORTS).iter().map(|ports| format!("{}:ports={ports}", self.shift)).collect();
        let between = best(aries, self.collective, &alone, &candidates, &of_nodes)?;
        let around = |bytes: u64| (self.around)(aries, nodes * TASKS, bytes);
        let ours: Vec<f64> = between.iter().zip(sizes).map(|(time, &bytes)| time + around(bytes)).collect();
        let (short, long): (Vec<u64>, Vec<u64>) = sizes.iter().partition(|bytes| **bytes < LONG);
        let mut other = best(aries, self.collective, &all, &names(&self.others[..1]), &short)?;
        other.extend(best(aries, self.collective, &all, &names(&self.others), &long)?);
        Ok(points(sizes.iter().map(|&bytes| bytes as f64), &ours, &other))
    }
}

pub(super) fn figure_10(effort: Effort) -> Result<Figure> {
    let (aries, nodes) = (aries()?, nodes(effort));
    let sizes: Vec<u64> = (3..=17).step_by(2).map(|power| 1 << power).collect();
    let mut figure = Figure::new(
        "Tasks of a node put their blocks together in shared memory; nodes exchange them by a cyclic shift with the fastest ports found for the size; tasks copy out. What happens on the \
         node is added as the model charges it (meetings, copies, combining). Beside it, in place of Cray MPI and Open MPI, the faster of Bruck and ring among all ranks \
         (allgather), of a cyclic shift and pairwise exchange among them (reduce_scatter). Sizes are those of a task's own block.",
    );
    for half in HALVES {
        let points = half.points(&aries, nodes, &sizes)?;
        let subtitle = format!("{nodes} nodes of {TASKS} tasks, simulated on aries");
        let x = Axis::logarithmic("bytes of a block", Unit::Bytes, 2);
        let (picture, table) = chart(half.name, &subtitle, x, &points, Vec::new());
        figure = figure
            .picture(picture)
            .table(table)
            .compare([faster(&format!("{}: faster than the reference at every size", half.name), &points)]);
        if half.collective == Collective::Allgather {
            let [small, large] = [points[0].gain(), points[points.len() - 1].gain()];
            figure = figure.compare([Compared::shape(
                "Allgather: especially for small sizes; gain at the smallest and the largest",
                "yes",
                listed([small, large].map(rounded)),
                small > large,
            )
            .because("what stands for an MPI pays nothing for its calls here, and suffers for long blocks from the assumed limit on what a node injects.")]);
        }
    }
    Ok(figure.judged(INEXACT))
}

/// The two allreduces that stand for an MPI: for short vectors and for long ones.
const FLAT: [&str; 2] = ["recursive-doubling", "rabenseifner"];

pub(super) fn figure_11(effort: Effort) -> Result<Figure> {
    let aries = aries()?;
    let topology = Topology::regular(NODES, TASKS)?;
    let sizes: Vec<u64> = (3..=25).step_by(effort.either(11, 2)).map(|power| 1 << power).collect();
    let algorithms: Vec<String> = candidates(effort).iter().map(|phases| algorithm(phases)).collect();
    let ours = best(&aries, Collective::Allreduce, &topology, &algorithms, &sizes)?;
    let other = best(&aries, Collective::Allreduce, &topology, &names(&FLAT), &sizes)?;
    let points = points(sizes.iter().map(|&bytes| bytes as f64), &ours, &other);
    let printed = TABLE_2.iter().map(|(bytes, _, time)| (*bytes as f64, *time)).collect();
    let (picture, table) = chart(
        "Allreduce",
        "160 nodes of 12 tasks, simulated on aries; dashed: the times of Table 2",
        Axis::logarithmic("bytes", Unit::Bytes, 2),
        &points,
        vec![Curve::new("Table 2", printed).dashed()],
    );
    let most = points.iter().map(Point::gain).fold(0.0, f64::max);
    let text = "The cyclic shift among nodes with the fastest ports for each size (as for Table 2), beside the faster of recursive doubling and Rabenseifner among all 1920 ranks, which \
                stands in for Cray MPI and Open MPI. The times of Table 2 are what the machine was fitted to.";
    let compared = [
        faster("faster than the reference at every size", &points),
        Compared::shape(
            "by more than a factor of five somewhere",
            "yes",
            format!("up to {}", rounded(most)),
            most > 5.0,
        )
        .because("the reference here is not the MPI that was measured, and pays nothing for calls and matching."),
    ];
    Ok(Figure::new(text).picture(picture).table(table).compare(compared).judged(INEXACT))
}

/// Times by size: ours, and what stands for an MPI.
type Sides = (Vec<f64>, Vec<f64>);

pub(super) fn figure_12(effort: Effort) -> Result<Figure> {
    let aries = aries()?;
    let counts: Vec<usize> = effort.either(vec![5, 10, 20], vec![5, 10, 20, 40, 80, 160]);
    let sizes = [8u64, 4096, 32 << 20];
    let one = |&nodes: &usize| -> Result<Sides> {
        let topology = Topology::regular(nodes, TASKS)?;
        let algorithms: Vec<String> = phases(nodes, PORTS).iter().map(|phases| algorithm(phases)).collect();
        Ok((
            best(&aries, Collective::Allreduce, &topology, &algorithms, &sizes)?,
            best(&aries, Collective::Allreduce, &topology, &names(&FLAT), &sizes)?,
        ))
    };
    let all: Vec<Sides> = counts.par_iter().map(one).collect::<Result<_>>()?;
    let mut figure = Figure::new(
        "The same for growing numbers of nodes of 12 tasks, at three sizes. The paper's text says of Aries that its routine is faster throughout.",
    );
    for (index, title) in ["8 bytes", "4096 bytes", "32 MiB"].into_iter().enumerate() {
        let column = |of: fn(&Sides) -> &Vec<f64>| all.iter().map(|one| of(one)[index]).collect::<Vec<f64>>();
        let points = points(counts.iter().map(|&nodes| nodes as f64), &column(|one| &one.0), &column(|one| &one.1));
        let (picture, table) = chart(
            title,
            "12 tasks a node, simulated on aries",
            Axis::logarithmic("nodes", Unit::Plain, 2),
            &points,
            Vec::new(),
        );
        figure = figure
            .picture(picture)
            .table(table)
            .compare([faster(&format!("{title}: faster than the reference"), &points)]);
    }
    Ok(figure.judged(INEXACT))
}

pub(super) fn figure_13(effort: Effort) -> Result<Figure> {
    let aries = aries()?;
    let nodes = nodes(effort);
    let topology = Topology::regular(nodes, 1)?;
    let sizes: Vec<u64> = (3..=25).step_by(effort.either(11, 2)).map(|power| 1 << power).collect();
    let with = |most: usize| -> Result<Vec<f64>> {
        let algorithms: Vec<String> =
            phases(nodes, most).iter().map(|phases| format!("cyclic-shift:phases={phases}")).collect();
        best(&aries, Collective::Allreduce, &topology, &algorithms, &sizes)
    };
    let (one, many) = (with(1)?, with(PORTS)?);
    let other = best(&aries, Collective::Allreduce, &topology, &names(&FLAT), &sizes)?;
    let xs = || sizes.iter().map(|&bytes| bytes as f64);
    let points = points(xs(), &many, &other);
    let one_port = Curve::new("cyclic shift, one port", xs().zip(one.iter().copied()).collect());
    let subtitle = format!("{nodes} nodes of one task, simulated on aries; up to 12 ports");
    let (picture, table) = chart(
        "Allreduce, one task a node",
        &subtitle,
        Axis::logarithmic("bytes", Unit::Bytes, 2),
        &points,
        vec![one_port],
    );
    let gains: Vec<f64> = one.iter().zip(&many).map(|(one, many)| one / many).collect();
    let (last, middle) = (gains.len() - 1, gains.len() / 2);
    let words = [0, middle, last].map(|index| rounded(gains[index])).join(", ");
    let compared = [
        Compared::shape(
            "up to twelve ports are faster than one for short and medium vectors: gain at the shortest, medium, longest",
            "yes",
            words,
            gains[0] > 1.05 && gains[middle] > 1.05,
        ),
        Compared::shape(
            "and the gain is smallest for the longest, where one port is best",
            "yes",
            rounded(gains[last]),
            gains.iter().all(|gain| *gain >= gains[last]),
        ),
        faster("up to twelve ports: faster than the reference", &points),
    ];
    let text = "One task a node, so that nothing happens inside nodes: the cyclic shift with one port and with up to twelve, beside recursive doubling or Rabenseifner, whichever is faster.";
    Ok(Figure::new(text).picture(picture).table(table).compare(compared).judged(INEXACT))
}
