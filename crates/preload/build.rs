//! How the library is linked, and what tells this build from others.

#[allow(unreachable_pub)] // the crate that it belongs to exports it
#[path = "../schedule/src/hash.rs"]
mod hash;

use std::path::Path;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // The MPI keeps addresses of its functions, whoever closes it.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    // Ranks that were built from other sources may choose other algorithms.
    let mut sources = Vec::new();
    for folder in [
        "src",
        "../allhands/src",
        "../call/src",
        "../model/src",
        "../model/machines",
        "../mpi/src",
        "../report/src",
        "../schedule/src",
    ] {
        println!("cargo:rerun-if-changed={folder}");
        add(Path::new(folder), &mut sources);
    }
    println!("cargo:rustc-env=ALLHANDS_SOURCES={:016x}", hash::hash(sources));
}

/// Adds the files below a folder, in the order of their names.
fn add(at: &Path, sources: &mut Vec<u8>) {
    if let Ok(entries) = std::fs::read_dir(at) {
        let mut entries: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        entries.sort();
        entries.iter().for_each(|entry| add(entry, sources));
    } else if let Ok(bytes) = std::fs::read(at) {
        sources.extend(bytes);
    }
}
