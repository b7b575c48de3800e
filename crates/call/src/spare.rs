//! Memory for copies of what programs hand over, used again: new memory costs more to get than most copies, page by page.

use std::sync::Mutex;

use crate::locks::lock;

/// What collectives have given back.
static SPARE: Mutex<Spare> = Mutex::new(Spare(Vec::new()));

/// No more are kept, nor more of all of them together than so many words of 16 bytes.
const MOST: usize = 8;
const MOST_WORDS: usize = (64 << 20) / 16;

/// Room for so many bytes, which hold anything.
pub(crate) fn take(bytes: usize) -> Vec<u128> {
    let words = bytes.div_ceil(16);
    if words == 0 {
        return Vec::new();
    }
    let known = lock(&SPARE).take(words);
    known.unwrap_or_else(|| vec![0; words])
}

/// Gives room back.
pub(crate) fn give(room: Vec<u128>) {
    if !room.is_empty() {
        lock(&SPARE).give(room);
    }
}

/// Room that nobody uses. Few pieces, since few collectives are under way at the same time.
struct Spare(Vec<Vec<u128>>);

impl Spare {
    /// The smallest that is large enough.
    fn take(&mut self, words: usize) -> Option<Vec<u128>> {
        let fitting = self.0.iter().enumerate().filter(|(_, room)| room.len() >= words);
        let (index, _) = fitting.min_by_key(|(_, room)| room.len())?;
        Some(self.0.swap_remove(index))
    }

    /// Where there is too much, what was given back first goes.
    fn give(&mut self, room: Vec<u128>) {
        if room.len() > MOST_WORDS {
            return;
        }
        self.0.push(room);
        while self.0.len() > MOST || self.0.iter().map(Vec::len).sum::<usize>() > MOST_WORDS {
            self.0.remove(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_used_again_and_there_is_never_too_much_of_it() {
        let mut spare = Spare(Vec::new());
        assert_eq!(spare.take(1), None);
        let (small, large) = (vec![7; 10], vec![7; 500]);
        let (short, long) = (small.as_ptr() as usize, large.as_ptr() as usize);
        spare.give(small);
        spare.give(large);
        let (large, small) = (spare.take(500).unwrap(), spare.take(1).unwrap());
        assert_eq!((large.as_ptr() as usize, small.as_ptr() as usize), (long, short), "the smallest that suffices");
        (0..3 * MOST).for_each(|_| spare.give(vec![0; 10]));
        assert_eq!(spare.0.len(), MOST);
        spare.give(vec![0; MOST_WORDS]);
        assert_eq!(spare.0.len(), 1, "it takes all that may be kept");
        spare.give(vec![0; MOST_WORDS + 1]);
        assert_eq!(spare.0[0].len(), MOST_WORDS);
        assert!(take(0).is_empty() && take(17).len() >= 2);
    }
}
