//! `cargo xtask fuzz`: random legal MPI programs, with and without us. What goes well without us and fails or hangs with us is a finding.

mod job;
mod script;
mod shrink;

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use self::job::{Program, Verdict};
use self::script::{Algorithms, Script, Setting, TOGETHER};
use crate::libraries::{self, Library};
use crate::preload::{SERVED, algorithms};
use crate::{Result, build, mpi};

/// Scripts that failed once.
const FOUND: &str = "crates/preload/tests/fuzz/found";

/// What CI runs on each MPI: seeds that were drawn once.
const IN_CI: [u64; 3] = [1_000_000, 1_000_160, 1_000_224];

/// Of each job of those.
const SCRIPTS_IN_CI: u64 = 12;

/// The collectives among neighbours that have algorithms.
const AMONG_NEIGHBORS: [&str; 4] =
    ["neighbor_allgather", "neighbor_allgatherv", "neighbor_alltoall", "neighbor_alltoallv"];

/// What is to be run.
pub(crate) struct Args {
    library: Option<String>,
    seconds: Option<u64>,
    seed: Option<u64>,
    ranks: Option<usize>,
    found: bool,
    /// What fails without us is made shorter, too.
    theirs: bool,
    /// Lines with such words are left out: what is known to fail.
    known: Vec<String>,
}

impl Args {
    /// `[LIBRARY] [--seconds N] [--seed S] [--ranks R] [--found] [--theirs] [--without WORD]...`, in any order.
    pub(crate) fn parse(words: &[&str]) -> Option<Args> {
        let mut args =
            Args { library: None, seconds: None, seed: None, ranks: None, found: false, theirs: false, known: vec![] };
        let mut words = words.iter();
        while let Some(&word) = words.next() {
            match word {
                "--seconds" => args.seconds = Some(words.next()?.parse().ok()?),
                "--seed" => args.seed = Some(words.next()?.parse().ok()?),
                "--ranks" => args.ranks = Some(words.next()?.parse().ok()?),
                "--found" => args.found = true,
                "--theirs" => args.theirs = true,
                "--without" => args.known.push(words.next()?.to_string()),
                name if !name.starts_with('-') && args.library.is_none() => args.library = Some(name.into()),
                _ => return None,
            }
        }
        Some(args)
    }
}

pub(crate) fn by_hand(args: &Args) -> Result<()> {
    mpi::install()?;
    let allhands = build::command()?;
    let libraries = match &args.library {
        Some(name) => vec![libraries::named(name)?],
        None => libraries::all(),
    };
    let mut fuzzer = Fuzzer { theirs: args.theirs, known: args.known.clone(), ..Fuzzer::new(allhands)? };
    if args.found {
        fuzzer.replay(&libraries)?;
        return fuzzer.verdict();
    }
    for library in libraries.iter().filter(|library| library.is_native()) {
        match (args.seed, args.seconds) {
            (Some(seed), None) => fuzzer.seeds(library, args.ranks, seed, 1)?,
            (first, seconds) => {
                let first = first.unwrap_or_else(new_seed);
                fuzzer.during(library, args.ranks, first, Duration::from_secs(seconds.unwrap_or(60)))?;
            }
        }
    }
    fuzzer.verdict()
}

/// What CI runs: the same on every day, and what failed once.
pub(crate) fn run(libraries: &[Library]) -> Result<()> {
    let mut fuzzer = Fuzzer::new(build::command()?)?;
    for library in libraries.iter().filter(|library| library.is_native()) {
        for seed in IN_CI {
            fuzzer.seeds(library, None, seed, SCRIPTS_IN_CI)?;
        }
    }
    fuzzer.replay(libraries)?;
    fuzzer.verdict()
}

/// Another one each time; a batch's first.
fn new_seed() -> u64 {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    seconds % 10_000_000 * TOGETHER
}

struct Fuzzer {
    allhands: PathBuf,
    algorithms: Algorithms,
    /// The interpreter, by library.
    compiled: BTreeMap<&'static str, PathBuf>,
    folder: PathBuf,
    scripts: usize,
    findings: Vec<String>,
    /// What fails without us.
    others: usize,
    theirs: bool,
    known: Vec<String>,
    /// What failed once has been made shorter then.
    replays: bool,
    begun: Instant,
}

