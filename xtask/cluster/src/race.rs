//! Placeholder.
use crate::Result;

#[derive(clap::Args)]
pub(crate) struct Wish {}

pub(crate) fn run(_: &Wish) -> Result<()> {
    Ok(())
}
