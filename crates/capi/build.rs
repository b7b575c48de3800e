//! How the library is linked.

include!("src/abi.rs");

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=src/abi.rs");
    // Its soname is that of the C interface.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,liballhands.so.{ALLHANDS_ABI_VERSION}");
    // The MPI keeps addresses of its functions, whoever closes it.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
