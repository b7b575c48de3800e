//! The cyclic-shift allreduces: one generator for the whole family of Jocksch et al. (2021), in the paper's notation.
//!
//! `16(-3,-3)10(9)16(3,3)`: the ranks are written in the mixed radix of the factors, last digit first, and each phase acts
//! within its own digit. A number is the ports of a step: negative, a step of reduce_scatter; positive, of allgather with
//! reduction. Phase I (all negative) opens factors, phase II acts on what is left, phase III (all positive) closes the
//! factors of phase I in reverse order. So `160(12,12)` is for short messages, `160(-2,-4,-10)160(10,4,2)` for long ones and
//! `8(-1,1,1,1)`, an incomplete reduce_scatter, for those between.
//!
//! Inside one digit of F nodes, node i holds fractions i..i+c after reduce_scatter (c = 1 if complete; one fraction held
//! by all if there was none). *Line* (f, j) on node i is the reduction of fraction f over those of the nodes i..=i+j that
//! hold it. A node receives line (f, j') from node i+h and combines it with its own last line of f below h: that is line
//! (f, h+j'). Lines nobody needs for the final ones are never sent: going backwards through the steps marks the others.
//!
//! ```text
//! 11(1,1,1,1): lines of 1 2 3 4 8 11 nodes are kept (Figure 3): step 1 sends line 1; step 2 lines 1 and 2; step 3 line 4;
//!              step 4 line 3
//! ```
//!
//! Where one rank a node acts, `acting` is the paper's phases before and after.
//!
//! any p (or any number of nodes, with one rank a node acting) · commutative operations only: windows wrap around ·
//! identical on every rank only where every fraction is reduced completely in one place

use std::collections::BTreeSet;
use std::ops::Range;

use super::acting::{self, Among, VectorHome};
use crate::algorithms::allgather::windows::{growing, windows};
use crate::algorithms::node::{LOCAL, REDUCTION, either_way, reduction, shared, uses_memory};
use crate::compose::{embed, reverse};
use crate::math::{ceil_log, joined, mixed_factors, product_reaches};
use crate::registry::{Cost, Parameter, Parameters, Recipe};
use crate::schedule::push_span;
use crate::setting::{self, Factor, Setting};
use crate::{Combine, InlineVec, Problem, Result, Round, Space, Span};

pub(crate) const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "phases",
        values: "factors with ports, as in 16(-3,-3)10(9)16(3,3): negative, steps of reduce_scatter",
        default: "p(1,...,1); with local=shared, as many as there are nodes",
    },
    LOCAL,
    REDUCTION,
];

/// A factor with its steps: reduce_scatter with these ports, what is nested, allgather with those ports.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Phase {
    factor: usize,
    /// The factors of all phases before: how far apart neighbours in this digit are.
    stride: usize,
    down: Vec<usize>,
    up: Vec<usize>,
}

/// Phase I with phase III, outermost first, and phase II.
#[derive(Clone, Debug)]
struct Family {
    outer: Vec<Phase>,
    inner: Vec<Phase>,
}

impl Family {
    fn nodes(&self) -> usize {
        self.outer.iter().chain(&self.inner).map(|phase| phase.factor).product()
    }

    fn scatters(&self) -> bool {
        self.outer.iter().chain(&self.inner).any(|phase| !phase.down.is_empty())
    }

    /// Into how many blocks the vector is cut: fractions as in the paper, or none.
    fn blocks(&self) -> usize {
        if self.scatters() { self.nodes() } else { 1 }
    }
}

impl Phase {
    /// The widths of what a node holds during reduce_scatter, in fractions, ascending.
    fn widths_down(&self) -> Vec<usize> {
        let mut widths = vec![self.factor];
        for ports in &self.down {
            let width = widths[widths.len() - 1];
            if width > 1 {
                widths.push(width.div_ceil(ports + 1));
            }
        }
        widths.reverse();
        widths
    }

    /// How many fractions a node is left with.
    fn held(&self) -> usize {
        self.widths_down()[0]
    }

    fn complete(&self) -> bool {
        !self.down.is_empty() && self.held() == 1
    }

    fn lines(&self) -> ShiftLines {
        ShiftLines::new(self.factor, (!self.down.is_empty()).then(|| self.held()), &self.up)
    }
}

