//! What was made for calls of a shape, found again by the shape; what was not used for the longest time goes when there is too much.
//!
//! All ranks of a communicator keep such a store, and all must drop the same plan at the same call: a plan is made together, so
//! a rank that still had one would run it with a rank that makes it anew, under another number. Three things make stores alike:
//!
//! - every rank makes the same calls of a communicator in the same order, so lookups and insertions are the same everywhere;
//! - a *weight* is computed from what all ranks know alike, the call, and never from what a rank has allocated for it;
//! - what is dropped follows from the order of lookups and the weights alone, not from hashes, addresses or time.
//!
//! A lookup hashes the shape and follows a table of numbers; entries stay where they are, so that a caller who remembers a
//! [`Slot`] finds its entry without the shape. A slot that was filled anew since is told by its generation.

use std::borrow::Borrow;
use std::hash::{Hash, Hasher};

/// Entries by key, with a bound on the sum of their weights.
///
/// ```
/// use allhands::raw::PlanStore;
/// let mut store = PlanStore::new(100);
/// let (slot, _) = store.insert("one", 1, 40);
/// store.insert("two", 2, 40);
/// assert_eq!(store.get("one"), Some(&mut 1)); // used later than the other
/// let (_, dropped) = store.insert("three", 3, 40);
/// assert_eq!(dropped, [("two", 2)]);
/// assert_eq!(store.at(slot), Some(&mut 1));
/// assert_eq!(store.get("two"), None);
/// ```
pub struct PlanStore<K, V> {
    slots: Vec<SlotState<K, V>>,
    /// Slots that are empty.
    free: Vec<u32>,
    /// The slot of a key at its hash or behind it, up to the next gap; at most half full.
    table: Vec<u32>,
    /// When the entry in a slot was used last, by a clock that uses move on; never for an empty slot. Beside the slots, because all are
    /// looked at where one has to go, which is seldom.
    used: Vec<u64>,
    clock: u64,
    len: usize,
    weight: u64,
    bound: u64,
}

/// Where an entry is, as long as it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    index: u32,
    generation: u32,
}

struct SlotState<K, V> {
    generation: u32,
    entry: Option<Entry<K, V>>,
}

struct Entry<K, V> {
    key: K,
    value: V,
    hash: u64,
    weight: u64,
}

const NONE: u32 = u32::MAX;
/// When an empty slot was used.
const NEVER: u64 = u64::MAX;

impl<K: Hash + Eq, V> PlanStore<K, V> {
    /// An empty store of entries whose weights sum up to at most `bound`.
    pub fn new(bound: u64) -> PlanStore<K, V> {
        PlanStore {
            slots: Vec::new(),
            free: Vec::new(),
            table: Vec::new(),
            used: Vec::new(),
            clock: 0,
            len: 0,
            weight: 0,
            bound,
        }
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// What they weigh together.
    pub fn weight(&self) -> u64 {
        self.weight
    }

    /// The slot of a key, whose entry is used by that.
    pub fn find<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<Slot>
    where
        K: Borrow<Q>,
    {
        let index = self.table[self.position(hash(key), key)?];
        self.touch(index);
        Some(self.slot(index))
    }

    /// The entry of a key, which is used by that.
    pub fn get<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let slot = self.find(key)?;
        Some(&mut self.entry_mut(slot.index).value)
    }

    /// The entry in a slot, which is used by that; none if the slot's entry is gone.
    #[inline]
    pub fn at(&mut self, slot: Slot) -> Option<&mut V> {
        if self.slots.get(slot.index as usize)?.generation != slot.generation {
            return None;
        }
        self.touch(slot.index);
        Some(&mut self.entry_mut(slot.index).value)
    }

    /// The key in a slot, whose entry is not used by that.
    pub fn key(&self, slot: Slot) -> Option<&K> {
        let place = self.slots.get(slot.index as usize).filter(|place| place.generation == slot.generation)?;
        place.entry.as_ref().map(|entry| &entry.key)
    }

