//! `cargo xtask test`: everything that has to pass.

use std::fmt;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::conformance::{self, Args};
use crate::{Result, browser, build, capi, debian, diagnostics, failures, fuzz, header, launch, mpi, preload};

/// What says early that something is wrong, and all that has to be compiled: nothing else waits while compilers have the cores.
const FIRST: [&[&str]; 4] = [
    &["fmt", "--all", "--check"],
    &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"],
    // Some tests run examples as jobs.
    &["build", "--workspace", "--lib", "--bins", "--examples"],
    &["test", "--workspace", "--lib", "--bins", "--tests", "--no-run"],
];

const TESTS: [&str; 5] = ["test", "--workspace", "--lib", "--bins", "--tests"];
const DOCUMENTATION: [&[&str]; 2] = [
    &["test", "--workspace", "--doc"],
    // The preload's library has the name of ours.
    &["doc", "--workspace", "--exclude", "allhands-preload", "--exclude", "allhands-capi", "--no-deps", "--lib"],
];

/// The crates that others can depend on.
const PUBLISHED: [&str; 4] = ["allhands-schedule", "allhands-model", "allhands-mpi", "allhands"];

/// Stops when a part has failed, and says which; in the end, what there was, how long it took, and what was skipped.
pub(crate) fn test(args: &Args) -> Result<()> {
    let all = Summary::new();
    // Wheels come from a network, which compilers leave alone.
    let compile = || {
        all.time("the header", header::check)?;
        FIRST.iter().try_for_each(|arguments| all.cargo(arguments))
    };
    let install = || {
        all.time("installing MPIs", mpi::install)?;
        all.skip(all.time("SimGrid", || Ok(debian::bring_simgrid()))?);
        Ok(())
    };
    side_by_side([&compile, &install])?;
    let (command, program) = (build::command()?, conformance::build()?);
    let libraries = args.libraries()?;
    let tests = || {
        let long: &[&str] = if args.full { &["--", "--include-ignored"] } else { &[] };
        all.cargo_beside(&[&TESTS, long].concat())?;
        DOCUMENTATION.iter().try_for_each(|arguments| all.cargo_beside(arguments))?;
        let packages: Vec<&str> = PUBLISHED.iter().flat_map(|name| ["--package", name]).collect();
        all.cargo_beside(&[&["package", "--no-verify", "--allow-dirty", "--quiet"], &packages[..]].concat())?;
        all.skip(all.time("cargo deny", deny)?);
        all.time("verify", || verify(&command, if args.full { "1..64" } else { "1..9" }))
    };
    // These start, wait and end more than they compute: with tests beside them the cores have work.
    let waiting = || {
        all.time("diagnostics", || diagnostics::run(&libraries))?;
        all.time("browser", browser::run)?;
        all.time("capi", || capi::run(&libraries))?;
        all.time("failures", || failures::run(&program, &libraries))?;
        all.time("every algorithm", || preload::every_algorithm(&libraries, args.full))
    };
    side_by_side([&tests, &waiting])?;
    // Ranks that wait for one without a core take what they wait on: with tests beside them these would take longer than one after the other.
    all.time("conformance", || conformance::run(&program, &libraries, args))?;
    all.time("preload", || preload::run(&libraries, args.full))?;
    all.time("fuzz", || fuzz::run(&libraries))?;
    if !args.full {
        let long = "numbers of ranks that MPIs have by turns, shapes of more than 32 ranks, four fifths of the cells beside SimGrid, and the longest suites";
        all.skip([format!("{long} (--full runs them)")]);
    }
    let libraries: Vec<&str> = libraries.iter().map(|library| library.name).collect();
    eprintln!("xtask: {all} on {}", libraries.join(", "));
    Ok(())
}

/// What can be run beside others.
type Part<'a> = &'a (dyn Fn() -> Result<()> + Sync);

/// Runs two rows of parts at the same time. If one fails, what has gone wrong is said at once, and the other starts no more jobs.
fn side_by_side(rows: [Part; 2]) -> Result<()> {
    let run = |row: Part| {
        let outcome = row();
        if let Err(fault) = &outcome
            && launch::stop()
        {
            eprintln!("xtask: {fault}\nxtask: what is under way comes to its end");
        }
        outcome
    };
    let [one, other] = rows;
    std::thread::scope(|scope| {
        let beside = scope.spawn(|| run(other));
        let mine = run(one);
        let theirs = beside.join().unwrap_or_else(|_| Err("a part of the tests has panicked".into()));
        // Who was stopped has nothing to say.
        match (mine, theirs) {
            (Err(fault), Err(stopped)) if stopped == launch::STOPPED => Err(fault),
            (Err(stopped), Err(fault)) if stopped == launch::STOPPED => Err(fault),
            (mine, theirs) => mine.and(theirs),
        }
    })
}

/// The comparison with SimGrid alone, with what it has found.
pub(crate) fn simgrid() -> Result<()> {
    match debian::bring_simgrid() {
        Some(_) => Ok(()),
        None => {
            let only = ["test", "--package", "allhands-model", "--test", "simgrid"];
            let words = [&only[..], &["--", "--nocapture", "--include-ignored"]].concat();
            cargo(Command::new(env!("CARGO")), &words).map(|_| ())
        }
    }
}

/// What was done, and how long each part took.
struct Summary {
    begun: Instant,
    parts: Mutex<Vec<(String, Duration)>>,
    tests: AtomicUsize,
    skipped: Mutex<Vec<String>>,
}

