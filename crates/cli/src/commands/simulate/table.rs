//! Simulated times for people, in 80 columns.

use allhands_model::Machine;
use allhands_schedule::draw::Sizes;

use super::SimulatedTime;
use crate::screen;

/// A longer name has a line of its own.
const ROOM: usize = 31;

/// Lines in the order of sizes; who is not among them; and whose numbers these are.
pub(super) fn text(lines: &[SimulatedTime], left_out: &[String], machine: &Machine) -> String {
    let Some(first) = lines.first() else { return String::new() };
    let SimulatedTime { collective, topology, ranks, .. } = first;
    let mut text = screen::wrapped(&format!(
        "{collective} on {}, {topology} ({ranks} ranks): simulated microseconds, fastest first",
        machine.name
    ));
    let header = row(["size", "algorithm", "time", "x best", "bound", "steps", "far"].map(String::from));
    text += &format!("\n\n{header}\n{}\n", "─".repeat(header.chars().count()));
    let mut above = None;
    for line in lines {
        let mut size = if above == Some(line.bytes) { String::new() } else { Sizes::words(line.bytes) };
        above = Some(line.bytes);
        let mut name = line.algorithm.clone();
        if name.chars().count() > ROOM {
            text += &format!("{size:>8}  {name}\n");
            (size, name) = (String::new(), String::new());
        }
        let about = if line.mode == "estimated" { "~" } else { "" };
        let count = |count: Option<usize>| count.map_or(String::new(), |count| count.to_string());
        let (best, bound) = (ratio(line.ratio_to_best), time(line.bound_us));
        let time = format!("{about}{}", time(line.time_us));
        text += &row([size, name, time, best, bound, count(line.steps), count(line.far_messages)]);
        text.push('\n');
    }
    text.push('\n');
    let mut notes =
        vec!["bound: what no algorithm beats there; far: messages between nodes of the busiest rank.".into()];
    if lines.iter().any(|line| line.mode == "estimated") {
        notes.push("~ is a quick estimate: it sends too many messages to be simulated in seconds.".into());
    }
    if !left_out.is_empty() {
        notes.push(format!("Left out: {}.", left_out.join(", ")));
    }
    notes.push(format!("{}: {}", machine.name, machine.description));
    for note in notes {
        text += &screen::wrapped(&note);
        text.push('\n');
    }
    text
}

fn row([size, name, time, best, bound, steps, far]: [String; 7]) -> String {
    let row = format!("{size:>8}  {name:<ROOM$} {time:>9} {best:>7} {bound:>7} {steps:>7} {far:>4}");
    row.trim_end().into()
}

/// Eight columns at most, up to a hundred seconds.
fn time(us: f64) -> String {
    match us {
        ..10_000.0 => format!("{us:.2}"),
        10_000.0..1e6 => format!("{us:.1}"),
        _ => format!("{us:.0}"),
    }
}

/// Seven columns.
fn ratio(ratio: f64) -> String {
    if ratio < 1000.0 { format!("{ratio:.2}") } else { format!("{ratio:.0}") }
}
