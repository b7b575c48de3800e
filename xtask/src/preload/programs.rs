//! Programs of ours in C and Fortran that call everything that is intercepted and compare it with what they compute themselves.
//! Their sources are in `crates/preload/tests/programs`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::{Extent, device, exec, proven, report, requests, served_programs};
use crate::fortran::Fortran;
use crate::launch::launch;
use crate::libraries::Library;
use crate::{Result, build, mpi};

const C: &str = "blocking";
const FORTRAN: [&str; 3] = ["f77", "f90", MODERN];
const MODERN: &str = "f08";

/// More than any of them needs on two busy cores.
const MOST: Duration = Duration::from_secs(200);

/// Numbers of ranks, and how many communicators are made and freed on them.
const SHORT: [(usize, &str); 3] = [(1, "100"), (2, "10000"), (3, "20")];
const FULL: [(usize, &str); 4] = [(1, "10000"), (2, "10000"), (3, "10000"), (5, "10000")];

/// The same for Fortran. On one rank, where nothing is ours, MPICH 4.0 waits for requests wrongly.
const FORTRAN_RANKS: [(usize, &str); 2] = [(2, "10000"), (3, "20")];

pub(crate) fn run(allhands: &Path, libraries: &[Library], extent: Extent) -> Result<()> {
    let begun = Instant::now();
    let folder = mpi::root().join("target/programs");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{} cannot be made: {error}", folder.display()))?;
    for library in libraries {
        match compile_c(library, &folder, C, &format!("{C}.c"))? {
            Some(program) => {
                device::run(allhands, library, &folder)?;
                // The old one spins without yielding.
                let full = extent == Extent::Full && library.name != "debian-mpich";
                let sizes = if full { &FULL[..] } else { &SHORT[..] };
                for &(ranks, cycles) in sizes {
                    one(allhands, library, &program, C, ranks, &[cycles])?;
                }
            }
            None => eprintln!("xtask: {} has no headers here, so no C program is tried", library.title),
        }
        if library.is_native() {
            communicators(allhands, library)?;
        }
        let Some(fortran) = Fortran::of(library) else { continue };
        for source in FORTRAN.into_iter().filter(|source| fortran.modern || *source != MODERN) {
            let program = compile_fortran(&fortran, library, source, &folder)?;
            for (ranks, cycles) in FORTRAN_RANKS {
                let report = one(allhands, library, &program, source, ranks, &[cycles])?;
                proven(&report, &format!("{}, {source}", library.title), &requests::SERVED)?;
            }
        }
    }
    eprintln!("xtask: programs in C and Fortran under the preload in {:.0} s", begun.elapsed().as_secs_f64());
    Ok(())
}

/// Many communicators, one after the other and alive at once, also on ranks of several nodes; and threads with one each.
fn communicators(allhands: &Path, library: &Library) -> Result<()> {
    let compiled = |name: &str| library.compile(&format!("crates/preload/tests/programs/{name}.c"));
    let (communicators, threads) = (compiled("communicators")?, compiled("threads")?);
    for (ranks, topology, words) in [
        (2, None, &["200"][..]),
        (4, None, &["200"]),
        (4, Some("2x2"), &["100"]),
        (4, None, &["2000", "alive"]),
        (4, Some("2,2"), &["300", "alive"]),
    ] {
        quiet(allhands, library, &communicators, ranks, topology, words)?;
    }
    // Intel's ranks wait for ever when several threads have their first collectives, with us and without.
    if library.name != "intel" {
        for (ranks, topology) in [(2, None), (4, None), (4, Some("2x2"))] {
            quiet(allhands, library, &threads, ranks, topology, &[])?;
        }
    }
    Ok(())
}

