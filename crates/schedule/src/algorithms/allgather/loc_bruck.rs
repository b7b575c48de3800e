//! Locality-aware Bruck: local allgather; then each local rank fetches a different window of regions; local allgather of
//! what was fetched; and so on. (Bienz, Gautam and Kharel 2022, corrected and generalised.)
//!
//! A region g holds the window of regions g..g+c. In a far round local rank l asks region g + a·c for its window, where
//! a = l with the paper's fan (local rank 0 idle) and a = l+1 with the full fan; then the region shares what came. Ranks
//! that fetched nothing contribute nothing. Inside a region the same happens between its sub-regions, level by level.
//!
//! ```text
//! 4x4, rank 5          near               far: from 9          near: 4 5 6 7 share what they fetched
//! holds       5        4 5 6 7            4-7, 8-11            0-15
//! ```
//!
//! ceil(log_q R) far rounds (full fan: ceil(log_{q+1} R), the lower bound), one far message a rank each · any shape:
//! with uneven regions, the smallest one's size is the fan · reversed: a reduce_scatter no paper has written down · with
//! `local=shared` a region shares by one meeting, and only far messages are left

use std::ops::Range;

use super::windows::{growing, windows_among};
use crate::algorithms::node::{LOCAL, Movement, Region, Step, either_way, shared, uses_memory};
use crate::algorithms::seats::{output_of, push_output_of};
use crate::math::ceil_log;
use crate::registry::{Cost, Parameter, Parameters};
use crate::{InlineVec, Problem, Result, Round, Span, Topology};

pub(crate) const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "fan",
        values: "paper: local rank 0 fetches nothing; full: every rank does; balanced: full, with windows as small as the rounds allow",
        default: "paper",
    },
    Parameter { name: "levels", values: "a list of levels to be aware of, outermost first", default: "all" },
    LOCAL,
];

#[derive(Clone, Copy, PartialEq)]
enum Fan {
    Paper,
    Full,
    Balanced,
}

/// How one group of regions trades: how fast windows grow, and which multiple of the window a local rank fetches.
#[derive(Clone, Copy)]
struct Growth {
    factor: usize,
    idle: usize,
}

impl Growth {
    /// For `regions` of at least `q` ranks.
    fn new(fan: Fan, q: usize, regions: usize) -> Growth {
        match fan {
            Fan::Paper if q >= 2 => Growth { factor: q, idle: 1 },
            Fan::Paper | Fan::Full => Growth { factor: q + 1, idle: 0 },
            Fan::Balanced => {
                let rounds = ceil_log(q + 1, regions);
                let factor = (2..=q + 1).find(|&factor| ceil_log(factor, regions) <= rounds);
                Growth { factor: factor.unwrap_or(q + 1), idle: 0 }
            }
        }
    }

    /// The multiple of the window that local rank `l` fetches, if any.
    fn multiple(self, l: usize) -> Option<usize> {
        let multiple = (l + 1).checked_sub(self.idle)?;
        (1..self.factor).contains(&multiple).then_some(multiple)
    }

    /// The widths of the windows, in regions.
    fn widths(self, regions: usize) -> Vec<usize> {
        growing(regions, std::iter::repeat_n(self.factor - 1, ceil_log(self.factor, regions)))
    }
}

pub(crate) fn movement(problem: &Problem, parameters: &Parameters) -> Result<Movement> {
    let plan = Plan { topology: problem.topology.clone(), fan: fan(parameters)?, levels: levels(problem, parameters)? };
    let seats = 0..plan.topology.ranks();
    if shared(parameters)? {
        return Ok(Movement::Shared(Box::new(move |rank| plan.share_through_memory(rank))));
    }
    Ok(Movement::Messages(Box::new(move |rank| {
        plan.share(&plan.levels, &seats, plan.topology.seat_of(rank), &|seats, spans| {
            push_output_of(&plan.topology, seats, spans)
        })
    })))
}

fn fan(parameters: &Parameters) -> Result<Fan> {
    Ok(match parameters.word("fan", &["paper", "full", "balanced"])? {
        "paper" => Fan::Paper,
        "full" => Fan::Full,
        _ => Fan::Balanced,
    })
}

fn levels(problem: &Problem, parameters: &Parameters) -> Result<Vec<usize>> {
    let depth = problem.topology.depth();
    let Some(levels) = parameters.list("levels", 1)? else { return Ok((1..=depth).collect()) };
    if levels.iter().any(|&level| level > depth) || levels.windows(2).any(|pair| pair[0] >= pair[1]) {
        return Err(parameters.wrong(
            "levels",
            "is not an ascending list of levels that exist",
            format!("levels from 1..={depth}"),
        ));
    }
    Ok(levels)
}

struct Plan {
    topology: Topology,
    fan: Fan,
    levels: Vec<usize>,
}

/// Appends the blocks that the ranks on a run of seats contribute.
type Pieces<'a> = &'a dyn Fn(Range<usize>, &mut InlineVec<Span>);

