//! What a measurement was made on.

use std::process::Command;

/// Date, kernel, processor and cores, a line each.
pub(super) fn description() -> String {
    let date = Command::new("date").args(["-u", "+%Y-%m-%d %H:%M UTC"]).output();
    let date = date.map_or_else(|_| "unknown".into(), |date| String::from_utf8_lossy(&date.stdout).trim().to_owned());
    let information = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = information.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let model = model.map_or("unknown", |(_, name)| name.trim());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!("date: {date}\nkernel: {}\nprocessor: {model}, {cores} cores\n", first_line("/proc/sys/kernel/osrelease"))
}

/// The load average of the last minute, five and fifteen minutes.
pub(super) fn load() -> String {
    first_line("/proc/loadavg").split_whitespace().take(3).collect::<Vec<_>>().join(" ")
}

fn first_line(file: &str) -> String {
    let text = std::fs::read_to_string(file).unwrap_or_else(|_| "unknown".into());
    text.lines().next().unwrap_or_default().to_owned()
}