/// Runs a program whose allreduces must have been ours.
fn quiet(
    allhands: &Path,
    library: &Library,
    program: &Path,
    ranks: usize,
    topology: Option<&str>,
    words: &[&str],
) -> Result<()> {
    let stem = program.file_stem().unwrap_or_default().to_string_lossy();
    let name = stem.trim_end_matches(library.name).trim_end_matches('-');
    let report = report(&format!("{stem}-{ranks}.txt"));
    let mut command = exec(allhands, library, ranks, &[("ALLHANDS_REPORT", report.as_os_str())]);
    if let Some(topology) = topology {
        command.env("ALLHANDS_TOPOLOGY", topology);
    }
    command.arg(program).args(words);
    let ended = launch(command, MOST)?;
    let seats = topology.map_or(String::new(), |topology| format!(" as {topology}"));
    let title = format!("{}, {name} {} on {ranks} ranks{seats}", library.title, words.join(" "));
    let right = ended.status.is_some_and(|status| status.success()) && ended.left.is_empty();
    if !right || !ended.out.contains(&format!("{name}: {ranks} ranks, all right")) {
        return Err(ended.fault(&format!("{title} failed")));
    }
    proven(&report, &title, &["allreduce"])?;
    eprintln!("xtask: {title}: {:.1} s; {}", ended.time.as_secs_f64(), ended.out.lines().next().unwrap_or_default());
    Ok(())
}

/// Runs a program; its report.
pub(super) fn one(
    allhands: &Path,
    library: &Library,
    program: &Path,
    name: &str,
    ranks: usize,
    words: &[&str],
) -> Result<PathBuf> {
    let report = report(&format!("{name}-{}-{ranks}.txt", library.name));
    let mut command = exec(allhands, library, ranks, &[("ALLHANDS_REPORT", report.as_os_str())]);
    command.arg(program).args(words).env("LD_LIBRARY_PATH", library.folder());
    // All but one have requests, which nothing else would move on there.
    if name != C && !matches!(library.name, "openmpi" | "debian-openmpi" | "mpich") {
        command.env("ALLHANDS_PROGRESS", "thread");
    }
    let ended = launch(command, MOST)?;
    let title = format!("{}, {name} on {ranks} ranks", library.title);
    let right = ended.status.is_some_and(|status| status.success()) && ended.left.is_empty();
    if !right || !ended.out.contains(&format!(": {ranks} ranks, all right")) {
        return Err(ended.fault(&format!("{title} failed")));
    }
    proven(&report, &title, served_programs(ranks))?;
    eprintln!("xtask: {title}: {:.1} s", ended.time.as_secs_f64());
    Ok(report)
}

/// Where the sources are.
pub(super) fn sources() -> PathBuf {
    mpi::root().join("crates/preload/tests/programs")
}

/// `None` where a library's headers are not installed.
pub(super) fn compile_c(library: &Library, folder: &Path, name: &str, source: &str) -> Result<Option<PathBuf>> {
    let Some(header) = library.header().filter(|header| header.is_file()) else { return Ok(None) };
    // The header of the standard ABI has a name of its own beside the MPI's.
    let headers = folder.join(format!("include-{}", library.name));
    let _ = std::fs::create_dir_all(&headers);
    let alias = headers.join("mpi.h");
    let _ = std::fs::remove_file(&alias);
    std::os::unix::fs::symlink(&header, &alias)
        .map_err(|error| format!("{} cannot be made: {error}", alias.display()))?;
    let program = folder.join(format!("{name}-{}", library.name));
    let mut command = Command::new("cc");
    command.args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread", "-I"]).arg(&headers);
    command.arg("-I").arg(header.parent().unwrap_or(&headers)).arg(sources().join(source));
    command.arg(&library.file).args(["-lm", "-ldl"]).arg("-o").arg(&program);
    build::compile(command)?;
    Ok(Some(program))
}

/// What is compiled of a source for this library's preprocessor.
fn compile_fortran(fortran: &Fortran, library: &Library, source: &str, folder: &Path) -> Result<PathBuf> {
    let program = folder.join(format!("{source}-{}", library.name));
    let sources = sources();
    // Arguments of any type are what `mpif.h` is about.
    let mut arguments: Vec<OsString> = ["-std=gnu", "-w", "-fallow-argument-mismatch", "-I"].map(OsString::from).into();
    arguments.extend([sources.clone().into(), sources.join(format!("{source}.F90")).into()]);
    match library.name {
        // The persistent ones have names of its own.
        "debian-openmpi" => arguments.push("-DOPEN_MPI_4".into()),
        "debian-mpich" if source == MODERN => arguments.push("-DLARGE_COUNTS".into()),
        _ => {}
    }
    fortran.compile(&arguments, folder, &program)?;
    Ok(program)
}
