//! The calls of all ranks, added up.

use std::collections::{BTreeSet, HashMap};

use serde::{Deserialize, Serialize};

use crate::bottom::Bottom;
use crate::compared::{Compared, Instead, weighed};
use crate::host::{self, Host, Obstacle, RankHost};
use crate::learning::Learning;
use crate::sites::{self, SiteCalls, SiteRow};
use crate::spread::Spread;
use crate::waits::{Wait, waits};

/// The form of the JSON that this version writes and reads.
pub const FORM: u64 = 1;

/// A communicator, or those that one call has made, as all their ranks know them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Communicator {
    /// What tells it from others: the same on all its ranks, and in the next job like this one.
    #[serde(rename = "communicator")]
    pub id: u64,
    /// How many ranks it has; between two groups, on one side.
    pub ranks: usize,
}

impl Communicator {
    /// That of all ranks has this number.
    pub const WORLD: u64 = 0;
    /// All communicators of one rank.
    pub const ALONE: u64 = 1;
    /// All that are between two groups of so many ranks on this side.
    pub const BETWEEN: u64 = 2;
    /// All others of a size that nothing else tells apart.
    pub const OTHERS: u64 = 3;
}

/// Calls that are one row.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Key {
    /// As programs call it, without `MPI_`: `allreduce`, `iallreduce`, `allreduce_init`, `allreduce_start`.
    pub collective: String,
    /// The least power of two that is not less than the bytes; none where a call was passed on before they were known.
    pub up_to_bytes: Option<u64>,
    /// On which communicator.
    #[serde(flatten)]
    pub on: Communicator,
    /// None: the MPI's own.
    pub algorithm: Option<String>,
    /// Why the MPI's own was called.
    pub passed: Option<String>,
}

/// The calls of one rank that are one row.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Tally {
    /// How many.
    pub calls: u64,
    /// What they moved.
    pub bytes: u64,
    /// What they took, of those that have a time.
    pub spread: Spread,
    /// Why that algorithm.
    pub why: String,
}

/// What one rank tells the first.
#[derive(Default, Serialize, Deserialize)]
pub struct Part {
    /// Where it ran, and beside whom.
    pub place: RankHost,
    /// From `MPI_Init` to `MPI_Finalize`.
    pub seconds: f64,
    /// In point-to-point and in calls that begin or complete requests.
    pub requests_seconds: f64,
    /// Communicators, as they were met.
    pub met: Vec<Communicator>,
    /// Its calls.
    pub rows: Vec<(Key, Tally)>,
    /// Those that ours and the MPI's own have served by turns.
    pub compared: Vec<Compared>,
    /// From where they came.
    pub sites: Vec<SiteCalls>,
}

/// A row as it is written: the calls of all ranks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// Which calls.
    #[serde(flatten)]
    pub key: Key,
    /// Calls of all ranks together.
    pub calls: u64,
    /// The bytes of all of them.
    pub bytes: u64,
    /// Ranks that made some.
    pub callers: usize,
    /// What they took a rank: the mean of these; 0 of requests.
    pub seconds: f64,
    /// How far the times of a rank's calls lie from their mean: the mean of these ranks.
    pub deviation_seconds: f64,
    /// Why that algorithm.
    pub why: String,
}

/// Who served a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served<'a> {
    /// An algorithm of ours, and why that one.
    Ours(&'a str, &'a str),
    /// The MPI's own function, and why.
    Theirs(&'a str),
}

impl Row {
    /// Who served it.
    pub fn served(&self) -> Served<'_> {
        match &self.key.algorithm {
            Some(algorithm) => Served::Ours(algorithm, &self.why),
            None => Served::Theirs(self.key.passed.as_deref().unwrap_or_default()),
        }
    }

    /// Whether its calls begin something that is under way when they return, and so have no time of their own.
    pub fn is_request(&self) -> bool {
        is_request(&self.key.collective)
    }

    /// Calls of a rank that makes them.
    pub(crate) fn each(&self) -> f64 {
        self.calls as f64 / self.callers.max(1) as f64
    }
}

/// Whether calls of a name begin something.
pub(crate) fn is_request(name: &str) -> bool {
    name.starts_with('i') || name.ends_with("_start")
}

/// The time that a rank spent in a collective, by who served it: the mean over all ranks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Share {
    pub(crate) collective: String,
    pub(crate) ours_seconds: f64,
    pub(crate) mpi_seconds: f64,
}

