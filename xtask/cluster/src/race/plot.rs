//! The plot of a race.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::table::{Compared, all, compared};
use crate::Result;
use crate::job::Mpi;
use crate::settings::{Delay, Shape};

/// A drawing: for each shape and collective how much faster we are, over sizes, at the longest delay of the largest.
pub(super) fn plot(text: &str) -> Result<String> {
    let runs = all(text)?;
    let cells = compared(&runs);
    let largest = cells.keys().map(|(.., bytes)| *bytes).max();
    let delays = cells.keys().filter(|(.., bytes)| Some(*bytes) == largest).map(|(_, delay, ..)| *delay);
    let longest = delays.max().ok_or("there are no runs to draw")?;
    let panels: BTreeSet<(Shape, &str)> =
        cells.keys().map(|(shape, _, collective, _)| (*shape, collective.as_str())).collect();
    let shapes: BTreeSet<Shape> = panels.iter().map(|(shape, _)| *shape).collect();
    let collectives: BTreeSet<&str> = panels.iter().map(|(_, collective)| *collective).collect();
    let sizes: BTreeSet<usize> = cells.keys().map(|(.., bytes)| *bytes).collect();
    let (width, height, left, top) = (190.0, 130.0, 46.0, 60.0);
    let (whole_width, whole_height) =
        (left + collectives.len() as f64 * (width + 20.0), top + shapes.len() as f64 * (height + 46.0));
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {whole_width} {whole_height}\" font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    let _ = writeln!(
        svg,
        "<text x=\"{left}\" y=\"18\" font-size=\"14\">time of the MPI's own / ours over bytes, {} between nodes; above the line we are faster</text>",
        Delay { micros: longest }
    );
    let colours = [(Mpi::Openmpi, "#1b6ca8"), (Mpi::Mpich, "#d1495b"), (Mpi::Intel, "#2a9d57")];
    for (index, (mpi, colour)) in colours.iter().enumerate() {
        let x = left + index as f64 * 110.0;
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"28\" width=\"10\" height=\"10\" fill=\"{colour}\"/><text x=\"{}\" y=\"37\">{}</text>",
            x + 14.0,
            mpi.title()
        );
    }
    let height_of = |ratio: f64| height * (1.0 - (ratio.clamp(LEAST, MOST) / LEAST).log2() / (MOST / LEAST).log2());
    for (row, shape) in shapes.iter().enumerate() {
        for (column, collective) in collectives.iter().enumerate() {
            let (x, y) = (left + column as f64 * (width + 20.0), top + row as f64 * (height + 46.0));
            let _ = writeln!(
                svg,
                "<g transform=\"translate({x} {y})\"><text x=\"0\" y=\"-4\">{collective}, {shape}</text><rect width=\"{width}\" height=\"{height}\" fill=\"none\" stroke=\"#bbb\"/>"
            );
            for ratio in [0.25, 0.5, 1.0, 2.0, 4.0, 8.0] {
                let (at, colour) = (height_of(ratio), if ratio == 1.0 { "#333" } else { "#e4e4e4" });
                let _ = writeln!(svg, "<line x1=\"0\" x2=\"{width}\" y1=\"{at}\" y2=\"{at}\" stroke=\"{colour}\"/>");
                if column == 0 {
                    let _ = writeln!(svg, "<text x=\"-6\" y=\"{}\" text-anchor=\"end\">{ratio}</text>", at + 4.0);
                }
            }
            let place = |index: usize| width * (index as f64 + 0.5) / sizes.len() as f64;
            for (index, bytes) in sizes.iter().enumerate() {
                let label = if *bytes < 1024 { bytes.to_string() } else { format!("{}K", bytes / 1024) };
                let _ = writeln!(
                    svg,
                    "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{label}</text>",
                    place(index),
                    height + 14.0
                );
            }
            for (which, (mpi, colour)) in colours.iter().enumerate() {
                for (index, bytes) in sizes.iter().enumerate() {
                    let cell = cells.get(&(*shape, longest, (*collective).into(), *bytes));
                    let Some(Compared { ratio, .. }) = cell.and_then(|by_mpi| by_mpi.get(mpi)) else { continue };
                    let x = place(index) + (which as f64 - 1.0) * 8.0;
                    let [low, high, at] = [ratio.low, ratio.high, ratio.median].map(height_of);
                    let title = format!("<title>{}, {bytes} bytes: {:.2}</title>", mpi.title(), ratio.median);
                    let _ = writeln!(
                        svg,
                        "<line x1=\"{x}\" x2=\"{x}\" y1=\"{low}\" y2=\"{high}\" stroke=\"{colour}\"/>{}",
                        mark(ratio.median, (x, at), colour, &title)
                    );
                }
            }
            svg += "</g>\n";
        }
    }
    svg += "</svg>\n";
    Ok(svg)
}

/// The range of what is drawn: from a quarter to eight times as fast.
const LEAST: f64 = 0.25;
const MOST: f64 = 8.0;

/// A dot; where it would be outside, an arrow that points there, with the number beside it.
fn mark(ratio: f64, (x, y): (f64, f64), colour: &str, title: &str) -> String {
    if (LEAST..=MOST).contains(&ratio) {
        return format!("<circle cx=\"{x}\" cy=\"{y}\" r=\"3\" fill=\"{colour}\">{title}</circle>");
    }
    let outwards = if ratio > MOST { -1.0 } else { 1.0 };
    let points = format!("{x},{} {},{} {},{}", y + outwards, x - 4.0, y - 6.0 * outwards, x + 4.0, y - 6.0 * outwards);
    format!(
        "<polygon points=\"{points}\" fill=\"{colour}\">{title}</polygon><text x=\"{}\" y=\"{}\" font-size=\"9\" text-anchor=\"end\" fill=\"{colour}\">{ratio:.1}</text>",
        x - 6.0,
        if ratio > MOST { y + 8.0 } else { y - 2.0 }
    )
}

#[cfg(test)]
mod tests {
    use super::super::table::tests::RACE;
    use super::*;

    #[test]
    fn a_plot_has_a_mark_for_each_cell() {
        let drawing = plot(RACE).unwrap();
        assert_eq!(drawing.matches("<circle").count(), 1);
        assert!(drawing.contains("8 bytes: 0.80"), "{drawing}");
    }

    #[test]
    fn what_is_outside_is_marked_with_its_number() {
        let far = mark(12.34, (10.0, 0.0), "red", "");
        assert!(far.contains("<polygon points=\"10,-1 ") && far.contains(">12.3</text>"), "{far}");
        assert!(mark(0.2, (10.0, 130.0), "red", "").contains("<polygon points=\"10,131 "));
        assert!([0.25, 1.0, 8.0].iter().all(|ratio| mark(*ratio, (0.0, 0.0), "red", "").starts_with("<circle")));
    }

    #[test]
    fn nothing_cannot_be_drawn() {
        assert!(plot("# nothing\n").is_err());
    }
}
