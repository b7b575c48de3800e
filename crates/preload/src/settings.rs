//! What the environment asks for. The first rank's decides for all.

use std::collections::HashMap;

use allhands_mpi::Mpi;
use allhands_schedule::{Choice, Collective};

pub(crate) const ALGORITHM: &str = "ALLHANDS_ALGORITHM";

/// Settings; the same on every rank.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Settings {
    forced: HashMap<Collective, String>,
}

impl Settings {
    /// Those of the world's first rank.
    pub(crate) fn agreed(mpi: &Mpi) -> Result<Settings, String> {
        let text = shared(mpi, std::env::var(ALGORITHM).unwrap_or_default()).map_err(|error| error.to_string())?;
        Settings::parse(&text)
    }

    /// `allreduce=nap;allgather=loc-bruck:fan=full`
    fn parse(text: &str) -> Result<Settings, String> {
        let mut settings = Settings::default();
        for wish in text.split(';').map(str::trim).filter(|wish| !wish.is_empty()) {
            let wrong = |fact: &str| {
                format!("{ALGORITHM}={text}: {fact}; write collective=algorithm, with semicolons between several")
            };
            let (collective, algorithm) =
                wish.split_once('=').ok_or_else(|| wrong(&format!("{wish:?} names no algorithm")))?;
            let collective: Collective = collective.trim().parse().map_err(|error| wrong(&format!("{error}")))?;
            let algorithm = algorithm.trim();
            if algorithm != "mpi" {
                Choice::parse(collective, algorithm).map_err(|error| wrong(&format!("{error}")))?;
            }
            settings.forced.insert(collective, algorithm.into());
        }
        Ok(settings)
    }

    /// The algorithm that the user wants for a collective.
    pub(crate) fn forced(&self, collective: Collective) -> Option<&str> {
        self.forced.get(&collective).map(String::as_str)
    }
}

/// The first rank's text.
fn shared(mpi: &Mpi, text: String) -> allhands_mpi::Result<String> {
    let (types, world) = (&mpi.constants().types, mpi.world());
    let mut length = text.len() as u64;
    // SAFETY: one word on every rank.
    unsafe { mpi.bcast((&raw mut length).cast(), 1, types.uint64_t, 0, world)? };
    let mut bytes = text.into_bytes();
    bytes.resize(length as usize, 0);
    // The address of no bytes might be one that means something.
    if length > 0 {
        // SAFETY: as many bytes on every rank.
        unsafe { mpi.bcast(bytes.as_mut_ptr().cast(), bytes.len(), types.byte, 0, world)? };
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
