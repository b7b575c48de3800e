//! Programs of ours in C and Fortran that call everything that is intercepted and compare it with what they compute themselves.
//! Their sources are in `crates/preload/tests/programs`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::{Extent, exec, proven, report, requests, served};
use crate::launch::launch;
use crate::libraries::Library;
use crate::{Result, mpi};

const C: &str = "blocking";
const FORTRAN: [&str; 3] = ["f77", "f90", "f08"];

/// More than any of them needs on two busy cores.
const MOST: Duration = Duration::from_secs(200);

/// Numbers of ranks, and how many communicators are made and freed on them.
const SHORT: [(usize, &str); 3] = [(1, "100"), (2, "400"), (3, "20")];
const FULL: [(usize, &str); 4] = [(1, "10000"), (2, "10000"), (3, "10000"), (5, "10000")];

pub(crate) fn run(allhands: &Path, libraries: &[Library], extent: Extent) -> Result<()> {
    let begun = Instant::now();
    let folder = mpi::root().join("target/programs");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{} cannot be made: {error}", folder.display()))?;
    let fortran = gfortran();
    if fortran.is_none() {
        eprintln!("xtask: gfortran is not installed, so no Fortran program is tried");
    }
    for library in libraries {
        match compile_c(library, &folder)? {
            Some(program) => {
                let sizes = if extent == Extent::Full { &FULL[..] } else { &SHORT[..] };
                for &(ranks, cycles) in sizes {
                    one(allhands, library, &program, C, ranks, &[cycles])?;
                }
            }
            None => eprintln!("xtask: {} has no headers here, so no C program is tried", library.title),
        }
        let Some(version) = &fortran else { continue };
        for source in FORTRAN {
            if let Some(program) = compile_fortran(library, source, version, &folder)? {
                let report = one(allhands, library, &program, source, 3, &[])?;
                proven(&report, &format!("{}, {source}", library.title), &requests::SERVED)?;
            }
        }
    }
    eprintln!("xtask: programs in C and Fortran under the preload in {:.0} s", begun.elapsed().as_secs_f64());
    Ok(())
}

/// Runs a program; its report.
fn one(
    allhands: &Path,
    library: &Library,
    program: &Path,
    name: &str,
    ranks: usize,
    words: &[&str],
) -> Result<PathBuf> {
    let report = report(&format!("{name}-{}-{ranks}.txt", library.name));
    // Left to itself an alltoallv is the MPI's.
    let settings =
        [("ALLHANDS_REPORT", report.as_os_str()), ("ALLHANDS_ALGORITHM", OsStr::new("alltoallv=spread-out"))];
    let mut command = exec(allhands, library, ranks, &settings);
    command.arg(program).args(words).env("LD_LIBRARY_PATH", library.folder());
    let ended = launch(command, MOST)?;
    let title = format!("{}, {name} on {ranks} ranks", library.title);
    let right = ended.status.is_some_and(|status| status.success()) && ended.left.is_empty();
    if !right || !ended.out.contains(&format!(": {ranks} ranks, all right")) {
        return Err(ended.fault(&format!("{title} failed")));
    }
    proven(&report, &title, served(ranks))?;
    eprintln!("xtask: {title}: {:.1} s", ended.time.as_secs_f64());
    Ok(report)
}

/// Where the sources are.
fn sources() -> PathBuf {
    mpi::root().join("crates/preload/tests/programs")
}

/// `None` where a library's headers are not installed.
fn compile_c(library: &Library, folder: &Path) -> Result<Option<PathBuf>> {
    let Some(header) = library.header().filter(|header| header.is_file()) else { return Ok(None) };
    // The header of the standard ABI has a name of its own beside the MPI's.
    let headers = folder.join(format!("include-{}", library.name));
    let _ = std::fs::create_dir_all(&headers);
    let alias = headers.join("mpi.h");
    let _ = std::fs::remove_file(&alias);
    std::os::unix::fs::symlink(&header, &alias)
        .map_err(|error| format!("{} cannot be made: {error}", alias.display()))?;
    let program = folder.join(format!("{C}-{}", library.name));
    let mut command = Command::new("cc");
    command.args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread", "-I"]).arg(&headers);
    command.arg("-I").arg(header.parent().unwrap_or(&headers)).arg(sources().join(format!("{C}.c")));
    command.arg(&library.file).arg("-lm").arg("-o").arg(&program);
    compiled(command)?;
    Ok(Some(program))
}

