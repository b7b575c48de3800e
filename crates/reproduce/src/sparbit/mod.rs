//! The figures and tables of *Sparbit* (Loch and Koslovski 2021).

mod grid;
mod maps;
mod tables;

use allhands_schedule::Collective;

use self::grid::CASES;
use super::drawn::Run;
use super::figure::{Compared, Effort, Figure, Paper, Recipe};
use super::numbers::listed;
use crate::error::Result;

const fn recipe(
    id: &'static str,
    number: &'static str,
    title: &'static str,
    make: fn(Effort) -> Result<Figure>,
) -> Recipe {
    Recipe { id, paper: Paper::Sparbit, number, title, make }
}

pub(super) const RECIPES: &[Recipe] = &[
    recipe("sparbit-1", "Figure 1", "The best of the traditional algorithms", maps::traditional),
    recipe("sparbit-3", "Figure 3", "Buffers of 5 processes, step by step", figure_3),
    recipe("sparbit-5a", "Figure 5a", "The best algorithm on Yahoo, sequential", |effort| maps::best(CASES[0], effort)),
    recipe("sparbit-5b", "Figure 5b", "The best algorithm on Yahoo, cyclic", |effort| maps::best(CASES[1], effort)),
    recipe("sparbit-5c", "Figure 5c", "The best algorithm on Cervino, sequential", |effort| {
        maps::best(CASES[2], effort)
    }),
    recipe("sparbit-5d", "Figure 5d", "The best algorithm on Cervino, cyclic", |effort| maps::best(CASES[3], effort)),
    recipe("sparbit-table-1", "Table I", "Where Sparbit is best by minimum, average and maximum", tables::table_1),
    recipe("sparbit-table-2", "Table II", "How much Sparbit improves on the second best", tables::table_2),
];

fn figure_3(_: Effort) -> Result<Figure> {
    let run = Run::new(Collective::Allgather, "sparbit", "5")?;
    let arrives = |step: usize| -> String {
        let mut messages = run.messages(step).to_vec();
        messages.sort_by_key(|message| message.to);
        let blocks = messages.iter().map(|message| {
            let mut blocks = run.blocks(message);
            blocks.sort_unstable();
            listed(blocks).replace(", ", "+")
        });
        blocks.collect::<Vec<_>>().join(" ")
    };
    let distance = |step: usize| {
        let mut distances: Vec<usize> =
            run.messages(step).iter().map(|message| (message.to + 5 - message.from) % 5).collect();
        distances.dedup();
        listed(distances)
    };
    let compared = [
        Compared::exact("steps, the logarithm of 5 rounded up", 3, run.steps()),
        Compared::exact("distances", "4, 2, 1", [1, 2, 3].map(distance).join(", ")),
        Compared::exact(
            "blocks that each process sends",
            "1, 1, 2",
            listed([1, 2, 3].map(|step| run.messages(step)[0].blocks)),
        ),
        Compared::exact("blocks that arrive at processes 0 to 4 in step 0", "1 2 3 4 0", arrives(1)),
        Compared::exact("in step 1: the one from step 0 is not sent on", "3 4 0 1 2", arrives(2)),
        Compared::exact("in step 2: the own block and that of step 1", "2+4 0+3 1+4 0+2 1+3", arrives(3)),
    ];
    Ok(Figure::new(
        "Sparbit sends as Bruck does, but farthest first. With 5 processes the block that came over distance 4 would be received twice if it were \
         sent on, so it is left out. Our first step is the paper's step 0; blocks arrive in place.",
    )
    .picture(run.buffers(""))
    .picture(run.schedule("schedule"))
    .compare(compared)
    .judged(""))
}
