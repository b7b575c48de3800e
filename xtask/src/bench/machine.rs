//! What a measurement was made on.

use std::process::Command;

/// Date, commit, kernel, processor and cores, a line each.
pub(super) fn description() -> String {
    let date = said("date", &["-u", "+%Y-%m-%d %H:%M UTC"]);
    let commit = said("git", &["describe", "--always", "--dirty"]);
    let information = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = information.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let model = model.map_or("unknown", |(_, name)| name.trim());
    let cores = cores();
    let kernel = first_line("/proc/sys/kernel/osrelease");
    format!("date: {date}\ncommit: {commit}\nkernel: {kernel}\nprocessor: {model}, {cores} cores\n")
}

/// Cores of this machine, as far as they are given to us.
pub(super) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// What a program prints.
fn said(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().ok().filter(|output| output.status.success());
    output.map_or_else(|| "unknown".into(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The load average of the last minute, five and fifteen minutes.
pub(super) fn load() -> String {
    first_line("/proc/loadavg").split_whitespace().take(3).collect::<Vec<_>>().join(" ")
}

fn first_line(file: &str) -> String {
    let text = std::fs::read_to_string(file).unwrap_or_else(|_| "unknown".into());
    text.lines().next().unwrap_or_default().to_owned()
}
