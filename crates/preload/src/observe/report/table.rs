//! The report as text.

use super::learning::{LEARNED, Lesson};
use super::units::{size, time, up_to};
use super::whole::{Compared, Gain, Row, Whole};

const HEADINGS: [&str; 8] = ["collective", "bytes", "ranks", "calls", "data", "time", "served by", "why"];
const COMPARED: [&str; 7] = ["collective", "bytes", "ranks", "calls", "ours", "the MPI's", "ours is"];

pub(super) fn text(whole: &Whole) -> String {
    let mut text = format!("allhands: collectives of {} ranks on {}\n", whole.ranks, whole.mpi);
    let ((ours, mpi), (served, calls)) = (whole.time(), whole.calls());
    text += &format!(
        "{} of {} in collectives on average, {} of it in ours; {served} of {calls} calls were ours\n",
        time(ours + mpi),
        time(whole.seconds),
        time(ours),
    );
    if let Some(machine) = &whole.machine {
        text += &format!("the machine: {machine}\n");
    }
    text += "calls and data of all ranks together, time of the rank that took longest; bytes of a block or a vector\n";
    text += &aligned(HEADINGS, whole.rows.iter().map(cells), 1..6);
    if !whole.compared.is_empty() {
        text += "\ncompared by turns: the median time of a call on a rank, the mean of all ranks\n";
        text += &aligned(COMPARED, whole.compared.iter().map(sides), 1..6);
    }
    if let Some(learned) = &whole.learned {
        text += &format!("\n{}\n", learned.summary());
        text += &aligned(LEARNED, learned.rows.iter().map(Lesson::cells), 1..4);
    }
    text
}

/// Columns; those of numbers stand to the right.
fn aligned<const N: usize>(
    headings: [&str; N],
    rows: impl Iterator<Item = [String; N]>,
    numbers: std::ops::Range<usize>,
) -> String {
    let lines: Vec<[String; N]> = std::iter::once(headings.map(String::from)).chain(rows).collect();
    let widths: Vec<usize> =
        (0..N).map(|column| lines.iter().map(|line| line[column].len()).max().unwrap_or(0)).collect();
    let line = |cells: &[String; N]| {
        let cell = |(column, cell): (usize, &String)| {
            let width = widths[column];
            if numbers.contains(&column) { format!("{cell:>width$}") } else { format!("{cell:width$}") }
        };
        cells.iter().enumerate().map(cell).collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    lines.iter().map(line).collect()
}

fn cells(row: &Row) -> [String; 8] {
    let (by, why) = row.served();
    let Row { key, tally } = row;
    [
        key.collective.clone(),
        up_to(key.up_to_bytes),
        tally.ranks.to_string(),
        tally.calls.to_string(),
        size(tally.bytes),
        format!("{:.1} ms", tally.seconds * 1e3),
        by.into(),
        why.into(),
    ]
}

fn sides(compared: &Compared) -> [String; 7] {
    [
        compared.collective.clone(),
        up_to(compared.up_to_bytes),
        compared.ranks.to_string(),
        format!("{}+{}", compared.ours.calls, compared.mpi.calls),
        time(compared.ours.seconds),
        time(compared.mpi.seconds),
        Gain::of(compared).to_string(),
    ]
}
