//! Jobs whose ranks are not alike: some without us, switched off, or set differently. Each ends with the right results, and says a sentence at
//! most; none hangs.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use super::{clean, promise};
use crate::launch::launch;
use crate::libraries::Library;
use crate::{Result, mpi};

const MOST: Duration = Duration::from_secs(60);

/// What the first part's ranks have, and what the other's have: settings, and whether they run under us.
const JOBS: [(&str, Part, Part); 7] = [
    ("the first rank without us", BARE, US),
    ("the last rank without us", US, BARE),
    ("the first rank switched off", Part { setting: Some(("ALLHANDS", "off")), ..US }, US),
    ("the last rank switched off", US, Part { setting: Some(("ALLHANDS", "off")), ..US }),
    ("two topologies", Part { setting: Some(("ALLHANDS_TOPOLOGY", "3x1")), ..US }, US),
    (
        "two other topologies",
        Part { setting: Some(("ALLHANDS_TOPOLOGY", "3x1")), ..US },
        Part { setting: Some(("ALLHANDS_TOPOLOGY", "1,2")), ..US },
    ),
    ("a tuning file on the last rank only", US, Part { setting: Some(("ALLHANDS_TUNING", "tuning")), ..US }),
];

#[derive(Clone, Copy)]
struct Part {
    under_us: bool,
    setting: Option<(&'static str, &'static str)>,
}

const US: Part = Part { under_us: true, setting: None };
const BARE: Part = Part { under_us: false, setting: None };

pub(super) fn run(allhands: &Path, library: &Library) -> Result<()> {
    let program = library.compile("crates/preload/tests/programs/mixed.c")?;
    let mut faults = Vec::new();
    for (what, first, rest) in JOBS {
        let words = |part: Part| -> Vec<OsString> {
            let mut words: Vec<OsString> = Vec::new();
            if let Some((name, value)) = part.setting {
                let value = if value == "tuning" { tuning() } else { value.into() };
                words.extend(["env".into(), format!("{name}={value}").into()]);
            }
            if part.under_us {
                words.extend([allhands.into(), "exec".into()]);
            }
            words.push((&program).into());
            words
        };
        let mut command = library.several(&[(1, words(first)), (2, words(rest))]);
        clean(&mut command);
        let title = format!("{}, a job with {what}", library.title);
        let ended = launch(command, MOST)?;
        let said: Vec<&str> = ended.err.lines().filter(|line| !line.trim().is_empty()).collect();
        let outcome = promise::ended_well(&ended, "mixed", 3, &title);
        match outcome {
            Ok(()) if said.len() > 1 => faults.push(format!("{title} said more than a sentence:\n{}", said.join("\n"))),
            Ok(()) => eprintln!("xtask: {title}: {:.1} s; {}", ended.time.as_secs_f64(), said.join("")),
            Err(fault) => faults.push(fault),
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
}

/// A tuning file of a few measurements.
fn tuning() -> String {
    mpi::root().join("crates/preload/tests/programs/mixed-tuning.toml").display().to_string()
}
