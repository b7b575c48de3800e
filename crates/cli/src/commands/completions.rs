//! `allhands completions`: what a shell completes after the command's name.

use std::io::Write;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::failure::Result;

/// Print a script by which a shell completes this command's words
///
/// Installed copies have them where shells look; by hand, for bash: source <(allhands completions bash)
#[derive(Args, Debug)]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(&self) -> Result<()> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut super::Command::command(), "allhands", &mut script);
        Ok(std::io::stdout().write_all(&script)?)
    }
}
