//! The command `allhands`: collective communication as schedules, listed, explained and verified.
#![forbid(unsafe_code)]

mod args;
mod commands;
mod failure;
mod screen;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    failure::exit(commands::Command::parse().run())
}