/// Of how many nodes the lines are that an allreduce of short vectors with so many ports in every step keeps: an addition chain.
pub(super) fn short_lines(nodes: usize, ports: usize) -> Vec<usize> {
    let lines = ShiftLines::new(nodes, None, &vec![ports; ceil_log(ports + 1, nodes)]);
    let mut kept: Vec<usize> = lines.steps.iter().flatten().flat_map(|port| &port.1).map(|line| line.1 + 1).collect();
    kept.sort_unstable();
    kept.dedup();
    kept
}

/// A line: fraction and reach, both relative to the node.
type ShiftLine = (usize, usize);

/// Which lines a node receives in each step, on each port, after cancellation.
struct ShiftLines {
    nodes: usize,
    /// Fractions a node holds; `None`: one fraction that everybody holds.
    held: Option<usize>,
    /// For each step, for each port: the distance of the sender and the lines, as the receiver numbers them.
    steps: Vec<Vec<(usize, Vec<ShiftLine>)>>,
}

impl ShiftLines {
    fn new(nodes: usize, held: Option<usize>, ports: &[usize]) -> ShiftLines {
        let mut lines = ShiftLines { nodes, held, steps: Vec::new() };
        let widths = growing(nodes, ports.iter().copied());
        let mut needed: BTreeSet<ShiftLine> = (0..lines.fractions()).map(|f| lines.last(f)).collect();
        for width in widths[..widths.len() - 1].iter().rev() {
            let mut received: BTreeSet<ShiftLine> = BTreeSet::new();
            let mut before: BTreeSet<ShiftLine> = BTreeSet::new();
            let mut open: Vec<ShiftLine> = needed.into_iter().collect();
            while let Some((f, j)) = open.pop() {
                if j < *width {
                    before.insert((f, j));
                } else if received.insert((f, j)) {
                    let distance = j / width * width;
                    before.insert(lines.at_sender((f, j), distance));
                    open.extend(lines.own(f, distance));
                }
            }
            let mut ports: Vec<(usize, Vec<ShiftLine>)> = Vec::new();
            let mut by_distance: Vec<(usize, ShiftLine)> =
                received.into_iter().map(|line| (line.1 / width * width, line)).collect();
            by_distance.sort_unstable();
            for (distance, line) in by_distance {
                match ports.last_mut() {
                    Some(port) if port.0 == distance => port.1.push(line),
                    _ => ports.push((distance, vec![line])),
                }
            }
            lines.steps.push(ports);
            needed = before;
        }
        lines.steps.reverse();
        lines
    }

    fn fractions(&self) -> usize {
        self.held.map_or(1, |_| self.nodes)
    }

    /// The complete line of a fraction.
    fn last(&self, f: usize) -> ShiftLine {
        self.own(f, self.nodes).expect("somebody holds every fraction")
    }

    /// The longest line of a fraction that only involves nodes nearer than `distance`.
    fn own(&self, f: usize, distance: usize) -> Option<ShiftLine> {
        let nearest_below = distance.checked_sub(1)?;
        let Some(held) = self.held else { return Some((f, nearest_below)) };
        // The nodes that hold f: f-c+1..=f, around zero.
        let wrapped = (f + 1 < held).then(|| self.nodes + f + 1 - held);
        match wrapped {
            Some(first) if nearest_below >= first => Some((f, nearest_below)),
            _ => (nearest_below >= (f + 1).saturating_sub(held)).then_some((f, nearest_below.min(f))),
        }
    }

    /// The same line as the node at a distance numbers it.
    fn at_sender(&self, (f, j): ShiftLine, distance: usize) -> ShiftLine {
        let f = if self.held.is_some() { (f + self.nodes - distance % self.nodes) % self.nodes } else { f };
        (f, j - distance)
    }
}

pub(crate) fn cyclic_shift(problem: &Problem, parameters: &Parameters) -> Result<Recipe> {
    let topology = problem.topology.clone();
    let family = family(problem, parameters)?;
    let blocks = family.blocks();
    let nodes = family.nodes();
    let (shared, reduction) = (shared(parameters)?, reduction(parameters)?);
    let shared = if shared { Some(reduction) } else { None };
    let make = move |rank| {
        let rounds = |places: (VectorHome, VectorHome), node: usize, rank_of: &dyn Fn(usize) -> usize| {
            among(&family, places, node, rank_of)
        };
        Among { nodes, blocks, rounds: &rounds }.all(&topology, shared, rank)
    };
    Ok(Recipe { blocks, make: Box::new(make) })
}

