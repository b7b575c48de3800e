//! Recursive multiplying: in each round, f ranks that differ in one digit exchange all they hold. With f = 2 throughout,
//! recursive doubling. (Factors: Ruefenacht, Bull and Booth 2017; Jocksch et al. 2021.)
//!
//! The ranks are written in the mixed radix of the factors. Nearest first exchanges the last digit first, so what a rank
//! holds is one run; farthest first, the strongest classic on hierarchical networks, sends the most to the nearest.
//!
//! ```text
//! p = 8, rank 5      start   round 1   round 2    round 3
//! nearest first      5       4 5       4 5 6 7    0 1 2 3 4 5 6 7
//! farthest first     5       1 5       1 3 5 7    0 1 2 3 4 5 6 7
//! ```
//!
//! one round for each factor, f-1 messages in it, p-1 blocks in all · the factors multiply to p · reversed: recursive
//! halving, which keeps rank order when the nearest ranks combine first

use crate::math::{joined, prime_factors};
use crate::registry::{Cost, Make1, Parameter, Parameters};
use crate::schedule::push_span;
use crate::{InlineVec, Problem, Result, Round, Span};

const GATHER_ORDER: Parameter =
    Parameter { name: "order", values: "nearest or farthest: which exchange comes first", default: "nearest" };
const SCATTER_ORDER: Parameter =
    Parameter { name: "order", values: "farthest or nearest: which exchange comes first", default: "farthest" };
const FACTORS: Parameter =
    Parameter { name: "factors", values: "a list that multiplies to p", default: "the prime factors of p" };
pub(crate) const DOUBLING: &[Parameter] = &[GATHER_ORDER];
pub(crate) const HALVING: &[Parameter] = &[SCATTER_ORDER];
pub(crate) const MULTIPLYING: &[Parameter] = &[FACTORS, GATHER_ORDER];
pub(crate) const POWER_OF_TWO: &str = "a power of two of ranks";

/// The digits in the order in which they are exchanged: factor and stride of each.
pub(crate) type Digits = Vec<(usize, usize)>;

pub(crate) fn nearest_first(factors: &[usize]) -> Digits {
    let mut stride = 1;
    let digit = |&factor| {
        let digit = (factor, stride);
        stride *= factor;
        digit
    };
    factors.iter().map(digit).collect()
}

pub(crate) fn farthest_first(factors: &[usize]) -> Digits {
    let mut digits = nearest_first(factors);
    digits.reverse();
    digits
}

/// The rounds of member `me` of a group whose size is the product of the digits.
pub(crate) fn exchange(p: usize, me: usize, digits: &[(usize, usize)]) -> Vec<Round> {
    let mut rounds = Vec::with_capacity(digits.len());
    let mut done: Digits = Vec::new();
    for &(factor, stride) in digits {
        let mut round = Round::default();
        let digit = me / stride % factor;
        for other in (1..factor).map(|ahead| (digit + ahead) % factor) {
            let peer = me - digit * stride + other * stride;
            round.send(peer, held(p, me, &done));
            round.recv(peer, held(p, peer, &done), None);
        }
        rounds.push(round);
        done.push((factor, stride));
    }
    rounds
}

/// The blocks that differ from `rank` only in the digits exchanged so far, ascending.
fn held(p: usize, rank: usize, done: &[(usize, usize)]) -> InlineVec<Span> {
    let total: usize = done.iter().map(|digit| digit.0).product();
    let Some(&(_, last)) = done.last() else { return [Span::output(rank, 1)].into() };
    let runs_upwards = done[0].1 == 1;
    let mut spans = InlineVec::new();
    if runs_upwards {
        push_span(&mut spans, Span::output(rank / total * total, total));
    } else {
        (0..p / last).for_each(|i| push_span(&mut spans, Span::output(rank % last + i * last, 1)));
    }
    spans
}

