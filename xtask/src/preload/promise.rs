//! Under us a program behaves as without us: small programs for what was once seen to be otherwise, on three MPIs.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::{exec, mixed, without};
use crate::Result;
use crate::launch::{Ended, launch};
use crate::libraries::Library;

const FOLDER: &str = "crates/preload/tests/programs";

/// More than any needs on two busy cores; the one with the table has a deadline for each of its functions.
const MOST: Duration = Duration::from_secs(120);
const TABLE: Duration = Duration::from_secs(1200);

const NAMES: [&str; 9] =
    ["probing", "progress", "alias", "throws", "shapes", "turns", "mixed", "learning", "reproducible"];

pub(super) fn is_known(name: &str) -> bool {
    NAMES.contains(&name)
}

/// Runs all of them, or the one of this name.
pub(super) fn run(allhands: &Path, libraries: &[Library], only: Option<&str>) -> Result<()> {
    let begun = Instant::now();
    let wanted = |name: &str| only.is_none_or(|only| only == name);
    let mut faults = Vec::new();
    for library in libraries.iter().filter(|library| library.is_native()) {
        for name in NAMES.into_iter().filter(|name| wanted(name)) {
            let outcome = match name {
                "progress" => progress(allhands, library),
                "mixed" => mixed::run(allhands, library),
                "probing" => one(allhands, library, name, 4, &[]),
                "alias" | "turns" => {
                    [2, 3, 4].into_iter().try_for_each(|ranks| one(allhands, library, name, ranks, &[]))
                }
                "throws" => throws(allhands, library),
                "learning" => learning(allhands, library),
                "reproducible" => reproducible(allhands, library),
                _ => shapes(allhands, library),
            };
            faults.extend(outcome.err());
        }
    }
    eprintln!("xtask: the promise of the preload in {:.0} s", begun.elapsed().as_secs_f64());
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
}

/// Runs a program under us.
fn one(allhands: &Path, library: &Library, name: &str, ranks: usize, words: &[&str]) -> Result<()> {
    let mut command = exec(allhands, library, ranks, &[]);
    command.arg(library.compile(&source(name))?).args(words);
    let title = format!("{}, {name} on {ranks} ranks", library.title);
    let ended = launch(command, MOST)?;
    ended_well(&ended, name, ranks, &title)?;
    let told = ended.out.lines().filter(|line| line.contains(" in turn")).map(|line| format!("; {line}"));
    eprintln!("xtask: {title}: {:.1} s{}", ended.time.as_secs_f64(), told.collect::<String>());
    Ok(())
}

pub(super) fn ended_well(ended: &Ended, name: &str, ranks: usize, title: &str) -> Result<()> {
    let right = ended.out.contains(&format!("{name}: {ranks} ranks, all right"));
    if right && ended.status.is_some_and(|status| status.success()) && ended.left.is_empty() {
        return Ok(());
    }
    Err(ended.fault(&format!("{title} failed")))
}

fn source(name: &str) -> String {
    let language = if name == "throws" { "cpp" } else { "c" };
    format!("{FOLDER}/{name}.{language}")
}

/// An exception goes through us as through the MPI alone.
fn throws(allhands: &Path, library: &Library) -> Result<()> {
    let mut command = without(library, 2);
    command.arg(library.compile(&source("throws"))?);
    ended_well(&launch(command, MOST)?, "throws", 2, &format!("{}, throws without us", library.title))?;
    one(allhands, library, "throws", 2, &["ours"])
}

/// Results are right, and bits stay, while everybody is tried over and over; and the report says who was.
fn learning(allhands: &Path, library: &Library) -> Result<()> {
    for (ranks, topology) in [(2, ""), (4, ""), (4, "2x2"), (3, "1,2")] {
        let report = super::report("learning.json");
        let settings: [(&str, &OsStr); 3] = [
            ("ALLHANDS_LEARN", "eager".as_ref()),
            ("ALLHANDS_TOPOLOGY", topology.as_ref()),
            ("ALLHANDS_REPORT", report.as_ref()),
        ];
        let mut command = exec(allhands, library, ranks, if topology.is_empty() { &settings[..1] } else { &settings });
        command.arg(library.compile(&source("learning"))?);
        let title = format!("{}, learning on {ranks} ranks {topology}", library.title);
        let ended = launch(command, MOST)?;
        ended_well(&ended, "learning", ranks, title.trim_end())?;
        eprintln!("xtask: {}: {:.1} s", title.trim_end(), ended.time.as_secs_f64());
        if !topology.is_empty() {
            let text = std::fs::read_to_string(&report).map_err(|error| format!("{title}: {error}"))?;
            for word in ["\"learned\"", "\"gained_seconds\"", "\"spent_seconds\"", "\"tried\"", "\"machine\""] {
                if !text.contains(word) {
                    return Err(format!("{title}: {word} is not in the report: {text}"));
                }
            }
            let report: serde_json::Value = serde_json::from_str(&text).map_err(|error| format!("{title}: {error}"))?;
            let rows = report["rows"].as_array().map_or(&[][..], Vec::as_slice);
            for collective in ["alltoallv", "gatherv", "scatterv", "neighbor_alltoallv", "neighbor_allgather"] {
                let tried = |row: &serde_json::Value| {
                    row["collective"] == collective && row["passed"] == "a try, to learn who is fastest"
                };
                if !rows.iter().any(tried) {
                    return Err(format!("{title}: the MPI's own was not tried for {collective}: {text}"));
                }
            }
        }
    }
    Ok(())
}

