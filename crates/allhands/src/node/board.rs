//! The board of a node: plans in the making, pieces of memory for them, and failures.
//!
//! A plan whose ranks need a little memory in common gets a *chunk* of the node's: the first of them who comes takes one and notes it with
//! the plan, the others find it there, so that nobody waits for anybody. Memory ordering: a chunk is taken, cleared and noted under
//! the lock, and found under it. A rank that lets go of it takes one off its users with Release after its last touch; who takes it
//! next reads 0 with Acquire. A rank that never came, failed or died leaves users behind: that chunk is not used again.
//!
//! A failure has a *scope*, the communicator of the program's that it happened on with what was made from it: collectives on other
//! communicators of the same ranks go on.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// All zeros is an empty board.
#[repr(C, align(128))]
pub(crate) struct Board {
    /// Set last by the maker of memory that processes share: a mapping without it is of something else.
    _stamp: AtomicU64,
    /// How many failures are noted.
    failed: AtomicU32,
    lock: AtomicU32,
    /// How many ranks use each chunk.
    users: [AtomicU32; CHUNKS],
    notes: UnsafeCell<Notes>,
}

/// What the lock guards.
#[repr(C)]
struct Notes {
    failures: [Failure; FAILURES],
    joining: [Joining; PLANS],
    /// Of these, none from here on is in use.
    joined_below: u32,
    passed: [Passed; PASSED],
    /// How many of these are in use, from the first on.
    passing: u32,
    /// Not even these were enough: from now on no plan is compared that was not begun to be.
    uncompared: u32,
}

/// So many plans can be in the making at once; calls of more are not compared.
const PLANS: usize = 256;
/// Of so many of these it is known that they are not.
const PASSED: usize = 1024;
/// So many scopes can fail each for itself; the last one takes everybody along.
const FAILURES: usize = 16;
/// So many plans can have a chunk at once.
pub(super) const CHUNKS: usize = 4096;

/// The scope of a failure that concerns all.
pub(crate) const EVERYBODY: u64 = 0;

/// The first failure of a scope.
#[repr(C)]
struct Failure {
    scope: u64,
    rank: u32,
    reason: Text<1012>,
}

/// A plan that some but not all ranks of the node have made; key 0: none.
#[repr(C)]
struct Joining {
    key: u64,
    missing: u32,
    first: u32,
    /// One more than the number of its chunk, or 0 if it has none.
    chunk: u32,
    /// Of all that is asked for, which may be longer than the text.
    hash: u64,
    asked: Text<240>,
}

/// A plan that is not compared, because there was no room when its first rank came. The others must not open a place for it when
/// there is: it would wait for those who came before.
#[derive(Clone, Copy)]
#[repr(C)]
struct Passed {
    key: u64,
    missing: u32,
}

#[repr(C)]
struct Text<const N: usize> {
    len: u32,
    bytes: [u8; N],
}

impl<const N: usize> Text<N> {
    fn set(&mut self, text: &str) {
        let len = text.floor_char_boundary(N);
        self.bytes[..len].copy_from_slice(&text.as_bytes()[..len]);
        self.len = len as u32;
    }

    fn get(&self) -> String {
        String::from_utf8_lossy(&self.bytes[..self.len as usize]).into_owned()
    }
}

// SAFETY: the notes are touched only under the lock.
unsafe impl Sync for Board {}

impl Board {
    /// The lock is held for the time of a comparison; a process that dies with it takes its whole job along.
    fn locked<R>(&self, act: impl FnOnce(&mut Notes) -> R) -> R {
        while self.lock.compare_exchange_weak(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
            std::thread::yield_now();
        }
        // SAFETY: we hold the lock, and `act` cannot keep the reference.
        let result = act(unsafe { &mut *self.notes.get() });
        self.lock.store(0, Ordering::Release);
        result
    }

    /// Notes a failure, if it is the first of its scope.
    pub(crate) fn fail(&self, scope: u64, rank: usize, reason: &str) {
        self.locked(|notes| {
            let failed = self.failed.load(Ordering::Relaxed) as usize;
            if failed < FAILURES && concerning(&notes.failures[..failed], scope).is_none() {
                let failure = &mut notes.failures[failed];
                failure.scope = if failed + 1 == FAILURES { EVERYBODY } else { scope };
                failure.rank = rank as u32;
                failure.reason.set(reason);
                self.failed.store(failed as u32 + 1, Ordering::Release);
            }
        });
    }

    /// Whether there is a failure that concerns a scope.
    #[inline]
    pub(crate) fn has_failed(&self, scope: u64) -> bool {
        self.failed.load(Ordering::Acquire) != 0 && self.failure(scope).is_some()
    }

