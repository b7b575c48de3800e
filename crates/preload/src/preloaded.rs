//! Whether this library was preloaded, and is not merely linked for its plans.

use std::ffi::{OsStr, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use allhands_mpi::file_of;

/// Whether `LD_PRELOAD` names the file that this code is in.
pub(crate) fn preloaded() -> bool {
    let names = std::env::var_os("LD_PRELOAD").unwrap_or_default();
    this_file().is_some_and(|file| named(&names, &file))
}

/// Whether a list, with colons or spaces between its entries, has the file in it: by a path that leads to it, or by its name, which
/// the linker has then found where it looks for libraries.
fn named(list: &OsStr, file: &Path) -> bool {
    let real = file.canonicalize().unwrap_or_else(|_| file.into());
    list.as_bytes().split(|byte| matches!(byte, b':' | b' ')).filter(|entry| !entry.is_empty()).any(|entry| {
        let entry = Path::new(OsStr::from_bytes(entry));
        if entry.as_os_str().as_bytes().contains(&b'/') {
            return entry.canonicalize().is_ok_and(|entry| entry == real);
        }
        // What it was found by, and the names of a file with several.
        entry.file_name() == file.file_name()
            || file.parent().is_some_and(|folder| folder.join(entry).canonicalize().is_ok_and(|entry| entry == real))
    })
}

/// The file that this code was loaded from.
fn this_file() -> Option<PathBuf> {
    file_of(preloaded as fn() -> bool as *const c_void)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_preloaded_by_any_of_its_names() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().join("liballhands.so.1.0.0");
        std::fs::write(&real, "").unwrap();
        std::fs::write(folder.path().join("libother.so"), "").unwrap();
        let link = folder.path().join("liballhands.so");
        std::os::unix::fs::symlink("liballhands.so.1.0.0", &link).unwrap();
        let is = |list: &str, file: &Path| named(OsStr::new(&list.replace('@', folder.path().to_str().unwrap())), file);
        for file in [&real, &link] {
            assert!(is("@/liballhands.so", file));
            assert!(is("libc.so.6:@/liballhands.so.1.0.0", file));
            assert!(is("@/libother.so liballhands.so", file));
            assert!(!is("@/libother.so:libother.so", file));
            assert!(!is("", file));
            assert!(!is("/nowhere/liballhands.so", file));
        }
    }

    #[test]
    fn this_code_is_in_a_file() {
        assert!(this_file().unwrap().is_file());
    }
}
