//! What was called, who served it, and why: one report over all ranks, at `MPI_Finalize`.

mod html;
mod samples;
mod table;

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use allhands_mpi::Mpi;
use allhands_schedule::Collective;
use samples::Samples;
use serde::{Deserialize, Serialize};

use crate::turns::class;

/// Who served a call.
pub(crate) enum By<'a> {
    /// An algorithm of ours, and why that one.
    Ours { algorithm: &'a str, why: &'a str },
    /// The MPI's own function, for this reason.
    Theirs(&'a str),
}

/// The calls of this rank.
pub(crate) struct Report {
    began: Instant,
    rows: Mutex<HashMap<Key, Tally>>,
    compared: Mutex<HashMap<Kind, [Samples; 2]>>,
}

/// Calls that are compared with each other; of an alltoallv those of all sizes.
type Kind = (Collective, Option<u64>);

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
#[derive(Clone, Serialize, Deserialize)]
struct Row {
    #[serde(flatten)]
    key: Key,
    #[serde(flatten)]
    tally: Tally,
}

/// Calls that ours and the MPI's own have served by turns.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Compared {
    collective: String,
    /// None of an alltoallv.
    up_to_bytes: Option<u64>,
    ours: Side,
    mpi: Side,
    #[serde(default)]
    ranks: usize,
}

/// One side of a comparison: its calls that count, and the median of their times on a rank; over ranks, the mean of those.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Side {
    calls: u64,
    seconds: f64,
}

/// What one rank tells the first.
#[derive(Default, Serialize, Deserialize)]
struct Part {
    machine: String,
    /// From `MPI_Init` to `MPI_Finalize`.
    seconds: f64,
    rows: Vec<Row>,
    compared: Vec<Compared>,
}

/// The time that a rank spent in a collective, by who served it: the mean over all ranks.
#[derive(Debug, PartialEq, Serialize)]
struct Share {
    collective: String,
    ours_seconds: f64,
    mpi_seconds: f64,
}

/// All ranks' calls.
#[derive(Serialize)]
struct Whole {
    ranks: usize,
    machines: usize,
    /// What `ALLHANDS_TOPOLOGY` says.
    topology: Option<String>,
    mpi: String,
    seconds: f64,
    shares: Vec<Share>,
    rows: Vec<Row>,
    compared: Vec<Compared>,
}

impl Report {
    pub(crate) fn new() -> Report {
        Report { began: Instant::now(), rows: Mutex::default(), compared: Mutex::default() }
    }

    pub(crate) fn note(&self, collective: &str, bytes: Option<usize>, by: &By<'_>, time: Duration) {
        let (algorithm, passed, why) = match by {
            By::Ours { algorithm, why } => (Some((*algorithm).into()), None, *why),
            By::Theirs(reason) => (None, Some((*reason).into()), ""),
        };
        let key = Key { collective: collective.into(), up_to_bytes: bytes.map(class), algorithm, passed };
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        let tally = rows.entry(key).or_default();
        tally.calls += 1;
        tally.bytes += bytes.unwrap_or(0) as u64;
        tally.seconds += time.as_secs_f64();
        if tally.why.is_empty() {
            tally.why = why.into();
        }
    }

    /// A call of a comparison.
    pub(crate) fn compared(&self, collective: Collective, bytes: Option<usize>, ours: bool, time: Duration) {
        let bytes = bytes.filter(|_| collective != Collective::Alltoallv);
        let mut compared = self.compared.lock().unwrap_or_else(PoisonError::into_inner);
        let sides = compared.entry((collective, bytes.map(class))).or_default();
        sides[usize::from(!ours)].add(time);
    }

