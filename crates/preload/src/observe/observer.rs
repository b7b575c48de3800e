//! What an observer may want to know.

use std::num::NonZeroUsize;
use std::time::Duration;

use allhands_call::{CallDescription, Communicator, Unserved};
use allhands_schedule::Collective;

use super::lessons::JobLessons;

/// Somebody who wants to know of calls.
///
/// What an observer keeps for a communicator it keeps by the communicator's number. It changes nothing that the program sees, but may
/// end the job.
pub(crate) trait Observer: Send + Sync {
    /// Whether it wants to know what calls say, before they are served.
    fn listens(&self) -> bool {
        false
    }

    /// Whether it wants to know how long calls take.
    fn times(&self) -> bool {
        false
    }

    /// The program calls with a communicator for the first time. Not collective.
    /// `lineage`: what all its ranks know it by, if they do; 0 of the world.
    fn meets(&self, _comm: &Communicator, _lineage: Option<u64>) {}

    /// Ranks may wait for each other now, and perhaps not when the first call comes. Collective.
    fn prepares(&self, _comm: &Communicator) {}

    /// A call that may wait for other ranks: what is returned lives as long as this rank is in it. Collective; who waits here calls
    /// `on_idle` again and again.
    fn arrives<'a>(&'a self, _call: &Announced<'_>, _meanwhile: &dyn Fn()) -> Result<Option<Stay<'a>>, Unserved> {
        Ok(None)
    }

    /// A call that waits for nobody.
    fn begins(&self, _call: &Announced<'_>) -> Result<(), Unserved> {
        Ok(())
    }

    /// Who is to serve a call that ours could; `fresh` if it was the first that has its plan.
    fn turn(&self, _comm: &Communicator, _collective: Collective, _bytes: usize, _fresh: bool) -> Option<Turn> {
        None
    }

    /// A call was served.
    fn served(&self, _call: &Served<'_>) {}

    /// The program has spent time in point-to-point, or in a call that begins or completes requests.
    fn spends(&self, _time: Duration) {}

    /// Runs that are under way are being moved on.
    fn looks(&self) {}

    /// The program frees a communicator.
    fn forgets(&self, _comm: &Communicator) {}

    /// What was learned, before it is published.
    fn learned(&self, _lessons: &JobLessons) {}

    /// MPI is about to be finalised; calls are no longer served. Collective over the world.
    fn publishes(&self) {}

    /// The same, after everything else has ended.
    fn ends(&self) {}
}

/// As long as it lives this rank is in a call.
pub(crate) type Stay<'a> = Box<dyn Send + 'a>;

/// A call that is about to be served.
pub(crate) struct Announced<'a> {
    pub(crate) comm: &'a Communicator,
    /// In words.
    pub(crate) text: String,
    pub(crate) said: CallDescription,
}

impl<'a> Announced<'a> {
    /// Puts a call whose arguments were listened to while they were read into words.
    pub(crate) fn new(comm: &'a Communicator, function: &str, said: CallDescription, refused: bool) -> Announced<'a> {
        Announced { comm, text: said.words(function, refused), said }
    }
}

/// Who serves a call that is compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Turn {
    pub(crate) ours: bool,
    /// Whether its time is to be compared.
    pub(crate) counts: bool,
}

/// A call that was served.
pub(crate) struct Served<'a> {
    /// As the report has it: `allreduce`, `iallreduce`, `allreduce_init`, `allreduce_start`.
    pub(crate) name: &'a str,
    /// None where MPI refuses it.
    pub(crate) comm: Option<&'a Communicator>,
    /// None where it was passed on before they were known.
    pub(crate) bytes: Option<usize>,
    pub(crate) by: By<'a>,
    /// None of what is under way when the call returns.
    pub(crate) time: Option<Duration>,
    /// Of a call that is compared.
    pub(crate) turn: Option<(Collective, Turn)>,
    /// Where in the program a blocking call returns to, where that is known.
    pub(crate) from: Option<NonZeroUsize>,
}

/// What the start of a persistent collective is called in the report: `allreduce_start` of `allreduce_init`.
pub(crate) fn started(name: &str) -> String {
    format!("{}_start", name.strip_suffix("_init").unwrap_or(name))
}

/// Who served a call.
#[derive(Clone, Copy)]
pub(crate) enum By<'a> {
    /// An algorithm of ours, and why that one.
    Ours { algorithm: &'a str, why: &'a str },
    /// There was nothing to move.
    Nobody,
    /// The MPI's own function, for this reason.
    Theirs(&'a str),
}
