//! Figures 1, 2, 4 and 5: recursive multiplying and cyclic shift.

use std::collections::BTreeSet;

use allhands_schedule::Collective;
use allhands_schedule::draw::Message;

use super::super::drawn::Run;
use super::super::figure::{Compared, Effort, Figure};
use super::super::numbers::listed;
use crate::error::Result;

const DOUBLING: &str = "recursive-doubling";
const SHIFT: &str = "bruck";

/// Whether every message of a step has its counterpart.
fn mutual(messages: &[Message]) -> bool {
    let pairs: BTreeSet<(usize, usize)> = messages.iter().map(|message| (message.from, message.to)).collect();
    pairs.iter().all(|&(from, to)| pairs.contains(&(to, from)))
}

/// How far down messages of a step go, modulo the nodes, if all go equally far.
fn shift(messages: &[Message], nodes: usize) -> Option<usize> {
    let distances: BTreeSet<usize> =
        messages.iter().map(|message| (message.from + nodes - message.to) % nodes).collect();
    if distances.len() == 1 { distances.first().copied() } else { None }
}

pub(super) fn figure_1(_: Effort) -> Result<Figure> {
    let (doubling, cyclic) =
        (Run::new(Collective::Allgather, DOUBLING, "8")?, Run::new(Collective::Allgather, SHIFT, "8")?);
    let steps = |run: &Run| (1..=run.steps()).map(|step| run.messages(step).to_vec()).collect::<Vec<_>>();
    let both_ways = steps(&doubling).iter().filter(|messages| mutual(messages)).count();
    let shifts = steps(&cyclic)
        .iter()
        .map(|messages| shift(messages, 8).map_or("none".into(), |by| by.to_string()))
        .collect::<Vec<_>>();
    let most = steps(&cyclic).iter().chain(&steps(&doubling)).map(Vec::len).max().unwrap_or(0);
    let compared = [
        Compared::exact("steps of recursive doubling, log2(8)", 3, doubling.steps()),
        Compared::exact("steps of the cyclic shift, log2(8)", 3, cyclic.steps()),
        Compared::exact(
            "steps of recursive doubling in which pairs exchange",
            "3 of 3",
            format!("{both_ways} of {}", doubling.steps()),
        ),
        Compared::exact("how far the cyclic shift shifts in each step", "1, 2, 4", listed(shifts)),
        Compared::exact("messages of a step: r - 1 a node", 8, most),
    ];
    let text = "The two patterns that everything else in the paper is made of, radix 2, here on eight nodes: in recursive doubling nodes exchange in pairs, in the cyclic \
                shift (Bruck's algorithm) every node sends to the one so many before it.";
    Ok(Figure::new(text)
        .picture(doubling.schedule("recursive-doubling"))
        .picture(cyclic.schedule("cyclic-shift"))
        .compare(compared)
        .judged(""))
}

/// What a node's output holds after a step.
fn held(run: &Run, node: usize, step: usize) -> String {
    let written = run.picture.steps[..=step].iter().flat_map(|step| &step.written);
    let mine: BTreeSet<String> =
        written.filter(|((_, _, rank), _)| *rank == node).map(|(_, cell)| cell.to_string()).collect();
    listed(mine)
}

pub(super) fn figure_2(_: Effort) -> Result<Figure> {
    let (doubling, cyclic) =
        (Run::new(Collective::Allgather, DOUBLING, "4")?, Run::new(Collective::Allgather, SHIFT, "4")?);
    let counts = |run: &Run| listed((0..=run.steps()).map(|step| run.held(0, step)));
    let compared = [
        Compared::exact(
            "blocks on a node at first, after step 1, after step 2: recursive doubling",
            "1, 2, 4",
            counts(&doubling),
        ),
        Compared::exact("the same: cyclic shift", "1, 2, 4", counts(&cyclic)),
        Compared::exact("recursive doubling, n1 after step 1", "0, 1", held(&doubling, 1, 1)),
        Compared::exact("cyclic shift, n1 after step 1", "1, 2", held(&cyclic, 1, 1)),
        Compared::exact("cyclic shift, n3 after step 1", "0, 3", held(&cyclic, 3, 1)),
    ];
    let text = "What the four nodes hold, coloured by the step in which it came. In the paper a cyclic shift leaves every node's blocks rotated, and they are put in order \
                on the node at the end; ours are received where they belong, so nothing is left to do.";
    Ok(Figure::new(text)
        .picture(doubling.buffers("recursive-doubling"))
        .picture(cyclic.buffers("cyclic-shift"))
        .compare(compared)
        .judged(""))
}

