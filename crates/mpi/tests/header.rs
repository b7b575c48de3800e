//! Every constant of the table, compared with what a C compiler makes of the MPI's own header.

mod common;

use std::collections::HashMap;
use std::fmt::Write;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use allhands_mpi::{Abi, Constant, constants};

#[test]
fn open_mpi_has_these_constants() {
    check("openmpi", Abi::OpenMpi, "libmpi.so.40", &[]);
}

#[test]
fn mpich_has_these_constants() {
    check("mpich", Abi::Mpich, "libmpi.so.12", &[]);
}

#[test]
fn mpich_s_standard_abi_has_these_constants() {
    check("mpich", Abi::Standard, "libmpi_abi.so.1", &[]);
}

#[test]
fn intel_has_these_constants() {
    check("intel", Abi::Mpich, "libmpi.so.12", &[]);
}

#[test]
fn intel_s_standard_abi_has_these_constants_but_one() {
    // Intel 2021.18 has the value of MPI_ERRORS_ABORT here, which is why this one is probed and not taken from the table.
    check("intel", Abi::Standard, "libmpi_abi.so.1", &["MPI_ERRORS_RETURN"]);
}

#[test]
fn a_wrong_constant_is_a_difference() {
    let table = [
        ("MPI_BYTE", Constant::Handle(0x8c00_0001)),
        ("MPI_ROOT", Constant::Number(-3)),
        ("MPI_SUM", Constant::Symbol("ompi_mpi_op_sum")),
    ];
    let printed = |byte: &str, root: &str, sum: &str| format!("MPI_BYTE\t{byte}\nMPI_ROOT\t{root}\nMPI_SUM\t{sum}\n");
    let right = printed("-1946157055", "-3", "ompi_mpi_op_sum");
    assert_eq!(differences(Abi::Mpich, &table, &right), Vec::<String>::new());
    assert_eq!(differences(Abi::Standard, &table, &right).len(), 1, "only MPICH's handles are narrow");
    assert_eq!(
        differences(Abi::Mpich, &table, &printed("1", "-4", "?")),
        ["MPI_BYTE is 1, not 2348810241", "MPI_ROOT is -4, not -3", "MPI_SUM is ?, not ompi_mpi_op_sum"]
    );
    assert_eq!(differences(Abi::Mpich, &table[..1], ""), ["MPI_BYTE is not printed"]);
}

/// Compiles the header, compares all constants, and then those that the crate finds in the library itself.
fn check(name: &str, abi: Abi, library: &str, differing: &[&str]) {
    let Some(root) = common::installation(name) else { return };
    let folder = tempfile::tempdir().unwrap();
    let table = constants(abi);
    fs::write(folder.path().join("print.c"), program(&table)).unwrap();
    let include = root.join("include");
    if abi == Abi::Standard {
        symlink(include.join("mpi_abi.h"), folder.path().join("mpi.h")).unwrap();
    }
    let library = root.join("lib").join(library);
    let printed = compile_and_run(folder.path(), &include, &library);
    let mut found = differences(abi, &table, &printed);
    found.retain(|difference| !differing.iter().any(|name| difference.starts_with(name)));
    assert!(found.is_empty(), "{}: {found:#?}", root.display());

    let outcome = common::run(Command::new(common::example("constants")).env("ALLHANDS_MPI", &library));
    assert!(outcome.success, "{outcome:?}");
    let loaded: HashMap<&str, &str> = outcome.output.lines().filter_map(|line| line.split_once('\t')).collect();
    for (name, value) in table {
        let expected = match value {
            Constant::Handle(handle) => format!("{handle:#x}"),
            Constant::Number(number) => number.to_string(),
            // An address, and not that of the null handle that stands for what is missing.
            Constant::Symbol(_) if name.ends_with("_NULL") => continue,
            Constant::Symbol(_) => {
                assert!(loaded[name].len() > 8, "{name} is {}", loaded[name]);
                assert!(![loaded["MPI_DATATYPE_NULL"], loaded["MPI_OP_NULL"]].contains(&loaded[name]), "{name}");
                continue;
            }
        };
        assert_eq!(loaded[name], expected, "{name}");
    }
}

/// A C program that prints each constant: as a number, or as the name of the symbol whose address it is.
fn program(table: &[(&str, Constant)]) -> String {
    let mut text = String::from(
        "#define _GNU_SOURCE\n#include <mpi.h>\n#include <dlfcn.h>\n#include <stddef.h>\n#include <stdint.h>\n\
         #include <stdio.h>\n\
         #ifndef MPI_ERR_PROC_FAILED\n#ifdef MPIX_ERR_PROC_FAILED\n#define MPI_ERR_PROC_FAILED (MPIX_ERR_PROC_FAILED)\n\
         #else\n#define MPI_ERR_PROC_FAILED (-1)\n#endif\n#endif\n\
         int main(void) {\n",
    );
    for (name, value) in table {
        match value {
            Constant::Symbol(symbol) => writeln!(
                text,
                "  printf(\"{name}\\t%s\\n\", (void *)({name}) == dlsym(RTLD_DEFAULT, \"{symbol}\") ? \"{symbol}\" : \"another\");"
            ),
            _ => writeln!(text, "  printf(\"{name}\\t%lld\\n\", (long long)(intptr_t)({name}));"),
        }
        .unwrap();
    }
    text + "  return 0;\n}\n"
}

fn compile_and_run(folder: &Path, include: &Path, library: &Path) -> String {
    let print = folder.join("print");
    let rpath = format!("-Wl,-rpath,{}", library.parent().unwrap().display());
    let outcome = common::run(
        Command::new("cc")
            .args(["-w", "-I"])
            .arg(folder)
            .arg("-I")
            .arg(include)
            .arg(folder.join("print.c"))
            .arg(library)
            // The library's own dependencies are its own affair.
            .args([&rpath, "-Wl,--unresolved-symbols=ignore-in-shared-libs", "-ldl", "-o"])
            .arg(&print),
    );
    assert!(outcome.success, "{}", outcome.errors);
    let outcome = common::run(&mut Command::new(print));
    assert!(outcome.success, "{outcome:?}");
    outcome.output
}

/// What the table says and the program does not.
fn differences(abi: Abi, table: &[(&str, Constant)], printed: &str) -> Vec<String> {
    let printed: HashMap<&str, &str> = printed.lines().filter_map(|line| line.split_once('\t')).collect();
    let mut found = Vec::new();
    for (name, value) in table {
        let Some(&is) = printed.get(name) else {
            found.push(format!("{name} is not printed"));
            continue;
        };
        let (is, should) = match *value {
            // C widens a narrow handle with its sign.
            Constant::Handle(handle) => {
                (is.parse::<i64>().map_or(is.into(), |is| abi.handle(is as usize).to_string()), handle.to_string())
            }
            Constant::Number(number) => (is.to_owned(), number.to_string()),
            Constant::Symbol(symbol) => (is.to_owned(), symbol.to_owned()),
        };
        if is != should {
            found.push(format!("{name} is {is}, not {should}"));
        }
    }
    found
}
