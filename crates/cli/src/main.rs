//! The command `allhands`: collective communication as schedules, listed, explained, verified and measured.
#![forbid(unsafe_code)]

mod args;
mod commands;
mod failure;
mod job;
mod plot;
mod screen;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    screen::set_up();
    match commands::Command::try_parse() {
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
