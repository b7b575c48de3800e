//! Figures 3, 4 and 6 to 9: schedules.

use std::collections::BTreeSet;

use allhands_schedule::draw::Message;
use allhands_schedule::{Choice, Collective, Counts, Problem, Topology};

use super::super::drawn::Run;
use super::super::figure::{Compared, Effort, Figure, Table};
use super::super::numbers::listed;
use crate::error::Result;

/// Processes of a node in all drawings.
const PPN: usize = 4;

fn run(algorithm: &str, topology: &str) -> Result<Run> {
    Run::new(Collective::Allreduce, algorithm, topology)
}

/// The steps with messages between nodes.
fn far_steps(run: &Run) -> Vec<usize> {
    (1..=run.steps()).filter(|step| run.messages(*step).iter().any(|message| message.far)).collect()
}

/// How many messages each step has between nodes, and how many inside them.
fn by_step(run: &Run, far: bool) -> String {
    let count = |step: usize| run.messages(step).iter().filter(|message| message.far == far).count();
    listed((1..=run.steps()).map(count))
}

/// The most messages to other nodes that one process sends.
fn most_far(run: &Run) -> usize {
    Counts::maxima(&run.ensemble).far_sent.messages
}

/// Whom a process sends to and receives from in other nodes, round by round.
fn partners(run: &Run, rank: usize) -> Vec<(Vec<usize>, Vec<usize>)> {
    let topology = &run.ensemble.problem.topology;
    let rounds = run.ensemble.schedules[rank].rounds.iter().map(|round| {
        let sent = round.sends.iter().map(|send| send.to).filter(|&to| topology.far(rank, to));
        let received = round.recvs.iter().map(|recv| recv.from).filter(|&from| topology.far(rank, from));
        (sent.collect::<Vec<_>>(), received.collect::<Vec<_>>())
    });
    rounds.filter(|(sent, received)| !sent.is_empty() || !received.is_empty()).collect()
}

/// `P6`, or what there is instead.
fn process(ranks: &[usize]) -> String {
    match ranks {
        [] => "nobody".into(),
        ranks => ranks.iter().map(|rank| format!("P{rank}")).collect::<Vec<_>>().join(" and "),
    }
}

/// The one process that is both sent to and received from in a round between nodes.
fn exchanges(run: &Run, rank: usize, round: usize) -> String {
    match partners(run, rank).get(round) {
        Some((sent, received)) if sent == received => process(sent),
        Some((sent, received)) => format!("to {}, from {}", process(sent), process(received)),
        None => "nobody".into(),
    }
}

/// Processes that neither send nor receive in a step.
fn idle(run: &Run, step: usize) -> Vec<usize> {
    let busy: BTreeSet<usize> = run.messages(step).iter().flat_map(|message| [message.from, message.to]).collect();
    (0..run.ensemble.problem.ranks()).filter(|rank| !busy.contains(rank)).collect()
}

fn node(rank: usize) -> usize {
    rank / PPN
}

/// What every drawing has.
fn figure(text: &str, run: &Run, compared: impl IntoIterator<Item = Compared>) -> Figure {
    let mut table = Table::new("", &["step", "from", "to", "between nodes"]);
    for step in 1..=run.steps() {
        for Message { from, to, far, .. } in run.messages(step) {
            table.row([&step, from, to, &if *far { "yes" } else { "no" }]);
        }
    }
    Figure::new(text).picture(run.schedule("")).table(table).compare(compared).judged("")
}

pub(super) fn figure_3(_: Effort) -> Result<Figure> {
    let run = run("recursive-doubling", "4x4")?;
    let last = run.messages(run.steps());
    let pairs: BTreeSet<(usize, usize)> = last.iter().map(|message| (node(message.from), node(message.to))).collect();
    let text = "Every process exchanges its partial result with another one in each step. In the last two steps the four processes of a node, \
                which hold the same values by then, send them to the same other node: duplicates.";
    let compared = [
        Compared::exact("steps, log2(16)", 4, run.steps()),
        Compared::exact("messages between nodes in steps 1 to 4", "0, 0, 16, 16", by_step(&run, true)),
        Compared::exact(
            "processes that are idle in some step",
            0,
            (1..=run.steps()).map(|step| idle(&run, step).len()).sum::<usize>(),
        ),
        Compared::exact("messages of a process to other nodes, log2(4)", 2, most_far(&run)),
        Compared::exact(
            "duplicate messages from a node to another in the last step",
            4,
            last.len() / pairs.len().max(1),
        ),
    ];
    Ok(figure(text, &run, compared))
}

