//! `cluster race`: our collectives against those of three MPIs and the papers' baselines, on clusters of its own.

mod meeting;
pub(crate) mod racer;
mod table;

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::job::{self, Mpi};
use crate::settings::{Delay, Rate, Shape};
use crate::state::{self, Life};
use crate::{Result, node};

const SIZES: [usize; 5] = [8, 128, 1024, 8 * 1024, 64 * 1024];
const RATE: Rate = Rate { megabits: 1000 };
/// More than any job of a race takes.
const MOST: Duration = Duration::from_secs(400);

/// What races.
#[derive(clap::Args)]
pub(crate) struct Wish {
    /// Under which MPIs; all three if none is named.
    #[arg(long, value_delimiter = ',')]
    mpi: Vec<Mpi>,
    /// Nodes x ranks.
    #[arg(long, value_delimiter = ',', default_value = "4x4,8x4")]
    shape: Vec<Shape>,
    /// Delays; with two or more, hops are counted.
    #[arg(long, value_delimiter = ',', default_value = "500us,2ms")]
    delay: Vec<Delay>,
    /// Bytes of a block or a vector; 8 to 65536 if none is named.
    #[arg(long, value_delimiter = ',')]
    bytes: Vec<usize>,
    /// Turns that count, of each way.
    #[arg(long, default_value_t = 15)]
    iterations: usize,
    /// Where all times go.
    #[arg(long)]
    output: Option<PathBuf>,
}

/// Runs everything, writes all times, prints tables.
pub(crate) fn run(wish: &Wish) -> Result<()> {
    let mpis = if wish.mpi.is_empty() { Mpi::ALL.to_vec() } else { wish.mpi.clone() };
    let sizes = if wish.bytes.is_empty() { SIZES.to_vec() } else { wish.bytes.clone() };
    if let Some(odd) = sizes.iter().find(|bytes| **bytes == 0 || **bytes % 8 != 0) {
        return Err(format!("{odd} bytes are no whole number of 8-byte elements; name multiples of 8"));
    }
    let mut text = header();
    for &shape in &wish.shape {
        for &delay in &wish.delay {
            state::up(shape.nodes, delay, RATE, Life::Tied)?;
            // Whatever happens, the cluster goes.
            let outcome = mpis.iter().try_for_each(|&mpi| {
                eprintln!("cluster: {shape}, {delay}, {}", mpi.title());
                text += &one(mpi, shape, delay, wish.iterations, &sizes)?;
                Ok::<(), String>(())
            });
            state::down()?;
            outcome?;
        }
    }
    if let Some(output) = &wish.output {
        std::fs::write(output, &text).map_err(|error| format!("{} cannot be written: {error}", output.display()))?;
    }
    print!("{}", table::tables(&text)?);
    Ok(())
}

/// Prints the tables of a race that was run before, and draws its plot.
pub(crate) fn show(file: &Path, plot: Option<&Path>) -> Result<()> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{} cannot be read: {error}", file.display()))?;
    print!("{}", table::tables(&text)?);
    if let Some(plot) = plot {
        let drawing = table::plot(&text)?;
        std::fs::write(plot, drawing).map_err(|error| format!("{} cannot be written: {error}", plot.display()))?;
    }
    Ok(())
}

/// When, on what, with what load.
fn header() -> String {
    let line = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output();
        output.map_or_else(|_| "unknown".into(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let words: Vec<String> = std::env::args().skip(1).collect();
    let mut text = format!("# cargo xtask cluster {}\n", words.join(" "));
    let _ = writeln!(text, "# {}, {cores} cores, load {}", line("date", &["-u", "+%F %T UTC"]), load.trim());
    text
}

/// The lines of one job.
fn one(mpi: Mpi, shape: Shape, delay: Delay, iterations: usize, sizes: &[usize]) -> Result<String> {
    let place = state::folder().join("meeting");
    meeting::Meeting::prepare(&place, shape.size())
        .map_err(|error| format!("{} cannot be made: {error}", place.display()))?;
    let this = std::env::current_exe().map_err(|error| format!("this program cannot be found: {error}"))?;
    let sizes: Vec<String> = sizes.iter().map(ToString::to_string).collect();
    let words: [OsString; 5] =
        [this.into(), "racer".into(), place.into(), iterations.to_string().into(), sizes.join(",").into()];
    let mut command = job::command(mpi, shape, &words)?;
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{}'s launcher cannot be started: {error}", mpi.title()))?;
    let out = child.stdout.take();
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        if let Some(mut out) = out {
            let _ = std::io::Read::read_to_string(&mut out, &mut text);
        }
        text
    });
    let deadline = Instant::now() + MOST;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Some(status),
            Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(50)),
            _ => break None,
        }
    };
    if let Some(cluster) = state::current() {
        node::end_all(&cluster.keepers, true);
    }
    let _ = child.wait();
    let said = reader.join().unwrap_or_default();
    if !status.is_some_and(|status| status.success()) {
        let how = status.map_or("did not end in time".into(), |status| format!("ended with {status}"));
        return Err(format!("the race on {} at {shape} {how}", mpi.title()));
    }
    let runs = said.lines().filter(|line| line.starts_with("run "));
    Ok(runs.map(|line| format!("{} {shape} {delay} {line}\n", mpi.name())).collect())
}