/// Sums are exact and rounded once, whoever serves, also while everybody is tried.
fn reproducible(allhands: &Path, library: &Library) -> Result<()> {
    let program = library.compile(&source("reproducible"))?;
    for (ranks, topology, algorithm) in [
        (5, "2,3", ""),
        (4, "2x2", "allreduce=nap;reduce=binomial;reduce_scatter_block=ring"),
        (3, "", "allreduce=ring"),
    ] {
        let settings: [(&str, &OsStr); 4] = [
            ("ALLHANDS_REPRODUCIBLE", "1".as_ref()),
            ("ALLHANDS_LEARN", "eager".as_ref()),
            ("ALLHANDS_TOPOLOGY", topology.as_ref()),
            ("ALLHANDS_ALGORITHM", algorithm.as_ref()),
        ];
        let mut command = exec(allhands, library, ranks, &settings);
        // Elsewhere nothing moves our requests on.
        command.arg(&program).args((library.name == "openmpi").then_some("requests"));
        let title = format!("{}, reproducible sums on {ranks} ranks {topology}", library.title);
        ended_well(&launch(command, MOST)?, "reproducible", ranks, title.trim_end())?;
    }
    eprintln!("xtask: {}, reproducible sums: one set of bits", library.title);
    Ok(())
}

/// Few shapes and many; the times are for people.
fn shapes(allhands: &Path, library: &Library) -> Result<()> {
    for count in ["50", "250", "800"] {
        one(allhands, library, "shapes", 2, &[count])?;
    }
    let mut command = without(library, 2);
    command.arg(library.compile(&format!("{FOLDER}/shapes.c"))?).arg("800");
    let ended = launch(command, MOST)?;
    for line in ended.out.lines().filter(|line| line.contains(" in turn")) {
        eprintln!("xtask: {}, without us; {line}", library.title);
    }
    Ok(())
}

/// Every function that may make progress, in both forms; one that hangs is named, and the rest is tried all the same.
fn progress(allhands: &Path, library: &Library) -> Result<()> {
    let program = library.compile(&format!("{FOLDER}/progress.c"))?;
    let mut hung = Vec::new();
    for form in ["begun", "persistent"] {
        let mut first = 0;
        loop {
            let begun = Instant::now();
            let mut command: Command = exec(allhands, library, 3, &[]);
            command.arg(&program).arg(form).arg(first.to_string());
            let ended = launch(command, TABLE)?;
            let title = format!("{}, progress {form} on 3 ranks", library.title);
            if ended_well(&ended, "progress", 3, &title).is_ok() {
                eprintln!("xtask: {title}, from function {first} on: {:.1} s", begun.elapsed().as_secs_f64());
                break;
            }
            // The last that was begun: `progress: 17 Testany`.
            let last = ended.out.lines().rev().find_map(|line| {
                let (number, name) = line.strip_prefix("progress: ")?.split_once(' ')?;
                Some((number.parse::<usize>().ok()?, name.to_string()))
            });
            let Some((number, name)) = last else { return Err(ended.fault(&format!("{title} failed"))) };
            let told: Vec<&str> = ended.err.lines().filter(|line| line.contains("rank ")).collect();
            eprintln!("xtask: {title}: {name} failed: {}", told.join("; "));
            hung.push(format!("{name} ({form})"));
            first = number + 1;
        }
    }
    match hung.is_empty() {
        true => Ok(()),
        false => Err(format!("{}: nothing moves a collective on in {}", library.title, hung.join(", "))),
    }
}
