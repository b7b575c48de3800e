//! What was called, who served it, and why: one table over all ranks, at `MPI_Finalize`.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use allhands_mpi::Mpi;
use serde::{Deserialize, Serialize};

/// Who served a call.
pub(crate) enum By<'a> {
    /// An algorithm of ours, and why that one.
    Ours { algorithm: &'a str, why: &'a str },
    /// The MPI's own function, for this reason.
    Theirs(&'a str),
}

/// The calls of this rank.
#[derive(Default)]
pub(crate) struct Report {
    rows: Mutex<HashMap<Key, Tally>>,
}

/// Calls that are one row.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
struct Key {
    collective: String,
    /// The least power of two that is not less than the bytes; none where a call was passed on before they were known.
    up_to_bytes: Option<u64>,
    /// None: the MPI's own.
    algorithm: Option<String>,
    /// Why the MPI's own was called.
    passed: Option<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Tally {
    calls: u64,
    bytes: u64,
    seconds: f64,
    why: String,
    #[serde(default)]
    ranks: usize,
}

/// A row as it is written.
#[derive(Serialize, Deserialize)]
struct Row {
    #[serde(flatten)]
    key: Key,
    #[serde(flatten)]
    tally: Tally,
}

/// All ranks' calls.
#[derive(Serialize)]
struct Whole {
    ranks: usize,
    mpi: String,
    rows: Vec<Row>,
}

impl Report {
    pub(crate) fn note(&self, collective: &str, bytes: Option<usize>, by: &By<'_>, time: Duration) {
        let (algorithm, passed, why) = match by {
            By::Ours { algorithm, why } => (Some((*algorithm).into()), None, *why),
            By::Theirs(reason) => (None, Some((*reason).into()), ""),
        };
        let up_to_bytes = bytes.map(|bytes| if bytes == 0 { 0 } else { bytes.next_power_of_two() as u64 });
        let key = Key { collective: collective.into(), up_to_bytes, algorithm, passed };
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        let tally = rows.entry(key).or_default();
        tally.calls += 1;
        tally.bytes += bytes.unwrap_or(0) as u64;
        tally.seconds += time.as_secs_f64();
        if tally.why.is_empty() {
            tally.why = why.into();
        }
    }

