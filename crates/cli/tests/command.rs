//! The built command: what it prints, what it refuses, and its exit codes.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

struct Outcome {
    code: Option<i32>,
    out: String,
    err: String,
}

fn allhands(arguments: &[&str]) -> Outcome {
    let output = Command::new(env!("CARGO_BIN_EXE_allhands")).args(arguments).output().expect("the command runs");
    Outcome {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).expect("text"),
        err: String::from_utf8(output.stderr).expect("text"),
    }
}

/// Runs words separated by spaces.
fn run(line: &str) -> Outcome {
    allhands(&line.split_whitespace().collect::<Vec<_>>())
}

/// A file for one test, gone with the target directory.
fn file(name: &str, text: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, text).expect("the temporary directory can be written");
    path
}

fn registry() -> Vec<Value> {
    let listed = run("list --json");
    assert_eq!(listed.code, Some(0), "{}", listed.err);
    serde_json::from_str::<Vec<Value>>(&listed.out).expect("an array")
}

fn has(collective: &str, algorithm: &str) -> bool {
    registry().iter().any(|line| line["collective"] == collective && line["algorithm"] == algorithm)
}

/// An algorithm of a collective, whatever the registry holds.
fn any(collective: &str) -> String {
    let registry = registry();
    let line = registry.iter().find(|line| line["collective"] == collective).expect("an algorithm");
    line["algorithm"].as_str().expect("a name").into()
}

/// Refused with exit code 2, one sentence, and these words in it.
fn refused(outcome: &Outcome, words: &[&str]) {
    assert_eq!(outcome.code, Some(2), "{}{}", outcome.out, outcome.err);
    assert!(outcome.err.starts_with("error: ") && outcome.err.trim_end().lines().count() == 1, "{}", outcome.err);
    for word in words {
        assert!(outcome.err.contains(word), "{word:?} is not in {}", outcome.err);
    }
    assert_eq!(outcome.out, "");
}

#[test]
fn bad_requests_name_the_fact_and_what_would_be_legal() {
    let gather = any("allgather");
    let explain = |rest: &str| run(&format!("explain allgather --algorithm {gather} {rest}"));
    refused(&explain("--topology 0"), &["0 ranks", "4x16"]);
    refused(&explain("--topology 4x0"), &["0 ranks", "4x16"]);
    refused(&explain("--topology four"), &["not a count", "4x16"]);
    refused(&explain(""), &["--topology"]);
    refused(&explain("--topology 4 --rank 4"), &["0..=3"]);
    refused(&explain("--topology 4 --root 1"), &["allgather has no root"]);
    refused(&explain("--topology 4 --bytes lots"), &["4K"]);
    let vector = |rest: &str| run(&format!("explain allgatherv --algorithm {gather} --topology 4 --counts {rest}"));
    refused(&vector("1,2"), &["2 counts", "give 4"]);
    refused(&vector("1,x"), &["\"x\" is not a count"]);
    refused(&explain("--topology 4 --counts 1,2,3,4"), &["allgather has no counts", "allgatherv"]);
    refused(&explain("--topology 5000"), &["4096", "--rank"]);
    refused(&run("explain allgather --algorithm ring --topology 4096"), &["4096 ranks", "16773120 messages", "--rank"]);
    refused(&run("explain alltoall --algorithm bruck --topology 4096"), &["100663296 blocks", "--rank"]);
    for huge in ["4294967295 --rank 5", "4000000000,1 --rank 5 --placement cyclic", "2097153 --rank 5"] {
        refused(&explain(&format!("--topology {huge}")), &["more than the 2097152"]);
    }
    refused(&explain("--topology 18446744073709551615,2"), &["more ranks than can be counted"]);
    refused(&explain(&format!("--topology {}", ["1"; 9999].join("x"))), &["9998 levels"]);
    refused(&explain("--topology 4 --rank 1 --format svg"), &["leave out --rank"]);
    refused(&explain("--topology 4 --rank 1 --format html"), &["leave out --rank"]);
    refused(&explain("--topology 5x13 --format html"), &["65 ranks", "64", "--format svg"]);
    refused(&explain("--topology 4 --machine lassen"), &["leave out --algorithm", "--format html"]);
    refused(&explain("--topology 4 --placement no-such-file"), &["no-such-file", "cyclic"]);
    refused(&run("explain allgather --algorithm no-such --topology 4"), &["no-such", &gather]);
    refused(&run("explain reduceall --algorithm ring --topology 4"), &["\"reduceall\"", "allreduce"]);
    refused(&run("list reduceall"), &["\"reduceall\"", "allreduce"]);
    for range in ["0", "0..4", "4..1", "x", "1..9999", "1025"] {
        refused(&run(&format!("verify --ranks {range}")), &["ranks"]);
    }
    refused(&run("verify --placement cyclic"), &["--topology"]);
    refused(&run("verify --file no-such-file"), &["no-such-file"]);
    for ignored in ["--algorithm bruck", "--placement cyclic", "--ranks 4"] {
        let outcome = run(&format!("verify --file no-such-file {ignored}"));
        assert_eq!(outcome.code, Some(2));
        assert!(outcome.err.contains("cannot be used with"), "{}", outcome.err);
    }
    for orphan in ["--root 1", "--counts 1,2"] {
        let outcome = run(&format!("verify --ranks 4 {orphan}"));
        assert_eq!(outcome.code, Some(2));
        assert!(outcome.err.contains("COLLECTIVE"), "{}", outcome.err);
    }
}

#[test]
fn bad_parameters_name_the_legal_ones() {
    if has("allgather", "bruck") {
        let explain = |algorithm: &str| run(&format!("explain allgather --topology 16 --algorithm {algorithm}"));
        refused(&explain("bruck:radix=1"), &["radix=1", "2..=16"]);
        refused(&explain("bruck:ports=1,1"), &["only 4 of 16", "1,1,1,1"]);
        refused(&explain("bruck:colour=red"), &["colour", "radix"]);
        refused(&run("verify allgather --algorithm bruck:radix=9 --ranks 2..8"), &["radix=9", "out of range"]);
    }
    if has("allgather", "neighbor-exchange") {
        let odd = "--algorithm neighbor-exchange";
        refused(&run(&format!("explain allgather {odd} --topology 5")), &["even", "5"]);
        refused(&run(&format!("verify allgather {odd} --ranks 5")), &["even", "5"]);
        assert_eq!(run(&format!("verify allgather {odd} --ranks 4..5")).code, Some(0));
    }
}

