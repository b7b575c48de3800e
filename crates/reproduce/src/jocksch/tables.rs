//! Tables 1 and 2.

use allhands_model::Machine;
use allhands_schedule::{Collective, Counts, Topology};

use super::super::drawn::Run;
use super::super::figure::{Compared, Effort, Figure, Picture, Table};
use super::super::numbers::{listed, rounded, size};
use super::super::timed::{machine, times};
use super::ports::{fastest, phases};
use crate::error::Result;
use allhands_plot::{Axis, Chart, Curve, Unit};

pub(super) const NODES: usize = 160;
pub(super) const TASKS: usize = 12;
pub(super) const PORTS: usize = 12;

pub(super) fn table_1(_: Effort) -> Result<Figure> {
    let printed = [
        ("39(1,1,1,1,1,1)", 6, "8"),
        ("3(1,1)13(1,1,1,1)", 6, "7"),
        ("13(-1,-1,-1,-1)3(-1,-1)3(1,1)13(1,1,1,1)", 12, "76/39"),
        ("39(-1,-1,-1,-1,-1,-1)39(1,1,1,1,1,1)", 12, "76/39"),
    ];
    let mut table = Table::new("", &["factors (ports)", "steps", "size"]);
    let mut compared = Vec::new();
    for (phases, steps, size) in printed {
        let run = Run::new(Collective::Allreduce, &format!("cyclic-shift:{phases}"), "39")?;
        let counts = Counts::maxima(&run.ensemble);
        let (sent, blocks) = (counts.sent.blocks, run.ensemble.blocks);
        let ours = if sent % blocks == 0 { (sent / blocks).to_string() } else { format!("{sent}/{blocks}") };
        table.row([&phases, &counts.rounds, &ours]);
        compared.push(Compared::exact(&format!("{phases}: steps"), steps, counts.rounds));
        compared.push(Compared::exact(&format!("{phases}: size"), size, ours));
    }
    let text = "Steps, and how many times the vector a node sends, on 39 nodes with one port: counted in schedules that are generated from the table's own notation and \
                verified. 76/39 is 2 (p - 1) / p, the least that any allreduce by reduce_scatter and allgather can send.";
    Ok(Figure::new(text).table(table).compare(compared).judged(""))
}

/// Bytes, phases and microseconds of Table 2.
pub(super) const TABLE_2: [(u64, &str, f64); 12] = [
    (8, "160(12,12)", 82.11),
    (8192, "160(12,12)", 272.8),
    (16384, "160(-12,-12)160(12,12)", 299.7),
    (131072, "160(-12,-12)160(12,12)", 631.4),
    (262144, "16(-3,-3)10(9)16(3,3)", 862.7),
    (524288, "160(-2,-4,-10)160(10,4,2)", 1217.0),
    (1048576, "160(-2,-5,-8)160(8,5,2)", 1857.0),
    (2097152, "160(-1,-2,-2,-8)160(8,2,2,1)", 3149.0),
    (4194304, "160(-1,-1,-1,-2,-6)160(6,2,1,1,1)", 5677.0),
    (8388608, "160(-1,-1,-1,-1,-1,-4)160(4,1,1,1,1,1)", 11660.0),
    (16777216, "160(-1,-1,-1,-1,-1,-5)160(5,1,1,1,1,1)", 19970.0),
    (33554432, "160(-1,-1,-1,-1,-1,-1,-2)160(2,1,1,1,1,1,1)", 41850.0),
];

/// An allreduce in which one rank a node communicates, and the others reach it through memory.
pub(super) fn algorithm(phases: &str) -> String {
    format!("cyclic-shift:phases={phases}:local=shared")
}

/// What is chosen from, in the paper's notation: all sequences of ports, and whatever else the table has.
pub(super) fn candidates(effort: Effort) -> Vec<String> {
    let mut all: Vec<String> = TABLE_2.iter().map(|(_, phases, _)| phases.to_string()).collect();
    if effort == Effort::Full {
        all.extend(phases(NODES, PORTS));
    }
    all.sort();
    all.dedup();
    all
}

