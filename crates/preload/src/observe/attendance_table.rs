//! Which collective each rank of a machine is in, in memory that all of them read.
//!
//! Collectives are numbered by group: the same processes in the same order count together, whichever communicator they use.
//! A rank knows the group of a communicator without asking anybody, so a rank that never comes is seen to be missing.
//! Words are written by their rank alone. A text that is read while it changes may be a mixture: it is for people.

use std::sync::atomic::{AtomicU64, Ordering};

/// The words of all ranks of a machine.
#[derive(Clone, Copy)]
pub(super) struct AttendanceTable<'a> {
    words: &'a [AtomicU64],
}

/// One rank's words.
#[derive(Clone, Copy)]
pub(super) struct Row<'a> {
    words: &'a [AtomicU64],
}

/// Where a rank is, seen from a collective of a group.
#[derive(Debug, PartialEq)]
pub(super) enum Whereabouts {
    /// In that collective, with this call.
    Here(String),
    /// It was there, and has gone on.
    Gone,
    /// It has not come: it is in this call, or in none.
    Missing(Option<String>),
    /// It has not come, and never will: it has called `MPI_Finalize`.
    Left,
}

/// Calls that somebody has spoken of.
const TOLD: usize = 64;
/// Groups of more than so many communicators are not followed.
const GROUPS: usize = 256;
const TEXT: usize = 30;

// A row: whether the rank has left, how many calls it is in, its last call; then for each group its number, how many collectives
// were begun and how many have ended.
const LEFT: usize = 0;
const DEPTH: usize = 1;
const CALL: usize = 2;
const SLOTS: usize = CALL + TEXT;
const SLOT: usize = 3;
const ROW: usize = SLOTS + GROUPS * SLOT;

impl<'a> AttendanceTable<'a> {
    /// How many words so many ranks need.
    pub(super) fn words(ranks: usize) -> usize {
        TOLD + ranks * ROW
    }

    /// On words that are zero at first.
    pub(super) fn new(words: &'a [AtomicU64]) -> AttendanceTable<'a> {
        AttendanceTable { words }
    }

    pub(super) fn row(self, place: usize) -> Row<'a> {
        Row { words: &self.words[TOLD + place * ROW..][..ROW] }
    }

    /// Whether it falls to the caller to speak of a collective: to the first who asks.
    pub(super) fn claim(self, group: u64, number: u64) -> bool {
        let name = group.wrapping_add(number.wrapping_mul(0x9e37_79b9_7f4a_7c15)) | 1;
        self.words[name as usize / 2 % TOLD].swap(name, Ordering::Relaxed) != name
    }
}

