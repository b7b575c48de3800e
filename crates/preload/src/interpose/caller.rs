//! From where in the program a function was called.
//!
//! A function under one of MPI's names begins with three instructions that put its return address into the first of the thread's [words](crate::job::with_words), and
//! goes on in the function behind it as if that had been called: registers that carry arguments, and the stack, stay as they
//! are. Who wants to know reads it before anything else may call MPI.

use std::num::NonZeroUsize;

use crate::job::with_words;

/// Where the last call of a function under MPI's names in this thread returns to, where that is known.
pub(super) fn address() -> Option<NonZeroUsize> {
    with_words(|words| NonZeroUsize::new(words.caller.get()))
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
                    "mov r11, qword ptr [rip + allhands_thread@GOTTPOFF]",
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