#[test]
fn a_placement_must_list_every_rank_once() {
    let gather = any("allgather");
    let explain = |name: &str, text: &str| {
        let path = file(name, text);
        let path = path.to_str().expect("a plain path");
        allhands(&[
            "explain",
            "allgather",
            "--algorithm",
            &gather,
            "--topology",
            "2x2",
            "--placement",
            path,
            "--format",
            "json",
        ])
    };
    let placed = explain("placed", "3 1 # the first node\n\n2\n0\n");
    assert_eq!(placed.code, Some(0), "{}", placed.err);
    assert!(placed.out.contains("\"topology\":[[3,1],[2,0]]"));
    refused(&explain("twice", "0 1 1 2"), &["rank 1 is listed twice"]);
    refused(&explain("short", "0 1 2"), &["3 ranks are listed for 4 seats"]);
    refused(&explain("beyond", "0 1 2 4"), &["no rank 4"]);
    refused(&explain("words", "0 1 two 3"), &["\"two\" is not a rank"]);
}

#[test]
fn the_list_is_a_table_or_json() {
    let keys = ["collective", "algorithm", "parameters", "needs", "guarantees", "source"];
    for line in registry() {
        let object = line.as_object().expect("an object");
        assert!(keys.iter().all(|key| object.contains_key(*key)) && object.len() == keys.len(), "{line}");
    }
    let table = run("list allgatherv").out;
    assert!(table.contains(&any("allgather")) && table.contains("guarantees"));
    assert!(!table.contains('\x1b'), "no colours into a pipe");
}

#[test]
fn explain_draws_counts_and_verifies() {
    let gather = any("allgather");
    let text = run(&format!("explain allgather --algorithm {gather} --topology 2x2 --bytes 4K")).out;
    for words in
        ["node 1", "P3", "step 1: ", "=>", "4 KiB", "closed form", "lower bound", "verified; ordered; identical"]
    {
        assert!(text.contains(words), "{words:?} is not in\n{text}");
    }
    let one = run(&format!("explain allgather --algorithm {gather} --topology 65536x16 --rank 77"));
    assert_eq!(one.code, Some(0), "{}", one.err);
    assert!(one.out.contains("rank 77 sits on node 4") && one.out.contains("not verified"), "{}", one.out);
}

#[test]
fn example_2_1_counts_four_far_messages_with_fifteen_blocks() {
    for (algorithm, messages, blocks) in [("bruck", 4, 15), ("loc-bruck", 1, 4)] {
        if has("allgather", algorithm) {
            let json = run(&format!("explain allgather --algorithm {algorithm} --topology 4x4 --format json")).out;
            let json: Value = serde_json::from_str(&json).expect("JSON");
            let far = &json["counts"]["maxima"]["far_received"];
            assert_eq!((far["messages"].as_u64(), far["blocks"].as_u64()), (Some(messages), Some(blocks)));
        }
    }
}

#[test]
fn json_describes_every_rank() {
    let reduce = any("allreduce");
    let json = run(&format!("explain allreduce --algorithm {reduce} --topology 2x2x2 --format json")).out;
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["topology"], serde_json::json!([[[0, 1], [2, 3]], [[4, 5], [6, 7]]]));
    assert_eq!(json["schedule"].as_array().map(Vec::len), Some(8));
    assert!(json["root"].is_null() && json["counts"]["steps"].is_u64() && json["counts"]["formula"]["steps"].is_u64());
}

#[test]
fn every_printed_schedule_is_read_back_and_verified() {
    for line in registry() {
        let (collective, algorithm) = (line["collective"].as_str().unwrap(), line["algorithm"].as_str().unwrap());
        let printed = run(&format!("explain {collective} --algorithm {algorithm} --topology 4x2 --format schedule"));
        if printed.code == Some(2) {
            continue; // needs a parameter, or another shape
        }
        let path = file(&format!("{collective}-{algorithm}"), &printed.out);
        let path = path.to_str().expect("a plain path");
        let verified = allhands(&["verify", "--file", path]);
        assert_eq!(verified.code, Some(0), "{collective} {algorithm}: {}", verified.err);
        assert!(verified.out.ends_with("verified 1 schedule: correct\n"), "{}", verified.out);
    }
}

const PAIR: &str = "allhands schedule 1
collective allreduce
topology 2
blocks 1
rank 0
  round
    send 1: input[0]
    recv 1: output[0]
    combine-before input[0] -> output[0]
rank 1
  round
    send 0: input[0]
    recv 0: output[0]
    combine input[0] -> output[0]
end
";

#[test]
fn a_schedule_by_hand_is_proved_or_refuted() {
    let verify = |name: &str, text: &str| {
        let path = file(name, text);
        allhands(&["verify", "--file", path.to_str().expect("a plain path")])
    };
    let right = verify("right", PAIR);
    assert_eq!(right.code, Some(0), "{}", right.err);
    assert!(right.out.contains("ordered    yes\nidentical  yes\nsteps      1\n"), "{}", right.out);
    let unordered = verify("unordered", &PAIR.replace("combine-before", "combine"));
    assert!(unordered.out.contains("ordered    no\nidentical  no\n"), "{}", unordered.out);
    let wrong = verify("wrong", &PAIR.replace("combine input", "copy input"));
    assert_eq!(wrong.code, Some(1));
    assert!(
        wrong.err.starts_with("error: ") && wrong.err.contains("should hold block 0 of all 2 ranks"),
        "{}",
        wrong.err
    );
    refused(&verify("cut", &PAIR[..PAIR.len() / 2]), &["line ", "without `end`"]);
    refused(&verify("spelt", &PAIR.replace("recv 0", "receive 0")), &["line 13", "receive", "recv"]);
    refused(&verify("huge", &PAIR.replace("blocks 1", "blocks 99999999999")), &["line 4", "too large"]);
    refused(&verify("large", &PAIR.replace("blocks 1", "blocks 99999999")), &["fewer blocks"]);
    let doubling: String =
        (0..28).map(|k| format!("    copy scratch[0..{}] -> scratch[{0}..{}]\n", 1 << k, 2 << k)).collect();
    let swollen = PAIR.replacen("rank 1\n", &format!("copy input[0] -> scratch[0]\n{doubling}rank 1\n"), 1);
    refused(&verify("swollen", &swollen), &["more than can be verified", "shorter spans"]);
    let far = verify("far", &PAIR.replace("send 1: input[0]", "send 1: scratch[7..9999999]"));
    assert_eq!(far.code, Some(1), "{}", far.err);
}

