//! Which MPI library to use.
//!
//! 1. The one that is in the process already: two copies of MPI in one process do not know of each other.
//! 2. The one that `ALLHANDS_MPI` names; if it does not open, that is an error and not a reason to look further.
//! 3. The one that belongs to the launcher, next to whose executable it lies: first the ancestors of this process, then
//!    `mpirun` and `mpiexec` in `PATH`.
//! 4. The one that the dynamic linker finds by name.
//!
//! `libmpi.so` without a number is never opened: in some packages it is a text for the link editor.

use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use crate::abi::detect;
use crate::library::{Library, file_of, global_symbol};
use crate::{Error, Result};

/// The variable that names a library.
pub(crate) const VARIABLE: &str = "ALLHANDS_MPI";

const OPEN_MPI: &[&str] = &["libmpi.so.40"];
const MPICH: &[&str] = &["libmpi.so.12", "libmpich.so.12"];
const STANDARD: &[&str] = &["libmpi_abi.so.1", "libmpi_abi.so.0"];

/// Where libraries lie, seen from the folder of the launcher. `lib/release` is that of older Intel MPIs.
const FOLDERS: &[&str] = &[
    "../lib",
    "../lib64",
    "../lib/x86_64-linux-gnu",
    "../lib/aarch64-linux-gnu",
    "../lib/release",
    "../lib/x86_64-linux-gnu/openmpi/lib",
    "../lib/aarch64-linux-gnu/openmpi/lib",
    "../lib64/openmpi/lib",
    "../lib64/mpich/lib",
];

/// Names of programs that start MPI processes.
const LAUNCHERS: &[&str] = &[
    "mpirun",
    "mpiexec",
    "prterun",
    "prte",
    "prted",
    "prun",
    "orterun",
    "orted",
    "ompirun_wrapper",
    "mpiexec.hydra",
    "mpirun.hydra",
    "mpiexec.gforker",
    "hydra_pmi_proxy",
    "hydra_bstrap_proxy",
    "mpirun.mpich",
    "mpiexec.mpich",
    "mpirun.openmpi",
    "mpiexec.openmpi",
    "mpirun_rsh",
    "mpispawn",
];

/// A library that was found, and the file that it is.
pub(crate) struct Found {
    pub(crate) library: Library,
    pub(crate) path: PathBuf,
    pub(crate) how: How,
}

/// How an MPI library was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum How {
    /// The process had it already.
    Loaded,
    /// `ALLHANDS_MPI` names it.
    Named,
    /// It lies beside this launcher.
    Beside(PathBuf),
    /// By its name, in the linker's path.
    Linker,
}

impl fmt::Display for How {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            How::Loaded => out.write_str("which the program has loaded"),
            How::Named => write!(out, "which {VARIABLE} names"),
            How::Beside(launcher) => write!(out, "which belongs to {}", launcher.display()),
            How::Linker => out.write_str("which the dynamic linker finds"),
        }
    }
}

/// Looks in all places.
pub(crate) fn find() -> Result<Found> {
    if let Some(found) = in_process() {
        return Ok(found);
    }
    if let Some(path) = std::env::var_os(VARIABLE).filter(|path| !path.is_empty()) {
        return named(Path::new(&path));
    }
    let mut searched = vec!["the libraries of this process".to_owned(), format!("{VARIABLE}, which is not set")];
    let launchers = launchers(&ancestors(), std::env::var_os("PATH").as_deref());
    if launchers.is_empty() {
        searched
            .push("mpirun and mpiexec among the ancestors of this process and in PATH, of which there are none".into());
    }
    for launcher in &launchers {
        let files = beside(launcher);
        if files.is_empty() {
            searched.push(format!("the libraries beside {}, of which none is an MPI", launcher.display()));
        }
        for file in files {
            match Library::open(file.as_os_str()) {
                Ok(library) => return Ok(located(library, file, How::Beside(launcher.clone()))),
                Err(reason) => searched.push(format!("{} ({reason})", file.display())),
            }
        }
    }
    for name in [OPEN_MPI, MPICH, STANDARD].concat() {
        match Library::open(OsStr::new(name)) {
            Ok(library) => return Ok(located(library, name.into(), How::Linker)),
            Err(_) => searched.push(format!("{name} in the linker's path")),
        }
    }
    Err(Error::NotFound { searched })
}

