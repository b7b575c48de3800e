//! Figures 3, 8 and 9: allreduces by lines, of which only those are sent that the result needs.

use std::collections::BTreeSet;

use allhands_schedule::draw::Cell;
use allhands_schedule::{Collective, Send};

use super::super::drawn::Run;
use super::super::figure::{Compared, Effort, Figure, Table};
use super::super::numbers::listed;
use crate::error::Result;

/// Contributions that a node combines into one position at some time, besides its own: the lines of the paper's figure.
fn lines(run: &Run, node: usize) -> Vec<(usize, String)> {
    let written = run.picture.steps.iter().flat_map(|step| &step.written);
    let mine = written.filter(|((_, _, rank), _)| *rank == node).filter_map(|(_, cell)| match cell {
        Cell::Combined(runs) => Some((runs.iter().map(|(first, end)| (end - first) as usize).sum(), cell.to_string())),
        _ => None,
    });
    mine.collect::<BTreeSet<_>>().into_iter().collect()
}

/// What a node sends in each of its rounds with messages.
fn sends(run: &Run, node: usize) -> Vec<&Send> {
    run.ensemble.schedules[node].rounds.iter().flat_map(|round| &round.sends).collect()
}

/// The fractions of the vector that a message carries, ascending.
fn fractions(run: &Run, node: usize, send: &Send) -> Vec<usize> {
    let (problem, blocks) = (&run.ensemble.problem, run.ensemble.blocks);
    let positions = send.spans.iter().flat_map(|span| (span.first..span.end()).map(|position| (span.space, position)));
    let mut fractions: Vec<usize> =
        positions.map(|(space, position)| problem.block_at(space, node, position, blocks)).collect();
    fractions.sort_unstable();
    fractions
}

pub(super) fn figure_3(_: Effort) -> Result<Figure> {
    let gather = Run::new(Collective::Allgather, "bruck", "11")?;
    let reduce = Run::new(Collective::Allreduce, "cyclic-shift:11(1,1,1,1)", "11")?;
    let sent = |run: &Run| {
        sends(run, 0).iter().map(|send| send.spans.iter().map(|span| span.count).sum::<usize>()).collect::<Vec<_>>()
    };
    let (gathered, reduced) = (sent(&gather), sent(&reduce));
    let mut kept: BTreeSet<usize> = lines(&reduce, 7).into_iter().map(|(ranks, _)| ranks).collect();
    kept.insert(1); // its own
    let eighth = lines(&reduce, 7).into_iter().find(|(ranks, _)| *ranks == 8).map_or(String::new(), |(_, cell)| cell);
    let mut table = Table::new("", &["node", "ranks in the line", "combined from"]);
    for node in [0, 1, 7, 10] {
        lines(&reduce, node).iter().for_each(|(ranks, cell)| table.row([&format!("n{node:X}"), ranks, cell]));
    }
    let compared = [
        Compared::exact("lines that arrive in each step of the allgather", "1, 2, 4, 3", listed(gathered)),
        Compared::exact("lines that the allreduce needs (marked X)", "1, 2, 3, 4, 8, 11", listed(kept)),
        Compared::exact("line eight on n7: 7 to A and 0 to 3", "0-3,7-10", eighth),
        Compared::exact("lines communicated in step two: three and four", 2, reduced.get(1).copied().unwrap_or(0)),
        Compared::exact("steps", 4, reduced.len()),
    ];
    let text = format!(
        "The allgather brings each of eleven values to each node, line by line. An allreduce that keeps partial sums instead needs six of the eleven lines, so that \
         a node sends {} times the vector and not 10 times. (The text calls line eleven, the last, line ten.)",
        reduced.iter().sum::<usize>()
    );
    Ok(Figure::new(&text)
        .picture(gather.buffers("allgather"))
        .picture(reduce.schedule("allreduce"))
        .table(table)
        .compare(compared)
        .judged(""))
}

