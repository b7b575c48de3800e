//! What the collectives among neighbours ask for, read from the arguments of MPI's functions. Arrays have a number for each neighbour, also for those that
//! there are not, beyond the end of a grid: their blocks are not looked at.

use std::ffi::c_void;
use std::sync::Arc;

use allhands::Error;
use allhands::kernels::Type;
use allhands::raw::{Amount, RawCall};
use allhands_mpi::Handle;
use allhands_schedule::Collective;

use crate::collectives::{Caller, Receive, Send};
use crate::failure::{Reason, Unserved};
use crate::memory::Region;
use crate::neighborhood::{Neighborhood, Neighbors};
use crate::numbers::{Numbers, count, counts};
use crate::task::{Outcome, Task};

/// Blocks, and the bytes of each.
type Blocks = (Region, Vec<usize>);

impl Caller<'_> {
    /// `MPI_Neighbor_allgather`
    pub fn neighbor_allgather(&self, send: (Send, i64, Handle), receive: (Receive, i64, Handle)) -> Outcome {
        self.say_equal((send.1, send.2), (receive.1, receive.2))?;
        let hood = self.hood(send.0)?;
        let input = self.one(send)?;
        let output = self.equal_blocks(receive, &hood.neighbors.sources)?;
        one_size(along(Collective::NeighborAllgather, hood, input, output))
    }

    /// `MPI_Neighbor_allgatherv`
    ///
    /// # Safety
    /// The arrays have a number for each neighbour.
    pub unsafe fn neighbor_allgatherv(
        &self,
        send: (Send, i64, Handle),
        (receive, received, to, receive_type): (Receive, Numbers, Numbers, Handle),
    ) -> Outcome {
        self.say_along(|neighbors| {
            // SAFETY: the caller's promise.
            let gotten = unsafe { self.types.each_said(received, neighbors.sources.len(), receive_type)? };
            Some((vec![self.types.size_said(send.1, send.2)?; neighbors.destinations.len()], gotten))
        })?;
        let hood = self.hood(send.0)?;
        let input = self.one(send)?;
        // SAFETY: the caller's promise.
        let output = unsafe { self.blocks(receive.cast(), received, to, receive_type, &hood.neighbors.sources)? };
        Ok(along(Collective::NeighborAllgatherv, hood, input, output))
    }

    /// `MPI_Neighbor_alltoall`
    pub fn neighbor_alltoall(
        &self,
        (send, sent, send_type): (Send, i64, Handle),
        receive: (Receive, i64, Handle),
    ) -> Outcome {
        self.say_equal((sent, send_type), (receive.1, receive.2))?;
        let hood = self.hood(send)?;
        let input = self.equal_blocks((send.cast_mut(), sent, send_type), &hood.neighbors.destinations)?;
        let output = self.equal_blocks(receive, &hood.neighbors.sources)?;
        one_size(along(Collective::NeighborAlltoall, hood, input, output))
    }

    /// `MPI_Neighbor_alltoallv`
    ///
    /// # Safety
    /// The arrays have a number for each neighbour.
    pub unsafe fn neighbor_alltoallv(
        &self,
        (send, sent, from, send_type): (Send, Numbers, Numbers, Handle),
        (receive, received, to, receive_type): (Receive, Numbers, Numbers, Handle),
    ) -> Outcome {
        self.say_along(|neighbors| {
            // SAFETY: the caller's promise.
            let each = |numbers, many, datatype| unsafe { self.types.each_said(numbers, many, datatype) };
            let given = each(sent, neighbors.destinations.len(), send_type)?;
            Some((given, each(received, neighbors.sources.len(), receive_type)?))
        })?;
        let hood = self.hood(send)?;
        let Neighbors { sources, destinations } = &hood.neighbors;
        // SAFETY: the caller's promise.
        let input = unsafe { self.blocks(send.cast_mut().cast(), sent, from, send_type, destinations)? };
        // SAFETY: the caller's promise.
        let output = unsafe { self.blocks(receive.cast(), received, to, receive_type, sources)? };
        Ok(along(Collective::NeighborAlltoallv, hood, input, output))
    }

    /// `MPI_Neighbor_alltoallw`: with a datatype for each block, and places in bytes.
    ///
    /// # Safety
    /// The arrays have a number, or a datatype, for each neighbour.
    pub unsafe fn neighbor_alltoallw(
        &self,
        (send, sent, from, send_types): (Send, Numbers, Numbers, *const c_void),
        (receive, received, to, receive_types): (Receive, Numbers, Numbers, *const c_void),
    ) -> Outcome {
        self.say_along(|neighbors| {
            // SAFETY: the caller's promise.
            let each = |numbers, types, list: &[_]| unsafe { self.mixed_said(numbers, types, list) };
            Some((each(sent, send_types, &neighbors.destinations)?, each(received, receive_types, &neighbors.sources)?))
        })?;
        let hood = self.hood(send)?;
        let Neighbors { sources, destinations } = &hood.neighbors;
        // SAFETY: the caller's promise.
        let input = unsafe { self.mixed_blocks(send.cast_mut().cast(), sent, from, send_types, destinations)? };
        // SAFETY: the caller's promise.
        let output = unsafe { self.mixed_blocks(receive.cast(), received, to, receive_types, sources)? };
        Ok(along(Collective::NeighborAlltoallv, hood, input, output))
    }

    /// What is settled for the communicator. Nobody works in place here.
    fn hood(&self, send: Send) -> Result<Arc<Neighborhood>, Unserved> {
        if self.in_place(send) {
            return Err(Reason::Refused.into());
        }
        (self.neighborhood)()
    }

    /// Notes how many bytes this rank has for each rank, and expects from each, if somebody wants to know; none where MPI refuses them.
    fn say_along(&self, bytes: impl FnOnce(&Neighbors) -> Option<(Vec<i128>, Vec<i128>)>) -> Result<(), Unserved> {
        let Some(said) = self.said else { return Ok(()) };
        let neighbors = Neighbors::of(self.types.mpi(), self.comm)?;
        let by_rank = |list: &[Option<usize>], bytes: Vec<i128>| {
            let mut sums = vec![0; self.comm.size];
            let there = list.iter().zip(bytes).filter_map(|(rank, bytes)| rank.map(|rank| (rank, bytes)));
            there.for_each(|(rank, bytes)| sums[rank] += bytes);
            sums
        };
        let (given, gotten) = bytes(&neighbors).unzip();
        let given = given.map(|bytes| by_rank(&neighbors.destinations, bytes));
        said.note_exchange(given, gotten.map(|bytes| by_rank(&neighbors.sources, bytes)), None);
        Ok(())
    }

    /// The same of blocks of one size.
    fn say_equal(&self, sent: (i64, Handle), received: (i64, Handle)) -> Result<(), Unserved> {
        let block = |(number, datatype)| self.types.size_said(number, datatype);
        self.say_along(|Neighbors { sources, destinations }| {
            Some((vec![block(sent)?; destinations.len()], vec![block(received)?; sources.len()]))
        })
    }

    /// One block for all.
    fn one(&self, (at, number, datatype): (Send, i64, Handle)) -> Result<Blocks, Unserved> {
        let (number, datatype) = (count(number)?, self.datatype(datatype)?);
        Ok((Region::new(at.cast_mut().cast(), number, datatype)?, vec![datatype.bytes(number)]))
    }

    /// Blocks of one size, one after the other.
    fn equal_blocks(
        &self,
        (at, number, datatype): (Receive, i64, Handle),
        list: &[Option<usize>],
    ) -> Result<Blocks, Unserved> {
        let (number, datatype) = (count(number)?, self.datatype(datatype)?);
        let there = list.iter().flatten().count();
        let bytes = vec![datatype.bytes(number); there];
        if there == list.len() {
            return Ok((Region::new(at.cast(), datatype.times(number, there), datatype)?, bytes));
        }
        let places: Vec<i64> = slots(list).map(|slot| (slot * number) as i64).collect();
        Ok((Region::scattered(at.cast(), &vec![number; there], &places, datatype)?, bytes))
    }

    /// Blocks of one datatype, where the program puts them.
    ///
    /// # Safety
    /// The arrays have a number for each of the list.
    unsafe fn blocks(
        &self,
        at: *mut u8,
        numbers: Numbers,
        places: Numbers,
        datatype: Handle,
        list: &[Option<usize>],
    ) -> Result<Blocks, Unserved> {
        if list.is_empty() {
            return Ok((Region::none(), Vec::new()));
        }
        let datatype = self.datatype(datatype)?;
        // SAFETY: the caller's promise.
        let (counts, places) = unsafe { (counts(numbers, list.len())?, places.read(list.len())?) };
        let counts: Vec<usize> = slots(list).map(|slot| counts[slot]).collect();
        let places: Vec<i64> = slots(list).map(|slot| places[slot]).collect();
        let bytes = counts.iter().map(|count| datatype.bytes(*count)).collect();
        Ok((Region::scattered(at, &counts, &places, datatype)?, bytes))
    }

    /// Blocks of a datatype each, at places in bytes.
    ///
    /// # Safety
    /// The arrays have a number, or a datatype, for each of the list.
    unsafe fn mixed_blocks(
        &self,
        at: *mut u8,
        numbers: Numbers,
        places: Numbers,
        datatypes: *const c_void,
        list: &[Option<usize>],
    ) -> Result<Blocks, Unserved> {
        if list.is_empty() {
            return Ok((Region::none(), Vec::new()));
        }
        // SAFETY: the caller's promise.
        let (counts, places) = unsafe { (counts(numbers, list.len())?, places.read(list.len())?) };
        if datatypes.is_null() {
            return Err(Reason::Refused.into());
        }
        let block = |slot: usize| {
            // SAFETY: the caller's promise.
            unsafe { self.mixed_block(at, counts[slot], places[slot], datatypes, slot) }
        };
        let blocks = slots(list).map(block).collect::<Result<Vec<_>, Unserved>>()?;
        let (regions, bytes) = blocks.into_iter().unzip();
        Ok((Region::mixed(regions), bytes))
    }

    /// The bytes of blocks of a datatype each; none if they cannot be read.
    ///
    /// # Safety
    /// The arrays have a number, or a datatype, for each of the list.
    unsafe fn mixed_said(
        &self,
        numbers: Numbers,
        datatypes: *const c_void,
        list: &[Option<usize>],
    ) -> Option<Vec<i128>> {
        // SAFETY: the caller's promise.
        let blocks = unsafe { self.mixed_blocks(std::ptr::null_mut(), numbers, numbers, datatypes, list) };
        let mut bytes = blocks.ok()?.1.into_iter();
        Some(list.iter().map(|rank| rank.map_or(0, |_| bytes.next().unwrap_or(0) as i128)).collect())
    }
}