/// The version of gfortran, if it is installed.
fn gfortran() -> Option<String> {
    let asked = Command::new("gfortran").arg("-dumpversion").output().ok()?;
    asked.status.success().then(|| String::from_utf8_lossy(&asked.stdout).trim().to_owned())
}

/// `None` where a library has nothing for such a program. The wheels of Open MPI and MPICH bring no Fortran, Intel's no
/// `mpi_f08` for gfortran.
fn compile_fortran(library: &Library, source: &str, version: &str, folder: &Path) -> Result<Option<PathBuf>> {
    let program = folder.join(format!("{source}-{}", library.name));
    let mut command = match library.name {
        "debian-openmpi" => Command::new("mpif90.openmpi"),
        "debian-mpich" => Command::new("mpif90.mpich"),
        "intel" => Command::new("gfortran"),
        _ => return Ok(None),
    };
    if library.name == "intel" {
        let root = mpi::environment("intel");
        let Some(modules) = modules(&root.join("include/mpi/gfortran"), version) else { return Ok(None) };
        if source == "f08" {
            return Ok(None);
        }
        command.arg("-I").arg(root.join("include")).arg("-I").arg(modules);
    }
    match library.name {
        // The persistent ones have names of its own.
        "debian-openmpi" => command.arg("-DOPEN_MPI_4"),
        "debian-mpich" if source == "f08" => command.arg("-DLARGE_COUNTS"),
        _ => &mut command,
    };
    // Arguments of any type are what `mpif.h` is about.
    command.args(["-std=gnu", "-w", "-fallow-argument-mismatch", "-J"]).arg(folder).arg("-I").arg(sources());
    command.arg(sources().join(format!("{source}.F90"))).arg("-o").arg(&program);
    if library.name == "intel" {
        let folder = library.folder();
        command.arg(folder.join("libmpifort.so.12")).arg(&library.file).arg("-Wl,--allow-shlib-undefined");
    } else if command.get_program().to_string_lossy().starts_with("mpif90") && !wrapper_works(&command) {
        eprintln!("xtask: {} has no Fortran here, so {source} is not tried", library.title);
        return Ok(None);
    }
    compiled(command)?;
    Ok(Some(program))
}

/// The folder with the modules of gfortran's version, or of the one before it.
fn modules(all: &Path, version: &str) -> Option<PathBuf> {
    let major = |name: &str| name.split('.').next()?.parse::<u32>().ok();
    let wanted = major(version)?;
    let folders = std::fs::read_dir(all).ok()?.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let best =
        folders.filter(|name| major(name).is_some_and(|found| found <= wanted)).max_by_key(|name| major(name))?;
    Some(all.join(best))
}

/// Whether a compiler's wrapper is there and has what it wraps.
fn wrapper_works(command: &Command) -> bool {
    let asked = Command::new(command.get_program()).arg("--version").output();
    let headers = Command::new(command.get_program()).arg("-show").output();
    let both = asked.is_ok_and(|asked| asked.status.success());
    let place = headers.map(|headers| String::from_utf8_lossy(&headers.stdout).into_owned()).unwrap_or_default();
    let includes = place.split_whitespace().filter_map(|word| word.strip_prefix("-I"));
    both && includes.into_iter().any(|folder| Path::new(folder).join("mpif.h").is_file())
}

fn compiled(mut command: Command) -> Result<()> {
    let ended = command.output().map_err(|error| format!("a compiler cannot be started ({error}): {command:?}"))?;
    match ended.status.success() {
        true => Ok(()),
        false => Err(format!("failed: {command:?}\n{}", String::from_utf8_lossy(&ended.stderr))),
    }
}
