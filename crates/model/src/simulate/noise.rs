//! Random delays, the same for the same seed, whatever the order of events.

/// Delays on request.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Noise {
    /// Which delays.
    pub seed: u64,
    /// The mean of the exponentially distributed delay of a message, as a share of its latency.
    pub message: f64,
    /// Ranks come at random between 0 and so many seconds.
    pub late: f64,
}

impl Noise {
    /// Whether there is any.
    pub fn is_silent(&self) -> bool {
        self.message == 0.0 && self.late == 0.0
    }

    /// When a rank comes.
    pub(super) fn late(&self, rank: usize) -> f64 {
        if self.late == 0.0 { 0.0 } else { self.late * self.uniform(2 * rank as u64) }
    }

    /// How much longer a message takes.
    pub(super) fn of_message(&self, message: usize, latency: f64) -> f64 {
        if self.message == 0.0 {
            return 0.0;
        }
        -(1.0 - self.uniform(2 * message as u64 + 1)).ln() * self.message * latency
    }

    /// From 0 up to, not including, 1: the bits of splitmix64.
    fn uniform(&self, which: u64) -> f64 {
        let mut bits = self.seed ^ which.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}