impl Fuzzer {
    fn new(allhands: PathBuf) -> Result<Fuzzer> {
        let folder = mpi::root().join("target/fuzz");
        std::fs::create_dir_all(&folder).map_err(|error| format!("{} cannot be made: {error}", folder.display()))?;
        let known = |collective: &&'static str| Ok((*collective, algorithms(&allhands, collective)?));
        let mut algorithms = SERVED.iter().chain(&AMONG_NEIGHBORS).map(known).collect::<Result<Algorithms>>()?;
        for (_, names) in algorithms.iter_mut().filter(|(collective, _)| AMONG_NEIGHBORS.contains(collective)) {
            let parameters = ["lanes=1", "lanes=2", "straight=1", "straight=100"];
            names.extend(parameters.map(|parameter| format!("node-aware:{parameter}")));
        }
        let (compiled, begun) = (BTreeMap::new(), Instant::now());
        Ok(Fuzzer {
            allhands,
            algorithms,
            compiled,
            folder,
            scripts: 0,
            findings: vec![],
            others: 0,
            theirs: false,
            known: vec![],
            replays: false,
            begun,
        })
    }

    /// Job after job.
    fn during(&mut self, library: &Library, ranks: Option<usize>, first: u64, time: Duration) -> Result<()> {
        let begun = Instant::now();
        let mut seed = first;
        while begun.elapsed() < time {
            self.seeds(library, ranks, seed, TOGETHER - seed % TOGETHER)?;
            seed += TOGETHER - seed % TOGETHER;
        }
        Ok(())
    }

    /// So many scripts of one job.
    fn seeds(&mut self, library: &Library, ranks: Option<usize>, first: u64, count: u64) -> Result<()> {
        // On Intel MPI 2021.18 collectives of several threads hang, on whatever communicators.
        let setting = Setting::drawn(first, ranks, library.name != "intel", &self.algorithms);
        let mut scripts: Vec<Script> =
            (first..first + count).map(|seed| Script::drawn(seed, setting.threads)).collect();
        for script in &mut scripts {
            script.lines.retain(|line| !self.known.iter().any(|word| line.split(' ').any(|part| part == word)));
        }
        self.job(library, &setting, scripts)
    }

    /// Runs scripts without us, and those that end well with us.
    fn job(&mut self, library: &Library, setting: &Setting, scripts: Vec<Script>) -> Result<()> {
        if !self.compiled.contains_key(library.name) {
            self.compiled.insert(library.name, job::compiled(library)?);
        }
        let program = Program::new(&self.allhands, library, self.compiled[library.name].clone(), &self.folder);
        let mut good = Vec::new();
        let mut left = scripts;
        let mut slowest = Duration::ZERO;
        while !left.is_empty() {
            let outcome = program.without(setting, &left, job::GENEROUS)?;
            slowest = slowest.max(outcome.slowest);
            let rest = left.split_off(outcome.passed);
            good.append(&mut left);
            left = rest;
            if let Verdict::Failed(what) = outcome.verdict {
                self.others += 1;
                let mut script = left.remove(0);
                let mut about = format!("not ours: {} fails without us\n{what}", library.title);
                let shrunk = if self.theirs { shrink::shrunk(&program, setting, &script, false)? } else { None };
                if let Some((shorter, what)) = shrunk {
                    about = format!("not ours: {} fails without us\n{what}", library.title);
                    script = shorter;
                }
                let file = self.kept(library, setting, std::slice::from_ref(&script), &about, "not-ours")?;
                self.say(&format!("{}, seed {}: fails without us ({file})", library.title, script.name));
            }
        }
        while !good.is_empty() {
            let outcome = program.with(setting, &good, job::deadline(slowest))?;
            self.scripts += outcome.passed;
            let rest = good.split_off(outcome.passed);
            let before = std::mem::replace(&mut good, rest);
            if let Verdict::Failed(what) = outcome.verdict {
                let script = good.remove(0);
                self.finding(&program, library, setting, before, script, &what)?;
            }
            self.progress(library, setting);
        }
        Ok(())
    }

