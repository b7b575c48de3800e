//! The loops, one per form, compiled once per instruction set; and the only place where pointers become slices.
//!
//! Everything below the slices is safe Rust that the compiler vectorises (`assembly.rs` keeps checking). Only f16 needs
//! intrinsics, for the two conversion instructions.

use std::slice;

use super::combine::Combine;
use super::level::Level;
use super::{Kernel, Kernel3};

/// The two forms of one operation on one type.
#[derive(Clone, Copy)]
pub(super) struct Forms {
    pub(super) accumulate: Kernel,
    pub(super) combine: Kernel3,
}

impl Forms {
    /// The plain loop over `C`, compiled for `level`.
    pub(super) fn of<C: Combine>(level: Level) -> Forms {
        match level {
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => Forms { accumulate: x86::accumulate_avx2::<C>, combine: x86::combine_avx2::<C> },
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => Forms { accumulate: x86::accumulate_avx512::<C>, combine: x86::combine_avx512::<C> },
            _ => Forms { accumulate: accumulate::<C>, combine: combine::<C> },
        }
    }

    /// `C` on f16, by F16C's conversions where there are any. `Plain` is the same without them.
    pub(super) fn of_f16<C: Combine<Item = f32>, Plain: Combine>(level: Level) -> Forms {
        match level {
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => Forms { accumulate: x86::accumulate_f16_avx2::<C>, combine: x86::combine_f16_avx2::<C> },
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => {
                Forms { accumulate: x86::accumulate_f16_avx512::<C>, combine: x86::combine_f16_avx512::<C> }
            }
            _ => Forms::of::<Plain>(level),
        }
    }
}

/// # Safety
/// As [`Kernel`].
#[inline(always)]
unsafe fn accumulate<C: Combine>(from: *const u8, into: *mut u8, count: usize) {
    // SAFETY: the caller's promise, for these items.
    let (from, into) = unsafe { (read::<C>(from, count), write::<C>(into, count)) };
    for (into, &from) in into.iter_mut().zip(from) {
        *into = C::combine(*into, from);
    }
}

/// # Safety
/// As [`Kernel3`].
#[inline(always)]
unsafe fn combine<C: Combine>(left: *const u8, right: *const u8, into: *mut u8, count: usize) {
    // SAFETY: the caller's promise, for these items.
    let (left, right, into) = unsafe { (read::<C>(left, count), read::<C>(right, count), write::<C>(into, count)) };
    for ((into, &left), &right) in into.iter_mut().zip(left).zip(right) {
        *into = C::combine(left, right);
    }
}

/// The items of `count` elements, none if `count` is 0: then the pointer may be anything.
///
/// # Safety
/// If `count > 0`: `pointer` is aligned for the element, and its bytes may be read and are not written during `'a`.
#[inline(always)]
unsafe fn read<'a, C: Combine>(pointer: *const u8, count: usize) -> &'a [C::Item] {
    if count == 0 {
        return &[];
    }
    let pointer = pointer.cast::<C::Item>();
    debug_assert!(pointer.is_aligned(), "operands of kernels are aligned as their type");
    // SAFETY: not null and in bounds by the caller's promise, which also rules out writers; `count` elements are
    // `count * PARTS` items in one object, so the product fits; every item's bytes are a value by `Combine::Item`.
    unsafe { slice::from_raw_parts(pointer, count * C::PARTS) }
}

