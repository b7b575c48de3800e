//! Short addition chains: ascending numbers, each the sum of two before it (or of one with itself), from 1 to n.
//!
//! `n = q k + r` makes a chain for n from one for q and one through r and k: k times the first follows the second, then r is
//! added (Bergeron, Berstel, Brlek, Duboc 1989). Of all k that are n without its last bits, or 2, 3 or 4, the shortest is
//! taken: no chain is shorter for any n up to 318 (a test looks for one). The binary method is k = n/2, the factor
//! method r = 0.
//!
//! ```text
//! 23 = 4*5 + 3, through 3 and 5 = 3 + 2      1 2 3 5 | 10 20 | 23
//! ```
//!
//! O(log^3 n) or so; every chain is written without its 1.

use std::collections::HashMap;

/// A short chain for a number.
pub(super) fn shortest(n: usize) -> Vec<usize> {
    Chains::default().shortest(n)
}

/// Chains worth trying for a number: one for every k, each the shortest through that k.
pub(super) fn worth_trying(n: usize) -> Vec<Vec<usize>> {
    let mut chains = Chains::default();
    if n <= 3 {
        return vec![chains.shortest(n)];
    }
    let mut found: Vec<Vec<usize>> = splits(n).into_iter().map(|k| chains.through(k, n)).collect();
    found.sort_by_key(Vec::len);
    found
}

/// The shortest chains known so far.
#[derive(Default)]
struct Chains {
    known: HashMap<usize, Vec<usize>>,
}

impl Chains {
    fn shortest(&mut self, n: usize) -> Vec<usize> {
        if n <= 3 {
            return (2..=n).collect();
        }
        if let Some(known) = self.known.get(&n) {
            return known.clone();
        }
        let chains: Vec<Vec<usize>> = splits(n).into_iter().map(|k| self.through(k, n)).collect();
        let shortest = chains.into_iter().min_by_key(Vec::len).unwrap_or_default();
        self.known.insert(n, shortest.clone());
        shortest
    }

    /// A chain that has k in it and ends with n.
    fn through(&mut self, k: usize, n: usize) -> Vec<usize> {
        let (q, r) = (n / k, n % k);
        let mut chain = if r == 0 { self.shortest(k) } else { self.through(r, k) };
        chain.extend(self.shortest(q).into_iter().map(|factor| k * factor));
        chain.extend((r > 0).then_some(n));
        chain
    }
}

/// What to divide a number by: larger first.
fn splits(n: usize) -> Vec<usize> {
    let halves = (1..usize::BITS).map(|bits| n >> bits).take_while(|&k| k > 1);
    let mut splits: Vec<usize> = halves.chain((2..=4).filter(|&k| k < n)).collect();
    splits.sort_unstable_by(|one, other| other.cmp(one));
    splits.dedup();
    splits
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether so many more numbers, each the last one plus one before, lead to n: such chains are shortest for every n below 12,509.
    fn reaches(chain: &mut Vec<usize>, n: usize, more: usize) -> bool {
        let last = chain[chain.len() - 1];
        if last == n {
            return true;
        }
        if more == 0 || last << more < n {
            return false;
        }
        for index in (0..chain.len()).rev().filter(|&index| last + chain[index] <= n).collect::<Vec<_>>() {
            chain.push(last + chain[index]);
            if reaches(chain, n, more - 1) {
                return true;
            }
            chain.pop();
        }
        false
    }

    #[test]
    fn no_chain_is_shorter() {
        for n in 2..=318 {
            let length = shortest(n).len();
            assert!(!reaches(&mut vec![1], n, length - 1), "a chain for {n} is shorter than {:?}", shortest(n));
        }
    }

    #[test]
    fn every_number_is_a_sum_of_two_before_it() {
        for n in (2..3000).chain([65_535, 1_000_003, (1 << 32) - 1]) {
            for chain in worth_trying(n).into_iter().chain([shortest(n)]) {
                assert_eq!(chain.last(), Some(&n));
                let before: Vec<usize> = std::iter::once(1).chain(chain.clone()).collect();
                for (index, line) in before.iter().enumerate().skip(1) {
                    assert!(before[..index].iter().any(|one| before[..index].contains(&(line - one))), "{chain:?}");
                    assert!(before[index - 1] < *line, "{chain:?} ascends");
                }
            }
        }
    }
}