/// A rank on its way through the phases.
struct Walker<'a> {
    blocks: usize,
    node: usize,
    rank_of: &'a dyn Fn(usize) -> usize,
    next_line: usize,
    rounds: Vec<Round>,
}

fn among(
    family: &Family,
    (from, to): (VectorHome, VectorHome),
    node: usize,
    rank_of: &dyn Fn(usize) -> usize,
) -> Vec<Round> {
    let mut walker = Walker { blocks: family.blocks(), node, rank_of, next_line: 1, rounds: vec![Round::default()] };
    let whole = std::iter::once(0..family.blocks()).collect();
    walker.walk(&family.outer, &family.inner, &whole, from, to);
    walker.rounds.retain(|round| !round.is_empty());
    walker.rounds
}

/// The parts of the vector that are worked on, each cut into fractions in the same way.
type Parts = Vec<Range<usize>>;

impl Walker<'_> {
    /// Through phase I, phase II and phase III, from one place to another.
    fn walk(&mut self, outer: &[Phase], inner: &[Phase], parts: &Parts, from: VectorHome, to: VectorHome) {
        if let Some((phase, outer)) = outer.split_first() {
            return self.phase(phase, (outer, inner), parts, from, to);
        }
        match inner {
            [] => self.copy(parts, from, to),
            [phase] => self.phase(phase, (&[], &[]), parts, from, to),
            [phase, inner @ ..] => {
                let between = self.new_line(1);
                self.phase(phase, (&[], &[]), parts, from, between);
                self.walk(&[], inner, parts, between, to);
            }
        }
    }

    /// One factor: reduce_scatter, what is nested on the fractions held, allgather with reduction.
    fn phase(&mut self, phase: &Phase, nested: (&[Phase], &[Phase]), parts: &Parts, from: VectorHome, to: VectorHome) {
        let (rank_of, node) = (self.rank_of, self.node);
        let digit = node / phase.stride % phase.factor;
        let peer = |member: usize| rank_of(node - digit * phase.stride + member % phase.factor * phase.stride);
        let fraction = |f: usize| -> Parts {
            if phase.down.is_empty() {
                return parts.clone();
            }
            let f = (digit + f) % phase.factor;
            let cut = |part: &Range<usize>| {
                let size = part.len() / phase.factor;
                part.start + f * size..part.start + (f + 1) * size
            };
            parts.iter().map(cut).collect()
        };
        let mut source = from;
        if !phase.down.is_empty() {
            // With one fraction left there is nothing to reduce with it on the way back: it can be in place already.
            source = if phase.complete() { to } else { self.new_line(1) };
            let partial = if nested == (&[], &[]) { source } else { self.new_line(1) };
            self.scatter(phase, digit, from, partial, &fraction, &peer);
            let kept: Parts = (0..phase.held()).flat_map(fraction).collect();
            self.walk(nested.0, nested.1, &kept, partial, source);
        }
        self.gather(&phase.lines(), digit, source, to, &fraction, &peer);
    }

    /// Reduce_scatter: the window movement, reversed.
    fn scatter(
        &mut self,
        phase: &Phase,
        digit: usize,
        from: VectorHome,
        into: VectorHome,
        fraction: &dyn Fn(usize) -> Parts,
        peer: &dyn Fn(usize) -> usize,
    ) {
        let widths = phase.widths_down();
        let movement = windows(phase.factor, digit, &widths);
        let kept: Vec<Span> = (0..phase.held()).map(|f| Span::output((digit + f) % phase.factor, 1)).collect();
        let relative = |f: usize| (f + phase.factor - digit) % phase.factor;
        let place = |span: Span, spans: &mut InlineVec<Span>| {
            let place = if span.space == Space::Input { from } else { into };
            (span.first..span.end()).for_each(|f| self.push(&fraction(relative(f)), place, spans));
        };
        let rounds = embed(reverse(movement, digit, &kept), peer, place);
        self.rounds.extend(rounds);
    }

    /// Allgather with reduction, line by line.
    fn gather(
        &mut self,
        lines: &ShiftLines,
        digit: usize,
        from: VectorHome,
        to: VectorHome,
        fraction: &dyn Fn(usize) -> Parts,
        peer: &dyn Fn(usize) -> usize,
    ) {
        let first = self.new_line(lines.nodes);
        let VectorHome::Line(first) = first else { unreachable!("new lines are lines") };
        let place_of = |(f, j): ShiftLine| match j {
            0 => from,
            j if (f, j) == lines.last(f) => to,
            j => VectorHome::Line(first + j),
        };
        let spans_of = |walker: &Self, line: ShiftLine| {
            let mut spans = InlineVec::new();
            walker.push(&fraction(line.0), place_of(line), &mut spans);
            spans
        };
        for f in (0..lines.fractions()).filter(|&f| lines.last(f).1 == 0 && from != to) {
            self.copy(&fraction(f), from, to);
        }
        for ports in &lines.steps {
            let mut round = Round::default();
            for (distance, received) in ports {
                let (mut incoming, mut outgoing) = (InlineVec::new(), InlineVec::new());
                for &line in received {
                    spans_of(self, line).into_iter().for_each(|span| push_span(&mut incoming, span));
                    spans_of(self, lines.at_sender(line, *distance))
                        .into_iter()
                        .for_each(|span| push_span(&mut outgoing, span));
                    if let Some(own) = lines.own(line.0, *distance) {
                        for (from, into) in spans_of(self, own).into_iter().zip(spans_of(self, line)) {
                            round.combine(from, into, Combine::Before);
                        }
                    }
                }
                round.recv(peer(digit + distance), incoming, None);
                round.send(peer(digit + lines.nodes - distance), outgoing);
            }
            self.rounds.push(round);
        }
    }

    fn copy(&mut self, parts: &Parts, from: VectorHome, to: VectorHome) {
        if from == to {
            return;
        }
        let (mut read, mut written) = (InlineVec::new(), InlineVec::new());
        self.push(parts, from, &mut read);
        self.push(parts, to, &mut written);
        let last = self.rounds.last_mut().expect("there is a first round");
        read.into_iter().zip(written).for_each(|(from, to)| last.copy(from, to));
    }

    /// Appends the spans that some parts of the vector have in a place.
    fn push(&self, parts: &Parts, place: VectorHome, spans: &mut InlineVec<Span>) {
        for part in parts {
            push_span(spans, place.span(self.blocks, part.start, part.len()));
        }
    }

    fn new_line(&mut self, lines: usize) -> VectorHome {
        self.next_line += lines;
        VectorHome::Line(self.next_line - lines)
    }
}