pub(crate) fn doubling(problem: &Problem, parameters: &Parameters) -> Result<Make1> {
    doubling_in_order(problem, parameters, parameters.word("order", &["nearest", "farthest"])?)
}

/// The movement whose reverse exchanges in the order asked for.
pub(crate) fn halving(problem: &Problem, parameters: &Parameters) -> Result<Make1> {
    let reversed = match parameters.word("order", &["farthest", "nearest"])? {
        "farthest" => "nearest",
        _ => "farthest",
    };
    doubling_in_order(problem, parameters, reversed)
}

fn doubling_in_order(problem: &Problem, parameters: &Parameters, order: &str) -> Result<Make1> {
    let p = problem.ranks();
    if !p.is_power_of_two() {
        let (below, above) = (p.next_power_of_two() / 2, p.next_power_of_two());
        let remedy = format!("{below} or {above} ranks would do, and circulant serves any number");
        return Err(parameters.unservable(POWER_OF_TWO, format!("there are {p}"), remedy));
    }
    Ok(movement(p, &vec![2; p.ilog2() as usize], order))
}

pub(crate) fn multiplying(problem: &Problem, parameters: &Parameters) -> Result<Make1> {
    Ok(movement(problem.ranks(), &factors(problem, parameters)?, parameters.word("order", &["nearest", "farthest"])?))
}

fn movement(p: usize, factors: &[usize], order: &str) -> Make1 {
    let digits = if order == "nearest" { nearest_first(factors) } else { farthest_first(factors) };
    Box::new(move |me| exchange(p, me, &digits))
}

fn factors(problem: &Problem, parameters: &Parameters) -> Result<Vec<usize>> {
    let p = problem.ranks();
    let Some(factors) = parameters.list("factors", 2)? else { return Ok(prime_factors(p)) };
    let product = factors.iter().fold(1usize, |product, &factor| product.saturating_mul(factor));
    if product != p {
        let primes: Vec<_> = prime_factors(p).iter().map(ToString::to_string).collect();
        let legal = if p == 1 { "none at all".into() } else { format!("{}, or products of these", primes.join(",")) };
        return Err(parameters.wrong("factors", format!("multiplies to {product}, not to {p} ranks"), legal));
    }
    Ok(factors)
}

pub(crate) fn cost(problem: &Problem, parameters: &Parameters) -> Cost {
    let p = problem.ranks();
    let factors = factors(problem, parameters).unwrap_or_default();
    Cost::exact(factors.len(), factors.iter().map(|factor| factor - 1).sum(), p - 1)
}

pub(crate) fn orders(_: &Problem) -> Vec<String> {
    vec!["order=nearest".into(), "order=farthest".into()]
}

/// The prime factors both ways round, and merged from either end; in both orders.
pub(crate) fn multiplying_variants(problem: &Problem) -> Vec<String> {
    let primes = prime_factors(problem.ranks());
    let mut lists = vec![primes.clone(), primes.iter().rev().copied().collect()];
    if primes.len() > 1 {
        let (last, rest) = (primes[primes.len() - 1], &primes[..primes.len() - 1]);
        lists.push(vec![rest.iter().product(), last]);
        lists.extend((1..primes.len()).map(|count| grouped(&primes, count)));
    }
    lists.sort();
    lists.dedup();
    let mut variants = vec![String::new()];
    for list in lists.iter().filter(|list| !list.is_empty()) {
        for order in ["nearest", "farthest"] {
            variants.push(format!("factors={}:order={order}", joined(list, "")));
        }
    }
    variants
}

/// So many factors from primes in ascending order, as equal as comes of giving each prime, the largest first, to the smallest.
fn grouped(primes: &[usize], count: usize) -> Vec<usize> {
    let mut factors = vec![1; count];
    for prime in primes.iter().rev() {
        let smallest = factors.iter().enumerate().min_by_key(|(_, factor)| **factor).map_or(0, |(index, _)| index);
        factors[smallest] *= prime;
    }
    factors
}
