//! Figure 14: an allgatherv and a reduce_scatter of two messages of 90,464 bytes, all others empty; simulated, and run as a Fourier filter.

// The runnable example: one filter for both.
#[path = "../../../allhands/examples/fourier_filter/filter.rs"]
mod fourier;

use allhands_model::{Amount, Machine, Simulator};
use allhands_schedule::{Choice, Collective, Problem, Topology};
use rayon::prelude::*;

use self::fourier::{AS_RANKED, REORDERED, Times, measure, quantile};
use super::super::figure::{Compared, Effort, Figure, Picture, Table};
use super::super::numbers::rounded;
use super::super::timed::{failure, machine};
use crate::error::{Error, Result};
use allhands_plot::{Axis, Chart, Curve, Unit};

/// Bytes of each of the two messages.
const BYTES: u64 = 90464;

/// The two collectives with their algorithms.
const CASES: [(&str, Collective, &str); 2] =
    [("allgatherv", Collective::Allgatherv, "bruck"), ("reduce_scatter", Collective::ReduceScatter, "cyclic-shift")];

/// Thread ranks of the filter.
const RANKS: usize = 8;

pub(super) fn figure_14(effort: Effort) -> Result<Figure> {
    let aries = machine("aries")?;
    let nodes: Vec<usize> = effort.either(vec![4, 8, 16, 32], vec![4, 8, 16, 32, 64, 96, 128, 160]);
    let mut figure = Figure::new(
        "In the paper's plasma code two toroidal modes are kept, each 11 poloidal modes at 514 radial coefficients of 16 bytes: 90,464 bytes. The two messages lie on the last nodes, the \
         worst order, sorted by size. Left as it is, the second step on sends both in one message; paired with empty ones, they travel apart until the last.\n\n\
         First simulated on aries, one task a node, one port; then run: the filter itself (forward transform, reduce_scatter, allgatherv, backward transform, checked) on thread ranks \
         of this machine, by turns. It is also the example fourier_filter, which runs under any MPI.",
    );
    let mut gains = Vec::new();
    for (name, collective, algorithm) in CASES {
        let points = nodes
            .par_iter()
            .map(|&nodes| simulated(&aries, collective, algorithm, nodes))
            .collect::<Result<Vec<_>>>()?;
        let (picture, table) = shown(name, &nodes, &points);
        figure = figure.picture(picture).table(table);
        gains.push(points.iter().map(|[as_ranked, reordered]| as_ranked / reordered).collect::<Vec<f64>>());
    }
    let times = run(effort.either(10, 300))?;
    let (table, measured) = tabled(&times);
    let compared = simulated_said(&gains).into_iter().chain([longest_said()?]).chain(measured);
    Ok(figure.table(table).compare(compared).judged(
        "Measured on a Cray XC40 there, of which the text says 20 % and no times; simulated with costs fitted to another table, and run on threads of one machine here.",
    ))
}

/// Microseconds without and with reordering on so many nodes.
fn simulated(aries: &Machine, collective: Collective, algorithm: &str, nodes: usize) -> Result<[f64; 2]> {
    let time = |order: &str| -> Result<f64> {
        let prepared =
            Choice::parse(collective, &format!("{algorithm}:order={order}"))?.prepare(&problem(collective, nodes)?)?;
        Ok(Simulator::new(&prepared).run(aries, Amount::bytes(BYTES)).map_err(failure)?.seconds * 1e6)
    };
    Ok([time("ranks")?, time("sizes")?])
}

/// One task a node; the last two have a message.
fn problem(collective: Collective, nodes: usize) -> Result<Problem> {
    let counts = (0..nodes).map(|node| usize::from(node + 2 >= nodes)).collect();
    Ok(Problem::new(collective, Topology::regular(nodes, 1)?).with_counts(counts)?)
}

fn shown(name: &str, nodes: &[usize], points: &[[f64; 2]]) -> (Picture, Table) {
    let part = name.replace('_', "-");
    let mut table = Table::new(&part, &["nodes", "not reordered us", "reordered us", "gain"]);
    for (nodes, [as_ranked, reordered]) in nodes.iter().zip(points) {
        let cells = [*as_ranked, *reordered, as_ranked / reordered].map(rounded);
        table.row([nodes, &cells[0], &cells[1], &cells[2]]);
    }
    let line = |index: usize| nodes.iter().zip(points).map(|(&x, times)| (x as f64, times[index])).collect();
    let svg = Chart {
        title: format!("{name}: two messages of 90,464 bytes, the rest empty"),
        subtitle: "one task a node, one port, simulated on aries".into(),
        x: Axis::logarithmic("nodes", Unit::Plain, 2),
        y: Axis::linear("", Unit::Microseconds),
        lines: vec![Curve::new(AS_RANKED, line(0)), Curve::new(REORDERED, line(1))],
    }
    .svg();
    (Picture::new(&part, svg), table)
}

