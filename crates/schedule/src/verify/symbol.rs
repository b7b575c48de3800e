//! What a symbol is: a contribution, or an expression over contributions, stored once however often it is built.
//!
//! Two symbols are equal exactly when their expressions are: so "identical on every rank" is a comparison of numbers.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;

use super::Fault;
use crate::expression::Fingerprint;

const COMBINED: u64 = 1 << 63;
const BLOCK_BITS: u32 = 40;

/// The value of one block, as an expression over the ranks' contributions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Symbol(u64);

impl Symbol {
    /// What `rank` contributes to `block`.
    pub(super) fn leaf(rank: usize, block: usize) -> Symbol {
        Symbol((rank as u64) << BLOCK_BITS | block as u64)
    }

    /// The rank and block of a contribution; `None` for a combined value.
    pub(super) fn contribution(self) -> Option<(usize, usize)> {
        let block = self.0 & ((1 << BLOCK_BITS) - 1);
        (self.0 & COMBINED == 0).then_some(((self.0 >> BLOCK_BITS) as usize, block as usize))
    }

    /// Of a combined value: its place among all combinations.
    fn index(self) -> usize {
        (self.0 & !COMBINED) as usize
    }
}

/// `left op right`, with what is known of it.
struct Combination {
    block: usize,
    /// Runs of contributing ranks, ascending, disjoint, not touching: first and one past last.
    ranks: Vec<(u32, u32)>,
    /// Whether the contributions stand in ascending order of rank.
    ordered: bool,
}

/// All combinations of one run.
#[derive(Default)]
pub(super) struct Symbols {
    combinations: Vec<Combination>,
    known: HashMap<(Symbol, Symbol), Symbol, BuildHasherDefault<Mix>>,
}

/// Two operands that do not go together.
pub(super) enum Clash {
    OtherBlock(usize, usize),
    Twice { contributor: usize, block: usize },
}

impl Clash {
    pub(super) fn fault(self, rank: usize, round: usize) -> Fault {
        match self {
            Clash::OtherBlock(left, right) => Fault::OtherBlock { rank, round, left, right },
            Clash::Twice { contributor, block } => Fault::Twice { rank, round, contributor, block },
        }
    }
}

impl Symbols {
    /// `left op right`.
    pub(super) fn combine(&mut self, left: Symbol, right: Symbol) -> Result<Symbol, Clash> {
        if let Some(&known) = self.known.get(&(left, right)) {
            return Ok(known);
        }
        let (block, other) = (self.block(left), self.block(right));
        if block != other {
            return Err(Clash::OtherBlock(block, other));
        }
        let (mut left_own, mut right_own) = ([(0, 0)], [(0, 0)]);
        let (left_ranks, right_ranks) = (self.ranks(left, &mut left_own), self.ranks(right, &mut right_own));
        let ascending = left_ranks[left_ranks.len() - 1].1 <= right_ranks[0].0;
        let ordered = ascending && self.ordered(left) && self.ordered(right);
        let ranks = union(left_ranks, right_ranks).map_err(|contributor| Clash::Twice { contributor, block })?;
        let symbol = Symbol(COMBINED | self.combinations.len() as u64);
        self.combinations.push(Combination { block, ranks, ordered });
        self.known.insert((left, right), symbol);
        Ok(symbol)
    }

    pub(super) fn block(&self, symbol: Symbol) -> usize {
        symbol.contribution().map_or_else(|| self.combination(symbol).block, |(_, block)| block)
    }

    pub(super) fn ordered(&self, symbol: Symbol) -> bool {
        symbol.contribution().is_some() || self.combination(symbol).ordered
    }

    /// Whether these ranks have contributed, and no other.
    pub(super) fn are(&self, symbol: Symbol, contributors: Range<usize>) -> bool {
        *self.ranks(symbol, &mut [(0, 0)]) == [(contributors.start as u32, contributors.end as u32)]
    }

    pub(super) fn describe(&self, symbol: Symbol) -> String {
        let mut own = [(0, 0)];
        let run = |&(first, end): &(u32, u32)| {
            if end == first + 1 { first.to_string() } else { format!("{first}-{}", end - 1) }
        };
        let ranks: Vec<_> = self.ranks(symbol, &mut own).iter().map(run).collect();
        format!("block {} of rank {}", self.block(symbol), ranks.join(","))
    }

    /// The names of all combinations. Symbols differ from block to block, these do not.
    pub(super) fn fingerprints(&self) -> Fingerprints {
        let mut combined: Vec<_> = self.known.iter().map(|(&operands, &symbol)| (symbol.0, operands)).collect();
        combined.sort_unstable_by_key(|&(symbol, _)| symbol);
        // Operands are older than what they are combined to.
        let mut fingerprints = Fingerprints(Vec::with_capacity(combined.len()));
        for (_, (left, right)) in combined {
            let name = fingerprints.of(left).combine(fingerprints.of(right));
            fingerprints.0.push(name);
        }
        fingerprints
    }

    fn combination(&self, symbol: Symbol) -> &Combination {
        &self.combinations[symbol.index()]
    }

    /// The runs of contributing ranks; `own` has room for the one run of a contribution.
    pub(super) fn ranks<'a>(&'a self, symbol: Symbol, own: &'a mut [(u32, u32); 1]) -> &'a [(u32, u32)] {
        match symbol.contribution() {
            Some((rank, _)) => {
                own[0] = (rank as u32, rank as u32 + 1);
                own
            }
            None => &self.combination(symbol).ranks,
        }
    }
}

/// What each combination of a run is called outside of it.
pub(super) struct Fingerprints(Vec<Fingerprint>);

impl Fingerprints {
    pub(super) fn of(&self, symbol: Symbol) -> Fingerprint {
        match symbol.contribution() {
            Some((rank, _)) => Fingerprint::number(rank),
            None => self.0[symbol.index()],
        }
    }
}

/// The union of two disjoint sets of runs, or a rank they share.
fn union(a: &[(u32, u32)], b: &[(u32, u32)]) -> Result<Vec<(u32, u32)>, usize> {
    let mut merged: Vec<(u32, u32)> = Vec::with_capacity(a.len() + b.len());
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    while let Some(&run) = match (a.peek(), b.peek()) {
        (Some(first), Some(second)) if first.0 <= second.0 => a.next(),
        (Some(_), None) => a.next(),
        _ => b.next(),
    } {
        match merged.last_mut() {
            Some(last) if last.1 > run.0 => return Err(run.0 as usize),
            Some(last) if last.1 == run.0 => last.1 = run.1,
            _ => merged.push(run),
        }
    }
    Ok(merged)
}

/// A multiplicative hash: the keys are small numbers of our own making, so nobody can aim collisions at it.
#[derive(Default)]
pub(super) struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(26) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }
}
