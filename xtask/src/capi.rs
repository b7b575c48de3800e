//! `cargo xtask capi`: the C API as its users have it: installed, found by pkg-config, compiled against three MPIs, and run.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::conformance::Args;
use crate::fortran::Fortran;
use crate::launch::launch;
use crate::libraries::Library;
use crate::{Result, build, header, install, mpi};

/// Numbers of ranks.
const RANKS: [usize; 4] = [1, 2, 3, 4];

/// Programs, and what their first rank says at the end.
const PROGRAMS: [(&str, &str); 6] = [
    ("examples/c/plans.c", "all right on"),
    ("crates/capi/tests/c/blocks.c", "blocks are where they belong"),
    ("crates/capi/tests/c/neighbors.c", "neighbors: "),
    ("crates/capi/tests/c/errors.c", "every error is told"),
    ("crates/capi/tests/c/lifetimes.c", "plans live as they should"),
    ("crates/capi/tests/c/closing.c", "closed before MPI ended"),
];

/// The header must be as strict as these. What an MPI's own header does is not asked about.
const STRICT: [&str; 4] = ["-Wall", "-Wextra", "-pedantic", "-Werror"];
const DIALECTS: [(&str, &str, &str); 4] =
    [("cc", "c", "c99"), ("cc", "c", "c11"), ("c++", "c++", "c++11"), ("c++", "c++", "c++20")];

const MOST: Duration = Duration::from_secs(60);

pub(crate) fn by_hand(args: &Args) -> Result<()> {
    mpi::install()?;
    header::check()?;
    run(&args.libraries()?)
}

pub(crate) fn run(libraries: &[Library]) -> Result<()> {
    let begun = Instant::now();
    let command = build::command()?;
    let prefix = installed(&command)?;
    keeps_to_its_names(&prefix)?;
    let flags = flags(&prefix)?;
    for library in libraries {
        match library.name {
            "openmpi" | "mpich" | "intel" | "mpich-abi" => in_c(library, &prefix, &flags)?,
            _ => {}
        }
        if let Some(fortran) = Fortran::of(library) {
            in_fortran(&fortran, library, &prefix, &flags)?;
        }
    }
    eprintln!("xtask: the C API in {:.0} s", begun.elapsed().as_secs_f64());
    Ok(())
}

/// Installs, and moves what was installed elsewhere.
fn installed(command: &Path) -> Result<PathBuf> {
    let folder = mpi::root().join("target/capi");
    let _ = std::fs::remove_dir_all(&folder);
    let (first, prefix) = (folder.join("first"), folder.join("moved"));
    install::into(&first, command)?;
    std::fs::rename(&first, &prefix).map_err(|error| format!("{} cannot be moved: {error}", first.display()))?;
    Ok(prefix)
}

/// What pkg-config says.
fn flags(prefix: &Path) -> Result<Vec<String>> {
    let mut command = Command::new("pkg-config");
    command.args(["--cflags", "--libs", "allhands"]).env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"));
    match command.output() {
        Ok(said) if said.status.success() => {
            Ok(String::from_utf8_lossy(&said.stdout).split_whitespace().map(String::from).collect())
        }
        Ok(said) => Err(format!("pkg-config does not know allhands: {}", String::from_utf8_lossy(&said.stderr))),
        Err(_) => {
            eprintln!("xtask: no pkg-config, which is not installed");
            let (include, lib) = (prefix.join("include"), prefix.join("lib"));
            let (include, lib) = (include.display(), lib.display());
            Ok(vec![format!("-I{include}"), format!("-L{lib}"), "-lallhands".into(), format!("-Wl,-rpath,{lib}")])
        }
    }
}

fn in_c(library: &Library, prefix: &Path, flags: &[String]) -> Result<()> {
    for (compiler, language, dialect) in DIALECTS {
        let mut command = Command::new(compiler);
        command.args(STRICT).args(["-fsyntax-only", "-x", language, &format!("-std={dialect}")]);
        against(&mut command, library).arg(prefix.join("include/allhands.h"));
        build::compile(command)?;
    }
    for (source, says) in PROGRAMS {
        let source = mpi::root().join(source);
        let program = prefix.join(format!("{}-{}", stem(&source), library.name));
        let mut command = Command::new("cc");
        command.args(STRICT).args(["-std=c99", "-O1", "-pthread"]);
        against(&mut command, library).arg(&source).arg("-o").arg(&program);
        // Who names none of the library's functions is not linked with it, and opens it.
        command.arg("-Wl,--as-needed").args(flags).args(["-Wl,--no-as-needed", "-ldl"]);
        with_mpi(&mut command, library);
        build::compile(command)?;
        for ranks in RANKS {
            says_so(library, ranks, &program, says)?;
        }
    }
    taken_over(library, prefix)?;
    eprintln!("xtask: {}: the C API on 1, 2, 3 and 4 ranks", library.title);
    Ok(())
}

