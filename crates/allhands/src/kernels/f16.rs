//! Sums and products of f16 with the CPU's own instructions, which no plain Rust reaches: F16C converts to f32 and back,
//! AVX-512 FP16 does not even need that.
//!
//! Adding or multiplying in f16 rounds once; here the definition is f32, then f16. Both give the same bits: 24 bits of
//! fraction are at least 2 * 11 + 2, so that the first of two roundings never decides (Figueroa 1995), and products of
//! f16 are exact in f32. The tests hold the levels against each other.

use super::combine::half::{Arithmetic, F16, Rounded};
use super::level::Level;
use super::loops::Forms;

/// `C` on f16.
pub(super) fn forms<C: Arithmetic>(level: Level) -> Forms {
    match level {
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => Forms { accumulate: x86::accumulate_avx2::<C>, combine: x86::combine_avx2::<C> },
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => Forms { accumulate: x86::accumulate_avx512::<C>, combine: x86::combine_avx512::<C> },
        #[cfg(target_arch = "x86_64")]
        Level::Avx512Fp16 => Forms { accumulate: x86::accumulate_fp16::<C>, combine: x86::combine_fp16::<C> },
        _ => Forms::of::<Rounded<F16, C>>(level),
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::asm;
    use std::arch::x86_64::*;
    use std::mem::transmute;

    use super::super::combine::half::Half;
    use super::super::loops::{read, write};
    use super::*;

    /// Operations on one register. What a CPU's register holds is an array here, so that the rest is plain Rust.
    macro_rules! by_conversion {
        ($chunk:ident, $features:literal, $lanes:literal, $widen:ident: $halves:ident, $narrow:ident: $floats:ident) => {
            #[target_feature(enable = $features)]
            #[inline]
            fn $chunk<C: Arithmetic>(left: [u16; $lanes], right: [u16; $lanes]) -> [u16; $lanes] {
                // SAFETY: arrays and registers of one size, in which every pattern of bits is a value.
                let halves = |items| unsafe { transmute::<[u16; $lanes], $halves>(items) };
                // SAFETY: as above.
                let floats = |register| unsafe { transmute::<$floats, [f32; $lanes]>(register) };
                let mut result = floats($widen(halves(left)));
                for (result, right) in result.iter_mut().zip(floats($widen(halves(right)))) {
                    *result = C::combine(*result, right);
                }
                // SAFETY: as above.
                let result = unsafe { transmute::<[f32; $lanes], $floats>(result) };
                // SAFETY: as above.
                unsafe { transmute::<$halves, [u16; $lanes]>($narrow::<_MM_FROUND_TO_NEAREST_INT>(result)) }
            }
        };
    }

    by_conversion!(chunk_avx2, "avx2,f16c", 8, _mm256_cvtph_ps: __m128i, _mm256_cvtps_ph: __m256);
    by_conversion!(
        chunk_avx512,
        "avx2,f16c,avx512f,avx512bw,avx512dq,avx512vl",
        16,
        _mm512_cvtph_ps: __m256i,
        _mm512_cvtps_ph: __m512
    );

    #[target_feature(enable = "avx2,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512fp16")]
    #[inline]
    fn chunk_fp16<C: Arithmetic>(left: [u16; 32], right: [u16; 32]) -> [u16; 32] {
        // SAFETY: arrays and registers of one size, in which every pattern of bits is a value.
        let halves = |items| unsafe { transmute::<[u16; 32], __m512i>(items) };
        let (left, right) = (halves(left), halves(right));
        let (result, nans): (__m512i, __mmask32);
        // By name, because Rust before 1.94 has no functions for these instructions.
        // SAFETY: the function's features have them; they touch registers alone.
        unsafe {
            match C::PRODUCT {
                true => {
                    asm!("vmulph {0}, {1}, {2}", out(zmm_reg) result, in(zmm_reg) left, in(zmm_reg) right, options(pure, nomem, nostack, preserves_flags));
                }
                false => {
                    asm!("vaddph {0}, {1}, {2}", out(zmm_reg) result, in(zmm_reg) left, in(zmm_reg) right, options(pure, nomem, nostack, preserves_flags));
                }
            }
            asm!("vcmpph {0}, {1}, {1}, 3", out(kreg) nans, in(zmm_reg) result, options(pure, nomem, nostack, preserves_flags));
        }
        let nan = _mm512_set1_epi16(F16::NAN as i16);
        // SAFETY: as above.
        unsafe { transmute::<__m512i, [u16; 32]>(_mm512_mask_mov_epi16(result, nans, nan)) }
    }

    /// Loops over chunks; what remains is computed in a chunk of its own, the same way.
    macro_rules! loops {
        ($features:literal, $chunk:ident: $accumulate:ident, $combine:ident) => {
            /// # Safety
            /// As [`Kernel`](crate::kernels::Kernel) on f16, on a CPU of this level.
            #[target_feature(enable = $features)]
            pub(super) unsafe fn $accumulate<C: Arithmetic>(from: *const u8, into: *mut u8, count: usize) {
                type Items<C> = Rounded<F16, C>;
                // SAFETY: the caller's promise, for f16.
                let (from, into) = unsafe { (read::<Items<C>>(from, count), write::<Items<C>>(into, count)) };
                let (from, from_rest) = from.as_chunks();
                let (into, into_rest) = into.as_chunks_mut();
                for (into, from) in into.iter_mut().zip(from) {
                    *into = $chunk::<C>(*into, *from);
                }
                if !into_rest.is_empty() {
                    let result = $chunk::<C>(padded(into_rest), padded(from_rest));
                    into_rest.copy_from_slice(&result[..into_rest.len()]);
                }
            }

            /// # Safety
            /// As [`Kernel3`](crate::kernels::Kernel3) on f16, on a CPU of this level.
            #[target_feature(enable = $features)]
            pub(super) unsafe fn $combine<C: Arithmetic>(l: *const u8, r: *const u8, into: *mut u8, count: usize) {
                type Items<C> = Rounded<F16, C>;
                // SAFETY: the caller's promise, for f16.
                let (left, right, into) =
                    unsafe { (read::<Items<C>>(l, count), read::<Items<C>>(r, count), write::<Items<C>>(into, count)) };
                let (left, left_rest) = left.as_chunks();
                let (right, right_rest) = right.as_chunks();
                let (into, into_rest) = into.as_chunks_mut();
                for ((into, left), right) in into.iter_mut().zip(left).zip(right) {
                    *into = $chunk::<C>(*left, *right);
                }
                if !into_rest.is_empty() {
                    let result = $chunk::<C>(padded(left_rest), padded(right_rest));
                    into_rest.copy_from_slice(&result[..into_rest.len()]);
                }
            }
        };
    }

    loops!("avx2,f16c", chunk_avx2: accumulate_avx2, combine_avx2);
    loops!("avx2,f16c,avx512f,avx512bw,avx512dq,avx512vl", chunk_avx512: accumulate_avx512, combine_avx512);
    loops!("avx2,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512fp16", chunk_fp16: accumulate_fp16, combine_fp16);

    /// The items, then zeros.
    #[inline(always)]
    fn padded<const LANES: usize>(items: &[u16]) -> [u16; LANES] {
        let mut padded = [0; LANES];
        padded[..items.len()].copy_from_slice(items);
        padded
    }
}
