//! The two 16-bit floats. A sum or product is computed in f32 and rounded back to nearest even after every combine; a NaN
//! that comes out is the positive quiet one without payload, as for [`super::float`]. Min and max never leave 16 bits.
//!
//! The conversions are here because [`half`](::half)'s ask for the CPU at every element, which no loop survives.

use std::marker::PhantomData;

use super::Combine;

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
        const REBIAS: u32 = (127 - 15) << 23;
        let magnitude = u32::from(bits & 0x7fff) << 13;
        let sign = u32::from(bits & 0x8000) << 16;
        let normal = magnitude + REBIAS;
        let special = normal + REBIAS;
        let implicit = REBIAS + (1 << 23);
        let subnormal = (f32::from_bits(magnitude + implicit) - f32::from_bits(implicit)).to_bits();
        let finite = if magnitude < 1 << 23 { subnormal } else { normal };
        f32::from_bits(sign | if magnitude >= 0x7c00 << 13 { special } else { finite })
    }

    /// Adds half a unit of the last place that remains, a little less when that place is even, then cuts. Results that
    /// are subnormal are rounded by adding 0.5, whose last place is theirs.
    #[inline(always)]
    fn narrow(value: f32) -> u16 {
        const HALF: u32 = 0x3f00_0000;
        let sign = value.to_bits() & 0x8000_0000;
        let magnitude = value.to_bits() ^ sign;
        let odd = (magnitude >> 13) & 1;
        let normal = magnitude.wrapping_sub((127 - 15) << 23).wrapping_add(0xfff + odd) >> 13;
        let subnormal = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(HALF);
        let finite = if magnitude < (127 - 14) << 23 { subnormal } else { normal };
        let number = if magnitude >= (127 + 16) << 23 { u32::from(Self::INFINITY) } else { finite };
        let signed = number | sign >> 16;
        (if magnitude > 0xff << 23 { u32::from(Self::NAN) } else { signed }) as u16
    }
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

/// An operation on f32, done on 16-bit floats.
pub(in crate::kernels) struct Rounded<H, C>(PhantomData<(H, C)>);

impl<H: Half, C: Combine<Item = f32>> Combine for Rounded<H, C> {
    type Item = u16;

    #[inline(always)]
    fn combine(a: u16, b: u16) -> u16 {
        H::narrow(C::combine(H::widen(a), H::widen(b)))
    }
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
        for bits in 0..=u16::MAX {
            for middle in [F16::widen(bits).to_bits(), BF16::widen(bits).to_bits()] {
                for tie in [0, 0x1000, 0x8000, 0x2000] {
                    for near in [middle.wrapping_add(tie), middle.wrapping_sub(tie)] {
                        [near.wrapping_sub(1), near, near.wrapping_add(1)].map(|bits| check(f32::from_bits(bits)));
                    }
                }
            }
        }
    }
}