/// The library has none of MPI's names: a configure script that links with it must not find functions that the MPI lacks.
fn keeps_to_its_names(prefix: &Path) -> Result<()> {
    let library = prefix.join("lib/liballhands.so");
    let mut command = Command::new("nm");
    command.args(["--dynamic", "--defined-only", "--format=just-symbols"]).arg(&library);
    let listed = command.output().map_err(|error| format!("nm cannot be started ({error}); install binutils"))?;
    let names = String::from_utf8_lossy(&listed.stdout).into_owned();
    if !listed.status.success() || !names.lines().any(|name| name == "allhands_run") {
        return Err(format!("nm finds no functions in {}", library.display()));
    }
    match names.lines().find(|name| !name.starts_with("allhands_")) {
        Some(name) => Err(format!("{} exports {name}, which is not its own", library.display())),
        None => Ok(()),
    }
}

/// A program that is linked with the library keeps its MPI's collectives; under `allhands exec` it gets ours.
fn taken_over(library: &Library, prefix: &Path) -> Result<()> {
    let program = prefix.join(format!("lifetimes-{}", library.name));
    for exec in [false, true] {
        let report = prefix.join(format!("report-{}-{exec}.txt", library.name));
        let mut command = match exec {
            false => library.command(2, &program),
            true => library.command(2, &prefix.join("bin/allhands")),
        };
        if exec {
            command.arg("exec").arg(&program);
        }
        command.env("ALLHANDS_REPORT", &report).env_remove("LD_PRELOAD");
        let ended = launch(command, MOST)?;
        let served = std::fs::read_to_string(&report).is_ok_and(|table| table.contains("allreduce"));
        if !ended.status.is_some_and(|status| status.success()) || served != exec {
            let what = if exec { "under `allhands exec`" } else { "that is only linked" };
            return Err(ended.fault(&format!("{}: a program {what} (calls taken over: {served})", library.title)));
        }
    }
    Ok(())
}

fn in_fortran(fortran: &Fortran, library: &Library, prefix: &Path, flags: &[String]) -> Result<()> {
    let program = prefix.join(format!("fortran-{}", library.name));
    let sources = [prefix.join("include/allhands.f90"), mpi::root().join("examples/fortran/plans.f90")];
    let arguments: Vec<OsString> = [OsString::from("-Wall")]
        .into_iter()
        .chain(sources.map(OsString::from))
        .chain(flags.iter().map(OsString::from))
        .collect();
    fortran.compile(&arguments, &prefix.join("include"), &program)?;
    for ranks in RANKS {
        says_so(library, ranks, &program, "from Fortran: all right on")?;
    }
    eprintln!("xtask: {}: Fortran on 1, 2, 3 and 4 ranks", library.title);
    Ok(())
}

/// The header of an MPI, and the interface of the library.
fn against<'a>(command: &'a mut Command, library: &Library) -> &'a mut Command {
    if library.name.ends_with("-abi") {
        command.arg("-DMPI_ABI");
    }
    command.arg("-isystem").arg(library.file.with_file_name("../include"))
}

fn with_mpi(command: &mut Command, library: &Library) {
    let folder = library.file.parent().unwrap_or(Path::new("/"));
    command.arg(&library.file).arg(format!("-Wl,-rpath,{0},-rpath-link,{0}", folder.display()));
}

fn says_so(library: &Library, ranks: usize, program: &Path, says: &str) -> Result<()> {
    let mut command = library.command(ranks, program);
    // The library is the one that the program was built with.
    command.env_remove("ALLHANDS_MPI").env_remove("LD_PRELOAD");
    let ended = launch(command, MOST)?;
    let right =
        ended.status.is_some_and(|status| status.success()) && ended.out.contains(says) && ended.left.is_empty();
    if right { Ok(()) } else { Err(ended.fault(&format!("{}: {} on {ranks} ranks", library.title, stem(program)))) }
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}
