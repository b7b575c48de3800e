//! What many steps or messages have in common, kept once and known by number.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// Different things, numbered in the order in which they came.
#[derive(Debug)]
pub(crate) struct Kinds<T> {
    all: Vec<T>,
    numbers: HashMap<T, u32, BuildHasherDefault<Mixed>>,
}

impl<T: Copy + Eq + Hash> Kinds<T> {
    /// The number of a thing, which may be new.
    pub(super) fn number(&mut self, thing: T) -> u32 {
        *self.numbers.entry(thing).or_insert_with(|| {
            self.all.push(thing);
            self.all.len() as u32 - 1
        })
    }

    /// The same where it probably has the number `guess`: looking is quicker than searching.
    #[inline]
    pub(super) fn number_like(&mut self, thing: T, guess: Option<u32>) -> u32 {
        match guess.filter(|&guess| self.all.get(guess as usize) == Some(&thing)) {
            Some(number) => number,
            None => self.number(thing),
        }
    }

    /// The numbers that another's things have here.
    pub(super) fn numbers_of(&mut self, other: &Kinds<T>) -> Vec<u32> {
        other.all.iter().map(|&thing| self.number(thing)).collect()
    }

    pub(super) fn clear(&mut self) {
        self.all.clear();
        self.numbers.clear();
    }

    /// All of them, by number.
    pub(super) fn into_all(self) -> Vec<T> {
        self.all
    }
}

impl<T> Default for Kinds<T> {
    fn default() -> Kinds<T> {
        Kinds { all: Vec::new(), numbers: HashMap::default() }
    }
}

/// Whether the same things have the same numbers.
impl<T: PartialEq> PartialEq for Kinds<T> {
    fn eq(&self, other: &Kinds<T>) -> bool {
        self.all == other.all
    }
}

/// Quick, and good enough for numbers that nobody chooses to collide.
#[derive(Default)]
struct Mixed(u64);

impl Hasher for Mixed {
    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 ^= self.0 >> 32;
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(u64::from(byte)));
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_things_have_one_number() {
        let (mut some, mut others) = (Kinds::default(), Kinds::default());
        let numbers: Vec<u32> = [7u64, 9, 7, 1 << 48, 9].map(|thing| some.number(thing)).into();
        assert_eq!(numbers, [0, 1, 0, 2, 1]);
        assert_eq!(
            (others.number_like(9, None), others.number_like(9, Some(0)), others.number_like(9, Some(4))),
            (0, 0, 0)
        );
        assert_eq!(others.numbers_of(&some), [1, 0, 2]);
        assert_eq!(others.into_all(), [9, 7, 1 << 48]);
        some.clear();
        assert_eq!(some.number(5), 0);
    }
}
