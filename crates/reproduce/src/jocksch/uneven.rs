//! Figures 6 and 7: messages of different sizes.

use allhands_schedule::draw::Sizes;
use allhands_schedule::{Choice, Collective, Problem, Topology};

use super::super::drawn::Run;
use super::super::figure::{Compared, Effort, Figure, Table};
use super::super::numbers::listed;
use crate::error::Result;

/// An allgatherv of blocks of these sizes, one rank a node.
fn run(algorithm: &str, sizes: &[usize]) -> Result<Run> {
    let problem = Problem::new(Collective::Allgatherv, Topology::flat(sizes.len())?).with_counts(sizes.to_vec())?;
    Run::of(Choice::parse(Collective::Allgatherv, algorithm)?.prepare(&problem)?.ensemble())
}

/// The longest message of each step.
fn longest(run: &Run) -> Vec<u64> {
    let (problem, blocks) = (&run.ensemble.problem, run.ensemble.blocks);
    let size = |message: &allhands_schedule::draw::Message| {
        let send = &run.ensemble.schedules[message.from].rounds[message.round].sends[message.index];
        Sizes::new(1).of(problem, blocks, message.from, &send.spans)
    };
    (1..=run.steps()).map(|step| run.messages(step).iter().map(size).max().unwrap_or(0)).collect()
}

/// With no latency and a bandwidth of one.
fn time(algorithm: &str, sizes: &[usize]) -> Result<u64> {
    Ok(longest(&run(algorithm, sizes)?).iter().sum())
}

/// The order in which nodes take part in a cyclic shift, from node 0 on: each sends first to the one before it.
fn order(run: &Run) -> Vec<usize> {
    let nodes = run.ensemble.problem.ranks();
    let after = |node: usize| run.messages(1).iter().find(|message| message.to == node).map(|message| message.from);
    std::iter::successors(Some(0), |&node| after(node)).take(nodes).collect()
}

pub(super) fn figure_6(_: Effort) -> Result<Figure> {
    let sizes = [0x1, 0x2, 0x6, 0x9, 0xA, 0xB, 0xE];
    let (as_given, paired) = (run("bruck", &sizes)?, run("bruck:order=sizes", &sizes)?);
    let order = order(&paired);
    let mut table = Table::new("", &["place", "node", "size"]);
    order.iter().enumerate().for_each(|(place, &node)| table.row([&place, &format!("n{node}"), &sizes[node]]));
    let time = |run: &Run| longest(run).iter().sum::<u64>();
    let compared = [
        Compared::exact("the order", "n0, n3, n4, n1, n6, n2, n5", listed(order.iter().map(|node| format!("n{node}")))),
        Compared::stated(
            "the longest messages of all steps, added up: in that order, and as given",
            "less",
            format!("{} and {}", time(&paired), time(&as_given)),
            time(&paired) < time(&as_given),
        ),
    ];
    let text = "Seven messages of sizes 1, 2, 6, 9, 10, 11 and 14. As long as there is more than one, the smallest is joined with the largest, the next with the next, and so \
                on, one left over being put aside; so every step of the algorithm sends messages of similar size. The order is read off the schedule.";
    Ok(Figure::new(text)
        .picture(paired.schedule("paired"))
        .picture(as_given.schedule("as-given"))
        .table(table)
        .compare(compared)
        .judged(""))
}

pub(super) fn figure_7(_: Effort) -> Result<Figure> {
    let sizes = [1, 1, 0, 2];
    let others = [[1, 0, 1, 2], [1, 2, 1, 0]];
    let other_times: Vec<u64> = others.iter().map(|sizes| time("recursive-doubling", sizes)).collect::<Result<_>>()?;
    let mut cyclic: Vec<u64> = arrangements().iter().map(|sizes| time("bruck", sizes)).collect::<Result<_>>()?;
    cyclic.sort_unstable();
    cyclic.dedup();
    let (doubling, shift) = (run("recursive-doubling", &sizes)?, run("bruck", &sizes)?);
    let (mixed, sorted) = ([0, 1, 0, 1, 0, 1, 0, 1], [0, 0, 0, 0, 1, 1, 1, 1]);
    let mut table = Table::new("", &["algorithm", "sizes", "longest message of each step", "time"]);
    for algorithm in ["recursive-doubling", "bruck"] {
        for sizes in [&sizes[..], &others[0], &others[1], &mixed, &sorted] {
            let steps = longest(&run(algorithm, sizes)?);
            table.row([&algorithm, &listed(sizes), &listed(&steps), &steps.iter().sum::<u64>()]);
        }
    }
    let of = |sizes: &[usize]| -> Result<String> {
        Ok(format!("{} and {}", time("recursive-doubling", sizes)?, time("bruck", sizes)?))
    };
    let compared = [
        Compared::exact("time by recursive doubling", 4, longest(&doubling).iter().sum::<u64>()),
        Compared::exact("time by cyclic shift", 5, longest(&shift).iter().sum::<u64>()),
        Compared::exact("other pairs, by recursive doubling", "5, 5", listed(other_times)),
        Compared::exact("all arrangements, by cyclic shift", "5", listed(cyclic)),
        Compared::exact("sizes 0, 1, 0, 1, 0, 1, 0, 1: both", "4 and 4", of(&mixed)?),
        Compared::exact("sorted by size they take longer: both", "7 and 7", of(&sorted)?),
    ];
    let text = "Four messages of sizes 1, 1, 0 and 2, no latency and a bandwidth of one: the longest message of each step, added up. For eight messages the paper gives the \
                sizes of every step, from which 4 and 7 follow.";
    Ok(Figure::new(text)
        .picture(doubling.schedule("recursive-doubling"))
        .picture(shift.schedule("cyclic-shift"))
        .table(table)
        .compare(compared)
        .judged(""))
}

/// All orders of 1, 1, 0, 2.
fn arrangements() -> Vec<[usize; 4]> {
    let mut all = Vec::new();
    for zero in 0..4 {
        for two in (0..4).filter(|&two| two != zero) {
            let mut sizes = [1; 4];
            (sizes[zero], sizes[two]) = (0, 2);
            all.push(sizes);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::super::figure::Agreement;
    use super::*;

    #[test]
    fn the_order_and_the_times_are_those_printed() {
        for make in [figure_6, figure_7] {
            let figure = make(Effort::Quick).unwrap();
            let good = |agrees| matches!(agrees, Agreement::Same | Agreement::Holds);
            assert!(figure.compared.iter().all(|one| good(one.agrees)), "{:?}", figure.compared);
        }
    }

    #[test]
    fn there_are_twelve_arrangements() {
        let all: std::collections::BTreeSet<[usize; 4]> = arrangements().into_iter().collect();
        assert_eq!(all.len(), 12);
    }
}
