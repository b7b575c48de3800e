//! What containers keep from ranks: jobs run right all the same, by a slower way or by their MPI, and the report and the doctor say why.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{MOST, Subject, succeeded};
use crate::Result;
use crate::launch::{Ended, launch};
use crate::libraries::compile_alone;

const PROGRAM: &str = "xtask/src/diagnostics/contained.c";
const REFUSE: &str = "crates/preload/tests/programs/refuse.c";

/// Ranks that all have the same kept from them, and the beginning of what is said.
const KEPT: [([&str; 2], &str); 4] = [
    (
        ["EPERM", "process_vm_readv,process_vm_writev"],
        "ranks may not read each other's memory (process_vm_readv: Operation not permitted)",
    ),
    (
        ["ENOSYS", "process_vm_readv,process_vm_writev"],
        "ranks may not read each other's memory (process_vm_readv: Function not implemented)",
    ),
    (
        ["EPERM", "process_vm_readv,process_vm_writev,memfd_create"],
        "ranks of a machine share no memory (memfd_create: Operation not permitted)",
    ),
    // More than any MPI needs: what is beyond its limit ends it.
    (["EFBIG", "68719476736"], "ranks of a machine share no memory (memfd_create: File too large)"),
];

/// Words of a block, at most: some messages are long, or none is.
const LONG: &str = "32768";
const SHORT: &str = "512";

/// MPICH's own messages need what is refused here, unless it is told so.
const TELL_MPICH: (&str, &str) = ("MPIR_CVAR_CH4_CMA_ENABLE", "0");

/// A container for each rank, and one whose `/dev/shm` is as small as docker's; for who may have them.
const OWN_NAMESPACE: [&str; 2] = ["unshare", "-Ur"];
const SMALL: &str = "mount -t tmpfs -o size=64m tmpfs /dev/shm && exec \"$@\"";

