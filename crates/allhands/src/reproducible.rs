//! Sums of floating-point numbers whose bits depend on neither order nor algorithm nor where ranks sit.
//!
//! A number is cut into digits of 40 bits, on a grid that is the same for all numbers: digit b has the weight 2^(40 b - 1074). An
//! accumulator holds integer sums of the digits of its K highest places, the highest being the one with the leading bit of the largest number so
//! far. What is added exactly, in integers, does not depend on an order; what lies below the K places of the largest number of all is
//! left out of every sum alike, whenever it is met: a place that is among the K highest in the end was among them, or above them, before. So
//! all orders of adding and merging give the same integers, which are rounded once, to nearest, ties to even.
//!
//! *Error.* With K = 3 for doubles at least 80 bits below the leading bit of the largest number count, with K = 2 for floats 40. For n numbers
//! the result differs from their exact sum by at most half a unit of its last place and n 2^-80 (n 2^-40) of the largest number, where a
//! plain sum may be wrong by n 2^-53 (n 2^-24) of the sum of all magnitudes. Where all numbers lie within 2^80 (2^40) of each other the result
//! is the exact sum, rounded once.
//!
//! *Special values.* A NaN, or infinities of both signs, give NaN; infinities of one sign that infinity. A sum beyond the largest number is rounded to
//! infinity only at the end: what overflows on the way and comes back does not show. Negative zeros alone give a negative zero, numbers that
//! cancel a positive one. Denormal numbers count as they are.
//!
//! A digit's sum has 23 bits to spare: 4 million numbers, which is more than there are ranks.

use std::sync::Arc;

use allhands_schedule::Combine;

use crate::kernels::{Operation, Type};
use crate::op::Reducer;

/// Bits of a digit.
const DIGIT: u32 = 40;
const MASK: u64 = (1 << DIGIT) - 1;
/// The weight of the last bit of all, as a power of two: that of the smallest double.
const LEAST: i32 = -1074;

/// Digits that are kept of floats and of doubles.
const OF_FLOATS: usize = 2;
const OF_DOUBLES: usize = 3;

/// In [`Sum::head`], above the number of the highest place: what else was added.
const NAN: i64 = 1 << 16;
const INFINITY: i64 = 1 << 17;
const MINUS_INFINITY: i64 = 1 << 18;
/// Something else than a negative zero.
const OTHER: i64 = 1 << 19;
const PLACE: i64 = NAN - 1;

/// The sum of some numbers. All zeros is that of none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
struct Sum<const K: usize> {
    /// The highest place and one, or 0 if there were zeros only; and flags.
    head: i64,
    /// Of the highest place and those below.
    digits: [i64; K],
}

impl<const K: usize> Sum<K> {
    /// Of one number.
    fn of(number: f64) -> Sum<K> {
        let bits = number.to_bits();
        let (negative, exponent, fraction) = (bits >> 63 == 1, (bits >> 52) as u32 & 0x7ff, bits & ((1 << 52) - 1));
        let mut sum = Sum { head: OTHER, digits: [0; K] };
        if exponent == 0x7ff {
            sum.head |= match (fraction, negative) {
                (0, false) => INFINITY,
                (0, true) => MINUS_INFINITY,
                _ => NAN,
            };
            return sum;
        }
        // The number is `mantissa` times the weight of bit `position` of the grid.
        let (mantissa, position) = if exponent == 0 { (fraction, 0) } else { (fraction | 1 << 52, exponent - 1) };
        if mantissa == 0 {
            sum.head = if negative { 0 } else { OTHER };
            return sum;
        }
        let highest = (position + 63 - mantissa.leading_zeros()) / DIGIT;
        let lowest = position / DIGIT;
        let on_the_grid = u128::from(mantissa) << (position % DIGIT);
        sum.head |= i64::from(highest) + 1;
        for (digit, place) in sum.digits.iter_mut().zip((lowest..=highest).rev()) {
            let value = ((on_the_grid >> (DIGIT * (place - lowest))) as u64 & MASK) as i64;
            *digit = if negative { -value } else { value };
        }
        sum
    }

    /// Of the numbers of both.
    #[inline]
    fn with(self, other: Sum<K>) -> Sum<K> {
        let (mut high, low) = if self.head & PLACE >= other.head & PLACE { (self, other) } else { (other, self) };
        let below = ((high.head & PLACE) - (low.head & PLACE)) as usize;
        if below < K {
            high.digits[below..].iter_mut().zip(low.digits).for_each(|(digit, other)| *digit += other);
        }
        high.head |= low.head & !PLACE;
        high
    }

    /// What it comes to, with so many bits, the last of them no lower than `least`.
    fn rounded(&self, precision: i32, least: i32) -> f64 {
        let has = |flag: i64| self.head & flag != 0;
        match (has(NAN), has(INFINITY), has(MINUS_INFINITY)) {
            (true, ..) | (_, true, true) => return f64::NAN,
            (_, true, _) => return f64::INFINITY,
            (_, _, true) => return f64::NEG_INFINITY,
            _ => {}
        }
        let digits = carried(self.digits);
        let negative = digits[0] < 0;
        let digits = if negative { carried(self.digits.map(|digit| -digit)) } else { digits };
        // As many digits as fit; what is below them only says that there is something.
        let mut value = digits[0] as u128;
        let mut taken = 1;
        while taken < K && value >> (127 - DIGIT) == 0 {
            value = value << DIGIT | digits[taken] as u128;
            taken += 1;
        }
        let more = digits[taken..].iter().any(|&digit| digit != 0);
        if value == 0 {
            return if has(OTHER) { 0.0 } else { -0.0 };
        }
        let place = (self.head & PLACE) as i32 - taken as i32;
        let magnitude = round(value, more, place * DIGIT as i32 + LEAST, precision, least);
        if negative { -magnitude } else { magnitude }
    }
}

