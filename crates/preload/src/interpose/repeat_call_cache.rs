//! A call like one of this thread's last ones goes straight to its plan: reading arguments takes as long as a short collective.
//!
//! What such a call says follows from a few numbers, which are compared here: the collective, the communicator, counts, and datatypes and operations.
//! Handles of predefined ones never come to mean anything else; of datatypes that the program has made it is known when one is gone. Only the
//! buffers may be others.
//!
//! Programs call several collectives by turns, so calls of many kinds are known at a time: each at one of two places that follow from its
//! numbers, which few others share. What a rank knows is its own affair: with or without, a call runs the same plan.

use std::cell::RefCell;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use allhands::raw::RawPlan;
use allhands_call::failure::{fault, raise};
use allhands_call::locks::OneCall;
use allhands_call::{Direct, Numbers, Task, Unserved, derived, device};
use allhands_mpi::Handle;
use allhands_schedule::Collective;

use super::session::{self, Session};
use crate::groups::FoundPlan;
use crate::job::{inside, with_words};
use crate::requests::{self, Group, Member};

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

/// A call that this thread has made, and the plan that served it. In this order what every call looks at lies in the first two lines.
#[repr(C, align(64))]
struct Known {
    /// The numbers that the call says, its communicator first.
    comm: Handle,
    numbers: [usize; 5],
    /// As in [`recent`](super::recent::recent): later it may mean something else.
    removed: u64,
    collective: Collective,
    /// Whether that is all it says: its datatypes are predefined, and there are no arrays.
    brief: bool,
    /// The buffers that it had last, if its arguments came to both of them.
    buffers: Option<(*const c_void, *mut c_void)>,
    /// The memory, if it runs on the program's.
    direct: Option<Direct>,
    /// Ours for the communicator, which lasts as long as its place in the table.
    group: *const OneCall<Group>,
    place: FoundPlan,
    /// How many [datatypes were gone](derived::gone), if it has some that are not predefined: later their handles may mean others.
    gone: Option<u64>,
    /// The numbers of the arrays that this rank gives.
    arrays: Vec<Vec<i64>>,
    /// Its first buffer, which in place says so.
    send: *const c_void,
    /// What its arguments came to, with the buffers that it had last.
    task: Task,
}

/// The kinds of calls in a program's loops are fewer.
const PAIRS: usize = 64;

/// Calls that a thread has made, by pairs of places. Its [words](crate::job::with_words) point to the first of these from its first call to its end.
struct Calls {
    known: Box<[Option<Known>]>,
    /// Which place of a pair is given up next.
    next: usize,
}

const PLACES: usize = 2 * PAIRS;

thread_local! {
    static CALLS: RefCell<Option<Calls>> = const { RefCell::new(None) };
}

impl Drop for Calls {
    fn drop(&mut self) {
        with_words(|words| words.calls.set(null_mut()));
    }
}

/// The first of the two places where a call is known, if it is.
#[inline(always)]
fn pair(collective: Collective, comm: Handle, numbers: &[usize; 5]) -> usize {
    // Counts and collectives differ in their low bits, handles anywhere, and in few of them: each goes to a place of its own in a word. A product's high bits are
    // those that all bits of it have a say in.
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    let [first, second, third, fourth, fifth] = numbers.map(|number| number as u64);
    let one = first ^ second.rotate_left(61) ^ third.rotate_left(18) ^ (collective as u64).rotate_left(58);
    let other = fourth.rotate_left(24) ^ fifth.rotate_left(19) ^ (comm as u64).rotate_left(37);
    let sum = one.wrapping_mul(SPREAD).wrapping_add(other);
    2 * ((sum ^ sum >> 32).wrapping_mul(SPREAD) >> (64 - PAIRS.ilog2())) as usize
}

