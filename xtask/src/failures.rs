//! `cargo xtask failures`: what happens when things go wrong. Every job ends, says why, and leaves nothing behind.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::conformance::{Args, build, example};
use crate::launch::{Ended, Job, kill, launch};
use crate::libraries::Library;
use crate::{Result, mpi};

/// How long a launcher may take to notice.
const MOST: Duration = Duration::from_secs(60);

pub(crate) fn by_hand(args: &Args) -> Result<()> {
    mpi::install()?;
    run(&build()?, &args.libraries()?)
}

pub(crate) fn run(program: &Path, libraries: &[Library]) -> Result<()> {
    let borrowed = example("borrowed")?;
    for library in libraries {
        // Early and late: while plans are made, and while they run.
        for after in [Duration::from_millis(50), Duration::from_millis(1500)] {
            killed_rank(program, library, after)?;
        }
        missing_library(program, library)?;
        wrong_settings(program, &borrowed, library)?;
    }
    no_launcher(program)?;
    let find = |name: &str| libraries.iter().find(|library| library.name == name);
    if let (Some(openmpi), Some(mpich)) = (find("openmpi"), find("mpich")) {
        wrong_launcher(program, openmpi, mpich)?;
        wrong_launcher(program, mpich, openmpi)?;
    }
    Ok(())
}

/// A rank is killed in the middle of collectives: the job ends, none of its processes stays, and no shared memory of ours.
fn killed_rank(program: &Path, library: &Library, after: Duration) -> Result<()> {
    const RANKS: usize = 4;
    let before = shared_files();
    let mut command = library.command(RANKS, program);
    command.arg("--forever").env("ALLHANDS_TOPOLOGY", "2x2");
    let job = Job::start(command)?;
    let title = library.title;
    let ranks = match processes_of(&job, RANKS) {
        Some(ranks) => ranks,
        None => {
            let ended = job.wait(Duration::ZERO);
            return Err(ended.fault(&format!("{title}: the ranks of an endless job did not tell their processes")));
        }
    };
    std::thread::sleep(after);
    kill(&[ranks[1]]);
    let ended = job.wait(MOST);
    // MPICH's launcher reports on the standard output, after what the ranks printed there.
    let reported = ended.out.lines().any(|line| !line.trim().is_empty() && !line.starts_with("rank "));
    refused(&ended, reported, &format!("{title}: after a rank was killed"))?;
    if !ended.left.is_empty() {
        return Err(ended.fault(&format!("{title}: processes {:?} outlived a rank that was killed", ended.left)));
    }
    let new: Vec<String> = shared_files().difference(&before).cloned().collect();
    let (ours, theirs): (Vec<_>, Vec<_>) = new.into_iter().partition(|name| name.contains("allhands"));
    if !ours.is_empty() {
        return Err(ended.fault(&format!("{title}: a rank that was killed left {ours:?} in /dev/shm")));
    }
    let note = if theirs.is_empty() { String::new() } else { format!("; the MPI itself left {theirs:?} in /dev/shm") };
    eprintln!(
        "xtask: {title}: a killed rank ends the job in {:.1} s{note}",
        (ended.time.saturating_sub(after)).as_secs_f64()
    );
    Ok(())
}

/// The processes of the ranks, in rank order, once all have told them.
fn processes_of(job: &Job, ranks: usize) -> Option<Vec<u32>> {
    let deadline = Instant::now() + Duration::from_secs(20);
    while Instant::now() < deadline {
        let printed = job.printed();
        let process = |rank: usize| {
            let (_, rest) = printed.split_once(&format!("rank {rank} is process "))?;
            // A number is whole when something follows it.
            let end = rest.find(|letter: char| !letter.is_ascii_digit())?;
            rest[..end].parse().ok()
        };
        let known: Vec<u32> = (0..ranks).filter_map(process).collect();
        if known.len() == ranks {
            return Some(known);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    None
}

fn shared_files() -> BTreeSet<String> {
    let files = std::fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    files.map(|file| file.file_name().to_string_lossy().into_owned()).collect()
}

/// `ALLHANDS_MPI` names a file that is not there, under a launcher.
fn missing_library(program: &Path, library: &Library) -> Result<()> {
    let mut command = library.command(2, program);
    command.env("ALLHANDS_MPI", MISSING);
    let ended = launch(command, MOST)?;
    let title = library.title;
    refused(&ended, false, &format!("{title}: without its library"))?;
    names_the_file(&ended, title)
}

/// The same without a launcher.
fn no_launcher(program: &Path) -> Result<()> {
    let mut command = Command::new(program);
    command.env("ALLHANDS_MPI", MISSING);
    let ended = launch(command, MOST)?;
    refused(&ended, false, "without MPI")?;
    names_the_file(&ended, "no launcher")
}

const MISSING: &str = "/nowhere/libmpi.so.12";

fn names_the_file(ended: &Ended, title: &str) -> Result<()> {
    let both = [ended.out.as_str(), ended.err.as_str()].concat();
    if !both.contains(MISSING) {
        return Err(ended.fault(&format!("{title}: the message does not name the library that is missing")));
    }
    eprintln!("xtask: {title}: a missing library is named");
    Ok(())
}

/// The library of one MPI under the launcher of another: every rank would believe to be alone.
fn wrong_launcher(program: &Path, library: &Library, launcher: &Library) -> Result<()> {
    let mut command = launcher.command(2, program);
    command.env("ALLHANDS_MPI", &library.file).args(["--cases", "1"]);
    let ended = launch(command, MOST)?;
    let what = format!("{} under the launcher of {}", library.title, launcher.title);
    refused(&ended, false, &what)?;
    eprintln!("xtask: {what}: refused");
    Ok(())
}

/// Seats for other ranks than there are, a progress thread where MPI was started for one thread, and words that mean nothing.
fn wrong_settings(program: &Path, borrowed: &Path, library: &Library) -> Result<()> {
    let cases: [(&Path, &str, &str, &str); 3] = [
        (program, "ALLHANDS_TOPOLOGY", "3x3", "has 9 seats, but there are 2 ranks"),
        (program, "ALLHANDS_PROGRESS", "hope", "ALLHANDS_PROGRESS=hope is not understood"),
        (borrowed, "ALLHANDS_PROGRESS", "thread", "but MPI_THREAD_MULTIPLE is needed"),
    ];
    let title = library.title;
    for (program, name, value, says) in cases {
        let mut command = library.command(2, program);
        command.env(name, value);
        let ended = launch(command, MOST)?;
        let what = format!("{title} with {name}={value}");
        refused(&ended, false, &what)?;
        if !ended.err.contains(says) {
            return Err(ended.fault(&format!("{what}: it does not say: {says}")));
        }
    }
    eprintln!("xtask: {title}: wrong settings are refused");
    Ok(())
}

/// Ended in time, not with success, and not without a word: on the standard error, if it was not `reported` elsewhere.
fn refused(ended: &Ended, reported: bool, what: &str) -> Result<()> {
    let fact = match ended.status {
        None => "it hangs",
        Some(status) if status.success() => "it succeeds",
        Some(_) if !reported && ended.err.trim().is_empty() => "it says nothing",
        Some(_) => return Ok(()),
    };
    Err(ended.fault(&format!("{what}: {fact}")))
}