    /// Keeps an entry, in place of another with that key; its slot, and what goes for it, the other first and then what
    /// was not used for the longest time. The new entry stays whatever it weighs.
    pub fn insert(&mut self, key: K, value: V, weight: u64) -> (Slot, Vec<(K, V)>) {
        let mut gone = Vec::new();
        gone.extend(self.remove(&key));
        while self.len > 0 && self.weight.saturating_add(weight) > self.bound {
            let oldest = (0..self.used.len()).min_by_key(|&index| self.used[index]).expect("there are entries");
            gone.push(self.take(oldest as u32));
        }
        if 2 * (self.len + 1) > self.table.len() {
            self.grow();
        }
        let hash = hash(&key);
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(SlotState { generation: 0, entry: None });
            self.used.push(NEVER);
            u32::try_from(self.slots.len() - 1).expect("memory ends before numbers do")
        });
        self.slots[index as usize].entry = Some(Entry { key, value, hash, weight });
        self.enter(hash, index);
        self.touch(index);
        self.len += 1;
        self.weight = self.weight.saturating_add(weight);
        (self.slot(index), gone)
    }

    /// Takes an entry out.
    pub fn remove<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<(K, V)>
    where
        K: Borrow<Q>,
    {
        let index = self.table[self.position(hash(key), key)?];
        Some(self.take(index))
    }

    /// Takes all entries out, what was used last first.
    pub fn clear(&mut self) -> Vec<(K, V)> {
        let mut there: Vec<u32> =
            (0..self.slots.len() as u32).filter(|&index| self.used[index as usize] != NEVER).collect();
        there.sort_unstable_by_key(|&index| std::cmp::Reverse(self.used[index as usize]));
        there.into_iter().map(|index| self.take(index)).collect()
    }

    /// All entries in no particular order; none of them is used by that.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.slots.iter_mut().filter_map(|place| place.entry.as_mut()).map(|entry| &mut entry.value)
    }

    fn slot(&self, index: u32) -> Slot {
        Slot { index, generation: self.slots[index as usize].generation }
    }

    fn entry(&self, index: u32) -> &Entry<K, V> {
        self.slots[index as usize].entry.as_ref().expect("the table and slots that are held name entries only")
    }

    #[inline]
    fn entry_mut(&mut self, index: u32) -> &mut Entry<K, V> {
        self.slots[index as usize].entry.as_mut().expect("the table and slots that are held name entries only")
    }

    /// Where the table names a key.
    fn position<Q: Eq + ?Sized>(&self, hash: u64, key: &Q) -> Option<usize>
    where
        K: Borrow<Q>,
    {
        let mask = self.table.len().checked_sub(1)?;
        let mut at = hash as usize & mask;
        loop {
            let index = self.table[at];
            if index == NONE {
                return None;
            }
            let entry = self.entry(index);
            if entry.hash == hash && entry.key.borrow() == key {
                return Some(at);
            }
            at = (at + 1) & mask;
        }
    }

    fn enter(&mut self, hash: u64, index: u32) {
        let mask = self.table.len() - 1;
        let mut at = hash as usize & mask;
        while self.table[at] != NONE {
            at = (at + 1) & mask;
        }
        self.table[at] = index;
    }

    fn grow(&mut self) {
        let size = (2 * self.table.len()).max(8);
        self.table = vec![NONE; size];
        for index in 0..self.slots.len() as u32 {
            if let Some(entry) = &self.slots[index as usize].entry {
                self.enter(entry.hash, index);
            }
        }
    }

    /// Takes an entry out of the table and its slot.
    fn take(&mut self, index: u32) -> (K, V) {
        let mask = self.table.len() - 1;
        let mut gap = self.entry(index).hash as usize & mask;
        while self.table[gap] != index {
            gap = (gap + 1) & mask;
        }
        self.table[gap] = NONE;
        // Who stands behind its place because of what was here moves up, lest a lookup end at the gap before it.
        let mut at = (gap + 1) & mask;
        while self.table[at] != NONE {
            let home = self.entry(self.table[at]).hash as usize & mask;
            // How far it would be from home in the gap, and how far it is.
            if gap.wrapping_sub(home) & mask < at.wrapping_sub(home) & mask {
                self.table[gap] = std::mem::replace(&mut self.table[at], NONE);
                gap = at;
            }
            at = (at + 1) & mask;
        }
        self.used[index as usize] = NEVER;
        let place = &mut self.slots[index as usize];
        place.generation = place.generation.wrapping_add(1);
        let entry = place.entry.take().expect("the table and slots that are held name entries only");
        self.free.push(index);
        self.len -= 1;
        self.weight -= entry.weight.min(self.weight);
        (entry.key, entry.value)
    }

    #[inline]
    fn touch(&mut self, index: u32) {
        self.used[index as usize] = self.clock;
        self.clock += 1;
    }
}

