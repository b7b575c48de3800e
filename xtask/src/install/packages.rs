//! What tells other tools where the library is: no folder is named in these files, so the whole may be moved.

use super::ALLHANDS_ABI_VERSION;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// For pkg-config.
pub(super) fn pkg_config() -> String {
    format!(
        "prefix=${{pcfiledir}}/../..
libdir=${{prefix}}/lib
includedir=${{prefix}}/include

Name: allhands
Description: Collective communication that knows where ranks sit, on any MPI
Version: {VERSION}
Cflags: -I${{includedir}}
Libs: -L${{libdir}} -lallhands -Wl,-rpath,${{libdir}}
"
    )
}

/// For CMake's `find_package(allhands)`, which gives the target `allhands::allhands`.
pub(super) fn cmake() -> String {
    format!(
        r#"get_filename_component(_allhands_prefix "${{CMAKE_CURRENT_LIST_DIR}}/../../.." ABSOLUTE)
if(NOT TARGET allhands::allhands)
  add_library(allhands::allhands SHARED IMPORTED)
  set_target_properties(allhands::allhands PROPERTIES
    IMPORTED_LOCATION "${{_allhands_prefix}}/lib/liballhands.so"
    IMPORTED_SONAME "liballhands.so.{ALLHANDS_ABI_VERSION}"
    INTERFACE_INCLUDE_DIRECTORIES "${{_allhands_prefix}}/include")
endif()
unset(_allhands_prefix)
"#
    )
}

/// Before the first version that promises anything, only the very same will do.
pub(super) fn cmake_version() -> String {
    format!(
        r#"set(PACKAGE_VERSION "{VERSION}")
if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
  set(PACKAGE_VERSION_EXACT TRUE)
endif()
"#
    )
}

/// For environment modules, of Tcl as of Lua.
pub(super) fn module() -> String {
    format!(
        r#"#%Module1.0
proc ModulesHelp {{ }} {{
    puts stderr "allhands {VERSION}: put `allhands exec` between the launcher and an MPI program"
}}
module-whatis "Collective communication that knows where ranks sit, on any MPI"
set prefix [file dirname [file dirname [file dirname [file dirname [file normalize $ModulesCurrentModulefile]]]]]
prepend-path PATH $prefix/bin
prepend-path LD_LIBRARY_PATH $prefix/lib
prepend-path PKG_CONFIG_PATH $prefix/lib/pkgconfig
prepend-path CMAKE_PREFIX_PATH $prefix
prepend-path MANPATH $prefix/share/man
"#
    )
}