/// The library that a path from the user names.
fn named(path: &Path) -> Result<Found> {
    let cannot = |reason: String| Error::CannotOpen { path: path.to_owned(), reason };
    if path.is_dir() {
        return Err(cannot("it is a directory".into()));
    }
    match Library::open(path.as_os_str()) {
        Ok(library) => Ok(located(library, path.to_owned(), How::Named)),
        Err(reason) => Err(cannot(reason)),
    }
}

/// The file behind a library's own functions: the linker knows where a bare name led to.
fn located(library: Library, name: PathBuf, how: How) -> Found {
    let path = file_of(library.symbol(c"PMPI_Init")).unwrap_or(name);
    Found { library, path, how }
}

/// The MPI that this process has loaded.
///
/// A program that links MPI makes `MPI_Init` visible to all. Where that name leads elsewhere (to a preload library) or
/// nowhere (Python loads its modules, and these MPI, out of sight), the process' map of files tells what is loaded.
fn in_process() -> Option<Found> {
    let visible = global_symbol(c"MPI_Init");
    let file = file_of(visible);
    if let Some(found) = file.as_deref().filter(|file| is_mpi_name(file)).and_then(already_loaded) {
        return Some(found);
    }
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    if let Some(found) = mapped(&maps).iter().find_map(|path| already_loaded(path)) {
        return Some(found);
    }
    // An MPI inside of the executable, or in a library of another name; but not a preload library in a program without MPI.
    let file = file?;
    let library = Library::loaded(file.as_os_str()).unwrap_or_else(|_| Library::program());
    detect(&telling_name(&file), |name| !library.symbol(name).is_null())?;
    Some(Found { library, path: file, how: How::Loaded })
}

/// A loaded library with MPI's functions in it or in one that it depends on: the latter, as that has the right name.
fn already_loaded(path: &Path) -> Option<Found> {
    let library = Library::loaded(path.as_os_str()).ok()?;
    let file = file_of(library.symbol(c"PMPI_Init"))?;
    let library = Library::loaded(file.as_os_str()).ok()?;
    Some(Found { library, path: file, how: How::Loaded })
}

fn is_mpi_name(path: &Path) -> bool {
    path.file_name().and_then(OsStr::to_str).is_some_and(|name| name.starts_with("libmpi") && name.contains(".so"))
}

/// The files of a process' map whose name is an MPI library's.
fn mapped(maps: &str) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = Vec::new();
    for line in maps.lines() {
        let Some(start) = line.find('/') else { continue };
        let path = Path::new(&line[start..]);
        if is_mpi_name(path) && !paths.iter().any(|known| known == path) {
            paths.push(path.to_owned());
        }
    }
    paths
}

/// The programs in `PATH` that start MPI jobs, as `find` comes to them.
///
/// ```
/// for launcher in allhands_mpi::launchers_in_path() {
///     assert!(launcher.is_absolute());
/// }
/// ```
pub fn launchers_in_path() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute()).collect::<Vec<_>>();
    let files = folders.iter().flat_map(|folder| ["mpirun", "mpiexec"].map(|name| folder.join(name)));
    files.filter(|file| file.is_file()).collect()
}

