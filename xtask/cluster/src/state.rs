//! The cluster that is there: one at a time, described by a file that only root writes.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::settings::{Delay, Rate};
use crate::{Result, system};

/// A cluster.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Cluster {
    /// The process that everything hangs on.
    pub(crate) switch: u32,
    /// A process of each node.
    pub(crate) keepers: Vec<u32>,
    pub(crate) delay: Delay,
    pub(crate) rate: Rate,
}

pub(crate) fn folder() -> PathBuf {
    "/run/allhands-cluster".into()
}

fn file() -> PathBuf {
    folder().join("cluster.json")
}

/// Where the delay can be turned.
pub(crate) fn dial() -> PathBuf {
    folder().join("dial")
}

/// The cluster, if there is one.
pub(crate) fn current() -> Option<Cluster> {
    let cluster: Cluster = serde_json::from_slice(&fs::read(file()).ok()?).ok()?;
    // Numbers of processes come again: the name must be ours, too.
    let name = fs::read_to_string(format!("/proc/{}/comm", cluster.switch)).unwrap_or_default();
    name.starts_with("allhands-clust").then_some(cluster)
}

impl Cluster {
    pub(crate) fn save(&self) -> Result<()> {
        let text = serde_json::to_string(self).map_err(|error| error.to_string())?;
        fs::write(file(), text).map_err(|error| format!("{} cannot be written: {error}", file().display()))
    }
}

/// How long a cluster is there.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Life {
    UntilDown,
    /// At most as long as this process.
    Tied,
}

/// Builds a cluster, and returns when it is ready.
pub(crate) fn up(nodes: u8, delay: Delay, rate: Rate, life: Life) -> Result<()> {
    if !system::is_root() {
        return Err("nodes are namespaces, which only root can make; run this as root".into());
    }
    if current().is_some() {
        return Err("there is a cluster already; remove it with `cluster down`".into());
    }
    let program = std::env::current_exe().map_err(|error| format!("this program cannot be found: {error}"))?;
    let mut switch = Command::new(program);
    switch.arg("switch").args([nodes.to_string(), delay.to_string(), rate.to_string()]);
    if life == Life::Tied {
        switch.arg("--tied");
    }
    switch.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = switch.spawn().map_err(|error| format!("the switch cannot be started: {error}"))?;
    let mut said = String::new();
    if let Some(out) = child.stdout.take() {
        // Its end comes with that of the process.
        let _ = BufReader::new(out).read_line(&mut said);
    }
    match said.trim() {
        "ready" => Ok(()),
        _ => {
            let _ = child.wait();
            Err("no cluster could be built, for the reason above".into())
        }
    }
}

/// Removes the cluster.
pub(crate) fn down() -> Result<()> {
    let Some(cluster) = current() else {
        let _ = fs::remove_dir_all(folder());
        return Err("there is no cluster".into());
    };
    system::signal(cluster.switch, libc::SIGTERM);
    let deadline = Instant::now() + Duration::from_secs(5);
    while current().is_some() {
        if Instant::now() > deadline {
            system::signal(cluster.switch, libc::SIGKILL);
            let _ = fs::remove_dir_all(folder());
            return Err(format!("process {} did not end when asked to, and was killed", cluster.switch));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}
