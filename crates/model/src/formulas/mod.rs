//! Cost models as the papers print them, each beside its corrected form.
//!
//! Every function says which equation it is. Times are in seconds, sizes in bytes; logarithms of the printed forms are real
//! numbers, those of the corrected ones count rounds. What we trust is neither: [`simulate`](crate::simulate()) walks the
//! schedule itself.

pub mod jocksch;
pub mod loc_bruck;
pub mod nap;
pub mod radix;

use crate::machine::Level;

/// Latency and time per byte of one kind of message: the postal model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Postal {
    /// Seconds for each message.
    pub latency: f64,
    /// Seconds for each byte.
    pub per_byte: f64,
}

impl Postal {
    /// `T = latency n + per_byte s`: n messages one after the other with s bytes in all (Eq. 1 of the loc-Bruck and NAP papers).
    ///
    /// ```
    /// use allhands_model::formulas::Postal;
    /// let network = Postal { latency: 1e-6, per_byte: 1e-9 };
    /// assert!((network.time(3.0, 2000.0) - 5e-6).abs() < 1e-15);
    /// ```
    pub fn time(&self, messages: f64, bytes: f64) -> f64 {
        self.latency * messages + self.per_byte * bytes
    }

    /// What a level of a machine charges for messages of some size, alone on their node.
    pub fn of(level: &Level, bytes: u64) -> Postal {
        let protocol = level.protocol(bytes);
        Postal { latency: protocol.latency, per_byte: protocol.per_byte }
    }
}

/// `T = near + far`, each with its own messages and bytes (Eq. 2 of the loc-Bruck and NAP papers).
pub fn locality(near: (Postal, f64, f64), far: (Postal, f64, f64)) -> f64 {
    near.0.time(near.1, near.2) + far.0.time(far.1, far.2)
}

/// The max-rate model (Eq. 3 of the NAP paper): `latency + ranks s / min(node_rate, ranks rank_rate)`, for `ranks` of a node that
/// send s bytes each at once. Rates are in bytes a second.
///
/// ```
/// use allhands_model::formulas::max_rate;
/// assert_eq!(max_rate(0.0, 1, 1e6, 4e9, 6e9), 1e6 / 4e9); // one rank: its own rate
/// assert_eq!(max_rate(0.0, 16, 1e6, 4e9, 6e9), 16e6 / 6e9); // many: the node's
/// ```
pub fn max_rate(latency: f64, ranks: usize, bytes: f64, rank_rate: f64, node_rate: f64) -> f64 {
    latency + ranks as f64 * bytes / node_rate.min(ranks as f64 * rank_rate)
}

/// The smallest k with `base^k >= x`.
pub(crate) fn ceil_log(base: usize, x: usize) -> usize {
    let (mut power, mut k) = (1usize, 0);
    while power < x {
        power = power.saturating_mul(base.max(2));
        k += 1;
    }
    k
}