#[test]
fn a_sweep_counts_what_it_verified() {
    let all = run("verify --ranks 1..6");
    assert_eq!(all.code, Some(0), "{}{}", all.out, all.err);
    let said = all.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.starts_with("verified ") && said.contains(" topologies: all correct"), "{said}");
    let one = run(&format!("verify allgather --algorithm {} --topology 3,1,2 --placement cyclic", any("allgather")));
    assert!(one.out.contains("of 1 algorithm on 1 topology: all correct"), "{}{}", one.out, one.err);
}

#[test]
fn svg_stands_alone() {
    let svg = run(&format!("explain allgather --algorithm {} --topology 2x2 --format svg", any("allgather"))).out;
    assert!(svg.starts_with("<svg xmlns=") && svg.ends_with("</svg>\n") && svg.contains("class=\"far\""));
}

#[test]
fn a_page_to_play_with_begins_as_asked() {
    let page = run(
        "explain allgather --algorithm bruck:radix=4 --topology 2x4 --placement cyclic --machine lassen --format html",
    )
    .out;
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
    for part in [
        r#""asked":["bruck","radix=4"]"#,
        r#""name":"2x4, cyclic""#,
        r#""regions":[[0,2,4,6],[1,3,5,7]]"#,
        r#""machine":"lassen""#,
    ] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn a_reader_that_leaves_early_is_no_failure() {
    let gather = any("allgather");
    let mut child = Command::new(env!("CARGO_BIN_EXE_allhands"))
        .args(["explain", "allgather", "--algorithm", &gather, "--topology", "300", "--format", "json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command runs");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(0), ""));
}

#[test]
fn help_shows_examples() {
    for command in ["", "list ", "explain ", "verify "] {
        let help = run(&format!("{command}--help"));
        assert_eq!(help.code, Some(0));
        assert!(help.out.contains("Examples:\n  allhands "), "{}", help.out);
    }
}

/// Words that are nowhere broken, and lines of at most 80 columns, whatever the environment says of a terminal that is not there.
#[test]
fn the_doctor_says_that_there_is_no_launcher() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_allhands"));
    let output = command.arg("doctor").env("PATH", "/nowhere").output().expect("the command runs");
    let text = String::from_utf8(output.stdout).expect("text");
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("\nfails   there is neither mpirun nor mpiexec in PATH"), "{text}");
    assert!(text.contains("\na job would not be served, or fail; to begin with, "), "{text}");
}

#[test]
fn lists_and_helps_fit_80_columns() {
    for line in ["list", "list allreduce", "list alltoallv", "exec --help", "doctor --help"] {
        let plain = run(line);
        assert_eq!(plain.code, Some(0), "{}", plain.err);
        let long: Vec<&str> = plain.out.lines().filter(|line| line.chars().count() > 80).collect();
        assert!(long.is_empty(), "{line}: {long:#?}");
        for columns in ["0", "20", "none"] {
            assert_eq!(run_with("COLUMNS", columns, line).out, plain.out, "{line} with COLUMNS={columns}");
        }
    }
    insta::assert_snapshot!("list", run("list").out);
    insta::assert_snapshot!("list_allreduce", run("list allreduce").out);
    insta::assert_snapshot!("exec_help", run("exec --help").out);
}

/// What the commands say in a few seconds, one line of each way.
const SAID: [&str; 14] = [
    "explain allreduce --topology 4x4 --bytes 8",
    "explain allreduce --topology 4x4 --bytes 1M",
    "explain reduce --algorithm binomial --topology 2x2",
    "explain alltoall --algorithm node-aware --topology 2x4 --bytes 1K --rank 3",
    "explain allgather --algorithm ring --topology 2x2 --bytes 8 --format program",
    "simulate allreduce --topology 4x4 --bytes 8..64K",
    "simulate allgather --topology 3,5,4 --bytes 8",
    "verify --ranks 1..4",
    "verify allgather --algorithm ring --ranks 3",
    "bench bcast --topology 2x2 --bytes 8..64 --iterations 2",
    "bench allreduce --algorithm auto,ring --topology 2 --bytes 8 --iterations 2 --isolated",
    "list reduce",
    "--help",
    "bench -h",
];

/// At most 80 columns, and no colours, where no terminal is; the same with colours forbidden.
#[test]
fn what_is_said_fits_80_columns() {
    let helps = ["list", "explain", "simulate", "verify", "tune", "bench", "exec", "report", "reproduce"];
    let helps = helps.iter().flat_map(|command| [format!("{command} -h"), format!("{command} --help")]);
    for line in SAID.map(String::from).into_iter().chain(helps) {
        for outcome in [run(&line), run_with("NO_COLOR", "1", &line)] {
            assert_eq!(outcome.code, Some(0), "{line}: {}", outcome.err);
            let long: Vec<&str> = outcome.out.lines().filter(|line| line.chars().count() > 80).collect();
            assert!(long.is_empty() && !outcome.out.contains('\x1b'), "{line}: {long:#?}");
        }
    }
}

