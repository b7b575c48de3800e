//! Times of which there may be very many: their median, from a bounded number of them.

use std::time::Duration;

/// Every so many-th time is kept; more of them are left out when there are too many.
#[derive(Default)]
pub(crate) struct Samples {
    calls: u64,
    /// Less one.
    skipped: u64,
    kept: Vec<f64>,
}

const MOST: usize = 4096;

impl Samples {
    pub(crate) fn add(&mut self, time: Duration) {
        if self.calls.is_multiple_of(self.skipped + 1) {
            self.kept.push(time.as_secs_f64());
        }
        self.calls += 1;
        if self.kept.len() == MOST {
            let mut index = 0;
            self.kept.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.skipped = self.skipped * 2 + 1;
        }
    }

    /// What so many tenths took less than, in seconds: 5 for the median; 0 of none.
    pub(crate) fn tenths(&self, tenths: usize) -> f64 {
        match (self.kept.is_empty(), tenths) {
            (true, _) => 0.0,
            (false, 5) => allhands::stats::median(&self.kept),
            (false, _) => allhands::stats::tenth(&self.kept, tenths),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_few_is_exact() {
        let mut samples = Samples::default();
        assert_eq!(samples.tenths(5), 0.0);
        for seconds in [5, 1, 9] {
            samples.add(Duration::from_secs(seconds));
        }
        assert_eq!((samples.tenths(5), samples.calls), (5.0, 3));
        samples.add(Duration::from_secs(6));
        assert_eq!((samples.tenths(5), samples.tenths(9)), (5.5, 9.0));
    }

    #[test]
    fn of_very_many_every_so_many_th_is_kept() {
        let mut samples = Samples::default();
        for second in 0..100_000 {
            samples.add(Duration::from_secs(second));
        }
        assert!(samples.kept.len() < MOST && samples.calls == 100_000);
        let step = samples.kept[1] - samples.kept[0];
        assert!(samples.kept.windows(2).all(|pair| pair[1] - pair[0] == step));
        assert!((samples.tenths(5) - 50_000.0).abs() <= step, "{}", samples.tenths(5));
    }
}
