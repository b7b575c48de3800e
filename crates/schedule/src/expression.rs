//! What a reduction computes, to the last bit: which expression of the contributions every output is.
//!
//! The verifier's symbols are these expressions. Here they get names that depend neither on the run that built them nor on the block that they are about,
//! so that what two algorithms compute can be compared.

use std::fmt;

use crate::Prepared;
use crate::verify::expression_of;

/// Which expression of the contributions every element of every rank's output is. See [`Prepared::expression`].
///
/// It is a fingerprint of 128 bits, the same wherever it is computed: that two expressions share one by chance can be left out of account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Expression(Fingerprint);

impl Expression {
    /// From the expressions of every rank's outputs, block by block.
    ///
    /// Where all blocks of a rank are the same expression, so are all elements, however many blocks there are. Where they are not, it matters
    /// where blocks begin, and that follows from their number.
    pub(crate) fn of_outputs(outputs: Vec<Vec<Fingerprint>>) -> Expression {
        let of_rank = |mut blocks: Vec<Fingerprint>| {
            if blocks.windows(2).all(|pair| pair[0] == pair[1]) {
                blocks.truncate(1);
            }
            blocks.iter().fold(Fingerprint::number(blocks.len()), |before, &block| before.then(block))
        };
        Expression(outputs.into_iter().map(of_rank).fold(Fingerprint::NOTHING, Fingerprint::then))
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0.0)
    }
}

/// The name of an expression, made from the names of its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Fingerprint(u128);

impl Fingerprint {
    const NOTHING: Fingerprint = Fingerprint(0x243f_6a88_85a3_08d3_1319_8a2e_0370_7344);

    /// What a rank contributes, or how many things follow.
    pub(crate) fn number(number: usize) -> Fingerprint {
        Fingerprint::NOTHING.then(Fingerprint(number as u128))
    }

    /// `self op right`: the two sides are not alike, since an operation may round differently if they are exchanged.
    pub(crate) fn combine(self, right: Fingerprint) -> Fingerprint {
        Fingerprint::NOTHING.then(self).then(right)
    }

    /// One thing after the other: multiplied by an odd number and folded, so no bit of either is lost.
    fn then(self, next: Fingerprint) -> Fingerprint {
        let mixed = (self.0 ^ next.0).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        Fingerprint(mixed ^ mixed >> 64)
    }
}

/// How much work it may take to compute an expression: every rank computes it while it runs, for each algorithm that is compared, so this is some ten
/// milliseconds. The unit is what a block takes that is sent and combined, about 300 nanoseconds.
const MOST_WORK: usize = 30_000;

/// What a rank takes that does nothing, in that unit.
const WORK_OF_A_RANK: usize = 40;

/// What a message takes, however many blocks it has.
const WORK_OF_A_MESSAGE: usize = 6;

impl Prepared {
    /// Which expression of the contributions every element of every rank's output is. Two algorithms that serve the same problem and have equal
    /// expressions give every rank the same bits for the same input, however the operation rounds.
    ///
    /// `None` where nothing is reduced, and where it would take longer than some ten milliseconds to find out. That follows from the problem and the
    /// algorithm alone, so all ranks come to the same.
    ///
    /// ```
    /// use allhands_schedule::{Choice, Collective, Problem, Topology};
    /// let problem = Problem::new(Collective::Allreduce, Topology::flat(8)?);
    /// let expression = |text| Ok(Choice::parse(Collective::Allreduce, text)?.prepare(&problem)?.expression());
    /// assert_eq!(expression("recursive-doubling")?, expression("rabenseifner")?);
    /// assert_ne!(expression("recursive-doubling")?, expression("ring")?);
    /// # Ok::<(), allhands_schedule::Error>(())
    /// ```
    pub fn expression(&self) -> Option<Expression> {
        let affordable = self.problem().collective.reduces() && self.work_of_all() <= MOST_WORK;
        affordable.then(|| expression_of(&self.ensemble()).ok()).flatten()
    }

    /// About how much work it takes to run all schedules on symbols, found without making them.
    ///
    /// Formulas of costs are about messages. Ranks that share memory put blocks there and take them, and a node may meet as often as it has ranks, each of
    /// whom then hears of all others.
    fn work_of_all(&self) -> usize {
        let (problem, cost) = (self.problem(), self.cost());
        let (_, node) = problem.topology.region_sizes(1);
        let near = if self.shares() { 3 * self.blocks() + node.saturating_mul(node) / 16 } else { 0 };
        let far = WORK_OF_A_MESSAGE * cost.messages + cost.blocks;
        problem.ranks().saturating_mul(WORK_OF_A_RANK + far + near + self.blocks())
    }
}
