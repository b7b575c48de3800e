//! What comes from Debian, where there is apt: a browser, and an MPICH with Fortran, which no wheel has. Where that fails there is none,
//! which is said.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::launch::launch;
use crate::{Result, mpi};

/// The library, and what compilers need of it. They are unpacked, not installed, so that no other MPI is disturbed.
const MPICH: [&str; 2] = ["libmpich12", "libmpich-dev"];

const MOST: Duration = Duration::from_secs(300);

/// Installs packages, as root.
pub(crate) fn install(packages: &[&str]) -> Result<()> {
    if !is_root() {
        return Err(format!("only root can install {}", packages.join(" and ")));
    }
    eprintln!("xtask: installing {}", packages.join(" and "));
    apt(&["update"], Path::new("/"))?;
    apt(&[&["install", "--yes", "--no-install-recommends"], packages].concat(), Path::new("/"))
}

/// Where packages of MPICH are unpacked.
pub(crate) fn mpich() -> PathBuf {
    mpi::environment("debian-mpich")
}

/// Unpacks MPICH if it is not there.
pub(crate) fn bring_mpich() {
    let folder = mpich();
    let stamp = folder.join(mpi::STAMP);
    if stamp.exists() {
        return;
    }
    let brought = unpack(&folder).and_then(|()| {
        std::fs::write(&stamp, MPICH.join(" "))
            .map_err(|error| format!("{} cannot be written: {error}", stamp.display()))
    });
    if let Err(fault) = brought {
        let _ = std::fs::remove_dir_all(&folder);
        eprintln!("xtask: no Debian's MPICH: {fault}");
    }
}

fn unpack(folder: &Path) -> Result<()> {
    let _ = std::fs::remove_dir_all(folder);
    std::fs::create_dir_all(folder).map_err(|error| format!("{} cannot be made: {error}", folder.display()))?;
    let download = [&["download"], &MPICH[..]].concat();
    let mut downloaded = apt(&download, folder);
    // A fresh machine has no lists of packages.
    if downloaded.is_err() && is_root() {
        downloaded = apt(&["update"], folder).and_then(|()| apt(&download, folder));
    }
    downloaded?;
    eprintln!("xtask: unpacking Debian's MPICH in .mpi/debian-mpich");
    let files = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let packages =
        files.flatten().map(|file| file.path()).filter(|path| path.extension().is_some_and(|it| it == "deb"));
    for package in packages.collect::<Vec<_>>() {
        let mut command = Command::new("dpkg-deb");
        command.arg("--extract").arg(&package).arg(folder);
        succeeds(command)?;
        let _ = std::fs::remove_file(package);
    }
    complete(&folder.join(library()))
}

/// Where the library is among what is unpacked.
pub(crate) fn library() -> String {
    format!("usr/lib/{}-linux-gnu/libmpich.so.12", std::env::consts::ARCH)
}

/// What is only unpacked brings none of the libraries that it needs.
fn complete(library: &Path) -> Result<()> {
    let asked = Command::new("ldd").arg(library).output().map_err(|error| format!("ldd cannot be started: {error}"))?;
    match String::from_utf8_lossy(&asked.stdout).lines().find(|line| line.contains("not found")) {
        Some(line) => Err(format!("a library that it needs is missing: {}", line.trim())),
        None => Ok(()),
    }
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|said| said.stdout.trim_ascii() == b"0")
}

fn apt(words: &[&str], folder: &Path) -> Result<()> {
    let mut command = Command::new("apt-get");
    command.args(words).env("DEBIAN_FRONTEND", "noninteractive").current_dir(folder);
    succeeds(command)
}

fn succeeds(command: Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let ended = launch(command, MOST)?;
    match ended.status.is_some_and(|status| status.success()) {
        true => Ok(()),
        false => Err(ended.fault(&format!("{name} fails"))),
    }
}