fn simulated_said(gains: &[Vec<f64>]) -> Vec<Compared> {
    let of = |((name, _, _), gains): (&(&str, Collective, &str), &Vec<f64>)| {
        let least = gains.iter().copied().fold(f64::INFINITY, f64::min);
        let most = gains[gains.len() - 1];
        [
            Compared::shape(
                &format!("{name}: reordering makes it faster at every node count"),
                "yes",
                format!("{} times at least", rounded(least)),
                least > 1.0,
            ),
            Compared::measured(&format!("{name}: speedup by reordering, on the most nodes"), 1.2, most, "", 0.1),
        ]
    };
    CASES.iter().zip(gains).flat_map(of).collect()
}

/// The longest message of each step on 8 nodes, added up, in messages: what reordering changes where there is no latency.
fn longest_said() -> Result<Compared> {
    let sum = |order: &str| -> Result<usize> {
        let problem = problem(Collective::Allgatherv, 8)?;
        let ensemble =
            Choice::parse(Collective::Allgatherv, &format!("bruck:order={order}"))?.prepare(&problem)?.ensemble();
        let run = super::super::drawn::Run::of(ensemble)?;
        let longest = |step: usize| {
            let sizes = run
                .messages(step)
                .iter()
                .map(|message| run.blocks(message).iter().map(|&block| problem.block_size(block)).sum());
            sizes.max().unwrap_or(0)
        };
        Ok((1..=run.steps()).map(longest).sum())
    };
    let (as_ranked, reordered) = (sum("ranks")?, sum("sizes")?);
    Ok(Compared::stated(
        "8 nodes: the longest messages of all steps, added up, in messages of 90,464 bytes: reordered, and not",
        "less",
        format!("{reordered} and {as_ranked}"),
        reordered < as_ranked,
    ))
}

/// The filter on thread ranks of this machine.
fn run(runs: usize) -> Result<Vec<Times>> {
    let topology = Topology::flat(RANKS)?;
    let mut times = allhands::threads(topology, |comm| measure(comm, runs, false))
        .map_err(|error| Error::Ranks(error.to_string()))?;
    Ok(times.swap_remove(0))
}

/// Medians with quartiles, and what they say.
fn tabled(times: &[Times]) -> (Table, Vec<Compared>) {
    let mut table =
        Table::new("thread-ranks", &["collective", "order", "median us", "lower quartile us", "upper quartile us"]);
    let columns: [fn(&Times) -> &Vec<f64>; 2] = [|times| &times.allgatherv, |times| &times.reduce_scatter];
    let mut compared = Vec::new();
    for ((name, _, _), of) in CASES.iter().zip(columns) {
        for one in times {
            let [median, low, high] = [0.5, 0.25, 0.75].map(|share| rounded(quantile(of(one), share)));
            table.row([name, &one.name, &median, &low, &high]);
        }
        let median =
            |name: &str| times.iter().find(|one| one.name == name).map_or(f64::NAN, |one| quantile(of(one), 0.5));
        let gain = median(AS_RANKED) / median(REORDERED);
        let what = format!("{name} on {RANKS} thread ranks, measured now: speedup by reordering");
        compared.push(Compared::measured(&what, 1.2, gain, "", 0.1).because(
            "threads read each other's memory, more of them than there are cores here: a step is no round trip, and what counts is the bytes that all ranks copy.",
        ));
    }
    (table, compared)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_messages_are_as_long_as_the_paper_prints() {
        assert_eq!((fourier::NUMBERS * 8) as u64, BYTES);
        assert_eq!(fourier::counts(4), [0, 0, 11308, 11308]);
        assert_eq!(fourier::counts(1), [22616]);
    }

    #[test]
    fn reordering_sends_three_messages_one_after_the_other_where_five_were() {
        assert_eq!(longest_said().unwrap().ours, "3 and 5");
    }

    #[test]
    fn the_filter_is_right_on_any_number_of_ranks() {
        for ranks in [1, 2, 3, 5] {
            let times = allhands::threads(Topology::flat(ranks).unwrap(), |comm| measure(comm, 2, false)).unwrap();
            let of = |times: &Times| (times.name, times.reduce_scatter.len(), times.allgatherv.len());
            assert_eq!(times[0].iter().map(of).collect::<Vec<_>>(), [(AS_RANKED, 2, 2), (REORDERED, 2, 2)]);
        }
    }
}