/// Reads the phases and checks that they cover the ranks, or the nodes.
fn family(problem: &Problem, parameters: &Parameters) -> Result<Family> {
    let (p, nodes) = (problem.ranks(), problem.topology.regions(1));
    let Some(setting) = parameters.setting("phases") else {
        let factor = if uses_memory(parameters) { nodes } else { p };
        let up = vec![1; ceil_log(2, factor)];
        let inner = if factor == 1 { vec![] } else { vec![Phase { factor, stride: 1, down: vec![], up }] };
        return Ok(Family { outer: vec![], inner });
    };
    let legal = || {
        let ports = vec!["1"; ceil_log(2, p.max(2))].join(",");
        let for_nodes = if nodes > 1 && nodes < p { format!(" (or {nodes} nodes)") } else { String::new() };
        format!(
            "factors of {p} ranks{for_nodes} with enough ports, for example {p}({ports}) or {p}(-{})",
            ports.replace(',', ",-") + "," + &ports
        )
    };
    let wrong = |fact: String| parameters.wrong("phases", fact, legal());
    let family = match setting {
        Setting::Factors(factors) => nested(factors),
        // The form is wrong somewhere; this says where.
        other => setting::factors(&other.to_string()).and_then(|factors| nested(&factors)),
    };
    let family = family.map_err(wrong)?;
    if family.nodes() != p && family.nodes() != nodes {
        let fact = format!("has factors that multiply to {}", family.nodes());
        return Err(wrong(fact));
    }
    if uses_memory(parameters) && family.nodes() != nodes {
        let fact = format!("has nothing to do where all {p} ranks act");
        return Err(parameters.wrong("local", fact, format!("messages, or phases for {nodes} nodes")));
    }
    Ok(family)
}

