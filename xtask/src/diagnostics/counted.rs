//! The report of a job whose calls and times are known: counts are exact, times are the program's, and the bottom line holds.

use serde_json::Value;

use super::{MOST, Subject, succeeded};
use crate::launch::{Ended, launch};
use crate::{Result, build, mpi};

const PROGRAM: &str = "crates/preload/tests/programs/counted.c";
const RANKS: usize = 4;

impl Subject<'_> {
    /// With ours, and with the MPI alone; then both beside each other. And by turns.
    pub(super) fn counted(&self) -> Result<()> {
        let program = self.library.compile(PROGRAM)?;
        let subject = Subject { program: &program, ranks: RANKS, ..*self };
        let (with, without) = (subject.counts("on")?, subject.counts("off")?);
        subject.beside(&with, &without)?;
        subject.turns()
    }

    /// A job, of which the report tells exactly what was called. Where the report is.
    fn counts(&self, switch: &str) -> Result<String> {
        let title = self.title(&format!("a counted job, {switch}"));
        let path = self.report(&format!("counted-{switch}.json"));
        let settings = [("ALLHANDS", switch), ("ALLHANDS_REPORT", &*path), ("ALLHANDS_LEARN", "off")];
        let (ended, report) = self.reported("counts", &settings, &path, &title)?;
        let wrong = |fact: String| ended.fault(&format!("{title}: {fact}\n{report:#}"));
        let mut expected: Vec<(String, u64, u64)> = Vec::new();
        for line in ended.out.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            if let ["count", name, ranks, calls] = words[..] {
                let (ranks, calls) = (ranks.parse().unwrap_or(0), calls.parse().unwrap_or(0));
                match expected.iter_mut().find(|(known, of, _)| known == name && *of == ranks) {
                    Some((_, _, sum)) => *sum += calls,
                    None => expected.push((name.into(), ranks, calls)),
                }
            }
        }
        let rows = report["rows"].as_array().ok_or_else(|| wrong("there are no rows".into()))?;
        let number = |row: &Value, name: &str| row[name].as_u64().unwrap_or(0);
        for (name, ranks, calls) in &expected {
            let like = |row: &&Value| row["collective"] == name.as_str() && number(row, "ranks") == *ranks;
            let counted: u64 = rows.iter().filter(like).map(|row| number(row, "calls")).sum();
            if counted != *calls {
                return Err(wrong(format!("{counted} calls of {name} on {ranks} ranks, and not {calls}")));
            }
        }
        let all: u64 = rows.iter().map(|row| number(row, "calls")).sum();
        let known: u64 = expected.iter().map(|(_, _, calls)| calls).sum();
        if all != known || expected.len() < 50 {
            return Err(wrong(format!("{all} calls in all, and not {known}")));
        }
        if switch == "off" && rows.iter().any(|row| !row["algorithm"].is_null()) {
            return Err(wrong("a call was served by us".into()));
        }
        self.times(&ended, &report).map_err(wrong)?;
        sites(&report).map_err(wrong)?;
        Ok(path)
    }

    /// The program's own clock has seen as much, less what its calls of the clock take; who came last was in collectives for the shortest time.
    fn times(&self, ended: &Ended, report: &Value) -> std::result::Result<(), String> {
        let (told, seen) = (report["collectives_seconds"].as_f64().unwrap_or(0.0), printed(ended, "seconds"));
        if !(0.8 * seen..=1.02 * seen).contains(&told) {
            return Err(format!("{told} s in collectives, and the program says {seen}"));
        }
        // Ranks wait for a message of the last one, which sleeps before it sends it.
        if report["requests_seconds"].as_f64().unwrap_or(0.0) < 0.002 {
            return Err("no time in point-to-point".into());
        }
        let waited: Vec<f64> = (0..RANKS).map(|rank| printed(ended, &format!("waited {rank}"))).collect();
        let world = report["waits"].as_array().and_then(|waits| waits.iter().find(|wait| wait["communicator"] == 0));
        let world = world.ok_or("who waits for whom is not said")?;
        for (rank, seconds, extreme) in [
            ("first_rank", "first_seconds", waited.iter().copied().fold(0.0, f64::max)),
            ("last_rank", "last_seconds", waited.iter().copied().fold(f64::INFINITY, f64::min)),
        ] {
            let told = world[seconds].as_f64().unwrap_or(0.0);
            let there = world[rank].as_u64().and_then(|rank| waited.get(rank as usize)).copied().unwrap_or(f64::NAN);
            // Between the program's clock and ours a rank may lose its core, and short times are mostly what the report itself takes.
            if !(told > 0.0 && told <= 1.02 * there && (there / extreme - 1.0).abs() < 0.2) {
                return Err(format!("{rank} and {seconds} do not fit what ranks waited: {waited:?}"));
            }
        }
        Ok(())
    }

    /// `allhands report` puts the two beside each other, and says the sum first.
    fn beside(&self, with: &str, without: &str) -> Result<()> {
        let shown = std::process::Command::new(build::command()?).args(["report", with, without]).output();
        let shown = shown.map_err(|error| format!("allhands report cannot be started: {error}"))?;
        let text = String::from_utf8_lossy(&shown.stdout).into_owned();
        let second = text.lines().nth(1).unwrap_or_default();
        let right =
            shown.status.success() && (second.starts_with("collectives took ") || text.contains("\ncollectives took "));
        if right && text.lines().all(|line| line.chars().count() <= 80 || line.contains('/')) {
            return Ok(());
        }
        Err(format!("{}: {text}{}", self.title("allhands report"), String::from_utf8_lossy(&shown.stderr)))
    }

    /// The bottom line of a job by turns is what the program has seen, within its own interval.
    fn turns(&self) -> Result<()> {
        let title = self.title("a counted job by turns");
        let path = self.report("counted-turns.json");
        let settings = [("ALLHANDS_COMPARE", "1"), ("ALLHANDS_REPORT", &*path)];
        let (ended, report) = self.reported("turns", &settings, &path, &title)?;
        let seconds = |name: &str| report["instead"][name].as_f64().unwrap_or(f64::NAN);
        let (low, high) = (seconds("low_seconds"), seconds("high_seconds"));
        let (ours, mpi) = (printed(&ended, "ours"), printed(&ended, "mpi"));
        let holds = low <= seconds("ours_seconds") && seconds("ours_seconds") <= high && low <= ours && ours <= high;
        let near = (seconds("mpi_seconds") / mpi - 1.0).abs() < 0.1;
        // Three ranks of four wait for the last, 42 times for 2 ms.
        let waited = ours.min(mpi) > 0.06;
        let crowded = report["warnings"].to_string().contains("ranks share");
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        match holds && near && waited && crowded == (cores < RANKS) {
            true => Ok(()),
            false => Err(ended.fault(&format!("{title}: the program says {ours} and {mpi} s\n{report:#}"))),
        }
    }

    /// A job that succeeds, and its report.
    fn reported(&self, word: &str, settings: &[(&str, &str)], path: &str, title: &str) -> Result<(Ended, Value)> {
        let ended = launch(self.command(&[word], settings), MOST)?;
        succeeded(&ended, title)?;
        let text = std::fs::read_to_string(path).map_err(|error| format!("{title}: {path}: {error}"))?;
        let report = serde_json::from_str(&text).map_err(|error| format!("{title}: {path}: {error}"))?;
        Ok((ended, report))
    }
}

