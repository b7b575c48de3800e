//! `allhands man`: the manual pages, for whoever installs the command.

use std::path::PathBuf;

use clap::{Args, CommandFactory};

use crate::failure::Result;

/// Write the manual pages into a folder
#[derive(Args, Debug)]
#[command(hide = true)]
pub(crate) struct Man {
    /// The folder, which must exist
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

impl Man {
    pub(crate) fn run(&self) -> Result<()> {
        Ok(clap_mangen::generate_to(super::Command::command(), &self.folder)?)
    }
}
