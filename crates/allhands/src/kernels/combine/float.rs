//! f32 and f64, as IEEE 754 says, round to nearest even, with one addition: a NaN that comes out is always
//! [`Float::NAN`], the positive quiet NaN without payload.
//!
//! IEEE leaves a NaN's sign and payload to the hardware, which takes them from the left operand (x86), from the
//! signalling one (Arm), or from neither (RISC-V); and compilers may swap operands. With one NaN, results are the same
//! bits whatever the CPU, the position in the buffer and the order of the operands.

use std::marker::PhantomData;
use std::ops::{Add, BitOrAssign, Mul, Sub};

use super::Combine;

pub(in crate::kernels) trait Float:
    Copy + PartialOrd + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self>
{
    const NAN: Self;
    /// As wide as the float: a flag that fits beside it in a vector.
    type Flag: Copy + Default + PartialEq + BitOrAssign + From<bool>;

    fn bits_or(self, other: Self) -> Self;
    fn bits_and(self, other: Self) -> Self;

    /// Itself, or the one NaN.
    #[inline(always)]
    #[allow(clippy::eq_op)]
    fn canonical(self) -> Self {
        if self != self { Self::NAN } else { self }
    }

    /// IEEE 754-2019 `minimum`.
    ///
    /// Each of the two selections is one x86 instruction. They differ only when the operands are zeros (then the one
    /// with a sign must win, and `or` keeps the sign) or when one is NaN (then the last line decides).
    #[inline(always)]
    fn ieee_minimum(self, other: Self) -> Self {
        let (a, b) = (self, other);
        let less = if a < b { a } else { b };
        let swapped = if b < a { b } else { a };
        if unordered(a, b) { Self::NAN } else { less.bits_or(swapped) }
    }

    /// IEEE 754-2019 `maximum`: as [`Self::ieee_minimum`], but of two zeros the one without a sign wins.
    #[inline(always)]
    fn ieee_maximum(self, other: Self) -> Self {
        let (a, b) = (self, other);
        let more = if a > b { a } else { b };
        let swapped = if b > a { b } else { a };
        if unordered(a, b) { Self::NAN } else { more.bits_and(swapped) }
    }
}

#[inline(always)]
#[allow(clippy::eq_op)]
fn unordered<F: PartialOrd>(a: F, b: F) -> bool {
    (a != a) | (b != b)
}

macro_rules! floats {
    ($($float:ident, $flag:ident, $nan:expr;)*) => {$(
        impl Float for $float {
            const NAN: Self = $float::from_bits($nan);
            type Flag = $flag;

            #[inline(always)]
            fn bits_or(self, other: Self) -> Self {
                $float::from_bits(self.to_bits() | other.to_bits())
            }

            #[inline(always)]
            fn bits_and(self, other: Self) -> Self {
                $float::from_bits(self.to_bits() & other.to_bits())
            }
        }
    )*};
}

floats! {
    f32, u32, 0x7fc0_0000;
    f64, u64, 0x7ff8_0000_0000_0000;
}

/// Items between two looks at whether a NaN came out. Long enough that the compiler makes a vector loop of a block.
const BLOCK: usize = 256;

/// `into[i] = result(i, into[i]).canonical()`. NaNs are rare, so a block is only searched for them if it has one: to see
/// that takes half an instruction per vector (two are compared with each other), to replace them two.
#[inline(always)]
fn write_block<F: Float>(into: &mut [F; BLOCK], result: impl Fn(usize, F) -> F) {
    // Not a bool, of which the compiler makes no vector loop.
    let mut found = F::Flag::default();
    for (i, into) in into.iter_mut().enumerate() {
        *into = result(i, *into);
        found |= F::Flag::from(unordered(*into, *into));
    }
    if found != F::Flag::default() {
        into.iter_mut().for_each(|item| *item = item.canonical());
    }
}

#[inline(always)]
fn accumulate<F: Float>(from: &[F], into: &mut [F], operation: impl Fn(F, F) -> F) {
    let (from, from_rest) = from.as_chunks::<BLOCK>();
    let (into, into_rest) = into.as_chunks_mut::<BLOCK>();
    for (into, from) in into.iter_mut().zip(from) {
        write_block(into, |i, before| operation(before, from[i]));
    }
    for (into, &from) in into_rest.iter_mut().zip(from_rest) {
        *into = operation(*into, from).canonical();
    }
}

#[inline(always)]
fn combine_all<F: Float>(left: &[F], right: &[F], into: &mut [F], operation: impl Fn(F, F) -> F) {
    let (left, left_rest) = left.as_chunks::<BLOCK>();
    let (right, right_rest) = right.as_chunks::<BLOCK>();
    let (into, into_rest) = into.as_chunks_mut::<BLOCK>();
    for ((into, left), right) in into.iter_mut().zip(left).zip(right) {
        write_block(into, |i, _| operation(left[i], right[i]));
    }
    for ((into, &left), &right) in into_rest.iter_mut().zip(left_rest).zip(right_rest) {
        *into = operation(left, right).canonical();
    }
}

macro_rules! arithmetic {
    ($($operation:ident: |$left:ident, $right:ident| $result:expr;)*) => {$(
        pub(in crate::kernels) struct $operation<F>(PhantomData<F>);

        impl<F: Float> Combine for $operation<F> {
            type Item = F;

            #[inline(always)]
            fn combine($left: F, $right: F) -> F {
                ($result).canonical()
            }

            #[inline(always)]
            fn accumulate(from: &[F], into: &mut [F]) {
                accumulate(from, into, |$left, $right| $result);
            }

            #[inline(always)]
            fn combine_all(left: &[F], right: &[F], into: &mut [F]) {
                combine_all(left, right, into, |$left, $right| $result);
            }
        }
    )*};
}

arithmetic! {
    Sum: |a, b| a + b;
    Product: |a, b| a * b;
}

macro_rules! order {
    ($($operation:ident: $method:ident;)*) => {$(
        pub(in crate::kernels) struct $operation<F>(PhantomData<F>);

        impl<F: Float> Combine for $operation<F> {
            type Item = F;

            #[inline(always)]
            fn combine(left: F, right: F) -> F {
                left.$method(right)
            }
        }
    )*};
}

order! {
    Min: ieee_minimum;
    Max: ieee_maximum;
}