/// Who has seen enough and closes the pipe is no error, and nothing panics.
#[test]
fn a_closed_pipe_is_no_failure() {
    for line in SAID {
        let mut child = Command::new(env!("CARGO_BIN_EXE_allhands"))
            .args(line.split_whitespace())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command runs");
        drop(child.stdout.take());
        let ended = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        let quiet = said.lines().all(|line| line.starts_with("caution: "));
        assert!(ended.status.success() && quiet, "{line}: {:?} {said}", ended.status);
    }
}

#[test]
fn bench_compares_algorithms_on_thread_ranks() {
    let bench = run(
        "bench allgather --algorithm bruck,ring,auto,bruck:ports=1,2 --topology 2x2 --bytes 8..100 --iterations 4 --format json",
    );
    assert_eq!(bench.code, Some(0), "{}", bench.err);
    let lines: Vec<Value> = serde_json::from_str(&bench.out).expect("an array");
    let sizes: Vec<u64> = lines.iter().filter_map(|line| line["bytes"].as_u64()).collect();
    assert_eq!(sizes, [8, 8, 8, 8, 64, 64, 64, 64, 100, 100, 100, 100]);
    assert!(lines.iter().all(|line| line["iterations"] == 4 && line["ranks"] == 4));
    assert!(lines.iter().all(|line| line["transport"] == "threads" && line["runs"].as_u64() >= Some(1)));
    // Runs fill a batch, equally many for all algorithms of a size.
    assert!(lines.chunks(4).all(|size| size.iter().all(|line| line["runs"] == size[0]["runs"])));
    // Fastest first.
    for size in lines.chunks(4) {
        let names: Vec<&str> = size.iter().filter_map(|line| line["algorithm"].as_str()).collect();
        assert!(names.contains(&"bruck:ports=1,2") && names.iter().any(|name| name.starts_with("auto (")), "{names:?}");
        let medians: Vec<f64> = size.iter().filter_map(|line| line["median_us"].as_f64()).collect();
        assert!(medians.len() == 4 && medians.is_sorted(), "{medians:?}");
        assert!(size[0]["ratio_to_best"] == 1.0 && size[0]["ties_with_best"] == true && size[0]["times_mpi"].is_null());
    }
    for collective in ["alltoall", "allreduce", "reduce_scatter", "bcast", "reduce", "barrier"] {
        let bench = run(&format!("bench {collective} --topology 3 --bytes 24 --iterations 2 --format csv"));
        assert_eq!(bench.code, Some(0), "{}", bench.err);
        assert!(
            bench.out.starts_with("collective,ranks,bytes,algorithm,") && bench.out.lines().count() > 2,
            "{}",
            bench.out
        );
    }
    refused(&run("bench allgather --algorithm neighbor-exchange --topology 3"), &["an even number", "4 ranks"]);
    refused(&run("bench allgather --bytes 8..4"), &["not a range", "8..1M"]);
    refused(&run("bench allgather --iterations 0"), &["--iterations 0 measures nothing", "1 or more"]);
    refused(&run("bench allgather --topology 1000"), &["1000 ranks", "256"]);
    refused(&run("bench allgather --algorithm ,"), &["empty"]);
    refused(&run("bench allgather --algorithm auto,mpi"), &["needs MPI ranks", "mpirun"]);
}

#[test]
fn bench_shows_a_table_with_a_verdict_or_a_picture() {
    let line = "bench allreduce --algorithm auto,ring,tree --topology 2x2 --bytes 8..256K --iterations 2";
    let bench = run(line);
    assert_eq!(bench.code, Some(0), "{}", bench.err);
    let lines: Vec<&str> = bench.out.lines().collect();
    assert_eq!(lines[0], "allreduce on 4 thread ranks, 2x2");
    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{}", bench.out);
    let sizes = ["     8 B  ", "    64 B  ", "   512 B  ", "   4 KiB  ", "  32 KiB  ", " 256 KiB  "];
    for size in sizes {
        assert_eq!(lines.iter().filter(|line| line.starts_with(size)).count(), 1, "{size:?}: {}", bench.out);
    }
    assert_eq!(lines.iter().filter(|line| line.contains(" * ")).count(), sizes.len(), "{}", bench.out);
    assert!(lines[lines.len() - 1].ends_with('.') && bench.out.contains("Auto is "), "{}", bench.out);
    let svg = run(&format!("{line} --format svg")).out;
    assert!(svg.starts_with("<svg") && svg.contains(">ring</text>") && svg.contains("bytes of the vector"), "{svg}");
}

/// A table is read as it grows, and who has read enough ends the measuring.
#[test]
fn bench_prints_a_size_before_the_next_is_measured() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_allhands"))
        .args(["bench", "bcast", "--algorithm", "binomial", "--topology", "2", "--iterations", "1"])
        .args(["--bytes", "8..64M"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command runs");
    let mut read = std::io::BufReader::new(child.stdout.take().expect("a pipe"));
    let mut text = String::new();
    while !text.contains("  8 B  binomial") {
        assert!(std::io::BufRead::read_line(&mut read, &mut text).expect("text") > 0, "it ended: {text}");
    }
    drop(read);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"));
}

#[test]
fn bench_and_tune_say_that_ranks_outnumber_cores() {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let ranks = cores + 1;
    let said = run(&format!("bench barrier --algorithm auto --topology {ranks} --iterations 1")).err;
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.starts_with(&format!("caution: {ranks} ranks share {cores} core")), "{said}");
}

#[test]
fn a_program_shows_bytes_and_kernels() {
    let program = run("explain allreduce --algorithm recursive-doubling --topology 2 --bytes 64 --format program");
    assert_eq!(program.code, Some(0), "{}", program.err);
    assert_eq!(program.out.matches("# rank").count(), 2);
    assert!(program.out.contains("send          to 1, 64 bytes  input+0:64"), "{}", program.out);
    assert!(
        program.out.contains("take-with     from 1, 64 bytes, before  input+0:64 -> output+0:64"),
        "{}",
        program.out
    );
    let one = run("explain allreduce --algorithm nap --topology 4096x16 --rank 77 --format program");
    assert!(one.code == Some(0) && one.out.starts_with("# rank 77 of 65536"), "{}", one.err);
}