pub(super) fn figure_4(_: Effort) -> Result<Figure> {
    let run = run("smp", "4x4")?;
    let steps = far_steps(&run);
    let senders: BTreeSet<usize> =
        steps.iter().flat_map(|&step| run.messages(step)).map(|message| message.from).collect();
    let text = "A master in each node collects, recursive doubling goes among the masters, and the result is broadcast in the node. Nothing is sent twice \
                between nodes, but twelve of sixteen processes are idle meanwhile.";
    let compared = [
        Compared::exact("steps between nodes", "3, 4", listed(steps.iter().copied())),
        Compared::exact("processes that send between nodes: the masters", "0, 4, 8, 12", listed(senders)),
        Compared::exact("messages between nodes in steps 1 to 6", "0, 0, 4, 4, 0, 0", by_step(&run, true)),
        Compared::exact("messages of a master to other nodes, as in recursive doubling", 2, most_far(&run)),
    ];
    Ok(figure(text, &run, compared))
}

pub(super) fn figure_6(_: Effort) -> Result<Figure> {
    let run = run("nap", "4x4")?;
    let steps = far_steps(&run);
    let only = steps.first().copied().unwrap_or(0);
    let text = "An allreduce in each node, one step between nodes in which process l of node m exchanges with process m of node l, and another allreduce in \
                each node: a process sends to other nodes log_PPN(n) times, not log2(n) times.";
    let compared = [
        Compared::exact("steps in all", 5, run.steps()),
        Compared::exact("steps between nodes", "3", listed(steps.iter().copied())),
        Compared::exact("P9 exchanges with", "P6", exchanges(&run, 9, 0)),
        Compared::exact(
            "idle in step 3: one process of each node, of local rank = node",
            "0, 5, 10, 15",
            listed(idle(&run, only)),
        ),
        Compared::exact("inter-node messages of a process, at most: 16 nodes of 16", 1, far_messages(16, 16)?),
        Compared::exact("inter-node messages of a process, at most: 4096 nodes of 16", 3, far_messages(4096, 16)?),
    ];
    Ok(figure(text, &run, compared))
}

/// The most messages to other nodes that a process sends, of those of the first nodes: nodes that are a power of PPN do alike.
fn far_messages(nodes: usize, ppn: usize) -> Result<usize> {
    let problem = Problem::new(Collective::Allreduce, Topology::regular(nodes, ppn)?);
    let nap = Choice::parse(Collective::Allreduce, "nap")?.prepare(&problem)?;
    let sent = (0..ppn * ppn).map(|rank| Counts::of(&problem, &nap.rank(rank)).far_sent.messages);
    Ok(sent.max().unwrap_or(0))
}

pub(super) fn figure_7(_: Effort) -> Result<Figure> {
    let run = run("nap", "16x4")?;
    let steps = far_steps(&run);
    let messages = |index: usize| steps.get(index).map_or(&[][..], |&step| run.messages(step));
    // A row is four nodes; a position, a place in the row.
    let row = |rank: usize| node(rank) / 4;
    let position = |rank: usize| node(rank) % 4;
    let inside = messages(0).iter().filter(|message| row(message.from) == row(message.to)).count();
    let aligned =
        |message: &&Message| row(message.from) != row(message.to) && position(message.from) == position(message.to);
    let across = messages(1).iter().filter(aligned).count();
    let text = "Sixteen nodes are four rows of four. The first inter-node step reduces over each row, so that in the second, of which the paper draws this \
                case, each row is a subgroup with equal partial results; a process exchanges with the node of the same position in another row.";
    let compared = [
        Compared::exact("inter-node steps, log4(16)", 2, steps.len()),
        Compared::exact("first inter-node step: messages inside a row", 48, inside),
        Compared::exact("second: messages to the same position of another row", 48, across),
        Compared::exact("P9 exchanges in the second inter-node step with", "P24", exchanges(&run, 9, 1)),
    ];
    Ok(figure(text, &run, compared))
}

