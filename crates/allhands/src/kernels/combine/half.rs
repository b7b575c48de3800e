//! The two 16-bit floats. A sum or product is computed in f32 and rounded back to nearest even after every combine; a NaN
//! that comes out is the positive quiet one without payload, as for [`super::float`]. Min and max never leave 16 bits.
//!
//! The conversions are here because [`half`](::half)'s ask for the CPU at every element, which no loop survives.

use std::marker::PhantomData;

use super::Combine;
use super::float::{Product, Sum};

/// A float of 16 bits: how its bits become an f32 and come back.
pub(in crate::kernels) trait Half {
    const NAN: u16;
    /// Bits of infinity: a magnitude above is NaN.
    const INFINITY: u16;

    fn widen(bits: u16) -> f32;

    /// To nearest even; every NaN becomes [`Self::NAN`].
    fn narrow(value: f32) -> u16;
}

/// IEEE binary16.
pub(in crate::kernels) struct F16;

impl Half for F16 {
    const NAN: u16 = 0x7e00;
    const INFINITY: u16 = 0x7c00;

    /// Moves exponent and fraction into place; an exponent of all ones stays all ones; a subnormal gets an implicit one
    /// that the subtraction takes away again, exactly.
    #[inline(always)]
    fn widen(bits: u16) -> f32 {
        const REBIAS: i32 = (127 - 15) << 23;
        const IMPLICIT: i32 = REBIAS + (1 << 23);
        let magnitude = i32::from(bits & 0x7fff) << 13;
        let sign = i32::from(bits & 0x8000) << 16;
        let normal = magnitude + REBIAS + if magnitude >= 0x7c00 << 13 { REBIAS } else { 0 };
        let subnormal = float(magnitude + IMPLICIT) - float(IMPLICIT);
        float(sign | if magnitude < 1 << 23 { subnormal.to_bits() as i32 } else { normal })
    }

    /// Adds half a unit of the last place that remains, a little less when that place is even, then cuts. Results that
    /// are subnormal are rounded by adding 0.5, whose last place is theirs.
    #[inline(always)]
    fn narrow(value: f32) -> u16 {
        const HALF: i32 = 0x3f00_0000;
        let magnitude = value.to_bits() as i32 & i32::MAX;
        let sign = (value.to_bits() >> 16) as i32 & 0x8000;
        let odd = (magnitude >> 13) & 1;
        let normal = (magnitude - ((127 - 15) << 23) + 0xfff + odd) >> 13;
        let subnormal = (float(magnitude) + 0.5).to_bits() as i32 - HALF;
        let finite = if magnitude < (127 - 14) << 23 { subnormal } else { normal };
        let number = if magnitude >= (127 + 16) << 23 { Self::INFINITY as i32 } else { finite };
        (if magnitude > 0xff << 23 { Self::NAN as i32 } else { number | sign }) as u16
    }
}

#[inline(always)]
fn float(bits: i32) -> f32 {
    f32::from_bits(bits as u32)
}

/// The upper half of an f32.
pub(in crate::kernels) struct BF16;

impl Half for BF16 {
    const NAN: u16 = 0x7fc0;
    const INFINITY: u16 = 0x7f80;

    #[inline(always)]
    fn widen(bits: u16) -> f32 {
        f32::from_bits(u32::from(bits) << 16)
    }

    #[inline(always)]
    fn narrow(value: f32) -> u16 {
        let bits = value.to_bits();
        let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
        if value.is_nan() { Self::NAN } else { rounded as u16 }
    }
}

/// A sum or product of f32.
pub(in crate::kernels) trait Arithmetic: Combine<Item = f32> {
    const PRODUCT: bool;
}

impl Arithmetic for Sum<f32> {
    const PRODUCT: bool = false;
}

impl Arithmetic for Product<f32> {
    const PRODUCT: bool = true;
}

/// An operation on f32, done on 16-bit floats.
pub(in crate::kernels) struct Rounded<H, C>(PhantomData<(H, C)>);

impl<H: Half, C: Arithmetic> Combine for Rounded<H, C> {
    type Item = u16;

    /// Any NaN will do in between, as `narrow` knows only one; to ask twice would cost the vector loop.
    #[inline(always)]
    fn combine(a: u16, b: u16) -> u16 {
        let (a, b) = (H::widen(a), H::widen(b));
        H::narrow(if C::PRODUCT { a * b } else { a + b })
    }
}

/// An operation on f32, done on bf16: [`Rounded`], two at a time.
///
/// In 32 bits that hold two bf16 the upper one is an f32 once the lower is masked out, and the lower one after a shift;
/// so vectors need no unpacking and packing, which costs more than the arithmetic.
pub(in crate::kernels) struct RoundedTwo<C>(PhantomData<C>);

impl<C: Arithmetic> Combine for RoundedTwo<C> {
    type Item = u16;

    #[inline(always)]
    fn combine(a: u16, b: u16) -> u16 {
        Rounded::<BF16, C>::combine(a, b)
    }