#[test]
fn simulate_shows_times_beside_their_bound_in_every_form() {
    let line = "simulate allgather --machine lassen --topology 4x4 --bytes 8..1K --algorithm bruck,loc-bruck";
    let table = run(line);
    assert_eq!(table.code, Some(0), "{}", table.err);
    insta::assert_snapshot!("simulate", table.out);
    let json: Vec<Value> = serde_json::from_str(&run(&format!("{line} --format json")).out).expect("an array");
    assert_eq!(json.len(), 2 * 5);
    for one in &json {
        assert!(
            one["time_us"].as_f64() >= one["bound_us"].as_f64() && one["ratio_to_best"].as_f64() >= Some(1.0),
            "{one}"
        );
    }
    let csv = run(&format!("{line} --format csv")).out;
    assert_eq!(csv.lines().count(), 1 + 2 * 5);
    let svg = run(&format!("{line} --format svg")).out;
    assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>") && svg.contains(">loc-bruck</text>"));
}

#[test]
fn simulate_writes_schedules_for_other_simulators() {
    let line = "simulate allgather --topology 4 --algorithm ring --bytes 8";
    let simgrid = run(&format!("{line} --format simgrid")).out;
    assert_eq!(simgrid.lines().filter(|line| line.contains("isend")).count(), 12);
    let goal = run(&format!("{line} --format goal")).out;
    assert!(goal.starts_with("num_ranks 4\n"), "{goal}");
    refused(&run("simulate allgather --topology 4 --format goal"), &["name one --algorithm and one size"]);
}

#[test]
fn simulate_refuses_machines_that_are_unknown_or_damaged() {
    refused(
        &run("simulate allreduce --machine laptop"),
        &["\"laptop\"", "shipped are aries, blue-waters, cervino, generic, lassen, tapered, threads, yahoo"],
    );
    refused(&run("simulate allreduce --machine missing.toml"), &["cannot read the machine file missing.toml"]);
    let damaged = file("damaged.toml", "schema = 2\nname = \"m\"\nlatency_ms = 3\n[end]\nlevels = 1\n");
    refused(
        &allhands(&["simulate", "allreduce", "--machine", damaged.to_str().unwrap()]),
        &["damaged.toml", "line 3", "latency_ms"],
    );
    refused(&run("simulate allreduce --bytes 4..2"), &["--bytes 4..2"]);
    refused(&run("simulate allreduce --bytes 4X"), &["4X"]);
}

/// The command with a variable set.
fn run_with(variable: &str, value: &str, line: &str) -> Outcome {
    let mut command = Command::new(env!("CARGO_BIN_EXE_allhands"));
    let output = command.args(line.split_whitespace()).env(variable, value).output().expect("the command runs");
    Outcome {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).expect("text"),
        err: String::from_utf8(output.stderr).expect("text"),
    }
}

#[test]
fn explain_without_an_algorithm_says_what_would_be_chosen_and_why() {
    let said = run("explain allreduce --topology 64x16 --bytes 8 --machine blue-waters");
    assert_eq!(said.code, Some(0), "{}", said.err);
    let lines: Vec<&str> = said.out.lines().collect();
    assert_eq!(lines[0], "allreduce: 1024 ranks on 64 nodes of 16, 8 B: nap:fan=full:local=shared");
    assert_eq!(lines[1], "because of the model of blue-waters: 9.88 us; runner-up nap, 50 % more");
    assert!(lines[3].contains("lower bound") && lines[3].ends_with("memory a rank"), "{}", said.out);
    let table = lines[5..].iter().take_while(|row| !row.is_empty());
    let rows: Vec<f64> = table.map(|row| row.split_whitespace().nth(2).unwrap().parse().unwrap()).collect();
    assert!(rows.len() > 2 && rows[0] == 1.0 && rows.is_sorted(), "{}", said.out);
    assert_eq!(run("explain barrier --topology 8").code, Some(0));
}

#[test]
fn explain_keeps_to_a_limit_on_memory() {
    let explain = |rest: &str| run(&format!("explain allreduce --topology 4x6 --bytes 1000 --machine lassen {rest}"));
    let (free, frugal) = (explain(""), explain("--memory 0"));
    assert_eq!((free.code, frugal.code), (Some(0), Some(0)), "{}{}", free.err, frugal.err);
    let takes = |said: &Outcome| -> Vec<String> {
        let rows = said.out.lines().skip(5).filter(|row| row.ends_with('B'));
        rows.map(|row| row.rsplit("  ").next().unwrap().trim().to_string()).collect()
    };
    assert!(takes(&free).iter().any(|takes| takes != "0 B") && takes(&frugal).iter().all(|takes| takes == "0 B"));
    let named = |rest: &str| run(&format!("explain allreduce --algorithm addition-chain --topology 23 {rest}"));
    refused(
        &named("--bytes 1000 --memory 4K"),
        &["addition-chain takes 5000 bytes a rank", "but 4096 are allowed; allow 5000, or leave the choice"],
    );
    assert_eq!(named("--bytes 1000 --memory 5000").code, Some(0));
    refused(&named("--bytes 8 --memory lots"), &["--memory lots", "4K"]);
    assert!(named("--memory 8").err.contains("--bytes"));
}