/// What is known of a job besides its ranks' calls.
#[derive(Default)]
pub struct Job {
    /// What its MPI calls itself.
    pub mpi: String,
    /// Whether ours were switched off.
    pub off: bool,
    /// What `ALLHANDS_TOPOLOGY` says.
    pub topology: Option<String>,
    /// Whether ours and the MPI's own have taken turns.
    pub compares: bool,
    /// What was found out of the machine.
    pub machine: Option<String>,
    /// What the user names and was not used, a sentence each.
    pub unused: Vec<String>,
    /// What was learned on communicators that the first rank is in.
    pub learned: Option<Learning>,
}

/// All ranks' calls.
#[derive(Serialize, Deserialize)]
pub struct Whole {
    /// See [`FORM`].
    pub(crate) allhands_report: u64,
    /// What it all comes to.
    pub(crate) bottom_line: String,
    /// What that rests on, where both were measured.
    pub(crate) instead: Option<Instead>,
    /// What makes these times say less than they seem to.
    pub(crate) warnings: Vec<String>,
    /// What the system did not let ranks do.
    #[serde(default)]
    pub(crate) obstacles: Vec<Obstacle>,
    #[serde(default)]
    pub(crate) hosts: Vec<Host>,
    pub(crate) ranks: usize,
    pub(crate) machines: usize,
    pub(crate) mpi: String,
    /// Whether ours were switched off.
    pub(crate) off: bool,
    pub(crate) topology: Option<String>,
    pub(crate) machine: Option<String>,
    /// From `MPI_Init` to `MPI_Finalize`, on the rank that took longest.
    pub(crate) seconds: f64,
    /// In blocking collectives, in point-to-point and requests: a rank's, the mean of all.
    pub(crate) collectives_seconds: f64,
    pub(crate) requests_seconds: f64,
    /// All communicators, in the order in which they were met.
    pub(crate) communicators: Vec<Communicator>,
    pub(crate) shares: Vec<Share>,
    pub(crate) rows: Vec<Row>,
    /// From where they were called; nothing in reports of earlier versions.
    #[serde(default)]
    pub(crate) sites: Vec<SiteRow>,
    /// Who waits for whom.
    pub(crate) waits: Vec<Wait>,
    pub(crate) compared: Vec<Compared>,
    pub(crate) learned: Option<Learning>,
}

/// Why a text is no report that can be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// It ends before it is complete.
    #[error("it ends in the middle; let the job write it again")]
    Cut,
    /// It is something else.
    #[error("it is no report of allhands; make one with ALLHANDS_REPORT=FILE.json")]
    Other,
    /// It has another form.
    #[error("it is a report of form {0}, and this allhands reads form {FORM}; make both with the same version")]
    Form(u64),
}

impl Whole {
    /// The report of a job, from what its ranks tell.
    pub fn of(parts: Vec<Part>, job: Job) -> Whole {
        let ranks = parts.len().max(1) as f64;
        let mean = |of: fn(&Part) -> f64| parts.iter().map(of).sum::<f64>() / ranks;
        let machines = parts.iter().map(|part| part.place.machine.as_str()).collect::<BTreeSet<_>>().len();
        let mut communicators: Vec<Communicator> = Vec::new();
        for on in parts.iter().flat_map(|part| &part.met) {
            if !communicators.contains(on) {
                communicators.push(*on);
            }
        }
        let mut whole = Whole {
            allhands_report: FORM,
            bottom_line: String::new(),
            instead: None,
            warnings: host::warnings(&parts).into_iter().chain(job.unused).collect(),
            obstacles: host::obstacles(&parts),
            hosts: host::hosts(&parts),
            ranks: parts.len(),
            machines,
            mpi: job.mpi,
            off: job.off,
            topology: job.topology,
            machine: job.machine,
            seconds: parts.iter().map(|part| part.seconds).fold(0.0, f64::max),
            collectives_seconds: 0.0,
            requests_seconds: mean(|part| part.requests_seconds),
            communicators,
            shares: shares(&parts),
            waits: waits(&parts),
            sites: sites::merged(&parts),
            rows: merged(parts.iter().flat_map(|part| part.rows.iter())),
            compared: weighed(parts.iter().flat_map(|part| part.compared.iter())),
            learned: job.learned,
        };
        whole.collectives_seconds =
            whole.shares.iter().map(|share| share.ours_seconds + share.mpi_seconds).sum::<f64>();
        let bottom = Bottom::of(&whole, job.compares);
        (whole.bottom_line, whole.instead) = (bottom.to_string(), bottom.instead);
        whole
    }

    /// Reads the JSON of a report.
    pub fn parse(text: &str) -> Result<Whole, Unreadable> {
        let value: serde_json::Value = serde_json::from_str(text).map_err(|error| match error.is_eof() {
            true if text.contains("\"allhands_report\"") => Unreadable::Cut,
            _ => Unreadable::Other,
        })?;
        match value.get("allhands_report").map(serde_json::Value::as_u64) {
            Some(Some(FORM)) => serde_json::from_value(value).map_err(|_| Unreadable::Other),
            Some(Some(other)) => Err(Unreadable::Form(other)),
            _ => Err(Unreadable::Other),
        }
    }

