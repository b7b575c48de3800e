//! The command `allhands`: collective communication as schedules, listed, explained, verified and measured.
#![forbid(unsafe_code)]

mod args;
mod commands;
mod failure;
mod host;
mod job;
mod screen;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};
use commands::Command;

/// Of help: longer lines are hard to read.
const MOST_COLUMNS: usize = 100;

fn main() -> ExitCode {
    screen::set_up();
    let parser = Command::command().term_width(screen::width().min(MOST_COLUMNS));
    let parsed = parser.try_get_matches().and_then(|matches| Command::from_arg_matches(&matches));
    match parsed {
        Ok(command) => failure::exit(command.run()),
        Err(refused) if job::first() => refused.exit(),
        // The job's first rank says it for all.
        Err(refused) if refused.use_stderr() => {
            job::let_others_speak();
            ExitCode::from(2)
        }
        Err(_help) => ExitCode::SUCCESS,
    }
}
