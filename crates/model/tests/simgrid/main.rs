//! SimGrid replays our schedules and agrees, where `smpirun` is on the `PATH` (Debian: libsimgrid-dev; `cargo xtask test` brings it).

mod by_hand;
mod cluster;
mod grid;
mod postal;

use std::fs;
use std::path::Path;
use std::process::Command;

use allhands_model::{Amount, Machine, export};
use allhands_schedule::Prepared;

/// What SimGrid simulates.
struct Network {
    /// Of so many nodes, called `node-0` and so on.
    platform: fn(usize) -> String,
    settings: &'static [&'static str],
}

/// Whether there is a SimGrid; says so if not.
fn installed() -> bool {
    let installed = Command::new("smpirun").arg("-version").output().is_ok_and(|said| said.status.success());
    if !installed {
        println!("smpirun is not installed (Debian: libsimgrid-dev): nothing compared");
    }
    installed
}

/// The trace of all ranks of an algorithm.
fn trace(prepared: &Prepared, machine: &Machine, amount: Amount) -> String {
    let mut text = Vec::new();
    for rank in 0..prepared.problem().ranks() {
        export::simgrid(&mut text, prepared, rank, machine, amount).unwrap();
    }
    String::from_utf8(text).unwrap()
}

impl Network {
    /// Seconds that SimGrid finds for a trace, with rank r on node `nodes[r]`.
    fn replay(&self, trace: &str, nodes: &[usize], folder: &Path) -> f64 {
        let write = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
        let hosts: Vec<String> = nodes.iter().map(|node| format!("node-{node}\n")).collect();
        write("platform.xml", &(self.platform)(nodes.iter().max().unwrap() + 1));
        write("hosts", &hosts.concat());
        write("trace", trace);
        write("traces", &format!("{}\n", folder.join("trace").display()));
        let output = Command::new("smpirun")
            .current_dir(folder)
            .args(["-no-privatize", "-np", &nodes.len().to_string(), "-platform", "platform.xml"])
            .args(["-hostfile", "hosts", "-replay", "traces"])
            // Links as they are told, without the corrections that SimGrid has for real ones.
            .args(["--cfg=smpi/simulate-computation:no", "--cfg=network/model:CM02", "--cfg=network/TCP-gamma:0"])
            // Bytes one way cost none the other way.
            .arg("--cfg=network/crosstraffic:no")
            .args(self.settings)
            // The clock before each line; the last line itself has whole microseconds.
            .arg("--log=root.fmt:%.12r%e%m%n")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
        let last = text.lines().find_map(|line| line.split_once(" Simulation time "));
        last.unwrap_or_else(|| panic!("{text}")).0.trim().parse().unwrap()
    }
}