/// The line of the program that calls so many allreduces is known, and every blocking call comes from somewhere.
fn sites(report: &Value) -> std::result::Result<(), String> {
    let source = std::fs::read_to_string(mpi::root().join(PROGRAM)).map_err(|error| format!("{PROGRAM}: {error}"))?;
    let line = source.lines().position(|line| line.contains("1 << i % 10")).ok_or("the program has changed")? + 1;
    let sites = report["sites"].as_array().ok_or("no places are told")?;
    let wanted = format!("counted.c:{line} (");
    let there = |site: &&Value| site["line"].as_str().is_some_and(|told| told.starts_with(&wanted));
    let calls: Vec<Option<u64>> = sites.iter().filter(there).map(|site| site["calls"].as_u64()).collect();
    if calls != [Some(30 * RANKS as u64)] {
        return Err(format!("{wanted} is not told of with {} calls: {calls:?}", 30 * RANKS));
    }
    // What prepares a persistent collective is no place.
    let blocking = |share: &&Value| share["collective"].as_str().is_some_and(|name| !name.ends_with("_init"));
    let shares = report["shares"].as_array().ok_or("no times are told")?.iter().filter(blocking);
    let seconds = |of: &Value, name: &str| of[name].as_f64().unwrap_or(0.0);
    let known: f64 = shares.map(|share| seconds(share, "ours_seconds") + seconds(share, "mpi_seconds")).sum();
    let placed: f64 = sites.iter().map(|site| seconds(site, "seconds")).sum();
    match (placed / known - 1.0).abs() < 1e-6 {
        true => Ok(()),
        false => Err(format!("{placed} s by places, and {known} s in blocking collectives")),
    }
}

/// A number that the program has printed after a word.
fn printed(ended: &Ended, word: &str) -> f64 {
    let number = |line: &str| line.strip_prefix(word)?.strip_prefix(' ')?.trim().parse().ok();
    ended.out.lines().find_map(number).unwrap_or(f64::NAN)
}
