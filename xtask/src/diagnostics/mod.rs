//! `cargo xtask diagnostics`: what the preload says of programs that go wrong, or that are to be compared, on three MPIs.

mod containers;
mod counted;
mod settings;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::conformance::Args;
use crate::launch::{Ended, Job, launch};
use crate::libraries::Library;
use crate::{Result, build, mpi};

const RANKS: usize = 3;

/// More than any of these jobs needs on two busy cores.
const MOST: Duration = Duration::from_secs(60);

/// Calls that differ between ranks, and what is said of them.
const DIFFERENT: [(&str, &str); 19] = [
    ("counts", "rank 1 called MPI_Allreduce(5 x double, sum) where rank 0 called MPI_Allreduce(4 x double, sum)"),
    ("roots", "rank 1 called MPI_Bcast(root 2, 16 bytes) where rank 0 called MPI_Bcast(root 0, 16 bytes)"),
    (
        "collectives",
        "rank 1 called MPI_Reduce(root 1, 4 x double, sum) where rank 0 called MPI_Bcast(root 0, 16 bytes)",
    ),
    ("operations", "rank 1 called MPI_Allreduce(4 x double, max) where rank 0 called MPI_Allreduce(4 x double, sum)"),
    ("types", "rank 1 called MPI_Allreduce(4 x float, sum) where rank 0 called MPI_Allreduce(4 x int, sum)"),
    (
        "passed",
        "rank 1 called MPI_Allreduce(4 x double, an operation of the user's) where rank 0 called MPI_Allreduce(4 x double, max)",
    ),
    (
        "refused",
        "rank 1 called MPI_Bcast(root 0, -4 bytes, an argument that MPI refuses) where rank 0 called MPI_Bcast(root 0, 16 bytes)",
    ),
    (
        "blocks",
        "rank 1 called MPI_Reduce_scatter(1+3+2 x double, sum) where rank 0 called MPI_Reduce_scatter(1+2+3 x double, sum)",
    ),
    (
        "gathered",
        "rank 1 called MPI_Allgatherv(sends 4 bytes, 4+8+12 bytes, an argument that MPI refuses) where rank 0 called MPI_Allgatherv(4+8+12 bytes)",
    ),
    ("begun", "rank 1 called MPI_Bcast(root 0, 16 bytes) where rank 0 called MPI_Ibcast(root 0, 16 bytes)"),
    ("exchanged", "rank 2 expects 4 bytes from rank 1 in MPI_Alltoallv where rank 1 sends it 8"),
    ("typed", "rank 2 expects 4 bytes from rank 1 in MPI_Alltoallw where rank 1 sends it 8"),
    ("collected", "rank 1 called MPI_Gather(root 0, 8 bytes) where rank 0 called MPI_Gather(root 0, 4 bytes)"),
    ("gatherv", "rank 0 expects 4 bytes from rank 1 in MPI_Gatherv where rank 1 sends it 8"),
    ("scatterv", "rank 1 expects 8 bytes from rank 0 in MPI_Scatterv where rank 0 sends it 4"),
    ("neighbors", "rank 0 expects 4 bytes from rank 1 in MPI_Neighbor_allgather where rank 1 sends it 8"),
    ("edges", "rank 2 expects 0 bytes from rank 1 in MPI_Neighbor_alltoallv where rank 1 sends it 4"),
    ("summed", "rank 1 called MPI_Scan(2 x float, sum) where rank 0 called MPI_Scan(2 x double, sum)"),
    (
        "part",
        "rank 1 (of the world 2) called MPI_Bcast(root 0, 8 bytes) where rank 0 (of the world 1) called MPI_Bcast(root 0, 4 bytes)",
    ),
];

pub(crate) fn by_hand(args: &Args) -> Result<()> {
    mpi::install()?;
    run(&args.libraries()?)
}

pub(crate) fn run(libraries: &[Library]) -> Result<()> {
    let begun = Instant::now();
    let exec = build::command()?;
    for library in libraries.iter().filter(|library| library.is_native()) {
        let program = library.compile("xtask/src/diagnostics/mistakes.c")?;
        let subject = Subject { exec: &exec, library, program: &program, ranks: RANKS };
        subject.settings()?;
        subject.tuned_elsewhere()?;
        subject.written()?;
        // MPICH does not start under Open MPI's.
        let hydra = libraries.iter().find(|launcher| launcher.name == "mpich" && library.name == "openmpi");
        if let Some(hydra) = hydra {
            subject.launched_by(hydra)?;
        }
        subject.counted()?;
        for (case, sentence) in DIFFERENT {
            subject.different(case, sentence)?;
        }
        subject.right()?;
        for check in ["0", "1"] {
            subject.late(check)?;
        }
        subject.compared()?;
        subject.containers()?;
        eprintln!("xtask: {}: the preload tells what it should", library.title);
    }
    eprintln!("xtask: what the preload tells in {:.0} s", begun.elapsed().as_secs_f64());
    Ok(())
}

/// What the jobs are made of.
struct Subject<'a> {
    exec: &'a Path,
    library: &'a Library,
    program: &'a Path,
    ranks: usize,
}

