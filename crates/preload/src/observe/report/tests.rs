use std::time::Duration;

use allhands_schedule::Collective;

use super::units::{size, time};
use super::whole::{Compared, Gain, Share, Side};
use super::*;
use crate::observe::observer::By;

fn rank(milliseconds: u64) -> Part {
    let report = Calls::default();
    let ours = By::Ours { algorithm: "ring", why: "the caller's wish" };
    for bytes in [4000, 4096] {
        report.note("allreduce", Some(bytes), &ours, Duration::from_millis(milliseconds));
    }
    report.note("bcast", None, &By::Theirs("an intercommunicator"), Duration::from_millis(1));
    for (ours, microseconds) in [(true, 2), (true, 2 * milliseconds), (false, 6), (false, 6), (false, 90)] {
        report.compared(Collective::Allreduce, Some(4000), ours, Duration::from_micros(microseconds));
    }
    report.compared(Collective::Bcast, Some(8), true, Duration::from_micros(1));
    let mut part = report.part();
    (part.machine, part.seconds) = ("here".into(), 0.02);
    part
}

fn whole() -> Whole {
    Whole::of(vec![rank(1), rank(3)], "an <MPI> & more".into(), None)
}

#[test]
fn the_table_adds_up_all_ranks() {
    let table = table::text(&whole());
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let lines: Vec<String> = table.lines().map(words).collect();
    assert_eq!(lines[0], "allhands: collectives of 2 ranks on an <MPI> & more");
    assert_eq!(lines[1], "5.0 ms of 20.0 ms in collectives on average, 4.0 ms of it in ours; 4 of 6 calls were ours");
    assert_eq!(lines[4], "allreduce <= 4 KiB 2 4 15.8 KiB 6.0 ms ring the caller's wish");
    assert_eq!(lines[5], "bcast ? 2 2 0 B 1.0 ms the MPI an intercommunicator");
    assert_eq!(lines[8], "collective bytes ranks calls ours the MPI's ours is");
    // Medians of 2 and 4 us, and of 6 and 6; what only one side has served is not compared.
    assert_eq!(lines[9], "allreduce <= 4 KiB 2 4+6 3.0 us 6.0 us 2.00x faster");
    assert_eq!(lines.len(), 10);
}

#[test]
fn without_a_comparison_there_is_no_second_table() {
    let alone = Whole { compared: Vec::new(), ..whole() };
    assert!(!table::text(&alone).contains("the MPI's") && !html::page(&alone).contains("took turns"));
}

#[test]
fn parts_survive_their_journey() {
    let text = serde_json::to_string(&rank(1)).unwrap();
    let back: Part = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::to_string(&back).unwrap(), text);
}

#[test]
fn time_is_shared_out_among_collectives() {
    let share = |collective: &str, ours_seconds, mpi_seconds| Share {
        collective: collective.into(),
        ours_seconds,
        mpi_seconds,
    };
    assert_eq!(whole().shares, [share("allreduce", 0.004, 0.0), share("bcast", 0.0, 0.001)]);
}

#[test]
fn the_page_is_well_formed_and_says_what_the_table_says() {
    let page = html::page(&whole());
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
    let document = roxmltree::Document::parse_with_options(&page, options).expect("well-formed");
    let texts = |name: &str| {
        let found = document.descendants().filter(|node| node.has_tag_name(name));
        let text = |node: roxmltree::Node<'_, '_>| {
            node.descendants().filter(|node| node.is_text()).filter_map(|node| node.text().map(str::trim)).collect()
        };
        found.map(text).collect::<Vec<String>>()
    };
    assert_eq!(texts("h1"), ["Collectives of 2 ranks"]);
    assert_eq!(texts("p")[0], "on an <MPI> & more");
    assert_eq!(
        texts("dd"),
        [
            "2on one machine",
            "20.0 msfrom MPI_Init to MPI_Finalize",
            "5.0 ms25 % of the run time",
            "67 %4 of 6 calls",
            "80 %4.0 ms of 5.0 ms",
        ]
    );
    assert_eq!(
        texts("td"),
        [
            ["allreduce", "<= 4 KiB", "2", "4+6", "3.0 us", "6.0 us", "2.00x faster"].as_slice(),
            &["allreduce", "<= 4 KiB", "2", "4", "15.8 KiB", "6.0 ms", "ring", "the caller's wish"],
            &["bcast", "?", "2", "2", "0 B", "1.0 ms", "the MPI", "an intercommunicator"],
        ]
        .concat()
    );
    let widths: Vec<&str> = document
        .descendants()
        .filter(|node| node.has_tag_name("rect"))
        .filter_map(|node| node.attribute("width"))
        .collect();
    assert_eq!(widths, ["100.00%", "0.00%", "0.00%", "25.00%"]);
    for outside in ["http", "src=", "@import", "url("] {
        assert!(!page.contains(outside), "the page reaches out: {outside}");
    }
}

#[test]
fn files_are_replaced_as_a_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.txt");
    for text in ["one", "two"] {
        replace(&path, text).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
    assert!(replace(&folder.path().join("nowhere/report.txt"), "three").is_err());
    replace(Path::new("/dev/null"), "no file").unwrap();
    assert!(!std::fs::metadata("/dev/null").unwrap().is_file());
}

#[test]
fn what_is_gained_or_lost_is_said() {
    let said = |ours, mpi| {
        let side = |seconds| Side { calls: 1, seconds };
        let compared =
            Compared { collective: "bcast".into(), up_to_bytes: None, ours: side(ours), mpi: side(mpi), ranks: 1 };
        Gain::of(&compared).to_string()
    };
    assert_eq!([said(1.0, 1.04), said(1.04, 1.0)], ["as fast", "as fast"]);
    assert_eq!([said(1.0, 1.5), said(3.0, 1.0)], ["1.50x faster", "3.00x slower"]);
}

#[test]
fn numbers_have_units() {
    assert_eq!([0, 512, 4096, 1 << 20, 1536].map(size), ["0 B", "512 B", "4 KiB", "1 MiB", "1.5 KiB"]);
    assert_eq!([2e-6, 0.5, 12.0].map(time), ["2.0 us", "500.0 ms", "12.0 s"]);
}