/// Whom node five sends to in each stage, and the fractions, as printed.
type Printed = [(usize, &'static str); 4];

/// What Figures 8 and 9 show: one node's program.
fn program(text: &str, phases: &str, printed: Printed, lines: &str, volume: &str) -> Result<(Run, Figure)> {
    let run = Run::new(Collective::Allreduce, &format!("cyclic-shift:{phases}"), "8")?;
    let sends = sends(&run, 5);
    let mut table = Table::new("", &["stage", "to", "fractions"]);
    let mut compared = Vec::new();
    for (stage, send) in sends.iter().enumerate() {
        let fractions = listed(fractions(&run, 5, send));
        table.row([&stage, &send.to, &fractions]);
        if let Some((to, paper)) = printed.get(stage) {
            let what = format!("stage {stage}: node 5 sends to, fractions");
            compared.push(Compared::exact(&what, format!("{to}: {paper}"), format!("{}: {fractions}", send.to)));
        }
    }
    let counts: Vec<usize> = sends.iter().map(|send| send.spans.iter().map(|span| span.count).sum()).collect();
    compared.push(Compared::exact("lines sent in each stage", lines, listed(&counts)));
    compared.push(Compared::exact("vectors sent by a node", volume, format!("{}/8", counts.iter().sum::<usize>())));
    let figure = Figure::new(text).picture(run.schedule("")).table(table).compare(compared);
    Ok((run, figure))
}

pub(super) fn figure_8(_: Effort) -> Result<Figure> {
    let text = "The paper prints node five's program in its mini-language, 8(-1 1 1 1): one step of reduce_scatter, after which a node has half of the vector, and three of \
                allgather with reduction, without the lines that nobody needs. Ours is generated from the same notation; what node five sends in each stage is compared.";
    let printed = [(1, "1, 2, 3, 4"), (4, "0, 5, 6, 7"), (3, "0, 1, 5, 6, 7"), (1, "0, 1, 2, 3, 5, 6, 7")];
    Ok(program(text, "8(-1,1,1,1)", printed, "4, 4, 5, 7", "20/8")?.1.judged(""))
}

pub(super) fn figure_9(_: Effort) -> Result<Figure> {
    let text = "The same for 2(-1) 4(1 1) 2(1): groups of two, of four, and of two again. It sends 16 eighths of the vector where Figure 8 sends 20.";
    let printed = [(4, "0, 1, 2, 3"), (3, "4, 5, 6, 7"), (1, "4, 5, 6, 7"), (4, "4, 5, 6, 7")];
    let (run, figure) = program(text, "2(-1)4(1,1)2(1)", printed, "4, 4, 4, 4", "16/8")?;
    let compared = Compared::exact("lines of node 4 that node 5 receives in stage 1", "1 to 4", lines_given(&run, 4))
        .because("a node lists first what it keeps, then what it sends, as the paper's own node five does in stage 0: a slip in the figure.");
    Ok(figure.compare([compared]).judged(""))
}

/// The lines of a node's list that it gives away in its first stage: what it keeps stands first.
fn lines_given(run: &Run, node: usize) -> String {
    let given = sends(run, node).first().map_or(0, |send| fractions(run, node, send).len());
    format!("{} to {}", run.ensemble.blocks - given, run.ensemble.blocks - 1)
}

#[cfg(test)]
mod tests {
    use super::super::super::figure::Verdict;
    use super::*;

    #[test]
    fn lines_and_fractions_are_those_printed() {
        for make in [figure_3, figure_8] {
            let figure = make(Effort::Quick).unwrap();
            assert_eq!(figure.verdict, Verdict::Matches, "{}", figure.text);
        }
    }

    #[test]
    fn figure_9_differs_by_a_slip_of_the_paper_only() {
        let figure = figure_9(Effort::Quick).unwrap();
        let other: Vec<&str> =
            figure.compared.iter().filter(|one| one.paper != one.ours).map(|one| one.what.as_str()).collect();
        assert_eq!(other, ["lines of node 4 that node 5 receives in stage 1"]);
        assert_eq!(figure.verdict.words(), "differs");
    }
}
