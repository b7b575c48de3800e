//! Integers. Sum and product wrap around; logical results are 1 or 0.
//!
//! Where the sign does not matter signed types use the unsigned kernels of their size: wrapping sums and products,
//! bits, and "is it zero" are the same bits. Bool is a byte here.

use std::marker::PhantomData;
use std::ops::{BitAnd, BitOr, BitXor};

use super::Combine;

pub(in crate::kernels) trait Integer:
    Copy + Ord + BitAnd<Output = Self> + BitOr<Output = Self> + BitXor<Output = Self>
{
    fn sum(self, other: Self) -> Self;
    fn product(self, other: Self) -> Self;
    fn truth(self) -> bool;
    fn one_if(truth: bool) -> Self;
}

macro_rules! integers {
    ($($integer:ident)*) => {$(
        impl Integer for $integer {
            #[inline(always)]
            fn sum(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            #[inline(always)]
            fn product(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }

            #[inline(always)]
            fn truth(self) -> bool {
                self != 0
            }

            #[inline(always)]
            fn one_if(truth: bool) -> Self {
                truth as Self
            }
        }
    )*};
}

integers! { i8 i16 i32 i64 u8 u16 u32 u64 }

macro_rules! operations {
    ($($operation:ident: |$left:ident, $right:ident| $result:expr;)*) => {$(
        pub(in crate::kernels) struct $operation<T>(PhantomData<T>);

        impl<T: Integer> Combine for $operation<T> {
            type Item = T;

            #[inline(always)]
            fn combine($left: T, $right: T) -> T {
                $result
            }
        }
    )*};
}

operations! {
    Sum: |a, b| a.sum(b);
    Product: |a, b| a.product(b);
    Min: |a, b| a.min(b);
    Max: |a, b| a.max(b);
    LogicalAnd: |a, b| T::one_if(a.truth() & b.truth());
    LogicalOr: |a, b| T::one_if((a | b).truth());
    LogicalXor: |a, b| T::one_if(a.truth() ^ b.truth());
    And: |a, b| a & b;
    Or: |a, b| a | b;
    Xor: |a, b| a ^ b;
}
