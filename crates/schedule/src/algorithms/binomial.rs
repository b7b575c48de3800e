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