impl Subject<'_> {
    fn command(&self, words: &[&str], settings: &[(&str, &str)]) -> Command {
        let mut command = self.library.command(self.ranks, self.exec);
        command.arg("exec").arg(self.program).args(words).env_remove("LD_PRELOAD");
        for name in ["", "_ALGORITHM", "_REPORT", "_TUNING", "_TOPOLOGY", "_CHECK", "_TIMEOUT", "_COMPARE", "_LOG"] {
            command.env_remove(format!("ALLHANDS{name}"));
        }
        command.envs(settings.iter().copied());
        command
    }

    /// Where a report goes; there is none yet.
    fn report(&self, name: &str) -> String {
        let path = mpi::root().join(format!("target/tells-{}-{name}", self.library.name));
        let _ = std::fs::remove_file(&path);
        path.to_string_lossy().into_owned()
    }

    fn title(&self, what: &str) -> String {
        format!("{}, {what}", self.library.title)
    }

    /// The job ends with an error, and one sentence says why.
    fn different(&self, case: &str, sentence: &str) -> Result<()> {
        let ended = launch(self.command(&[case], &[("ALLHANDS_CHECK", "1")]), MOST)?;
        let title = self.title(&format!("ALLHANDS_CHECK with different {case}"));
        let fact = match ended.status {
            None => "it hangs",
            Some(status) if status.success() => "it succeeds",
            Some(_) if ended.out.contains("done") => "it goes on",
            Some(_) if says(&ended).collect::<Vec<_>>() != [sentence] => "it says something else",
            Some(_) => return Ok(()),
        };
        Err(ended.fault(&format!("{title}: {fact}, and should say: {sentence}")))
    }

    /// What MPI allows is not found fault with.
    fn right(&self) -> Result<()> {
        let ended = launch(self.command(&["right"], &[("ALLHANDS_CHECK", "1"), ("ALLHANDS_TIMEOUT", "50")]), MOST)?;
        succeeded(&ended, &self.title("ALLHANDS_CHECK on calls that are right"))?;
        match says(&ended).next() {
            None => Ok(()),
            Some(_) => Err(ended.fault(&self.title("ALLHANDS_CHECK complains of calls that are right"))),
        }
    }

    /// The last rank comes only when somebody has said that it is missing.
    fn late(&self, check: &str) -> Result<()> {
        let title = self.title("ALLHANDS_TIMEOUT");
        let come = mpi::root().join(format!("target/tells-{}-come", self.library.name));
        let _ = std::fs::remove_file(&come);
        let words = ["late", &come.to_string_lossy()];
        let job = Job::start(self.command(&words, &[("ALLHANDS_TIMEOUT", "0.2"), ("ALLHANDS_CHECK", check)]))?;
        let sentence = "MPI_Allreduce(1 x double, sum) on 3 ranks has not completed within 200ms: ";
        let deadline = Instant::now() + MOST;
        while !job.said().contains(sentence) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        std::fs::write(&come, "").map_err(|error| format!("{}: {error}", come.display()))?;
        let ended = job.wait(MOST);
        succeeded(&ended, &title)?;
        let mut told = says(&ended).filter(|line| line.starts_with(sentence));
        let missing = "rank 2 has not arrived, being in no collective";
        match (told.next(), told.next()) {
            (Some(line), None) if line.ends_with(missing) && line.contains("have arrived; ") => Ok(()),
            _ => Err(ended.fault(&format!("{title}: it does not say, once: {sentence}..., {missing}"))),
        }
    }

    /// Both sides have served, and the report says how fast they were.
    fn compared(&self) -> Result<()> {
        let report = mpi::root().join(format!("target/tells-{}.json", self.library.name));
        let _ = std::fs::remove_file(&report);
        let path = report.to_string_lossy();
        let log = mpi::root().join(format!("target/tells-{}.log", self.library.name));
        let _ = std::fs::remove_file(&log);
        let settings = [
            ("ALLHANDS_COMPARE", "1"),
            ("ALLHANDS_REPORT", &*path),
            ("ALLHANDS_LOG", &log.to_string_lossy()),
            ("ALLHANDS_ALGORITHM", "allreduce=recursive-doubling"),
            // How fast the machine is would be a line of its own.
            ("ALLHANDS_LEARN", "off"),
        ];
        let ended = launch(self.command(&["often"], &settings), MOST)?;
        let title = self.title("ALLHANDS_COMPARE");
        succeeded(&ended, &title)?;
        let text = std::fs::read_to_string(&report).map_err(|error| format!("{title}: {path}: {error}"))?;
        let text: String = text.split_whitespace().collect();
        // 40 calls of three sizes, of which the first two of a size do not count.
        for (bytes, ours, mpi) in [(8, 18, 18), (16, 18, 15), (32, 18, 15)] {
            let compared = format!(r#"{{"collective":"allreduce","up_to_bytes":{bytes},"ours":{{"calls":{ours},"#);
            let (_, rest) = text
                .split_once(&compared)
                .ok_or_else(|| ended.fault(&format!("{title}: there is no {compared} in {text}")))?;
            if !rest.split_once('}').is_some_and(|(_, rest)| rest.starts_with(&format!(r#","mpi":{{"calls":{mpi},"#))) {
                return Err(ended.fault(&format!("{title}: there is no side of the MPI's after {compared} in {text}")));
            }
        }
        logged(&log, &title)
    }
}

/// One line for each shape of call.
fn logged(log: &Path, title: &str) -> Result<()> {
    let text = std::fs::read_to_string(log).map_err(|error| format!("{title}: {}: {error}", log.display()))?;
    let line = |bytes| format!("allreduce of {bytes} bytes on 3 ranks: recursive-doubling (the caller's wish)");
    match text.lines().eq([8, 16, 24].map(line)) {
        true => Ok(()),
        false => Err(format!("{title}: ALLHANDS_LOG says something else:\n{text}")),
    }
}

fn succeeded(ended: &Ended, title: &str) -> Result<()> {
    let success = ended.status.is_some_and(|status| status.success()) && ended.out.contains("done");
    if success { Ok(()) } else { Err(ended.fault(&format!("{title}: it fails"))) }
}

/// What the preload has said. Launchers print on the same stream, some without ending their lines.
fn says(ended: &Ended) -> impl Iterator<Item = &str> {
    ended.err.lines().filter_map(|line| Some(line.split_once("allhands: ")?.1.trim_end()))
}