/// As [`read`], to be written.
///
/// # Safety
/// If `count > 0`: `pointer` is aligned for the element, and nobody else touches its bytes during `'a`.
#[inline(always)]
unsafe fn write<'a, C: Combine>(pointer: *mut u8, count: usize) -> &'a mut [C::Item] {
    if count == 0 {
        return &mut [];
    }
    let pointer = pointer.cast::<C::Item>();
    debug_assert!(pointer.is_aligned(), "operands of kernels are aligned as their type");
    // SAFETY: as in `read`, and exclusive by the caller's promise.
    unsafe { slice::from_raw_parts_mut(pointer, count * C::PARTS) }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;
    use std::mem::transmute;

    use super::super::combine::Combine;
    use super::super::combine::half::{F16, Rounded};
    use super::{accumulate, combine, read, write};

    /// The loops of the parent, compiled with more instructions.
    macro_rules! compiled_for {
        ($features:literal: $accumulate:ident, $combine:ident) => {
            /// # Safety
            /// As [`super::Kernel`], on a CPU of this level.
            #[target_feature(enable = $features)]
            pub(super) unsafe fn $accumulate<C: Combine>(from: *const u8, into: *mut u8, count: usize) {
                // SAFETY: the caller's promise, passed on.
                unsafe { accumulate::<C>(from, into, count) }
            }

            /// # Safety
            /// As [`super::Kernel3`], on a CPU of this level.
            #[target_feature(enable = $features)]
            pub(super) unsafe fn $combine<C: Combine>(l: *const u8, r: *const u8, into: *mut u8, count: usize) {
                // SAFETY: the caller's promise, passed on.
                unsafe { combine::<C>(l, r, into, count) }
            }
        };
    }

    compiled_for!("avx2,f16c": accumulate_avx2, combine_avx2);
    compiled_for!("avx2,f16c,avx512f,avx512bw,avx512dq,avx512vl": accumulate_avx512, combine_avx512);

    /// Loops over f16 in chunks of one register of f32; what remains is computed in a chunk of its own, the same way.
    macro_rules! f16_by {
        ($features:literal, $lanes:literal, $widen:ident, $narrow:ident, $vector:ident: $chunk:ident, $accumulate:ident, $combine:ident) => {
            #[target_feature(enable = $features)]
            #[inline]
            fn $chunk<C: Combine<Item = f32>>(left: [u16; $lanes], right: [u16; $lanes]) -> [u16; $lanes] {
                // SAFETY: arrays and registers of the same size, in which every bit pattern is a value.
                let left: [f32; $lanes] = unsafe { transmute($widen(transmute::<[u16; $lanes], _>(left))) };
                // SAFETY: as above.
                let right: [f32; $lanes] = unsafe { transmute($widen(transmute::<[u16; $lanes], _>(right))) };
                let mut result = left;
                for (result, right) in result.iter_mut().zip(right) {
                    *result = C::combine(*result, right);
                }
                // SAFETY: as above.
                unsafe { transmute($narrow::<_MM_FROUND_TO_NEAREST_INT>(transmute::<[f32; $lanes], $vector>(result))) }
            }

            /// # Safety
            /// As [`super::Kernel`] on f16, on a CPU of this level.
            #[target_feature(enable = $features)]
            pub(super) unsafe fn $accumulate<C: Combine<Item = f32>>(from: *const u8, into: *mut u8, count: usize) {
                type Items<C> = Rounded<F16, C>;
                // SAFETY: the caller's promise, for f16.
                let (from, into) = unsafe { (read::<Items<C>>(from, count), write::<Items<C>>(into, count)) };
                let (from, from_tail) = from.as_chunks::<$lanes>();
                let (into, into_tail) = into.as_chunks_mut::<$lanes>();
                for (into, from) in into.iter_mut().zip(from) {
                    *into = $chunk::<C>(*into, *from);
                }
                let (mut left, mut right) = ([0; $lanes], [0; $lanes]);
                left[..into_tail.len()].copy_from_slice(into_tail);
                right[..from_tail.len()].copy_from_slice(from_tail);
                into_tail.copy_from_slice(&$chunk::<C>(left, right)[..into_tail.len()]);
            }

            /// # Safety
            /// As [`super::Kernel3`] on f16, on a CPU of this level.
            #[target_feature(enable = $features)]
            pub(super) unsafe fn $combine<C: Combine<Item = f32>>(
                left: *const u8,
                right: *const u8,
                into: *mut u8,
                count: usize,
            ) {
                type Items<C> = Rounded<F16, C>;
                // SAFETY: the caller's promise, for f16.
                let (left, right, into) = unsafe {
                    (read::<Items<C>>(left, count), read::<Items<C>>(right, count), write::<Items<C>>(into, count))
                };
                let (left, left_tail) = left.as_chunks::<$lanes>();
                let (right, right_tail) = right.as_chunks::<$lanes>();
                let (into, into_tail) = into.as_chunks_mut::<$lanes>();
                for ((into, left), right) in into.iter_mut().zip(left).zip(right) {
                    *into = $chunk::<C>(*left, *right);
                }
                let (mut left, mut right) = ([0; $lanes], [0; $lanes]);
                left[..left_tail.len()].copy_from_slice(left_tail);
                right[..right_tail.len()].copy_from_slice(right_tail);
                into_tail.copy_from_slice(&$chunk::<C>(left, right)[..into_tail.len()]);
            }
        };
    }

    f16_by!("avx2,f16c", 8, _mm256_cvtph_ps, _mm256_cvtps_ph, __m256:
        chunk_avx2, accumulate_f16_avx2, combine_f16_avx2);
    f16_by!("avx2,f16c,avx512f,avx512bw,avx512dq,avx512vl", 16, _mm512_cvtph_ps, _mm512_cvtps_ph, __m512:
        chunk_avx512, accumulate_f16_avx512, combine_f16_avx512);
}
