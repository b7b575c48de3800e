//! Bruck's alltoall with any radix, or a radix for each digit. (Bruck et al. 1997; radix: Fan and Kumar 2022; without the
//! final rotation: Träff, Rougier and Hunold 2014; unequal blocks, whose sizes travel ahead: Fan, Domke, Ba and Kumar 2024.)
//!
//! A block that has i ranks to go is written i in the radix; in the substep (digit x, value z) every block whose digit x
//! is z moves z·r^x ranks. Basic: blocks are rotated into scratch first and out of it last, as on paper. Modified: blocks
//! travel downwards, start in the input and end in the output, and nothing is rotated.
//!
//! ```text
//! p = 5, radix 2, distances to go   0 1 2 3 4
//! substep digit 0                     x   x      move 1
//! substep digit 1                       x x      move 2
//! substep digit 2                           x    move 4
//! ```
//!
//! numC substeps, numD blocks in each (the paper's formulas, with integer division) · radix p is spread-out in p-1 rounds ·
//! the substeps of a digit are independent: one round for all of them with ports=all

use super::{Post, direct::own_block};
use crate::math::{ceil_log, joined, mixed_factors, product_reaches, worth_trying};
use crate::registry::{Cost, Parameter, Parameters, Recipe};
use crate::schedule::push_span;
use crate::{InlineVec, Problem, Result, Round, Span};

pub(crate) const PARAMETERS: &[Parameter] = &[
    Parameter { name: "radix", values: "2..=p", default: "2" },
    Parameter { name: "radices", values: "a list, one for each digit, multiplied at least p", default: "radix each" },
    Parameter { name: "ports", values: "one: a round for each substep; all: a round for each digit", default: "one" },
];

/// A digit: its radix and its weight.
type Digit = (usize, usize);

fn digits(problem: &Problem, parameters: &Parameters) -> Result<Vec<Digit>> {
    let p = problem.ranks();
    let radices = match parameters.list("radices", 2)? {
        Some(_) if parameters.setting("radix").is_some() => {
            return Err(parameters.wrong("radices", "is given beside radix", "one of the two"));
        }
        Some(radices) if !product_reaches(radices.iter().copied(), p) => {
            let product: usize = radices.iter().product();
            let legal =
                format!("a list that multiplies to at least {p}, for example {}", vec!["2"; ceil_log(2, p)].join(","));
            return Err(parameters.wrong("radices", format!("multiplies to {product} only"), legal));
        }
        Some(radices) => radices,
        None => {
            let radix = parameters.number("radix", 2..=p.max(2))?.unwrap_or(2);
            vec![radix; ceil_log(radix, p)]
        }
    };
    let mut weight = 1usize;
    let mut digits = Vec::with_capacity(radices.len());
    for radix in radices {
        if weight < p {
            digits.push((radix, weight));
        }
        weight = weight.saturating_mul(radix);
    }
    Ok(digits)
}

/// The distances to go of the blocks that move in a substep, ascending.
fn moving(p: usize, (radix, weight): Digit, z: usize) -> impl Iterator<Item = usize> {
    let period = radix.saturating_mul(weight);
    (z * weight..p).step_by(period).flat_map(move |first| first..p.min(first + weight))
}

/// How many blocks move in a substep.
fn num_d(p: usize, (radix, weight): Digit, z: usize) -> usize {
    let period = radix.saturating_mul(weight);
    p / period * weight + (p % period).saturating_sub(z * weight).min(weight)
}

/// The values of a digit for which something moves.
fn values(p: usize, (radix, weight): Digit) -> std::ops::Range<usize> {
    1..radix.min((p - 1) / weight + 1)
}

pub(crate) fn basic(problem: &Problem, parameters: &Parameters) -> Result<Recipe> {
    recipe(problem, parameters, |p, me, rounds| {
        let in_scratch = |span: Span| move |s: usize, d: usize| Span { first: s * p + d, ..span };
        let mut first = own_block(me);
        for (from, to) in [(me + 1, p), (0, me)] {
            if from < to {
                first.copy(Span::input(from, to - from), Span::scratch(me * p + from, to - from));
            }
        }
        let mut all = vec![first];
        all.extend(rounds(Direction::Up, &in_scratch(Span::scratch(0, 1))));
        let mut last = Round::default();
        for s in (1..p).map(|distance| (me + p - distance) % p) {
            last.copy(Span::scratch(s * p + me, 1), Span::output(s, 1));
        }
        all.push(last);
        all
    })
}

