//! The report as text: the bottom line first, nothing wider than 80 columns that can be broken.

use crate::bottom::uncompared;
use crate::compared::{Compared, Side};
use crate::learning::{LEARNED, Lesson};
use crate::sites::{ABOUT_SITES, SITES, SiteRow};
use crate::units::{time, times, up_to};
use crate::waits::Wait;
use crate::whole::{Communicator, Row, Served, Whole};

const HEADINGS: [&str; 6] = ["collective", "bytes", "calls", "time", "a call", "served by"];
const COMPARED: [&str; 6] = ["collective", "bytes", "calls", "ours", "the MPI's", "ours is"];

const WIDTH: usize = 80;

pub(crate) fn text(whole: &Whole) -> String {
    let ranks = crate::units::counted(whole.ranks, "rank");
    let mut text = format!("allhands: collectives of {ranks} on {}\n", whole.mpi);
    text += &wrapped(&whole.bottom_line, 0);
    for note in whole.notes() {
        text += &wrapped(&note, 2);
    }
    text += &wrapped(&spent(whole), 0);
    for wait in whole.waits.iter().filter(|wait| wait.matters(whole)) {
        text += &wrapped(&waiting(whole, wait), 2);
    }
    if let Some(machine) = &whole.machine {
        text += &wrapped(&format!("the machine: {machine}"), 2);
    }
    text += &calls(whole);
    text += &called_from(whole);
    text += &comparison(whole);
    if let Some(learned) = &whole.learned {
        text += "\n";
        text += &wrapped(&learned.summary(), 0);
        text += &aligned(LEARNED, learned.rows.iter().map(Lesson::cells), 1..4);
    }
    text
}

/// Where a rank's time went.
pub(crate) fn spent(whole: &Whole) -> String {
    let ((ours, mpi), (served, calls)) = (whole.time(), whole.calls());
    let elsewhere = (whole.seconds - ours - mpi - whole.requests_seconds).max(0.0);
    format!(
        "a rank spent {} of {} in collectives on average, {} of it in ours, {} in point-to-point and requests, {} elsewhere; {served} of {calls} calls were ours",
        time(ours + mpi),
        time(whole.seconds),
        time(ours),
        time(whole.requests_seconds),
        time(elsewhere),
    )
}

/// Who waits for whom.
pub(crate) fn waiting(whole: &Whole, wait: &Wait) -> String {
    format!(
        "{}: rank {} comes last to what waits for all, rank {} first ({} and {} in {} calls each)",
        whole.name(wait.on),
        wait.last_rank,
        wait.first_rank,
        time(wait.last_seconds),
        time(wait.first_seconds),
        wait.calls,
    )
}

/// The calls, by communicator; why somebody served is a note below. Nothing where nothing was called.
fn calls(whole: &Whole) -> String {
    if whole.rows.is_empty() {
        return String::new();
    }
    let mut text = String::from("\n");
    text += &wrapped(CALLS, 0);
    if whole.rows.iter().any(Row::is_request) {
        text += &wrapped(REQUESTS, 0);
    }
    let mut notes: Vec<&str> = Vec::new();
    for on in communicators(whole) {
        let rows: Vec<[String; 6]> = whole
            .rows
            .iter()
            .filter(|row| row.key.on == on)
            .map(|row| {
                let (by, why) = by(row);
                if why.is_empty() {
                    return cells(row, by);
                }
                let note = notes.iter().position(|known| *known == why).unwrap_or(notes.len());
                if note == notes.len() {
                    notes.push(why);
                }
                cells(row, &format!("{by} [{}]", note + 1))
            })
            .collect();
        text += &format!("\n{}\n", whole.name(on));
        text += &aligned(HEADINGS, rows.into_iter(), 1..5);
    }
    text += "\n";
    for (number, note) in notes.iter().enumerate() {
        text += &wrapped(&format!("[{}] {note}", number + 1), 4);
    }
    if notes.iter().any(|note| is_estimate(note)) {
        text += &wrapped(ESTIMATES, 0);
    }
    text
}

/// Where the program's calls come from; nothing where that is not known.
fn called_from(whole: &Whole) -> String {
    let (shown, more) = whole.shown_sites();
    if shown.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{}", wrapped(ABOUT_SITES, 0));
    text += &aligned(SITES, shown.iter().map(SiteRow::cells), 1..3);
    if more > 0 {
        text += &format!(
            "and {} with less time, which ALLHANDS_REPORT=FILE.json has\n",
            crate::units::counted(more, "place")
        );
    }
    text
}

