//! The radix-r alltoall: messages, blocks and time (Fan and Kumar).

use super::{Postal, ceil_log};

/// Messages as the paper first counts them: `w (r - 1)`, with substeps of the last digit that carry nothing.
pub fn messages_printed(ranks: usize, radix: usize) -> usize {
    ceil_log(radix, ranks) * (radix - 1)
}

/// Messages that carry something: `w (r - 1) - floor((r^w - P) / r^(w - 1))`.
///
/// ```
/// use allhands_model::formulas::radix::messages;
/// assert_eq!([2, 3, 4, 5].map(|radix| messages(6, radix)), [3, 3, 4, 5]); // the caption of Figure 1 says 5 for radix 4
/// ```
pub fn messages(ranks: usize, radix: usize) -> usize {
    (0..ceil_log(radix, ranks)).map(|digit| substeps(ranks, radix, digit)).sum()
}

/// Substeps of a digit: as many multiples of `r^x` below P as there are, at most r - 1.
fn substeps(ranks: usize, radix: usize, digit: usize) -> usize {
    let weight = radix.saturating_pow(digit as u32);
    (ranks.div_ceil(weight) - 1).min(radix - 1)
}

/// Blocks in the substep of digit x and value z, read with real division as the formula looks: `P / r^(x+1) r^x` and so on.
pub fn blocks_printed(ranks: usize, radix: usize, digit: usize, value: usize) -> f64 {
    let (weight, next) = (radix.pow(digit as u32) as f64, radix.pow(digit as u32 + 1) as f64);
    let (level, rest) = (ranks as f64 / next * weight, ranks as f64 % next);
    let left = rest - value as f64 * weight;
    if left <= 0.0 {
        level
    } else if left / weight >= 1.0 {
        level + weight
    } else {
        level + left % weight
    }
}

/// Blocks in the substep of digit x and value z: numbers below P whose digit x is z.
pub fn blocks(ranks: usize, radix: usize, digit: usize, value: usize) -> usize {
    let weight = radix.pow(digit as u32);
    let rest = ranks % (weight * radix);
    ranks / (weight * radix) * weight + rest.saturating_sub(value * weight).min(weight)
}

/// Blocks of all substeps.
///
/// ```
/// use allhands_model::formulas::radix::all_blocks;
/// assert_eq!([2, 64].map(|radix| all_blocks(4096, radix)), [24_576, 8_064]);
/// ```
pub fn all_blocks(ranks: usize, radix: usize) -> usize {
    let of_digit = |digit| (1..=substeps(ranks, radix, digit)).map(move |value| blocks(ranks, radix, digit, value));
    (0..ceil_log(radix, ranks)).flat_map(of_digit).sum()
}

/// The cost of an alltoall of blocks of so many bytes, one message after the other.
pub fn time(network: Postal, ranks: usize, radix: usize, bytes: u64) -> f64 {
    network.time(messages(ranks, radix) as f64, all_blocks(ranks, radix) as f64 * bytes as f64)
}

/// The radix of least cost.
pub fn best(network: Postal, ranks: usize, bytes: u64) -> usize {
    let better = |&a: &usize, &b: &usize| time(network, ranks, a, bytes).total_cmp(&time(network, ranks, b, bytes));
    (2..=ranks.max(2)).min_by(better).unwrap_or(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_the_numbers_with_that_digit() {
        for ranks in 2..80 {
            for radix in 2..=ranks {
                for digit in 0..ceil_log(radix, ranks) {
                    for value in 1..radix {
                        let weight = radix.pow(digit as u32);
                        let counted = (0..ranks).filter(|number| number / weight % radix == value).count();
                        assert_eq!(blocks(ranks, radix, digit, value), counted, "{ranks} {radix} {digit} {value}");
                    }
                }
            }
        }
        assert!(blocks_printed(6, 4, 0, 1) != blocks(6, 4, 0, 1) as f64); // real division is no count
    }

    #[test]
    fn the_printed_pairs_of_the_paper() {
        let pair = |ranks, radix| (messages(ranks, radix), all_blocks(ranks, radix));
        assert_eq!(pair(512, 2), (9, 2304));
        assert_eq!((pair(512, 22), pair(512, 23)), ((43, 984), (44, 978)));
        assert_eq!(pair(2048, 46), (89, 4005));
        assert_eq!(pair(2048, 46), pair(2048, 48)); // the "best" 48 is no optimum of the algorithm
        assert_eq!((pair(4096, 64), pair(4096, 4096)), ((126, 8064), (4095, 4095)));
        assert_eq!(messages_printed(6, 4), 6);
    }
}
