//! The library's soname, which is that of its C interface.

include!("src/capi/abi.rs");

fn main() {
    println!("cargo:rerun-if-changed=src/capi/abi.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,liballhands.so.{ALLHANDS_ABI_VERSION}");
}
