//! `cargo xtask install --prefix DIR`: the command, the library, and what programs need to be built with it.

mod packages;

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Result, build, header, mpi};

pub(crate) use abi::ALLHANDS_ABI_VERSION;

#[path = "../../crates/capi/src/abi.rs"]
#[allow(unreachable_pub)]
mod abi;

/// What `allhands exec` puts before a program's MPI.
pub(crate) const PRELOAD: &str = "liballhands_preload.so";

/// Where to.
pub(crate) struct Args {
    prefix: PathBuf,
}

impl Args {
    pub(crate) fn parse(words: &[&str]) -> Option<Args> {
        match words {
            ["--prefix", prefix] if !prefix.is_empty() => Some(Args { prefix: prefix.into() }),
            _ => None,
        }
    }
}

/// Builds for release and installs, below `DESTDIR` if that is set.
pub(crate) fn install(args: &Args) -> Result<()> {
    let prefix = std::path::absolute(&args.prefix).map_err(|error| format!("no such prefix: {error}"))?;
    let root = match std::env::var_os("DESTDIR").filter(|root| !root.is_empty()) {
        Some(root) => PathBuf::from(root).join(prefix.strip_prefix("/").unwrap_or(&prefix)),
        None => prefix,
    };
    let command = build::installed()?;
    for file in into(&root, &command)? {
        println!("{}", file.display());
    }
    let lib = root.join("lib");
    eprintln!("xtask: installed; programs find it with PKG_CONFIG_PATH={}", lib.join("pkgconfig").display());
    Ok(())
}

/// Installs a command, and what is beside it; the files.
pub(crate) fn into(root: &Path, command: &Path) -> Result<Vec<PathBuf>> {
    let place = |file: &str| {
        let to = root.join(file);
        let folder = to.parent().unwrap_or(root);
        std::fs::create_dir_all(folder).map_err(|error| format!("{} cannot be made: {error}", folder.display()))?;
        Ok::<PathBuf, String>(to)
    };
    let real = format!("liballhands.so.{ALLHANDS_ABI_VERSION}.0.0");
    let source = mpi::root();
    let mut files = Vec::new();
    for (from, to) in [
        (command.to_path_buf(), "bin/allhands"),
        (command.with_file_name("liballhands.so"), &format!("lib/{real}")),
        (command.with_file_name(PRELOAD), &format!("lib/{PRELOAD}")),
        (header::place(), "include/allhands.h"),
        (source.join("crates/capi/include/allhands.f90"), "include/allhands.f90"),
        (source.join("LICENSE-MIT"), "share/doc/allhands/LICENSE-MIT"),
        (source.join("LICENSE-APACHE"), "share/doc/allhands/LICENSE-APACHE"),
        (source.join("README.md"), "share/doc/allhands/README.md"),
        (source.join("CHANGELOG.md"), "share/doc/allhands/CHANGELOG.md"),
    ] {
        files.push(copied(&from, place(to)?)?);
    }
    for link in [format!("lib/liballhands.so.{ALLHANDS_ABI_VERSION}"), "lib/liballhands.so".into()] {
        let link = place(&link)?;
        let _ = std::fs::remove_file(&link);
        symlink(&real, &link).map_err(|error| format!("{} cannot be made: {error}", link.display()))?;
        files.push(link);
    }
    for (to, text) in [
        ("lib/pkgconfig/allhands.pc", packages::pkg_config()),
        ("lib/cmake/allhands/allhands-config.cmake", packages::cmake()),
        ("lib/cmake/allhands/allhands-config-version.cmake", packages::cmake_version()),
        ("share/modulefiles/allhands/allhands", packages::module()),
        ("share/bash-completion/completions/allhands", said(command, &["completions", "bash"])?),
        ("share/zsh/site-functions/_allhands", said(command, &["completions", "zsh"])?),
        ("share/fish/vendor_completions.d/allhands.fish", said(command, &["completions", "fish"])?),
    ] {
        let to = place(to)?;
        std::fs::write(&to, text).map_err(|error| format!("{} cannot be written: {error}", to.display()))?;
        files.push(to);
    }
    let man = place("share/man/man1/allhands.1")?.with_file_name("");
    said(command, &["man", &man.to_string_lossy()])?;
    files.push(man);
    Ok(files)
}

/// What the command prints.
fn said(command: &Path, words: &[&str]) -> Result<String> {
    match Command::new(command).args(words).output() {
        Ok(output) if output.status.success() => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        Ok(output) => Err(format!("{} {words:?}: {}", command.display(), String::from_utf8_lossy(&output.stderr))),
        Err(error) => Err(format!("{} cannot be started: {error}", command.display())),
    }
}

/// Replaces a file, and does not write into it: a program may be running from it.
fn copied(from: &Path, to: PathBuf) -> Result<PathBuf> {
    let _ = std::fs::remove_file(&to);
    std::fs::copy(from, &to)
        .map_err(|error| format!("{} cannot be copied to {}: {error}", from.display(), to.display()))?;
    Ok(to)
}
