//! What each collective asks for, read from the arguments of MPI's function; `reductions` has those that combine.
//!
//! A rank looks at its own arguments only, and comes to what MPI guarantees to be the same on every rank.

use std::ffi::c_void;
use std::sync::Arc;

use allhands::Error;
use allhands::kernels::Type;
use allhands::raw::{Amount, RawCall};
use allhands_mpi::Handle;
use allhands_schedule::Collective;

use crate::call_description::{CallDescription, list};
use crate::communicator::Communicator;
use crate::datatype::Datatype;
use crate::failure::{Reason, Unserved};
use crate::memory::Region;
use crate::neighborhood::Neighborhood;
use crate::numbers::{Numbers, count, counts};
use crate::task::{Outcome, Task};
use crate::types::Types;

/// What a call is made with.
#[derive(Clone, Copy)]
pub struct Caller<'a> {
    /// The MPI's datatypes and operations.
    pub types: &'a Types,
    /// Where it is made.
    pub comm: &'a Communicator,
    /// Where to note what the arguments say, if somebody wants to know.
    pub said: Option<&'a CallDescription>,
    /// What is settled for collectives among neighbours.
    pub neighborhood: &'a dyn Fn() -> Result<Arc<Neighborhood>, Unserved>,
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

    /// Whether a root works in place; who is none must not.
    #[inline]
    fn in_place_at(&self, at_root: bool, own: Send) -> Result<bool, Unserved> {
        match (self.in_place(own), at_root) {
            (true, false) => Err(Reason::Refused.into()),
            (in_place, _) => Ok(in_place),
        }
    }

    #[inline]
    pub(crate) fn datatype(&self, handle: Handle) -> Result<Datatype, Unserved> {
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

    /// `MPI_Alltoallv`: ranks know their own counts only.
    ///
    /// # Safety
    /// The arrays have a number for each rank.
    pub unsafe fn alltoallv(
        &self,
        (send, sent, from, send_type): (Send, Numbers, Numbers, Handle),
        (receive, received, to, receive_type): (Receive, Numbers, Numbers, Handle),
    ) -> Outcome {
        let in_place = self.in_place(send);
        if let Some(said) = self.said {
            // SAFETY: the caller's promise.
            let each = |numbers, datatype| unsafe { self.types.each_said(numbers, self.comm.size, datatype) };
            let expected = each(received, receive_type);
            said.note_exchange(if in_place { expected.clone() } else { each(sent, send_type) }, expected, None);
        }
        // SAFETY: the caller's promise.
        let (output, expected) = unsafe { self.scattered(receive.cast(), received, to, receive_type)? };
        // SAFETY: the caller's promise.
        let given = match in_place {
            true => None,
            false => Some(unsafe { self.scattered(send.cast_mut().cast(), sent, from, send_type)? }),
        };
        Ok(exchange(given, output, expected))
    }

    /// `MPI_Alltoallw`: as an alltoallv of bytes, with a datatype for each block.
    ///
    /// # Safety
    /// The arrays have a number, or a datatype, for each rank.
    pub unsafe fn alltoallw(
        &self,
        (send, sent, from, send_types): (Send, Numbers, Numbers, *const c_void),
        (receive, received, to, receive_types): (Receive, Numbers, Numbers, *const c_void),
    ) -> Outcome {
        let in_place = self.in_place(send);
        // SAFETY: the caller's promise.
        let output = unsafe { self.mixed(receive.cast(), received, to, receive_types) };
        // SAFETY: the caller's promise.
        let given = (!in_place).then(|| unsafe { self.mixed(send.cast_mut().cast(), sent, from, send_types) });
        if let Some(said) = self.said {
            let each = |part: &Result<(Region, Vec<usize>), Unserved>| {
                part.as_ref().ok().map(|(_, bytes)| bytes.iter().map(|&bytes| bytes as i128).collect::<Vec<_>>())
            };
            said.note_exchange(each(given.as_ref().unwrap_or(&output)), each(&output), None);
        }
        let (output, expected) = output?;
        Ok(exchange(given.transpose()?, output, expected))
    }

    /// Blocks of one datatype, where the program puts them, and their bytes.
    ///
    /// # Safety
    /// The arrays have a number for each rank.
    unsafe fn scattered(
        &self,
        at: *mut u8,
        numbers: Numbers,
        places: Numbers,
        datatype: Handle,
    ) -> Result<(Region, Vec<usize>), Unserved> {
        let (size, datatype) = (self.comm.size, self.datatype(datatype)?);
        // SAFETY: the caller's promise.
        let (counts, places) = unsafe { (counts(numbers, size)?, places.read(size)?) };
        let region = Region::scattered(at, &counts, &places, datatype)?;
        Ok((region, counts.iter().map(|count| datatype.bytes(*count)).collect()))
    }

    /// Blocks of a datatype each, at places in bytes, and their bytes.
    ///
    /// # Safety
    /// The arrays have a number, or a datatype, for each rank.
    unsafe fn mixed(
        &self,
        at: *mut u8,
        numbers: Numbers,
        places: Numbers,
        datatypes: *const c_void,
    ) -> Result<(Region, Vec<usize>), Unserved> {
        let size = self.comm.size;
        // SAFETY: the caller's promise.
        let (counts, places) = unsafe { (counts(numbers, size)?, places.read(size)?) };
        if datatypes.is_null() {
            return Err(Reason::Refused.into());
        }
        let block = |rank: usize| {
            // SAFETY: the caller's promise.
            unsafe { self.mixed_block(at, counts[rank], places[rank], datatypes, rank) }
        };
        let blocks = (0..size).map(block).collect::<Result<Vec<_>, Unserved>>()?;
        let (regions, bytes) = blocks.into_iter().unzip();
        Ok((Region::mixed(regions), bytes))
    }

    /// One of blocks of a datatype each, and its bytes.
    ///
    /// # Safety
    /// The array has a datatype at this place.
    pub(crate) unsafe fn mixed_block(
        &self,
        at: *mut u8,
        count: usize,
        place: i64,
        datatypes: *const c_void,
        index: usize,
    ) -> Result<(Region, usize), Unserved> {
        // What there is nothing of may be of anything.
        if count == 0 {
            return Ok((Region::none(), 0));
        }
        let abi = self.types.mpi().abi();
        // SAFETY: the caller's promise.
        let datatype = unsafe { abi.read_handle(datatypes.byte_add(index * abi.handle_bytes())) };
        let datatype = self.datatype(datatype)?;
        Ok((Region::new(at.wrapping_offset(place as isize), count, datatype)?, datatype.bytes(count)))
    }

    /// `MPI_Gather`
    #[inline(always)]
    pub fn gather(&self, send: (Send, i64, Handle), receive: (Receive, i64, Handle), root: i32) -> Outcome {
        let Communicator { rank, size, .. } = *self.comm;
        let at_root = root as usize == rank;
        let in_place = self.in_place_at(at_root, send.0)?;
        if let Some(said) = self.said {
            let gives = (!in_place).then(|| self.types.bytes_said(send.1, send.2));
            let gets = at_root.then(|| self.types.bytes_said(receive.1, receive.2));
            said.note_rooted(root, gives, gets);
        }
        let root = self.root(root)?;
        let mut input = None;
        let (mut bytes, mut output) = (0, Region::none());
        if !in_place {
            let (region, block) = self.block(send.0.cast_mut(), send.1, send.2, 1)?;
            (input, bytes) = (Some(region), block);
        }
        if at_root {
            let (region, block) = self.block(receive.0, receive.1, receive.2, size)?;
            if !in_place {
                equal(bytes, block)?;
            }
            (output, bytes) = (region, block);
        }
        Ok(Task::new(moved(Collective::Gather, Amount::Each(bytes), root), input, output, bytes))
    }

    /// `MPI_Scatter`
    #[inline(always)]
    pub fn scatter(&self, send: (Send, i64, Handle), receive: (Receive, i64, Handle), root: i32) -> Outcome {
        let Communicator { rank, size, .. } = *self.comm;
        let at_root = root as usize == rank;
        let in_place = self.in_place_at(at_root, receive.0.cast_const())?;
        if let Some(said) = self.said {
            let gives = at_root.then(|| self.types.bytes_said(send.1, send.2));
            let gets = (!in_place).then(|| self.types.bytes_said(receive.1, receive.2));
            said.note_rooted(root, gives, gets);
        }
        let root = self.root(root)?;
        let (mut bytes, mut input) = (0, Region::none());
        let mut output = None;
        if !in_place {
            let (region, block) = self.block(receive.0, receive.1, receive.2, 1)?;
            (output, bytes) = (Some(region), block);
        }
        if at_root {
            let (region, block) = self.block(send.0.cast_mut(), send.1, send.2, size)?;
            if !in_place {
                equal(block, bytes)?;
            }
            (input, bytes) = (region, block);
        }
        let call = moved(Collective::Scatter, Amount::Each(bytes), root);
        Ok(kept(call, input, output, bytes))
    }

    /// Blocks of one size, and its bytes.
    #[inline(always)]
    fn block(&self, at: Receive, number: i64, datatype: Handle, blocks: usize) -> Result<(Region, usize), Unserved> {
        let (number, datatype) = (count(number)?, self.datatype(datatype)?);
        let bytes = datatype.block(number)?;
        Ok((Region::new(at.cast(), datatype.times(number, blocks), datatype)?, bytes))
    }

    /// `MPI_Gatherv`: the root knows all counts, others their own.
    ///
    /// # Safety
    /// At the root the arrays have a number for each rank.
    pub unsafe fn gatherv(
        &self,
        (send, sent, send_type): (Send, i64, Handle),
        receive: Receive,
        numbers: Numbers,
        places: Numbers,
        receive_type: Handle,
        root: i32,
    ) -> Outcome {
        let rank = self.comm.rank;
        let at_root = root as usize == rank;
        let in_place = self.in_place_at(at_root, send)?;
        if let Some(said) = self.said {
            // SAFETY: the caller's promise.
            let (all, own) = unsafe { self.counts_said(root, (numbers, receive_type), (in_place, sent, send_type)) };
            said.note_exchange(own, all, Some(root));
        }
        let root = self.root(root)?;
        let (mut output, mut gotten) = (Region::none(), Vec::new());
        if at_root {
            // SAFETY: the caller's promise.
            (output, gotten) = unsafe { self.scattered(receive.cast(), numbers, places, receive_type)? };
        }
        let mut input = None;
        let given = match in_place {
            true => gotten[rank],
            false => {
                let (sent, datatype) = (count(sent)?, self.datatype(send_type)?);
                input = Some(Region::new(send.cast_mut().cast(), sent, datatype)?);
                datatype.bytes(sent)
            }
        };
        if at_root {
            equal(given, gotten[rank])?;
        }
        let bytes = given.max(output.bytes());
        let call = moved(Collective::Gatherv, Amount::Own { given: vec![given], gotten, carried: Vec::new() }, root);
        Ok(Task::new(call, input, output, bytes))
    }

    /// What a rank of a gatherv or scatterv says of its counts: bytes from or for each rank, which are the root's, and its own block's, which
    /// goes to the root or comes from there.
    ///
    /// # Safety
    /// At the root there is a number for each rank.
    unsafe fn counts_said(
        &self,
        root: i32,
        (numbers, of_all): (Numbers, Handle),
        (in_place, own, of_own): (bool, i64, Handle),
    ) -> (Option<Vec<i128>>, Option<Vec<i128>>) {
        let Communicator { rank, size, .. } = *self.comm;
        let all = match root as usize == rank {
            // SAFETY: the caller's promise.
            true => unsafe { self.types.each_said(numbers, size, of_all) },
            false => Some(vec![0; size]),
        };
        let own = match in_place {
            true => all.as_ref().map(|all| all[rank]),
            false => self.types.size_said(own, of_own),
        };
        let only_at_root = |own: i128| (0..size).map(|rank| if rank == root as usize { own } else { 0 }).collect();
        let own = own.map(only_at_root);
        (all, own)
    }

    /// `MPI_Scatterv`: the root knows all counts, others their own.
    ///
    /// # Safety
    /// At the root the arrays have a number for each rank.
    pub unsafe fn scatterv(
        &self,
        send: Send,
        numbers: Numbers,
        places: Numbers,
        send_type: Handle,
        (receive, received, receive_type): (Receive, i64, Handle),
        root: i32,
    ) -> Outcome {
        let rank = self.comm.rank;
        let at_root = root as usize == rank;
        let in_place = self.in_place_at(at_root, receive.cast_const())?;
        if let Some(said) = self.said {
            // SAFETY: the caller's promise.
            let (all, own) =
                unsafe { self.counts_said(root, (numbers, send_type), (in_place, received, receive_type)) };
            said.note_exchange(all, own, Some(root));
        }
        let root = self.root(root)?;
        let (mut input, mut given) = (Region::none(), Vec::new());
        if at_root {
            // SAFETY: the caller's promise.
            (input, given) = unsafe { self.scattered(send.cast_mut().cast(), numbers, places, send_type)? };
        }
        let mut output = None;
        let gotten = match in_place {
            true => given[rank],
            false => {
                let (received, datatype) = (count(received)?, self.datatype(receive_type)?);
                output = Some(Region::new(receive.cast(), received, datatype)?);
                datatype.bytes(received)
            }
        };
        if at_root {
            equal(given[rank], gotten)?;
        }
        let bytes = gotten.max(input.bytes());
        let call = moved(Collective::Scatterv, Amount::Own { given, gotten: vec![gotten], carried: Vec::new() }, root);
        Ok(Task { bytes, ..kept(call, input, output, gotten) })
    }
}

