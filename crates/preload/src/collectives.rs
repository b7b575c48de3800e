//! What each collective asks for, read from the arguments of MPI's function; `reductions` has those that combine.
//!
//! A rank looks at its own arguments only, and comes to what MPI guarantees to be the same on every rank.

use std::ffi::c_void;

use allhands::Error;
use allhands::kernels::Type;
use allhands::raw::{Amount, RawCall};
use allhands_mpi::Handle;
use allhands_schedule::Collective;

use crate::comms::Member;
use crate::failure::{Reason, Unserved};
use crate::memory::{Datatype, Numbers, Region, count, counts};
use crate::said::{Said, list};
use crate::session::Session;
use crate::settings::IF_IT_CAN;
use crate::task::{Outcome, Task};

/// What a call is made with.
#[derive(Clone, Copy)]
pub(crate) struct Caller<'a> {
    pub(crate) session: &'a Session,
    pub(crate) member: &'a Member,
    /// Where to note what the arguments say, if somebody wants to know.
    pub(crate) said: Option<&'a Said>,
}

/// Memory that is read, as MPI's functions have it.
pub(crate) type Send = *const c_void;
/// Memory that is written.
pub(crate) type Receive = *mut c_void;

impl Caller<'_> {
    #[inline]
    pub(crate) fn in_place(&self, send: Send) -> bool {
        send == self.session.mpi.in_place().cast_const()
    }

    #[inline]
    fn datatype(&self, handle: Handle) -> Result<Datatype, Unserved> {
        Datatype::of(self.session, self.session.mpi.abi().handle(handle))
    }

    pub(crate) fn root(&self, root: i32) -> Result<usize, Unserved> {
        usize::try_from(root).ok().filter(|root| *root < self.member.size).ok_or(Reason::Refused.into())
    }

    pub(crate) fn barrier(&self) -> Outcome {
        let call = moved(Collective::Barrier, Amount::Each(0), 0);
        Ok(Task::new(call, Some(Region::none()), Region::none(), 0))
    }

    #[inline(always)]
    pub(crate) fn bcast(&self, buffer: Receive, number: i64, datatype: Handle, root: i32) -> Outcome {
        if let Some(said) = self.said {
            said.note(&[Some(format!("root {root}")), Some(self.bytes_said(number, datatype))]);
        }
        let root = self.root(root)?;
        let (number, datatype) = (count(number)?, self.datatype(datatype)?);
        let bytes = datatype.block(number)?;
        let output = Region::new(buffer.cast(), number, datatype)?;
        let call = moved(Collective::Bcast, Amount::Each(bytes), root);
        Ok(Task { gives: root == self.member.rank, ..Task::new(call, None, output, bytes) })
    }

    #[inline(always)]
    pub(crate) fn allgather(&self, send: (Send, i64, Handle), receive: (Receive, i64, Handle)) -> Outcome {
        self.regular(Collective::Allgather, send, receive, 1)
    }

    #[inline(always)]
    pub(crate) fn alltoall(&self, send: (Send, i64, Handle), receive: (Receive, i64, Handle)) -> Outcome {
        self.regular(Collective::Alltoall, send, receive, self.member.size)
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
            let gets = self.bytes_said(received, receive_type);
            let gives = (!self.in_place(send)).then(|| self.bytes_said(sent, send_type));
            said.note(&[gives.filter(|gives| *gives != gets).map(|gives| format!("sends {gives}")), Some(gets)]);
        }
        let received = count(received)?;
        let datatype = self.datatype(receive_type)?;
        let bytes = datatype.block(received)?;
        let output = Region::new(receive.cast(), datatype.times(received, self.member.size), datatype)?;
        let mut input = None;
        if !self.in_place(send) {
            let (sent, datatype) = (count(sent)?, self.datatype(send_type)?);
            equal(datatype.bytes(sent), bytes)?;
            input = Some(Region::new(send.cast_mut().cast(), datatype.times(sent, blocks), datatype)?);
        }
        Ok(Task::new(moved(collective, Amount::Each(bytes), 0), input, output, bytes))
    }

    /// # Safety
    /// The arrays have a number for each rank.
    pub(crate) unsafe fn allgatherv(
        &self,
        (send, sent, send_type): (Send, i64, Handle),
        receive: Receive,
        numbers: Numbers,
        places: Numbers,
        receive_type: Handle,
    ) -> Outcome {
        let Member { rank, size, .. } = *self.member;
        if let Some(said) = self.said {
            // SAFETY: the caller's promise.
            let each = unsafe { self.each_said(numbers, receive_type) };
            let mine = each.as_ref().map(|each| format!("{} bytes", each[rank]));
            let gives = (!self.in_place(send)).then(|| self.bytes_said(sent, send_type));
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

    /// Ranks know their own counts only: they have to tell each other before there is a plan, which is not worth it for one call.
    ///
    /// # Safety
    /// The arrays have a number for each rank.
    pub(crate) unsafe fn alltoallv(
        &self,
        send: (Send, Numbers, Numbers, Handle),
        receive: (Receive, Numbers, Numbers, Handle),
    ) -> Outcome {
        if let Some(said) = self.said {
            // SAFETY: the caller's promise.
            let expected = unsafe { self.each_said(receive.1, receive.3) };
            // SAFETY: the same.
            let given = match self.in_place(send.0) {
                true => expected.clone(),
                false => unsafe { self.each_said(send.1, send.3) },
            };
            let unsigned = |each: Vec<i128>| each.into_iter().map(|bytes| u64::try_from(bytes).ok()).collect();
            let both = given.and_then(unsigned).zip(expected.and_then(unsigned));
            said.note(&[both.is_none().then(|| "counts that MPI refuses".into())]);
            let _ = both.map(|both| said.exchanged.set(both));
        }
        let forced = self.session.settings.forced(Collective::Alltoallv);
        if forced.is_none_or(|algorithm| algorithm.trim_end_matches(IF_IT_CAN) == "mpi") {
            return Err(Reason::UnknownCounts.into());
        }
        // SAFETY: the caller's promise.
        unsafe { self.planned_alltoallv(send, receive) }
    }

    /// The same for many calls.
    ///
    /// # Safety
    /// As for [`alltoallv`](Caller::alltoallv).
    pub(crate) unsafe fn planned_alltoallv(
        &self,
        (send, sent, from, send_type): (Send, Numbers, Numbers, Handle),
        (receive, received, to, receive_type): (Receive, Numbers, Numbers, Handle),
    ) -> Outcome {
        let size = self.member.size;
        // SAFETY: the caller's promise.
        let part = |at: *mut u8, numbers: Numbers, places: Numbers, handle: Handle| unsafe {
            let datatype = self.datatype(handle)?;
            let counts = counts(numbers, size)?;
            let region = Region::scattered(at, &counts, &places.read(size)?, datatype)?;
            Ok::<_, Unserved>((region, counts.iter().map(|count| datatype.bytes(*count)).collect::<Vec<_>>()))
        };
        let (output, expected) = part(receive.cast(), received, to, receive_type)?;
        let (input, given) = match self.in_place(send) {
            true => (None, expected.clone()),
            false => {
                part(send.cast_mut().cast(), sent, from, send_type).map(|(region, given)| (Some(region), given))?
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