impl Plan {
    /// The rounds in which the ranks on `seats` share their pieces, aware of `levels`, as `seat` sees them.
    fn share(&self, levels: &[usize], seats: &Range<usize>, seat: usize, pieces: Pieces<'_>) -> Vec<Round> {
        let Some((&level, inner)) = levels.split_first() else { return self.share_flat(seats, seat, pieces) };
        let among = self.among(level, seats, seat);
        let mut rounds = self.share(inner, &among.home, seat, pieces);
        let widths = among.widths();
        // At once, and for one more: a million ranks' rounds would be moved again and again.
        rounds.reserve_exact(widths.len() * (1 + rounds.len()) + 1);
        for (c, wider) in widths {
            rounds.push(among.far(c, wider, pieces));
            let fetched = |seats: Range<usize>, spans: &mut InlineVec<Span>| {
                seats.for_each(|seat| among.push_fetched(seat - among.home.start, (c, wider), pieces, spans));
            };
            rounds.extend(self.share(inner, &among.home, seat, &fetched));
        }
        rounds
    }

    /// The same for everybody, with the outermost regions sharing through their memory: levels inside do not matter.
    fn share_through_memory(&self, rank: usize) -> (Region, Vec<Step>) {
        let level = self.levels.first().copied().unwrap_or(1);
        let pieces: Pieces<'_> = &|seats, spans| push_output_of(&self.topology, seats, spans);
        let among = self.among(level, &(0..self.topology.ranks()), self.topology.seat_of(rank));
        let home = output_of(&self.topology, std::slice::from_ref(&among.home));
        let mut steps = vec![Step::Share { all: home, mine: [Span::output(rank, 1)].into() }];
        for (c, wider) in among.widths() {
            let (mut all, mut mine) = (InlineVec::new(), InlineVec::new());
            among.push_window(among.g + c, wider - c, pieces, &mut all);
            among.push_fetched(among.l, (c, wider), pieces, &mut mine);
            steps.extend([Step::Talk(among.far(c, wider, pieces)), Step::Share { all, mine }]);
        }
        (Region::new(&self.topology, level, rank), steps)
    }

    /// The regions of a level that lie on `seats`, as `seat` sees them.
    fn among(&self, level: usize, seats: &Range<usize>, seat: usize) -> Among<'_> {
        let topology = &self.topology;
        let first = topology.region_of_seat(level, seats.start);
        let regions = topology.region_of_seat(level, seats.end - 1) + 1 - first;
        let q = match seats.len() == topology.ranks() {
            true => topology.region_sizes(level).0,
            false => (0..regions).map(|index| topology.region(level, first + index).len()).min().unwrap_or(1),
        };
        let g = topology.region_of_seat(level, seat) - first;
        let home = topology.region(level, first + g);
        let l = seat - home.start;
        Among { topology, level, first, regions, q, growth: Growth::new(self.fan, q, regions), g, home, l }
    }

    /// Plain Bruck.
    fn share_flat(&self, seats: &Range<usize>, seat: usize, pieces: Pieces<'_>) -> Vec<Round> {
        let (size, start) = (seats.len(), seats.start);
        let widths = growing(size, std::iter::repeat_n(1, ceil_log(2, size)));
        let rank_of = |member| self.topology.rank_at(start + member);
        windows_among(size, seat - start, &widths, rank_of, |members, spans| {
            pieces(start + members.start..start + members.end, spans)
        })
    }
}

/// Regions that trade windows, as local rank `l` of region `g` sees them.
struct Among<'a> {
    topology: &'a Topology,
    level: usize,
    first: usize,
    regions: usize,
    q: usize,
    growth: Growth,
    g: usize,
    home: Range<usize>,
    l: usize,
}

impl Among<'_> {
    /// How many regions a window has before and after each far round.
    fn widths(&self) -> Vec<(usize, usize)> {
        self.growth.widths(self.regions).windows(2).map(|pair| (pair[0], pair[1])).collect()
    }

    fn region(&self, index: usize) -> Range<usize> {
        self.topology.region(self.level, self.first + index)
    }

    /// Appends the window of `count` regions from region `start` on, around the end.
    fn push_window(&self, start: usize, count: usize, pieces: Pieces<'_>, spans: &mut InlineVec<Span>) {
        let start = start % self.regions;
        let end = start + count;
        for (from, to) in [(start, end.min(self.regions)), (0, end.max(self.regions) - self.regions)] {
            if from < to {
                pieces(self.region(from).start..self.region(to - 1).end, spans);
            }
        }
    }

    /// What local rank `l` fetches as the window grows: distance and size, in regions.
    fn fetched(&self, l: usize, (c, wider): (usize, usize)) -> Option<(usize, usize)> {
        let distance = self.growth.multiple(l).filter(|_| l < self.q)? * c;
        (distance < wider).then(|| (distance, c.min(wider - distance)))
    }

    fn push_fetched(&self, l: usize, growing: (usize, usize), pieces: Pieces<'_>, spans: &mut InlineVec<Span>) {
        if let Some((distance, count)) = self.fetched(l, growing) {
            self.push_window(self.g + distance, count, pieces, spans);
        }
    }

    fn far(&self, c: usize, wider: usize, pieces: Pieces<'_>) -> Round {
        let mut far = Round::default();
        if let Some((distance, count)) = self.fetched(self.l, (c, wider)) {
            let peer = |index: usize| self.topology.rank_at(self.region(index % self.regions).start + self.l);
            let (mut sent, mut received) = (InlineVec::new(), InlineVec::new());
            self.push_window(self.g, count, pieces, &mut sent);
            self.push_window(self.g + distance, count, pieces, &mut received);
            far.send(peer(self.g + self.regions - distance), sent);
            far.recv(peer(self.g + distance), received, None);
        }
        far
    }
}

