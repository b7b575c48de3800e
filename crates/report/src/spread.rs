//! Times of which there may be very many: how many, their mean, and how far they lie from it.

use serde::{Deserialize, Serialize};

/// Numbers that were added one by one, in seconds. (Welford 1962: no sum of squares, whose difference would be noise.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// How many.
    pub calls: u64,
    /// Their mean.
    pub mean: f64,
    /// The sum of the squares of their distances from the mean.
    squares: f64,
}

impl Spread {
    /// One more.
    pub fn add(&mut self, seconds: f64) {
        self.calls += 1;
        let away = seconds - self.mean;
        self.mean += away / self.calls as f64;
        self.squares += away * (seconds - self.mean);
    }

    /// All of them together.
    ///
    /// ```
    /// let mut spread = allhands_report::Spread::default();
    /// [1.0, 2.0, 6.0].map(|seconds| spread.add(seconds));
    /// assert_eq!((spread.sum(), spread.deviation()), (9.0, 7f64.sqrt()));
    /// ```
    pub fn sum(&self) -> f64 {
        self.mean * self.calls as f64
    }

    /// How far they lie from their mean; 0 of fewer than two.
    pub fn deviation(&self) -> f64 {
        if self.calls < 2 { 0.0 } else { (self.squares / (self.calls - 1) as f64).sqrt() }
    }
}

/// How many deviations of a mean of so many values the true mean is away at most, in 95 of 100 cases: Student's t.
pub(crate) fn student(values: f64) -> f64 {
    const FEW: [f64; 10] = [12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23];
    let freedom = (values - 1.0).max(1.0);
    // Beyond ten the tail of its expansion in 1 / freedom is less than a hundredth.
    if freedom <= 10.0 { FEW[freedom as usize - 1] } else { 1.96 + 2.372 / freedom + 2.822 / (freedom * freedom) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_values_are_less_sure() {
        let table = [(2.0, 12.71), (5.0, 2.78), (11.0, 2.23), (21.0, 2.086), (61.0, 2.0), (1001.0, 1.962)];
        for (values, t) in table {
            assert!((student(values) - t).abs() < 0.005, "{values}: {}", student(values));
        }
    }

    #[test]
    fn of_none_and_of_one_nothing_is_known() {
        let mut spread = Spread::default();
        assert_eq!((spread.sum(), spread.deviation()), (0.0, 0.0));
        spread.add(3.0);
        assert_eq!((spread.sum(), spread.deviation()), (3.0, 0.0));
    }
}