/// Serves a call that is like one that is known; its code.
#[inline(always)]
pub(super) fn repeat_call(collective: Collective, function: &str, comm: Handle, plain: Plain<'_>) -> Option<c_int> {
    let session = session::current()?;
    let comm = session.job.mpi.abi().handle(comm);
    let first = with_words(|words| words.calls.get()).cast::<Option<Known>>();
    if first.is_null() {
        return None;
    }
    let at = pair(collective, comm, &plain.numbers);
    let removed = session.comms.removed();
    for place in [at, at + 1] {
        // SAFETY: of this thread's calls, which nobody else looks at. What is called of MPI's while one is served is not the program's.
        let Some(known) = (unsafe { &mut *first.add(place) }) else { continue };
        if known.is(collective, comm, removed, &plain) && (known.brief || known.says_the_rest(session, plain)) {
            return match known.serve(session, plain.send, plain.receive) {
                Repeated::Through => Some(0),
                Repeated::Not => None,
                ended => ended.code(session, function, comm),
            };
        }
    }
    None
}

/// What has become of a call.
enum Repeated {
    Through,
    /// It is not to be served like the one that is known.
    Not,
    Failed(Box<Unserved>),
    Panicked,
}

impl Repeated {
    #[cold]
    fn code(self, session: &Session, function: &str, comm: Handle) -> Option<c_int> {
        match self {
            Repeated::Through => Some(0),
            Repeated::Not => None,
            Repeated::Failed(unserved) => match *unserved {
                Unserved::Failed(error) => Some(raise(session.job.mpi, function, comm, &error)),
                Unserved::Fallback(_) => None,
            },
            Repeated::Panicked => Some(fault(session.job.mpi, function, comm)),
        }
    }
}

/// Remembers a call for the next one, if its arguments are all there is to know.
pub(super) fn remember(session: &Session, comm: Handle, plain: &Plain<'_>, member: &Member, group: &Group, task: Task) {
    // Of types that are gone none was this call's.
    let gone = derived::gone();
    let handle = |datatype: Handle| session.job.mpi.abi().handle(datatype);
    let predefined = |datatype: Handle| session.job.types.basic(handle(datatype)).is_some();
    let lasting = |datatype: Handle| predefined(datatype) || derived::is_kept(handle(datatype));
    let types = plain.types.iter().flatten().copied();
    let input = task.input.as_ref();
    // What begins somewhere behind the program's address does so by numbers that are not looked at then.
    let whole =
        task.output.begins_at(plain.receive.cast()) && input.is_none_or(|input| input.begins_at(plain.send.cast()));
    let in_place_exchange = input.is_none() && task.call.collective == Collective::Alltoallv;
    if !whole || !types.clone().all(lasting) || in_place_exchange || session.observers.any() {
        return;
    }
    let (Some(place), Some(ours)) = (group.place(), member.made()) else { return };
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
    let listed = given.iter().zip(&arrays).filter(|(array, _)| matches!(array, Numbers::Handles(..)));
    let listed = listed.flat_map(|(_, handles)| handles.iter().map(|handle| *handle as Handle));
    if !listed.clone().all(lasting) {
        return;
    }
    let gone = (!types.chain(listed).all(predefined)).then_some(gone);
    let known = Known {
        brief: gone.is_none() && arrays.is_empty(),
        collective: task.call.collective,
        comm,
        numbers: plain.numbers,
        removed: session.comms.removed(),
        gone,
        arrays,
        group: ours,
        place,
        direct: task.direct(),
        task,
        buffers: Some((plain.send, plain.receive)),
        send: plain.send,
    };
    keep(known, plain);
}

/// Keeps a call of this thread, unless that is about to end.
fn keep(call: Known, plain: &Plain<'_>) {
    let _ = CALLS.try_with(|calls| {
        if let Ok(mut calls) = calls.try_borrow_mut() {
            let calls = calls.get_or_insert_with(Calls::new);
            calls.keep(call, plain);
            with_words(|words| words.calls.set(calls.known.as_mut_ptr().cast()));
        }
    });
}

impl Calls {
    fn new() -> Calls {
        Calls { known: (0..PLACES).map(|_| None).collect(), next: 0 }
    }

