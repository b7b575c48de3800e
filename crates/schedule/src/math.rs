//! Integer logarithms and the like: floating-point logs are wrong already for (125, 5) and (216, 6).

/// The smallest k with `base^k >= x`.
pub(crate) fn ceil_log(base: usize, x: usize) -> usize {
    debug_assert!(base >= 2);
    let (mut power, mut k) = (1usize, 0);
    while power < x {
        power = power.saturating_mul(base);
        k += 1;
    }
    k
}

/// The prime factors, ascending.
pub(crate) fn prime_factors(mut n: usize) -> Vec<usize> {
    let mut factors = Vec::new();
    let mut prime = 2;
    while prime * prime <= n {
        while n.is_multiple_of(prime) {
            factors.push(prime);
            n /= prime;
        }
        prime += 1;
    }
    if n > 1 {
        factors.push(n);
    }
    factors
}

/// Whether the product of the factors reaches `p`, without overflow.
pub(crate) fn product_reaches(factors: impl IntoIterator<Item = usize>, p: usize) -> bool {
    factors.into_iter().fold(1usize, usize::saturating_mul) >= p
}

/// The sizes of `n` things in `k` parts as equal as can be, larger ones first: the first index and length of part `i`.
pub(crate) fn part(n: usize, k: usize, i: usize) -> (usize, usize) {
    let (size, larger) = (n / k, n % k);
    (i * size + i.min(larger), size + usize::from(i < larger))
}

/// The part in which thing number `thing` lies.
pub(crate) fn part_of(n: usize, k: usize, thing: usize) -> usize {
    let (size, larger) = (n / k, n % k);
    let in_larger = larger * (size + 1);
    if thing < in_larger { thing / (size + 1) } else { larger + (thing - in_larger) / size }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_are_exact_where_floats_are_not() {
        assert_eq!((ceil_log(5, 125), ceil_log(6, 216), ceil_log(2, 1), ceil_log(3, 10)), (3, 3, 0, 3));
        assert_eq!(ceil_log(2, usize::MAX), 64);
    }

    #[test]
    fn parts_cover_everything_once() {
        for n in 0..30 {
            for k in 1..=8 {
                let mut next = 0;
                for i in 0..k {
                    let (first, len) = part(n, k, i);
                    assert_eq!(first, next);
                    assert!((first..first + len).all(|thing| part_of(n, k, thing) == i));
                    next += len;
                }
                assert_eq!(next, n);
            }
        }
        assert_eq!(prime_factors(360), [2, 2, 2, 3, 3, 5]);
    }
}
