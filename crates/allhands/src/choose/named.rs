//! The files that a user names for decisions to rest on: a tuning file and a machine.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use allhands_model::Machine;

use crate::tuning::Tuning;

/// The variable that names a tuning file.
pub(super) const TUNING: &str = "ALLHANDS_TUNING";
/// The variable that names a machine, or a machine file.
pub(super) const MACHINE: &str = "ALLHANDS_MACHINE";

/// What the files say that the user names, for rank 0 to tell all.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Texts {
    pub(crate) tuning: Option<String>,
    /// What was learned earlier, where no tuning file is named.
    pub(crate) learned: Option<String>,
    pub(crate) machine: Option<String>,
}

impl Texts {
    /// Those that the environment names; a warning for one that cannot be read.
    pub(crate) fn named() -> Texts {
        let used = |variable: &str, read: fn(&OsStr) -> std::result::Result<String, String>| {
            read(&named(variable)?).map_err(|fact| warn(variable, &fact)).ok()
        };
        // `allhands tune` writes the machine beside what it has measured there.
        let beside = named(TUNING).filter(|_| named(MACHINE).is_none());
        let beside = beside.and_then(|tuning| std::fs::read_to_string(machine_file(Path::new(&tuning))).ok());
        Texts { tuning: used(TUNING, file), learned: None, machine: beside.or_else(|| used(MACHINE, machine)) }
    }
}

/// Whether what `ALLHANDS_TUNING` and `ALLHANDS_MACHINE` name in this process can be read: the variable, and what is wrong with it.
///
/// ```
/// // In an environment without these variables nothing is wrong.
/// assert_eq!(allhands::raw::check_named(), Ok(()));
/// ```
pub fn check_named() -> std::result::Result<(), (&'static str, String)> {
    if let Some(name) = named(TUNING) {
        file(&name).and_then(|text| tuning(&text, None)).map_err(|fact| (TUNING, fact))?;
    }
    if let Some(name) = named(MACHINE) {
        let parsed = machine(&name).and_then(|text| Machine::parse(&text).map_err(|error| error.to_string()));
        parsed.map_err(|fact| (MACHINE, fact))?;
    }
    Ok(())
}

/// What a variable names, if it is set to something.
fn named(variable: &str) -> Option<OsString> {
    std::env::var_os(variable).filter(|named| !named.is_empty())
}

fn file(path: &OsStr) -> std::result::Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// The text of a machine that comes along, or of a file.
fn machine(name: &OsStr) -> std::result::Result<String, String> {
    match is_path(Path::new(name)) {
        true => file(name),
        false => Machine::shipped_text(&name.to_string_lossy()).map(Into::into).map_err(|error| error.to_string()),
    }
}

/// The machine file that belongs to a tuning file: `here.machine.toml` beside `here.toml`.
///
/// ```
/// assert_eq!(allhands::machine_file("tuned/here.toml".as_ref()).to_str(), Some("tuned/here.machine.toml"));
/// ```
pub fn machine_file(tuning: &Path) -> PathBuf {
    tuning.with_extension("machine.toml")
}

/// A name of a machine has neither directories nor an ending.
fn is_path(name: &Path) -> bool {
    name.extension().is_some() || name.components().count() > 1
}

pub(super) fn warn(variable: &str, fact: &str) {
    crate::log::say(unused(variable, fact));
}

pub(super) fn unused(variable: &str, fact: &str) -> String {
    format!("what {variable} names is not used: {fact}")
}

/// The tuning that a text holds; or what is wrong with it.
pub(super) fn tuning(text: &str, transport: Option<&str>) -> std::result::Result<Tuning, String> {
    let tuning: Tuning = text.parse().map_err(|error: crate::tuning::TuningError| error.to_string())?;
    match transport.filter(|transport| *transport != tuning.transport) {
        None => Ok(tuning),
        Some(here) => {
            let made = &tuning.transport;
            Err(format!("it was made for {made}, but this is {here}; make one with `allhands tune`"))
        }
    }
}
