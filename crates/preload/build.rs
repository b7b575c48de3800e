//! How the library is linked, and what tells this build from others.

use std::path::Path;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // The MPI keeps addresses of its functions, whoever closes it.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    // Ranks that were built from other sources may choose other algorithms.
    let mut hash = 0xcbf2_9ce4_8422_2325;
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
        add(Path::new(folder), &mut hash);
    }
    println!("cargo:rustc-env=ALLHANDS_SOURCES={hash:016x}");
}

/// Adds the files below a folder to a hash (FNV-1a), in the order of their names.
fn add(at: &Path, hash: &mut u64) {
    if let Ok(entries) = std::fs::read_dir(at) {
        let mut entries: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        entries.sort();
        entries.iter().for_each(|entry| add(entry, hash));
    } else if let Ok(bytes) = std::fs::read(at) {
        *hash = bytes.iter().fold(*hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3));
    }
}