#[test]
fn explain_chooses_as_programs_do() {
    let line = "explain allgather --topology 4x4 --bytes 1K";
    let alone = run(line);
    assert!(alone.out.contains("the model of generic") && alone.err.is_empty(), "{}{}", alone.out, alone.err);
    assert!(run_with("ALLHANDS_MACHINE", "lassen", line).out.contains("the model of lassen"));
    let damaged = file("damaged-machine.toml", "schema = 7");
    for bad in ["laptop", "no/such/file.toml", damaged.to_str().expect("text")] {
        let said = run_with("ALLHANDS_MACHINE", bad, line);
        assert_eq!((said.code, &said.out), (Some(0), &alone.out));
        let warning = "allhands: what ALLHANDS_MACHINE names is not used: ";
        assert!(said.err.starts_with(warning) && said.err.lines().count() == 1, "{}", said.err);
    }
    let tuning = "schema = 1\ntransport = 'threads'\ncells = 1\n[[cell]]\ncollective = 'allgather'\nnodes = 4\n\
        ranks_per_node = 4\nbytes = 1024\ntimes = [{ algorithm = 'sparbit', median_us = 2.5, p10_us = 2, p90_us = 3, samples = 9 }]\n";
    let tuned = file("choice-tuning.toml", tuning);
    let said = run_with("ALLHANDS_TUNING", tuned.to_str().expect("text"), line);
    assert!(said.out.contains(": sparbit\nbecause of the tuning file (1 cell): 2.50 us\n"), "{}{}", said.out, said.err);
}

#[test]
fn a_choice_without_a_size_or_with_a_bad_machine_is_refused() {
    refused(&run("explain allgather --topology 4x4"), &["needs a size", "--bytes 1K", "--algorithm"]);
    refused(&run("explain allgather --topology 4x4 --bytes 8 --machine laptop"), &["no machine \"laptop\"", "generic"]);
    refused(&run("explain allgather --topology 4x4 --format svg"), &["needs a size"]);
}

#[test]
fn explain_draws_what_it_would_choose() {
    let chosen = run("explain allreduce --topology 4x4 --bytes 8").out;
    let name = chosen.lines().next().and_then(|line| line.rsplit(": ").next()).expect("a name");
    let asked = "explain allreduce --topology 4x4 --bytes 8 --format";
    for format in ["svg", "schedule", "json", "program"] {
        let drawn = run(&format!("{asked} {format}"));
        let named = run(&format!("{asked} {format} --algorithm {name}"));
        assert_eq!((drawn.code, drawn.err.as_str()), (Some(0), ""));
        assert_eq!(drawn.out, named.out, "{format}");
    }
    let one = run("explain allreduce --topology 4x4 --bytes 8 --rank 5");
    assert!(one.out.contains("rank 5 sits on node 1"), "{}{}", one.out, one.err);
}

#[test]
fn a_picture_of_many_ranks_shows_a_part_and_says_so() {
    let svg = run("explain allreduce --topology 64x16 --bytes 8 --format svg").out;
    let width = svg.split("width=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a width");
    assert!(width.parse::<usize>().expect("a number") < 4000, "{width}");
    assert!(svg.contains("a part is drawn: ") && svg.contains("64 of 1024 ranks, with the messages among them"));
}

/// The names of the algorithms in a table's column, with their times.
fn times(table: &str) -> Vec<(String, String)> {
    let rows = table.lines().skip_while(|line| !line.contains('─')).skip(1);
    let rows: Vec<Vec<&str>> = rows.map(|line| line.split_whitespace().collect()).collect();
    // A name that is too long has a line of its own.
    let words = rows.iter().enumerate().map(|(index, row)| match (&row[..], rows.get(index + 1)) {
        ([_], Some(next)) => [&row[..], next].concat(),
        _ => row.clone(),
    });
    let at = |words: Vec<&str>| {
        let is_name = |word: &&str| word.starts_with(|first: char| first.is_ascii_lowercase()) && !word.ends_with(':');
        let name = words.iter().position(is_name)?;
        let time = words.get(name + 1).filter(|time| time.parse::<f64>().is_ok())?;
        Some((words[name].to_string(), time.to_string()))
    };
    words.filter_map(at).collect()
}

#[test]
fn explain_and_simulate_agree() {
    for what in [
        "allreduce --topology 4x4 --bytes 8",
        "allgather --topology 8 --bytes 1K",
        "bcast --topology 2x2x4 --bytes 64K",
    ] {
        let (explained, simulated) = (run(&format!("explain {what}")), run(&format!("simulate {what} --format json")));
        assert_eq!((explained.code, simulated.code), (Some(0), Some(0)), "{}{}", explained.err, simulated.err);
        let simulated: Vec<Value> = serde_json::from_str(&simulated.out).expect("an array");
        let explained = times(&explained.out);
        assert!(explained.len() > 3 && simulated[0]["algorithm"] == explained[0].0.as_str(), "{what}: {explained:?}");
        for (name, time) in &explained {
            let found = simulated.iter().find(|line| line["algorithm"] == name.as_str());
            let found = found.unwrap_or_else(|| panic!("{what}: {name} is not in {simulated:?}"));
            // A choice cuts vectors as if they were even.
            let ratio = time.parse::<f64>().expect("a time") / found["time_us"].as_f64().expect("a time");
            assert!((ratio - 1.0).abs() < 0.02, "{what}: {name} {time} {found}");
        }
    }
    let said = run("simulate allreduce --topology 4x4 --bytes 8").out;
    assert!(said.starts_with("allreduce on generic, 4x4 (16 ranks)"), "{said}");
    insta::assert_snapshot!("simulate_all", said);
}

/// What would take minutes is estimated, decided by counting, so that the answer is always the same.
#[test]
fn a_million_ranks_are_simulated_in_seconds_and_what_is_estimated_is_marked() {
    insta::assert_snapshot!("simulate_a_million", run("simulate allreduce --topology 65536x16 --bytes 8").out);
}

#[test]
fn collectives_and_topologies_are_understood_as_people_write_them() {
    let plain = run("explain allreduce --topology 2x2 --bytes 8").out;
    for (collective, topology) in [("MPI_Allreduce", "2X2"), ("Allreduce", "2x2"), ("allreduce", "2X2")] {
        assert_eq!(run(&format!("explain {collective} --topology {topology} --bytes 8")).out, plain);
    }
    refused(&run("explain alreduce --topology 2x2 --bytes 8"), &["did you mean allreduce"]);
    refused(&run("list MPI_Broadcast"), &["did you mean bcast"]);
}

#[test]
fn a_tuning_file_is_no_machine() {
    let tuning = "schema = 1\ntransport = 'threads'\ncells = 0\n";
    let path = file("no-machine.toml", tuning);
    refused(
        &run(&format!("simulate allreduce --machine {}", path.display())),
        &["is a tuning file", "no-machine.machine.toml"],
    );
}