/// An alltoall of counts that ranks know alone. `given`: none in place.
fn exchange(given: Option<(Region, Vec<usize>)>, output: Region, gotten: Vec<usize>) -> Task {
    let (input, given) = given.map_or_else(|| (None, gotten.clone()), |(region, given)| (Some(region), given));
    let bytes = output.bytes();
    Task::new(moved(Collective::Alltoallv, Amount::Own { given, gotten, carried: Vec::new() }, 0), input, output, bytes)
}

/// A scatter. Without an output this rank's own block stays where it is; the plan has memory to put it.
fn kept(call: RawCall, input: Region, output: Option<Region>, block: usize) -> Task {
    let gives = output.is_none();
    let output = output.unwrap_or_else(|| Region::room(block));
    Task { gives, ..Task::new(call, Some(input), output, block) }
}

/// What is moved as it is.
fn moved(collective: Collective, amount: Amount, root: usize) -> RawCall {
    RawCall { collective, amount, element: Type::U8, operation: None, root, graph: None }
}

/// A block that a rank sends has as many bytes as it says that it receives: MPI asks for it, but does not look.
#[inline]
fn equal(sent: usize, received: usize) -> Result<(), Unserved> {
    match sent == received {
        true => Ok(()),
        false => Err(Error::Unequal { sent, received }.into()),
    }
}