/// The executables of the processes above this one, the nearest first.
fn ancestors() -> Vec<PathBuf> {
    let mut executables = Vec::new();
    let mut process = "self".to_owned();
    // A bound, as the table of processes changes while it is read.
    for _ in 0..64 {
        let Ok(status) = fs::read_to_string(format!("/proc/{process}/status")) else { break };
        match parent(&status) {
            Some(above) if above != "0" => process = above.to_owned(),
            _ => break,
        }
        if let Ok(executable) = fs::read_link(format!("/proc/{process}/exe")) {
            executables.push(executable);
        }
    }
    executables
}

fn parent(status: &str) -> Option<&str> {
    status.lines().find_map(|line| line.strip_prefix("PPid:")).map(str::trim)
}

/// The launchers among the ancestors, then those in `PATH`, each with and without its symbolic links resolved: some
/// installations link into their folder from elsewhere, some link all launchers to one program elsewhere.
fn launchers(ancestors: &[PathBuf], path: Option<&OsStr>) -> Vec<PathBuf> {
    let is_launcher =
        |file: &&PathBuf| file.file_name().and_then(OsStr::to_str).is_some_and(|name| LAUNCHERS.contains(&name));
    let mut found: Vec<PathBuf> = ancestors.iter().filter(is_launcher).cloned().collect();
    let folders: Vec<PathBuf> = path.map(|path| std::env::split_paths(path).collect()).unwrap_or_default();
    for folder in folders.iter().filter(|folder| folder.is_absolute()) {
        for name in ["mpirun", "mpiexec"] {
            let file = folder.join(name);
            if let Ok(resolved) = file.canonicalize() {
                found.extend([resolved, file]);
            }
        }
    }
    let mut unique = Vec::new();
    for file in found {
        if !unique.contains(&file) {
            unique.push(file);
        }
    }
    unique
}

/// The MPI libraries that lie where a launcher's would. Several MPIs may share a folder, so a launcher whose name tells
/// its family has that family's names first.
fn beside(launcher: &Path) -> Vec<PathBuf> {
    let name = launcher.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let of_mpich = ["hydra", "mpich", "gforker", "mpirun_rsh", "mpispawn"].iter().any(|part| name.contains(part));
    let names = if of_mpich { [MPICH, STANDARD, OPEN_MPI] } else { [OPEN_MPI, MPICH, STANDARD] }.concat();
    let Some(folder) = launcher.parent() else { return Vec::new() };
    let mut files: Vec<PathBuf> = Vec::new();
    let mut real: Vec<PathBuf> = Vec::new();
    for name in names {
        for beside in FOLDERS {
            let file = folder.join(beside).join(name);
            // lib64 is often a link to lib.
            if let Ok(path) = file.canonicalize()
                && path.is_file()
                && !real.contains(&path)
            {
                real.push(path);
                files.push(folder.join(beside).canonicalize().map(|folder| folder.join(name)).unwrap_or(file));
            }
        }
    }
    files
}

