//! `ALLHANDS_CHECK`: before a collective, ranks compare what they have called. What differs is named, and ends the job.
//!
//! Every rank gives the words of its call, and all get those with the smallest and those with the largest hash: one allreduce of
//! the MPI's own, with an operation of ours, on a communicator of ours, whatever the calls are. So nothing that a rank does
//! before depends on its call.
//!
//! A call that may wait compares at once ([`Observer::arrives`]). One that must not, because it only begins something, begins to
//! compare as well ([`Observer::begins`]); what differs is found when the answer is there and somebody looks ([`Observer::looks`]).

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use allhands::raw::Pauses;
use allhands_call::{Communicator, Reason, Unserved};
use allhands_mpi::{Handle, Mpi};
use allhands_schedule::hash;

use super::observer::{Announced, Observer, Stay};
use crate::job::waiting;
use allhands_call::locks::lock;

/// What comparing needs besides a communicator.
pub(super) struct Check {
    mpi: &'static Mpi,
    both: Handle,
    outermost: Handle,
    /// This rank of the world.
    me: usize,
    /// Whether communicators of one rank get one of ours, too.
    one_rank: bool,
    /// Ours for the program's communicators, by their number; none where it could not be made.
    privates: Mutex<BTreeMap<u64, Option<Arc<Private>>>>,
    /// Comparisons under way that nobody waits for.
    asked: Mutex<Vec<PendingComparison>>,
}

/// A comparison under way.
struct PendingComparison {
    request: Handle,
    /// Where the answer comes: it has to stay where it is.
    both: Box<Both>,
    /// This rank of the communicator.
    rank: usize,
    /// Where it is made: freed before, it would crash Open MPI 5.0.11.
    _private: Arc<Private>,
}

/// A call of one rank.
#[derive(Clone, Copy)]
#[repr(C)]
struct Record {
    hash: u64,
    rank: u64,
    /// The rank in the world, of which the communicator may be a part.
    world: u64,
    text: [u8; TEXT],
}

const TEXT: usize = 232;

/// The one with the smallest hash, and the one with the largest; of equals, the lowest rank's.
#[derive(Clone, Copy)]
#[repr(C)]
struct Both {
    least: Record,
    most: Record,
}

/// A communicator of ours, for as long as the program's that it was made from.
struct Private {
    mpi: &'static Mpi,
    handle: Handle,
}

impl Private {
    /// Collective.
    fn of(mpi: &'static Mpi, handle: Handle, me: usize) -> Option<Private> {
        // A duplicate would call the functions of the program's attributes.
        let handle = mpi.comm_split(handle, Some(0), me as i32).ok()??;
        let _ = mpi.comm_errors_return(handle);
        Some(Private { mpi, handle })
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        if self.mpi.finalized() == Ok(false) {
            let _ = self.mpi.comm_free(self.handle);
        }
    }
}

impl Observer for Check {
    fn listens(&self) -> bool {
        true
    }

    fn meets(&self, comm: &Communicator, _: Option<u64>) {
        let alone = !comm.between_groups && comm.size == 1 && comm.handle != self.mpi.comm_self();
        if alone && self.one_rank {
            self.private(comm);
        }
    }

    fn prepares(&self, comm: &Communicator) {
        self.private(comm);
    }

    /// Compares a call with what the other ranks of its communicator have called; does not return if it differs.
    fn arrives<'a>(&'a self, call: &Announced<'_>, on_idle: &dyn Fn()) -> Result<Option<Stay<'a>>, Unserved> {
        let Some(private) = self.private(call.comm) else { return Ok(None) };
        let rank = call.comm.rank;
        let both = self.reduced(&private, Record::new(rank, self.me, &call.text), on_idle)?;
        if let Some(sentence) = both.difference() {
            end(self.mpi, rank, &sentence, Others::Know);
        }
        if let Some(both) = call.said.exchanged.get() {
            self.exchanged(&private, call, both, on_idle)?;
        }
        Ok(None)
    }

    /// The same for a call that waits for nobody, if its communicator has met a call that waits, or was prepared. Of an alltoallv
    /// it does not compare who sends how much.
    fn begins(&self, call: &Announced<'_>) -> Result<(), Unserved> {
        let private = lock(&self.privates).get(&call.comm.number).cloned().flatten();
        let Some(private) = private else { return Ok(()) };
        let asked = self.ask(&private, Record::new(call.comm.rank, self.me, &call.text))?;
        lock(&self.asked).push(asked);
        self.look()
    }

    fn looks(&self) {
        // What is wrong with comparing is said where somebody waits for it.
        let _ = self.look();
    }

    fn forgets(&self, comm: &Communicator) {
        // Its end calls MPI, and MPI us: not while the table is locked.
        let private = lock(&self.privates).remove(&comm.number);
        drop(private);
    }

