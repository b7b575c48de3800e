//! Numbers drawn alike on every rank, and elements that any order of additions leaves exact.

use allhands::kernels::{Element, Pair};

/// A small generator: the tests are the same on every machine, and every rank of a job draws the same.
#[derive(Clone)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % limit.max(1)
    }

    pub(crate) fn pick<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())].clone()
    }

    /// Numbers of its own for a group of ranks, which leaves everybody's as they are.
    pub(crate) fn fork(&self, group: u64) -> Random {
        let mut fork = Random(self.0 ^ group.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        fork.below(1);
        fork
    }
}

/// What the reference can be computed with exactly.
pub(crate) trait Sample: Element + PartialEq + std::fmt::Debug {
    fn sample(seed: usize) -> Self;
}

// The highest bits of a product with an odd number: what a seed gives does not come again after a power of two, so that a block in
// another one's place is seen.
macro_rules! samples {
    ($($type:ty),*) => { $(impl Sample for $type {
        fn sample(seed: usize) -> $type { ((seed as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as $type }
    })* };
}
samples!(u8, i8, i16, u16, i32, u32, i64, u64, f32, f64);

impl Sample for half::f16 {
    fn sample(seed: usize) -> half::f16 {
        half::f16::from_f32(f32::sample(seed))
    }
}

impl Sample for num_complex::Complex<f32> {
    fn sample(seed: usize) -> num_complex::Complex<f32> {
        num_complex::Complex::new(f32::sample(seed), f32::sample(seed + 1))
    }
}

impl Sample for bool {
    fn sample(seed: usize) -> bool {
        u8::sample(seed) % 2 == 1
    }
}

impl Sample for Pair<f64> {
    fn sample(seed: usize) -> Pair<f64> {
        Pair { value: f64::sample(seed) % 4.0, index: i32::sample(seed / 3) }
    }
}

/// The least value, and the lowest index at which it is found.
pub(crate) fn min_loc(left: Pair<f64>, right: Pair<f64>) -> Pair<f64> {
    match left.value.total_cmp(&right.value) {
        std::cmp::Ordering::Less => left,
        std::cmp::Ordering::Greater => right,
        std::cmp::Ordering::Equal => Pair { value: left.value, index: left.index.min(right.index) },
    }
}

/// Maps x -> m x + c modulo 2^32, packed: composing them is associative and does not commute.
pub(crate) fn compose(first: u64, second: u64) -> u64 {
    let parts = |map: u64| ((map >> 32) as u32, map as u32);
    let ((m1, c1), (m2, c2)) = (parts(first), parts(second));
    u64::from(m1.wrapping_mul(m2)) << 32 | u64::from(c1.wrapping_mul(m2).wrapping_add(c2))
}