/// The name that tells a library's kind: that of the file itself, unless only the link to it has MPI's name.
pub(crate) fn telling_name(path: &Path) -> String {
    let name = |path: &Path| path.file_name().map(OsStr::to_os_string).map(|name| name.to_string_lossy().into_owned());
    let given = name(path).unwrap_or_default();
    match path.canonicalize().ok().as_deref().and_then(name) {
        Some(real) if given == "libmpi.so" || !is_mpi_name(path) => real,
        _ => given,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn tree(files: &[&str]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for file in files {
            let file = root.path().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "not a library").unwrap();
        }
        root
    }

    #[test]
    fn libraries_beside_a_launcher_come_in_the_order_of_its_family() {
        let root = tree(&[
            "bin/mpirun",
            "bin/mpiexec.hydra",
            "lib/libmpi.so",
            "lib/libmpi.so.12",
            "lib/libmpi_abi.so.1",
            "lib64/libmpi.so.40",
        ]);
        let top = root.path().canonicalize().unwrap();
        let names = |launcher: &str| {
            beside(&top.join("bin").join(launcher))
                .iter()
                .map(|file| file.strip_prefix(&top).unwrap().to_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(names("mpirun"), ["lib64/libmpi.so.40", "lib/libmpi.so.12", "lib/libmpi_abi.so.1"]);
        assert_eq!(names("mpiexec.hydra"), ["lib/libmpi.so.12", "lib/libmpi_abi.so.1", "lib64/libmpi.so.40"]);
    }

    #[test]
    fn a_folder_reached_twice_is_listed_once() {
        let root = tree(&["bin/mpirun", "lib/libmpi.so.40"]);
        symlink("lib", root.path().join("lib64")).unwrap();
        assert_eq!(beside(&root.path().join("bin/mpirun")).len(), 1);
    }

    #[test]
    fn ancestors_come_before_the_path_and_links_are_resolved() {
        let root = tree(&["a/bin/orterun", "b/bin/mpiexec"]);
        let top = root.path().canonicalize().unwrap();
        symlink(top.join("a/bin/orterun"), top.join("mpirun")).unwrap();
        let path = std::env::join_paths([top.clone(), "relative".into(), top.join("b/bin")]).unwrap();
        let ancestors = [PathBuf::from("/bin/sh"), PathBuf::from("/x/bin/hydra_pmi_proxy")];
        assert_eq!(
            launchers(&ancestors, Some(&path)),
            [
                PathBuf::from("/x/bin/hydra_pmi_proxy"),
                top.join("a/bin/orterun"),
                top.join("mpirun"),
                top.join("b/bin/mpiexec")
            ]
        );
        assert!(launchers(&[], None).is_empty());
    }

    #[test]
    fn the_map_of_a_process_shows_its_mpi() {
        let maps = "7f0000000000-7f0000001000 r--p 00000000 08:01 77   /opt/my mpi/lib/libmpi.so.40.40.7\n\
                    7f0000001000-7f0000002000 r-xp 00001000 08:01 77   /opt/my mpi/lib/libmpi.so.40.40.7\n\
                    7f0000003000-7f0000004000 r-xp 00000000 08:01 78   /lib/libc.so.6\n\
                    7ffd00000000-7ffd00001000 rw-p 00000000 00:00 0    [stack]\n";
        assert_eq!(mapped(maps), [PathBuf::from("/opt/my mpi/lib/libmpi.so.40.40.7")]);
    }

    #[test]
    fn a_path_that_is_no_library_is_an_error_that_says_why() {
        let root = tree(&["libmpi.so"]);
        let reason = |path: &Path| match named(path) {
            Err(Error::CannotOpen { reason, .. }) => reason,
            _ => panic!("{} opened", path.display()),
        };
        assert_eq!(reason(root.path()), "it is a directory");
        assert!(reason(&root.path().join("libmpi.so")).contains("file too short"));
        assert!(reason(Path::new("/no/such/libmpi.so.40")).contains("No such file"));
    }

    #[test]
    fn this_process_has_ancestors_and_a_status_names_the_parent() {
        assert!(!ancestors().is_empty());
        assert_eq!(parent("Name:\tx\nPPid:\t17\nUid:\t0\n"), Some("17"));
        assert_eq!(parent(""), None);
    }

    #[test]
    fn a_link_without_number_is_known_by_its_target() {
        let root = tree(&["libmpi.so.40.30.4", "libmpich.so.12.2.0"]);
        let link = |name: &str, target: &str| {
            symlink(target, root.path().join(name)).unwrap();
            telling_name(&root.path().join(name))
        };
        assert_eq!(link("libmpi.so", "libmpi.so.40.30.4"), "libmpi.so.40.30.4");
        assert_eq!(link("libmpi.so.12", "libmpich.so.12.2.0"), "libmpi.so.12");
        assert_eq!(link("alias.so", "libmpi.so.40.30.4"), "libmpi.so.40.30.4");
        assert_eq!(telling_name(Path::new("/no/libmpi.so.40")), "libmpi.so.40");
    }
}