    fn ends(&self) {
        let _ = self.look();
        // MPI may still write the answers of those that are under way.
        std::mem::take(&mut *lock(&self.asked)).into_iter().for_each(std::mem::forget);
        let privates = std::mem::take(&mut *lock(&self.privates));
        // In the order in which they were met, which is the same on every rank.
        privates.into_values().for_each(drop);
        let _ = self.mpi.op_free(self.outermost);
        let _ = self.mpi.type_free(self.both);
    }
}

impl Check {
    /// `one_rank`: whether communicators of one rank get one of ours, too, which compares nothing.
    pub(super) fn new(mpi: &'static Mpi, one_rank: bool) -> allhands_mpi::Result<Check> {
        let both = mpi.type_contiguous(size_of::<Both>(), mpi.constants().types.byte)?;
        mpi.type_commit(both)?;
        // SAFETY: it combines elements of the one type that it is used with.
        let outermost = unsafe { mpi.op_create(outermost, true)? };
        let me = mpi.comm_rank(mpi.world())?;
        Ok(Check { mpi, both, outermost, me, one_rank, privates: Mutex::default(), asked: Mutex::default() })
    }

    /// A communicator of the same ranks, for comparing calls; none if it could not be made. Collective the first time.
    fn private(&self, comm: &Communicator) -> Option<Arc<Private>> {
        let known = lock(&self.privates).get(&comm.number).cloned();
        known.unwrap_or_else(|| {
            // No other thread is in a collective with it now.
            let made = waiting(|| Private::of(self.mpi, comm.handle, comm.rank)).map(Arc::new);
            lock(&self.privates).insert(comm.number, made.clone());
            made
        })
    }

    /// Looks at the comparisons that nobody waits for; does not return if one of them has found a difference.
    fn look(&self) -> Result<(), Unserved> {
        let mut all = lock(&self.asked);
        for index in (0..all.len()).rev() {
            if self.mpi.test_done(&mut all[index].request)? {
                let PendingComparison { both, rank, .. } = all.swap_remove(index);
                if let Some(sentence) = both.difference() {
                    end(self.mpi, rank, &sentence, Others::MayNot);
                }
            }
        }
        Ok(())
    }

    /// Whether every rank of a call whose ranks know their own counts only gets as much as it expects, once it is clear that all are in one.
    fn exchanged(
        &self,
        private: &Arc<Private>,
        call: &Announced<'_>,
        (given, expected): &(Vec<u64>, Vec<u64>),
        on_idle: &dyn Fn(),
    ) -> Result<(), Unserved> {
        let (me, function) = (call.comm.rank, call.text.split('(').next().unwrap_or_default());
        let (mpi, mut came) = (self.mpi, vec![0u64; given.len()]);
        // SAFETY: a word for each rank, and one from each.
        unsafe {
            let (from, to) = (given.as_ptr().cast(), came.as_mut_ptr().cast());
            mpi.alltoall(from, to, 1, mpi.constants().types.uint64_t, private.handle)?;
        }
        let wrong = came.iter().zip(expected).enumerate().find(|(_, (came, expected))| came != expected);
        let sentence = wrong.map(|(other, (came, expected))| {
            format!(
                "rank {me} expects {expected} bytes from rank {other} in {function} where rank {other} sends it {came}"
            )
        });
        let mut mine = Record::new(me, self.me, sentence.as_deref().unwrap_or_default());
        mine.hash = u64::from(sentence.is_some());
        let Both { most, .. } = self.reduced(private, mine, on_idle)?;
        if most.hash != 0 {
            end(mpi, me, &most.to_string(), Others::Know);
        }
        Ok(())
    }

    fn ask(&self, private: &Arc<Private>, mine: Record) -> Result<PendingComparison, Unserved> {
        let mpi = self.mpi;
        let mut asked = PendingComparison {
            request: 0,
            both: Box::new(Both { least: mine, most: mine }),
            rank: mine.rank as usize,
            _private: private.clone(),
        };
        let Some(iallreduce) = mpi.raw().iallreduce else { return Err(Reason::NoIallreduce.into()) };
        let (in_place, at) = (mpi.in_place().cast_const(), (&raw mut *asked.both).cast());
        // SAFETY: one element of its type in place, with its operation, which stays there until the request is done.
        let code =
            unsafe { iallreduce(in_place, at, 1, self.both, self.outermost, private.handle, &mut asked.request) };
        mpi.check("MPI_Iallreduce", code)?;
        Ok(asked)
    }

    /// The outermost of all ranks' records. Waits for them, who may wait for what this rank has under way.
    fn reduced(&self, private: &Arc<Private>, mine: Record, on_idle: &dyn Fn()) -> Result<Both, Unserved> {
        let mut asked = self.ask(private, mine)?;
        let mut pauses = Pauses::default();
        while !self.mpi.test_done(&mut asked.request)? {
            self.look()?;
            on_idle();
            pauses.pause();
        }
        Ok(*asked.both)
    }
}