/// Factors that open and close each other.
fn nested(read: &[Factor]) -> std::result::Result<Family, String> {
    setting::legal(read)?;
    for Factor { factor, ports } in read {
        if ports.windows(2).any(|pair| pair[0] > 0 && pair[1] < 0) {
            return Err(format!("has a reduce_scatter step after an allgather step in factor {factor}"));
        }
    }
    let opened = read.iter().take_while(|factor| factor.ports.iter().all(|&port| port < 0)).count();
    let closed =
        read.len().checked_sub(opened).filter(|&closed| closed >= opened).ok_or("opens more factors than it closes")?;
    let mut stride = 1;
    let mut phase = |factor: usize, ports: &[isize], up: &[isize]| {
        let down: Vec<usize> = ports.iter().filter(|&&port| port < 0).map(|port| port.unsigned_abs()).collect();
        let up: Vec<usize> = up.iter().filter(|&&port| port > 0).map(|port| port.unsigned_abs()).collect();
        if !product_reaches(up.iter().map(|ports| ports + 1), factor) {
            let product: usize = up.iter().map(|ports| ports + 1).product();
            return Err(format!("has too few ports for factor {factor}: ports + 1 multiply to {product} only"));
        }
        let phase = Phase { factor, stride, down, up };
        stride = stride.saturating_mul(factor);
        Ok(phase)
    };
    let mut outer = Vec::with_capacity(opened);
    for (index, Factor { factor, ports }) in read[..opened].iter().enumerate() {
        let Factor { factor: closing, ports: up } = &read[read.len() - 1 - index];
        if closing != factor || up.iter().any(|&port| port < 0) {
            return Err(format!(
                "opens factor {factor} and does not close it with allgather steps, in reverse order, at the end"
            ));
        }
        outer.push(phase(*factor, ports, up)?);
    }
    let mut inner = Vec::with_capacity(closed - opened);
    for Factor { factor, ports } in &read[opened..closed] {
        inner.push(phase(*factor, ports, ports)?);
    }
    let family = Family { outer, inner };
    let product =
        family.outer.iter().chain(&family.inner).try_fold(1usize, |product, phase| product.checked_mul(phase.factor));
    product
        .filter(|&product| product <= u32::MAX as usize)
        .map(|_| family)
        .ok_or_else(|| "has factors too large to multiply".into())
}

/// Steps, messages and blocks are those of the lines left after cancellation; exact where every rank is a node.
pub(crate) fn cost(problem: &Problem, parameters: &Parameters) -> Cost {
    let Ok(family) = family(problem, parameters) else { return Cost::NOTHING };
    let blocks = family.blocks();
    let mut cost = Cost::NOTHING;
    let mut vector = blocks;
    let of_phase = |phase: &Phase, vector: usize| {
        let fraction = if phase.down.is_empty() { vector } else { vector / phase.factor };
        let down = phase.widths_down().windows(2).fold(Cost::NOTHING, |cost, pair| {
            cost.then(Cost::exact(1, (pair[1] - pair[0]).div_ceil(pair[0]), (pair[1] - pair[0]) * fraction))
        });
        phase.lines().steps.iter().fold(down, |cost, ports| {
            cost.then(Cost::exact(1, ports.len(), ports.iter().map(|port| port.1.len()).sum::<usize>() * fraction))
        })
    };
    for phase in &family.outer {
        cost = cost.then(of_phase(phase, vector));
        vector = vector / phase.factor * phase.held();
    }
    for phase in &family.inner {
        cost = cost.then(of_phase(phase, vector));
    }
    acting::cost(problem, family.nodes(), blocks, uses_memory(parameters), cost)
}

/// Identical bits where every fraction is reduced completely in one place.
pub(crate) fn identical(problem: &Problem, parameters: &Parameters) -> bool {
    family(problem, parameters).is_ok_and(|family| family.outer.iter().chain(&family.inner).all(Phase::complete))
}

