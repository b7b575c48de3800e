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

/// How many elements come before the first that lies where a vector should, if that is worth a loop of their own: what is stored
/// across two cache lines takes twice as long, and memory from `malloc` begins in the middle of one.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn head<C: Combine>(into: *const u8, count: usize, vector: usize) -> usize {
    const WORTH_IT: usize = 512;
    let element = size_of::<C::Item>() * C::PARTS;
    let before = into.addr().wrapping_neg() % vector;
    if before == 0 || count.saturating_mul(element) < WORTH_IT || !before.is_multiple_of(element) {
        return 0;
    }
    before / element
}

/// The loops again, compiled with more instructions.
#[cfg(target_arch = "x86_64")]
macro_rules! compiled_for {
    ($features:literal, $vector:literal bytes: $accumulate:ident, $combine:ident) => {
        /// # Safety
        /// As [`Kernel`], on a CPU of this level.
        #[target_feature(enable = $features)]
        unsafe fn $accumulate<C: Combine>(from: *const u8, into: *mut u8, count: usize) {
            if count == 1 {
                // SAFETY: the caller's promise. Before anything that only a loop needs.
                return unsafe { accumulate::<C>(from, into, 1) };
            }
            let head = head::<C>(into, count, $vector);
            let bytes = head * size_of::<C::Item>() * C::PARTS;
            // SAFETY: the caller's promise, passed on for the first elements and for the others.
            unsafe {
                if head > 0 {
                    accumulate::<C>(from, into, head);
                }
                accumulate::<C>(from.add(bytes), into.add(bytes), count - head);
            }
        }

        /// # Safety
        /// As [`Kernel3`], on a CPU of this level.
        #[target_feature(enable = $features)]
        unsafe fn $combine<C: Combine>(left: *const u8, right: *const u8, into: *mut u8, count: usize) {
            if count == 1 {
                // SAFETY: as above.
                return unsafe { combine::<C>(left, right, into, 1) };
            }
            let head = head::<C>(into, count, $vector);
            let bytes = head * size_of::<C::Item>() * C::PARTS;
            // SAFETY: as above.
            unsafe {
                if head > 0 {
                    combine::<C>(left, right, into, head);
                }
                combine::<C>(left.add(bytes), right.add(bytes), into.add(bytes), count - head);
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
compiled_for!("avx2,f16c", 32 bytes: accumulate_avx2, combine_avx2);
#[cfg(target_arch = "x86_64")]
compiled_for!("avx2,f16c,avx512f,avx512bw,avx512dq,avx512vl", 64 bytes: accumulate_avx512, combine_avx512);

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
