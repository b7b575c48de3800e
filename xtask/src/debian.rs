//! What comes from Debian, where there is apt: a browser, an MPICH with Fortran, which no wheel has, and SimGrid, which simulates what our
//! simulator does. Where that fails there is none, which is said.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::launch::launch;
use crate::{Result, mpi};

/// The library, and what compilers need of it. They are unpacked, not installed, so that no other MPI is disturbed.
const MPICH: [&str; 2] = ["libmpich12", "libmpich-dev"];

/// Its name does not change with its version, as those of what it needs do.
const SIMGRID: &str = "libsimgrid-dev";

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
    let packages = || Ok(MPICH.map(String::from).to_vec());
    if let Err(fault) = bring(&mpich(), packages, |folder| complete(&folder.join(library()), None)) {
        eprintln!("xtask: no Debian's MPICH: {fault}");
    }
}

/// Where packages of SimGrid are unpacked.
fn simgrid() -> PathBuf {
    mpi::environment("debian-simgrid")
}

/// Where programs are looked for: as ever, then among what of SimGrid is unpacked.
pub(crate) fn path() -> OsString {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::join_paths(std::env::split_paths(&path).chain([simgrid().join("usr/bin")])).unwrap_or(path)
}

/// Unpacks SimGrid if it is neither installed nor there; why that cannot be.
pub(crate) fn bring_simgrid() -> Option<String> {
    if Command::new("smpirun").arg("-version").output().is_ok_and(|said| said.status.success()) {
        return None;
    }
    let fault = bring(&simgrid(), needed_by_simgrid, settle_simgrid).err()?;
    let fault = fault.lines().next().unwrap_or_default().to_string();
    eprintln!("xtask: no SimGrid: {fault}");
    Some(format!("the comparison with SimGrid ({fault})"))
}

/// The package and what it needs that is not installed, as apt finds out; headers are for others.
fn needed_by_simgrid() -> Result<Vec<String>> {
    let mut apt = Command::new("apt-get");
    apt.args(["install", "--print-uris", "--quiet", "--yes", "--no-install-recommends", SIMGRID]);
    let said = apt.output().map_err(|error| format!("apt-get cannot be started: {error}"))?;
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    // 'http://.../libns3.37_3.37-2_amd64.deb' libns3.37_3.37-2_amd64.deb 11640568 SHA256:...
    let files = said.lines().filter(|line| line.starts_with('\'')).filter_map(|line| line.split(' ').nth(1));
    let names = files.filter_map(|file| file.split('_').next()).map(String::from);
    let needed: Vec<String> = names.filter(|name| name == SIMGRID || !name.ends_with("-dev")).collect();
    if needed.is_empty() { Err(format!("apt-get knows no {SIMGRID}")) } else { Ok(needed) }
}

/// Lets the script that starts SimGrid find what is beside it.
fn settle_simgrid(folder: &Path) -> Result<()> {
    let script = folder.join("usr/bin/smpirun");
    let libraries = folder.join("usr/lib").join(format!("{}-linux-gnu", std::env::consts::ARCH));
    complete(&libraries.join("simgrid/smpimain"), Some(&libraries))?;
    let fault = |error| format!("{}: {error}", script.display());
    let text = std::fs::read_to_string(&script).map_err(fault)?;
    let text = text.replace("/usr/lib/", &format!("{}/usr/lib/", folder.display()));
    let export = format!("export LD_LIBRARY_PATH='{}'\n", libraries.display());
    let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
    std::fs::write(&script, format!("{first}\n{export}{rest}")).map_err(fault)
}

/// Unpacks packages in a folder and settles them there, unless that has been done.
fn bring(
    folder: &Path,
    packages: impl Fn() -> Result<Vec<String>>,
    settle: impl Fn(&Path) -> Result<()>,
) -> Result<()> {
    let stamp = folder.join(mpi::STAMP);
    if stamp.exists() {
        return Ok(());
    }
    let brought = unpack(folder, packages).and_then(|unpacked| {
        settle(folder)?;
        std::fs::write(&stamp, unpacked.join(" "))
            .map_err(|error| format!("{} cannot be written: {error}", stamp.display()))
    });
    if brought.is_err() {
        let _ = std::fs::remove_dir_all(folder);
    }
    brought
}

fn unpack(folder: &Path, packages: impl Fn() -> Result<Vec<String>>) -> Result<Vec<String>> {
    let _ = std::fs::remove_dir_all(folder);
    std::fs::create_dir_all(folder).map_err(|error| format!("{} cannot be made: {error}", folder.display()))?;
    let download = || {
        let names = packages()?;
        let words: Vec<&str> = std::iter::once("download").chain(names.iter().map(String::as_str)).collect();
        apt(&words, folder).map(|()| names)
    };
    let mut downloaded = download();
    // A fresh machine has no lists of packages.
    if downloaded.is_err() && is_root() {
        downloaded = apt(&["update"], folder).and_then(|()| download());
    }
    let downloaded = downloaded?;
    eprintln!("xtask: unpacking {} in {}", downloaded.join(", "), folder.display());
    let files = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let files = files.flatten().map(|file| file.path()).filter(|path| path.extension().is_some_and(|it| it == "deb"));
    for package in files.collect::<Vec<_>>() {
        let mut command = Command::new("dpkg-deb");
        command.arg("--extract").arg(&package).arg(folder);
        succeeds(command)?;
        let _ = std::fs::remove_file(package);
    }
    Ok(downloaded)
}

/// Where the library is among what is unpacked.
pub(crate) fn library() -> String {
    format!("usr/lib/{}-linux-gnu/libmpich.so.12", std::env::consts::ARCH)
}

/// What is only unpacked may lack libraries that it needs; some may be unpacked beside it.
fn complete(library: &Path, beside: Option<&Path>) -> Result<()> {
    let mut ldd = Command::new("ldd");
    ldd.arg(library).envs(beside.map(|folder| ("LD_LIBRARY_PATH", folder)));
    let asked = ldd.output().map_err(|error| format!("ldd cannot be started: {error}"))?;
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