pub(crate) const CALLS: &str = "calls of all ranks together; time of a rank, the mean of those who called, waiting for others included; bytes of a block or a vector";
pub(crate) const REQUESTS: &str = "what begins a request (-) has no time of its own: that counts with point-to-point";

/// What has to be known of estimates that stand beside times.
pub(crate) const ESTIMATES: &str = "a model's time is that of a call to which all ranks come at once, each on a core of its own; times above include waiting for those who come late";

/// Whether a reason has a model's time in it.
pub(crate) fn is_estimate(why: &str) -> bool {
    why.starts_with("the model of ")
}

/// Who served, and why.
pub(crate) fn by(row: &Row) -> (&str, &str) {
    match row.served() {
        Served::Ours(algorithm, why) => (algorithm, why),
        Served::Theirs(why) => ("the MPI", why),
    }
}

/// Those with calls, in the order in which they were met.
fn communicators(whole: &Whole) -> Vec<Communicator> {
    let called = |on: &&Communicator| whole.rows.iter().any(|row| row.key.on == **on);
    let mut all: Vec<Communicator> = whole.communicators.iter().filter(called).copied().collect();
    for row in &whole.rows {
        if !all.contains(&row.key.on) {
            all.push(row.key.on);
        }
    }
    all
}

fn cells(row: &Row, by: &str) -> [String; 6] {
    let (whole, each) = match row.is_request() {
        true => ("-".into(), "-".into()),
        false => (time(row.seconds), time(row.seconds / row.each().max(1.0))),
    };
    let key = &row.key;
    [key.collective.clone(), up_to(key.up_to_bytes), row.calls.to_string(), whole, each, by.into()]
}

/// What took turns, and what did not; nothing where nothing did.
fn comparison(whole: &Whole) -> String {
    if whole.compared.is_empty() {
        return String::new();
    }
    let mut text = String::from("\n");
    text += &wrapped(
        "compared by turns: the median of a rank's calls, nine of ten below (the mean of all ranks), and what ours is worth by the sums",
        0,
    );
    for on in communicators(whole) {
        let rows: Vec<[String; 6]> = whole.compared.iter().filter(|one| one.on == on).map(sides).collect();
        if !rows.is_empty() {
            text += &format!("\n{}\n", whole.name(on));
            text += &aligned(COMPARED, rows.into_iter(), 1..5);
        }
    }
    if whole.compared.iter().any(Compared::is_odd) {
        text += &wrapped("* the medians say something else: some calls took much longer than most", 2);
    }
    for sentence in uncompared(whole) {
        text += &wrapped(&format!("not compared: {sentence}"), 2);
    }
    text
}

pub(crate) fn sides(one: &Compared) -> [String; 6] {
    let side = |side: &Side| times(side.seconds, side.most_seconds);
    [
        one.collective.clone(),
        up_to(one.up_to_bytes),
        format!("{}+{}", one.ours.calls, one.mpi.calls),
        side(&one.ours),
        side(&one.mpi),
        one.verdict(),
    ]
}

/// Columns; those of numbers stand to the right. What makes a line too wide goes on below its last column.
pub(crate) fn aligned<const N: usize>(
    headings: [&str; N],
    rows: impl Iterator<Item = [String; N]>,
    numbers: std::ops::Range<usize>,
) -> String {
    let lines: Vec<[String; N]> = std::iter::once(headings.map(String::from)).chain(rows).collect();
    let widths: Vec<usize> =
        (0..N).map(|column| lines.iter().map(|line| line[column].len()).max().unwrap_or(0)).collect();
    let before: usize = widths[..N - 1].iter().map(|width| width + 2).sum();
    let line = |cells: &[String; N]| {
        let cell = |(column, cell): (usize, &String)| {
            let width = widths[column];
            if numbers.contains(&column) { format!("{cell:>width$}  ") } else { format!("{cell:width$}  ") }
        };
        let first: String = cells[..N - 1].iter().enumerate().map(cell).collect();
        let last = broken(&cells[N - 1], WIDTH.saturating_sub(before).max(12));
        let next = format!("\n{}", " ".repeat(before));
        format!("{first}{}", last.join(&next)).trim_end().to_owned() + "\n"
    };
    lines.iter().map(line).collect()
}

/// A sentence on lines of 80 columns, of which all but the first stand a little to the right.
pub(crate) fn wrapped(text: &str, indent: usize) -> String {
    let next = format!("\n{}", " ".repeat(indent));
    broken(text, WIDTH - indent).join(&next) + "\n"
}

/// Text in lines of at most so many letters, broken at blanks.
fn broken(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.len() - 1;
        let line = &mut lines[last];
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.into());
        }
    }
    lines
}
