//! Figures 1, 2, 4, 5 and 6: schedules.

use std::collections::{BTreeMap, BTreeSet};

use allhands_schedule::draw::Message;
use allhands_schedule::{Collective, Counts, Traffic};

use super::super::drawn::Run;
use super::super::figure::{Compared, Effort, Figure, Table};
use super::super::numbers::listed;
use crate::error::Result;

/// Example 2.1: 16 processes in regions of 4.
fn example(algorithm: &str) -> Result<Run> {
    Run::new(Collective::Allgather, algorithm, "4x4")
}

/// What the busiest process sends to other regions.
fn far(run: &Run) -> Traffic {
    Counts::maxima(&run.ensemble).far_sent
}

/// Far messages that a region sends in a step.
fn far_from(run: &Run, step: usize, region: usize) -> Vec<Message> {
    let topology = &run.ensemble.problem.topology;
    let from = |message: &&Message| message.far && topology.region_of(1, message.from) == region;
    run.messages(step).iter().filter(from).copied().collect()
}

/// `region 3`, or several.
fn regions(run: &Run, messages: &[Message]) -> String {
    let topology = &run.ensemble.problem.topology;
    let regions: BTreeSet<usize> = messages.iter().map(|message| topology.region_of(1, message.to)).collect();
    listed(regions)
}

pub(super) fn figure_1(_: Effort) -> Result<Figure> {
    let run = example("bruck")?;
    let mut table = Table::new("", &["step", "non-local messages of region 0", "to regions"]);
    for step in 1..=run.steps() {
        let messages = far_from(&run, step, 0);
        table.row([&step, &messages.len(), &regions(&run, &messages)]);
    }
    let senders = |step| far_from(&run, step, 0).len();
    let target = |step| regions(&run, &far_from(&run, step, 0));
    let traffic = far(&run);
    let compared = [
        Compared::exact("steps, log2(16)", 4, run.steps()),
        Compared::exact("non-local messages of the busiest process", 4, traffic.messages),
        Compared::exact("values in them", 15, traffic.blocks),
        Compared::exact(
            "regions to which region 0 sends in steps 1, 2 and 3",
            "3, 3, 3",
            [1, 2, 3].map(target).join(", "),
        ),
        Compared::exact(
            "processes of region 0 that send to another region in steps 3 and 4",
            "4, 4",
            listed([senders(3), senders(4)]),
        ),
        Compared::exact("the region to which they send in step 4", "2", target(4)),
    ];
    Ok(Figure::new(
        "Example 2.1: 16 processes in four regions. Step after step each process sends all it has to the process 1, 2, 4 and 8 places \
         before it, wherever that one sits. Non-local messages are red.",
    )
    .picture(run.schedule(""))
    .table(table)
    .compare(compared)
    .judged(""))
}

pub(super) fn figure_2(_: Effort) -> Result<Figure> {
    let run = example("bruck")?;
    let mut messages: BTreeMap<usize, usize> = BTreeMap::new();
    for message in far_from(&run, 3, 0) {
        run.blocks(&message).into_iter().for_each(|value| *messages.entry(value).or_default() += 1);
    }
    let by_all = messages.iter().filter(|(_, count)| **count == 4).map(|(value, _)| *value);
    let by_several = messages.iter().filter(|(_, count)| (2..4).contains(*count)).map(|(value, _)| *value);
    let held = |step: usize| -> BTreeSet<usize> { (0..16).map(|rank| run.held(rank, step)).collect() };
    let compared = [
        Compared::exact(
            "values on every process after steps 0 to 4",
            "1; 2; 4; 8; 16",
            [0, 1, 2, 3, 4].map(|step| listed(held(step))).join("; "),
        ),
        Compared::exact("values that all of region 0 send to region 3 in step 3", "3", listed(by_all)),
        Compared::exact("values that some of them send more than once", "1, 2, 4, 5", listed(by_several)),
    ];
    let mut table = Table::new("", &["value", "messages of region 0 that carry it in step 3"]);
    messages.iter().for_each(|(value, count)| table.row([value, count]));
    Ok(Figure::new(
        "The same run: a column for each process, a row for each value, coloured by the step in which it came. The paper writes values in the order \
         of arrival and rotates them at the end; ours arrive in place. Values travel to the same region again and again.",
    )
    .picture(run.buffers(""))
    .table(table)
    .compare(compared)
    .judged(""))
}

