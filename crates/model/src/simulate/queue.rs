//! A queue of events by time, for times that never go back: a radix heap of batches.
//!
//! Events of the same time leave in batches: those that were there when it came, in their own order, then those that have come
//! meanwhile, in their own order, and so on. So whom they concern decides, not the order in which they were thought of. Symmetric
//! schedules have many events of one time: those are kept together from the start, and only their batch is put in order. A batch
//! moves to a finer bucket at most once for each bit in which times can differ.

/// As many times are remembered, so that an event finds the batch of its time. A forgotten one gets a second batch.
const REMEMBERED: usize = 64;

/// Positive floating-point numbers sort as their bits do.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    /// `buckets[b]`: batches whose time differs from the last one taken in bit b - 1 and no higher one.
    buckets: Vec<Vec<Batch>>,
    /// The events of each batch, and the batches that are not in use.
    events: Vec<Vec<T>>,
    unused: Vec<u32>,
    /// Batches by their time, at a place that follows from it; those of the past are never asked for.
    remembered: [Batch; REMEMBERED],
    /// Those of the last time taken that leave next, as far as they have not left; and those that have come meanwhile.
    now: Vec<T>,
    left: usize,
    meanwhile: Vec<T>,
    last: u64,
}

#[derive(Clone, Copy, Debug)]
struct Batch {
    time: u64,
    index: u32,
}

/// The bits of no time.
const NEVER: u64 = u64::MAX;

impl<T: Copy + Ord> Queue<T> {
    pub(crate) fn new() -> Queue<T> {
        Queue {
            buckets: (0..=64).map(|_| Vec::new()).collect(),
            events: Vec::new(),
            unused: Vec::new(),
            remembered: [Batch { time: NEVER, index: 0 }; REMEMBERED],
            now: Vec::new(),
            left: 0,
            meanwhile: Vec::new(),
            last: 0,
        }
    }

    /// Adds an event, not before the last one taken.
    #[inline]
    pub(crate) fn push(&mut self, time: f64, event: T) {
        let time_bits = time.to_bits();
        debug_assert!(time_bits >= self.last && time >= 0.0, "time does not go back");
        if time_bits == self.last {
            return self.meanwhile.push(event);
        }
        let place = place(time_bits);
        if self.remembered[place].time != time_bits {
            self.remembered[place] = self.begin(time_bits);
        }
        self.events[self.remembered[place].index as usize].push(event);
    }

    /// A batch for a time to come.
    fn begin(&mut self, time: u64) -> Batch {
        let index = self.unused.pop().unwrap_or_else(|| {
            self.events.push(Vec::new());
            self.events.len() as u32 - 1
        });
        let batch = Batch { time, index };
        self.buckets[bucket(time, self.last)].push(batch);
        batch
    }

    /// Takes the earliest.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(f64, T)> {
        if self.left == self.now.len() {
            if self.meanwhile.is_empty() {
                self.advance()?;
            }
            self.now.clear();
            self.left = 0;
            std::mem::swap(&mut self.now, &mut self.meanwhile);
            // Mostly in order, or a few ascending runs, which a sort by merging makes use of.
            if !self.now.is_sorted() {
                self.now.sort();
            }
        }
        let event = self.now[self.left];
        self.left += 1;
        Some((f64::from_bits(self.last), event))
    }

    /// Goes on to the next time at which there is an event.
    fn advance(&mut self) -> Option<()> {
        let first = self.buckets.iter().position(|bucket| !bucket.is_empty())?;
        let mut batches = std::mem::take(&mut self.buckets[first]);
        self.last = batches.iter().map(|batch| batch.time).min()?;
        for &batch in &batches {
            match bucket(batch.time, self.last) {
                0 => self.end(batch),
                bucket => self.buckets[bucket].push(batch),
            }
        }
        // The memory is worth keeping.
        batches.clear();
        self.buckets[first] = batches;
        Some(())
    }

    /// The time of a batch has come.
    fn end(&mut self, batch: Batch) {
        let events = &mut self.events[batch.index as usize];
        match self.meanwhile.is_empty() {
            true => std::mem::swap(&mut self.meanwhile, events),
            false => self.meanwhile.append(events),
        }
        self.unused.push(batch.index);
    }
}

fn bucket(time: u64, last: u64) -> usize {
    (64 - (time ^ last).leading_zeros()) as usize
}

/// Where a time is remembered: its bits, mixed.
fn place(time: u64) -> usize {
    (time.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % REMEMBERED
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
