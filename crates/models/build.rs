//! Says `cfg(loom)`: the sources are those of `allhands`, which has fewer slots and other tests here.

fn main() {
    println!("cargo::rustc-cfg=loom");
}
