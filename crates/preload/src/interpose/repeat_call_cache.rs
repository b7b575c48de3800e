//! A call like this thread's last one goes straight to its plan: reading arguments takes a third as long as a short collective.
//!
//! What such a call says follows from a few numbers, which are compared here: the collective, the communicator, counts, and predefined
//! datatypes and operations, whose handles never come to mean anything else. Only the buffers may be others.

use std::cell::RefCell;
use std::ffi::{c_int, c_void};

use allhands::raw::{RawOperation, RawPlan};
use allhands_call::failure::{fault, raise};
use allhands_call::{Numbers, Region, Task, device, overlap};
use allhands_mpi::Handle;
use allhands_schedule::Collective;

use super::session::Session;
use crate::groups::FoundPlan;
use crate::job::inside;
use crate::requests::{self, Group, Member};
use allhands_call::locks::lock;

/// Arguments that are a few numbers and two buffers.
#[derive(Clone, Copy)]
pub(super) struct Plain<'a> {
    /// Counts, datatypes, the operation and the root, as the program gives them.
    pub(super) numbers: [usize; 5],
    /// Arrays of a number for each rank, of a vector collective; among neighbours for each of those, those of what is sent first.
    pub(super) arrays: &'a [Numbers],
    /// Which of the numbers are datatypes.
    pub(super) types: Option<[Handle; 2]>,
    /// Null where there is one buffer only.
    pub(super) send: *const c_void,
    pub(super) receive: *mut c_void,
}

/// What this thread called last, and the plan that served it.
struct Last {
    collective: Collective,
    comm: Handle,
    numbers: [usize; 5],
    /// The numbers of the arrays that this rank gives.
    arrays: Vec<Vec<i64>>,
    /// As in [`recent`](super::recent::recent).
    removed: u64,
    member: *const Member,
    place: FoundPlan,
    /// What the buffers' addresses are to be multiples of.
    align: usize,
    /// Bytes of input and output, and where they lay.
    bytes: [usize; 2],
    buffers: (*const c_void, *mut c_void),
    /// Whether the output held the input.
    in_place: bool,
}

thread_local! {
    static LAST: RefCell<Option<Last>> = const { RefCell::new(None) };
}

/// Serves a call that is like the last one; its code.
pub(super) fn repeat_call(
    session: &Session,
    collective: Collective,
    function: &str,
    comm: Handle,
    plain: &Plain<'_>,
) -> Option<c_int> {
    let (member, place, in_place) = LAST.with_borrow(|last| {
        let last = last.as_ref()?;
        let like = last.collective == collective && last.comm == comm && last.numbers == plain.numbers;
        let like = like && (last.arrays.is_empty() || last.has_arrays(session, plain));
        let known = like && last.removed == session.comms.removed() && !requests::any() && last.fits(session, plain);
        known.then_some((last.member, last.place, last.in_place))
    })?;
    // SAFETY: as in `recent`: nothing was removed since it was seen in the table.
    let group = unsafe { &*member }.made()?;
    let ran = inside(|| {
        let mut group = lock(group);
        let plan: &mut RawPlan = group.placed(place)?;
        // SAFETY: the program's memory is as it says, which is as it said last time, elsewhere.
        Some(unsafe {
            match in_place {
                false => plan.run(plain.send.cast(), plain.receive.cast()),
                true => plan.run_in_place(plain.receive.cast()),
            }
        })
    });
    match ran {
        Some(Some(Ok(()))) => Some(0),
        Some(Some(Err(error))) => Some(raise(session.job.mpi, function, comm, &error)),
        Some(None) => None,
        None => Some(fault(session.job.mpi, function, comm)),
    }
}