pub(super) fn figure_4(_: Effort) -> Result<Figure> {
    let run = example("loc-bruck")?;
    let far_steps: Vec<usize> =
        (1..=run.steps()).filter(|step| run.messages(*step).iter().any(|message| message.far)).collect();
    let mut table = Table::new("", &["process", "sends to", "receives from"]);
    let crossing: Vec<Message> =
        (1..=run.steps()).flat_map(|step| run.messages(step)).filter(|message| message.far).copied().collect();
    for rank in 0..16 {
        let to = crossing.iter().filter(|message| message.from == rank).map(|message| message.to);
        let from = crossing.iter().filter(|message| message.to == rank).map(|message| message.from);
        table.row([&rank, &listed(to), &listed(from)]);
    }
    let idle = (0..16).filter(|rank| crossing.iter().all(|message| message.from != *rank));
    let mut pairs: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    crossing.iter().for_each(|message| *pairs.entry((message.from / 4, message.to / 4)).or_default() += 1);
    let compared = [
        Compared::exact("steps with non-local messages", "3", listed(far_steps)),
        Compared::exact("non-local messages of a process, at most", 1, far(&run).messages),
        Compared::exact("the same in Bruck", 4, far(&example("bruck")?).messages),
        Compared::exact("processes without a non-local message: the first of each region", "0, 4, 8, 12", listed(idle)),
        Compared::exact(
            "of 12 ordered pairs of regions, those with one message",
            12,
            pairs.values().filter(|messages| **messages == 1).count(),
        ),
    ];
    Ok(Figure::new(
        "Two local steps gather each region's values, then process l of each region fetches those of the region l places on, and two local steps \
         share them. Only step 3 leaves the regions.",
    )
    .picture(run.schedule(""))
    .table(table)
    .compare(compared)
    .judged(""))
}

pub(super) fn figure_5(_: Effort) -> Result<Figure> {
    let run = example("loc-bruck")?;
    let held = |step: usize| listed((0..4).map(|rank| run.held(rank, step)));
    let (loc, bruck) = (far(&run), far(&example("bruck")?));
    let compared = [
        Compared::exact("values on the processes of region 0 at the start", "1, 1, 1, 1", held(0)),
        Compared::exact("after the local Bruck", "4, 4, 4, 4", held(2)),
        Compared::exact("after the non-local step", "4, 8, 8, 8", held(3)),
        Compared::exact("at the end", "16, 16, 16, 16", held(run.steps())),
        Compared::exact("values that a process sends to other regions, at most", 4, loc.blocks),
        Compared::exact("the same in Bruck", 15, bruck.blocks),
    ];
    Ok(Figure::new(
        "The same run: what each process holds, coloured by the step in which it came. Each value enters a region once.",
    )
    .picture(run.buffers(""))
    .compare(compared)
    .judged(""))
}

pub(super) fn figure_6(_: Effort) -> Result<Figure> {
    let run = Run::new(Collective::Allgather, "loc-bruck", "16x4")?;
    let far_steps: Vec<usize> =
        (1..=run.steps()).filter(|step| run.messages(*step).iter().any(|message| message.far)).collect();
    let second = far_steps.get(1).copied().unwrap_or(0);
    let mut table = Table::new("", &["process", "receives from", "values of regions"]);
    let mut compared = vec![Compared::exact("the step in which it happens", 6, second)];
    let printed = [(5, "P21: 5, 6, 7, 8"), (6, "P38: 9, 10, 11, 12"), (7, "P55: 13, 14, 15, 0")];
    for message in run.messages(second).iter().filter(|message| message.far) {
        let mut regions: Vec<usize> = run.blocks(message).into_iter().map(|value| value / 4).collect();
        regions.dedup();
        let regions = listed(regions);
        table.row([&message.to, &message.from, &regions]);
        if let Some((to, paper)) = printed.iter().find(|(to, _)| *to == message.to) {
            let what = format!("P{to} receives from, values of regions");
            compared.push(Compared::exact(&what, paper, format!("P{}: {regions}", message.from)));
        }
    }
    compared.push(Compared::exact("non-local steps, log4(16)", 2, far_steps.len()));
    compared.push(Compared::exact("non-local messages of a process, at most", 2, far(&run).messages));
    Ok(Figure::new(
        "With 64 processes in 16 regions of 4 there is a second non-local step: each process now fetches what a group of four regions has gathered, from \
         4, 8 or 12 regions on.",
    )
    .picture(run.schedule(""))
    .table(table)
    .compare(compared)
    .judged(""))
}
