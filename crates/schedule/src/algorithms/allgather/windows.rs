//! Allgather by growing windows: Bruck with any number of ports per round, and Träff's circulant.
//! (Bruck et al. 1997; ports per round: Jocksch et al. 2021; circulant: Träff 2024.)
//!
//! Rank i holds the window of blocks i, i+1, ... and asks the ranks just past its window for theirs. Bruck multiplies
//! the width by ports + 1 each round; the circulant halves p, rounding up, and walks the halves backwards. Blocks are
//! received where they belong: nothing is rotated at the end.
//!
//! ```text
//! p = 5              start   round 1   round 2     round 3
//! rank 3, bruck      3       3 4       3 4 0 1     3 4 0 1 2     widths 1 2 4 5
//! rank 3, circulant  3       3 4       3 4 0       3 4 0 1 2     widths 1 2 3 5
//! ```
//!
//! rounds: one for each width · sends p-1 blocks · any p · reversed: the cyclic-shift and the circulant reduce_scatter

use std::ops::Range;

use crate::algorithms::reorder::{ORDER, order_of};
use crate::math::{ceil_log, joined, mixed_factors, product_reaches, worth_trying};
use crate::registry::{Cost, Make1, Parameter, Parameters};
use crate::schedule::push_span;
use crate::{InlineVec, Problem, Result, Round, Span};

pub(crate) const RADIX: Parameter =
    Parameter { name: "radix", values: "2..=p: ports + 1 in every round", default: "2" };
pub(crate) const PORTS: Parameter = Parameter {
    name: "ports",
    values: "a list, ports in each round; (ports + 1) must multiply to at least p",
    default: "radix - 1 each",
};
pub(crate) const BRUCK: &[Parameter] = &[RADIX, PORTS, ORDER];
pub(crate) const CIRCULANT: &[Parameter] = &[ORDER];

/// The widths of the window before and after each round.
pub(crate) type Widths = Vec<usize>;

/// Grows by a factor of ports + 1 each round, as far as `p`.
pub(crate) fn growing(p: usize, ports: impl IntoIterator<Item = usize>) -> Widths {
    let ports = ports.into_iter();
    let mut widths = Vec::with_capacity(1 + ports.size_hint().0);
    widths.push(1);
    for ports in ports {
        let width = widths[widths.len() - 1];
        if width >= p {
            break;
        }
        widths.push(p.min(width.saturating_mul(ports.saturating_add(1))));
    }
    widths
}

/// Grows by the same factor each round.
pub(crate) fn multiplying(p: usize, radix: usize) -> Widths {
    growing(p, std::iter::repeat_n(radix - 1, ceil_log(radix, p)))
}

/// Halves, rounding up, backwards.
pub(crate) fn halving(p: usize) -> Widths {
    let mut widths = vec![p];
    while widths[widths.len() - 1] > 1 {
        widths.push(widths[widths.len() - 1].div_ceil(2));
    }
    widths.reverse();
    widths
}

/// The rounds of member `me` of `p`, blocks at their places in `Output`.
pub(crate) fn windows(p: usize, me: usize, widths: &[usize]) -> Vec<Round> {
    let own =
        |blocks: Range<usize>, spans: &mut InlineVec<Span>| push_span(spans, Span::output(blocks.start, blocks.len()));
    windows_among(p, me, widths, |member| member, own)
}

/// The same in the ranks and positions of a larger group: `place` appends what a run of members contributes, possibly nothing. As
/// [`embed`](crate::compose::embed) would make it, at once.
pub(crate) fn windows_among(
    p: usize,
    me: usize,
    widths: &[usize],
    rank_of: impl Fn(usize) -> usize,
    place: impl Fn(Range<usize>, &mut InlineVec<Span>),
) -> Vec<Round> {
    // `count` members from `first` on, around the end.
    let window = |first: usize, count: usize| {
        let mut spans = InlineVec::new();
        place(first..p.min(first + count), &mut spans);
        if first + count > p {
            place(0..first + count - p, &mut spans);
        }
        spans
    };
    let step = |pair: &[usize]| {
        let (width, wider) = (pair[0], pair[1]);
        let mut round = Round::default();
        for distance in (width..wider).step_by(width) {
            let count = width.min(wider - distance);
            let from = (me + distance) % p;
            let (sent, received) = (window(me, count), window(from, count));
            if !sent.is_empty() {
                round.send(rank_of((me + p - distance) % p), sent);
            }
            if !received.is_empty() {
                round.recv(rank_of(from), received, None);
            }
        }
        round
    };
    widths.windows(2).map(step).collect()
}

