//! A list for things of which there is mostly one.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::{iter, option, slice, vec};

/// A list that keeps a single thing in place: most rounds have one message each way, of one span, and a million ranks' rounds would
/// take three times as long to make if each of these lists were allocated. Reads like a slice, grows like a vector.
///
/// ```
/// use allhands_schedule::InlineVec;
/// let mut list = InlineVec::from([3]);
/// list.push(5);
/// assert_eq!(list, [3, 5]);
/// assert_eq!(list.iter().sum::<i32>(), 8);
/// ```
#[derive(Clone)]
pub struct InlineVec<T>(Held<T>);

#[derive(Clone)]
enum Held<T> {
    Nothing,
    One(T),
    Many(Vec<T>),
}

impl<T> InlineVec<T> {
    /// With nothing in it.
    pub const fn new() -> InlineVec<T> {
        InlineVec(Held::Nothing)
    }

    /// Appends one thing.
    pub fn push(&mut self, thing: T) {
        match &mut self.0 {
            Held::Nothing => self.0 = Held::One(thing),
            Held::Many(many) => many.push(thing),
            Held::One(_) => {
                let mut many = std::mem::take(self).into_vec();
                many.push(thing);
                self.0 = Held::Many(many);
            }
        }
    }

    /// Takes everything out.
    pub fn clear(&mut self) {
        self.0 = Held::Nothing;
    }

    /// Takes one thing out.
    ///
    /// # Panics
    /// If there is no such thing.
    pub fn remove(&mut self, index: usize) -> T {
        let mut all = std::mem::take(self).into_vec();
        let thing = all.remove(index);
        *self = all.into();
        thing
    }

    /// Its items in a vector.
    pub fn into_vec(self) -> Vec<T> {
        match self.0 {
            Held::Nothing => Vec::new(),
            Held::One(one) => vec![one],
            Held::Many(many) => many,
        }
    }
}

impl<T> Deref for InlineVec<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match &self.0 {
            Held::Nothing => &[],
            Held::One(one) => slice::from_ref(one),
            Held::Many(many) => many,
        }
    }
}

impl<T> DerefMut for InlineVec<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.0 {
            Held::Nothing => &mut [],
            Held::One(one) => slice::from_mut(one),
            Held::Many(many) => many,
        }
    }
}

impl<T> Default for InlineVec<T> {
    fn default() -> InlineVec<T> {
        InlineVec::new()
    }
}

impl<T: fmt::Debug> fmt::Debug for InlineVec<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<T: PartialEq> PartialEq for InlineVec<T> {
    fn eq(&self, other: &InlineVec<T>) -> bool {
        **self == **other
    }
}

impl<T: Eq> Eq for InlineVec<T> {}

impl<T: PartialEq, const N: usize> PartialEq<[T; N]> for InlineVec<T> {
    fn eq(&self, other: &[T; N]) -> bool {
        **self == other[..]
    }
}

impl<T: PartialEq> PartialEq<Vec<T>> for InlineVec<T> {
    fn eq(&self, other: &Vec<T>) -> bool {
        **self == other[..]
    }
}

impl<T> From<Vec<T>> for InlineVec<T> {
    fn from(many: Vec<T>) -> InlineVec<T> {
        if many.len() > 1 { InlineVec(Held::Many(many)) } else { many.into_iter().collect() }
    }
}

impl<T, const N: usize> From<[T; N]> for InlineVec<T> {
    fn from(things: [T; N]) -> InlineVec<T> {
        things.into_iter().collect()
    }
}

impl<T> Extend<T> for InlineVec<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, things: I) {
        things.into_iter().for_each(|thing| self.push(thing));
    }
}

impl<T> FromIterator<T> for InlineVec<T> {
    fn from_iter<I: IntoIterator<Item = T>>(things: I) -> InlineVec<T> {
        let mut few = InlineVec::new();
        few.extend(things);
        few
    }
}

impl<T> IntoIterator for InlineVec<T> {
    type Item = T;
    type IntoIter = iter::Chain<option::IntoIter<T>, vec::IntoIter<T>>;

    fn into_iter(self) -> Self::IntoIter {
        let (one, many) = match self.0 {
            Held::Nothing => (None, Vec::new()),
            Held::One(one) => (Some(one), Vec::new()),
            Held::Many(many) => (None, many),
        };
        one.into_iter().chain(many)
    }
}

impl<'a, T> IntoIterator for &'a InlineVec<T> {
    type Item = &'a T;
    type IntoIter = slice::Iter<'a, T>;

    fn into_iter(self) -> slice::Iter<'a, T> {
        self.iter()
    }
}

impl<'a, T> IntoIterator for &'a mut InlineVec<T> {
    type Item = &'a mut T;
    type IntoIter = slice::IterMut<'a, T>;

    fn into_iter(self) -> slice::IterMut<'a, T> {
        self.iter_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn behaves_like_a_vector() {
        for count in 0..5 {
            let vector: Vec<usize> = (0..count).collect();
            let mut few: InlineVec<usize> = vector.iter().copied().collect();
            assert_eq!(few, vector);
            assert_eq!(few, InlineVec::from(vector.clone()));
            assert_eq!((few.len(), few.is_empty()), (count, count == 0));
            assert_eq!(few.clone().into_iter().collect::<Vec<_>>(), vector);
            assert_eq!(few.clone().into_vec(), vector);
            assert_eq!(format!("{few:?}"), format!("{vector:?}"));
            few.iter_mut().for_each(|thing| *thing += 1);
            assert_eq!(few, (1..=count).collect::<Vec<_>>());
            if count > 0 {
                assert_eq!(few.remove(count / 2), count / 2 + 1);
                assert_eq!(few.len(), count - 1);
            }
            few.clear();
            assert!(few.is_empty());
        }
    }
}