    #[inline(always)]
    fn accumulate(from: &[u16], into: &mut [u16]) {
        let (from, from_rest) = from.as_chunks::<2>();
        let (into, into_rest) = into.as_chunks_mut::<2>();
        for (into, &from) in into.iter_mut().zip(from) {
            *into = apart(two::<C>(together(*into), together(from)));
        }
        Rounded::<BF16, C>::accumulate(from_rest, into_rest);
    }

    #[inline(always)]
    fn combine_all(left: &[u16], right: &[u16], into: &mut [u16]) {
        let (left, left_rest) = left.as_chunks::<2>();
        let (right, right_rest) = right.as_chunks::<2>();
        let (into, into_rest) = into.as_chunks_mut::<2>();
        for ((into, &left), &right) in into.iter_mut().zip(left).zip(right) {
            *into = apart(two::<C>(together(left), together(right)));
        }
        Rounded::<BF16, C>::combine_all(left_rest, right_rest, into_rest);
    }
}

#[inline(always)]
fn two<C: Arithmetic>(a: u32, b: u32) -> u32 {
    const UPPER: u32 = 0xffff_0000;
    let upper = C::combine(f32::from_bits(a & UPPER), f32::from_bits(b & UPPER));
    let lower = C::combine(f32::from_bits(a << 16), f32::from_bits(b << 16));
    (rounded(upper) & UPPER) | (rounded(lower) >> 16)
}

/// The bf16 in the upper half; what is below has no meaning. `C` makes the one NaN of f32, whose upper half is the one NaN
/// of bf16, and which this neither changes nor lets overflow.
#[inline(always)]
fn rounded(value: f32) -> u32 {
    let bits = value.to_bits();
    bits.wrapping_add(0x7fff + ((bits >> 16) & 1))
}

/// Two neighbours as one word, whichever of them is the upper one here.
#[inline(always)]
fn together(two: [u16; 2]) -> u32 {
    // SAFETY: the same size, and every pattern of bits is a value.
    unsafe { std::mem::transmute(two) }
}

#[inline(always)]
fn apart(word: u32) -> [u16; 2] {
    // SAFETY: as above.
    unsafe { std::mem::transmute(word) }
}

/// An integer that sorts as the float does, -0 below +0. Its own inverse.
#[inline(always)]
fn key(bits: i16) -> i16 {
    bits ^ ((bits >> 15) & 0x7fff)
}

#[inline(always)]
fn is_nan<H: Half>(bits: u16) -> bool {
    bits & 0x7fff > H::INFINITY
}

pub(in crate::kernels) struct Min<H>(PhantomData<H>);

impl<H: Half> Combine for Min<H> {
    type Item = u16;

    #[inline(always)]
    fn combine(a: u16, b: u16) -> u16 {
        let least = key(key(a as i16).min(key(b as i16))) as u16;
        if is_nan::<H>(a) | is_nan::<H>(b) { H::NAN } else { least }
    }
}

pub(in crate::kernels) struct Max<H>(PhantomData<H>);

impl<H: Half> Combine for Max<H> {
    type Item = u16;

    #[inline(always)]
    fn combine(a: u16, b: u16) -> u16 {
        let most = key(key(a as i16).max(key(b as i16))) as u16;
        if is_nan::<H>(a) | is_nan::<H>(b) { H::NAN } else { most }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widening_is_that_of_the_half_crate_for_all_bits() {
        for bits in 0..=u16::MAX {
            let same = |ours: f32, theirs: f32| ours.to_bits() == theirs.to_bits() || ours.is_nan() && theirs.is_nan();
            assert!(same(F16::widen(bits), ::half::f16::from_bits(bits).to_f32_const()), "f16 {bits:#06x}");
            assert!(same(BF16::widen(bits), ::half::bf16::from_bits(bits).to_f32_const()), "bf16 {bits:#06x}");
        }
    }

    #[test]
    fn narrowing_is_that_of_the_half_crate_around_every_value_and_every_tie() {
        let check = |value: f32| {
            let f16 = ::half::f16::from_f32_const(value);
            let bf16 = ::half::bf16::from_f32_const(value);
            assert_eq!(F16::narrow(value), if f16.is_nan() { F16::NAN } else { f16.to_bits() }, "{value:e}");
            assert_eq!(BF16::narrow(value), if bf16.is_nan() { BF16::NAN } else { bf16.to_bits() }, "{value:e}");
        };
        for bits in (0..=u16::MAX).step_by(if cfg!(miri) { 997 } else { 1 }) {
            for middle in [F16::widen(bits).to_bits(), BF16::widen(bits).to_bits()] {
                for tie in [0, 0x1000, 0x8000, 0x2000] {
                    for near in [middle.wrapping_add(tie), middle.wrapping_sub(tie)] {
                        [near.wrapping_sub(1), near, near.wrapping_add(1)]
                            .into_iter()
                            .map(f32::from_bits)
                            .for_each(check);
                    }
                }
            }
        }
    }
}