/// Which of the blocks have somebody.
fn slots(list: &[Option<usize>]) -> impl Iterator<Item = usize> + '_ {
    list.iter().enumerate().filter(|(_, rank)| rank.is_some()).map(|(slot, _)| slot)
}

fn along(collective: Collective, hood: Arc<Neighborhood>, (input, given): Blocks, (output, gotten): Blocks) -> Task {
    let bytes = output.bytes();
    let amount = Amount::Own { given, gotten, carried: Vec::new() };
    let graph = Some(hood.graph.clone());
    let call = RawCall { collective, amount, element: Type::U8, operation: None, root: 0, graph };
    Task { hood: Some(hood), ..Task::new(call, Some(input), output, bytes) }
}

/// The same of a rank whose neighbours all have blocks of one size: where everybody is connected with everybody, that is the size of all.
fn one_size(mut task: Task) -> Outcome {
    let Some(hood) = task.hood.as_ref().filter(|hood| hood.one_size) else { return Ok(task) };
    if let Amount::Own { given, gotten, .. } = &task.call.amount {
        let has_destinations = hood.neighbors.destinations.iter().any(Option::is_some);
        let sent = given.first().copied().filter(|_| has_destinations);
        let size = match (sent, gotten.first().copied()) {
            (Some(sent), Some(received)) if sent != received => return Err(Error::Unequal { sent, received }.into()),
            (sent, received) => sent.or(received),
        };
        task.call.amount = Amount::Each(size.unwrap_or(0));
    }
    Ok(task)
}