#[test]
fn a_machine_of_one_node_says_what_it_assumes_of_a_network() {
    let folder = folder("one-node");
    let tuned = folder.join("here.toml");
    let outcome = run(&format!("tune bcast --topology 1x2 --budget 1s --bytes 8 --output {}", tuned.display()));
    assert_eq!(outcome.code, Some(0), "{}", outcome.err);
    let machine = folder.join("here.machine.toml");
    let text = fs::read_to_string(&machine).expect("the machine file");
    assert!(text.contains("name = \"network\"\nassumed = true\n"), "{text}");
    let simulate = |topology: &str| {
        run(&format!("simulate allreduce --topology {topology} --bytes 8 --machine {}", machine.display()))
    };
    let said = "was measured on one node: what messages between nodes cost is assumed";
    assert!(simulate("1x2").err.is_empty() && simulate("4x2").err.contains(said), "{}", simulate("4x2").err);
}

#[test]
fn a_folder_that_is_not_there_is_found_before_measuring() {
    let nowhere = folder("nowhere").join("no-such-folder/here.toml");
    let outcome = run(&format!("tune --topology 2x2 --output {}", nowhere.display()));
    assert_eq!((outcome.code, outcome.out.as_str()), (Some(2), ""));
    let errors: Vec<&str> = outcome.err.lines().filter(|line| !line.starts_with("caution: ")).collect();
    assert_eq!(errors.len(), 1, "{}", outcome.err);
    assert!(errors[0].contains("there is no folder ") && errors[0].ends_with("make it, or name another --output"));
}

/// The command with something on its standard input.
fn piped(line: &str, text: &str) -> Outcome {
    let mut child = Command::new(env!("CARGO_BIN_EXE_allhands"))
        .args(line.split_whitespace())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command runs");
    // What is refused at once is not read.
    std::io::Write::write_all(&mut child.stdin.take().expect("a pipe"), text.as_bytes()).ok();
    let output = child.wait_with_output().expect("it ends");
    Outcome {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).expect("text"),
        err: String::from_utf8(output.stderr).expect("text"),
    }
}

#[test]
fn what_was_written_by_hand_is_verified_drawn_and_simulated() {
    let verified = piped("verify --file -", PAIR);
    assert!(verified.out.ends_with("verified 1 schedule: correct\n"), "{}{}", verified.out, verified.err);
    let path = file("by-hand", PAIR);
    let path = path.display();
    insta::assert_snapshot!("by_hand", run(&format!("explain --file {path} --bytes 8")).out);
    assert!(run(&format!("explain --file {path} --format svg")).out.contains("allreduce by hand"));
    assert_eq!(run(&format!("explain --file {path} --format schedule")).out.lines().count(), 16);
    insta::assert_snapshot!("by_hand_simulated", run(&format!("simulate --file {path} --bytes 8")).out);
    assert_eq!(piped("simulate --file - --bytes 8", PAIR).out, run(&format!("simulate --file {path} --bytes 8")).out);
    // The rank that is to blame, and where it stands.
    let short = piped("verify --file -", &PAIR.replace("send 0: input[0]", "send 0:"));
    assert_eq!(short.code, Some(1));
    insta::assert_snapshot!("by_hand_wrong", short.err);
    let wrong = piped("verify --file -", &PAIR.replace("combine input", "copy input"));
    assert!(wrong.err.starts_with("error: the standard input, line 10 is wrong: rank 1: output 0 "), "{}", wrong.err);
    for line in ["explain --file - --format html", "explain --file - --format program"] {
        refused(&piped(line, PAIR), &["--file has no program and no page"]);
    }
}

#[test]
fn what_was_written_by_hand_is_run_beside_the_others() {
    let path = file("by-hand-run", PAIR);
    let name = format!("@{}", path.display());
    let rows = |output: &Outcome| -> Vec<(String, String)> {
        let lines: Vec<Value> =
            serde_json::from_str(&output.out).unwrap_or_else(|_| panic!("{}{}", output.out, output.err));
        let word = |line: &Value, key: &str| line[key].as_str().unwrap_or_default().to_string();
        lines.iter().map(|line| (word(line, "collective"), word(line, "algorithm"))).collect()
    };
    let all = rows(&run(&format!("bench --file {} --bytes 8 --iterations 2 --format json", path.display())));
    assert!(all.len() > 5 && all.contains(&("allreduce".into(), name.clone())), "{all:?}");
    let named =
        format!("bench allreduce --topology 2 --algorithm ring,{name} --bytes 7..56 --iterations 2 --format json");
    assert_eq!(rows(&run(&named)).iter().filter(|row| row.1 == name).count(), 2);
    let few = "bench --file - --algorithm auto --bytes 8 --iterations 2 --format json";
    assert_eq!(rows(&piped(few, PAIR)).iter().filter(|row| row.1 == "@-").count(), 1);
    // Its root and its graph are the bench's, too.
    for line in [
        "bcast --algorithm binomial --root 3 --topology 5",
        "neighbor_alltoall --algorithm direct --graph torus:2x2 --topology 4",
    ] {
        let text = run(&format!("explain {line} --format schedule")).out;
        let bench = piped("bench --file - --algorithm all --bytes 8 --iterations 2 --format json", &text);
        assert!(rows(&bench).len() > 2, "{}{}", bench.out, bench.err);
    }
    // What is wrong is not run, nor what is for something else.
    let wrong = piped("bench --file -", &PAIR.replace("combine input", "copy input"));
    assert_eq!((wrong.code, wrong.out.as_str()), (Some(1), ""));
    assert!(wrong.err.starts_with("error: the standard input, line 10 is wrong: rank 1: output 0 "), "{}", wrong.err);
    let misfit = format!("bench allreduce --topology 3 --algorithm {name}");
    refused(&run(&misfit), &[&name, "is a schedule of allreduce on 2 ranks, but the call is on 3"]);
    refused(&run("bench --file nowhere.txt"), &["nowhere.txt: it cannot be read"]);
}

