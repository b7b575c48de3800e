//! `cluster race`: our collectives against those of three MPIs and the papers' baselines, on clusters of its own.

mod meeting;
mod network;
mod plot;
pub(crate) mod racer;
mod table;

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use crate::job::{self, Mpi};
use crate::settings::{Delay, Rate, Shape};
use crate::state::{self, Life};
use crate::{Result, node};
use racer::{COLLECTIVES, Cell, Programme};

const RATE: Rate = Rate { megabits: 1000 };
/// More than any job of a race takes.
const MOST: Duration = Duration::from_secs(600);

/// What races.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Under which MPIs; all three if none is named.
    #[arg(long, value_delimiter = ',')]
    mpi: Vec<Mpi>,
    /// Nodes x ranks.
    #[arg(long, value_delimiter = ',', default_value = "4x4,8x4")]
    shape: Vec<Shape>,
    /// Collectives; all five if none is named.
    #[arg(long, value_delimiter = ',')]
    collective: Vec<String>,
    /// Delays, which take turns.
    #[arg(long, value_delimiter = ',', default_value = "500us,2ms")]
    delay: Vec<Delay>,
    /// Delays besides for the smallest size, so that hops can be counted.
    #[arg(long, value_delimiter = ',', default_value = "4ms,8ms")]
    hops: Vec<Delay>,
    /// Bytes of a block or a vector.
    #[arg(long, value_delimiter = ',', default_value = "8,1024,8192,65536")]
    bytes: Vec<usize>,
    /// Turns that count, of each way.
    #[arg(long, default_value_t = 15)]
    iterations: usize,
    /// What a collective of a size may take at each delay; a few turns are always made.
    #[arg(long, default_value_t = 1.6)]
    seconds: f64,
    /// Where all times go.
    #[arg(long)]
    output: Option<PathBuf>,
}

/// Runs everything, writes all times, prints tables.
pub(crate) fn run(args: &Args) -> Result<()> {
    let mpis = if args.mpi.is_empty() { Mpi::ALL.to_vec() } else { args.mpi.clone() };
    if let Some(odd) = args.bytes.iter().find(|bytes| **bytes == 0 || **bytes % 8 != 0) {
        return Err(format!("{odd} bytes are no whole number of 8-byte elements; name multiples of 8"));
    }
    let first = args.delay.first().ok_or("no delay is named; name one, such as 2ms")?;
    let mut text = header();
    for &shape in &args.shape {
        state::up(shape.nodes, *first, RATE, Life::Tied)?;
        // Whatever happens, the cluster goes.
        let outcome = mpis.iter().try_for_each(|&mpi| {
            eprintln!("cluster: {shape}, {}", mpi.title());
            text += &one(mpi, shape, args)?;
            // What was measured so far is not lost.
            args.output.as_ref().map_or(Ok(()), |output| write(output, &text))
        });
        state::down()?;
        outcome?;
    }
    print!("{}", table::tables(&text)?);
    Ok(())
}

fn write(output: &Path, text: &str) -> Result<()> {
    std::fs::write(output, text).map_err(|error| format!("{} cannot be written: {error}", output.display()))
}

/// Prints the tables of a race that was run before, and draws its plot.
pub(crate) fn show(file: &Path, plot: Option<&Path>) -> Result<()> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{} cannot be read: {error}", file.display()))?;
    print!("{}", table::tables(&text)?);
    plot.map_or(Ok(()), |plot| write(plot, &plot::plot(&text)?))
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

/// What the ranks of one job are told: the smallest size at more delays.
fn programme(mpi: Mpi, shape: Shape, args: &Args) -> Result<Programme> {
    let wanted = |name: &str| args.collective.is_empty() || args.collective.iter().any(|wanted| wanted == name);
    let smallest = args.bytes.iter().min();
    let mut cells = Vec::new();
    for (collective, _) in COLLECTIVES.iter().filter(|(name, _)| wanted(name)) {
        for &bytes in &args.bytes {
            let more = if Some(&bytes) == smallest { &args.hops[..] } else { &[] };
            let delays = args.delay.iter().chain(more.iter().filter(|delay| !args.delay.contains(delay)));
            let auto = |delay: &Delay| {
                let candidates = network::candidates(mpi, shape, *delay, RATE, (collective, bytes));
                candidates.map(|candidates| (*delay, candidates))
            };
            cells.push(Cell {
                collective: (*collective).into(),
                bytes,
                delays: delays.map(auto).collect::<Result<_>>()?,
            });
        }
    }
    if cells.is_empty() {
        let known: Vec<&str> = COLLECTIVES.iter().map(|(name, _)| *name).collect();
        return Err(format!("none of these collectives races; name some of {}", known.join(", ")));
    }
    let (meeting, dial) = (state::folder().join("meeting"), state::dial());
    Ok(Programme { meeting, dial, turns: args.iterations, seconds: args.seconds, cells })
}

/// The lines of one job.
fn one(mpi: Mpi, shape: Shape, args: &Args) -> Result<String> {
    let programme = programme(mpi, shape, args)?;
    meeting::Meeting::prepare(&programme.meeting, shape.size())
        .map_err(|error| format!("{} cannot be made: {error}", programme.meeting.display()))?;
    let this = std::env::current_exe().map_err(|error| format!("this program cannot be found: {error}"))?;
    let told = state::folder().join("programme.json");
    write(&told, &serde_json::to_string(&programme).map_err(|error| error.to_string())?)?;
    let words: [OsString; 3] = [this.into(), "racer".into(), told.into()];
    let mut command = job::command(mpi, shape, &words)?;
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{}'s launcher cannot be started: {error}", mpi.title()))?;
    let out = child.stdout.take();
    let cells = programme.cells.len();
    let reader = std::thread::spawn(move || out.map_or_else(Vec::new, |out| listen(out, cells)));
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
    let lines = reader.join().unwrap_or_default();
    if !status.is_some_and(|status| status.success()) {
        let how = status.map_or("did not end in time".into(), |status| format!("ended with {status}"));
        return Err(format!("the race on {} at {shape} {how}", mpi.title()));
    }
    Ok(lines.iter().map(|line| format!("{} {shape} {line}\n", mpi.name())).collect())
}

/// The lines that a job prints about runs; a terminal sees how far it is.
fn listen(out: ChildStdout, cells: usize) -> Vec<String> {
    let (mut lines, mut seen) = (Vec::new(), Vec::new());
    for line in BufReader::new(out).lines().map_while(std::result::Result::ok) {
        let rest = line.split_once(" run ");
        let Some((_, rest)) = rest.or_else(|| line.split_once(" trial ")) else { continue };
        let cell: Vec<String> = rest.split(' ').take(2).map(Into::into).collect();
        if !seen.contains(&cell) {
            seen.push(cell);
            if std::io::stderr().is_terminal() {
                eprint!("\r  {} of {cells} cells{}", seen.len(), if seen.len() == cells { "\n" } else { "" });
            }
        }
        lines.push(line);
    }
    lines
}
