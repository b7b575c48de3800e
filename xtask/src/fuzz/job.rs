//! Jobs that run scripts.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::script::{self, Script, Setting};
use crate::Result;
use crate::launch::launch;
use crate::libraries::Library;
use crate::preload;

const SOURCES: [&str; 8] =
    ["main", "data", "pending", "collectives", "messages", "communicators", "topologies", "shared"];
const FOLDER: &str = "crates/preload/tests/fuzz";

/// Without us, and at least with us, a script may take so long on two busy cores.
pub(super) const GENEROUS: Duration = Duration::from_secs(60);

/// So often a launcher may be tried.
const LAUNCHES: usize = 3;

/// The interpreter for one MPI.
pub(super) struct Program<'a> {
    allhands: PathBuf,
    library: &'a Library,
    file: PathBuf,
    scripts: PathBuf,
}

/// What became of scripts that ran one after the other.
pub(super) struct Outcome {
    /// So many ended well.
    pub(super) passed: usize,
    /// Of those, how long the slowest took.
    pub(super) slowest: Duration,
    pub(super) verdict: Verdict,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Passed,
    /// What was said.
    Failed(String),
}

/// For a script that takes so long without us.
pub(super) fn deadline(time: Duration) -> Duration {
    GENEROUS.max(20 * time)
}

/// The interpreter, compiled for a library.
pub(super) fn compiled(library: &Library) -> Result<PathBuf> {
    library.compile_several("fuzz", &SOURCES.map(|source| format!("{FOLDER}/{source}.c")))
}

impl<'a> Program<'a> {
    pub(super) fn new(allhands: &Path, library: &'a Library, file: PathBuf, folder: &Path) -> Program<'a> {
        let scripts = folder.join(format!("scripts-{}.txt", library.name));
        Program { allhands: allhands.into(), library, file, scripts }
    }

    pub(super) fn without(&self, setting: &Setting, scripts: &[Script], most: Duration) -> Result<Outcome> {
        self.run(|| preload::without(self.library, setting.ranks), setting, scripts, most)
    }

    pub(super) fn with(&self, setting: &Setting, scripts: &[Script], most: Duration) -> Result<Outcome> {
        let launcher = || {
            let mut command = preload::exec(&self.allhands, self.library, setting.ranks, &[]);
            command.envs(setting.variables.iter().map(|(name, value)| (name, value)));
            command
        };
        self.run(launcher, setting, scripts, most)
    }

    fn run(
        &self,
        launcher: impl Fn() -> Command,
        setting: &Setting,
        scripts: &[Script],
        most: Duration,
    ) -> Result<Outcome> {
        std::fs::write(&self.scripts, script::written(setting, scripts, ""))
            .map_err(|error| format!("{} cannot be written: {error}", self.scripts.display()))?;
        let command = || {
            let mut command = launcher();
            command.arg(&self.file).arg(&self.scripts).arg(most.as_secs().to_string());
            // Open MPI 5.0 adds INT8 wrongly with these.
            command.env("OMPI_MCA_op", "^avx");
            command
        };
        // Each script has the time; the ranks themselves say where they are when it is over.
        let mut tries = 0;
        let ended = loop {
            tries += 1;
            let ended = launch(command(), most * scripts.len() as u32 + GENEROUS)?;
            // On a busy machine a launcher may fail before there is a rank, which says which script it begins.
            if tries == LAUNCHES || ended.status.is_some_and(|status| status.success()) || ended.out.contains("script ")
            {
                break ended;
            }
        };
        let times: Vec<Duration> = ended.out.lines().filter_map(time).collect();
        let whole = ended.status.is_some_and(|status| status.success())
            && ended.left.is_empty()
            && ended.out.contains(&format!("fuzz: {} ranks, all right", setting.ranks));
        let slowest = times.iter().max().copied().unwrap_or_default();
        if whole && times.len() == scripts.len() {
            return Ok(Outcome { passed: scripts.len(), slowest, verdict: Verdict::Passed });
        }
        // Should the end of the job fail, then its last script has.
        let passed = times.len().min(scripts.len() - 1);
        let told: Vec<&str> = ended.err.lines().filter(|line| !line.trim().is_empty()).collect();
        let ours: Vec<&str> = told.iter().copied().filter(|line| line.starts_with("fuzz:")).collect();
        let told = if ours.is_empty() { &told[..told.len().min(12)] } else { &ours[..] };
        let status = ended.status.map_or("still running".into(), |status| status.to_string());
        let said = format!("{status}\n{}", told.join("\n"));
        Ok(Outcome { passed, slowest, verdict: Verdict::Failed(said) })
    }
}

/// Of a line such as `ended 17 after 0.012`.
fn time(line: &str) -> Option<Duration> {
    let (_, seconds) = line.strip_prefix("ended ")?.split_once(" after ")?;
    Duration::try_from_secs_f64(seconds.parse().ok()?).ok()
}
