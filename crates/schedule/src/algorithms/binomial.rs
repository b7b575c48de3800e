//! The binomial tree that every rooted exchange here uses: member m's parent is m without its lowest set bit.

use std::ops::Range;

/// A child and its parent, with the members that hang on the child, itself included.
pub(crate) struct Edge {
    pub(crate) child: usize,
    pub(crate) parent: usize,
    pub(crate) subtree: Range<usize>,
}

/// The edge that joins `me` to a member `2^bit` away, if the tree has one.
pub(crate) fn edge(size: usize, me: usize, bit: usize) -> Option<Edge> {
    let reach = 1 << bit;
    let child = match me % (2 * reach) {
        0 => me + reach,
        lowest if lowest == reach => me,
        _ => return None,
    };
    (child < size).then(|| Edge { child, parent: child - reach, subtree: child..size.min(child + reach) })
}

/// The same of a tree with another radix, in which a member's parent is the member without its lowest digit that is not 0: the
/// edges that join `me` to members of another `digit`. Such a parent has up to `radix - 1` children there.
pub(crate) fn edges(size: usize, me: usize, radix: usize, digit: usize) -> Vec<Edge> {
    let reach = radix.pow(digit as u32);
    if !me.is_multiple_of(reach) {
        return Vec::new();
    }
    let edge = |child: usize, parent: usize| Edge { child, parent, subtree: child..size.min(child + reach) };
    match me / reach % radix {
        0 => (1..radix).map(|own| me + own * reach).take_while(|&child| child < size).map(|c| edge(c, me)).collect(),
        own => vec![edge(me, me - own * reach)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_radix_is_a_tree_and_two_is_binomial() {
        for size in 1..40 {
            for radix in 2..=size.max(2) {
                let digits = crate::math::ceil_log(radix, size);
                let of = |me: usize| (0..digits).flat_map(move |digit| edges(size, me, radix, digit));
                for me in 0..size {
                    let parents = of(me).filter(|edge| edge.child == me).count();
                    assert_eq!(parents, usize::from(me > 0), "{me} of {size}, radix {radix}");
                    for Edge { child, parent, subtree } in of(me) {
                        assert!(of(if me == child { parent } else { child }).any(|other| other.subtree == subtree));
                    }
                }
            }
            for (me, bit) in (0..size).flat_map(|me| (0..crate::math::ceil_log(2, size)).map(move |bit| (me, bit))) {
                let pair = |edge: Edge| (edge.child, edge.parent, edge.subtree);
                let (one, all) = (edge(size, me, bit), edges(size, me, 2, bit));
                assert_eq!(
                    one.into_iter().map(pair).collect::<Vec<_>>(),
                    all.into_iter().map(pair).collect::<Vec<_>>()
                );
            }
        }
    }
}