    /// Keeps a call in place of one like it, or of one that nobody will make again, or else of one of the two at its places, by turns.
    fn keep(&mut self, call: Known, plain: &Plain<'_>) {
        let at = pair(call.collective, call.comm, &call.numbers);
        let places = &mut self.known[at..at + 2];
        let like = |known: &Known| {
            known.is(call.collective, call.comm, call.removed, plain)
                && known.in_place() == call.in_place()
                && known.arrays == call.arrays
        };
        let over = |known: &Option<Known>| known.as_ref().is_none_or(|known| known.removed != call.removed);
        let same = places.iter().position(|known| known.as_ref().is_some_and(like));
        let place = same.or_else(|| places.iter().position(over)).unwrap_or_else(|| {
            self.next = 1 - self.next;
            self.next
        });
        places[place] = Some(call);
    }
}

impl Known {
    /// Whether a call says the same in all numbers but those of arrays.
    #[inline(always)]
    fn is(&self, collective: Collective, comm: Handle, removed: u64, plain: &Plain<'_>) -> bool {
        // Written out: comparing arrays is a call, which takes longer than this.
        let numbers = self.numbers.iter().zip(&plain.numbers).fold(0, |differ, (one, other)| differ | (one ^ other));
        self.collective == collective && self.comm == comm && self.removed == removed && numbers == 0
    }

    /// Whether a call has the same datatypes still, and the same arrays. (By value: elsewhere its arguments need not be in memory.)
    #[inline(never)]
    fn says_the_rest(&self, session: &Session, plain: Plain<'_>) -> bool {
        self.gone.is_none_or(|gone| gone == derived::gone())
            && (self.arrays.is_empty() || self.has_arrays(session, &plain))
    }

    /// Whether a call has the same arrays. In place some of an alltoallv's are not to be looked at.
    fn has_arrays(&self, session: &Session, plain: &Plain<'_>) -> bool {
        if plain.send == session.job.mpi.in_place().cast_const() && !self.in_place() {
            return false;
        }
        let mut arrays = plain.arrays.iter().zip(&self.arrays);
        // SAFETY: the program's arrays have a number for each rank, or neighbour.
        plain.arrays.len() == self.arrays.len() && arrays.all(|(array, known)| unsafe { array.are(known) })
    }

    /// Whether the output held the input.
    fn in_place(&self) -> bool {
        self.task.input.is_none()
    }

    /// Serves a call like it, with these buffers.
    #[inline(never)]
    fn serve(&mut self, session: &Session, send: *const c_void, receive: *mut c_void) -> Repeated {
        if requests::any() || !self.moves(session, send, receive) {
            return Repeated::Not;
        }
        // SAFETY: as in `recent`: nothing was removed since it was seen in the table.
        let group = unsafe { &*self.group };
        let ran = inside(|| {
            let mut group = group.lock();
            let plan: &mut RawPlan = match group.placed(self.place) {
                Some(plan) if self.direct.is_some() || self.task.is_alike() => plan,
                _ => return Repeated::Not,
            };
            // SAFETY: the program's memory is as it says, which is as it said last time, elsewhere.
            let ran = unsafe {
                match &self.direct {
                    Some(direct) => direct.run(plan).map_err(Unserved::from),
                    None => self.task.run(session.job.mpi, plan),
                }
            };
            match ran {
                Ok(()) => Repeated::Through,
                Err(unserved) => Repeated::Failed(Box::new(unserved)),
            }
        });
        ran.unwrap_or(Repeated::Panicked)
    }

    /// Goes to the buffers of a call like it; not where that is in place and this was not, or the other way round.
    #[inline(always)]
    fn moves(&mut self, session: &Session, send: *const c_void, receive: *mut c_void) -> bool {
        self.buffers == Some((send, receive)) && !device::seen() || self.moves_elsewhere(session, send, receive)
    }

    fn moves_elsewhere(&mut self, session: &Session, send: *const c_void, receive: *mut c_void) -> bool {
        let moved =
            (!self.in_place() || send == self.send) && self.task.move_to(session.job.mpi, send.cast(), receive.cast());
        self.buffers = moved.then_some((send, receive));
        self.direct = self.task.direct();
        moved
    }
}