/// A row of the table, made again.
struct Row {
    bytes: u64,
    printed: (&'static str, f64),
    /// Microseconds of the table's own choice here.
    same: f64,
    /// The best choice here, and its microseconds.
    best: (String, f64),
}

fn rows(aries: &Machine, effort: Effort) -> Result<Vec<Row>> {
    let topology = Topology::regular(NODES, TASKS)?;
    let kept: Vec<_> = TABLE_2.iter().step_by(effort.either(5, 1)).collect();
    let sizes: Vec<u64> = kept.iter().map(|(bytes, _, _)| *bytes).collect();
    let names = candidates(effort);
    let algorithms: Vec<String> = names.iter().map(|phases| algorithm(phases)).collect();
    let best = fastest(aries, Collective::Allreduce, &topology, &algorithms, &sizes)?;
    let row = |(&&(bytes, phases, us), (index, time)): (&&(u64, &'static str, f64), (usize, f64))| {
        let same = times(aries, Collective::Allreduce, &topology, &algorithm(phases), &[bytes])?[0];
        Ok(Row { bytes, printed: (phases, us), same, best: (names[index].clone(), time) })
    };
    kept.iter().zip(best).map(row).collect()
}

const FITTED: &str = "The machine aries is fitted to this very table, eleven numbers to twelve rows, so that times are near proves nothing; what was not fitted is which choice is \
                      the best in a row.";

pub(super) fn table_2(effort: Effort) -> Result<Figure> {
    let rows = rows(&machine("aries")?, effort)?;
    let head = ["bytes", "factors (ports) in the paper", "us in the paper", "us here", "best here", "us of the best"];
    let mut table = Table::new("", &head);
    for Row { bytes, printed, same, best } in &rows {
        table.row([bytes, &printed.0, &printed.1, &rounded(*same), &best.0, &rounded(best.1)]);
    }
    let line = |of: fn(&Row) -> f64| rows.iter().map(|row| (row.bytes as f64, of(row))).collect();
    let svg = Chart {
        title: "Table 2: allreduce on 160 nodes of 12 tasks".into(),
        subtitle: "the paper's times, ours with the paper's ports, and ours with the best ports found here (aries)"
            .into(),
        x: Axis::logarithmic("bytes", Unit::Bytes, 2),
        y: Axis::logarithmic("", Unit::Microseconds, 10),
        lines: vec![
            Curve::new("the paper", line(|row| row.printed.1)),
            Curve::new("here, its ports", line(|row| row.same)).dashed(),
            Curve::new("here, best ports", line(|row| row.best.1)),
        ],
    }
    .svg();
    let text = format!(
        "Times of the table's own ports on the machine aries, beside those printed, and the best of {} choices here: every ascending sequence of up to twelve ports that \
         reaches 160 nodes, with and without a reduce_scatter before, and what else the table has. One rank a node communicates; the others reach it through shared memory.",
        candidates(effort).len()
    );
    Ok(Figure::new(&text).picture(Picture::new("", svg)).table(table).compare(compared(&rows)).judged(FITTED))
}

/// The ports of every step of reduce_scatter, if there are any.
fn scatters(phases: &str) -> usize {
    phases.matches('-').count()
}

fn compared(rows: &[Row]) -> Vec<Compared> {
    let mut compared: Vec<Compared> = rows
        .iter()
        .map(|row| {
            let what = format!("{} by {}", size(row.bytes), row.printed.0);
            Compared::measured(&what, row.printed.1, row.same, " us", 0.15)
        })
        .collect();
    let [short, long]: [Vec<&Row>; 2] =
        [rows.iter().filter(|row| row.bytes <= 8).collect(), rows.iter().filter(|row| row.bytes >= 16384).collect()];
    let bests = |rows: &[&Row]| rows.iter().map(|row| row.best.0.clone()).collect::<Vec<_>>().join("; ");
    compared.push(Compared::shape(
        "8 bytes: all ports in two steps, no reduce_scatter",
        "160(12,12)",
        bests(&short),
        short.iter().all(|row| row.best.0 == row.printed.0),
    ));
    let scattered = long.iter().filter(|row| scatters(&row.best.0) > 0).count();
    compared.push(Compared::shape(
        "from 16 KiB on a reduce_scatter comes first: rows",
        "all",
        format!("{scattered} of {}", long.len()),
        scattered == long.len(),
    ));
    let steps: Vec<usize> = long.iter().map(|row| scatters(&row.best.0)).collect();
    compared.push(Compared::shape(
        "and the longer the vector, the more steps with fewer ports: steps of reduce_scatter",
        "more",
        listed(&steps),
        steps.is_sorted() && steps.first() < steps.last(),
    ).because("at 16 KiB other ports are a little faster here; where messages change their protocol is assumed in the machine file."));
    let same = rows.iter().filter(|row| row.best.1 >= row.same * 0.999_999).count();
    let worst = rows.iter().map(|row| row.same / row.best.1).fold(1.0, f64::max);
    compared.push(
        Compared::shape(
            "the table's own choice is the best of those tried: rows",
            rows.len(),
            format!("{same}, elsewhere up to {} times as long as the best", rounded(worst)),
            same == rows.len(),
        )
        .because("the paper chose by its own measurements of messages on that network, which it does not print, and not by the times of whole runs."),
    );
    compared
}

#[cfg(test)]
mod tests {
    use super::super::super::figure::Verdict;
    use super::*;

    #[test]
    fn table_1_is_the_papers() {
        assert_eq!(table_1(Effort::Quick).unwrap().verdict, Verdict::Matches);
    }

    #[test]
    fn every_row_of_table_2_can_be_served_and_reaches_all_nodes() {
        let topology = Topology::regular(NODES, TASKS).unwrap();
        let aries = machine("aries").unwrap();
        for (bytes, phases, printed) in TABLE_2 {
            let time = times(&aries, Collective::Allreduce, &topology, &algorithm(phases), &[bytes]).unwrap()[0];
            assert!((0.5..2.0).contains(&(time / printed)), "{phases}: {time} {printed}");
        }
        // 33 sequences in two forms, one row with groups, and one with a port more than it needs.
        assert_eq!(candidates(Effort::Full).len(), 68);
    }
}
