//! The rank reordering of Jocksch et al. for unequal sizes: small messages are paired with large ones.
//!
//! Sizes 1 2 6 9 A B E (hexadecimal) on n0..n6 give the order n0 n3 n4 n1 n6 n2 n5: as long as the count is odd, the
//! smallest item is set aside until the next odd count; then the smallest is paired with the largest, the pairs become
//! the new items. An algorithm that is symmetric in the ranks runs on the new order as well as on the old.

use crate::compose::{embed, placing};
use crate::registry::{Parameter, Parameters};
use crate::schedule::push_span;
use crate::{Problem, Result, Round, Span};

pub(crate) const ORDER: Parameter =
    Parameter { name: "order", values: "ranks, or sizes: small messages paired with large ones", default: "ranks" };

/// Which rank plays which part.
pub(crate) enum Order {
    Ranks,
    Listed { rank_of: Vec<usize>, part_of: Vec<usize> },
}

/// The order that the parameters and the counts ask for.
pub(crate) fn order_of(problem: &Problem, parameters: &Parameters) -> Result<Order> {
    if parameters.word("order", &["ranks", "sizes"])? == "ranks" {
        return Ok(Order::Ranks);
    }
    let rank_of = by_sizes(&(0..problem.ranks()).map(|rank| problem.block_size(rank)).collect::<Vec<_>>());
    let mut part_of = vec![0; rank_of.len()];
    for (part, &rank) in rank_of.iter().enumerate() {
        part_of[rank] = part;
    }
    Ok(Order::Listed { rank_of, part_of })
}

impl Order {
    /// The rounds of `rank`, made by `rounds` for the part it plays. Blocks go where their ranks' blocks belong.
    pub(crate) fn apply(&self, rank: usize, rounds: impl Fn(usize) -> Vec<Round>) -> Vec<Round> {
        match self {
            Order::Ranks => rounds(rank),
            Order::Listed { rank_of, part_of } => {
                let place =
                    placing(|parts, spans| parts.for_each(|part| push_span(spans, Span::output(rank_of[part], 1))));
                embed(rounds(part_of[rank]), |part| rank_of[part], place)
            }
        }
    }
}

/// Ranks in the order in which they should take part.
pub(crate) fn by_sizes(sizes: &[usize]) -> Vec<usize> {
    let mut items: Vec<(usize, Vec<usize>)> =
        sizes.iter().enumerate().map(|(rank, &size)| (size, vec![rank])).collect();
    items.sort_by_key(|item| item.0);
    let mut aside: Option<(usize, Vec<usize>)> = None;
    while items.len() > 1 || aside.is_some() {
        if items.len() % 2 == 1 {
            match aside.take() {
                None => aside = Some(items.remove(0)),
                Some(item) => items.push(item),
            }
            items.sort_by_key(|item| item.0);
        }
        if items.len() > 1 {
            let large = items.split_off(items.len() / 2);
            for (small, large) in items.iter_mut().zip(large.into_iter().rev()) {
                small.0 += large.0;
                small.1.extend(large.1);
            }
            items.sort_by_key(|item| item.0);
        }
    }
    items.pop().map(|item| item.1).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithms::allgather::windows::growing;

    #[test]
    fn figure_6_orders_n0_n3_n4_n1_n6_n2_n5() {
        assert_eq!(by_sizes(&[1, 2, 6, 9, 0xA, 0xB, 0xE]), [0, 3, 4, 1, 6, 2, 5]);
    }

    #[test]
    fn every_rank_takes_part_once() {
        for p in 1..40 {
            let sizes: Vec<usize> = (0..p).map(|rank| rank * 7919 % 31).collect();
            let mut order = by_sizes(&sizes);
            order.sort_unstable();
            assert_eq!(order, (0..p).collect::<Vec<_>>());
        }
    }

    /// Figure 7: the longest message of each step, added up.
    fn time(sizes: &[usize], held: impl Fn(usize, usize) -> std::ops::Range<usize>) -> usize {
        let p = sizes.len();
        let longest =
            |width: usize| (0..p).map(|rank| held(rank, width).map(|block| sizes[block % p]).sum::<usize>()).max();
        growing(p, [1; 8]).windows(2).map(|pair| longest(pair[0]).unwrap_or(0)).sum()
    }

    #[test]
    fn figure_7_takes_4_by_recursive_doubling_and_5_by_cyclic_shift() {
        let doubling = |sizes: &[usize]| time(sizes, |rank, width| rank / width * width..(rank / width + 1) * width);
        let shift = |sizes: &[usize]| time(sizes, |rank, width| rank..rank + width);
        assert_eq!((doubling(&[1, 1, 0, 2]), shift(&[1, 1, 0, 2])), (4, 5));
        let (alternating, sorted) = ([0, 1, 0, 1, 0, 1, 0, 1], [0, 0, 0, 0, 1, 1, 1, 1]);
        assert_eq!((doubling(&alternating), shift(&alternating)), (4, 4));
        assert_eq!((doubling(&sorted), shift(&sorted)), (7, 7));
    }
}