/// Exact with one level of R = q^k even regions and the paper's fan: p-1 blocks near, q(R-1)/(q-1) far.
pub(crate) fn cost(problem: &Problem, parameters: &Parameters) -> Cost {
    let topology = &problem.topology;
    let (Ok(levels), Ok(fan)) = (levels(problem, parameters), fan(parameters)) else { return Cost::NOTHING };
    if uses_memory(parameters) {
        return far_cost(topology, levels.first().copied().unwrap_or(1), fan);
    }
    let sizes: Vec<(usize, usize)> = levels.iter().map(|&level| topology.region_sizes(level)).collect();
    let bound = share_cost(fan, &sizes, topology.ranks(), 1, topology.ranks());
    let regular = match sizes[..] {
        [] => true,
        [(q, largest)] => {
            let regions = topology.regions(levels[0]);
            q == largest && (q == 1 || fan == Fan::Paper && q.pow(ceil_log(q, regions) as u32) == regions)
        }
        _ => false,
    };
    if regular { bound } else { bound.roughly() }
}

/// Far rounds only, the nearest window being the largest; exact where all regions are of one size.
fn far_cost(topology: &Topology, level: usize, fan: Fan) -> Cost {
    let (q, largest) = topology.region_sizes(level);
    let regions = topology.regions(level);
    let widths = Growth::new(fan, q, regions).widths(regions);
    let sent = widths.windows(2).map(|pair| pair[0].min(pair[1] - pair[0]) * largest).sum();
    let cost = Cost::exact(widths.len() - 1, widths.len() - 1, sent);
    if q == largest { cost } else { cost.roughly() }
}

pub(crate) fn barrier_cost(problem: &Problem, parameters: &Parameters) -> Cost {
    Cost { blocks: 0, ..cost(problem, parameters) }
}

/// Reversed, everybody sends what he received: every block but his own, once.
pub(crate) fn reversed_cost(problem: &Problem, parameters: &Parameters) -> Cost {
    if uses_memory(parameters) {
        return cost(problem, parameters);
    }
    Cost { blocks: problem.ranks() - 1, ..cost(problem, parameters) }.roughly()
}

/// `members` ranks share pieces of at most `piece` blocks, `total` together; `sizes`: smallest and largest region inside.
fn share_cost(fan: Fan, sizes: &[(usize, usize)], members: usize, piece: usize, total: usize) -> Cost {
    let Some((&(q, largest), inner)) = sizes.split_first() else {
        let widths = growing(members, std::iter::repeat_n(1, ceil_log(2, members)));
        let sent = widths.windows(2).map(|pair| ((pair[1] - pair[0]) * piece).min(total)).sum();
        return Cost::exact(widths.len() - 1, widths.len() - 1, sent);
    };
    let regions = members.div_ceil(q).min(members);
    let (q, regions) = if q == largest { (q, members / q) } else { (q, regions) };
    let growth = Growth::new(fan, q, regions);
    let mut cost = share_cost(fan, inner, largest, piece, total.min(largest * piece));
    for pair in growth.widths(regions).windows(2) {
        let (c, wider) = (pair[0], pair[1]);
        let window = (c.min(wider - c) * largest * piece).min(total);
        let shared = ((wider - c) * largest * piece).min(total);
        cost = cost.then(Cost::exact(1, 1, window)).then(share_cost(fan, inner, largest, window, shared));
    }
    cost
}

/// Every fan; every single level, and all of them.
pub(crate) fn variants(problem: &Problem) -> Vec<String> {
    let mut variants = Vec::new();
    // The paper's fan is meant where none is named.
    for fan in ["", "fan=full", "fan=balanced"] {
        variants.push(fan.to_owned());
        if problem.topology.depth() > 1 {
            let separator = if fan.is_empty() { "" } else { ":" };
            variants.extend((1..=problem.topology.depth()).map(|level| format!("{fan}{separator}levels={level}")));
        }
    }
    either_way(variants)
}