fn hash<Q: Hash + ?Sized>(key: &Q) -> u64 {
    let mut mixer = Mixer(0x9e37_79b9_7f4a_7c15);
    key.hash(&mut mixer);
    mixer.finish()
}

/// Mixes words by multiplying them to twice their length. Keys come from the program itself, so nobody needs to be kept from
/// finding some that collide.
struct Mixer(u64);

impl Mixer {
    #[inline]
    fn mix(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word) * 0xd1b5_4a32_d192_ed03_u128;
        self.0 = (product as u64) ^ (product >> 64) as u64 ^ word.rotate_left(32);
    }
}

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        let mut chunks = bytes.chunks_exact(8);
        for chunk in &mut chunks {
            self.mix(u64::from_ne_bytes(chunk.try_into().expect("eight bytes")));
        }
        let rest = chunks.remainder();
        if !rest.is_empty() {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            self.mix(u64::from_ne_bytes(word));
        }
    }

    fn write_u8(&mut self, number: u8) {
        self.mix(number.into());
    }

    fn write_u32(&mut self, number: u32) {
        self.mix(number.into());
    }

    fn write_u64(&mut self, number: u64) {
        self.mix(number);
    }

    fn write_usize(&mut self, number: usize) {
        self.mix(number as u64);
    }

    fn write_isize(&mut self, number: isize) {
        self.mix(number as u64);
    }

    fn finish(&self) -> u64 {
        let product = u128::from(self.0) * 0x9e37_79b9_7f4a_7c15_u128;
        (product as u64) ^ (product >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The same in the plainest way: what was used last comes last.
    struct Naive {
        entries: Vec<(u16, u32, u64)>,
        bound: u64,
    }

    impl Naive {
        fn get(&mut self, key: u16) -> Option<u32> {
            let place = self.entries.iter().position(|(known, ..)| *known == key)?;
            let entry = self.entries.remove(place);
            self.entries.push(entry);
            Some(entry.1)
        }

        fn remove(&mut self, key: u16) -> Option<(u16, u32)> {
            let place = self.entries.iter().position(|(known, ..)| *known == key)?;
            let (key, value, _) = self.entries.remove(place);
            Some((key, value))
        }

        fn insert(&mut self, key: u16, value: u32, weight: u64) -> Vec<(u16, u32)> {
            let mut gone: Vec<_> = self.remove(key).into_iter().collect();
            while !self.entries.is_empty() && self.weight() + weight > self.bound {
                let (key, value, _) = self.entries.remove(0);
                gone.push((key, value));
            }
            self.entries.push((key, value, weight));
            gone
        }

        fn weight(&self) -> u64 {
            self.entries.iter().map(|(.., weight)| weight).sum()
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Insert(u16, u64),
        Get(u16),
        At(usize),
        Remove(u16),
        Clear,
    }

    fn step() -> impl Strategy<Value = Step> {
        let key = 0u16..40;
        prop_oneof![
            8 => (key.clone(), 0u64..60).prop_map(|(key, weight)| Step::Insert(key, weight)),
            6 => key.clone().prop_map(Step::Get),
            4 => (0usize..50).prop_map(Step::At),
            2 => key.prop_map(Step::Remove),
            1 => Just(Step::Clear),
        ]
    }

    proptest! {
        #[test]
        fn it_keeps_and_drops_what_a_list_would(bound in 0u64..600, steps in prop::collection::vec(step(), 0..300)) {
            let (mut store, mut naive) = (PlanStore::new(bound), Naive { entries: vec![], bound });
            let mut slots: Vec<(u16, u32, Slot)> = Vec::new();
            for (number, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Insert(key, weight) => {
                        let value = number as u32;
                        let (slot, gone) = store.insert(key, value, weight);
                        prop_assert_eq!(gone, naive.insert(key, value, weight));
                        prop_assert!(store.weight() <= bound || store.len() == 1);
                        prop_assert_eq!(store.key(slot), Some(&key));
                        slots.push((key, value, slot));
                    }
                    Step::Get(key) => prop_assert_eq!(store.get(&key).copied(), naive.get(key)),
                    Step::At(which) => {
                        if let Some(&(key, value, slot)) = slots.get(which) {
                            let there = naive.entries.iter().any(|(_, known, _)| *known == value);
                            prop_assert_eq!(store.at(slot).copied(), there.then_some(value));
                            if there {
                                naive.get(key);
                            }
                        }
                    }
                    Step::Remove(key) => prop_assert_eq!(store.remove(&key), naive.remove(key)),
                    Step::Clear => {
                        let mut gone: Vec<_> = naive.entries.drain(..).map(|(key, value, _)| (key, value)).collect();
                        gone.reverse();
                        prop_assert_eq!(store.clear(), gone);
                    }
                }
                prop_assert_eq!((store.len(), store.weight()), (naive.entries.len(), naive.weight()));
                let mut values: Vec<u32> = store.values_mut().map(|value| *value).collect();
                let mut known: Vec<u32> = naive.entries.iter().map(|(_, value, _)| *value).collect();
                values.sort_unstable();
                known.sort_unstable();
                prop_assert_eq!(values, known);
            }
        }
    }

    /// All keys with one hash: the table is one long run.
    #[derive(PartialEq, Eq, Debug)]
    struct Colliding(u32);

    impl Hash for Colliding {
        fn hash<H: Hasher>(&self, state: &mut H) {
            state.write_u32(self.0 / 16);
        }
    }

    #[test]
    fn keys_that_collide_are_told_apart() {
        let mut store = PlanStore::new(u64::MAX);
        for key in 0..200 {
            store.insert(Colliding(key), key, 1);
        }
        for key in (0..200).step_by(3) {
            assert_eq!(store.remove(&Colliding(key)), Some((Colliding(key), key)));
        }
        for key in 0..200 {
            assert_eq!(store.get(&Colliding(key)).is_some(), key % 3 != 0);
        }
    }

    #[test]
    fn the_newest_stays_whatever_it_weighs() {
        let mut store = PlanStore::new(10);
        store.insert(1, (), 4);
        let (slot, gone) = store.insert(2, (), u64::MAX);
        assert_eq!((gone, store.len()), (vec![(1, ())], 1));
        let (_, gone) = store.insert(3, (), 1);
        assert_eq!((gone, store.weight(), store.at(slot)), (vec![(2, ())], 1, None));
    }

    #[test]
    fn an_empty_store_has_nothing() {
        let mut store: PlanStore<u8, u8> = PlanStore::new(0);
        assert!(store.is_empty() && store.find(&1).is_none() && store.remove(&1).is_none() && store.clear().is_empty());
    }

    #[test]
    fn hashes_of_like_keys_fill_the_table_evenly() {
        // Keys as those of calls are: a few small numbers, or powers of two.
        let keys = (0..1024u64).map(|count| (3u8, count, 0u64)).chain((0..60).map(|bit| (3u8, 1 << bit, 0u64)));
        let mut buckets = [0; 256];
        keys.for_each(|key| buckets[hash(&key) as usize % 256] += 1);
        assert!(buckets.iter().all(|&full| full < 20), "{buckets:?}");
    }
}
