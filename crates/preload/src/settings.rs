//! What the environment asks for. The first rank's decides for all.

use std::collections::HashMap;

use allhands_mpi::Mpi;
use allhands_schedule::{Choice, Collective};

const ALGORITHM: &str = "ALLHANDS_ALGORITHM";
const REPORT: &str = "ALLHANDS_REPORT";

/// After the name of an algorithm: where it cannot serve a call, one is chosen as if none were named. Without it, that is an error.
pub(crate) const IF_IT_CAN: char = '?';

/// Settings; the same on every rank.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Settings {
    forced: HashMap<Collective, String>,
    /// Where the report goes: `1` for the standard error, else a file.
    pub(crate) report: Option<String>,
}

impl Settings {
    /// Those of the world's first rank.
    pub(crate) fn agreed(mpi: &Mpi) -> Result<Settings, String> {
        let mine = [ALGORITHM, REPORT].map(|name| std::env::var(name).unwrap_or_default()).join("\0");
        let text = shared(mpi, mine).map_err(|error| error.to_string())?;
        let (algorithms, report) = text.split_once('\0').unwrap_or((&text, ""));
        let report = Some(report.to_owned()).filter(|report| !matches!(report.as_str(), "" | "0"));
        Ok(Settings { report, ..Settings::parse(algorithms)? })
    }

    /// `allreduce=nap;allgather=loc-bruck:fan=full;bcast=binomial?`
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
            let name = algorithm.strip_suffix(IF_IT_CAN).unwrap_or(algorithm);
            if name != "mpi" {
                Choice::parse(collective, name).map_err(|error| wrong(&format!("{error}")))?;
            }
            settings.forced.insert(collective, algorithm.into());
        }
        Ok(settings)
    }

    /// The algorithm that the user wants for a collective, with [`IF_IT_CAN`] at its end where another may stand in for it.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn algorithms_are_forced_by_collective() {
        let settings = Settings::parse(" allreduce=nap ; allgather=loc-bruck:fan=full;bcast=mpi;").unwrap();
        assert_eq!(settings.forced(Collective::Allreduce), Some("nap"));
        assert_eq!(settings.forced(Collective::Allgather), Some("loc-bruck:fan=full"));
        assert_eq!(settings.forced(Collective::Bcast), Some("mpi"));
        assert_eq!(settings.forced(Collective::Allgatherv), None);
        let lenient = Settings::parse("allgather=neighbor-exchange?").unwrap();
        assert_eq!(lenient.forced(Collective::Allgather), Some("neighbor-exchange?"));
        assert!(Settings::parse("allgather=neighbour?").is_err());
        assert_eq!(Settings::parse("").unwrap(), Settings::default());
    }

    #[test]
    fn what_is_not_understood_is_said() {
        for (text, fact) in [
            ("allreduce", "\"allreduce\" names no algorithm"),
            ("reduceall=nap", "reduceall"),
            ("allreduce=bruck", "allreduce has no algorithm \"bruck\""),
        ] {
            let message = Settings::parse(text).unwrap_err();
            assert!(message.starts_with("ALLHANDS_ALGORITHM=") && message.contains(fact), "{message}");
            assert!(message.ends_with("write collective=algorithm, with semicolons between several"), "{message}");
        }
    }
}
