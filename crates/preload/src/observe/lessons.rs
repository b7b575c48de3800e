//! What a job has learned, and knows of itself: for the report, and for the next job.

use allhands::learn::Lessons;
use allhands::raw::Obstacle;
use allhands_model::Machine;

/// What was learned in a job, as far as this rank took part in it.
#[derive(Clone, Default)]
pub(crate) struct JobLessons {
    pub(crate) learned: Lessons,
    /// What all communicators of the job know.
    pub(crate) facts: Option<JobFacts>,
}

/// What is known of the job since it began.
#[derive(Clone, Default)]
pub(crate) struct JobFacts {
    /// What was found out of the machine.
    pub(crate) machine: Option<Machine>,
    /// What the user names and is not used, a sentence each.
    pub(crate) unused: Vec<String>,
    /// What this rank could not do with the others of its machine.
    pub(crate) obstacle: Option<Obstacle>,
}
