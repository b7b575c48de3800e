//! All observers of a job, asked as one.

use std::time::Duration;

use allhands_call::{Communicator, Unserved};
use allhands_schedule::Collective;

use super::check::Check;
use super::late_detector::LateDetector;
use super::lessons::JobLessons;
use super::observer::{Announced, Observer, Served, Stay, Turn};
use super::report::Report;
use super::turns::Turns;
use crate::job::{Job, Settings};

/// Those that the user asks for.
pub(crate) struct Observers {
    all: Vec<Box<dyn Observer>>,
    listens: bool,
    times: bool,
}

/// What an MPI needs of observers.
pub(crate) struct Choices {
    /// See [`Check::new`].
    pub(crate) private_for_one_rank: bool,
}

impl Observers {
    /// Collective over the world.
    pub(crate) fn new(job: &Job, choices: &Choices) -> Result<Observers, String> {
        let (mpi, settings) = (job.mpi, &job.settings);
        let mut all: Vec<Box<dyn Observer>> = Vec::new();
        if let Some(most) = settings.timeout {
            all.push(Box::new(LateDetector::new(mpi, most)?));
        }
        if settings.check {
            let check = Check::new(mpi, choices.private_for_one_rank).map_err(|error| error.to_string())?;
            all.push(Box::new(check));
        }
        let Settings { compare, .. } = *settings;
        if compare {
            all.push(Box::new(Turns::default()));
        }
        if let Some(wanted) = &settings.report {
            all.push(Box::new(Report::new(mpi, wanted.as_deref(), (!job.serves, compare))));
        }
        let listens = all.iter().any(|observer| observer.listens());
        let times = all.iter().any(|observer| observer.times());
        Ok(Observers { all, listens, times })
    }

    /// Whether there is one.
    pub(crate) fn any(&self) -> bool {
        !self.all.is_empty()
    }

    /// Whether one wants to know what calls say, before they are served.
    pub(crate) fn listen(&self) -> bool {
        self.listens
    }

    /// Whether one wants to know how long calls take.
    #[inline]
    pub(crate) fn time(&self) -> bool {
        self.times
    }

    pub(crate) fn meet(&self, comm: &Communicator, lineage: Option<u64>) {
        self.all.iter().for_each(|observer| observer.meets(comm, lineage));
    }

    pub(crate) fn prepare(&self, comm: &Communicator) {
        self.all.iter().for_each(|observer| observer.prepares(comm));
    }

    /// A call that may wait for other ranks. Collective.
    pub(crate) fn arrive(&self, call: &Announced<'_>, on_idle: &dyn Fn()) -> Result<Vec<Stay<'_>>, Unserved> {
        let stays = self.all.iter().map(|observer| observer.arrives(call, on_idle));
        stays.filter_map(Result::transpose).collect()
    }

    /// A call that waits for nobody.
    pub(crate) fn begin(&self, call: &Announced<'_>) -> Result<(), Unserved> {
        self.all.iter().try_for_each(|observer| observer.begins(call))
    }

    /// Who is to serve a call that ours could; none where nothing is compared.
    pub(crate) fn turn(&self, comm: &Communicator, collective: Collective, bytes: usize, fresh: bool) -> Option<Turn> {
        self.all.iter().find_map(|observer| observer.turn(comm, collective, bytes, fresh))
    }

    pub(crate) fn served(&self, call: &Served<'_>) {
        self.all.iter().for_each(|observer| observer.served(call));
    }

    pub(crate) fn spend(&self, time: Duration) {
        self.all.iter().for_each(|observer| observer.spends(time));
    }

    pub(crate) fn look(&self) {
        self.all.iter().for_each(|observer| observer.looks());
    }

    pub(crate) fn forget(&self, comm: &Communicator) {
        self.all.iter().for_each(|observer| observer.forgets(comm));
    }

    pub(crate) fn learned(&self, lessons: &JobLessons) {
        self.all.iter().for_each(|observer| observer.learned(lessons));
    }

    pub(crate) fn publish(&self) {
        self.all.iter().for_each(|observer| observer.publishes());
    }

    pub(crate) fn end(&self) {
        self.all.iter().for_each(|observer| observer.ends());
    }
}
