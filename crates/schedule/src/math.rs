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

/// Numbers worth trying: all up to 64, then half as large again each time, and the last; so a few dozen at most.
pub(crate) fn worth_trying(numbers: std::ops::RangeInclusive<usize>) -> Vec<usize> {
    let (first, last) = (*numbers.start(), *numbers.end());
    let next = |number: &usize| {
        let next = if *number < 64 { number + 1 } else { number / 2 * 3 };
        (*number < last).then(|| next.min(last))
    };
    if first > last { vec![] } else { std::iter::successors(Some(first), next).collect() }
}

/// So many factors, as equal as can be, the larger first, that multiply to at least `p`.
pub(crate) fn balanced(p: usize, count: usize) -> Vec<usize> {
    let mut rest = p;
    let factor = |left: usize| {
        let reaches = |factor: &usize| product_reaches(std::iter::repeat_n(*factor, left), rest);
        let (mut low, mut high) = (1, rest.max(2));
        while low + 1 < high {
            let middle = low + (high - low) / 2;
            if reaches(&middle) { high = middle } else { low = middle }
        }
        rest = rest.div_ceil(high);
        high
    };
    (1..=count).rev().map(factor).collect()
}

/// [`balanced`] factors in every number of at least two that makes sense, the larger first and last; those of one radix are left out.
pub(crate) fn mixed_factors(p: usize) -> Vec<Vec<usize>> {
    let mut lists = Vec::new();
    for count in 2..=ceil_log(2, p) {
        let factors = balanced(p, count);
        if factors[0] != factors[count - 1] {
            lists.push(factors.iter().rev().copied().collect());
            lists.push(factors);
        }
    }
    lists
}

/// Numbers with a sign each and commas between.
pub(crate) fn joined(numbers: &[usize], sign: &str) -> String {
    numbers.iter().map(|number| format!("{sign}{number}")).collect::<Vec<_>>().join(",")
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
    fn what_is_worth_trying_is_bounded_and_has_both_ends() {
        assert_eq!(worth_trying(3..=7), [3, 4, 5, 6, 7]);
        let (first, last) = (3, 2);
        assert_eq!(worth_trying(first..=last), [0; 0]);
        assert_eq!(worth_trying(62..=200), [62, 63, 64, 96, 144, 200]);
        assert!(worth_trying(2..=u32::MAX as usize).len() < 120);
    }

    #[test]
    fn balanced_factors_reach_p_and_none_is_too_large() {
        assert_eq!((balanced(160, 2), balanced(160, 3), balanced(16, 2)), (vec![13, 13], vec![6, 6, 5], vec![4, 4]));
        for p in 2..2000 {
            for count in 1..=ceil_log(2, p) {
                let factors = balanced(p, count);
                assert!(factors.len() == count && factors.is_sorted_by(|a, b| a >= b), "{p}: {factors:?}");
                assert!(product_reaches(factors.iter().copied(), p) && factors[count - 1] >= 2, "{p}: {factors:?}");
                let fewer = factors.iter().enumerate().map(|(i, factor)| factor - usize::from(i + 1 == count));
                assert!(!product_reaches(fewer, p), "{p}: {factors:?}");
            }
        }
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
