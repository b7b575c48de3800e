//! `cargo xtask header`: makes `allhands.h` from the C API's own source.

use std::path::PathBuf;

use cbindgen::{Builder, Config, DocumentationStyle, ExportConfig, Language, Style};

use crate::{Result, mpi};

/// Where functions and types are, in the order of the header.
const SOURCES: [&str; 6] = ["abi", "error", "init", "neighbors", "functions", "fortran"];

const TOP: &str = "\
/* allhands.h: collective communication that knows where ranks sit, planned once and run many times, on any MPI communicator.
 *
 *     allhands_plan *plan;
 *     allhands_allreduce_init(x, y, n, MPI_DOUBLE, MPI_SUM, comm, NULL, &plan);
 *     for (...) allhands_run(plan);       (or allhands_start, something else, allhands_wait)
 *     allhands_free(&plan);
 *
 * Compiled against the mpi.h of the program; the library itself works with every MPI. Build with `pkg-config --cflags --libs allhands`.
 * Functions return ALLHANDS_SUCCESS or another allhands_code; allhands_last_error() is the sentence behind the last one. MPI's error
 * handlers are not called. A program that is linked with the library keeps the collectives of its MPI.
 *
 * Made by `cargo xtask header`: change crates/capi/src instead. */";

/// Of the MPI that the program is compiled with.
const THEIRS: [&str; 3] = ["MPI_Comm", "MPI_Datatype", "MPI_Op"];

/// Where it is.
pub(crate) fn place() -> PathBuf {
    mpi::root().join("crates/capi/include/allhands.h")
}

/// Writes it.
pub(crate) fn write() -> Result<()> {
    let (place, text) = (place(), made()?);
    std::fs::write(&place, text).map_err(|error| format!("{} cannot be written: {error}", place.display()))?;
    eprintln!("xtask: {} is made", place.display());
    Ok(())
}

/// That it is what its source says.
pub(crate) fn check() -> Result<()> {
    let place = place();
    if std::fs::read_to_string(&place).unwrap_or_default() == made()? {
        return Ok(());
    }
    Err(format!("{} is not what crates/capi/src says; make it anew with `cargo xtask header`", place.display()))
}

fn made() -> Result<String> {
    let folder = mpi::root().join("crates/capi/src");
    let config = Config {
        language: Language::C,
        cpp_compat: true,
        header: Some(TOP.into()),
        include_guard: Some("ALLHANDS_H".into()),
        no_includes: true,
        sys_includes: vec!["stdint.h".into(), "mpi.h".into()],
        documentation_style: DocumentationStyle::Doxy,
        style: Style::Type,
        export: ExportConfig {
            // No function's type has it.
            include: vec!["allhands_code".into()],
            exclude: THEIRS.map(String::from).to_vec(),
            ..ExportConfig::default()
        },
        line_length: 120,
        ..Config::default()
    };
    let builder = SOURCES.iter().fold(Builder::new().with_config(config), |builder, source| {
        builder.with_src(folder.join(format!("{source}.rs")))
    });
    let bindings = builder.generate().map_err(|error| format!("no header can be made: {error}"))?;
    let mut text = Vec::new();
    bindings.write(&mut text);
    text.push(b'\n');
    String::from_utf8(text).map_err(|error| format!("the header is no text: {error}"))
}
