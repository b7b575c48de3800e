//! What can end the command early, and the exit code that says so.

use std::io;
use std::process::ExitCode;

use allhands_schedule::Error;
use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};

use crate::job;

/// Why the command stops.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// A request that cannot be served: exit code 2; a schedule in a file that is wrong: exit code 1.
    #[error(transparent)]
    Request(#[from] Error),
    /// A request that the command line itself refuses: exit code 2.
    #[error("{0}")]
    Usage(String),
    /// A schedule that is wrong: exit code 1.
    #[error("{0}")]
    Wrong(String),
    /// What went wrong on this rank of an MPI job, and perhaps on this one only: exit code 1.
    #[error("{}{reason}", rank.map_or(String::new(), |rank| format!("rank {rank}: ")))]
    Rank {
        /// Which rank, where that is known.
        rank: Option<usize>,
        /// What.
        reason: String,
        /// Whether it only follows from what another rank has done, which should speak first.
        follows: bool,
    },
    /// It went wrong on another rank, which says so: exit code 1.
    #[error("another rank failed")]
    Elsewhere,
    /// What was printed says it: exit code 1.
    #[error("the output says what is wrong")]
    Printed,
    /// Output that cannot be written. A closed pipe is no failure: the reader has seen enough.
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
}

impl Failure {
    /// Whether this process has to say it: what all ranks of a job find alike is said by the first.
    fn ours_to_say(&self) -> bool {
        match self {
            Failure::Request(_) | Failure::Usage(_) | Failure::Wrong(_) => job::first(),
            Failure::Rank { .. } | Failure::Output(_) => true,
            Failure::Elsewhere | Failure::Printed => false,
        }
    }
}

pub(crate) type Result<T> = std::result::Result<T, Failure>;

/// Says what went wrong, in one sentence, and turns it into an exit code.
pub(crate) fn exit(result: Result<()>) -> ExitCode {
    let failure = match result {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => return ExitCode::SUCCESS,
        Err(failure) => failure,
    };
    if matches!(failure, Failure::Rank { follows: true, .. }) {
        job::let_others_speak();
    }
    if failure.ours_to_say() {
        let red = Style::new().bold().fg_color(Some(AnsiColor::Red.into()));
        // In one write, so that lines of several ranks do not mix. With standard error gone too there is nobody left to tell.
        let line = format!("{red}error:{red:#} {failure}\n");
        let plain = AutoStream::choice(&io::stderr()) == ColorChoice::Never;
        let line = if plain { format!("error: {failure}\n") } else { line };
        let _ = io::Write::write_all(&mut io::stderr().lock(), line.as_bytes());
    } else if !matches!(failure, Failure::Printed) {
        job::let_others_speak();
    }
    match failure {
        Failure::Request(Error::Wrong { .. }) => ExitCode::from(1),
        Failure::Wrong(_) | Failure::Rank { .. } | Failure::Elsewhere | Failure::Printed | Failure::Output(_) => {
            ExitCode::from(1)
        }
        Failure::Request(_) | Failure::Usage(_) => ExitCode::from(2),
    }
}