    fn part(&self) -> Part {
        let rows = std::mem::take(&mut *self.rows.lock().unwrap_or_else(PoisonError::into_inner));
        let compared = std::mem::take(&mut *self.compared.lock().unwrap_or_else(PoisonError::into_inner));
        let side = |samples: &Samples| Side { calls: samples.calls(), seconds: samples.median() };
        let compared = compared.iter().filter(|(_, sides)| sides.iter().all(|side| side.calls() > 0));
        Part {
            machine: std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default(),
            seconds: self.began.elapsed().as_secs_f64(),
            rows: rows.into_iter().map(|(key, tally)| Row { key, tally }).collect(),
            compared: compared
                .map(|((collective, up_to_bytes), [ours, mpi])| Compared {
                    collective: collective.name().into(),
                    up_to_bytes: *up_to_bytes,
                    ours: side(ours),
                    mpi: side(mpi),
                    ranks: 1,
                })
                .collect(),
        }
    }

    /// Brings the calls of all ranks to the first, which writes them to where the user wants them. Collective over the world.
    pub(crate) fn publish(&self, mpi: &Mpi, wanted: &str) -> allhands_mpi::Result<()> {
        let mine = serde_json::to_string(&self.part()).unwrap_or_default();
        let texts = gather(mpi, mine.into_bytes())?;
        if texts.is_empty() {
            return Ok(());
        }
        let parts: Vec<Part> = texts.iter().map(|text| serde_json::from_slice(text).unwrap_or_default()).collect();
        let name = mpi.library_version().unwrap_or_default();
        let name = name.split([',', ';']).next().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
        let topology = std::env::var("ALLHANDS_TOPOLOGY").ok().filter(|text| !text.is_empty());
        write(&Whole::of(parts, name, topology), wanted);
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

impl Whole {
    fn of(parts: Vec<Part>, mpi: String, topology: Option<String>) -> Whole {
        let machines = parts.iter().map(|part| part.machine.as_str()).collect::<BTreeSet<_>>().len();
        Whole {
            ranks: parts.len(),
            machines,
            topology,
            mpi,
            seconds: parts.iter().map(|part| part.seconds).fold(0.0, f64::max),
            shares: shares(&parts),
            rows: merged(parts.iter().flat_map(|part| part.rows.iter().cloned())),
            compared: weighed(parts.into_iter().flat_map(|part| part.compared)),
        }
    }

    /// Seconds that a rank spent in collectives, on average: in ours, and in the MPI's.
    fn time(&self) -> (f64, f64) {
        self.shares.iter().fold((0.0, 0.0), |(ours, mpi), share| (ours + share.ours_seconds, mpi + share.mpi_seconds))
    }

    /// Calls that we served, and all.
    fn calls(&self) -> (u64, u64) {
        let served = self.rows.iter().filter(|row| row.key.algorithm.is_some());
        (served.map(|row| row.tally.calls).sum(), self.rows.iter().map(|row| row.tally.calls).sum())
    }
}

/// Where the time went, the longest first.
fn shares(parts: &[Part]) -> Vec<Share> {
    let mut times: HashMap<&str, (f64, f64)> = HashMap::new();
    for Row { key, tally } in parts.iter().flat_map(|part| &part.rows) {
        let (ours, mpi) = times.entry(&key.collective).or_default();
        *(if key.algorithm.is_some() { ours } else { mpi }) += tally.seconds / parts.len() as f64;
    }
    let mut shares: Vec<Share> = times
        .into_iter()
        .map(|(name, (ours_seconds, mpi_seconds))| Share { collective: name.into(), ours_seconds, mpi_seconds })
        .collect();
    let time = |share: &Share| share.ours_seconds + share.mpi_seconds;
    shares.sort_by(|one, other| time(other).total_cmp(&time(one)).then_with(|| one.collective.cmp(&other.collective)));
    shares
}

/// The rows of all ranks: calls and bytes of all of them together, the time of the rank that took longest.
fn merged(rows: impl Iterator<Item = Row>) -> Vec<Row> {
    let mut all: HashMap<Key, Tally> = HashMap::new();
    for Row { key, tally } in rows {
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

/// The comparisons of all ranks: the mean of their medians, each rank counting as much as the others.
fn weighed(all: impl Iterator<Item = Compared>) -> Vec<Compared> {
    let mut kinds: HashMap<(String, Option<u64>), Compared> = HashMap::new();
    for compared in all {
        let kind = (compared.collective.clone(), compared.up_to_bytes);
        kinds
            .entry(kind)
            .and_modify(|sum| {
                for (sum, side) in [(&mut sum.ours, compared.ours), (&mut sum.mpi, compared.mpi)] {
                    sum.calls += side.calls;
                    sum.seconds += side.seconds;
                }
                sum.ranks += 1;
            })
            .or_insert(compared);
    }
    let mut kinds: Vec<Compared> = kinds.into_values().collect();
    for Compared { ours, mpi, ranks, .. } in &mut kinds {
        ours.seconds /= *ranks as f64;
        mpi.seconds /= *ranks as f64;
    }
    kinds.sort_by(|one, other| (&one.collective, one.up_to_bytes).cmp(&(&other.collective, other.up_to_bytes)));
    kinds
}

/// To the standard error, or into a file.
fn write(whole: &Whole, wanted: &str) {
    if wanted == "1" {
        eprint!("{}", table::text(whole));
        return;
    }
    let path = Path::new(wanted);
    let text = match path.extension().and_then(|extension| extension.to_str()) {
        Some("json") => serde_json::to_string_pretty(whole).unwrap_or_default() + "\n",
        Some("html") => html::page(whole),
        _ => table::text(whole),
    };
    if let Err(error) = replace(path, &text) {
        eprintln!("allhands: the report cannot be written to {wanted}: {error}; name another file in ALLHANDS_REPORT");
    }
}

/// Readers see the file as it was, or all of it.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let part = Path::new(&name);
    // A terminal or a pipe cannot be replaced.
    if std::fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        return std::fs::write(path, text);
    }
    let written = std::fs::write(part, text).and_then(|()| std::fs::rename(part, path));
    if written.is_err() {
        let _ = std::fs::remove_file(part);
    }
    written
}

/// `512 B`, `4 KiB`, `1.5 MiB`
fn size(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let unit = (1..units.len()).rev().find(|unit| bytes >= 1 << (10 * unit)).unwrap_or(0);
    let scaled = bytes as f64 / (1u64 << (10 * unit)) as f64;
    if scaled.fract() == 0.0 { format!("{scaled} {}", units[unit]) } else { format!("{scaled:.1} {}", units[unit]) }
}

/// `<= 4 KiB`
fn up_to(bytes: Option<u64>) -> String {
    bytes.map_or("?".into(), |bytes| if bytes <= 1 { size(bytes) } else { format!("<= {}", size(bytes)) })
}

/// `1.5 us`, `230.0 ms`, `12.0 s`
fn time(seconds: f64) -> String {
    match seconds {
        _ if seconds >= 10.0 => format!("{seconds:.1} s"),
        _ if seconds >= 1e-3 => format!("{:.1} ms", seconds * 1e3),
        _ => format!("{:.1} us", seconds * 1e6),
    }
}

/// What ours is worth beside the MPI's own.
enum Gain {
    /// They are as fast: no more than a twentieth apart.
    None,
    Faster(f64),
    Slower(f64),
}

impl Gain {
    fn of(compared: &Compared) -> Gain {
        let (ours, mpi) = (compared.ours.seconds.max(1e-12), compared.mpi.seconds.max(1e-12));
        match mpi / ours {
            ratio if ratio > 1.05 => Gain::Faster(ratio),
            ratio if ratio < 1.0 / 1.05 => Gain::Slower(1.0 / ratio),
            _ => Gain::None,
        }
    }
}

impl std::fmt::Display for Gain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Gain::None => write!(f, "as fast"),
            Gain::Faster(times) => write!(f, "{times:.2}x faster"),
            Gain::Slower(times) => write!(f, "{times:.2}x slower"),
        }
    }
}

impl Row {
    /// Who served it, and why.
    fn served(&self) -> (&str, &str) {
        match (&self.key.algorithm, &self.key.passed) {
            (Some(algorithm), _) => (algorithm, &self.tally.why),
            (None, reason) => ("the MPI", reason.as_deref().unwrap_or_default()),
        }
    }
}

#[cfg(test)]
mod tests;
