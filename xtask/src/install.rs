//! `cargo xtask install --prefix DIR`: the command, the library, and what programs need to be built with it.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Result, build, header, mpi};

use abi::ALLHANDS_ABI_VERSION;

#[path = "../../crates/capi/src/abi.rs"]
#[allow(unreachable_pub)]
mod abi;

/// What `allhands exec` puts before a program's MPI.
const PRELOAD: &str = "liballhands_preload.so";

/// Where to.
pub(crate) struct Wish {
    prefix: PathBuf,
}

impl Wish {
    pub(crate) fn parse(words: &[&str]) -> Option<Wish> {
        match words {
            ["--prefix", prefix] if !prefix.is_empty() => Some(Wish { prefix: prefix.into() }),
            _ => None,
        }
    }
}

/// Builds for release and installs, below `DESTDIR` if that is set.
pub(crate) fn install(wish: &Wish) -> Result<()> {
    let prefix = std::path::absolute(&wish.prefix).map_err(|error| format!("no such prefix: {error}"))?;
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

/// Installs a command, and the libraries that are beside it; the files.
pub(crate) fn into(root: &Path, command: &Path) -> Result<Vec<PathBuf>> {
    let source = mpi::root().join("crates/capi/include");
    let real = format!("liballhands.so.{ALLHANDS_ABI_VERSION}.0.0");
    let folder = |name: &str| {
        let folder = root.join(name);
        std::fs::create_dir_all(&folder).map_err(|error| format!("{} cannot be made: {error}", folder.display()))?;
        Ok::<PathBuf, String>(folder)
    };
    let (bin, lib, include) = (folder("bin")?, folder("lib")?, folder("include")?);
    let (pkgconfig, man) = (folder("lib/pkgconfig")?, folder("share/man/man1")?);
    let mut files = vec![
        copied(command, bin.join("allhands"))?,
        copied(&command.with_file_name("liballhands.so"), lib.join(&real))?,
        copied(&command.with_file_name(PRELOAD), lib.join(PRELOAD))?,
        copied(&header::place(), include.join("allhands.h"))?,
        copied(&source.join("allhands.f90"), include.join("allhands.f90"))?,
    ];
    for link in [format!("liballhands.so.{ALLHANDS_ABI_VERSION}"), "liballhands.so".into()] {
        let link = lib.join(link);
        let _ = std::fs::remove_file(&link);
        symlink(&real, &link).map_err(|error| format!("{} cannot be made: {error}", link.display()))?;
        files.push(link);
    }
    let pc = pkgconfig.join("allhands.pc");
    std::fs::write(&pc, package()).map_err(|error| format!("{} cannot be written: {error}", pc.display()))?;
    files.push(pc);
    match Command::new(command).arg("man").arg(&man).status() {
        Ok(status) if status.success() => files.push(man),
        _ => return Err(format!("{} cannot write its manual pages to {}", command.display(), man.display())),
    }
    Ok(files)
}

/// Replaces a file, and does not write into it: a program may be running from it.
fn copied(from: &Path, to: PathBuf) -> Result<PathBuf> {
    let _ = std::fs::remove_file(&to);
    std::fs::copy(from, &to)
        .map_err(|error| format!("{} cannot be copied to {}: {error}", from.display(), to.display()))?;
    Ok(to)
}

/// What pkg-config says: no folder is named, so the whole may be moved.
fn package() -> String {
    format!(
        "prefix=${{pcfiledir}}/../..
libdir=${{prefix}}/lib
includedir=${{prefix}}/include

Name: allhands
Description: Collective communication that knows where ranks sit, on any MPI
Version: {}
Cflags: -I${{includedir}}
Libs: -L${{libdir}} -lallhands -Wl,-rpath,${{libdir}}
",
        env!("CARGO_PKG_VERSION")
    )
}
