//! How Fortran is compiled against a library.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::libraries::Library;
use crate::{Result, build};

/// A compiler with what it needs of a library.
pub(crate) struct Fortran {
    program: &'static str,
    includes: Vec<PathBuf>,
    linked: Vec<OsString>,
    /// Whether there is `use mpi_f08`.
    pub(crate) modern: bool,
}

impl Fortran {
    /// `None` where a library has nothing for Fortran, which is said where it could have had. The wheels of Open MPI and MPICH bring
    /// none, Intel's no `mpi_f08` for gfortran.
    pub(crate) fn of(library: &Library) -> Option<Fortran> {
        let (folder, headers) = (library.folder(), library.headers()?);
        let gfortran = |part: &str, includes, modern| {
            // The part for Fortran needs the one for C, and is told by an old tag where that is.
            let tag = format!("-Wl,--allow-shlib-undefined,--disable-new-dtags,-rpath,{}", folder.display());
            let linked = vec![folder.join(part).into(), library.file.clone().into(), tag.into()];
            Fortran { program: "gfortran", includes, linked, modern }
        };
        let found = match library.name {
            "debian-openmpi" => {
                let program = "mpif90.openmpi";
                works(program).then(|| Fortran { program, includes: vec![], linked: vec![], modern: true })
            }
            "debian-mpich" => version().map(|_| gfortran("libmpichfort.so.12", vec![headers], true)),
            "intel" => modules(&headers.join("mpi/gfortran"))
                .map(|modules| gfortran("libmpifort.so.12", vec![headers, modules], false)),
            _ => return None,
        };
        if found.is_none() {
            eprintln!("xtask: {} has no Fortran here, so no Fortran program is tried", library.title);
        }
        found
    }

    /// Compiles a program from sources and flags; modules that it has go to a folder.
    pub(crate) fn compile(&self, arguments: &[OsString], modules: &Path, program: &Path) -> Result<()> {
        let mut command = Command::new(self.program);
        for folder in &self.includes {
            command.arg("-I").arg(folder);
        }
        command.arg("-J").arg(modules).args(arguments).arg("-o").arg(program).args(&self.linked);
        build::compile(command)
    }
}

/// The version of gfortran, if it is installed.
fn version() -> Option<String> {
    let asked = Command::new("gfortran").arg("-dumpversion").output().ok()?;
    asked.status.success().then(|| String::from_utf8_lossy(&asked.stdout).trim().to_owned())
}

/// The folder with the modules of gfortran's version, or of the one before it.
fn modules(all: &Path) -> Option<PathBuf> {
    let major = |name: &str| name.split('.').next()?.parse::<u32>().ok();
    let wanted = major(&version()?)?;
    let folders = std::fs::read_dir(all).ok()?.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let best =
        folders.filter(|name| major(name).is_some_and(|found| found <= wanted)).max_by_key(|name| major(name))?;
    Some(all.join(best))
}

/// Whether a compiler's wrapper is there and has what it wraps.
fn works(wrapper: &str) -> bool {
    let asked = Command::new(wrapper).arg("--version").output();
    let headers = Command::new(wrapper).arg("-show").output();
    let both = asked.is_ok_and(|asked| asked.status.success());
    let place = headers.map(|headers| String::from_utf8_lossy(&headers.stdout).into_owned()).unwrap_or_default();
    let includes = place.split_whitespace().filter_map(|word| word.strip_prefix("-I"));
    both && includes.into_iter().any(|folder| Path::new(folder).join("mpif.h").is_file())
}
