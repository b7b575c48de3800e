//! The allgather models of the locality-aware Bruck paper (Bienz, Gautam and Kharel 2022).

use super::{Postal, ceil_log};
use crate::machine::Level;

/// Eq. 3, Bruck: `log2(p) latency + (b - 1) per_byte`, which mixes bytes with values.
pub fn bruck_printed(far: Postal, ranks: usize, bytes: f64) -> f64 {
    far.time((ranks as f64).log2(), bytes - 1.0)
}

/// Bruck with whole rounds and bytes: every block but the own one. `bytes` is what everybody holds at the end.
pub fn bruck(far: Postal, ranks: usize, bytes: f64) -> f64 {
    far.time(ceil_log(2, ranks) as f64, bytes * (ranks - 1) as f64 / ranks as f64)
}

/// Eq. 4, loc-Bruck: only the last far round's bytes, and one near latency a round.
pub fn loc_bruck_printed(near: Postal, far: Postal, regions: usize, size: usize, bytes: f64) -> f64 {
    let rounds = (regions as f64).ln() / (size as f64).ln();
    far.time(rounds, bytes / size as f64) + near.time(rounds + 1.0, bytes - 1.0)
}

/// Eq. 4 corrected, exact where the number of regions is a power of their size: all far rounds' bytes, log2 q near messages a round.
pub fn loc_bruck(near: Postal, far: Postal, regions: usize, size: usize, bytes: f64) -> f64 {
    let (rounds, ranks) = (ceil_log(size, regions) as f64, (regions * size) as f64);
    let far_bytes = bytes * (regions - 1) as f64 / (regions as f64 * (size - 1) as f64);
    far.time(rounds, far_bytes) + near.time(ceil_log(2, size) as f64 * (rounds + 1.0), bytes * (1.0 - 1.0 / ranks))
}

/// Bruck message by message, each by the protocol of its size, all far. `block` is what one rank gives.
pub fn bruck_by_messages(far: &Level, ranks: usize, block: u64) -> f64 {
    by_messages(far, ranks, block as f64)
}

fn by_messages(level: &Level, ranks: usize, block: f64) -> f64 {
    let (mut held, mut time) = (1, 0.0);
    while held < ranks {
        let sent = held.min(ranks - held);
        let bytes = sent as f64 * block;
        time += Postal::of(level, bytes.ceil() as u64).time(1.0, bytes);
        held += sent;
    }
    time
}

/// How the ranks of a region share what they fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// Every rank gives as much as the busiest one fetched, also if it fetched nothing: the paper's variant, generalised.
    Padded,
    /// Only what was fetched, taken as spread evenly over the ranks.
    Even,
}

/// loc-Bruck message by message, each by the protocol of its size.
pub fn loc_bruck_by_messages(near: &Level, far: &Level, regions: usize, size: usize, block: u64, share: Share) -> f64 {
    let mut time = by_messages(near, size, block as f64);
    let mut held = 1;
    while held < regions {
        let fetched = (held.min(regions - held) * size) as u64 * block;
        let next = regions.min(held * size.max(2));
        let piece = match share {
            Share::Padded => fetched as f64,
            Share::Even => ((next - held) as u64 * block) as f64,
        };
        time += Postal::of(far, fetched).time(1.0, fetched as f64) + by_messages(near, size, piece);
        held = next;
    }
    time
}
