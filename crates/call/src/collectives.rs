//! What each collective asks for, read from the arguments of MPI's function; `reductions` has those that combine.
//!
//! A rank looks at its own arguments only, and comes to what MPI guarantees to be the same on every rank.

use std::ffi::c_void;

use allhands::Error;
use allhands::kernels::Type;
use allhands::raw::{Amount, RawCall};
use allhands_mpi::Handle;
use allhands_schedule::Collective;

use crate::communicator::Communicator;
use crate::datatype::Datatype;
use crate::failure::{Reason, Unserved};
use crate::memory::Region;
use crate::numbers::{Numbers, count, counts};
use crate::task::{Outcome, Task};
use crate::types::Types;
use crate::words::{Said, list};

/// What a call is made with.
#[derive(Clone, Copy)]
pub struct Caller<'a> {
    /// The MPI's datatypes and operations.
    pub types: &'a Types,
    /// Where it is made.
    pub comm: &'a Communicator,
    /// Whether ranks may tell each other the counts of an alltoallv before it is served.
    pub tells_counts: bool,
    /// Where to note what the arguments say, if somebody wants to know.
    pub said: Option<&'a Said>,
}

/// Memory that is read, as MPI's functions have it.
pub type Send = *const c_void;
/// Memory that is written.
pub type Receive = *mut c_void;