impl Summary {
    fn new() -> Summary {
        Summary {
            begun: Instant::now(),
            parts: Mutex::default(),
            tests: AtomicUsize::new(0),
            skipped: Mutex::default(),
        }
    }

    fn time<T>(&self, name: &str, part: impl FnOnce() -> Result<T>) -> Result<T> {
        let began = Instant::now();
        let outcome = part()?;
        if let Ok(mut parts) = self.parts.lock() {
            parts.push((name.into(), began.elapsed()));
        }
        Ok(outcome)
    }

    /// Runs cargo, and counts the tests that have passed.
    fn cargo(&self, arguments: &[&str]) -> Result<()> {
        self.counted(Command::new(env!("CARGO")), arguments)
    }

    /// The same for whatever jobs leave of the cores.
    fn cargo_beside(&self, arguments: &[&str]) -> Result<()> {
        let mut nice = Command::new("nice");
        nice.args(["-n", "19", env!("CARGO")]);
        self.counted(nice, arguments)
    }

    fn counted(&self, command: Command, arguments: &[&str]) -> Result<()> {
        let passed = self.time(&format!("cargo {}", arguments[0]), || cargo(command, arguments))?;
        self.tests.fetch_add(passed, Ordering::Relaxed);
        Ok(())
    }

    fn skip(&self, what: impl IntoIterator<Item = String>) {
        if let Ok(mut skipped) = self.skipped.lock() {
            skipped.extend(what);
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (parts, skipped) =
            (self.parts.lock().map_err(|_| fmt::Error)?, self.skipped.lock().map_err(|_| fmt::Error)?);
        let long = parts.iter().filter(|(_, time)| time.as_secs() > 0);
        let long: Vec<String> = long.map(|(name, time)| format!("{name} {}", time.as_secs())).collect();
        writeln!(f, "seconds, some beside each other: {}", long.join(", "))?;
        writeln!(f, "skipped: {}", skipped.join("; "))?;
        let (tests, seconds) = (self.tests.load(Ordering::Relaxed), self.begun.elapsed().as_secs());
        write!(f, "all passed in {} min {} s: {tests} tests, and {} jobs", seconds / 60, seconds % 60, launch::jobs())
    }
}

/// Runs cargo, by a command that takes its arguments; how many tests have passed.
fn cargo(mut command: Command, arguments: &[&str]) -> Result<usize> {
    let line = arguments.join(" ");
    eprintln!("xtask: cargo {line}");
    command.args(arguments).env("RUSTDOCFLAGS", "-D warnings").stdout(Stdio::piped());
    // Some tests compile against these, and run on them.
    command.env("ALLHANDS_TEST_MPI", mpi::root().join(".mpi")).env("PATH", debian::path());
    let started = |error| format!("cargo cannot be started: {error}");
    let mut child = command.spawn().map_err(started)?;
    let printed = child.stdout.take().map(BufReader::new);
    let mut passed = 0;
    for said in printed.into_iter().flat_map(BufReader::lines).map_while(std::io::Result::ok) {
        passed += passed_in(&said);
        println!("{said}");
    }
    match child.wait().map_err(started)?.success() {
        true => Ok(passed),
        false => Err(format!("failed: cargo {line}")),
    }
}

/// Of the last line of a test program: `test result: ok. 33 passed; 0 failed; ...`.
fn passed_in(line: &str) -> usize {
    let count = line.strip_prefix("test result: ok. ").and_then(|rest| rest.split_once(" passed;"));
    count.and_then(|(count, _)| count.parse().ok()).unwrap_or(0)
}

/// Licences, sources and known faults of dependencies; what of it was skipped, and why.
fn deny() -> Result<Vec<String>> {
    let deny = |words: &[&str]| Command::new(env!("CARGO")).arg("deny").args(words).output();
    if !deny(&["--version"]).is_ok_and(|output| output.status.success()) {
        return Ok(vec!["cargo deny (not installed: cargo install cargo-deny)".into()]);
    }
    let mut skipped = Vec::new();
    for checks in [&["check", "licenses", "bans", "sources"][..], &["check", "advisories"]] {
        let output = deny(checks).map_err(|error| format!("cargo deny cannot be started: {error}"))?;
        let said = String::from_utf8_lossy(&output.stderr);
        if output.status.success() {
            continue;
        }
        if said.contains("failed to fetch advisory database") {
            skipped.push("cargo deny's advisories (their database cannot be reached)".into());
            continue;
        }
        return Err(format!("failed: cargo deny {}\n{said}", checks.join(" ")));
    }
    Ok(skipped)
}

/// A sweep of the command itself; the tests of `allhands-schedule` have proved the same algorithms on more ranks.
fn verify(command: &Path, ranks: &str) -> Result<()> {
    eprintln!("xtask: allhands verify --ranks {ranks}");
    match Command::new(command).args(["verify", "--ranks", ranks]).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(format!("failed: allhands verify --ranks {ranks}")),
        Err(error) => Err(format!("{} cannot be started: {error}", command.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::passed_in;

    #[test]
    fn passed_tests_are_counted() {
        assert_eq!(passed_in("test result: ok. 33 passed; 0 failed; 0 ignored; 0 measured; 101 filtered out"), 33);
        assert_eq!(passed_in("test result: FAILED. 3 passed; 1 failed"), 0);
        assert_eq!(passed_in("running 33 tests"), 0);
    }
}
