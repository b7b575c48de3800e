//! Calls that ours and the MPI's own have served by turns, and what all of them would take by one and by the other.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::spread::student;
use crate::units::gain;
use crate::whole::Communicator;

/// Calls of one collective and class of sizes on a communicator that ours and the MPI's own have served by turns.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Compared {
    /// As programs call it.
    pub collective: String,
    /// None where ranks know their own counts only.
    pub up_to_bytes: Option<u64>,
    /// Ours.
    pub ours: Side,
    /// The MPI's own.
    pub mpi: Side,
    /// Where.
    #[serde(flatten)]
    pub on: Communicator,
    /// Calls of a rank, those that do not count included; the mean of its ranks, as what follows.
    pub calls: f64,
    /// What they took.
    pub spent_seconds: f64,
    /// How many ranks there were.
    pub callers: usize,
}

/// One side of a comparison. Over ranks: all calls, and the means of what each rank has found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Side {
    /// Calls that count.
    pub calls: u64,
    /// The median of their times.
    pub seconds: f64,
    /// Nine of ten took less.
    pub most_seconds: f64,
    /// Their mean.
    pub mean_seconds: f64,
    /// How far they lie from it.
    pub deviation_seconds: f64,
}

/// What a rank's calls would take by one, and by the other; and how much that may be wrong, in 95 of 100 cases.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Estimate {
    pub(crate) ours: f64,
    pub(crate) other: f64,
    /// The square of what their difference may be wrong by.
    doubt: f64,
}

/// The same as it is written: seconds of a rank, the mean of all, and between what ours lies in 95 of 100 cases.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Instead {
    pub(crate) ours_seconds: f64,
    pub(crate) mpi_seconds: f64,
    pub(crate) low_seconds: f64,
    pub(crate) high_seconds: f64,
}

impl Estimate {
    pub(crate) fn instead(&self) -> Instead {
        let (ours_seconds, half) = (self.ours, self.half());
        let low_seconds = (ours_seconds - half).max(0.0);
        Instead { ours_seconds, mpi_seconds: self.other, low_seconds, high_seconds: ours_seconds + half }
    }

    /// So many calls, by two sides of which so many were timed on a rank: means and deviations.
    pub(crate) fn new(calls: f64, ours: (f64, f64, f64), other: (f64, f64, f64)) -> Estimate {
        let doubt = |(timed, _, deviation): (f64, f64, f64)| {
            let half = student(timed) * calls * deviation / timed.max(1.0).sqrt();
            half * half
        };
        Estimate { ours: calls * ours.1, other: calls * other.1, doubt: doubt(ours) + doubt(other) }
    }

    /// The same for a part of the ranks.
    pub(crate) fn on(self, ranks: f64) -> Estimate {
        Estimate { ours: self.ours * ranks, other: self.other * ranks, doubt: self.doubt * ranks * ranks }
    }

    pub(crate) fn half(&self) -> f64 {
        self.doubt.sqrt()
    }

    /// Whether ours is surely slower, by more than a twentieth.
    pub(crate) fn loses(&self) -> bool {
        self.ours - self.half() > self.other && self.ours > 1.05 * self.other
    }

    /// Whether one is surely the faster.
    pub(crate) fn is_sure(&self) -> bool {
        (self.ours - self.other).abs() > self.half()
    }

    /// In a few words.
    pub(crate) fn verdict(&self) -> String {
        if self.is_sure() { gain(self.ours, self.other) } else { "no telling".into() }
    }
}

impl std::iter::Sum for Estimate {
    fn sum<I: Iterator<Item = Estimate>>(all: I) -> Estimate {
        all.fold(Estimate::default(), |sum, one| Estimate {
            ours: sum.ours + one.ours,
            other: sum.other + one.other,
            doubt: sum.doubt + one.doubt,
        })
    }
}

impl Compared {
    /// What a rank of its communicator would spend in all such calls; nothing where too few were timed to know how they differ.
    pub(crate) fn estimate(&self) -> Option<Estimate> {
        let timed = |side: &Side| side.calls as f64 / self.callers.max(1) as f64;
        let side = |side: &Side| (timed(side), side.mean_seconds, side.deviation_seconds);
        let enough = [&self.ours, &self.mpi].iter().all(|side| timed(side) >= 2.0);
        enough.then(|| Estimate::new(self.calls, side(&self.ours), side(&self.mpi)))
    }

