//! What can end the command early, and the exit code that says so.

use std::io;
use std::process::ExitCode;

use allhands_schedule::Error;
use anstyle::{AnsiColor, Style};

/// Why the command stops.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// A request that cannot be served: exit code 2.
    #[error(transparent)]
    Request(#[from] Error),
    /// A request that the command line itself refuses: exit code 2.
    #[error("{0}")]
    Usage(String),
    /// A schedule that is wrong: exit code 1.
    #[error("{0}")]
    Wrong(String),
    /// Output that cannot be written. A closed pipe is no failure: the reader has seen enough.
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
}

pub(crate) type Result<T> = std::result::Result<T, Failure>;

/// Says what went wrong, in one sentence, and turns it into an exit code.
pub(crate) fn exit(result: Result<()>) -> ExitCode {
    let failure = match result {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => return ExitCode::SUCCESS,
        Err(failure) => failure,
    };
    let red = Style::new().bold().fg_color(Some(AnsiColor::Red.into()));
    // With standard error gone too there is nobody left to tell.
    let _ = io::Write::write_fmt(&mut anstream::stderr(), format_args!("{red}error:{red:#} {failure}\n"));
    match failure {
        Failure::Wrong(_) | Failure::Output(_) => ExitCode::from(1),
        Failure::Request(_) | Failure::Usage(_) => ExitCode::from(2),
    }
}
