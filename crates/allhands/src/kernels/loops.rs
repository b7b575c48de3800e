//! The loops, one per form, compiled once per instruction set; and the only place where pointers become slices.
//!
//! Everything below the slices is safe Rust that the compiler vectorises (`assembly.rs` keeps checking). Only f16 needs
//! intrinsics: see `f16.rs`.

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
    /// The loops over `C`, compiled for `level`.
    pub(super) fn of<C: Combine>(level: Level) -> Forms {
        match level {
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => Forms { accumulate: accumulate_avx2::<C>, combine: combine_avx2::<C> },
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 | Level::Avx512Fp16 => {
                Forms { accumulate: accumulate_avx512::<C>, combine: combine_avx512::<C> }
            }
            _ => Forms { accumulate: accumulate::<C>, combine: combine::<C> },
        }
    }
}

/// # Safety
/// As [`Kernel`].
#[inline(always)]
unsafe fn accumulate<C: Combine>(from: *const u8, into: *mut u8, count: usize) {
    if count == 1 {
        // SAFETY: as below. Of a number that is known there is no loop.
        let (from, into) = unsafe { (read::<C>(from, 1), write::<C>(into, 1)) };
        return C::accumulate(from, into);
    }
    // SAFETY: the caller's promise, for these items.
    let (from, into) = unsafe { (read::<C>(from, count), write::<C>(into, count)) };
    C::accumulate(from, into);
}

/// # Safety
/// As [`Kernel3`].
#[inline(always)]
unsafe fn combine<C: Combine>(left: *const u8, right: *const u8, into: *mut u8, count: usize) {
    if count == 1 {
        // SAFETY: as below. Of a number that is known there is no loop.
        let (left, right, into) = unsafe { (read::<C>(left, 1), read::<C>(right, 1), write::<C>(into, 1)) };
        return C::combine_all(left, right, into);
    }
    // SAFETY: the caller's promise, for these items.
    let (left, right, into) = unsafe { (read::<C>(left, count), read::<C>(right, count), write::<C>(into, count)) };
    C::combine_all(left, right, into);
}

/// The loops again, compiled with more instructions.
#[cfg(target_arch = "x86_64")]
macro_rules! compiled_for {
    ($features:literal: $accumulate:ident, $combine:ident) => {
        /// # Safety
        /// As [`Kernel`], on a CPU of this level.
        #[target_feature(enable = $features)]
        unsafe fn $accumulate<C: Combine>(from: *const u8, into: *mut u8, count: usize) {
            // SAFETY: the caller's promise, passed on.
            unsafe { accumulate::<C>(from, into, count) }
        }

        /// # Safety
        /// As [`Kernel3`], on a CPU of this level.
        #[target_feature(enable = $features)]
        unsafe fn $combine<C: Combine>(left: *const u8, right: *const u8, into: *mut u8, count: usize) {
            // SAFETY: the caller's promise, passed on.
            unsafe { combine::<C>(left, right, into, count) }
        }
    };
}

#[cfg(target_arch = "x86_64")]
compiled_for!("avx2,f16c": accumulate_avx2, combine_avx2);
#[cfg(target_arch = "x86_64")]
compiled_for!("avx2,f16c,avx512f,avx512bw,avx512dq,avx512vl": accumulate_avx512, combine_avx512);

/// The items of `count` elements; none if `count` is 0: then the pointer may be anything.
///
/// # Safety
/// If `count > 0`: `pointer` is aligned for the element, and its bytes may be read and are not written during `'a`.
#[inline(always)]
pub(super) unsafe fn read<'a, C: Combine>(pointer: *const u8, count: usize) -> &'a [C::Item] {
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
pub(super) unsafe fn write<'a, C: Combine>(pointer: *mut u8, count: usize) -> &'a mut [C::Item] {
    if count == 0 {
        return &mut [];
    }
    let pointer = pointer.cast::<C::Item>();
    debug_assert!(pointer.is_aligned(), "operands of kernels are aligned as their type");
    // SAFETY: as in `read`, and exclusive by the caller's promise.
    unsafe { slice::from_raw_parts_mut(pointer, count * C::PARTS) }
}
