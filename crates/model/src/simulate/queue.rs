//! A queue of events by time, for times that never go back: a radix heap.
//!
//! Events of the same time leave in batches: those that were there when it came, in their own order, then those that have come
//! meanwhile, in their own order, and so on. So whom they concern decides, not the order in which they were thought of. An event moves to a finer bucket at most once for each
//! bit in which times can differ; many events of one time, as symmetric schedules have, move together and cheaply.

/// Positive floating-point numbers sort as their bits do.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    /// `buckets[b]`: events whose time differs from the last one taken in bit b - 1 and no higher one.
    buckets: Vec<Vec<(u64, T)>>,
    /// Those of the last time taken that leave next, the first one last; and those that have come meanwhile.
    now: Vec<T>,
    meanwhile: Vec<T>,
    last: u64,
}

impl<T: Copy + Ord> Queue<T> {
    pub(crate) fn new() -> Queue<T> {
        Queue { buckets: (0..=64).map(|_| Vec::new()).collect(), now: Vec::new(), meanwhile: Vec::new(), last: 0 }
    }

    /// Adds an event, not before the last one taken.
    pub(crate) fn push(&mut self, time: f64, event: T) {
        let key = time.to_bits();
        debug_assert!(key >= self.last && time >= 0.0, "time does not go back");
        match bucket(key, self.last) {
            0 => self.meanwhile.push(event),
            bucket => self.buckets[bucket].push((key, event)),
        }
    }

    /// Takes the earliest.
    pub(crate) fn pop(&mut self) -> Option<(f64, T)> {
        if self.now.is_empty() {
            if self.meanwhile.is_empty() {
                self.advance()?;
            }
            std::mem::swap(&mut self.now, &mut self.meanwhile);
            // A few ascending runs, as a rule, which a sort by merging makes use of.
            self.now.sort();
            self.now.reverse();
        }
        self.now.pop().map(|event| (f64::from_bits(self.last), event))
    }

    /// Goes on to the next time at which there is an event.
    fn advance(&mut self) -> Option<()> {
        let first = self.buckets.iter().position(|bucket| !bucket.is_empty())?;
        let mut events = std::mem::take(&mut self.buckets[first]);
        self.last = events.iter().map(|(key, _)| *key).min()?;
        for &(key, event) in &events {
            match bucket(key, self.last) {
                0 => self.meanwhile.push(event),
                bucket => self.buckets[bucket].push((key, event)),
            }
        }
        // The memory is worth keeping.
        events.clear();
        self.buckets[first] = events;
        Some(())
    }
}

fn bucket(key: u64, last: u64) -> usize {
    (64 - (key ^ last).leading_zeros()) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_leave_by_time_and_among_equals_in_their_order() {
        let mut queue = Queue::new();
        let mut expected: Vec<(f64, usize)> = Vec::new();
        let (mut random, mut now, mut number) = (1u64, 0.0, 0);
        for _ in 0..10_000 {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            if random >> 62 != 0 || expected.is_empty() {
                let time = now + ((random >> 40) % 7) as f64 * 0.37;
                queue.push(time, number);
                expected.push((time, number));
                number += 1;
            } else {
                let first = (0..expected.len()).min_by(|&a, &b| expected[a].0.total_cmp(&expected[b].0)).unwrap();
                let taken = expected.remove(first);
                assert_eq!(queue.pop(), Some(taken));
                now = taken.0;
            }
        }
    }
}
