//! What learning may cost.

/// Of the time in collectives, so much may be spent on learning.
const OF_COLLECTIVES: f64 = 0.01;
/// Of the run.
const OF_THE_RUN: f64 = 0.005;

/// What was spent on learning beside calls, and what all ranks know of the run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    /// Seconds that were spent on making plans and on exchanges.
    pub(crate) aside: f64,
    /// Seconds since the run began, when that was told last, and those in calls by then.
    run: f64,
    in_collectives: f64,
    /// Seconds that an exchange took, and how many there were.
    pub(crate) exchange: f64,
    /// Seconds that it took at most to think of who might serve.
    pub(crate) thought: f64,
    pub(crate) exchanges: u64,
}

impl Ledger {
    /// What ranks have told each other, when calls had taken so many seconds in all.
    pub(crate) fn told(&mut self, aside: f64, run: f64, exchange: f64, in_collectives: f64) {
        self.aside += aside + exchange;
        (self.run, self.in_collectives) = (run, in_collectives);
        self.exchange = if exchange > 0.0 { exchange } else { self.exchange };
        self.exchanges += 1;
    }

    /// Seconds that may be spent in all, where calls took so many.
    pub(crate) fn allowed(&self, in_collectives: f64) -> f64 {
        // Since then the run took as long as its calls at least.
        let run = self.run + (in_collectives - self.in_collectives).max(0.0);
        (OF_COLLECTIVES * in_collectives).min(OF_THE_RUN * run)
    }

    /// Seconds that may still be spent, where tries took so many of them.
    pub(crate) fn left(&self, spent: f64, in_collectives: f64) -> f64 {
        self.allowed(in_collectives) - self.aside - spent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lesser_share_counts_and_what_was_spent_is_gone() {
        let mut ledger = Ledger::default();
        assert_eq!(ledger.left(0.0, 0.0), 0.0, "nothing is known of the run");
        ledger.told(0.01, 10.0, 0.002, 2.0);
        // 1 % of 2 s, and 0.5 % of 10 s.
        assert!((ledger.left(0.003, 2.0) - (0.02 - 0.012 - 0.003)).abs() < 1e-12);
        assert!((ledger.left(0.0, 8.0) - (0.005 * 16.0 - 0.012)).abs() < 1e-12, "the run went on as well");
        assert!((ledger.left(0.0, 1000.0) - (0.005 * 1008.0 - 0.012)).abs() < 1e-12);
        assert!(ledger.left(0.1, 2.0) < 0.0);
    }
}