    /// The report as text, at most 80 columns wide.
    pub fn text(&self) -> String {
        crate::table::text(self)
    }

    /// The report as a page for the browser.
    pub fn page(&self) -> String {
        crate::html::page(self)
    }

    /// The report as JSON, which [`parse`](Whole::parse) reads.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// Seconds that a rank spent in collectives, on average: in ours, and in the MPI's.
    pub(crate) fn time(&self) -> (f64, f64) {
        self.shares.iter().fold((0.0, 0.0), |(ours, mpi), share| (ours + share.ours_seconds, mpi + share.mpi_seconds))
    }

    /// What makes these times say less than they seem to, or keeps them from being better: a sentence each, with its title.
    pub(crate) fn notes(&self) -> impl Iterator<Item = String> {
        let slower = self.obstacles.iter().map(|obstacle| format!("slower: {obstacle}"));
        slower.chain(self.warnings.iter().map(|warning| format!("note: {warning}")))
    }

    /// What the system did not let ranks do.
    pub fn obstacles(&self) -> &[Obstacle] {
        &self.obstacles
    }

    /// Its machines.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// Whether ours were switched off.
    pub fn is_off(&self) -> bool {
        self.off
    }

    /// Why calls were passed to the MPI, each reason once.
    pub fn reasons(&self) -> BTreeSet<&str> {
        self.rows.iter().filter_map(|row| row.key.passed.as_deref()).collect()
    }

    /// Calls that we served, and all.
    pub fn calls(&self) -> (u64, u64) {
        let served = self.rows.iter().filter(|row| row.key.algorithm.is_some());
        (served.map(|row| row.calls).sum(), self.rows.iter().map(|row| row.calls).sum())
    }

    /// What a communicator is called here.
    pub(crate) fn name(&self, on: Communicator) -> String {
        let numbered = |on: &&Communicator| on.id > Communicator::OTHERS;
        let number = self.communicators.iter().filter(numbered).position(|known| *known == on).map_or(0, |at| at + 1);
        match on.id {
            Communicator::WORLD => format!("world, {} ranks", on.ranks),
            Communicator::ALONE => "communicators of one rank".into(),
            Communicator::BETWEEN => format!("intercommunicators with {} on this side", on.ranks),
            Communicator::OTHERS => format!("other communicators of {} ranks", on.ranks),
            _ => format!("communicator {number}, {} ranks", on.ranks),
        }
    }
}

/// Where the time went, the longest first.
fn shares(parts: &[Part]) -> Vec<Share> {
    let mut times: HashMap<&str, (f64, f64)> = HashMap::new();
    for (key, tally) in parts.iter().flat_map(|part| &part.rows).filter(|(key, _)| !is_request(&key.collective)) {
        let (ours, mpi) = times.entry(&key.collective).or_default();
        *(if key.algorithm.is_some() { ours } else { mpi }) += tally.spread.sum() / parts.len() as f64;
    }
    let mut shares: Vec<Share> = times
        .into_iter()
        .map(|(name, (ours_seconds, mpi_seconds))| Share { collective: name.into(), ours_seconds, mpi_seconds })
        .collect();
    let time = |share: &Share| share.ours_seconds + share.mpi_seconds;
    shares.sort_by(|one, other| time(other).total_cmp(&time(one)).then_with(|| one.collective.cmp(&other.collective)));
    shares
}

/// The rows of all ranks, by communicator.
fn merged<'a>(rows: impl Iterator<Item = &'a (Key, Tally)>) -> Vec<Row> {
    let mut all: HashMap<&Key, Row> = HashMap::new();
    for (key, tally) in rows {
        let row = all.entry(key).or_insert_with(|| Row {
            key: key.clone(),
            calls: 0,
            bytes: 0,
            callers: 0,
            seconds: 0.0,
            deviation_seconds: 0.0,
            why: tally.why.clone(),
        });
        row.calls += tally.calls;
        row.bytes += tally.bytes;
        row.callers += 1;
        row.seconds += tally.spread.sum();
        row.deviation_seconds += tally.spread.deviation();
    }
    let mut rows: Vec<Row> = all.into_values().collect();
    for row in &mut rows {
        row.seconds /= row.callers as f64;
        row.deviation_seconds /= row.callers as f64;
    }
    rows.sort_by(|one, other| one.key.cmp(&other.key));
    rows
}