impl Record {
    fn new(rank: usize, world: usize, text: &str) -> Record {
        let hash = hash(text.bytes());
        let mut record = Record { hash, rank: rank as u64, world: world as u64, text: [0; TEXT] };
        let length = text.floor_char_boundary(TEXT);
        record.text[..length].copy_from_slice(&text.as_bytes()[..length]);
        record
    }

    fn who(&self) -> String {
        match self.rank == self.world {
            true => format!("rank {}", self.rank),
            false => format!("rank {} (of the world {})", self.rank, self.world),
        }
    }
}

impl std::fmt::Display for Record {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let length = self.text.iter().position(|byte| *byte == 0).unwrap_or(TEXT);
        f.write_str(&String::from_utf8_lossy(&self.text[..length]))
    }
}

/// MPI's function for the operation. What it gets may lie anywhere.
unsafe extern "C" fn outermost(from: *mut c_void, to: *mut c_void, length: *mut c_int, _: *mut c_void) {
    let (from, to) = (from.cast_const().cast::<Both>(), to.cast::<Both>());
    // SAFETY: MPI gives so many elements of the type, which is plain words and bytes.
    unsafe {
        for index in 0..*length as usize {
            let (one, other) = (from.add(index).read_unaligned(), to.add(index).read_unaligned());
            to.add(index).write_unaligned(one.with(other));
        }
    }
}

impl Both {
    /// What differs, in a sentence.
    fn difference(&self) -> Option<String> {
        let Both { least, most } = self;
        let (one, other) = if least.rank > most.rank { (least, most) } else { (most, least) };
        let sentence = || format!("{} called {one} where {} called {other}", one.who(), other.who());
        (least.hash != most.hash).then(sentence)
    }

    fn with(self, other: Both) -> Both {
        let least = |record: &Record| (record.hash, record.rank);
        let most = |record: &Record| (!record.hash, record.rank);
        Both {
            least: std::cmp::min_by_key(self.least, other.least, least),
            most: std::cmp::min_by_key(self.most, other.most, most),
        }
    }
}

/// Whether all ranks of a communicator know of a difference.
enum Others {
    Know,
    MayNot,
}

/// Says what is wrong, and ends the job: the first rank, before the others do. If it may not know, they say it themselves.
fn end(mpi: &Mpi, rank: usize, sentence: &str, others: Others) -> ! {
    if rank > 0 {
        std::thread::sleep(Duration::from_secs(1));
    }
    if rank == 0 || matches!(others, Others::MayNot) {
        allhands::raw::say(sentence);
        // Intel's launcher may break at the abort and lose what it has not passed on.
        std::thread::sleep(Duration::from_millis(200));
    }
    mpi.abort(mpi.world(), 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(rank: usize, text: &str) -> Both {
        let record = Record::new(rank, rank, text);
        Both { least: record, most: record }
    }

    #[test]
    fn calls_that_differ_survive_every_order_of_combining() {
        let texts = ["a", "a", "b", "a", "a"];
        for first in 0..texts.len() {
            let order = (0..texts.len()).map(|index| (first + index * 2) % texts.len());
            let all = order.map(|rank| both(rank, texts[rank])).reduce(Both::with).unwrap();
            let mut found = [(all.least.to_string(), all.least.rank), (all.most.to_string(), all.most.rank)];
            found.sort();
            assert_eq!(found, [("a".into(), 0), ("b".into(), 2)]);
        }
        let same = both(1, "a").with(both(0, "a"));
        assert_eq!((same.least.hash, same.least.rank), (same.most.hash, 0));
        assert_eq!(same.difference(), None);
        let different = both(1, "MPI_Barrier()").with(both(0, "MPI_Bcast()"));
        assert_eq!(different.difference().unwrap(), "rank 1 called MPI_Barrier() where rank 0 called MPI_Bcast()");
    }

    #[test]
    fn elements_are_combined_where_they_lie() {
        let mut memory = [0u8; 2 * size_of::<Both>() + 1];
        let (from, mut length) = ([both(1, "x"), both(3, "y")], 2);
        let to = memory[1..].as_mut_ptr();
        // SAFETY: two elements each.
        unsafe {
            to.cast::<[Both; 2]>().write_unaligned([both(0, "x"), both(2, "z")]);
            let from = from.as_ptr().cast_mut().cast();
            outermost(from, to.cast(), &mut length, std::ptr::null_mut());
            let [one, other] = to.cast::<[Both; 2]>().read_unaligned();
            assert_eq!((one.least.rank, one.most.rank), (0, 0));
            assert_eq!(other.least.rank + other.most.rank, 5);
        }
    }

    #[test]
    fn long_words_are_cut_where_a_letter_ends() {
        let text = "ä".repeat(200);
        assert_eq!(Record::new(0, 0, &text).to_string(), "ä".repeat(TEXT / 2));
        assert_ne!(Record::new(0, 0, &text).hash, Record::new(0, 0, &text[2..]).hash);
        assert_eq!(Record::new(1, 3, "a").who(), "rank 1 (of the world 3)");
    }
}
