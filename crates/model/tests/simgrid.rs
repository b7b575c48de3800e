//! SimGrid replays our schedules and agrees, where `smpirun` is installed (Debian: libsimgrid-dev).

use std::fs;
use std::path::Path;
use std::process::Command;

use allhands_model::{Amount, Machine, export, simulate};
use allhands_schedule::{Choice, Collective, Prepared, Problem, Topology};

/// Latency and time per byte of the way between two hosts of the platform below.
const LATENCY: f64 = 2e-6;
const PER_BYTE: f64 = 1e-9;

const PLATFORM: &str = r#"<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="cluster" prefix="node-" suffix="" radical="0-15" speed="1Gf" bw="1GBps" lat="1us"/>
</platform>
"#;

/// What SimGrid makes of it, with neither the corrections nor the overheads that it has for real networks; in seconds.
fn replay(prepared: &Prepared, machine: &Machine, amount: Amount, folder: &Path) -> f64 {
    let ranks = prepared.problem().ranks();
    fs::write(folder.join("platform.xml"), PLATFORM).unwrap();
    let mut hosts = String::new();
    let mut traces = String::new();
    for rank in 0..ranks {
        let trace = folder.join(format!("rank-{rank}.trace"));
        let mut text = Vec::new();
        export::simgrid(&mut text, prepared, rank, machine, amount).unwrap();
        fs::write(&trace, text).unwrap();
        traces += &format!("{}\n", trace.display());
        hosts += &format!("node-{rank}\n");
    }
    fs::write(folder.join("hosts"), hosts).unwrap();
    fs::write(folder.join("traces"), traces).unwrap();
    let output = Command::new("smpirun")
        .current_dir(folder)
        .args(["-np", &ranks.to_string(), "-platform", "platform.xml", "-hostfile", "hosts", "-replay", "traces"])
        .args(["--cfg=smpi/simulate-computation:no", "--cfg=network/model:CM02", "--cfg=network/TCP-gamma:0"])
        .arg("--cfg=smpi/send-is-detached-thresh:0") // sends wait for their receives, as in the postal model
        .args(["--cfg=smpi/os:0:0:0", "--cfg=smpi/or:0:0:0", "--cfg=smpi/ois:0:0:0"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
    let time = text.lines().find_map(|line| line.split("Simulation time ").nth(1)).unwrap_or_else(|| panic!("{text}"));
    time.trim().parse().unwrap()
}

#[test]
fn simgrid_finds_the_same_rounds_and_nearly_the_same_times() {
    if Command::new("smpirun").arg("-version").output().is_err() {
        println!("smpirun is not installed: nothing compared");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let machine = Machine::postal(LATENCY, PER_BYTE);
    for (collective, name) in [
        (Collective::Allgather, "bruck"),
        (Collective::Allgather, "ring"),
        (Collective::Allgather, "sparbit"),
        (Collective::Allreduce, "recursive-doubling"),
        (Collective::Bcast, "binomial"),
        (Collective::Alltoall, "pairwise"),
    ] {
        let problem = Problem::new(collective, Topology::flat(16).unwrap());
        let prepared = Choice::parse(collective, name).unwrap().prepare(&problem).unwrap();
        let both = |bytes| {
            let ours = simulate(&prepared, &machine, Amount::bytes(bytes)).unwrap().seconds;
            (ours, replay(&prepared, &machine, Amount::bytes(bytes), folder.path()))
        };
        // Its clock is printed in whole microseconds.
        let rounds = prepared.cost().steps as f64;
        let (ours, theirs) = both(1);
        assert!((theirs / LATENCY).round() == rounds && (ours / LATENCY).round() == rounds, "{name}: {ours} {theirs}");
        for bytes in [1024, 65536] {
            let (ours, theirs) = both(bytes);
            assert!(
                theirs / ours > 0.8 && theirs / ours < 1.25,
                "{collective} {name}, {bytes} B: {ours} beside {theirs}"
            );
        }
    }
}