    /// What failed with us is tried alone, made shorter, and kept.
    fn finding(
        &mut self,
        program: &Program,
        library: &Library,
        setting: &Setting,
        before: Vec<Script>,
        script: Script,
        what: &str,
    ) -> Result<()> {
        let name = script.name.clone();
        let seed = format!("{}, seed {name}, {} ranks", library.title, setting.ranks);
        self.say(&format!("{seed}: {}", what.lines().next().unwrap_or_default()));
        let shrunk = if self.replays {
            Some((script.clone(), what.into()))
        } else {
            shrink::shrunk(program, setting, &script, true)?
        };
        if let Some((shorter, _)) = &shrunk
            && let Some(what) = shrink::fails_without_us(program, setting, shorter)?
        {
            self.others += 1;
            let about = format!("not ours: {} fails without us\n{what}", library.title);
            let file = self.kept(library, setting, std::slice::from_ref(shorter), &about, "not-ours")?;
            self.say(&format!("{seed}: made shorter, it fails without us ({file})"));
            return Ok(());
        }
        let (scripts, how, said) = match shrunk {
            Some((script, said)) => (vec![script], "", said),
            // Alone it goes well; what ran before it in the same job may be what matters.
            None => ([before, vec![script]].concat(), " (after others only, or not every time)", what.to_string()),
        };
        let about = format!("{seed}{how}\n{said}");
        let file = self.kept(library, setting, &scripts, &about, "found")?;
        let lines: usize = scripts.iter().map(|script| script.lines.len()).sum();
        self.findings.push(format!("{seed}{how}: {lines} lines in {file}\n{said}"));
        self.say(&format!("{seed}{how}: {lines} lines in {file}"));
        Ok(())
    }

    fn kept(
        &self,
        library: &Library,
        setting: &Setting,
        scripts: &[Script],
        about: &str,
        kind: &str,
    ) -> Result<String> {
        let seed = scripts.last().map_or("none", |script| script.name.as_str());
        let file = self.folder.join(format!("{kind}-{}-{seed}.txt", library.name));
        std::fs::write(&file, script::written(setting, scripts, about))
            .map_err(|error| format!("{} cannot be written: {error}", file.display()))?;
        Ok(file.strip_prefix(mpi::root()).unwrap_or(&file).display().to_string())
    }

    /// Every script that failed once, on every MPI.
    fn replay(&mut self, libraries: &[Library]) -> Result<()> {
        self.replays = true;
        let folder = mpi::root().join(FOUND);
        let entries = std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        files.retain(|file| file.extension().is_some_and(|extension| extension == "txt"));
        files.sort();
        for file in files {
            let text = std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
            let (setting, scripts) = script::parsed(&text).ok_or_else(|| format!("{} is no script", file.display()))?;
            for library in libraries.iter().filter(|library| library.is_native()) {
                if !(setting.threads && library.name == "intel") {
                    self.job(library, &setting, scripts.clone())?;
                }
            }
        }
        Ok(())
    }

    fn verdict(&self) -> Result<()> {
        let Fuzzer { scripts, findings, others, .. } = self;
        let seconds = self.begun.elapsed().as_secs();
        let summary = format!("fuzz: {scripts} scripts ended well in {seconds} s, {others} failed without us");
        if findings.is_empty() {
            self.say(&summary);
            return Ok(());
        }
        Err(format!("{summary}, {} failed with us:\n{}", findings.len(), findings.join("\n")))
    }

    fn say(&self, line: &str) {
        let clear = if std::io::stderr().is_terminal() { "\r\x1b[K" } else { "" };
        eprintln!("{clear}xtask: {line}");
    }

    /// Where a person looks, how far it is.
    fn progress(&self, library: &Library, setting: &Setting) {
        if std::io::stderr().is_terminal() {
            let (scripts, findings) = (self.scripts, self.findings.len());
            eprint!("\r\x1b[K{}, {} ranks: {scripts} scripts, {findings} findings", library.title, setting.ranks);
            let _ = std::io::stderr().flush();
        }
    }
}