    /// What calls of a rank took that do not count.
    pub(crate) fn first_seconds(&self) -> f64 {
        let counted = |side: &Side| side.calls as f64 / self.callers.max(1) as f64 * side.mean_seconds;
        (self.spent_seconds - counted(&self.ours) - counted(&self.mpi)).max(0.0)
    }

    /// What ours is worth, by the sums; a star where the medians say something else.
    pub(crate) fn verdict(&self) -> String {
        let Some(estimate) = self.estimate() else { return "too few".into() };
        let star = if self.is_odd() { " *" } else { "" };
        format!("{}{star}", estimate.verdict())
    }

    /// Whether the medians say something else than the sums: a few calls took much longer than most.
    pub(crate) fn is_odd(&self) -> bool {
        let far = |ours: f64, mpi: f64| (ours.max(1e-12) / mpi.max(1e-12)).ln();
        let (medians, means) =
            (far(self.ours.seconds, self.mpi.seconds), far(self.ours.mean_seconds, self.mpi.mean_seconds));
        (medians - means).abs() > 1.25f64.ln()
    }
}

/// The comparisons of all ranks, each rank counting as much as the others.
pub(crate) fn weighed<'a>(all: impl Iterator<Item = &'a Compared>) -> Vec<Compared> {
    let mut kinds: HashMap<_, Compared> = HashMap::new();
    for one in all {
        let kind = (&one.collective, one.up_to_bytes, one.on);
        let Some(sum) = kinds.get_mut(&kind) else {
            kinds.insert(kind, one.clone());
            continue;
        };
        for (sum, side) in [(&mut sum.ours, one.ours), (&mut sum.mpi, one.mpi)] {
            sum.calls += side.calls;
            sum.seconds += side.seconds;
            sum.most_seconds += side.most_seconds;
            sum.mean_seconds += side.mean_seconds;
            sum.deviation_seconds += side.deviation_seconds;
        }
        sum.calls += one.calls;
        sum.spent_seconds += one.spent_seconds;
        sum.callers += one.callers;
    }
    let mut kinds: Vec<Compared> = kinds.into_values().collect();
    for Compared { ours, mpi, calls, spent_seconds, callers, .. } in &mut kinds {
        let each = 1.0 / (*callers).max(1) as f64;
        for side in [ours, mpi] {
            side.seconds *= each;
            side.most_seconds *= each;
            side.mean_seconds *= each;
            side.deviation_seconds *= each;
        }
        *calls *= each;
        *spent_seconds *= each;
    }
    let place = |one: &Compared| (one.collective.clone(), one.up_to_bytes, one.on);
    kinds.sort_by_key(place);
    kinds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_as_sure_as_their_calls() {
        // 100 calls; 25 of each side timed, a deviation of 1 and of 2.
        let estimate = Estimate::new(100.0, (25.0, 2.0, 1.0), (25.0, 3.0, 2.0));
        assert_eq!((estimate.ours, estimate.other), (200.0, 300.0));
        let t = student(25.0);
        assert!((estimate.half() - t * 100.0 / 5.0 * 5f64.sqrt()).abs() < 1e-9, "{}", estimate.half());
        assert_eq!(estimate.verdict(), "1.50x faster");
        // Of two together the doubts add up like squares.
        let both: Estimate = [estimate, estimate].into_iter().sum();
        assert!((both.half() - 2f64.sqrt() * estimate.half()).abs() < 1e-9);
        // Half of the ranks.
        assert_eq!((estimate.on(0.5).ours, estimate.on(0.5).half()), (100.0, estimate.half() / 2.0));
        let unsure = Estimate::new(100.0, (25.0, 2.0, 5.0), (25.0, 3.0, 5.0));
        assert_eq!((unsure.verdict().as_str(), unsure.loses()), ("no telling", false));
        assert!(Estimate::new(100.0, (25.0, 3.0, 0.1), (25.0, 2.0, 0.1)).loses());
    }
}
