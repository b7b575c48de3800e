//! Values with their index. The value is what min or max would give; the index is the lowest at which a value equal to it
//! was found, equal as numbers: -0 and +0 tie, and so do NaNs, which win over every number.

use std::marker::PhantomData;

use super::Combine;
use super::float::Float;
use crate::kernels::types::Pair;

/// What the values of pairs can do.
pub(in crate::kernels) trait Value: Copy + PartialEq {
    fn least(self, other: Self) -> Self;
    fn most(self, other: Self) -> Self;
}

macro_rules! integers {
    ($($integer:ident)*) => {$(
        impl Value for $integer {
            #[inline(always)]
            fn least(self, other: Self) -> Self {
                self.min(other)
            }

            #[inline(always)]
            fn most(self, other: Self) -> Self {
                self.max(other)
            }
        }
    )*};
}

macro_rules! floats {
    ($($float:ident)*) => {$(
        impl Value for $float {
            #[inline(always)]
            fn least(self, other: Self) -> Self {
                self.ieee_minimum(other)
            }

            #[inline(always)]
            fn most(self, other: Self) -> Self {
                self.ieee_maximum(other)
            }
        }
    )*};
}

integers! { i16 i32 i64 }
floats! { f32 f64 }

/// The index that remains when `best` came out of `a` and `b`.
#[inline(always)]
fn index<V: Value>(a: Pair<V>, b: Pair<V>, best: V) -> i32 {
    let (has_a, has_b) = (ties(a.value, best), ties(b.value, best));
    let (a, b) = (if has_a { a.index } else { i32::MAX }, if has_b { b.index } else { i32::MAX });
    a.min(b)
}

/// Equal as numbers, or both NaN.
#[inline(always)]
#[allow(clippy::eq_op)]
fn ties<V: Value>(a: V, b: V) -> bool {
    (a == b) | ((a != a) & (b != b))
}

pub(in crate::kernels) struct MinLoc<V>(PhantomData<V>);

impl<V: Value> Combine for MinLoc<V> {
    type Item = Pair<V>;

    #[inline(always)]
    fn combine(a: Pair<V>, b: Pair<V>) -> Pair<V> {
        let value = a.value.least(b.value);
        Pair { value, index: index(a, b, value) }
    }
}

pub(in crate::kernels) struct MaxLoc<V>(PhantomData<V>);

impl<V: Value> Combine for MaxLoc<V> {
    type Item = Pair<V>;

    #[inline(always)]
    fn combine(a: Pair<V>, b: Pair<V>) -> Pair<V> {
        let value = a.value.most(b.value);
        Pair { value, index: index(a, b, value) }
    }
}
