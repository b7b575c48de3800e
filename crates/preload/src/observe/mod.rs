//! Who wants to know of the program's calls, if the user asks for it: whether ranks call the same, who is late, what was called and who
//! served it, and how ours and the MPI's own compare.

mod attendance_table;
mod check;
mod late_detector;
mod lessons;
mod observer;
mod observers;
mod report;
mod turns;

pub(crate) use lessons::{JobFacts, JobLessons};
pub(crate) use observer::{Announced, By, Served, Stay, Turn, started};
pub(crate) use observers::{Choices, Observers};