/// A folder for one test, empty.
fn folder(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).expect("the temporary directory can be written");
    path
}

#[test]
fn tuning_writes_both_files_goes_on_and_is_evaluated() {
    let folder = folder("tuning");
    let (tuned, machine) = (folder.join("here.toml"), folder.join("here.machine.toml"));
    let tune = |bytes: &str| {
        let output = tuned.to_str().expect("a path");
        allhands(&["tune", "bcast", "--topology", "2x2", "--budget", "1s", "--bytes", bytes, "--output", output])
    };
    let first = tune("8");
    assert_eq!(first.code, Some(0), "{}{}", first.out, first.err);
    assert!(first.out.contains("here.machine.toml: what messages cost there"), "{}", first.out);
    let measured = fs::read_to_string(&machine).expect("the machine file");
    assert!(measured.contains("4 ranks of threads as") && measured.contains("[level.short]"), "{measured}");

    // Started again for more sizes, it keeps the cells and the machine that it has.
    let cells = |path: &PathBuf| fs::read_to_string(path).expect("the file").matches("[[cell]]").count();
    let begun = cells(&tuned);
    assert!((1..=3).contains(&begun), "{begun}");
    let second = tune("8..64");
    assert_eq!(second.code, Some(0), "{}{}", second.out, second.err);
    assert!(cells(&tuned) > begun);
    assert_eq!(fs::read_to_string(&machine).expect("the machine file"), measured);

    let simulated = format!("simulate allreduce --topology 4x2 --bytes 8 --machine {}", machine.display());
    let simulated = run(&simulated);
    assert_eq!(simulated.code, Some(0), "{}", simulated.err);

    let evaluated = format!("tune bcast --topology 2x2 --budget 1s --bytes 8..64 --evaluate {}", tuned.display());
    let evaluated = run(&evaluated);
    assert_eq!(evaluated.code, Some(0), "{}", evaluated.err);
    assert!(evaluated.out.contains("cells that were not tuned") && evaluated.out.contains("beyond doubt"));
}

#[test]
fn a_damaged_machine_file_is_measured_anew() {
    let folder = folder("damaged");
    let (tuned, machine) = (folder.join("here.toml"), folder.join("here.machine.toml"));
    fs::write(&machine, "schema = 1").expect("written");
    let tune = format!("tune reduce --topology 1x2 --budget 1s --bytes 8 --output {}", tuned.display());
    let outcome = run(&tune);
    assert_eq!(outcome.code, Some(0), "{}", outcome.err);
    assert!(fs::read_to_string(&machine).expect("the machine file").contains("2 ranks of threads"));
}

#[test]
fn tuning_files_merge_if_they_are_of_one_transport() {
    let cell = |transport: &str, bytes: usize, us: f64| {
        format!(
            "schema = 1\ntransport = \"{transport}\"\ncells = 1\n[[cell]]\ncollective = \"bcast\"\nnodes = 2\nranks_per_node = 2\n\
             bytes = {bytes}\ntimes = [{{ algorithm = \"binomial\", median_us = {us}, p10_us = 1.0, p90_us = 1.0, samples = 3 }}]\n"
        )
    };
    let one = file("merge-one.toml", &cell("threads", 8, 1.0));
    let two = file("merge-two.toml", &cell("threads", 64, 2.0));
    let foreign = file("merge-foreign.toml", &cell("Open MPI", 64, 2.0));
    let merged = folder("merge").join("all.toml");
    let merge = |files: &[&PathBuf]| {
        let names = files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(" ");
        run(&format!("tune --merge {names} --output {}", merged.display()))
    };
    let outcome = merge(&[&one, &two]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.err);
    assert!(outcome.out.contains("all.toml: 2 cells for threads"), "{}", outcome.out);
    let checked = run(&format!("tune --check {}", merged.display()));
    assert!(checked.out.contains("binomial 2"), "{}", checked.out);
    refused(&merge(&[&one, &foreign]), &["merge-foreign.toml", "different transports", "threads and Open MPI"]);
    refused(
        &run(&format!("tune --merge {} {} --output x", one.display(), "no-such-file.toml")),
        &["no-such-file.toml"],
    );
}

/// The command in a folder of its own, for tests of what lies beside it.
fn command_in(folder: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(folder);
    fs::create_dir_all(folder.join("bin")).expect("a folder");
    let command = folder.join("bin/allhands");
    let _ = fs::remove_file(&command);
    // A link, because what is being written cannot be run, nor while another test's child has it open.
    fs::hard_link(env!("CARGO_BIN_EXE_allhands"), &command).expect("a link");
    command
}

#[test]
fn exec_needs_the_library_beside_the_command() {
    let output = Command::new(command_in("exec-alone")).args(["exec", "true"]).output().expect("the command runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("liballhands_preload.so is neither in") && said.contains("put it beside the command"),
        "{said}"
    );
}

#[test]
fn exec_becomes_the_program_with_the_library_before_other_preloads() {
    let command = command_in("exec");
    let folder = command.parent().and_then(|bin| bin.parent()).expect("a folder").join("lib");
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("liballhands_preload.so"), "").expect("a file");
    // The linker passes over what is no library, and says so.
    let run = |words: &[&str]| {
        let mut command = Command::new(&command);
        command.arg("exec").args(words).env("LD_PRELOAD", "").output().expect("the command runs")
    };
    let output = run(&["sh", "-c", "echo $LD_PRELOAD; exit $1", "-", "7"]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.trim_end().ends_with("/bin/../lib/liballhands_preload.so"), "{said}");
    assert_eq!(output.status.code(), Some(7));
    let output =
        Command::new(&command).args(["exec", "env"]).env("LD_PRELOAD", "libother.so").output().expect("it runs");
    assert!(String::from_utf8_lossy(&output.stdout).contains("/lib/liballhands_preload.so:libother.so\n"));
    let output = run(&["no-such-program"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(said.contains("no-such-program cannot be run: "), "{said}");
}