impl Subject<'_> {
    pub(super) fn containers(&self) -> Result<()> {
        let refuse = compile_alone(REFUSE)?;
        let program = self.library.compile(PROGRAM)?;
        let subject = Subject { program: &program, ..*self };
        let words = |of: [&str; 2]| [vec![refuse.clone().into()], of.map(OsString::from).to_vec()].concat();
        for (of, fact) in KEPT {
            subject.kept(&[words(of)], fact)?;
        }
        // Some ranks only: all must go the same way.
        for (of, fact) in [KEPT[0], KEPT[2]] {
            subject.kept(&[Vec::new(), words(of)], fact)?;
        }
        if available(&OWN_NAMESPACE) {
            subject
                .kept(&[OWN_NAMESPACE.map(OsString::from).to_vec()], "ranks of a machine share no memory (/proc: ")?;
        }
        subject.small_shm()?;
        if self.library.name == "mpich" {
            subject.untold(&words(KEPT[0].0), KEPT[0].1)?;
            subject.secluded(&words(KEPT[2].0))?;
        }
        subject.doctor(&refuse)
    }

    /// A job of which each part is begun by some words; the report says this.
    fn kept(&self, parts: &[Vec<OsString>], fact: &str) -> Result<()> {
        self.told(self.begun_by(parts, LONG), &self.title(&format!("{parts:?}")), fact)
    }

    /// A job whose report says what is refused, with a remedy, and that it was served all the same.
    fn told(&self, command: Command, title: &str, fact: &str) -> Result<()> {
        let (ended, report) = self.contained(command, title)?;
        let obstacles = report["obstacles"].as_array().cloned().unwrap_or_default();
        let said = |obstacle: &Value| obstacle["fact"].as_str().is_some_and(|said| said.starts_with(fact));
        let all = !obstacles.is_empty() && obstacles.iter().all(|one| said(one) && one["remedy"].is_string());
        let ours = report["rows"].as_array().is_some_and(|rows| rows.iter().any(|row| !row["algorithm"].is_null()));
        match all && ours {
            true => Ok(()),
            false => Err(ended.fault(&format!("{title}: the report does not say: {fact}\n{report:#}"))),
        }
    }

    /// What `/dev/shm` has is the MPI's affair.
    fn small_shm(&self) -> Result<()> {
        if !available(&["unshare", "-m"]) {
            return Ok(());
        }
        let title = self.title("a small /dev/shm");
        let inner = self.begun_by(&[Vec::new()], LONG);
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", SMALL, "sh"]).arg(inner.get_program()).args(inner.get_args());
        command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let (ended, report) = self.contained(command, &title)?;
        match report["obstacles"].as_array().is_some_and(Vec::is_empty) {
            true => Ok(()),
            false => Err(ended.fault(&format!("{title}: the report speaks of obstacles\n{report:#}"))),
        }
    }

    /// MPICH does not know that its long messages will fail; ours go through memory, and it is not tried beside them.
    fn untold(&self, words: &[OsString], fact: &str) -> Result<()> {
        let mut command = self.begun_by(&[words.to_vec()], LONG);
        command.env_remove(TELL_MPICH.0).env("ALLHANDS_LEARN", "off");
        self.told(command, &self.title("messages that fail"), fact)
    }

    /// Where neither memory nor messages carry anything long, the MPI serves the job, which is said.
    fn secluded(&self, words: &[OsString]) -> Result<()> {
        let title = self.title("neither memory nor messages");
        let mut command = self.begun_by(&[words.to_vec()], SHORT);
        command.env_remove(TELL_MPICH.0);
        let (ended, report) = self.contained(command, &title)?;
        let rows = report["rows"].as_array().cloned().unwrap_or_default();
        let why = "long messages of MPICH Version: ";
        let theirs = |row: &Value| row["algorithm"].is_null();
        let told = |row: &Value| row["passed"].as_str().is_some_and(|passed| passed.contains(why));
        match rows.iter().all(theirs) && rows.iter().any(told) {
            true => Ok(()),
            false => Err(ended.fault(&format!("{title}: the report does not say that the MPI served\n{report:#}"))),
        }
    }

    /// The doctor finds the MPI by its launcher, tries it, and says what is refused.
    fn doctor(&self, refuse: &Path) -> Result<()> {
        let verdict = "a job of this MPI would be served";
        let refused = "slower  ranks may not read each other's memory";
        for (words, said, last) in [
            (vec![], "ok      a job of 2 ranks on 1 machine", verdict),
            (KEPT[0].0.to_vec(), refused, "a job of this MPI would be served, slower than it could be"),
        ] {
            let title = self.title(&format!("allhands doctor {words:?}"));
            let mut command = match words.is_empty() {
                true => self.library.alone(self.exec),
                false => self.library.alone(refuse),
            };
            command.args(&words).args((!words.is_empty()).then_some(self.exec)).arg("doctor");
            command.env(TELL_MPICH.0, TELL_MPICH.1).env_remove("LD_PRELOAD");
            let ended = launch(command, MOST)?;
            let end = ended.out.lines().last().unwrap_or_default();
            // A machine with one core, or with little memory, is slower as it is.
            let judged = end == last || (end.starts_with(verdict) && words.is_empty());
            if !(ended.status.is_some_and(|status| status.success()) && ended.out.contains(said) && judged) {
                return Err(ended.fault(&format!("{title}: it does not say: {said}, and: {last}")));
            }
        }
        Ok(())
    }

    /// The program on all ranks, one rank in each part and the rest in the last, under `allhands exec` and what comes before it.
    fn begun_by(&self, parts: &[Vec<OsString>], most: &str) -> Command {
        let of = |(index, before): (usize, &Vec<OsString>)| {
            let ranks = if index + 1 < parts.len() { 1 } else { self.ranks - index };
            let program = [self.exec.into(), "exec".into(), self.program.into(), most.into()];
            (ranks, [before.clone(), program.to_vec()].concat())
        };
        let mut command = self.library.several(&parts.iter().enumerate().map(of).collect::<Vec<_>>());
        command.env(TELL_MPICH.0, TELL_MPICH.1).env_remove("LD_PRELOAD");
        command
    }

    /// A job that is right, and its report.
    fn contained(&self, mut command: Command, title: &str) -> Result<(Ended, Value)> {
        let path = self.report("contained.json");
        command.env("ALLHANDS_REPORT", &path);
        let ended = launch(command, MOST)?;
        succeeded(&ended, title)?;
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{title}: {path}: {error}"))?;
        let report = serde_json::from_str(&text).map_err(|error| format!("{title}: {path}: {error}"))?;
        Ok((ended, report))
    }
}

/// Whether a program can be begun by these words here.
fn available(words: &[&str]) -> bool {
    let tried = Command::new(words[0]).args(&words[1..]).arg("true").output();
    let can = tried.is_ok_and(|tried| tried.status.success());
    if !can {
        eprintln!("xtask: no jobs under {}, which is not permitted here", words.join(" "));
    }
    can
}
