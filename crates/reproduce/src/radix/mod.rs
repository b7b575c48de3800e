//! The figures of *Parameterized Radix-r Bruck Algorithm for All-to-all Communication* (Fan and Kumar).

mod measured;

use allhands_model::formulas::radix;
use allhands_schedule::{Choice, Collective, Counts, Problem, Topology};
use rayon::prelude::*;

use super::drawn::Run;
use super::figure::{Compared, Effort, Figure, Paper, Picture, Recipe, Table};
use super::numbers::rounded;
use crate::error::Result;
use allhands_plot::{Axis, Chart, Curve, Unit};

const fn recipe(
    id: &'static str,
    number: &'static str,
    title: &'static str,
    make: fn(Effort) -> Result<Figure>,
) -> Recipe {
    Recipe { id, paper: Paper::Radix, number, title, make }
}

pub(super) const RECIPES: &[Recipe] = &[
    recipe("radix-1", "Figure 1", "Six processes with radix 2, 4 and 5", figure_1),
    recipe("radix-2a", "Figure 2a", "Steps and blocks of every radix, 4096 processes", figure_2a),
    recipe("radix-2b", "Figure 2b", "2048 processes, 512 bytes, by radix", measured::figure_2b),
    recipe("radix-3a", "Figure 3a", "512 processes, 64 bytes, by radix", |effort| measured::figure_3(512, 64, effort)),
    recipe("radix-3b", "Figure 3b", "512 processes, 1024 bytes, by radix", |effort| {
        measured::figure_3(512, 1024, effort)
    }),
    recipe("radix-3c", "Figure 3c", "4096 processes, 64 bytes, by radix", |effort| {
        measured::figure_3(4096, 64, effort)
    }),
    recipe("radix-3d", "Figure 3d", "4096 processes, 1024 bytes, by radix", |effort| {
        measured::figure_3(4096, 1024, effort)
    }),
    recipe("radix-4a", "Figure 4a", "4096 processes, radix 64, by size", measured::figure_4a),
    recipe("radix-4b", "Figure 4b", "1024 bytes, the best radix, by processes", measured::figure_4b),
];

fn figure_1(_: Effort) -> Result<Figure> {
    let mut figure = Figure::new(
        "Six processes. A block that has i places to go travels by the digits of i in the radix: small radices take few steps and send blocks again \
         and again, radix P - 1 sends nearly every block once.",
    );
    let mut table = Table::new("", &["radix", "steps", "blocks sent", "Equation 1", "Equation 2"]);
    for (radix, printed) in [(2, 3), (4, 5), (5, 5)] {
        let run = Run::new(Collective::Alltoall, &format!("bruck:radix={radix}"), "6")?;
        let counts = Counts::maxima(&run.ensemble);
        let by_formula = radix::messages(6, radix);
        table.row([&radix, &counts.rounds, &counts.sent.blocks, &radix::messages_printed(6, radix), &by_formula]);
        let what = format!("steps with radix {radix}");
        let because = "the caption counts one too many; its own Equation 2 gives 4, as the schedule has.";
        figure = figure
            .picture(run.schedule(&format!("radix-{radix}")))
            .compare([Compared::exact(&what, printed, counts.rounds).because(because)])
            .compare([Compared::exact(
                &format!("Equation 2 with radix {radix}, and the schedule"),
                by_formula,
                counts.rounds,
            )]);
    }
    Ok(figure.table(table).judged(""))
}

/// Rounds and blocks of one rank's schedule: every rank does the same.
fn counted(ranks: usize, radix: usize) -> Result<(usize, usize)> {
    let problem = Problem::new(Collective::Alltoall, Topology::flat(ranks)?);
    let prepared = Choice::parse(Collective::Alltoall, &format!("modified-bruck:radix={radix}"))?.prepare(&problem)?;
    let counts = Counts::of(&problem, &prepared.rank(ranks / 2));
    Ok((counts.rounds, counts.sent.blocks))
}

fn figure_2a(_: Effort) -> Result<Figure> {
    let ranks = 4096;
    let all: Vec<(usize, usize, usize)> = (2..ranks)
        .into_par_iter()
        .map(|radix| (radix, radix::messages(ranks, radix), radix::all_blocks(ranks, radix)))
        .collect();
    let mut table = Table::new("", &["radix", "numC", "numD"]);
    all.iter().for_each(|(radix, steps, blocks)| table.row([radix, steps, blocks]));
    let pick =
        |value: fn(&(usize, usize, usize)) -> usize| all.iter().map(|one| (one.0 as f64, value(one) as f64)).collect();
    let svg = Chart {
        title: "Steps and blocks of a process by radix, P = 4096".into(),
        subtitle: "Equations 2 and 3; dashed: spreading out, 4095 messages of one block".into(),
        x: Axis::logarithmic("radix", Unit::Plain, 2),
        y: Axis::logarithmic("", Unit::Plain, 10),
        lines: vec![
            Curve::bound(vec![(2.0, 4095.0), (4095.0, 4095.0)]),
            Curve::new("numC: steps", pick(|one| one.1)).colour(8),
            Curve::new("numD: blocks sent", pick(|one| one.2)).colour(0),
        ],
    }
    .svg();
    let root = 64;
    let (steps, blocks) = (radix::messages(ranks, root), radix::all_blocks(ranks, root));
    let (binary, linear) = (radix::all_blocks(ranks, 2), ranks - 1);
    let fallen = 100.0 * (binary - blocks) as f64 / (binary - linear) as f64;
    let mut compared: Vec<Compared> = Vec::new();
    for radix in [2, 16, 64, 100, 1000, 4095] {
        let formula = (radix::messages(ranks, radix), radix::all_blocks(ranks, radix));
        let (what, pair) = (
            format!("steps and blocks with radix {radix}: the paper's equations, and the schedule"),
            counted(ranks, radix)?,
        );
        compared.push(Compared::exact(
            &what,
            format!("{}, {}", formula.0, formula.1),
            format!("{}, {}", pair.0, pair.1),
        ));
    }
    // numC over (r - 1) is the number of digits, which is 2 from the root on.
    let straight = all
        .iter()
        .filter(|one| one.0 >= root)
        .all(|&(radix, steps, _)| steps.abs_diff(radix - 1) <= ranks.div_ceil(radix));
    compared.extend([
        Compared::stated(
            "at radix 64, the root of P, numD is about twice the linear value",
            "about 2",
            rounded(blocks as f64 / linear as f64),
            blocks.abs_diff(2 * linear) * 20 < linear,
        ),
        Compared::stated(
            "there numC is much less than the linear one",
            "much less",
            format!("{steps} of {linear}"),
            steps * 10 < linear,
        ),
        Compared::stated(
            "most of the fall of numD comes before the root",
            "dramatic",
            format!("{} % of it", rounded(fallen)),
            fallen > 75.0,
        ),
        Compared::stated(
            "numC grows nearly linearly: r - 1 and a rest of at most P / r, from the root on",
            "yes",
            if straight { "yes" } else { "no" },
            straight,
        ),
    ]);
    Ok(Figure::new(
        "How many messages a process sends and how many blocks in them, for every radix from 2 to P - 1. The divisions in the paper's formula for numD must be whole \
         numbers (P / r^(x+1) rounded down, then times r^x); so read, it is what every schedule counts.",
    )
    .picture(Picture::new("", svg))
    .table(table)
    .compare(compared)
    .judged(""))
}
