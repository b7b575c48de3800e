//! What the collectives that combine ask for.

use std::ptr::null_mut;

use allhands::raw::{Amount, RawCall};
use allhands_mpi::Handle;
use allhands_schedule::Collective;

use crate::call_description::list;
use crate::collectives::{Caller, Receive, Send};
use crate::communicator::Communicator;
use crate::failure::Reason;
use crate::memory::Region;
use crate::numbers::{Numbers, count, counts};
use crate::operations::Reduction;
use crate::task::{Outcome, Task};

impl Caller<'_> {
    /// `MPI_Allreduce`
    #[inline(always)]
    pub fn allreduce(&self, send: Send, receive: Receive, number: i64, datatype: Handle, op: Handle) -> Outcome {
        self.say_reduction(None, || number.to_string(), datatype, op);
        let wanted = Wanted { collective: Collective::Allreduce, amount: Amount::Each(count(number)?), root: 0 };
        self.reduction(wanted, send, receive, (datatype, op))
    }

    /// `MPI_Scan`
    #[inline(always)]
    pub fn scan(&self, send: Send, receive: Receive, number: i64, datatype: Handle, op: Handle) -> Outcome {
        self.prefix(Collective::Scan, send, receive, number, (datatype, op))
    }

    /// `MPI_Exscan`
    #[inline(always)]
    pub fn exscan(&self, send: Send, receive: Receive, number: i64, datatype: Handle, op: Handle) -> Outcome {
        self.prefix(Collective::Exscan, send, receive, number, (datatype, op))
    }

    #[inline(always)]
    fn prefix(
        &self,
        collective: Collective,
        send: Send,
        receive: Receive,
        number: i64,
        (datatype, op): (Handle, Handle),
    ) -> Outcome {
        self.say_reduction(None, || number.to_string(), datatype, op);
        let amount = Amount::Each(count(number)?);
        self.reduction(Wanted { collective, amount, root: 0 }, send, receive, (datatype, op))
    }

    /// `MPI_Reduce`
    pub fn reduce(
        &self,
        send: Send,
        receive: Receive,
        number: i64,
        datatype: Handle,
        op: Handle,
        root: i32,
    ) -> Outcome {
        self.say_reduction(Some(root), || number.to_string(), datatype, op);
        let (root, amount) = (self.root(root)?, Amount::Each(count(number)?));
        self.reduction(Wanted { collective: Collective::Reduce, amount, root }, send, receive, (datatype, op))
    }

    /// `MPI_Reduce_scatter_block`
    pub fn reduce_scatter_block(
        &self,
        send: Send,
        receive: Receive,
        number: i64,
        datatype: Handle,
        op: Handle,
    ) -> Outcome {
        self.say_reduction(None, || number.to_string(), datatype, op);
        let amount = Amount::Each(count(number)?);
        self.reduction(
            Wanted { collective: Collective::ReduceScatterBlock, amount, root: 0 },
            send,
            receive,
            (datatype, op),
        )
    }

    /// `MPI_Reduce_scatter`
    ///
    /// # Safety
    /// There is a count for each rank.
    pub unsafe fn reduce_scatter(
        &self,
        send: Send,
        receive: Receive,
        numbers: Numbers,
        datatype: Handle,
        op: Handle,
    ) -> Outcome {
        self.say_reduction(
            None,
            // SAFETY: the caller's promise.
            || match unsafe { numbers.read(self.comm.size) } {
                Ok(counts) => list(&counts.into_iter().map(i128::from).collect::<Vec<_>>()),
                Err(_) => "no counts".into(),
            },
            datatype,
            op,
        );
        // SAFETY: the caller's promise.
        let amount = Amount::Listed(unsafe { counts(numbers, self.comm.size)? });
        self.reduction(Wanted { collective: Collective::ReduceScatter, amount, root: 0 }, send, receive, (datatype, op))
    }

    fn say_reduction(&self, root: Option<i32>, amount: impl Fn() -> String, datatype: Handle, op: Handle) {
        if let Some(said) = self.said {
            let amount = format!("{} x {}", amount(), self.types.element_said(datatype));
            said.note(&[root.map(|root| format!("root {root}")), Some(amount), Some(self.types.operation_said(op))]);
        }
    }

    #[inline(always)]
    fn reduction(
        &self,
        Wanted { collective, amount, root }: Wanted,
        send: Send,
        receive: Receive,
        (datatype, op): (Handle, Handle),
    ) -> Outcome {
        let abi = self.types.mpi().abi();
        let Reduction { datatype, align, element, operation, called } =
            Reduction::of(self.types, abi.handle(datatype), abi.handle(op))?;
        let Communicator { rank, size, .. } = *self.comm;
        let (input, output) = lengths(collective, &amount, rank, root, size).ok_or(Reason::TooLarge)?;
        let bytes = datatype.block(input)?;
        let in_place = self.in_place(send);
        let region = |at: *mut u8, count| Region::new(at, count, datatype).map(|region| region.aligned(align));
        // In place the output's memory holds the input first, which may be longer.
        let to = if output == 0 && !in_place { null_mut() } else { receive.cast() };
        let output = region(to, if in_place { input.max(output) } else { output })?;
        let input = if in_place { None } else { Some(region(send.cast_mut().cast(), input)?) };
        let call = RawCall { collective, amount, element, operation: Some(operation), root, graph: None };
        Ok(Task { called, ..Task::new(call, input, output, bytes) })
    }
}

struct Wanted {
    collective: Collective,
    amount: Amount,
    root: usize,
}

/// Elements of this rank's input and output of a reduction; `None` if they cannot be counted.
#[inline]
fn lengths(collective: Collective, amount: &Amount, rank: usize, root: usize, size: usize) -> Option<(usize, usize)> {
    Some(match (collective, amount) {
        (Collective::Reduce, Amount::Each(count)) if rank != root => (*count, 0),
        (Collective::Exscan, Amount::Each(count)) if rank == 0 => (*count, 0),
        (Collective::ReduceScatterBlock, Amount::Each(count)) => (count.checked_mul(size)?, *count),
        (_, Amount::Each(count)) => (*count, *count),
        (_, Amount::Own { .. }) => return None,
        (_, Amount::Listed(counts)) => {
            (counts.iter().try_fold(0usize, |sum, count| sum.checked_add(*count))?, counts[rank])
        }
    })
}
