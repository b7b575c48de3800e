//! Traces that SimGrid replays on a cluster like the one that `cluster.toml` describes.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

use allhands_model::{Amount, Machine, export};
use allhands_schedule::Prepared;

/// The machine of SimGrid's platform and settings below, for our simulator.
pub fn machine() -> Machine {
    Machine::parse(include_str!("cluster.toml")).unwrap()
}

/// Whether `smpirun` can be started; says so if not.
pub fn installed() -> bool {
    let installed = Command::new("smpirun").arg("-version").output().is_ok_and(|said| said.status.success());
    if !installed {
        println!("smpirun is not installed (Debian: libsimgrid-dev): nothing compared");
    }
    installed
}

/// Every node has a link each way, through which its flows go together; a flow alone is as fast as the backbone, and as memory inside a node.
fn platform(nodes: usize) -> String {
    format!(
        r#"<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="cluster" prefix="node-" suffix="" radical="0-{}" speed="1Gf" bw="20GBps" lat="1us" sharing_policy="SPLITDUPLEX"
           bb_bw="5GBps" bb_lat="0" bb_sharing_policy="FATPIPE" loopback_bw="10GBps" loopback_lat="500ns"/>
</platform>
"#,
        nodes - 1
    )
}

/// Plain links, without the corrections that SimGrid has for real ones; a rank is kept for 0.2 us by a message that it sends, and by one that it
/// receives unless that has waited for it; those of 8 KiB and more wait.
const SETTINGS: [&str; 9] = [
    "--cfg=smpi/simulate-computation:no",
    "--cfg=network/model:CM02",
    "--cfg=network/TCP-gamma:0",
    "--cfg=network/crosstraffic:no",
    "--cfg=smpi/async-small-thresh:8192",
    "--cfg=smpi/send-is-detached-thresh:8192",
    "--cfg=smpi/os:0:0.2e-6:0",
    "--cfg=smpi/or:0:0.2e-6:0",
    "--cfg=smpi/ois:0:0.2e-6:0",
];

/// The trace of all ranks of an algorithm.
pub fn trace(prepared: &Prepared, amount: Amount) -> String {
    let (mut text, machine) = (Vec::new(), machine());
    for rank in 0..prepared.problem().ranks() {
        export::simgrid(&mut text, prepared, rank, &machine, amount).unwrap();
    }
    String::from_utf8(text).unwrap()
}

/// Seconds that SimGrid finds for a trace, with rank r on node `nodes[r]`.
pub fn replay(trace: &str, nodes: &[usize], folder: &Path) -> f64 {
    let hosts = nodes.iter().fold(String::new(), |mut hosts, node| {
        writeln!(hosts, "node-{node}").unwrap();
        hosts
    });
    let write = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
    write("platform.xml", &platform(nodes.iter().max().unwrap() + 1));
    write("hosts", &hosts);
    write("trace", trace);
    write("traces", &format!("{}\n", folder.join("trace").display()));
    let output = Command::new("smpirun")
        .current_dir(folder)
        .args(["-np", &nodes.len().to_string(), "-platform", "platform.xml", "-hostfile", "hosts", "-replay", "traces"])
        .args(SETTINGS)
        .args(std::env::var("JUDGE").ok())
        // The clock of its last line; the line itself has whole microseconds.
        .arg("--log=root.fmt:%.12r%e%m%n")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
    let last = text.lines().find_map(|line| line.split_once(" Simulation time ")).unwrap_or_else(|| panic!("{text}"));
    last.0.trim().parse().unwrap()
}
