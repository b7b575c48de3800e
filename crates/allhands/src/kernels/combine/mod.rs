//! What one combine does, element by element: the meaning of every operation, written once.
//!
//! Everything here is branch-free safe code that is inlined into the loops of [`super::loops`], so body and tail of a
//! loop, and every instruction set, evaluate the same expression.

pub(super) mod complex;
pub(super) mod float;
pub(super) mod half;
pub(super) mod integer;
pub(super) mod pair;

/// A type and an operation on it.
///
/// `combine` must give the same bits when its operands change places: one kernel serves both sides.
pub(super) trait Combine {
    /// What the loop runs over; valid for every value the bytes of an element can have.
    type Item: Copy;
    /// Items in one element.
    const PARTS: usize = 1;

    fn combine(left: Self::Item, right: Self::Item) -> Self::Item;

    /// `combine` on each item of `into` and of `from`, slices of one length. Overridden where a block at a time is faster.
    #[inline(always)]
    fn accumulate(from: &[Self::Item], into: &mut [Self::Item]) {
        for (into, &from) in into.iter_mut().zip(from) {
            *into = Self::combine(*into, from);
        }
    }

    /// `combine` on each item of `left` and of `right`, slices of one length.
    #[inline(always)]
    fn combine_all(left: &[Self::Item], right: &[Self::Item], into: &mut [Self::Item]) {
        for ((into, &left), &right) in into.iter_mut().zip(left).zip(right) {
            *into = Self::combine(left, right);
        }
    }
}

/// An element that is two items, combined one by one.
pub(super) struct Twice<C>(C);

impl<C: Combine> Combine for Twice<C> {
    type Item = C::Item;
    const PARTS: usize = 2 * C::PARTS;

    #[inline(always)]
    fn combine(left: C::Item, right: C::Item) -> C::Item {
        C::combine(left, right)
    }

    #[inline(always)]
    fn accumulate(from: &[C::Item], into: &mut [C::Item]) {
        C::accumulate(from, into);
    }

    #[inline(always)]
    fn combine_all(left: &[C::Item], right: &[C::Item], into: &mut [C::Item]) {
        C::combine_all(left, right, into);
    }
}
