//! What was learned, as the report has it.

use allhands::Time;
use serde::Serialize;

use super::units::{time, up_to};
use crate::observe::lessons::{Learned, Lessons};

/// What was learned in a job.
#[derive(Serialize)]
pub(super) struct Learning {
    /// Seconds that calls took less than without learning, and that learning took.
    pub(super) gained_seconds: f64,
    pub(super) spent_seconds: f64,
    pub(super) rows: Vec<Lesson>,
}

/// What was learned of calls of one collective and class of sizes on a communicator.
#[derive(Serialize)]
pub(super) struct Lesson {
    collective: String,
    up_to_bytes: usize,
    ranks: usize,
    calls: u64,
    /// Who serves, and whether that is settled.
    server: String,
    settled: bool,
    tried: Vec<Time>,
    gained_seconds: f64,
    spent_seconds: f64,
}

pub(super) const LEARNED: [&str; 6] =
    ["collective", "bytes", "ranks", "calls", "serves", "tried: median, nine of ten below, turns"];

impl Learning {
    /// Nothing where nobody was tried.
    pub(super) fn of(lessons: &Lessons) -> Option<Learning> {
        let (gained_seconds, spent_seconds) = lessons.sums();
        let mut rows: Vec<Lesson> = lessons.all.iter().map(Lesson::of).collect();
        let place = |lesson: &Lesson| (lesson.collective.clone(), lesson.ranks, lesson.up_to_bytes);
        rows.sort_by_key(place);
        (!rows.is_empty()).then_some(Learning { gained_seconds, spent_seconds, rows })
    }

    /// The sum, in a sentence.
    pub(super) fn summary(&self) -> String {
        let settled = self.rows.iter().filter(|lesson| lesson.settled).count();
        let (gained, spent) = (time(self.gained_seconds.max(0.0)), time(self.spent_seconds));
        format!(
            "learned: gained {gained}, spent {spent} on learning; {settled} of {} kinds of calls are settled",
            self.rows.len()
        )
    }
}

impl Lesson {
    fn of(Learned { ranks, lesson, .. }: &Learned) -> Lesson {
        Lesson {
            collective: lesson.collective.name().into(),
            up_to_bytes: lesson.bytes,
            ranks: *ranks,
            calls: lesson.calls,
            server: lesson.server.to_string(),
            settled: lesson.settled,
            tried: lesson.tried.clone(),
            gained_seconds: lesson.gained,
            spent_seconds: lesson.spent,
        }
    }

    /// As columns.
    pub(super) fn cells(&self) -> [String; 6] {
        let one = |tried: &Time| {
            format!(
                "{} {} ({}, {})",
                tried.algorithm,
                time(tried.median_us * 1e-6),
                time(tried.p90_us * 1e-6),
                tried.samples
            )
        };
        let open = if self.settled { "" } else { " so far" };
        [
            self.collective.clone(),
            up_to(Some(self.up_to_bytes as u64)),
            self.ranks.to_string(),
            self.calls.to_string(),
            format!("{}{open}", self.server),
            self.tried.iter().map(one).collect::<Vec<_>>().join(", "),
        ]
    }
}