pub(super) fn figure_8(_: Effort) -> Result<Figure> {
    let run = run("nap", "12x4")?;
    let steps = far_steps(&run);
    let [first, last] = [steps.first(), steps.last()].map(|step| step.copied().unwrap_or(0));
    let idle = idle(&run, last);
    let of_local_rank_3 = idle.iter().filter(|rank| *rank % PPN == 3).count();
    let talked: BTreeSet<usize> = run.messages(last).iter().flat_map(|m| [node(m.from) / 4, node(m.to) / 4]).collect();
    let text = "Twelve nodes are three subgroups of four. The first inter-node step is as for a power of PPN; in the second there are three subgroups only, so \
                processes with local rank 3 have nobody to talk to, and get the result from their node.";
    let compared = [
        Compared::exact("inter-node steps", 2, steps.len()),
        Compared::exact("first: messages, 3 of 4 processes of a node", 36, run.messages(first).len()),
        Compared::exact("subgroups in the second", 3, talked.len()),
        Compared::exact(
            "processes with local rank 3, idle in the second",
            "12 of 12",
            format!("{of_local_rank_3} of 12"),
        ),
    ];
    Ok(figure(text, &run, compared))
}

pub(super) fn figure_9(_: Effort) -> Result<Figure> {
    let run = run("nap", "11x4")?;
    let first = far_steps(&run).first().copied().unwrap_or(0);
    let last = |rank: usize| partners(&run, rank).pop().unwrap_or_default();
    let text = "Eleven nodes are subgroups of 4, 4 and 3 (the paper does not print how many nodes it draws; with eleven its example comes out). P14 should \
                exchange with the fourth node of the last subgroup, which is not there. A process that would be idle serves it: P34 sends to it and receives \
                nothing. (The text has that process the other way round, as the one that is sent to; its example is right.) Filling subgroups and \
                leaving the last one short does not always work, so ours are as equal as possible.";
    let compared = [
        Compared::exact("P14 receives in the last inter-node step from", "P34", process(&last(14).1)),
        Compared::exact("P34 sends to", "P14", process(&last(34).0)),
        Compared::exact("P34 receives from", "nobody", process(&last(34).1)),
        Compared::exact("messages of a process to other nodes: no more than for 16 nodes", 2, most_far(&run)),
        Compared::exact(
            "groups of the first inter-node step: of nearly equal size",
            "4, 4, 3",
            listed(groups(run.messages(first), 11)),
        ),
    ];
    Ok(figure(text, &run, compared))
}

/// The sizes of the sets of nodes that talk among themselves.
fn groups(messages: &[Message], nodes: usize) -> Vec<usize> {
    let group = |me: usize| -> BTreeSet<usize> {
        let others = messages.iter().filter(|message| node(message.from) == me).map(|message| node(message.to));
        others.chain([me]).collect()
    };
    let groups: BTreeSet<BTreeSet<usize>> = (0..nodes).map(group).collect();
    groups.into_iter().map(|group| group.len()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::figure::Verdict;
    use super::*;

    #[test]
    fn every_number_that_the_paper_prints_of_a_schedule_is_ours() {
        for make in [figure_3, figure_4, figure_6, figure_7, figure_8, figure_9] {
            let figure = make(Effort::Quick).unwrap();
            assert_eq!(figure.verdict, Verdict::Matches, "{}", figure.text);
        }
    }

    #[test]
    fn another_algorithm_would_not_match() {
        let run = run("recursive-doubling", "4x4").unwrap();
        assert_eq!((exchanges(&run, 9, 0).as_str(), far_steps(&run).len(), most_far(&run)), ("P13", 2, 2));
        assert!(idle(&run, 3).is_empty());
    }
}
