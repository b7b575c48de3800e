//! From where in the program a function was called.
//!
//! A function under one of MPI's names begins with three instructions that put its return address into a variable of the thread, and
//! goes on in the function behind it as if that had been called: registers that carry arguments, and the stack, stay as they
//! are. Who wants to know reads the variable before anything else may call MPI.

use std::num::NonZeroUsize;

#[cfg(target_arch = "x86_64")]
std::arch::global_asm!(
    ".pushsection .tbss.allhands_caller,\"awT\",@nobits",
    ".hidden allhands_caller",
    ".globl allhands_caller",
    ".type allhands_caller,@object",
    ".size allhands_caller,8",
    ".p2align 3",
    "allhands_caller:",
    ".zero 8",
    ".popsection",
);

/// Where the last call of a function under MPI's names in this thread returns to, where that is known.
pub(super) fn address() -> Option<NonZeroUsize> {
    #[cfg(target_arch = "x86_64")]
    {
        let address: usize;
        // SAFETY: reads the variable above, which every thread has from its start: the library is there before the first of them, or
        // its few bytes are in what the loader keeps for those that come later.
        unsafe {
            std::arch::asm!(
                "mov {0}, qword ptr [rip + allhands_caller@GOTTPOFF]",
                "mov {0}, qword ptr fs:[{0}]",
                out(reg) address,
                options(nostack, readonly, preserves_flags),
            );
        }
        NonZeroUsize::new(address)
    }
    #[cfg(not(target_arch = "x86_64"))]
    None
}

/// A function under a name, which comes in parts, that remembers its caller and goes on in `$ours`.
macro_rules! entry {
    ($($name:literal)+ ($($arg:ident: $type:ty),*) => $ours:ident) => {
        const _: () = {
            #[cfg(target_arch = "x86_64")]
            #[unsafe(export_name = concat!($($name),+))]
            #[unsafe(naked)]
            unsafe extern "C-unwind" fn entry($($arg: $type),*) -> std::ffi::c_int {
                std::arch::naked_asm!(
                    "mov r10, qword ptr [rsp]",
                    "mov r11, qword ptr [rip + allhands_caller@GOTTPOFF]",
                    "mov qword ptr fs:[r11], r10",
                    "jmp {ours}",
                    ours = sym $ours,
                )
            }

            #[cfg(not(target_arch = "x86_64"))]
            #[unsafe(export_name = concat!($($name),+))]
            unsafe extern "C-unwind" fn entry($($arg: $type),*) -> std::ffi::c_int {
                // SAFETY: the program's arguments.
                unsafe { $ours($($arg),*) }
            }
        };
    };
}

pub(super) use entry;