impl Row<'_> {
    /// The slot of a group, taken if there is none yet; none if there are too many. One thread at a time.
    pub(super) fn slot(self, group: u64) -> Option<usize> {
        let known = self.find(group);
        known.or_else(|| {
            let slot = (0..GROUPS).find(|slot| self.at(*slot, 0).load(Ordering::Relaxed) == 0)?;
            self.at(slot, 0).store(group, Ordering::Release);
            Some(slot)
        })
    }

    /// The rank begins a collective; its number in the group, from 1.
    pub(super) fn begin(self, slot: usize, text: &str) -> u64 {
        let bytes = &text.as_bytes()[..text.floor_char_boundary(TEXT * 8)];
        for (index, word) in self.words[CALL..SLOTS].iter().enumerate() {
            let mut part = [0; 8];
            let rest = bytes.get(index * 8..).unwrap_or_default();
            let length = rest.len().min(8);
            part[..length].copy_from_slice(&rest[..length]);
            word.store(u64::from_le_bytes(part), Ordering::Relaxed);
        }
        self.words[DEPTH].fetch_add(1, Ordering::Release);
        self.at(slot, 1).fetch_add(1, Ordering::Release) + 1
    }

    /// It has ended one.
    pub(super) fn end(self, slot: usize) {
        self.words[DEPTH].fetch_sub(1, Ordering::Release);
        self.at(slot, 2).fetch_add(1, Ordering::Release);
    }

    /// It has called `MPI_Finalize`.
    pub(super) fn leave(self) {
        self.words[LEFT].store(1, Ordering::Release);
    }

    /// Where the rank is, seen from a collective.
    pub(super) fn whereabouts(self, group: u64, number: u64) -> Whereabouts {
        let count = |what| self.find(group).map_or(0, |slot| self.at(slot, what).load(Ordering::Acquire));
        let (ended, begun) = (count(2), count(1));
        let call = (self.words[DEPTH].load(Ordering::Acquire) > 0).then(|| self.text());
        match call {
            _ if ended >= number => Whereabouts::Gone,
            Some(call) if begun >= number => Whereabouts::Here(call),
            None if begun >= number => Whereabouts::Gone,
            _ if self.words[LEFT].load(Ordering::Acquire) != 0 => Whereabouts::Left,
            call => Whereabouts::Missing(call),
        }
    }

    fn find(self, group: u64) -> Option<usize> {
        (0..GROUPS)
            .take_while(|slot| self.at(*slot, 0).load(Ordering::Acquire) != 0)
            .find(|slot| self.at(*slot, 0).load(Ordering::Acquire) == group)
    }

    fn at(&self, slot: usize, what: usize) -> &AtomicU64 {
        &self.words[SLOTS + slot * SLOT + what]
    }

    fn text(self) -> String {
        let words = self.words[CALL..SLOTS].iter();
        let bytes: Vec<u8> = words.flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes()).collect();
        let length = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(ranks: usize) -> Vec<AtomicU64> {
        (0..AttendanceTable::words(ranks)).map(|_| AtomicU64::new(0)).collect()
    }

    #[test]
    fn ranks_are_seen_where_they_are() {
        let words = words(3);
        let attendance_table = AttendanceTable::new(&words);
        let (world, pair) = (7, 9);
        let row = attendance_table.row(1);
        assert_eq!(row.whereabouts(world, 1), Whereabouts::Missing(None));
        let slot = row.slot(world).unwrap();
        assert_eq!(row.begin(slot, "MPI_Barrier()"), 1);
        assert_eq!(row.whereabouts(world, 1), Whereabouts::Here("MPI_Barrier()".into()));
        assert_eq!(row.whereabouts(world, 2), Whereabouts::Missing(Some("MPI_Barrier()".into())));
        assert_eq!(row.whereabouts(pair, 1), Whereabouts::Missing(Some("MPI_Barrier()".into())));
        row.end(slot);
        assert_eq!(row.whereabouts(world, 1), Whereabouts::Gone);
        assert_eq!(row.whereabouts(world, 2), Whereabouts::Missing(None));
        row.leave();
        assert_eq!(row.whereabouts(world, 2), Whereabouts::Left);
        assert_eq!(attendance_table.row(0).whereabouts(world, 1), Whereabouts::Missing(None), "rows are apart");
    }

    #[test]
    fn groups_keep_their_slots_and_more_are_not_followed() {
        let words = words(1);
        let row = AttendanceTable::new(&words).row(0);
        for group in 1..=GROUPS as u64 {
            assert_eq!(row.slot(group), Some(group as usize - 1));
        }
        assert_eq!((row.slot(5), row.slot(1000)), (Some(4), None));
    }

    #[test]
    fn texts_are_cut_where_a_letter_ends() {
        let words = words(1);
        let row = AttendanceTable::new(&words).row(0);
        let slot = row.slot(1).unwrap();
        row.begin(slot, &format!("a{}", "ä".repeat(200)));
        assert_eq!(row.whereabouts(1, 1), Whereabouts::Here(format!("a{}", "ä".repeat(119))));
        row.end(slot);
        row.begin(slot, "b");
        assert_eq!(row.whereabouts(1, 2), Whereabouts::Here("b".into()));
    }

    #[test]
    fn one_of_all_speaks_of_a_collective() {
        let words = words(1);
        let attendance_table = AttendanceTable::new(&words);
        assert!(attendance_table.claim(3, 1) && !attendance_table.claim(3, 1) && attendance_table.claim(3, 2));
    }
}
