//! That the compiler made vector loops of the loops: looks into this very program with `objdump`.
//!
//! Without objdump, or on another architecture, the test says that it was skipped.

use std::process::Command;

use super::*;

/// Type, and what adds vectors of it.
const SUMS: [(Type, &str); 8] = [
    (Type::I8, "paddb"),
    (Type::I16, "paddw"),
    (Type::I32, "paddd"),
    (Type::I64, "paddq"),
    (Type::F32, "addps"),
    (Type::F64, "addpd"),
    (Type::C32, "addps"),
    (Type::BF16, "addps"),
];

#[test]
#[cfg_attr(miri, ignore = "reads its own program")]
fn sums_are_made_of_vector_instructions() {
    if !cfg!(all(target_arch = "x86_64", target_os = "linux")) {
        eprintln!("skipped: knows x86-64 on Linux only");
        return;
    }
    if Command::new("objdump").arg("--version").output().is_err() {
        eprintln!("skipped: there is no objdump");
        return;
    }
    for level in Level::available() {
        // One letter per width: xmm, ymm, zmm.
        let register = match level {
            Level::Portable => "%xmm",
            Level::Avx2 => "%ymm",
            Level::Avx512 | Level::Avx512Fp16 => "%zmm",
        };
        let prefix = if level == Level::Portable { "" } else { "v" };
        let native = (level == Level::Avx512Fp16).then_some((Type::F16, "addph"));
        for (ty, add) in SUMS.into_iter().chain(native) {
            let kernel = kernel_at(level, ty, Operation::Sum, Side::After).expect("a sum");
            let kernel3 = kernel3_at(level, ty, Operation::Sum).expect("a sum");
            for address in [kernel as usize, kernel3 as usize] {
                let code = disassemble(address);
                let found = code.lines().any(|line| {
                    let mut words = line.split_whitespace();
                    words.next() == Some(&format!("{prefix}{add}"))
                        && words.next().is_some_and(|registers| registers.contains(register))
                });
                assert!(found, "no {prefix}{add} on {register} in the sum of {ty} at {level}:\n{code}");
            }
        }
    }
}

/// The instructions of the function at an address of this process.
fn disassemble(address: usize) -> String {
    const LONGEST: usize = 16 << 10;
    let start = address - load_address();
    let program = std::env::current_exe().expect("a program");
    let output = Command::new("objdump")
        .args(["--disassemble", "--no-show-raw-insn", "--no-addresses"])
        .arg(format!("--start-address={start}"))
        .arg(format!("--stop-address={}", start + LONGEST))
        .arg(program)
        .output()
        .expect("objdump runs");
    let text = String::from_utf8_lossy(&output.stdout);
    // A line `<name>:` opens each function; ours is the first.
    let mut functions = text.split("\n<").skip(1);
    functions.next().expect("a function at the kernel's address").to_owned()
}

/// Where the first byte of the program's file is in memory.
fn load_address() -> usize {
    let program = std::env::current_exe().expect("a program");
    let maps = std::fs::read_to_string("/proc/self/maps").expect("Linux's list of mappings");
    let first = maps.lines().find(|line| line.ends_with(&*program.to_string_lossy())).expect("the program is mapped");
    usize::from_str_radix(first.split('-').next().expect("an address"), 16).expect("a hexadecimal address")
}
