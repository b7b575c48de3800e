//! The greatest of all ranks' words.

use allhands_schedule::Collective;

use super::{Amount, RawCall, RawPlan};
use crate::comm::Comm;
use crate::error::Result;
use crate::kernels::{Operation, Type};
use crate::plan::Options;

/// Finds, for so many words, the greatest of any rank.
pub(crate) struct Greatest<const N: usize> {
    /// Goes before what it reads and writes.
    plan: RawPlan,
    words: Box<[u64; N]>,
}

impl<const N: usize> Greatest<N> {
    /// Among the ranks of a communicator, all of which call this in the same order as they make plans. Waits for nobody.
    pub(crate) fn new(comm: &Comm) -> Result<Greatest<N>> {
        let call = RawCall {
            collective: Collective::Allreduce,
            amount: Amount::Each(N),
            element: Type::U64,
            operation: Some(Operation::Max.into()),
            root: 0,
            graph: None,
        };
        let plan = comm.raw_plan(&call, &Options::new().unshared(true), &|| ())?;
        Ok(Greatest { plan, words: Box::new([0; N]) })
    }

    /// Begins with this rank's words; what is to be waited for.
    pub(crate) fn start(&mut self, words: [u64; N]) -> Result<&mut RawPlan> {
        *self.words = words;
        // SAFETY: as many words as the plan says, which stay as long as it.
        unsafe { self.plan.start_in_place(self.words.as_mut_ptr().cast())? };
        Ok(&mut self.plan)
    }

    /// What was found, when that is through.
    pub(crate) fn words(&self) -> &[u64; N] {
        &self.words
    }
}