    /// Brings the calls of all ranks to the first, which writes them to where the user wants them. Collective over the world.
    pub(crate) fn publish(&self, mpi: &Mpi, wanted: &str) -> allhands_mpi::Result<()> {
        let rows = std::mem::take(&mut *self.rows.lock().unwrap_or_else(PoisonError::into_inner));
        let rows: Vec<Row> = rows.into_iter().map(|(key, tally)| Row { key, tally }).collect();
        let mine = serde_json::to_string(&rows).unwrap_or_default();
        let texts = gather(mpi, mine.into_bytes())?;
        if texts.is_empty() {
            return Ok(());
        }
        let parts = texts.iter().map(|text| serde_json::from_slice(text).unwrap_or_default());
        let mpi = mpi.library_version().unwrap_or_default();
        let mpi = mpi.split([',', ';']).next().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
        write(&Whole { ranks: texts.len(), mpi, rows: merged(parts) }, wanted);
        Ok(())
    }
}

/// Every rank's bytes on the first rank; nothing on the others.
fn gather(mpi: &Mpi, mine: Vec<u8>) -> allhands_mpi::Result<Vec<Vec<u8>>> {
    let world = mpi.world();
    let (me, ranks) = (mpi.comm_rank(world)?, mpi.comm_size(world)?);
    // The program may have left receives for any message.
    let Some(own) = mpi.comm_split(world, Some(0), me as i32)? else { return Ok(Vec::new()) };
    let mut all = Vec::new();
    // SAFETY: eight bytes, and as many as they say, from each of the others in turn.
    unsafe {
        if me > 0 {
            let length = (mine.len() as u64).to_ne_bytes();
            mpi.send(length.as_ptr(), length.len(), 0, 0, own)?;
            mpi.send(mine.as_ptr(), mine.len(), 0, 0, own)?;
        } else {
            all.push(mine);
            for rank in 1..ranks as i32 {
                let mut length = [0; 8];
                mpi.recv(length.as_mut_ptr(), length.len(), rank, 0, own)?;
                let mut text = vec![0; u64::from_ne_bytes(length) as usize];
                mpi.recv(text.as_mut_ptr(), text.len(), rank, 0, own)?;
                all.push(text);
            }
        }
    }
    mpi.comm_free(own)?;
    Ok(all)
}

/// The rows of all ranks: calls and bytes of all of them together, the time of the rank that took longest.
fn merged(parts: impl Iterator<Item = Vec<Row>>) -> Vec<Row> {
    let mut all: HashMap<Key, Tally> = HashMap::new();
    for Row { key, tally } in parts.flatten() {
        let sum = all.entry(key).or_default();
        sum.calls += tally.calls;
        sum.bytes += tally.bytes;
        sum.seconds = sum.seconds.max(tally.seconds);
        sum.ranks += 1;
        if sum.why.is_empty() {
            sum.why = tally.why;
        }
    }
    let mut rows: Vec<Row> = all.into_iter().map(|(key, tally)| Row { key, tally }).collect();
    rows.sort_by(|one, other| one.key.cmp(&other.key));
    rows
}

/// To the standard error, or into a file.
fn write(whole: &Whole, wanted: &str) {
    if wanted == "1" {
        eprint!("{}", table(whole));
        return;
    }
    let text = match wanted.ends_with(".json") {
        true => serde_json::to_string_pretty(whole).unwrap_or_default() + "\n",
        false => table(whole),
    };
    if let Err(error) = std::fs::write(wanted, text) {
        eprintln!("allhands: the report cannot be written to {wanted}: {error}; name another file in ALLHANDS_REPORT");
    }
}

const HEADINGS: [&str; 8] = ["collective", "bytes", "ranks", "calls", "data", "time", "served by", "why"];

fn table(whole: &Whole) -> String {
    let mut lines = vec![HEADINGS.map(String::from)];
    lines.extend(whole.rows.iter().map(cells));
    let width = |column: usize| lines.iter().map(|line| line[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..HEADINGS.len()).map(width).collect();
    let mut text = format!("allhands: collectives of {} ranks on {}\n", whole.ranks, whole.mpi);
    text += "calls and data of all ranks together, time of the rank that took longest; bytes of a block or a vector\n";
    for line in &lines {
        let mut row = String::new();
        for (column, cell) in line.iter().enumerate() {
            let width = widths[column];
            // Numbers stand to the right.
            let _ =
                if (1..6).contains(&column) { write!(row, "{cell:>width$}  ") } else { write!(row, "{cell:width$}  ") };
        }
        text += row.trim_end();
        text.push('\n');
    }
    text
}

fn cells(Row { key, tally }: &Row) -> [String; 8] {
    let (by, why) = match (&key.algorithm, &key.passed) {
        (Some(algorithm), _) => (algorithm.as_str(), tally.why.as_str()),
        (None, reason) => ("the MPI", reason.as_deref().unwrap_or_default()),
    };
    [
        key.collective.clone(),
        key.up_to_bytes
            .map_or("?".into(), |bytes| if bytes <= 1 { size(bytes) } else { format!("<= {}", size(bytes)) }),
        tally.ranks.to_string(),
        tally.calls.to_string(),
        size(tally.bytes),
        format!("{:.1} ms", tally.seconds * 1e3),
        by.into(),
        why.into(),
    ]
}

/// `512 B`, `4 KiB`, `1.5 MiB`
fn size(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let unit = (1..units.len()).rev().find(|unit| bytes >= 1 << (10 * unit)).unwrap_or(0);
    let scaled = bytes as f64 / (1u64 << (10 * unit)) as f64;
    if scaled.fract() == 0.0 { format!("{scaled} {}", units[unit]) } else { format!("{scaled:.1} {}", units[unit]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank(milliseconds: u64) -> Vec<Row> {
        let report = Report::default();
        let ours = By::Ours { algorithm: "ring", why: "the caller's wish" };
        for bytes in [4000, 4096] {
            report.note("allreduce", Some(bytes), &ours, Duration::from_millis(milliseconds));
        }
        report.note("bcast", None, &By::Theirs("an intercommunicator"), Duration::from_millis(1));
        let rows = std::mem::take(&mut *report.rows.lock().unwrap());
        rows.into_iter().map(|(key, tally)| Row { key, tally }).collect()
    }

    #[test]
    fn the_table_adds_up_all_ranks() {
        let rows = merged([rank(1), rank(3)].into_iter());
        let table = table(&Whole { ranks: 2, mpi: "an MPI".into(), rows });
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines[0], "allhands: collectives of 2 ranks on an MPI");
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(words(lines[3]), "allreduce <= 4 KiB 2 4 15.8 KiB 6.0 ms ring the caller's wish");
        assert_eq!(words(lines[4]), "bcast ? 2 2 0 B 1.0 ms the MPI an intercommunicator");
    }

    #[test]
    fn rows_survive_their_journey() {
        let rows = rank(1);
        let text = serde_json::to_string(&rows).unwrap();
        let back: Vec<Row> = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&back).unwrap(), text);
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!([0, 512, 4096, 1 << 20, 1536].map(size), ["0 B", "512 B", "4 KiB", "1 MiB", "1.5 KiB"]);
    }
}
