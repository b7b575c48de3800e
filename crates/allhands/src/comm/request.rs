//! What a plan is asked for with.

use std::sync::Arc;

use allhands_schedule::{Collective, Graph};

use super::PlanSlot;
use crate::error::Result;
use crate::kernels::{Operation, Type};
use crate::layout::Amount;
use crate::op::{self, Late, Reducer};
use crate::plan::Options;
use crate::raw::{RawCall, RawOperation};
use crate::reproducible::Reproducible;

/// Everything a plan is made from.
pub(super) struct PlanRequest<'a> {
    pub(super) collective: Collective,
    pub(super) amount: Amount,
    pub(super) element: (Type, usize),
    pub(super) root: usize,
    pub(super) graph: Option<Arc<Graph>>,
    pub(super) reducer: Option<Arc<dyn Reducer>>,
    pub(super) operation: String,
    pub(super) predefined: Option<Operation>,
    pub(super) commutative: bool,
    /// Whether the order of operands does not show in the result.
    pub(super) exact: bool,
    /// Whether it sums up so that no order shows.
    pub(super) sums: Option<Reproducible>,
    pub(super) options: &'a Options,
    /// Where it was reserved before.
    pub(super) place: Option<&'a PlanSlot>,
    /// What is done while others are waited for.
    pub(super) on_idle: &'a dyn Fn(),
}

/// What a design is bound to for one plan.
pub(super) struct Binding<'a> {
    /// Where it was reserved before.
    pub(super) place: Option<&'a PlanSlot>,
    pub(super) reducer: Option<Arc<dyn Reducer>>,
    pub(super) sums: Option<Reproducible>,
    /// What is done while others are waited for.
    pub(super) on_idle: &'a dyn Fn(),
}

/// What a collective is about besides its amount: a special rank, or who talks to whom.
#[derive(Default)]
pub(super) struct About {
    pub(super) root: usize,
    pub(super) graph: Option<Arc<Graph>>,
}

impl From<usize> for About {
    fn from(root: usize) -> About {
        About { root, graph: None }
    }
}

impl From<&Arc<Graph>> for About {
    fn from(graph: &Arc<Graph>) -> About {
        About { root: 0, graph: Some(graph.clone()) }
    }
}

/// So many counts are told one by one.
const FEW: usize = 16;

impl<'a> PlanRequest<'a> {
    /// What a call asks for that says at run time what its elements are; and its operation, if that is the caller's own.
    pub(super) fn raw(
        call: &RawCall,
        options: &'a Options,
        place: Option<&'a PlanSlot>,
        on_idle: &'a dyn Fn(),
    ) -> Result<(PlanRequest<'a>, Option<Arc<Late>>)> {
        let mut ask = PlanRequest {
            collective: call.collective,
            amount: call.amount.clone(),
            element: (call.element, call.element.size()),
            root: call.root,
            graph: call.graph.clone(),
            reducer: None,
            operation: String::new(),
            predefined: None,
            commutative: true,
            exact: false,
            sums: None,
            options,
            place,
            on_idle,
        };
        let mut own = None;
        match call.operation {
            None => {}
            Some(RawOperation::Predefined(operation)) => {
                ask.reducer = Some(op::predefined(call.element, operation)?);
                ask.operation = operation.name().into();
                ask.predefined = Some(operation);
                ask.exact = operation.is_exact_on(call.element);
            }
            Some(RawOperation::Own { bytes, commutative }) => {
                let late = Arc::new(Late::new(bytes));
                own = Some(late.clone());
                ask.element = (Type::U8, bytes);
                ask.reducer = Some(late);
                ask.operation = format!("elements of {bytes} bytes, {}", op::user_name(commutative));
                // Stands for what the MPI knows it by: such a plan says that the MPI's own is best, but never runs it.
                ask.predefined = Some(Operation::BitOr);
                ask.commutative = commutative;
            }
        }
        Ok((ask, own))
    }

    /// The same by sums that no order shows in, where that is asked for and there are such: elements are others while they travel, and
    /// combining them is exact.
    pub(super) fn reproducible(mut self, always: bool) -> Self {
        let wanted = always || self.options.reproducible;
        if let Some(sums) = Reproducible::of(self.element.0, self.predefined).filter(|_| wanted) {
            self.operation = format!("reproducible sum of {}", self.element.0.name());
            self.element = (Type::U8, sums.bytes());
            self.reducer = Some(sums.reducer());
            (self.predefined, self.exact, self.sums) = (None, true, Some(sums));
        }
        self
    }

    /// Bytes of a block, or of the vector.
    pub(super) fn bytes(&self) -> usize {
        self.element.1
            * match &self.amount {
                Amount::Each(count) => *count,
                Amount::Listed(counts) => counts.iter().sum::<usize>() / counts.len().max(1),
                Amount::Own { given, gotten, .. } => mean_of_own(given, gotten),
            }
    }

    /// What is asked for, the same on every rank, for comparing calls.
    pub(super) fn signature(&self, algorithm: &str) -> String {
        let rooted = if self.collective.rooted() { format!(", root {}", self.root) } else { String::new() };
        let operation = if self.collective.reduces() { format!(", {}", self.operation) } else { String::new() };
        let amount = match &self.amount {
            Amount::Each(count) => count.to_string(),
            Amount::Own { given, gotten, .. } => format!("{} counts of its own", given.len().max(gotten.len())),
            Amount::Listed(counts) if counts.len() <= FEW => format!("{counts:?}"),
            // Of an alltoallv there are as many as pairs of ranks: a number stands for them.
            Amount::Listed(counts) => {
                let all = counts.iter().fold(0u64, |all, &count| all.wrapping_add(count as u64));
                let number = mixed(counts.iter().map(|&count| count as u64));
                format!("{} counts, {all} in all, of check sum {number:x},", counts.len())
            }
        };
        let graph = self
            .graph
            .as_ref()
            .map(|graph| format!(" on a graph of {} edges and check sum {:x}", graph.edges(), graph.fingerprint()));
        let graph = graph.unwrap_or_default();
        format!("{} of {amount} x {}{operation}{rooted}{graph} by {algorithm}", self.collective, self.element.0.name())
    }
}

/// Elements of a block of those that a rank knows alone, on average.
fn mean_of_own(given: &[usize], gotten: &[usize]) -> usize {
    let (all, blocks) = (given.iter().chain(gotten), given.len() + gotten.len());
    all.sum::<usize>() / blocks.max(1)
}

/// A number that differs for different lists, and is the same on every rank: one step a word, for long ones.
fn mixed(words: impl IntoIterator<Item = u64>) -> u64 {
    let mix = |sum: u64, word: u64| (sum.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    words.into_iter().fold(0xcbf2_9ce4_8422_2325, mix)
}