pub(crate) fn modified(problem: &Problem, parameters: &Parameters) -> Result<Recipe> {
    recipe(problem, parameters, |p, me, rounds| {
        let mut all = vec![own_block(me)];
        all.extend(rounds(Direction::Down, &|s, d| Post::new(p, me).block(s, d)));
        all
    })
}

#[derive(Clone, Copy, PartialEq)]
enum Direction {
    Up,
    Down,
}

/// The rounds in one direction, with blocks where the function says.
type Rounds<'a> = &'a dyn Fn(Direction, &dyn Fn(usize, usize) -> Span) -> Vec<Round>;

fn recipe(
    problem: &Problem,
    parameters: &Parameters,
    finish: impl Fn(usize, usize, Rounds<'_>) -> Vec<Round> + Send + Sync + 'static,
) -> Result<Recipe> {
    let p = problem.ranks();
    let digits = digits(problem, parameters)?;
    let all_ports = parameters.word("ports", &["one", "all"])? == "all";
    let make = move |me| finish(p, me, &|direction, place| rounds(p, me, &digits, all_ports, direction, place));
    Ok(Recipe { blocks: p * p, make: Box::new(make) })
}

fn rounds(
    p: usize,
    me: usize,
    digits: &[Digit],
    all_ports: bool,
    direction: Direction,
    place: &dyn Fn(usize, usize) -> Span,
) -> Vec<Round> {
    let ahead = |from: usize, distance: usize| {
        if direction == Direction::Up { (from + distance) % p } else { (from + p - distance) % p }
    };
    let behind = |from: usize, distance: usize| {
        if direction == Direction::Up { (from + p - distance) % p } else { (from + distance) % p }
    };
    let mut rounds = Vec::new();
    for &(radix, weight) in digits {
        let mut round = Round::default();
        for z in values(p, (radix, weight)) {
            let (to, from) = (ahead(me, z * weight), behind(me, z * weight));
            let (mut sent, mut received) = (InlineVec::new(), InlineVec::new());
            for distance in moving(p, (radix, weight), z) {
                // A block with `distance` to go at its source has come the digits below this one.
                let here = behind(me, distance % weight);
                push_span(&mut sent, place(here, ahead(here, distance)));
                let there = behind(from, distance % weight);
                push_span(&mut received, place(there, ahead(there, distance)));
            }
            round.send(to, sent);
            round.recv(from, received, None);
            if !all_ports {
                rounds.push(std::mem::take(&mut round));
            }
        }
        if all_ports {
            rounds.push(round);
        }
    }
    rounds
}

/// numC substeps of numD blocks.
pub(crate) fn cost(problem: &Problem, parameters: &Parameters) -> Cost {
    let p = problem.ranks();
    let digits = digits(problem, parameters).unwrap_or_default();
    let substeps = || digits.iter().flat_map(|&digit| values(p, digit).map(move |z| (digit, z)));
    let (num_c, blocks) = (substeps().count(), substeps().map(|(digit, z)| num_d(p, digit, z)).sum());
    let all_ports = parameters.get("ports") == Some("all");
    Cost::exact(if all_ports { digits.len() } else { num_c }, num_c, blocks)
}

/// Every radix, and some lists.
pub(crate) fn variants(problem: &Problem) -> Vec<String> {
    let p = problem.ranks();
    let mut variants = vec![String::new(), "ports=all".into()];
    variants.extend(worth_trying(3..=p).iter().map(|radix| format!("radix={radix}")));
    variants.extend(mixed_factors(p).iter().map(|radices| format!("radices={}", joined(radices, ""))));
    if p > 3 {
        variants.push("radix=3:ports=all".into());
    }
    for radices in [[2, 3, 5, 7], [7, 2, 2, 3], [4, 4, 2, 4]] {
        if product_reaches(radices, p) {
            variants.push(format!("radices={}", joined(&radices, "")));
        }
    }
    variants
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn num_d_counts_the_blocks_that_move() {
        for p in 1..=100 {
            for radix in 2..=p.max(2) {
                for exponent in 0..ceil_log(radix, p) {
                    let digit = (radix, radix.pow(exponent as u32));
                    for z in values(p, digit) {
                        let moved: Vec<usize> = moving(p, digit, z).collect();
                        assert!(moved.iter().all(|i| i / digit.1 % radix == z) && moved.is_sorted());
                        assert_eq!(moved.len(), num_d(p, digit, z));
                        assert_eq!(moved.len(), (0..p).filter(|i| i / digit.1 % radix == z).count());
                    }
                }
            }
        }
    }
}
