//! Collectives on memory that the processor may not touch, with a stand-in for each driver: see `crates/preload/tests/programs/device`.

use std::path::Path;
use std::process::Command;

use super::programs;
use crate::libraries::Library;
use crate::{Result, build};

/// What a driver's library is called, which driver is compiled, and on how many ranks it is tried.
const DRIVERS: [(&str, &str, &[usize]); 4] = [
    ("libcuda.so.1", "-DCUDA", &[2, 3, 4]),
    ("libamdhip64.so.5", "-DHIP=5", &[2]),
    ("libamdhip64.so.6", "-DHIP=6", &[2]),
    ("libze_loader.so.1", "-DLEVEL_ZERO", &[2]),
];

/// One rank is left out: there nothing is ours, and the MPIs here know of no devices.
pub(super) fn run(allhands: &Path, library: &Library, folder: &Path) -> Result<()> {
    let Some(program) = programs::compile_c(library, folder, "device", "device/device.c")? else { return Ok(()) };
    for (name, which, sizes) in DRIVERS {
        let driver = folder.join(name);
        let mut command = Command::new("cc");
        command.args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", which]);
        command.arg(programs::sources().join("device/driver.c")).arg("-o").arg(&driver);
        build::compile(command)?;
        // Another ABI has the same memory.
        let sizes = if library.is_native() { sizes } else { &sizes[..1] };
        for &ranks in sizes {
            programs::one(allhands, library, &program, "device", ranks, &[&driver.to_string_lossy()])?;
        }
    }
    Ok(())
}