pub(super) fn figure_4(_: Effort) -> Result<Figure> {
    let run = Run::new(Collective::Allgather, "recursive-multiplying:factors=5,3", "15")?;
    let ports = |step: usize| run.messages(step).iter().filter(|message| message.from == 0).count();
    let groups = |step: usize| {
        run.messages(step).iter().filter(|message| message.from == 0).map(|message| message.to).collect::<Vec<_>>()
    };
    let compared = [
        Compared::exact("steps", 2, run.steps()),
        Compared::exact("ports: messages that a node sends in each step", "4, 2", listed((1..=run.steps()).map(ports))),
        Compared::exact("nodes: (4 + 1)(2 + 1)", 15, run.ensemble.problem.ranks()),
        Compared::exact(
            "steps in which groups exchange among themselves",
            "2 of 2",
            format!("{} of 2", (1..=run.steps()).filter(|&step| mutual(run.messages(step))).count()),
        ),
    ];
    let text = format!(
        "A step may have as many ports as one likes, each step its own: here groups of five nodes exchange in one step, groups of three in the next. Node 0 talks to {} first, \
         then to {}.",
        listed(groups(1)),
        listed(groups(2))
    );
    Ok(Figure::new(&text).picture(run.schedule("")).compare(compared).judged(""))
}

pub(super) fn figure_5(_: Effort) -> Result<Figure> {
    let run = Run::new(Collective::ReduceScatter, "cyclic-shift", "5")?;
    let gather = Run::new(Collective::Allgather, SHIFT, "5")?;
    let sent = |run: &Run, step: usize| {
        run.messages(step).iter().find(|message| message.from == 0).map_or(0, |message| message.blocks)
    };
    let forth: Vec<usize> = (1..=gather.steps()).map(|step| sent(&gather, step)).collect();
    let back: Vec<usize> = (1..=run.steps()).map(|step| sent(&run, step)).collect();
    let other_way = (1..=run.steps()).all(|step| {
        let pair = |message: &Message| (message.from, message.to);
        let forth: BTreeSet<(usize, usize)> = gather.messages(gather.steps() + 1 - step).iter().map(pair).collect();
        run.messages(step).iter().map(pair).all(|(from, to)| forth.contains(&(to, from)))
    });
    let compared = [
        Compared::exact("steps, log2(5) rounded up", 3, run.steps()),
        Compared::exact(
            "blocks that a node sends in each step: the allgather's, backwards",
            listed(forth.iter().rev()),
            listed(&back),
        ),
        Compared::exact("messages go the other way than the allgather's", "yes", if other_way { "yes" } else { "no" }),
        Compared::exact("blocks that a node sends in all: p - 1", 4, back.iter().sum::<usize>()),
    ];
    let text = "A reduce_scatter is the allgather run backwards, with what arrives combined. This one is made so: by reversing the cyclic shift. The verifier has seen that \
                every contribution arrives at its destination once.";
    Ok(Figure::new(text).picture(run.schedule("")).compare(compared).judged(""))
}

#[cfg(test)]
mod tests {
    use super::super::super::figure::Verdict;
    use super::*;

    #[test]
    fn drawings_are_what_the_paper_says() {
        for make in [figure_1, figure_2, figure_4, figure_5] {
            let figure = make(Effort::Quick).unwrap();
            assert_eq!(figure.verdict, Verdict::Matches, "{}", figure.text);
        }
    }

    #[test]
    fn a_shift_is_no_exchange() {
        let cyclic = Run::new(Collective::Allgather, SHIFT, "8").unwrap();
        let doubling = Run::new(Collective::Allgather, DOUBLING, "8").unwrap();
        assert!(!mutual(cyclic.messages(1)) && mutual(cyclic.messages(3)), "half way round is both");
        assert_eq!((shift(doubling.messages(1), 8), shift(cyclic.messages(2), 8)), (None, Some(2)));
    }
}
