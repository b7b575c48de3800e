//! How long calls took of sizes that come in any order: what makes their times comparable.

use std::collections::BTreeMap;

use crate::stats::median;

/// How long one candidate took for calls of each size.
#[derive(Clone, Debug, Default)]
pub(super) struct Yardstick {
    /// Seconds, by size.
    times: BTreeMap<u64, Vec<f64>>,
    /// What a call of that candidate takes on the whole.
    pub(super) usual: f64,
}

/// Sizes whose calls take less than this part of the time that those of another one take are of little account.
const LITTLE: f64 = 0.2;

impl Yardstick {
    /// From sizes and seconds of some calls, and what one takes on the whole.
    pub(super) fn of(calls: &[(u64, f64)], usual: f64) -> Yardstick {
        let mut yardstick = Yardstick { usual, ..Yardstick::default() };
        calls.iter().for_each(|(size, seconds)| yardstick.add(*size, *seconds));
        yardstick
    }

    pub(super) fn add(&mut self, size: u64, seconds: f64) {
        self.times.entry(size).or_default().push(seconds);
    }

    /// What a call would have taken if it had been one of the usual length: as many times the usual as it took what its size takes. None if
    /// its size is not known, or is of little account.
    pub(super) fn measure(&self, size: u64, seconds: f64) -> Option<f64> {
        let times = self.times.get(&size)?;
        let taken = |times: &Vec<f64>| times.len() as f64 * median(times);
        let most = self.times.values().map(taken).fold(0.0, f64::max);
        (taken(times) >= LITTLE * most).then(|| self.usual * seconds / median(times))
    }

    /// The size whose calls take most time.
    pub(super) fn typical_size(&self) -> u64 {
        let taken = |times: &[f64]| times.iter().sum::<f64>();
        let most = self.times.iter().max_by(|(_, one), (_, other)| taken(one).total_cmp(&taken(other)));
        most.map_or(0, |(size, _)| *size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_measured_by_calls_of_its_size() {
        let yardstick = Yardstick::of(&[(8, 2.0), (64, 10.0), (8, 2.0), (8, 4.0)], 5.0);
        assert_eq!(yardstick.measure(8, 4.0), Some(10.0));
        assert_eq!(yardstick.measure(64, 4.0), Some(2.0));
        assert_eq!(yardstick.measure(9, 4.0), None);
        assert_eq!(yardstick.typical_size(), 64);
    }

    #[test]
    fn calls_of_little_account_say_nothing() {
        let yardstick = Yardstick::of(&[(8, 2.0), (8, 2.0), (64, 30.0)], 5.0);
        assert_eq!((yardstick.measure(8, 4.0), yardstick.measure(64, 60.0)), (None, Some(10.0)));
    }
}
