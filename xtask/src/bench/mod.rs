//! `cargo xtask bench mpi`: our collectives beside those of three MPIs, in the same jobs, with the settings of their users.
//!
//! Two ranks on two cores, so that no rank waits for a core; bound to cores or not as each MPI does it. What plans cost beyond
//! their messages is measured there too, and where ranks outnumber cores.

pub(crate) mod isolated;
mod machine;
mod tables;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::launch::launch;
use crate::libraries::{self, Library};
use crate::{Result, build, mpi};

const LIBRARIES: [&str; 3] = ["openmpi", "mpich", "intel"];
const COLLECTIVES: [&str; 5] = ["allreduce", "allgather", "alltoall", "reduce_scatter_block", "bcast"];

/// More than any job needs.
const MOST: Duration = Duration::from_secs(300);

/// What is to be measured.
pub(crate) struct Args {
    output: Option<PathBuf>,
    /// Few sizes and iterations, to try.
    quick: bool,
}

impl Args {
    /// `[--output FILE] [--quick]`, in any order.
    pub(crate) fn parse(words: &[&str]) -> Option<Args> {
        let mut args = Args { output: None, quick: false };
        let mut words = words.iter();
        while let Some(&word) = words.next() {
            match word {
                "--output" => args.output = Some(words.next()?.into()),
                "--quick" => args.quick = true,
                _ => return None,
            }
        }
        Some(args)
    }
}

/// Prints the tables, and all that was measured into the file or, without one, before them.
pub(crate) fn run(args: &Args) -> Result<()> {
    mpi::install()?;
    let allhands = build::program(&["--release", "--package", "allhands-cli"])?;
    let overheads = build::program(&["--release", "--package", "allhands", "--example", "overheads"])?;
    let libraries = LIBRARIES.into_iter().map(libraries::named).collect::<Result<Vec<_>>>()?;
    let mut report = format!("cargo xtask bench mpi{}\n\n", if args.quick { " --quick" } else { "" });
    report += &machine::description();
    let _ = writeln!(report, "load before: {}\n", machine::load());
    // As programs call, and one right after the other.
    let regimes = [("isolated calls", " --isolated"), ("runs back to back on warm buffers", "")];
    let mut measured = Vec::new();
    for (title, option) in regimes {
        let mut cells = Vec::new();
        for library in &libraries {
            for collective in COLLECTIVES {
                let csv = collective_of(library, &allhands, &format!("{collective}{option}"), args.quick, &mut report)?;
                cells.extend(tables::cells(library.title, &csv)?);
            }
        }
        measured.push((title, cells));
    }
    for library in &libraries {
        overheads_of(library, &overheads, args.quick, &mut report)?;
    }
    let _ = writeln!(report, "load after: {}\n", machine::load());
    let titles: Vec<&str> = libraries.iter().map(|library| library.title).collect();
    let mut short = String::new();
    for (title, cells) in &measured {
        let _ = writeln!(report, "{title}\n\n{}", tables::in_full(cells, &titles));
        let _ = writeln!(short, "{title}\n\n{}", tables::in_short(cells, &titles));
    }
    report += &short;
    match &args.output {
        Some(file) => {
            std::fs::write(file, report).map_err(|error| format!("{} cannot be written: {error}", file.display()))?;
            println!("{short}");
        }
        None => println!("{report}"),
    }
    Ok(())
}

/// `cargo xtask bench preload`: what the preload costs, on two ranks of three MPIs.
pub(crate) fn preload(args: &Args) -> Result<()> {
    mpi::install()?;
    let exec = build::installed()?;
    let cost = build::program(&["--release", "--package", "allhands-preload", "--example", "cost"])?;
    let mut report = format!("cargo xtask bench preload\n\n{}", machine::description());
    for name in LIBRARIES {
        let library = libraries::named(name)?;
        let mut command = library.plain_command(2, &exec);
        let algorithm = "alltoall=mpi";
        command.arg("exec").arg(&cost).env("ALLHANDS_ALGORITHM", algorithm);
        let line = format!("ALLHANDS_ALGORITHM={algorithm} mpirun -n 2 allhands exec cost");
        report.push('\n');
        one(&library, command, &line, &mut report)?;
    }
    match &args.output {
        Some(file) => {
            std::fs::write(file, report).map_err(|error| format!("{} cannot be written: {error}", file.display()))
        }
        None => {
            println!("{report}");
            Ok(())
        }
    }
}

/// Measures a collective on two ranks; the lines with values.
fn collective_of(
    library: &Library,
    program: &Path,
    collective: &str,
    quick: bool,
    report: &mut String,
) -> Result<String> {
    let size = if quick { "--bytes 8..4K --iterations 20" } else { "--bytes 8..4M" };
    let words = format!("bench {collective} --algorithm auto,mpi {size} --format csv");
    let mut command = library.plain_command(2, program);
    command.args(words.split_whitespace());
    one(library, command, &format!("mpirun -n 2 allhands {words}"), report)
}

fn overheads_of(library: &Library, program: &Path, quick: bool, report: &mut String) -> Result<()> {
    let jobs: [(usize, &str, bool); 4] =
        [(2, "", false), (2, "overlap", true), (4, "hand creation", false), (8, "hand creation", false)];
    for (ranks, parts, thread) in jobs {
        // Where ranks outnumber cores, every MPI must be told to give them away while it waits.
        let mut command =
            if ranks <= 2 { library.plain_command(ranks, program) } else { library.command(ranks, program) };
        command.args(parts.split_whitespace()).args(quick.then_some("--quick"));
        if thread {
            command.env("ALLHANDS_PROGRESS", "thread");
        }
        let variable = if thread { "ALLHANDS_PROGRESS=thread " } else { "" };
        let waiting = if ranks <= 2 { "" } else { " (waiting ranks yield)" };
        one(library, command, &format!("{variable}mpirun -n {ranks} overheads {parts}{waiting}"), report)?;
    }
    Ok(())
}

/// Runs a job and reports what it printed, under a line that says what it was.
fn one(library: &Library, command: Command, line: &str, report: &mut String) -> Result<String> {
    eprintln!("xtask: {}: {line}", library.title);
    let load = machine::load();
    let ended = launch(command, MOST)?;
    if !ended.status.is_some_and(|status| status.success()) {
        return Err(ended.fault(&format!("{} failed in {line}", library.title)));
    }
    let printed = ended.out.replace('\r', "");
    let _ = writeln!(report, "# {}: {}; load {load}\n{printed}", library.title, line.trim_end());
    Ok(printed)
}
