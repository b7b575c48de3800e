//! `ALLHANDS_COMPARE`: ours and the MPI's own take turns, so that both meet the same program at the same time.
//!
//! Whose turn it is follows from how many such calls a communicator has seen, so all its ranks know it: ours, theirs, theirs,
//! ours, and so on, lest what a program does every other time falls to one side. What comes first warms up and does not count.

use std::collections::HashMap;
use std::sync::Mutex;

use allhands_call::Communicator;
use allhands_schedule::Collective;

use super::observer::{Observer, Turn};
use allhands_call::locks::lock;
use allhands_report::class;

/// Calls of one collective and size class; none where ranks do not know how much the others move.
type TurnKey = (Collective, Option<u64>);

/// The calls that communicators have seen, by their number.
#[derive(Default)]
pub(super) struct Turns {
    seen: Mutex<HashMap<u64, Seen>>,
}

impl Observer for Turns {
    fn turn(&self, comm: &Communicator, collective: Collective, bytes: usize, fresh: bool) -> Option<Turn> {
        Some(lock(&self.seen).entry(comm.number).or_default().next(collective, bytes, fresh))
    }

    fn forgets(&self, comm: &Communicator) {
        lock(&self.seen).remove(&comm.number);
    }
}

/// The calls that a communicator has seen.
#[derive(Default)]
struct Seen(HashMap<TurnKey, u64>);

impl Seen {
    /// The next call of a collective with so many bytes; `fresh` if it was the first that has its plan.
    fn next(&mut self, collective: Collective, bytes: usize, fresh: bool) -> Turn {
        let class = (!collective.hides_counts()).then(|| class(bytes));
        let seen = self.0.entry((collective, class)).or_default();
        let ours = matches!(*seen % 4, 0 | 3);
        let counts = *seen >= 2 && !(ours && fresh);
        *seen += 1;
        Turn { ours, counts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_get_as_many_turns_and_the_first_of_each_does_not_count() {
        let mut turns = Seen::default();
        let order: Vec<Turn> = (0..10).map(|_| turns.next(Collective::Bcast, 100, false)).collect();
        let ours: Vec<bool> = order.iter().map(|turn| turn.ours).collect();
        assert_eq!(ours, [true, false, false, true, true, false, false, true, true, false]);
        assert_eq!(order.iter().filter(|turn| turn.counts).count(), 8);
        assert!(order[2..].iter().all(|turn| turn.counts));
    }

    #[test]
    fn a_plan_that_was_just_made_does_not_count_and_kinds_are_apart() {
        let mut turns = Seen::default();
        for _ in 0..3 {
            turns.next(Collective::Bcast, 100, false);
        }
        assert_eq!(turns.next(Collective::Bcast, 128, true), Turn { ours: true, counts: false });
        assert_eq!(turns.next(Collective::Bcast, 129, false), Turn { ours: true, counts: false });
        assert_eq!(turns.next(Collective::Reduce, 100, false), Turn { ours: true, counts: false });
    }

    #[test]
    fn an_alltoallv_has_no_size_that_all_ranks_know() {
        let mut turns = Seen::default();
        let order = [1, 1 << 20, 7].map(|bytes| turns.next(Collective::Alltoallv, bytes, false).ours);
        assert_eq!(order, [true, false, false]);
    }
}
