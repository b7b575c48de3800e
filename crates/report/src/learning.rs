//! What was learned, as the report has it.

use serde::{Deserialize, Serialize};

use crate::compared::Estimate;
use crate::units::{time, up_to};

/// What was learned in a job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Learning {
    /// Seconds that calls took less than without learning.
    pub gained_seconds: f64,
    /// Seconds that learning took.
    pub spent_seconds: f64,
    /// By kind of call.
    pub rows: Vec<Lesson>,
}

/// What was learned of calls of one collective and class of sizes on a communicator.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Lesson {
    /// As programs call it.
    pub collective: String,
    /// The least power of two that is not less than the bytes; none where each rank knows its own sizes.
    pub up_to_bytes: Option<usize>,
    /// How many ranks the communicator has.
    pub ranks: usize,
    /// How many calls there were.
    pub calls: u64,
    /// Who serves.
    pub server: String,
    /// Whether that is settled.
    pub settled: bool,
    /// Who was tried.
    pub tried: Vec<Tried>,
    /// As of all.
    pub gained_seconds: f64,
    /// As of all.
    pub spent_seconds: f64,
}

/// What somebody took who was tried, in microseconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Tried {
    /// Who.
    pub algorithm: String,
    /// Half took less.
    pub median_us: f64,
    /// One of ten took less.
    pub p10_us: f64,
    /// Nine of ten did.
    pub p90_us: f64,
    /// How often.
    pub samples: usize,
}

/// How the MPI's own is called among those that are tried.
const LIBRARY: &str = "mpi";

pub(crate) const LEARNED: [&str; 6] =
    ["collective", "bytes", "ranks", "calls", "serves", "tried: median, nine of ten below, turns"];

impl Learning {
    /// In the order of collectives, ranks and sizes; nothing where nobody was tried.
    pub fn new(gained_seconds: f64, spent_seconds: f64, mut rows: Vec<Lesson>) -> Option<Learning> {
        let place = |lesson: &Lesson| (lesson.collective.clone(), lesson.ranks, lesson.up_to_bytes);
        rows.sort_by_key(place);
        (!rows.is_empty()).then_some(Learning { gained_seconds, spent_seconds, rows })
    }

    /// The sum, in a sentence.
    pub(crate) fn summary(&self) -> String {
        let settled = self.rows.iter().filter(|lesson| lesson.settled).count();
        let (gained, spent) = (time(self.gained_seconds.max(0.0)), time(self.spent_seconds));
        format!(
            "learned: gained {gained}, spent {spent} on learning; {settled} of {} kinds of calls are settled",
            self.rows.len()
        )
    }

    /// What calls of kinds of which both the server and the MPI's own were timed take, by the server and by the MPI: by their medians.
    pub(crate) fn estimate(&self) -> Option<Estimate> {
        let known: Vec<Estimate> = self.rows.iter().filter_map(Lesson::estimate).collect();
        (!known.is_empty()).then(|| known.into_iter().sum())
    }
}

impl Lesson {
    fn estimate(&self) -> Option<Estimate> {
        let of = |name: &str| self.tried.iter().find(|tried| tried.algorithm == name && tried.samples > 1);
        // A tenth and nine tenths of a normal distribution are 2.563 deviations apart, and its median is as sure as a mean of 1.253 times the deviation.
        let side = |tried: &Tried| {
            let deviation = 1.253 * (tried.p90_us - tried.p10_us) / 2.563;
            (tried.samples as f64, tried.median_us * 1e-6, deviation * 1e-6)
        };
        Some(Estimate::new(self.calls as f64, side(of(&self.server)?), side(of(LIBRARY)?)))
    }

    /// As columns.
    pub(crate) fn cells(&self) -> [String; 6] {
        let one = |tried: &Tried| {
            let (median, most) = (time(tried.median_us * 1e-6), time(tried.p90_us * 1e-6));
            format!("{} {median} ({most}, {})", tried.algorithm, tried.samples)
        };
        let open = if self.settled { "" } else { " so far" };
        [
            self.collective.clone(),
            self.up_to_bytes.map_or_else(|| "any".into(), |bytes| up_to(Some(bytes as u64))),
            self.ranks.to_string(),
            self.calls.to_string(),
            format!("{}{open}", self.server),
            self.tried.iter().map(one).collect::<Vec<_>>().join(", "),
        ]
    }
}
