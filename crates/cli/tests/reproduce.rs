//! `allhands reproduce` as users call it.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

fn reproduce(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_allhands")).arg("reproduce").args(arguments).output().expect("the command runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

/// An empty folder for one test, gone with the target directory.
fn folder(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&path);
    path
}

#[test]
fn figures_become_files_and_one_page() {
    let folder = folder("reproduced");
    let asked = ["loc-bruck-1", "loc-bruck-7", "radix-1", "sparbit-3"];
    let mut arguments = asked.to_vec();
    arguments.extend(["--quick", "--output", folder.to_str().expect("a path")]);
    let output = reproduce(&arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    assert!(asked.iter().all(|id| table.contains(id)), "{table}");
    assert!(
        table.contains("differs") && table.contains("matches in shape") && table.contains("report.html"),
        "{table}"
    );
    let last = table.lines().last().expect("a last line");
    assert!(table.lines().all(|line| line.chars().count() <= 80 || line.contains("report.html")), "{table}");
    assert_eq!(last, "4 figures with fewer ranks: 2 as in the paper, 1 in shape, 1 otherwise.");
    let names = fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("an entry").file_name());
    let names: BTreeSet<String> = names.map(|name| name.into_string().expect("a name")).collect();
    let expected = [
        "loc-bruck-1.csv",
        "loc-bruck-1.svg",
        "loc-bruck-7-corrected.svg",
        "loc-bruck-7-printed.svg",
        "loc-bruck-7.csv",
        "radix-1-radix-2.svg",
        "radix-1-radix-4.svg",
        "radix-1-radix-5.svg",
        "radix-1.csv",
        "report.html",
        "sparbit-3-schedule.svg",
        "sparbit-3.svg",
    ];
    assert_eq!(names, expected.map(String::from).into());
    let page = fs::read_to_string(folder.join("report.html")).expect("a page");
    assert_eq!(page.matches("<article id=").count(), asked.len());
    assert_eq!(page.matches("<svg ").count(), names.iter().filter(|name| name.ends_with(".svg")).count());
    assert!(page.contains("--quick") && !page.contains("<script") && !page.contains("sparbit-5a"));
    let numbers = fs::read_to_string(folder.join("radix-1.csv")).expect("a table");
    assert_eq!(numbers.lines().nth(2), Some("4,4,6,6,4"), "{numbers}");
}

#[test]
fn what_is_not_there_is_refused_with_what_is() {
    let output = reproduce(&["loc-bruck-3"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(said.starts_with("error: no figure or paper is called loc-bruck-3; there are loc-bruck-1, "), "{said}");
    assert!(said.contains("radix-2a") && said.trim_end().lines().count() == 1 && output.stdout.is_empty());
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let file = folder("reproduced-file");
    fs::write(&file, "").expect("written");
    let output = reproduce(&["loc-bruck-1", "--output", file.join("below").to_str().expect("a path")]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("reproduced-file") && said.contains("--output"), "{said}");
}