#[cfg(test)]
mod tests {
    use allhands::kernels::Type;
    use allhands::raw::{Amount, RawCall};
    use allhands_call::Region;

    use super::*;

    fn plain(count: usize, datatype: Handle) -> Plain<'static> {
        let numbers = [count, datatype, 7, 0, 0];
        Plain { numbers, arrays: &[], types: None, send: std::ptr::null(), receive: std::ptr::null_mut() }
    }

    fn known(plain: &Plain<'_>, removed: u64, arrays: Vec<Vec<i64>>) -> Known {
        let call = RawCall {
            collective: Collective::Allreduce,
            amount: Amount::Each(plain.numbers[0]),
            element: Type::F64,
            operation: None,
            root: 0,
            graph: None,
        };
        Known {
            collective: Collective::Allreduce,
            comm: 5,
            numbers: plain.numbers,
            removed,
            gone: None,
            brief: arrays.is_empty(),
            arrays,
            group: std::ptr::null(),
            place: FoundPlan::Known(slot()),
            task: Task::new(call, None, Region::none(), 0),
            buffers: None,
            direct: None,
            send: std::ptr::null(),
        }
    }

    /// Any: it is not followed.
    fn slot() -> allhands::raw::Slot {
        allhands::raw::PlanStore::new(1).insert((), (), 1).0
    }

    fn has(calls: &Calls, plain: &Plain<'_>, removed: u64) -> usize {
        let at = pair(Collective::Allreduce, 5, &plain.numbers);
        let pair = calls.known[at..at + 2].iter().flatten();
        pair.filter(|known| known.is(Collective::Allreduce, 5, removed, plain)).count()
    }

    #[test]
    fn the_calls_of_a_loop_find_places_of_their_own() {
        use Collective::{Allgather, Allreduce, Alltoall, Bcast, Gather, Reduce, ReduceScatterBlock, Scan};
        const COLLECTIVES: [Collective; 8] =
            [Allreduce, Reduce, ReduceScatterBlock, Scan, Allgather, Alltoall, Bcast, Gather];
        // Handles as the MPIs have them: small numbers in high bits, or addresses.
        for (comm, datatype, op) in
            [(0x4400_0000, 0x4c00_080b, 0x5800_0003), (0x7f12_3456_7880, 0x7f12_3459_1100, 0x7f12_3459_5340)]
        {
            for counts in [vec![1], vec![1, 2, 128], (1..=4).collect(), vec![1024, 2048, 4096, 8192]] {
                let mut pairs = [0; 2 * PAIRS];
                for collective in COLLECTIVES {
                    for &count in &counts {
                        pairs[pair(collective, comm, &[count, datatype, op, 0, 0])] += 1;
                    }
                }
                let homeless: usize = pairs.iter().map(|calls: &usize| calls.saturating_sub(2)).sum();
                assert!(homeless * 16 <= 8 * counts.len(), "{homeless} of {} calls have no place", 8 * counts.len());
            }
        }
    }

    #[test]
    fn a_call_takes_the_place_of_one_like_it_or_of_one_that_is_over() {
        let mut calls = Calls::new();
        let call = plain(3, 9);
        for _ in 0..4 {
            calls.keep(known(&call, 0, Vec::new()), &call);
        }
        assert_eq!(has(&calls, &call, 0), 1);
        // Two patterns of arrays stay beside each other; a third takes the place of one of them.
        for pattern in [1, 2, 1, 2] {
            calls.keep(known(&call, 1, vec![vec![pattern]]), &call);
        }
        assert_eq!((has(&calls, &call, 0), has(&calls, &call, 1)), (0, 2));
        calls.keep(known(&call, 1, vec![vec![3]]), &call);
        assert_eq!(has(&calls, &call, 1), 2);
        // A communicator was freed since.
        assert_eq!(has(&calls, &call, 2), 0);
    }
}