    /// The first failure of a scope: who, and why.
    pub(crate) fn failure(&self, scope: u64) -> Option<(usize, String)> {
        let failed = self.failed.load(Ordering::Acquire) as usize;
        if failed == 0 {
            return None;
        }
        self.locked(|notes| {
            let failure = concerning(&notes.failures[..failed], scope)?;
            Some((failure.rank as usize, failure.reason.get()))
        })
    }

    /// Joins the plan that `ranks` of the node make together, as rank `me`; or says who asked for what else. With `clear`, which readies a
    /// chunk for its use, they get one, if there is one left.
    pub(crate) fn join(
        &self,
        key: u64,
        ranks: usize,
        me: usize,
        text: &str,
        clear: Option<&dyn Fn(usize)>,
    ) -> Result<Option<usize>, (usize, String)> {
        if ranks <= 1 {
            return Ok(None);
        }
        let hash = allhands_schedule::hash(text.bytes());
        self.locked(|notes| {
            let below = &notes.joining[..notes.joined_below as usize];
            let place = below.iter().position(|joining| joining.key == key);
            let Some(place) = place.or_else(|| notes.room(key, ranks)) else { return Ok(None) };
            notes.joined_below = notes.joined_below.max(place as u32 + 1);
            let joining = &mut notes.joining[place];
            if joining.key == 0 {
                let asked = Text { len: 0, bytes: [0; 240] };
                let chunk = clear.and_then(|clear| self.chunk(ranks, clear)).map_or(0, |chunk| chunk as u32 + 1);
                *joining = Joining { key, missing: ranks as u32, first: me as u32, chunk, hash, asked };
                joining.asked.set(text);
            }
            let (first, same) = (joining.first as usize, joining.hash == hash);
            let chunk = (joining.chunk as usize).checked_sub(1);
            let expected = if same { String::new() } else { joining.asked.get() };
            joining.missing -= 1;
            if joining.missing == 0 {
                joining.key = 0;
                let used = |joining: &Joining| joining.key != 0;
                let below = notes.joining[..notes.joined_below as usize].iter().rposition(used);
                notes.joined_below = below.map_or(0, |last| last as u32 + 1);
            }
            if same { Ok(chunk) } else { Err((first, expected)) }
        })
    }
}

impl Board {
    /// Under the lock: takes a chunk that nobody uses for so many ranks.
    fn chunk(&self, ranks: usize, clear: &dyn Fn(usize)) -> Option<usize> {
        // The first ones, whose pages are there.
        let chunk = self.users.iter().position(|users| users.load(Ordering::Acquire) == 0)?;
        self.users[chunk].store(ranks as u32, Ordering::Relaxed);
        clear(chunk);
        Some(chunk)
    }

    /// A rank uses a chunk no longer.
    pub(super) fn let_go(&self, chunk: usize) {
        self.users[chunk].fetch_sub(1, Ordering::Release);
    }
}

fn concerning(failures: &[Failure], scope: u64) -> Option<&Failure> {
    failures.iter().find(|failure| failure.scope == scope || failure.scope == EVERYBODY)
}

