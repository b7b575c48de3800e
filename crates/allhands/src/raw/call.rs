//! What is asked for.

use std::sync::Arc;

use allhands_schedule::{Collective, Graph};

use crate::kernels::{Operation, Type};
use crate::layout::Amount;

/// What is asked for, in values instead of types. Every rank must ask for the same.
///
/// ```
/// use allhands::kernels::Type;
/// use allhands::raw::{Amount, RawCall};
/// use allhands_schedule::Collective;
/// // 40 bytes from rank 2 for all.
/// let call = RawCall {
///     collective: Collective::Bcast,
///     amount: Amount::Each(40),
///     element: Type::U8,
///     operation: None,
///     root: 2,
///     graph: None,
/// };
/// # let _ = call;
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RawCall {
    /// Which collective.
    pub collective: Collective,
    /// How many elements.
    pub amount: Amount,
    /// Of which type. What is only moved may as well be bytes.
    pub element: Type,
    /// How they are combined, in a reduction.
    pub operation: Option<RawOperation>,
    /// The special rank of a rooted collective; 0 otherwise.
    pub root: usize,
    /// Who talks to whom in a neighbourhood collective: as much of the graph as concerns the ranks of this one's node, or all of it.
    pub graph: Option<Arc<Graph>>,
}

impl RawCall {
    /// What a plan for it weighs in a [`PlanStore`](super::PlanStore) on a communicator of so many ranks, in bytes: about what a rank keeps for it, but
    /// computed from the call alone, so that it is the same on all ranks.
    ///
    /// ```
    /// # use allhands::kernels::Type;
    /// # use allhands::raw::{Amount, RawCall};
    /// # use allhands_schedule::Collective;
    /// # let call = |count| RawCall { collective: Collective::Allgather, amount: Amount::Each(count), element: Type::U8, operation: None, root: 0, graph: None };
    /// assert!(call(1 << 20).weight(16) > 16 << 20);
    /// assert!(call(1).weight(16) < call(1).weight(1000));
    /// ```
    pub fn weight(&self, ranks: usize) -> u64 {
        let element = match self.operation {
            Some(RawOperation::Own { bytes, .. }) => bytes,
            _ => self.element.size(),
        };
        weight(self.collective, &self.amount, element, ranks)
    }
}

/// Of every plan: its program, decision and texts.
const PLAN_WEIGHT: u64 = 4096;
/// Of every rank that it may exchange messages with.
const RANK_WEIGHT: u64 = 256;

/// See [`RawCall::weight`].
pub(crate) fn weight(collective: Collective, amount: &Amount, element: usize, ranks: usize) -> u64 {
    let (ranks, element) = (ranks as u64, element as u64);
    let (elements, listed) = match amount {
        Amount::Each(count) => {
            // A rank of an alltoall has its share of all pairs.
            let blocks = if collective.cuts() || collective == Collective::Barrier { 1 } else { ranks };
            ((*count as u64).saturating_mul(blocks), 0)
        }
        Amount::Own { given, gotten, carried } => {
            let all = carried.iter().fold(0u64, |all, (_, count)| all.saturating_add(*count as u64));
            (all, 8 * (given.len() + gotten.len() + 2 * carried.len()) as u64)
        }
        Amount::Listed(counts) => {
            let all = counts.iter().fold(0u64, |all, &count| all.saturating_add(count as u64));
            // In an alltoall a rank has its share of all pairs.
            let shared = collective.family() == Collective::Alltoall || collective.has_graph();
            let share = if shared { all / ranks.max(1) } else { all };
            (share, 8 * counts.len() as u64)
        }
    };
    let fixed = PLAN_WEIGHT + RANK_WEIGHT * ranks + listed;
    elements.saturating_mul(element).saturating_add(fixed)
}

/// How elements are combined.
///
/// ```
/// use allhands::kernels::Operation;
/// use allhands::raw::RawOperation;
/// // Affine maps, of two words each.
/// let own = RawOperation::Own { bytes: 16, commutative: false };
/// assert_ne!(own, Operation::Sum.into());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RawOperation {
    /// One of MPI's, on elements of the call's type.
    Predefined(Operation),
    /// The caller's own, which [`RawPlan::combine_by`](super::RawPlan::combine_by) names, on elements of so many bytes, whatever the call's type. An element
    /// may be of any size, and is always combined as a whole. Where the operation does not commute, ranks are combined in order.
    Own {
        /// Of an element.
        bytes: usize,
        /// Whether operands may be combined in any order.
        commutative: bool,
    },
}

impl From<Operation> for RawOperation {
    fn from(operation: Operation) -> RawOperation {
        RawOperation::Predefined(operation)
    }
}