/// Short, medium at every depth, long; one and more ports, in every step or in some; two factors; one rank a node.
pub(crate) fn variants(problem: &Problem) -> Vec<String> {
    let p = problem.ranks();
    let list = joined;
    let ports = |factor: usize, radix: usize| vec![radix - 1; ceil_log(radix, factor)];
    let mut variants = vec![String::new()];
    if p == 1 {
        return either_way(variants);
    }
    for radix in (2..=p.min(5)).chain((p > 5 && p <= MOST_CUT).then_some(p)) {
        let up = ports(p, radix);
        if p > MOST_CUT {
            variants.push(format!("{p}({})", list(&up, "")));
            continue;
        }
        for depth in 0..=up.len() {
            let down: Vec<usize> = up.iter().rev().take(depth).copied().collect();
            let down = if down.is_empty() { String::new() } else { list(&down, "-") + "," };
            variants.push(format!("{p}({down}{})", list(&up, "")));
        }
        variants.push(format!("{p}({}){p}({})", list(&up, "-"), list(&up, "")));
    }
    variants.extend(short_and_long(p));
    for factor in divisors(p).into_iter().filter(|_| p <= MOST_CUT) {
        let (one, other) = (ports(factor, 2), ports(p / factor, 3.min(p / factor)));
        let (up, nested) = (list(&one, ""), list(&other, ""));
        variants.push(format!("{factor}({up}){}({nested})", p / factor));
        variants.push(format!("{factor}({}){}({nested}){factor}({up})", list(&one, "-"), p / factor));
        variants.push(format!("{factor}(-1){}({nested}){factor}({up})", p / factor));
        variants.push(format!(
            "{factor}({}){q}({}){q}({nested}){factor}({up})",
            list(&one, "-"),
            list(&other, "-"),
            q = p / factor
        ));
    }
    let nodes = problem.topology.regions(1);
    if nodes > 1 && nodes < p {
        let up = list(&ports(nodes, 2), "");
        let mut on_nodes = vec![format!("{nodes}({up})")];
        if nodes <= MOST_CUT {
            on_nodes.push(format!("{nodes}({}){nodes}({up})", list(&ports(nodes, 2), "-")));
            variants.push(format!("{nodes}(-1,{up}):local=shared"));
        }
        variants.extend(on_nodes.iter().map(|phases| format!("{phases}:local=shared:reduction=chunks")));
        variants.extend(either_way(on_nodes));
        variants.extend(either_way(short_and_long(nodes)));
    }
    variants.push("local=shared".into());
    variants
}

/// A vector cut for more nodes than this has more lines than are worth trying.
const MOST_CUT: usize = 512;

/// Ports that no radix gives: an allgather with reduction, and a reduce_scatter before an allgather.
fn short_and_long(nodes: usize) -> Vec<String> {
    let mut phases = Vec::new();
    for factors in mixed_factors(nodes) {
        let up: Vec<usize> = factors.iter().map(|factor| factor - 1).collect();
        let down: Vec<usize> = up.iter().rev().copied().collect();
        phases.push(format!("{nodes}({})", joined(&up, "")));
        if nodes <= MOST_CUT {
            phases.push(format!("{nodes}({}){nodes}({})", joined(&down, "-"), joined(&up, "")));
        }
    }
    phases
}

/// The divisors of p between 1 and itself; of many, those nearest to its root.
pub(super) fn divisors(p: usize) -> Vec<usize> {
    let below = (2..=p.isqrt()).rev().filter(|&divisor| p.is_multiple_of(divisor)).take(MOST_DIVISORS);
    let mut divisors: Vec<usize> = below.flat_map(|divisor| [divisor, p / divisor]).collect();
    divisors.sort_unstable();
    divisors.dedup();
    divisors
}
const MOST_DIVISORS: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figure_3_keeps_the_lines_of_1_2_3_4_8_and_11_nodes() {
        assert_eq!(short_lines(11, 1), [2, 3, 4, 8, 11]);
    }

    #[test]
    fn short_volume_is_the_length_of_the_binary_addition_chain() {
        for p in 2..1000usize {
            let lines = ShiftLines::new(p, None, &vec![1; ceil_log(2, p)]);
            let sent: usize = lines.steps.iter().flatten().map(|port| port.1.len()).sum();
            assert_eq!(sent, p.ilog2() as usize + p.count_ones() as usize - 1, "p = {p}");
        }
    }

    #[test]
    fn bad_phases_say_what_is_wrong() {
        for (text, fact) in [
            ("8", "without ports"),
            ("8(1,1", "not closed"),
            ("8(1,1)", "too few ports"),
            ("8(1,-1,1)", "after an allgather step"),
            ("8(-1,-1,-1)", "opens more"),
            ("2(-1)4(1,1)4(1,1)", "does not close"),
            ("8(9)", "not numbers from 1 to 7"),
            ("x(1)", "factor of at least 2"),
            ("8()", "not numbers"),
        ] {
            let error = setting::factors(text).and_then(|factors| nested(&factors)).unwrap_err();
            assert!(error.contains(fact), "{text}: {error}");
        }
    }
}