/// The same value with digits from 0 to 2^40 but for the first, which has its sign.
fn carried<const K: usize>(mut digits: [i64; K]) -> [i64; K] {
    for place in (1..K).rev() {
        let carry = digits[place] >> DIGIT;
        digits[place] -= carry << DIGIT;
        digits[place - 1] += carry;
    }
    digits
}

/// `value` times 2^`weight`, and a little `more`, which is less than its last bit, rounded to nearest.
fn round(value: u128, more: bool, weight: i32, precision: i32, least: i32) -> f64 {
    let bits = 128 - value.leading_zeros() as i32;
    let last = (weight + bits - precision).max(least);
    let dropped = last - weight;
    let kept = match dropped {
        // Few bits: nothing is lost, and there is no more, for which there are always many.
        ..=0 => value << -dropped,
        1..=127 => {
            let (kept, rest) = (value >> dropped, value & ((1 << dropped) - 1));
            let half = 1 << (dropped - 1);
            let up = rest > half || rest == half && (more || kept & 1 == 1);
            kept + u128::from(up)
        }
        _ => 0,
    };
    // Exact, because so many bits fit; a power beyond all numbers is infinite.
    kept as f64 * power_of_two(last)
}

fn power_of_two(exponent: i32) -> f64 {
    match exponent {
        1024.. => f64::INFINITY,
        -1022..=1023 => f64::from_bits(((exponent + 1023) as u64) << 52),
        _ => f64::from_bits(1 << (exponent - LEAST).max(0)),
    }
}

/// How the elements of a reduction become sums, and sums elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reproducible {
    double: bool,
    /// Numbers of an element: a complex one has two.
    parts: usize,
}

impl Reproducible {
    /// Of sums of floats, doubles and complex numbers of both.
    pub(crate) fn of(element: Type, operation: Option<Operation>) -> Option<Reproducible> {
        let (double, parts) = match element {
            Type::F32 => (false, 1),
            Type::F64 => (true, 1),
            Type::C32 => (false, 2),
            Type::C64 => (true, 2),
            _ => return None,
        };
        (operation == Some(Operation::Sum)).then_some(Reproducible { double, parts })
    }

    /// Bytes of what stands for an element while it travels.
    pub(crate) fn bytes(self) -> usize {
        self.parts * if self.double { size_of::<Sum<OF_DOUBLES>>() } else { size_of::<Sum<OF_FLOATS>>() }
    }

    pub(crate) fn reducer(self) -> Arc<dyn Reducer> {
        if self.double { Arc::new(Merge::<OF_DOUBLES>) } else { Arc::new(Merge::<OF_FLOATS>) }
    }

    /// Makes sums of elements.
    ///
    /// # Safety
    /// So many elements can be read, and so many sums written, apart from each other.
    pub(crate) unsafe fn begin(self, elements: *const u8, sums: *mut u8, count: usize) {
        for index in 0..count * self.parts {
            // SAFETY: the caller's promise; nothing is asked of alignment.
            unsafe {
                match self.double {
                    true => put(sums, index, Sum::<OF_DOUBLES>::of(get::<f64>(elements, index))),
                    false => put(sums, index, Sum::<OF_FLOATS>::of(get::<f32>(elements, index).into())),
                }
            }
        }
    }

    /// Rounds sums to elements.
    ///
    /// # Safety
    /// So many sums can be read, and so many elements written, apart from each other.
    pub(crate) unsafe fn end(self, sums: *const u8, elements: *mut u8, count: usize) {
        for index in 0..count * self.parts {
            // SAFETY: the caller's promise; nothing is asked of alignment.
            unsafe {
                match self.double {
                    true => put(elements, index, get::<Sum<OF_DOUBLES>>(sums, index).rounded(53, LEAST)),
                    false => put(elements, index, get::<Sum<OF_FLOATS>>(sums, index).rounded(24, -149) as f32),
                }
            }
        }
    }
}

/// # Safety
/// So many values and one more can be read there.
unsafe fn get<T>(from: *const u8, index: usize) -> T {
    // SAFETY: the caller's promise; `T` is plain data here.
    unsafe { from.cast::<T>().add(index).read_unaligned() }
}

/// # Safety
/// So many values and one more can be written there.
unsafe fn put<T>(to: *mut u8, index: usize, value: T) {
    // SAFETY: the caller's promise.
    unsafe { to.cast::<T>().add(index).write_unaligned(value) };
}

/// Adds sums to sums.
struct Merge<const K: usize>;

impl<const K: usize> Reducer for Merge<K> {
    unsafe fn combine(&self, from: *const u8, into: *mut u8, bytes: usize, _: Combine) {
        // SAFETY: the caller's promise. `into` is read before it is written.
        unsafe { self.combine_into(from, into, into, bytes) };
    }

    unsafe fn combine_into(&self, left: *const u8, right: *const u8, into: *mut u8, bytes: usize) {
        for index in 0..bytes / size_of::<Sum<K>>() {
            // SAFETY: the caller's promise, for whole sums.
            unsafe { put(into, index, get::<Sum<K>>(left, index).with(get(right, index))) };
        }
    }
}

#[cfg(test)]
mod tests;
