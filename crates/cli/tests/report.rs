//! `allhands report`, on files as jobs write them.

use std::path::PathBuf;
use std::process::{Command, Output};

use allhands_report::{Communicator, Job, Key, Part, Spread, Tally, Whole};

/// A file of these tests.
fn file(name: &str, text: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// A job of two ranks in which ten allreduces took so many milliseconds each.
fn job(milliseconds: f64, off: bool) -> String {
    let rank = || {
        let mut spread = Spread::default();
        (0..10).for_each(|call| spread.add(1e-3 * (milliseconds + 0.02 * f64::from(call))));
        let on = Communicator { id: Communicator::WORLD, ranks: 2 };
        let (algorithm, passed) = if off { (None, Some("ALLHANDS=off".into())) } else { (Some("ring".into()), None) };
        let key = Key { collective: "allreduce".into(), up_to_bytes: Some(8), on, algorithm, passed };
        let tally = Tally { calls: 10, bytes: 80, spread, why: String::new() };
        Part { seconds: 0.1, met: vec![on], rows: vec![(key, tally)], ..Part::default() }
    };
    Whole::of(vec![rank(), rank()], Job { mpi: "an MPI".into(), off, ..Job::default() }).json()
}

fn report(files: &[&PathBuf]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_allhands")).arg("report").args(files).env("NO_COLOR", "1").output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn two_jobs_stand_beside_each_other_the_sum_first() {
    let (with, without) = (file("with.json", &job(2.0, false)), file("without.json", &job(3.0, true)));
    let shown = report(&[&with, &without]);
    assert!(shown.status.success(), "{}", said(&shown));
    let text = String::from_utf8(shown.stdout).unwrap();
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("collectives took 20.9 ms instead of 30.9 ms (one run each, 95 %: 20.3 ms to 21.5 ms); the job took 100.0 ms instead of 100.0 ms: as fast"), "{text}");
    assert!(words.contains("allreduce <= 8 B 20 20.9 ms 30.9 ms 1.48x faster"), "{text}");
    assert!(!text.contains('\u{1b}'), "no colours");
}

#[test]
fn one_job_is_shown_as_it_was_told() {
    let text = job(2.0, false);
    let shown = report(&[&file("one.json", &text)]);
    assert_eq!(String::from_utf8(shown.stdout).unwrap(), Whole::parse(&text).unwrap().text());
}

#[test]
fn what_is_no_report_is_said_in_one_sentence() {
    let whole = job(2.0, false);
    let fine = file("fine.json", &whole);
    for (name, text, fact) in [
        ("cut.json", &whole[..whole.len() / 2], "it ends in the middle; let the job write it again"),
        ("other.json", "{\"rows\": []}", "it is no report of allhands; make one with ALLHANDS_REPORT=FILE.json"),
        ("page.json", "<!DOCTYPE html>", "it is no report of allhands; make one with ALLHANDS_REPORT=FILE.json"),
        (
            "newer.json",
            "{\"allhands_report\": 2}",
            "it is a report of form 2, and this allhands reads form 1; make both with the same version",
        ),
    ] {
        let path = file(name, text);
        for files in [[&path, &fine], [&fine, &path]] {
            let shown = report(&files);
            assert_eq!(shown.status.code(), Some(2));
            assert_eq!(said(&shown), format!("error: {} cannot be used: {fact}\n", path.display()));
        }
    }
    let missing = report(&[&PathBuf::from("nowhere.json")]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(said(&missing).starts_with("error: cannot read the report nowhere.json: "), "{}", said(&missing));
}