impl Notes {
    /// Where a plan that is not on the board can be noted; none if it is not to be compared.
    fn room(&mut self, key: u64, ranks: usize) -> Option<usize> {
        let passing = &mut self.passed[..self.passing as usize];
        if let Some(place) = passing.iter().position(|passed| passed.key == key) {
            passing[place].missing -= 1;
            if passing[place].missing == 0 {
                passing[place] = *passing.last().expect("one was found");
                self.passing -= 1;
            }
            return None;
        }
        if self.uncompared != 0 {
            return None;
        }
        let free = self.joining.iter().position(|joining| joining.key == 0);
        if free.is_none() {
            match self.passed.get_mut(self.passing as usize) {
                Some(next) => {
                    *next = Passed { key, missing: ranks as u32 - 1 };
                    self.passing += 1;
                }
                // Who came before is not known from here on: nobody opens a place any more.
                None => self.uncompared = 1,
            }
        }
        free
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::memory::Mapping;

    fn with_board(act: impl FnOnce(&Board)) {
        let memory = Mapping::private(size_of::<Board>()).unwrap();
        // SAFETY: zeros are an empty board; the memory is long enough and stays until the end of this function.
        act(unsafe { &*memory.as_ptr().cast() });
    }

    /// How many plans are on the board.
    fn noted(board: &Board) -> usize {
        board.locked(|notes| notes.joining.iter().filter(|joining| joining.key != 0).count())
    }

    #[test]
    fn who_comes_late_to_a_full_board_takes_no_place_for_ever() {
        with_board(|board| {
            let plans = PLANS as u64;
            // Rank 0 makes one plan more than there is room for; then the others come to all of them.
            (1..=plans + 1).for_each(|key| assert_eq!(board.join(key, 3, 0, "the same", None), Ok(None)));
            assert_eq!(noted(board), PLANS);
            for rank in [1, 2] {
                (1..=plans + 1).for_each(|key| assert_eq!(board.join(key, 3, rank, "the same", None), Ok(None)));
            }
            assert_eq!(noted(board), 0, "a plan that all have made is on the board no longer");
            board.locked(|notes| assert_eq!(notes.joined_below, 0, "and no place is looked at for it"));
            // And what comes then is compared.
            assert_eq!(board.join(7, 2, 0, "one", None), Ok(None));
            assert_eq!(board.join(7, 2, 1, "another", None), Err((0, "one".into())));
        });
    }

    #[test]
    fn more_plans_than_can_be_remembered_leave_nothing_behind() {
        with_board(|board| {
            let plans = (PLANS + PASSED) as u64 + 10;
            (1..=plans).for_each(|key| assert_eq!(board.join(key, 2, 0, "the same", None), Ok(None)));
            (1..=plans).rev().for_each(|key| assert_eq!(board.join(key, 2, 1, "the same", None), Ok(None)));
            assert_eq!(noted(board), 0);
            board.locked(|notes| assert_eq!((notes.passing, notes.uncompared), (0, 1)));
        });
    }

    #[test]
    fn places_are_looked_at_up_to_the_last_in_use() {
        with_board(|board| {
            let below = || board.locked(|notes| notes.joined_below);
            (1..=3).for_each(|key| assert_eq!(board.join(key, 2, 0, "the same", None), Ok(None)));
            assert_eq!((board.join(2, 2, 1, "the same", None), below()), (Ok(None), 3));
            // The gap is filled first.
            assert_eq!((board.join(4, 2, 1, "the same", None), below(), noted(board)), (Ok(None), 3, 3));
            assert_eq!((board.join(3, 2, 1, "another", None), below()), (Err((0, "the same".into())), 2));
            assert_eq!((board.join(4, 2, 0, "the same", None), below()), (Ok(None), 1));
            assert_eq!((board.join(1, 2, 1, "the same", None), below()), (Ok(None), 0));
        });
    }

    #[test]
    fn a_failure_concerns_its_own_scope() {
        with_board(|board| {
            assert!(!board.has_failed(5));
            board.fail(5, 3, "the first");
            board.fail(5, 4, "the second");
            assert_eq!(board.failure(5), Some((3, "the first".into())));
            assert!(!board.has_failed(6));
            board.fail(EVERYBODY, 1, "all");
            assert_eq!((board.failure(6), board.failure(5)), (Some((1, "all".into())), Some((3, "the first".into()))));
        });
    }

    #[test]
    fn failures_of_many_scopes_concern_everybody_in_the_end() {
        with_board(|board| {
            (1..FAILURES as u64).for_each(|scope| board.fail(scope, 2, "one of many"));
            assert!(!board.has_failed(1000));
            board.fail(999, 2, "the last");
            assert!(board.has_failed(1000));
            board.fail(1001, 2, "one more");
        });
    }

    #[test]
    fn ranks_of_a_plan_find_the_same_chunk_and_the_last_one_frees_it() {
        with_board(|board| {
            let cleared = std::cell::Cell::new(0);
            let clear = |chunk: usize| cleared.set(cleared.get() + 1 + chunk);
            let join = |key, rank| board.join(key, 2, rank, "the same", Some(&clear)).unwrap();
            assert_eq!((join(7, 0), join(9, 0), join(9, 1), join(7, 1)), (Some(0), Some(1), Some(1), Some(0)));
            assert_eq!(cleared.get(), 3, "each was cleared once");
            board.let_go(0);
            assert_eq!((join(11, 0), join(11, 1)), (Some(2), Some(2)));
            board.let_go(0);
            assert_eq!((join(13, 0), join(13, 1)), (Some(0), Some(0)));
        });
    }

    #[test]
    fn without_a_chunk_left_all_ranks_get_none() {
        with_board(|board| {
            for key in 1..=CHUNKS as u64 + 1 {
                let wanted = if key <= CHUNKS as u64 { Some(key as usize - 1) } else { None };
                (0..2).for_each(|rank| assert_eq!(board.join(key, 2, rank, "the same", Some(&|_| ())), Ok(wanted)));
            }
        });
    }
}