impl Caller<'_> {
    /// Whether the program works in place.
    #[inline]
    pub fn in_place(&self, send: Send) -> bool {
        send == self.types.mpi().in_place().cast_const()
    }

    #[inline]
    fn datatype(&self, handle: Handle) -> Result<Datatype, Unserved> {
        Datatype::of(self.types, self.types.mpi().abi().handle(handle))
    }

    /// A root that is a rank.
    pub fn root(&self, root: i32) -> Result<usize, Unserved> {
        usize::try_from(root).ok().filter(|root| *root < self.comm.size).ok_or(Reason::Refused.into())
    }

    /// `MPI_Barrier`
    pub fn barrier(&self) -> Outcome {
        let call = moved(Collective::Barrier, Amount::Each(0), 0);
        Ok(Task::new(call, Some(Region::none()), Region::none(), 0))
    }

    /// `MPI_Bcast`
    #[inline(always)]
    pub fn bcast(&self, buffer: Receive, number: i64, datatype: Handle, root: i32) -> Outcome {
        if let Some(said) = self.said {
            said.note(&[Some(format!("root {root}")), Some(self.types.bytes_said(number, datatype))]);
        }
        let root = self.root(root)?;
        let (number, datatype) = (count(number)?, self.datatype(datatype)?);
        let bytes = datatype.block(number)?;
        let output = Region::new(buffer.cast(), number, datatype)?;
        let call = moved(Collective::Bcast, Amount::Each(bytes), root);
        Ok(Task { gives: root == self.comm.rank, ..Task::new(call, None, output, bytes) })
    }

    /// `MPI_Allgather`
    #[inline(always)]
    pub fn allgather(&self, send: (Send, i64, Handle), receive: (Receive, i64, Handle)) -> Outcome {
        self.regular(Collective::Allgather, send, receive, 1)
    }

    /// `MPI_Alltoall`
    #[inline(always)]
    pub fn alltoall(&self, send: (Send, i64, Handle), receive: (Receive, i64, Handle)) -> Outcome {
        self.regular(Collective::Alltoall, send, receive, self.comm.size)
    }

    /// Blocks of one size, of which the input has so many.
    #[inline(always)]
    fn regular(
        &self,
        collective: Collective,
        (send, sent, send_type): (Send, i64, Handle),
        (receive, received, receive_type): (Receive, i64, Handle),
        blocks: usize,
    ) -> Outcome {
        if let Some(said) = self.said {
            let gets = self.types.bytes_said(received, receive_type);
            let gives = (!self.in_place(send)).then(|| self.types.bytes_said(sent, send_type));
            said.note(&[gives.filter(|gives| *gives != gets).map(|gives| format!("sends {gives}")), Some(gets)]);
        }
        let received = count(received)?;
        let datatype = self.datatype(receive_type)?;
        let bytes = datatype.block(received)?;
        let output = Region::new(receive.cast(), datatype.times(received, self.comm.size), datatype)?;
        let mut input = None;
        if !self.in_place(send) {
            let (sent, datatype) = (count(sent)?, self.datatype(send_type)?);
            equal(datatype.bytes(sent), bytes)?;
            input = Some(Region::new(send.cast_mut().cast(), datatype.times(sent, blocks), datatype)?);
        }
        Ok(Task::new(moved(collective, Amount::Each(bytes), 0), input, output, bytes))
    }

    /// `MPI_Allgatherv`
    ///
    /// # Safety
    /// The arrays have a number for each rank.
    pub unsafe fn allgatherv(
        &self,
        (send, sent, send_type): (Send, i64, Handle),
        receive: Receive,
        numbers: Numbers,
        places: Numbers,
        receive_type: Handle,
    ) -> Outcome {
        let Communicator { rank, size, .. } = *self.comm;
        if let Some(said) = self.said {
            // SAFETY: the caller's promise.
            let each = unsafe { self.types.each_said(numbers, self.comm.size, receive_type) };
            let mine = each.as_ref().map(|each| format!("{} bytes", each[rank]));
            let gives = (!self.in_place(send)).then(|| self.types.bytes_said(sent, send_type));
            let gives = gives.filter(|gives| Some(gives) != mine.as_ref()).map(|gives| format!("sends {gives}"));
            said.note(&[gives, each.map(|each| format!("{} bytes", list(&each)))]);
        }
        let datatype = self.datatype(receive_type)?;
        // SAFETY: the caller's promise.
        let (counts, places) = unsafe { (counts(numbers, size)?, places.read(size)?) };
        let blocks = counts.iter().map(|count| datatype.block(*count)).collect::<Result<Vec<_>, _>>()?;
        let output = Region::scattered(receive.cast(), &counts, &places, datatype)?;
        let mut input = None;
        if !self.in_place(send) {
            let (sent, datatype) = (count(sent)?, self.datatype(send_type)?);
            equal(datatype.bytes(sent), blocks[rank])?;
            input = Some(Region::new(send.cast_mut().cast(), sent, datatype)?);
        }
        let bytes = output.bytes();
        Ok(Task::new(moved(Collective::Allgatherv, Amount::Listed(blocks), 0), input, output, bytes))
    }

    /// `MPI_Alltoallv`: ranks know their own counts only, and have to tell each other before there is a plan.
    ///
    /// # Safety
    /// The arrays have a number for each rank.
    pub unsafe fn alltoallv(
        &self,
        send: (Send, Numbers, Numbers, Handle),
        receive: (Receive, Numbers, Numbers, Handle),
    ) -> Outcome {
        if let Some(said) = self.said {
            // SAFETY: the caller's promise.
            let expected = unsafe { self.types.each_said(receive.1, self.comm.size, receive.3) };
            // SAFETY: the same.
            let given = match self.in_place(send.0) {
                true => expected.clone(),
                false => unsafe { self.types.each_said(send.1, self.comm.size, send.3) },
            };
            let unsigned = |each: Vec<i128>| each.into_iter().map(|bytes| u64::try_from(bytes).ok()).collect();
            let both = given.and_then(unsigned).zip(expected.and_then(unsigned));
            said.note(&[both.is_none().then(|| "counts that MPI refuses".into())]);
            let _ = both.map(|both| said.exchanged.set(both));
        }
        if !self.tells_counts {
            return Err(Reason::UnknownCounts.into());
        }
        let (receive, received, to, receive_type) = receive;
        let size = self.comm.size;
        // SAFETY: the caller's promise.
        let part = |at: *mut u8, numbers: Numbers, places: Numbers, handle: Handle| unsafe {
            let datatype = self.datatype(handle)?;
            let counts = counts(numbers, size)?;
            let region = Region::scattered(at, &counts, &places.read(size)?, datatype)?;
            Ok::<_, Unserved>((region, counts.iter().map(|count| datatype.bytes(*count)).collect::<Vec<_>>()))
        };
        let (output, expected) = part(receive.cast(), received, to, receive_type)?;
        let (send, sent, from, send_type) = send;
        let (input, given) = match self.in_place(send) {
            true => (None, expected.clone()),
            false => {
                let (region, given) = part(send.cast_mut().cast(), sent, from, send_type)?;
                (Some(region), given)
            }
        };
        let (call, bytes) = (moved(Collective::Alltoallv, Amount::Listed(given), 0), output.bytes());
        Ok(Task { expected, ..Task::new(call, input, output, bytes) })
    }
}

/// What is moved as it is.
fn moved(collective: Collective, amount: Amount, root: usize) -> RawCall {
    RawCall { collective, amount, element: Type::U8, operation: None, root }
}

/// A block that a rank sends has as many bytes as it says that it receives: MPI asks for it, but does not look.
#[inline]
fn equal(sent: usize, received: usize) -> Result<(), Unserved> {
    match sent == received {
        true => Ok(()),
        false => Err(Error::Unequal { sent, received }.into()),
    }
}
