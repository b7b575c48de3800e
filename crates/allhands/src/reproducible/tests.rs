use proptest::prelude::*;

use super::*;

fn total<const K: usize>(numbers: impl IntoIterator<Item = f64>) -> Sum<K> {
    numbers.into_iter().map(Sum::of).fold(Sum { head: 0, digits: [0; K] }, Sum::with)
}

fn double(sum: &Sum<3>) -> u64 {
    sum.rounded(53, LEAST).to_bits()
}

/// A finite double of any size.
fn wild() -> impl Strategy<Value = f64> {
    any::<u64>().prop_map(f64::from_bits).prop_filter("finite", |number| number.is_finite())
}

/// Doubles whose sums can be counted in an i128: multiples of 2^-40 below 2^50.
fn tame() -> impl Strategy<Value = f64> {
    (any::<i64>(), 0..60i32).prop_map(|(mantissa, scale)| {
        let number = (mantissa >> 11) as f64 * power_of_two(-40) * power_of_two(scale - 23);
        (number * power_of_two(40)).trunc() * power_of_two(-40)
    })
}

proptest! {
    #[test]
    fn one_number_is_itself(number in wild()) {
        prop_assert_eq!(double(&Sum::of(number)), number.to_bits());
        let float = number as f32;
        if float.is_finite() {
            prop_assert_eq!((Sum::<2>::of(float.into()).rounded(24, -149) as f32).to_bits(), float.to_bits());
        }
    }

    #[test]
    fn numbers_of_like_size_give_their_exact_sum_rounded_once(numbers in prop::collection::vec(tame(), 1..200)) {
        let exact: i128 = numbers.iter().map(|number| (number * power_of_two(40)) as i128).sum();
        prop_assert_eq!(total::<3>(numbers).rounded(53, LEAST), exact as f64 * power_of_two(-40));
    }

    #[test]
    fn no_order_and_no_grouping_shows(numbers in prop::collection::vec(wild(), 1..40), seed in any::<u64>()) {
        let forward = total::<3>(numbers.iter().copied());
        let backward = total::<3>(numbers.iter().rev().copied());
        prop_assert_eq!(double(&forward), double(&backward));
        // Any tree: two sums at random places become one, until one is left.
        let mut sums: Vec<Sum<3>> = numbers.into_iter().map(Sum::of).collect();
        let mut state = seed;
        while sums.len() > 1 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let one = sums.swap_remove((state >> 33) as usize % sums.len());
            let index = (state >> 13) as usize % sums.len();
            sums[index] = sums[index].with(one);
        }
        prop_assert_eq!(sums[0], forward);
    }

    #[test]
    fn floats_are_rounded_once(numbers in prop::collection::vec(-1000.0..1000.0f32, 1..100)) {
        let exact: f64 = numbers.iter().map(|&number| f64::from(number)).sum();
        let sum = total::<2>(numbers.iter().map(|&number| number.into())).rounded(24, -149) as f32;
        // The sum in doubles is exact here: 24 bits, 100 numbers, and sizes that differ by less than 2^22 count.
        let close = (f64::from(sum) - exact).abs() <= f64::from(f32::EPSILON) * exact.abs() + 100.0 * 1000.0 * 2f64.powi(-40);
        prop_assert!(close, "{} {}", sum, exact);
    }

    #[test]
    fn what_is_left_out_is_within_the_bound(numbers in prop::collection::vec(wild(), 1..40)) {
        // All places: the exact sum.
        let exact = total::<54>(numbers.iter().copied()).rounded(53, LEAST);
        let sum = total::<3>(numbers.iter().copied()).rounded(53, LEAST);
        let largest = numbers.iter().fold(0.0f64, |most, number| most.max(number.abs()));
        if exact.is_finite() {
            let allowed = exact.abs() * f64::EPSILON + numbers.len() as f64 * (largest * 2f64.powi(-80));
            prop_assert!((sum - exact).abs() <= allowed, "{} {}", sum, exact);
        }
    }
}

#[test]
fn special_values_are_as_documented() {
    let sum = |numbers: &[f64]| total::<3>(numbers.iter().copied()).rounded(53, LEAST);
    assert!(sum(&[1.0, f64::NAN]).is_nan() && sum(&[f64::INFINITY, f64::NEG_INFINITY, 1.0]).is_nan());
    assert_eq!(sum(&[1.0, f64::INFINITY, f64::INFINITY]), f64::INFINITY);
    assert_eq!(sum(&[f64::NEG_INFINITY, f64::MAX]), f64::NEG_INFINITY);
    assert_eq!(sum(&[f64::MAX, f64::MAX]), f64::INFINITY);
    assert_eq!(sum(&[f64::MAX, f64::MAX, -f64::MAX]), f64::MAX, "what overflows on the way does not show");
    assert_eq!(sum(&[-0.0, -0.0]).to_bits(), (-0.0f64).to_bits());
    assert_eq!(sum(&[-0.0, 0.0]).to_bits(), 0);
    assert_eq!(sum(&[1.5, -1.5]).to_bits(), 0);
    assert_eq!(sum(&[5e-324, 5e-324]), 1e-323);
    assert_eq!(sum(&[f64::MIN_POSITIVE, -5e-324]), f64::MIN_POSITIVE - 5e-324);
    // To nearest, ties to even, and a trifle decides a tie.
    let half = f64::EPSILON / 2.0;
    assert_eq!(sum(&[1.0, half]), 1.0);
    assert_eq!(sum(&[1.0 + f64::EPSILON, half]), 1.0 + 2.0 * f64::EPSILON);
    assert_eq!(sum(&[1.0, half, 2f64.powi(-75)]), 1.0 + f64::EPSILON);
    assert_eq!(sum(&[1e16, 1.0, -1e16]), 1.0);
    let floats = |numbers: &[f32]| total::<2>(numbers.iter().map(|&number| number.into())).rounded(24, -149) as f32;
    assert_eq!(floats(&[f32::MAX, f32::MAX]), f32::INFINITY);
    assert_eq!(floats(&[f32::MAX, f32::MAX, -f32::MAX]), f32::MAX);
    assert_eq!(floats(&[1e-45, 1e-45]), 3e-45);
    assert_eq!(floats(&[1e8, 1.0, -1e8]), 1.0);
}

#[test]
fn many_numbers_fit() {
    let million = Sum::<3> { head: OTHER | 20, digits: [(MASK as i64) << 20; 3] };
    let four = million.with(million).with(million.with(million));
    assert!(four.digits.iter().all(|&digit| digit == (MASK as i64) << 22));
    assert_eq!(four.rounded(53, LEAST), million.rounded(53, LEAST) * 4.0);
}
