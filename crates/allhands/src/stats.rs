//! Medians, and how sure they are: what `tune`, `bench` and learning judge times by.

/// A median, and an interval that holds the true one in about 95 of 100 cases, whatever the distribution: between order statistics.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Middle {
    /// The median.
    pub median: f64,
    /// Where the interval begins.
    pub low: f64,
    /// Where it ends.
    pub high: f64,
}

/// The middle of some values; of none, not a number.
///
/// ```
/// let middle = allhands::stats::middle(&[3.0, 1.0]);
/// assert_eq!((middle.median, middle.low, middle.high), (2.0, 1.0, 3.0));
/// ```
pub fn middle(values: &[f64]) -> Middle {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len();
    if count == 0 {
        return Middle { median: f64::NAN, low: f64::NAN, high: f64::NAN };
    }
    let aside = (count as f64 / 2.0 - 0.98 * (count as f64).sqrt()).max(0.0) as usize;
    let median = (sorted[(count - 1) / 2] + sorted[count / 2]) / 2.0;
    Middle { median, low: sorted[aside], high: sorted[count - 1 - aside] }
}

/// The median alone.
///
/// ```
/// assert_eq!(allhands::stats::median(&[5.0, 1.0, 9.0]), 5.0);
/// ```
pub fn median(values: &[f64]) -> f64 {
    middle(values).median
}

/// The least value that so many tenths of all do not exceed: for nine of ten never less than the median.
///
/// ```
/// let values: Vec<f64> = (1..=100).map(f64::from).collect();
/// assert_eq!(allhands::stats::tenth(&values, 9), 90.0);
/// assert_eq!([0, 1, 9, 10].map(|tenths| allhands::stats::tenth(&[1.0, 2.0], tenths)), [1.0, 1.0, 2.0, 2.0]);
/// ```
pub fn tenth(values: &[f64], tenths: usize) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get((sorted.len() * tenths).div_ceil(10).saturating_sub(1)).copied().unwrap_or(f64::NAN)
}

/// How many times as long one takes as the other, from the rounds in which both had a turn: what disturbs a round disturbs both.
///
/// ```
/// assert_eq!(allhands::stats::ratio(&[2.0, 20.0, 2.0], &[1.0, 10.0, 1.0]).median, 2.0);
/// ```
pub fn ratio(one: &[f64], other: &[f64]) -> Middle {
    middle(&one.iter().zip(other).map(|(one, other)| one / other).collect::<Vec<f64>>())
}

/// The one with the least median among some, if any of them was measured.
///
/// ```
/// assert_eq!(allhands::stats::fastest(&[vec![2.0], vec![1.0], vec![]], &[0, 1, 2]), Some(1));
/// ```
pub fn fastest(times: &[Vec<f64>], among: &[usize]) -> Option<usize> {
    let measured = among.iter().copied().filter(|&index| !times[index].is_empty());
    measured.min_by(|&one, &other| median(&times[one]).total_cmp(&median(&times[other])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_a_hundred_values_leaves_forty_out_on_each_side() {
        let values: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        // 50 - 0.98 * 10 = 40.2
        assert_eq!(middle(&values), Middle { median: 50.5, low: 41.0, high: 60.0 });
        assert_eq!(middle(&[3.0, 1.0]), Middle { median: 2.0, low: 1.0, high: 3.0 });
        assert!(middle(&[]).median.is_nan());
        assert_eq!((tenth(&values, 1), tenth(&values, 9)), (10.0, 90.0));
    }

    #[test]
    fn the_interval_holds_the_true_median_in_about_95_of_100_cases() {
        let mut state = 7u64;
        let mut random = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        let held = (0..2000).filter(|_| {
            let values: Vec<f64> = (0..41).map(|_| random()).collect();
            let middle = middle(&values);
            middle.low <= 0.5 && 0.5 <= middle.high
        });
        let held = held.count();
        assert!((1880..=1960).contains(&held), "{held} of 2000");
    }

    #[test]
    fn a_disturbed_round_disturbs_no_ratio() {
        let (one, other) = ([2.0, 20.0, 2.2, 200.0], [1.0, 10.0, 1.1, 100.0, 5.0]);
        let ratio = ratio(&one, &other);
        assert!((ratio.median - 2.0).abs() < 1e-12 && (ratio.high - ratio.low).abs() < 1e-12);
        assert_eq!(fastest(&[vec![2.0, 9.0, 2.0], vec![3.0], vec![1.0]], &[0, 1]), Some(0));
    }
}
