//! Two ranks under each MPI's own launcher, and under another's.

mod common;

use std::path::Path;

use common::{Outcome, example, installation, launch, run};

#[test]
fn two_ranks_of_open_mpi() {
    both_ranks_are_right("openmpi", "Open MPI's ABI", None);
}

#[test]
fn two_ranks_of_mpich() {
    both_ranks_are_right("mpich", "MPICH's ABI", None);
}

#[test]
fn two_ranks_of_mpich_with_the_standard_abi() {
    both_ranks_are_right("mpich", "the standard ABI", Some("libmpi_abi.so.1"));
}

#[test]
fn two_ranks_of_intel() {
    both_ranks_are_right("intel", "MPICH's ABI", None);
}

#[test]
fn two_ranks_of_intel_with_the_standard_abi() {
    both_ranks_are_right("intel", "the standard ABI", Some("libmpi_abi.so.1"));
}

/// Without a library's name, the launcher's own must be found.
fn both_ranks_are_right(name: &str, abi: &str, library: Option<&str>) {
    let Some(root) = installation(name) else { return };
    let mut command = launch(name, &root, &example("pair"), &[]);
    if let Some(library) = library {
        command.env("ALLHANDS_MPI", root.join("lib").join(library));
    }
    let Outcome { success, output, errors } = run(&mut command);
    assert!(success, "{output}{errors}");
    let root = root.canonicalize().unwrap();
    for rank in 0..2 {
        let expected = format!("rank {rank} of 2 is right with {abi}, ");
        let line = output.lines().find(|line| line.starts_with(&expected));
        assert!(line.is_some_and(|line| inside(line, &root)), "{output}{errors}");
    }
}

/// Whether the path at the end of a line is in the folder.
fn inside(line: &str, root: &Path) -> bool {
    line.rsplit(", ")
        .next()
        .and_then(|path| Path::new(path).canonicalize().ok())
        .is_some_and(|path| path.starts_with(root))
}

#[test]
fn open_mpi_under_mpich_s_launcher_is_told() {
    crossed("openmpi", "libmpi.so.40", "mpich", "MPICH's mpiexec started 2 processes");
}

#[test]
fn open_mpi_under_intel_s_launcher_is_told() {
    crossed("openmpi", "libmpi.so.40", "intel", "Intel MPI's mpirun started 2 processes");
}

#[test]
fn mpich_under_open_mpi_s_launcher_does_not_start() {
    // MPICH 5 sees the foreign launcher itself and ends the program in MPI_Init.
    crossed("mpich", "libmpi.so.12", "openmpi", "Open MPI's mpirun started 2 processes|unsupported PMI version");
}

#[test]
fn intel_under_open_mpi_s_launcher_is_told() {
    crossed("intel", "libmpi.so.12", "openmpi", "Open MPI's mpirun started 2 processes|PMI");
}

/// One MPI's library under another's launcher: it must fail and say one of these things.
fn crossed(name: &str, library: &str, launcher: &str, says: &str) {
    let (Some(root), Some(other)) = (installation(name), installation(launcher)) else { return };
    let mut command = launch(launcher, &other, &example("pair"), &["launcher"]);
    command.env("ALLHANDS_MPI", root.join("lib").join(library));
    if name == "intel" {
        command.env("I_MPI_ROOT", &root).env("I_MPI_FABRICS", "shm").env("I_MPI_PIN", "0");
    }
    let Outcome { success, output, errors } = run(&mut command);
    assert!(!success, "{output}{errors}");
    assert!(says.split('|').any(|says| format!("{output}{errors}").contains(says)), "{output}{errors}");
}
