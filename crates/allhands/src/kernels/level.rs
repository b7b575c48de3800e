//! Which vector instructions the CPU has.

use std::fmt;

/// A set of instructions that kernels are compiled for. All levels compute the same bits.
///
/// Each pays, as the kernel benchmark shows: on operands in the first cache AVX2 is about twice as fast as SSE2 and AVX-512
/// about twice as fast again. Sums in the second cache reach the rate of a copy with AVX2, those of f16 with FP16, those of
/// bf16 nowhere. Beyond, memory decides, except where a combine is more than a few instructions (f16, bf16, products of
/// complex numbers, pairs). Pairs with padding gain nothing and are the portable ones at every level. Measured on one
/// Intel CPU with AVX-512 FP16; not measured on AMD or Arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Level {
    /// What every CPU of this architecture has (SSE2 on x86-64, NEON on aarch64).
    Portable,
    /// AVX2 and F16C.
    Avx2,
    /// AVX-512 F, BW, DQ and VL.
    Avx512,
    /// AVX-512 FP16 besides: f16 is added without conversion. All other types are as in [`Avx512`](Self::Avx512).
    Avx512Fp16,
}

impl Level {
    /// The levels this CPU has, the best one last.
    ///
    /// ```
    /// use allhands::kernels::Level;
    ///
    /// assert_eq!(Level::available().next(), Some(Level::Portable));
    /// ```
    pub fn available() -> impl DoubleEndedIterator<Item = Level> {
        [Level::Portable, Level::Avx2, Level::Avx512, Level::Avx512Fp16]
            .into_iter()
            .filter(|level| level.is_available())
    }

    /// Whether this CPU has it. Asked of the CPU once, then remembered by the standard library.
    pub fn is_available(self) -> bool {
        match self {
            Level::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("f16c"),
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => {
                Level::Avx2.is_available()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
            }
            #[cfg(target_arch = "x86_64")]
            Level::Avx512Fp16 => Level::Avx512.is_available() && is_x86_feature_detected!("avx512fp16"),
            #[cfg(not(target_arch = "x86_64"))]
            Level::Avx2 | Level::Avx512 | Level::Avx512Fp16 => false,
        }
    }

    /// The name in texts and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Level::Portable => "portable",
            Level::Avx2 => "avx2",
            Level::Avx512 => "avx512",
            Level::Avx512Fp16 => "avx512-fp16",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