/// Remembers a call for the next one, if its arguments are all there is to know.
pub(super) fn remember(
    session: &Session,
    comm: Handle,
    plain: &Plain<'_>,
    member: &Member,
    group: &Group,
    task: &Task,
) {
    let direct = |region: &Region| region.direct().is_some();
    let predefined = |datatype: &Handle| session.job.types.basic(session.job.mpi.abi().handle(*datatype)).is_some();
    let kernel = !matches!(task.call.operation, Some(RawOperation::Own { .. }));
    let whole = kernel && direct(&task.output) && plain.types.iter().flatten().all(predefined);
    let input = task.input.as_ref();
    // What begins somewhere behind the program's address does so by numbers that are not looked at then.
    let at = |region: &Region, buffer: *const c_void| {
        region.bytes() == 0 || region.direct() == Some(buffer.cast_mut().cast())
    };
    let whole = whole && at(&task.output, plain.receive) && input.is_none_or(|input| at(input, plain.send));
    let in_place_exchange = input.is_none() && task.call.collective == Collective::Alltoallv;
    if !whole || !input.is_none_or(direct) || in_place_exchange || session.observers.any() {
        return;
    }
    let Some(place) = group.place() else { return };
    // Of a gatherv or a scatterv only the root has arrays, and others may have anything in their place.
    let rooted = task.call.collective.rooted() && task.call.root != member.comm.rank;
    let given = if rooted { &[] } else { plain.arrays };
    let length = |place: usize| match &task.hood {
        None => member.comm.size,
        // Of an allgather only what comes has arrays.
        Some(hood) if place < given.len() / 2 && task.call.collective == Collective::NeighborAlltoallv => {
            hood.neighbors.destinations.len()
        }
        Some(hood) => hood.neighbors.sources.len(),
    };
    // SAFETY: the program's arrays have a number for each rank, or neighbour.
    let read = |(place, array): (usize, &Numbers)| unsafe { array.read(length(place)) };
    let Ok(arrays) = given.iter().enumerate().map(read).collect::<Result<Vec<_>, _>>() else { return };
    let derived = |(array, numbers): (&Numbers, &Vec<i64>)| {
        matches!(array, Numbers::Handles(..)) && !numbers.iter().all(|handle| predefined(&(*handle as Handle)))
    };
    if given.iter().zip(&arrays).any(derived) {
        return;
    }
    LAST.set(Some(Last {
        collective: task.call.collective,
        comm,
        numbers: plain.numbers,
        arrays,
        removed: session.comms.removed(),
        member,
        place,
        align: input.map_or(1, Region::align).max(task.output.align()),
        bytes: [input.map_or(0, Region::bytes), task.output.bytes()],
        buffers: (plain.send, plain.receive),
        in_place: input.is_none(),
    }));
}

impl Last {
    /// Whether a call has the same arrays. In place some of an alltoallv's are not to be looked at.
    fn has_arrays(&self, session: &Session, plain: &Plain<'_>) -> bool {
        if plain.send == session.job.mpi.in_place().cast_const() && !self.in_place {
            return false;
        }
        let mut arrays = plain.arrays.iter().zip(&self.arrays);
        // SAFETY: the program's arrays have a number for each rank, or neighbour.
        plain.arrays.len() == self.arrays.len() && arrays.all(|(array, known)| unsafe { array.are(known) })
    }

    /// Whether the buffers are two that need no look.
    #[inline]
    fn fits(&self, session: &Session, plain: &Plain<'_>) -> bool {
        // They were looked at then.
        if self.buffers == (plain.send, plain.receive) && !device::seen() {
            return true;
        }
        let [input, output] = self.bytes;
        let fits = |at: *const c_void, bytes: usize| {
            bytes == 0 || !at.is_null() && (at as usize).is_multiple_of(self.align) && device::of(at.cast()).is_none()
        };
        let apart = match self.in_place {
            true => plain.send == self.buffers.0,
            false => {
                plain.send != session.job.mpi.in_place().cast_const()
                    && !overlap((plain.send as usize, input), (plain.receive as usize, output))
                    && fits(plain.send, input)
            }
        };
        apart && fits(plain.receive, output)
    }
}
