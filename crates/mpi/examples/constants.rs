//! Prints the constants of the MPI that is found, one per line: the C expression and its value.
//!
//! `constants LIBRARY` first loads a library out of sight, as Python does with its modules.

use std::ffi::CString;

use allhands_mpi::Constant;

fn main() {
    if let Some(library) = std::env::args().nth(1) {
        let name = CString::new(library).expect("a path");
        // SAFETY: the name ends in a zero byte.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        assert!(!handle.is_null(), "{name:?} does not open");
    }
    let mpi = match allhands_mpi::load() {
        Ok(mpi) => mpi,
        Err(error) => {
            // In one write, so that the lines of several ranks stay apart.
            let line = format!("{error}\n");
            eprint!("{line}");
            std::process::exit(1);
        }
    };
    println!("# {}, {}", mpi.path().display(), mpi.abi());
    for (name, value) in mpi.constants().list() {
        match value {
            Constant::Handle(handle) => println!("{name}\t{handle:#x}"),
            Constant::Number(number) => println!("{name}\t{number}"),
            Constant::Symbol(symbol) => println!("{name}\t{symbol}"),
        }
    }
}