pub(crate) fn bruck(problem: &Problem, parameters: &Parameters) -> Result<Make1> {
    movement(problem, parameters, bruck_widths(problem, parameters)?)
}

pub(crate) fn circulant(problem: &Problem, parameters: &Parameters) -> Result<Make1> {
    movement(problem, parameters, halving(problem.ranks()))
}

fn movement(problem: &Problem, parameters: &Parameters, widths: Widths) -> Result<Make1> {
    let p = problem.ranks();
    let order = order_of(problem, parameters)?;
    Ok(Box::new(move |rank| order.apply(rank, |me| windows(p, me, &widths))))
}

/// The widths that `radix` or `ports` ask for.
pub(crate) fn bruck_widths(problem: &Problem, parameters: &Parameters) -> Result<Widths> {
    let p = problem.ranks();
    if let Some(ports) = parameters.list("ports", 1)? {
        if parameters.setting("radix").is_some() {
            return Err(parameters.wrong("ports", "is given beside radix", "one of the two"));
        }
        if !product_reaches(ports.iter().map(|ports| ports.saturating_add(1)), p) {
            let product: usize = ports.iter().map(|ports| ports + 1).product();
            let fact = format!("reaches only {product} of {p} ranks, multiplying ports + 1");
            return Err(parameters.wrong(
                "ports",
                fact,
                format!(
                    "a list whose (ports+1) multiply to at least {p}, for example {}",
                    vec!["1"; ceil_log(2, p)].join(",")
                ),
            ));
        }
        return Ok(growing(p, ports));
    }
    let radix = parameters.number("radix", 2..=p.max(2))?.unwrap_or(2);
    Ok(multiplying(p, radix))
}

pub(crate) fn bruck_cost(problem: &Problem, parameters: &Parameters) -> Cost {
    cost(problem.ranks(), &bruck_widths(problem, parameters).unwrap_or_else(|_| halving(problem.ranks())))
}

pub(crate) fn circulant_cost(problem: &Problem, _: &Parameters) -> Cost {
    cost(problem.ranks(), &halving(problem.ranks()))
}

pub(crate) fn cost(p: usize, widths: &[usize]) -> Cost {
    let messages = widths.windows(2).map(|pair| (pair[1] - pair[0]).div_ceil(pair[0])).sum();
    Cost::exact(widths.len() - 1, messages, p - 1)
}

/// Every radix, and some lists of ports that no radix gives.
pub(crate) fn bruck_variants(problem: &Problem) -> Vec<String> {
    let p = problem.ranks();
    let mut variants = vec![String::new()];
    variants.extend(worth_trying(3..=p).iter().map(|radix| format!("radix={radix}")));
    for factors in mixed_factors(p) {
        let ports: Vec<usize> = factors.iter().map(|factor| factor - 1).collect();
        variants.push(format!("ports={}", joined(&ports, "")));
    }
    for ports in [[1, 2, 4, 9], [3, 1, 2, 8], [5, 1, 1, 2]] {
        if product_reaches(ports.map(|ports| ports + 1), p) {
            variants.push(format!("ports={}", joined(&ports, "")));
        }
    }
    variants
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drawing_of_the_widths_is_true() {
        assert_eq!(growing(5, [1; 3]), [1, 2, 4, 5]);
        assert_eq!(halving(5), [1, 2, 3, 5]);
        assert_eq!(growing(160, [2, 4, 10]), [1, 3, 15, 160]);
    }
}
